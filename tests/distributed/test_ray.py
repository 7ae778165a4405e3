"""`--engine ray` on a real cluster of several local nodes, one of which is killed mid-run."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from conftest import Command, Serve
from helpers import needs
from helpers.cluster_workers import Doubling, FailsToOpen
from helpers.leaks import Snapshot
from helpers.paths import TESTS
from proctor import Record, evaluate
from proctor.core.errors import ProctorError, UsageError
from proctor.core.types import Timing
from proctor.distributed import cluster as cluster_module
from proctor.distributed import pool
from proctor.distributed.actor import Node
from proctor.distributed.cluster import join_cluster
from proctor.distributed.pool import MAX_LOSSES, ActorPool, WorkerLostError
from proctor.sandbox import cluster as sandbox_cluster
from proctor.store import open_store

START_ATTEMPTS = 6
QUIET = {"include_dashboard": False, "no_monitor": True}
START_SECONDS = 300.0  # for a node, on a machine with many other things to do

# Programs that end in different ways. The worker's signal mask must not reach them.
TASK = """
from collections.abc import Iterator, Sequence
from proctor import Output, RunConfig, Sample, Score, Task
from proctor.sandbox import Limits, Program

BODIES = (
    "return x + 1",
    "return x",
    "raise ValueError(x)",
    "import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGINT); return x",
    "print('\\\\ud800'.encode(errors='replace')); return x + 1",
    "raise SystemExit(3)",
)

class Programs(Task):
    executes = True

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        for i in range(config.limit_start, config.limit_start + self.count(config)):
            yield Sample(str(i), i, "Write f.", f"def f(x):\\n    {BODIES[i % len(BODIES)]}  # {i}\\n")

    def count(self, config: RunConfig) -> int:
        return config.limit or 12

    async def judge(self, sample: Sample, outputs: Sequence[Output]) -> Score:
        program = Program(source=outputs[0].text, tests="assert f(1) == 2", entry_point="f")
        verdict = await self.sandbox.judge(program, Limits())
        seen = [verdict.outcome, verdict.detail, verdict.testing, verdict.level, verdict.stdout, verdict.stderr]
        return Score(float(verdict.passed), verdict.outcome, seen)
"""


class SnapshotWithRay(Snapshot):
    """Ignores descriptors: Ray keeps log files and sockets open in a process that joined."""

    def _find(self, test: str) -> list[str]:
        return [line for line in super()._find(test) if not line.startswith("descriptor of")]


@pytest.fixture(autouse=True)
def _closes_what_it_opens(request: pytest.FixtureRequest) -> Iterator[None]:
    before = SnapshotWithRay() if "slow" in request.keywords else Snapshot()
    yield
    if left := before.new_since(request.node.nodeid):
        pytest.fail("left behind: " + "; ".join(left), pytrace=False)


@pytest.fixture
def programs(tmp_path: Path) -> str:
    path = tmp_path / "programs.py"
    path.write_text(TASK)
    return f"{path}:Programs"


class LocalNodes:
    """Nodes of one CPU each, as local processes. The first is the head of the cluster."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        logging.getLogger("ray").setLevel(logging.ERROR)
        self._cluster = Cluster(shutdown_at_exit=False)

    @property
    def address(self) -> str:
        address: str = self._cluster.address
        return address

    def add(self) -> Any:
        """Retries: a raylet exits if its agents need 15 seconds to start on a busy machine."""
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                with cluster_module.longer_start(time.monotonic() + START_SECONDS, threading.Event()):
                    node = self._cluster.add_node(wait=False, num_cpus=1, include_log_monitor=False, **QUIET)
                break
            except Exception:
                if self._cluster.head_node is None:
                    cluster_module._kill_children(os.environ["RAY_TMPDIR"])
                if attempt == START_ATTEMPTS:
                    raise
        self._cluster._wait_for_node(node, START_SECONDS)
        return node

    def kill(self, node: Any) -> None:
        """Kills the workers before they can report anything, like a power cut."""
        raylet = node.all_processes["raylet"][0].process.pid
        for worker in child_processes(raylet):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def nodes() -> Iterator[LocalNodes]:
    """Two nodes. Cleans up their processes and files, also those of a node that did not start."""
    needs.module("ray", "ray")
    with (
        tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder,  # sockets need short paths
        pytest.MonkeyPatch.context() as environment,
    ):
        os.mkdir(f"{folder}/ray")  # ray.cluster_utils writes a file there before it creates the folder
        environment.setenv("RAY_TMPDIR", folder)
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        environment.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)  # the nodes need it
        nodes = LocalNodes()
        try:
            nodes.add()
            nodes.add()
            yield nodes
        finally:
            nodes.close()
            left = wait_until_gone(folder)
            for process in left:
                os.kill(int(process.split()[0]), signal.SIGKILL)
            assert left == []


def child_processes(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if path.read_text(errors="replace").rpartition(")")[2].split()[1] == str(parent):
                found.append(int(path.parent.name))
    return found


def processes_with(mark: str) -> list[str]:
    """The processes with this text in their environment or command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            texts = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
            if int(folder.name) != os.getpid() and mark.encode() in texts:
                found.append(f"{folder.name} {(folder / 'comm').read_text().strip()}")
    return found


def wait_until_gone(mark: str) -> list[str]:
    """The processes that still exist after the timeout."""
    deadline = time.monotonic() + 60
    while (found := processes_with(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def comparable(records: list[Record]) -> list[Record]:
    """Records without times, in the order of the samples."""
    return [
        msgspec.structs.replace(
            record,
            timing=Timing(),
            outputs=tuple(msgspec.structs.replace(output, seconds=0.0) for output in record.outputs),
        )
        for record in sorted(records, key=lambda record: record.sample.index)
    ]


@pytest.mark.slow
def test_killed_node_loses_and_repeats_no_sample(
    contained: str,
    nodes: LocalNodes,
    programs: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = evaluate(programs, "scripted/oracle", limit=240, allow_code_execution=True)
    victim = nodes.add()
    submitted: list[int] = []
    submit = pool._WorkerHandle.submit

    def submit_and_kill(handle: Any, jobs: Any) -> None:
        """Kills the node at its second chunk: it has finished jobs and has jobs left."""
        submit(handle, jobs)
        if handle.node.name.endswith(f"/{victim.node_id[:8]}"):
            submitted.append(len(handle.jobs))
            if len(submitted) == 2:
                nodes.kill(victim)

    monkeypatch.setattr(pool._WorkerHandle, "submit", submit_and_kill)
    monkeypatch.setattr(pool, "SETTLE_SECONDS", START_SECONDS)  # start when all three nodes are ready
    monkeypatch.setattr(sandbox_cluster, "MOST_AT_ONCE", 4)  # so that no node takes all the work
    there = evaluate(
        programs, "scripted/oracle", limit=240, allow_code_execution=True, engine="ray",
        ray_address=nodes.address, workers=3,
    )  # fmt: skip
    assert len(submitted) == 2
    records = list(there.records())
    assert len(records) == 240
    assert comparable(records) == comparable(list(here.records()))
    assert there.run.outcomes == here.run.outcomes
    assert there.run.errors == 0
    assert there.run.metrics == here.run.metrics
    assert there.run.provenance["sandbox"] == contained
    assert len(there.run.provenance["cluster"]["nodes"]) == 3
    assert re.search(rf"a worker on node \S+/{victim.node_id[:8]} was lost; its jobs \({submitted[1]}\)", caplog.text)


def do_all(nodes: LocalNodes, worker: Any, items: list[Any], workers: int = 2) -> list[Any]:
    async def run() -> list[Any]:
        seen: list[tuple[Node, int]] = []
        async with join_cluster(nodes.address, 0):
            pool = ActorPool[Any, Any](
                worker,
                workers,
                cpus=1,
                max_jobs=8,
                paced=False,
                on_open=lambda *opened: seen.append(opened),
            )
            await pool.open()
            try:
                return await asyncio.gather(*map(pool.run, items), return_exceptions=True)
            finally:
                await pool.close()

    return asyncio.run(run())


@pytest.mark.slow
def test_job_that_kills_its_workers_fails_alone(nodes: LocalNodes) -> None:
    *others, deadly, failing = do_all(nodes, Doubling, [*range(20), "end", "fail"])
    assert others == [2 * number for number in range(20)]
    assert isinstance(deadly, WorkerLostError)
    assert f"{MAX_LOSSES} workers were lost" in str(deadly)
    assert isinstance(failing, UsageError)  # keeps its text, although it cannot be pickled
    assert "proctor-eval[extra]" in str(failing)


@pytest.mark.slow
def test_node_that_cannot_open_its_worker_is_named(nodes: LocalNodes) -> None:
    with pytest.raises(UsageError, match=r"^Node \S+/\w{8}: this node lacks a part\.$"):
        do_all(nodes, FailsToOpen, [1])


@pytest.mark.slow
def test_node_without_the_container_engine_is_named(nodes: LocalNodes, programs: str) -> None:
    missing = next((engine for engine in ("docker", "podman") if shutil.which(engine) is None), None)
    if missing is None:
        pytest.skip("docker and podman are both here")
    with pytest.raises(UsageError, match=rf"^Node \S+/\w{{8}}: {missing} is not on the PATH"):
        evaluate(
            programs, "scripted/oracle", allow_code_execution=True, sandbox=missing, engine="ray",
            ray_address=nodes.address,
        )  # fmt: skip


@pytest.mark.slow
def test_replicas_of_a_local_model_give_the_same_outputs(
    nodes: LocalNodes, adding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs.module("torch", "hf")
    needs.module("transformers", "hf")
    monkeypatch.setattr("tqdm.tqdm.monitor_interval", 0)  # no thread that watches progress bars
    from helpers.tiny_models import make_model, make_tokenizer

    make_model("Llama").save_pretrained(tmp_path / "tiny")
    make_tokenizer().save_pretrained(tmp_path / "tiny")
    options: dict[str, Any] = {"limit": 8, "max_tokens": 12, "samples": 2, "temperature": 0.8}
    here = evaluate(adding, "hf/tiny", **options)  # a relative path on both sides
    there = evaluate(adding, "hf/tiny", **options, engine="ray", ray_address=nodes.address, model_cpus=1)
    assert comparable(list(there.records())) == comparable(list(here.records()))
    assert there.run.provenance["candidate"] == here.run.provenance["candidate"]
    assert there.run.config["api"] == here.run.config["api"] == "chat"


@pytest.mark.slow
def test_started_cluster_lives_as_long_as_the_run(contained: str, programs: str, proctor: Command) -> None:
    """Linux ends the processes that Ray starts when the thread that joined ends."""
    needs.module("ray", "ray")
    options = ["--model", "scripted/oracle", "--limit", "20", "--allow-code-execution", "--engine", "ray"]
    done = proctor("run", programs, *options, "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert "20 scored" in done.stdout


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")  # Ray drops them; they are killed
def test_cluster_that_fails_to_start_leaves_nothing_behind(programs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs.module("ray", "ray")
    from ray._private import services

    def fail(*_: Any) -> None:
        raise Exception("The current node timed out during startup.")  # as Ray does while its processes run already

    monkeypatch.setattr(services, "get_node", fail)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        with pytest.raises(ProctorError, match=r"^Ray did not start on this machine: .* timed out"):
            evaluate(programs, "scripted/oracle", engine="ray", allow_code_execution=True, workers=1)
        assert os.listdir(folder) == []
        assert wait_until_gone(folder) == []
    gc.collect()  # collects dropped processes, which warn here


@pytest.mark.slow
def test_ctrl_c_stops_a_started_cluster(contained: str, programs: str, serve: Serve) -> None:
    needs.module("ray", "ray")
    busy = threading.Event()

    async def reply(body: dict[str, Any], number: int) -> str:
        if number >= 40:  # some samples have been scored
            busy.set()
            await server.gate.wait()
        return "```python\ndef f(x):\n    return x + 1\n```"

    server = serve(reply)
    mark = f"proctor-test-{os.getpid()}-{time.monotonic_ns()}"
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        command = [sys.executable, "-m", "proctor", "run", programs, "--model", "openai/m", "--base-url", server.url,
                   "--limit", "200", "--allow-code-execution", "--engine", "ray", "--workers", "1"]  # fmt: skip
        process = subprocess.Popen(
            command, env=os.environ | {"TMPDIR": folder, "MARK": mark}, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        try:
            assert busy.wait(START_SECONDS)
            os.killpg(process.pid, signal.SIGINT)  # like a terminal: the whole process group gets it
            said, _ = process.communicate(timeout=START_SECONDS)
        finally:
            process.kill()
        assert process.returncode == 1, said
        assert "Traceback" not in said
        assert os.listdir(folder) == []
    store = open_store()
    assert [run.status for run in store.runs()] == ["interrupted"]
    assert wait_until_gone(mark) == []


@pytest.mark.parametrize(
    ("raylet", "seconds", "has_left", "error"),
    [
        ("", START_SECONDS, False, ChildProcessError),
        ("input()", START_SECONDS, True, InterruptedError),
        ("input()", 0.0, False, TimeoutError),
    ],
)
def test_start_fails_if_the_node_does_not_register(
    monkeypatch: pytest.MonkeyPatch, raylet: str, seconds: float, has_left: bool, error: type[Exception]
) -> None:
    def get_node(address: str, node: str) -> None:
        raise RuntimeError(f"no node {node} at {address}")

    with subprocess.Popen([sys.executable, "-c", raylet], stdin=subprocess.PIPE) as process:
        services = SimpleNamespace(get_node=get_node, start_raylet=lambda: SimpleNamespace(process=process))
        monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(_private=SimpleNamespace(services=services)))
        leaving = threading.Event()
        if has_left:
            leaving.set()
        with cluster_module.longer_start(time.monotonic() + seconds, leaving):
            services.start_raylet()
            with pytest.raises(error):
                services.get_node("address", "node")
        assert services.get_node is get_node
        process.kill()


def test_killing_children_reads_processes_of_any_name(tmp_path: Path) -> None:
    named = "open('/proc/self/comm', 'wb').write(b'\\xff\\xfe'); print('named', flush=True); input()"
    command = [sys.executable, "-c", named, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"named\n"
        cluster_module._kill_children(str(tmp_path))
        assert not Path(f"/proc/{process.pid}").exists()


def test_cluster_that_cannot_be_stopped_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run must not wait for such a cluster forever."""

    def fail(folder: str) -> None:
        raise ValueError(folder)

    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr(cluster_module, "_kill_children", fail)
    cluster = cluster_module.Cluster(None, 1)
    cluster._folder = "nowhere"
    with pytest.raises(ValueError, match="nowhere"):
        cluster._run()
    assert isinstance(cluster.joining.exception(), UsageError)
    assert cluster.left.done()


def test_missing_ray_names_the_extra(adding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'proctor-eval\[ray\]'"):
        evaluate(adding, "scripted/oracle", engine="ray")


@pytest.mark.parametrize("option", [{"ray_address": "auto"}, {"model_cpus": 2}])
def test_cluster_options_need_engine_ray(adding: str, option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="add --engine ray"):
        evaluate(adding, "scripted/oracle", **option)


@pytest.mark.slow
def test_wrong_ray_address_is_named(adding: str) -> None:
    needs.module("ray", "ray")
    with pytest.raises(UsageError, match=r"^ray_address: no cluster answers at 'nowhere': "):
        evaluate(adding, "scripted/oracle", engine="ray", ray_address="nowhere")
