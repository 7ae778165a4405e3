"""`--engine ray` on a real cluster of several nodes on this machine, one of which is killed in the middle."""

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
from helpers.cluster_labours import Doubling, Unfit
from helpers.leaks import Snapshot
from helpers.paths import TESTS
from proctor import Record, evaluate
from proctor.core.errors import ProctorError, UsageError
from proctor.core.types import Timing
from proctor.distributed import cluster as membership
from proctor.distributed import pool
from proctor.distributed.actor import Node
from proctor.distributed.cluster import joined
from proctor.distributed.pool import MOST_LOSSES, ActorPool, LostError
from proctor.sandbox import cluster as sandbox_cluster
from proctor.store import open_store

START_ATTEMPTS = 6
QUIET = {"include_dashboard": False, "no_monitor": True}
START_SECONDS = 300.0  # for a node, on a machine with many other things to do

# Programs of every kind that end in their own way. What holds back signals above the worker must not reach them.
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
    """Without log files and sockets: Ray's core keeps them open in a process that has joined a cluster."""

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


class Machines:
    """Nodes of one CPU each, as processes of this machine. The first of them is the head of the cluster."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        logging.getLogger("ray").setLevel(logging.ERROR)
        self._cluster = Cluster(shutdown_at_exit=False)

    @property
    def address(self) -> str:
        address: str = self._cluster.address
        return address

    def add(self) -> Any:
        """Ray's raylet ends itself where its agents need 15 seconds to start: on a busy machine it is tried again."""
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                with membership.longer_start(time.monotonic() + START_SECONDS, threading.Event()):
                    node = self._cluster.add_node(wait=False, num_cpus=1, include_log_monitor=False, **QUIET)
                break
            except Exception:
                if self._cluster.head_node is None:
                    membership._end_children(os.environ["RAY_TMPDIR"])
                if attempt == START_ATTEMPTS:
                    raise
        self._cluster._wait_for_node(node, START_SECONDS)
        return node

    def kill(self, node: Any) -> None:
        """As if the machine had lost its power: its workers end before they can say anything."""
        raylet = node.all_processes["raylet"][0].process.pid
        for worker in children_of(raylet):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    """Two nodes. Their processes and files are gone afterwards, also where a node did not start."""
    needs.module("ray", "ray")
    with (
        tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder,  # sockets need short paths
        pytest.MonkeyPatch.context() as environment,
    ):
        os.mkdir(f"{folder}/ray")  # ray.cluster_utils writes a file there before it creates the folder
        environment.setenv("RAY_TMPDIR", folder)
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        environment.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)  # the nodes need it
        machines = Machines()
        try:
            machines.add()
            machines.add()
            yield machines
        finally:
            machines.close()
            left = wait_until_gone(folder)
            for process in left:
                os.kill(int(process.split()[0]), signal.SIGKILL)
            assert left == []


def children_of(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if path.read_text(errors="replace").rpartition(")")[2].split()[1] == str(parent):
                found.append(int(path.parent.name))
    return found


def processes_with(mark: str) -> list[str]:
    """Those that have it in their environment or on their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            texts = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
            if int(folder.name) != os.getpid() and mark.encode() in texts:
                found.append(f"{folder.name} {(folder / 'comm').read_text().strip()}")
    return found


def wait_until_gone(mark: str) -> list[str]:
    """The processes that are still there after a long time."""
    deadline = time.monotonic() + 60
    while (found := processes_with(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def comparable(records: list[Record]) -> list[Record]:
    """Without what the clock says, in the order of the samples."""
    return [
        msgspec.structs.replace(
            record,
            timing=Timing(),
            outputs=tuple(msgspec.structs.replace(output, seconds=0.0) for output in record.outputs),
        )
        for record in sorted(records, key=lambda record: record.sample.index)
    ]


@pytest.mark.slow
def test_a_node_is_killed_and_nothing_is_lost_or_doubled(
    contained: str,
    machines: Machines,
    programs: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = evaluate(programs, "scripted/oracle", limit=240, allow_code_execution=True)
    victim = machines.add()
    given: list[int] = []
    give = pool._Hand.give

    def give_and_kill(hand: Any, jobs: Any) -> None:
        """The second time that the node is given work: it has done some, and has some."""
        give(hand, jobs)
        if hand.node.name.endswith(f"/{victim.node_id[:8]}"):
            given.append(len(hand.jobs))
            if len(given) == 2:
                machines.kill(victim)

    monkeypatch.setattr(pool._Hand, "give", give_and_kill)
    monkeypatch.setattr(pool, "SETTLE_SECONDS", START_SECONDS)  # the work begins when all three are there
    monkeypatch.setattr(sandbox_cluster, "MAX_CONCURRENCY", 4)  # and nobody takes all of it at once
    there = evaluate(
        programs, "scripted/oracle", limit=240, allow_code_execution=True, engine="ray",
        ray_address=machines.address, workers=3,
    )  # fmt: skip
    assert len(given) == 2
    records = list(there.records())
    assert len(records) == 240
    assert comparable(records) == comparable(list(here.records()))
    assert there.run.outcomes == here.run.outcomes
    assert there.run.errors == 0
    assert there.run.metrics == here.run.metrics
    assert there.run.provenance["sandbox"] == contained
    assert len(there.run.provenance["cluster"]["nodes"]) == 3
    assert re.search(rf"a worker on node \S+/{victim.node_id[:8]} was lost; what it had \({given[1]}\)", caplog.text)


def do_all(machines: Machines, labour: Any, items: list[Any], workers: int = 2) -> list[Any]:
    async def run() -> list[Any]:
        seen: list[tuple[Node, int]] = []
        async with joined(machines.address, 0):
            pool = ActorPool[Any, Any](
                labour, workers, cpus=1, most=8, paced=False, welcome=lambda node, opened: seen.append((node, opened))
            )
            await pool.open()
            try:
                return await asyncio.gather(*map(pool.do, items), return_exceptions=True)
            finally:
                await pool.close()

    return asyncio.run(run())


@pytest.mark.slow
def test_work_that_ends_its_workers_is_given_up_and_its_neighbours_are_done(machines: Machines) -> None:
    *others, deadly, failing = do_all(machines, Doubling, [*range(20), "end", "fail"])
    assert others == [2 * number for number in range(20)]
    assert isinstance(deadly, LostError)
    assert f"{MOST_LOSSES} workers were lost" in str(deadly)
    assert isinstance(failing, UsageError)  # arrives with its text, although it cannot be sent as it is
    assert "proctor[extra]" in str(failing)


@pytest.mark.slow
def test_a_node_that_is_not_fit_is_named(machines: Machines) -> None:
    with pytest.raises(UsageError, match=r"^Node \S+/\w{8}: this cannot be done here\.$"):
        do_all(machines, Unfit, [1])


@pytest.mark.slow
def test_a_node_without_the_sandbox_that_is_asked_for_is_named(machines: Machines, programs: str) -> None:
    missing = next((engine for engine in ("docker", "podman") if shutil.which(engine) is None), None)
    if missing is None:
        pytest.skip("docker and podman are both here")
    with pytest.raises(UsageError, match=rf"^Node \S+/\w{{8}}: {missing} is not on the PATH"):
        evaluate(
            programs, "scripted/oracle", allow_code_execution=True, sandbox=missing, engine="ray",
            ray_address=machines.address,
        )  # fmt: skip


@pytest.mark.slow
def test_copies_of_a_local_model_answer_as_one(
    machines: Machines, adding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs.module("torch", "hf")
    needs.module("transformers", "hf")
    monkeypatch.setattr("tqdm.tqdm.monitor_interval", 0)  # no thread that watches progress bars
    from helpers.tiny_models import make_model, make_tokenizer

    make_model("Llama").save_pretrained(tmp_path / "tiny")
    make_tokenizer().save_pretrained(tmp_path / "tiny")
    options: dict[str, Any] = {"limit": 8, "max_tokens": 12, "samples": 2, "temperature": 0.8}
    here = evaluate(adding, "hf/tiny", **options)  # a path of the working directory, here and there
    there = evaluate(adding, "hf/tiny", **options, engine="ray", ray_address=machines.address, model_cpus=1)
    assert comparable(list(there.records())) == comparable(list(here.records()))
    assert there.run.provenance["candidate"] == here.run.provenance["candidate"]
    assert there.run.config["api"] == here.run.config["api"] == "chat"


@pytest.mark.slow
def test_a_cluster_of_our_own_lives_as_long_as_the_run(contained: str, programs: str, proctor: Command) -> None:
    """Linux ends the processes that Ray starts with the thread that joined."""
    needs.module("ray", "ray")
    options = ["--model", "scripted/oracle", "--limit", "20", "--allow-code-execution", "--engine", "ray"]
    done = proctor("run", programs, *options, "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert "20 scored" in done.stdout


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")  # Ray drops them; they are killed
def test_a_cluster_that_does_not_start_leaves_nothing(programs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs.module("ray", "ray")
    from ray._private import services

    def fail(*_: Any) -> None:
        raise Exception("The current node timed out during startup.")  # as Ray does, when its processes run already

    monkeypatch.setattr(services, "get_node", fail)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        with pytest.raises(ProctorError, match=r"^Ray did not start on this machine: .* timed out"):
            evaluate(programs, "scripted/oracle", engine="ray", allow_code_execution=True, workers=1)
        assert os.listdir(folder) == []
        assert wait_until_gone(folder) == []
    gc.collect()  # what Ray dropped warns here


@pytest.mark.slow
def test_ctrl_c_ends_a_cluster_of_our_own(contained: str, programs: str, serve: Serve) -> None:
    needs.module("ray", "ray")
    busy = threading.Event()

    async def reply(body: dict[str, Any], number: int) -> str:
        if number >= 40:  # by then some have been judged
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
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everybody in it is told
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
    ("raylet", "seconds", "is_left", "error"),
    [
        ("", START_SECONDS, False, ChildProcessError),
        ("input()", START_SECONDS, True, InterruptedError),
        ("input()", 0.0, False, TimeoutError),
    ],
)
def test_a_node_that_will_not_register_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, raylet: str, seconds: float, is_left: bool, error: type[Exception]
) -> None:
    def get_node(address: str, node: str) -> None:
        raise RuntimeError(f"no node {node} at {address}")

    with subprocess.Popen([sys.executable, "-c", raylet], stdin=subprocess.PIPE) as process:
        services = SimpleNamespace(get_node=get_node, start_raylet=lambda: SimpleNamespace(process=process))
        monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(_private=SimpleNamespace(services=services)))
        leaving = threading.Event()
        if is_left:
            leaving.set()
        with membership.longer_start(time.monotonic() + seconds, leaving):
            services.start_raylet()
            with pytest.raises(error):
                services.get_node("address", "node")
        assert services.get_node is get_node
        process.kill()


def test_ending_a_cluster_reads_processes_of_any_name(tmp_path: Path) -> None:
    named = "open('/proc/self/comm', 'wb').write(b'\\xff\\xfe'); print('named', flush=True); input()"
    command = [sys.executable, "-c", named, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"named\n"
        membership._end_children(str(tmp_path))
        assert not Path(f"/proc/{process.pid}").exists()


def test_a_cluster_that_cannot_be_ended_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the run would wait for it without end."""

    def fail(folder: str) -> None:
        raise ValueError(folder)

    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr(membership, "_end_children", fail)
    cluster = membership.Cluster(None, 1)
    cluster._folder = "nowhere"
    with pytest.raises(ValueError, match="nowhere"):
        cluster._live()
    assert isinstance(cluster.joining.exception(), UsageError)
    assert cluster.left.done()


def test_without_ray_it_is_said_what_to_install(adding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'proctor\[ray\]'"):
        evaluate(adding, "scripted/oracle", engine="ray")


@pytest.mark.parametrize("option", [{"ray_address": "auto"}, {"model_cpus": 2}])
def test_options_of_a_cluster_need_one(adding: str, option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="say --engine ray"):
        evaluate(adding, "scripted/oracle", **option)


@pytest.mark.slow
def test_an_address_that_is_none_is_named(adding: str) -> None:
    needs.module("ray", "ray")
    with pytest.raises(UsageError, match=r"^ray_address: no cluster answers at 'nowhere': "):
        evaluate(adding, "scripted/oracle", engine="ray", ray_address="nowhere")
