"""`--engine ray` on a real cluster of several nodes on this machine, one of which is killed in the middle."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cluster_labours import Doubling, Unfit
from conftest import Handler, ModelServer
from long_tests import only_long
from proctor import Record, evaluate
from proctor.cluster.crew import MOST_LOSSES, Crew, LostError
from proctor.cluster.membership import joined
from proctor.cluster.post import Node
from proctor.errors import UsageError
from proctor.run import Observer
from proctor.store import open_store
from proctor.types import Timing

pytestmark = only_long
needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")

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


@pytest.fixture
def programs(tmp_path: Path) -> str:
    path = tmp_path / "programs.py"
    path.write_text(TASK)
    return f"{path}:Programs"


class Machines:
    """Nodes of one CPU each, as processes of this machine. The first of them has the cluster's books."""

    def __init__(self, nodes: int) -> None:
        from ray.cluster_utils import Cluster

        logging.getLogger("ray").setLevel(logging.ERROR)
        self._folder = tempfile.mkdtemp(dir="/tmp")  # sockets lie in it, whose paths must be short
        head = {"temp_dir": self._folder, "include_dashboard": False, "num_cpus": 1}
        self._cluster = Cluster(initialize_head=True, head_node_args=head, shutdown_at_exit=False)
        for _ in range(nodes - 1):
            self.add()
        self.address: str = self._cluster.address

    def add(self) -> Any:
        return self._cluster.add_node(num_cpus=1)

    def kill(self, node: Any) -> None:
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        self._cluster.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        environment.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)  # the nodes need it
        machines = Machines(2)
        yield machines
        machines.close()


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


class KillsANode(Observer):
    """When a few records are there."""

    def __init__(self, kill: Callable[[], None], after: int) -> None:
        self._kill, self._left = kill, after

    def recorded(self, record: Record) -> None:
        self._left -= 1
        if self._left == 0:
            self._kill()


@needs_ray
def test_a_node_is_killed_and_nothing_is_lost_or_doubled(
    contained: str, machines: Machines, programs: str, caplog: pytest.LogCaptureFixture
) -> None:
    here = evaluate(programs, "scripted/oracle", limit=240, allow_code_execution=True)
    victim = machines.add()
    observer = KillsANode(lambda: machines.kill(victim), after=20)
    there = evaluate(
        programs, "scripted/oracle", limit=240, allow_code_execution=True, engine="ray",
        ray_address=machines.address, workers=3, observer=observer,
    )  # fmt: skip
    records = list(there.records())
    assert len(records) == 240
    assert comparable(records) == comparable(list(here.records()))
    assert there.run.outcomes == here.run.outcomes
    assert there.run.errors == 0
    assert there.run.metrics == here.run.metrics
    assert there.run.provenance["sandbox"] == contained
    assert len(there.run.provenance["cluster"]["nodes"]) == 3
    assert "was lost" in caplog.text


def do_all(machines: Machines, labour: Any, items: list[Any], workers: int = 2) -> list[Any]:
    async def run() -> list[Any]:
        seen: list[tuple[Node, int]] = []
        async with joined(machines.address, 0):
            crew = Crew[Any, Any](
                labour, workers, cpus=1, most=8, paced=False, welcome=lambda node, opened: seen.append((node, opened))
            )
            await crew.open()
            try:
                return await asyncio.gather(*map(crew.do, items), return_exceptions=True)
            finally:
                await crew.close()

    return asyncio.run(run())


@needs_ray
def test_work_that_ends_its_workers_is_given_up_and_its_neighbours_are_done(machines: Machines) -> None:
    *others, deadly, failing = do_all(machines, Doubling, [*range(20), "end", "fail"])
    assert others == [2 * number for number in range(20)]
    assert isinstance(deadly, LostError)
    assert f"{MOST_LOSSES} workers were lost" in str(deadly)
    assert isinstance(failing, UsageError)  # arrives with its text, although it cannot be sent as it is
    assert "proctor[extra]" in str(failing)


@needs_ray
def test_a_node_that_is_not_fit_is_named(machines: Machines) -> None:
    with pytest.raises(UsageError, match=r"^Node \S+/\w{8}: this cannot be done here\.$"):
        do_all(machines, Unfit, [1])


@needs_ray
def test_a_node_without_the_sandbox_that_is_asked_for_is_named(machines: Machines, programs: str) -> None:
    missing = next((engine for engine in ("docker", "podman") if shutil.which(engine) is None), None)
    if missing is None:
        pytest.skip("docker and podman are both here")
    with pytest.raises(UsageError, match=rf"^Node \S+/\w{{8}}: {missing} is not on the PATH"):
        evaluate(
            programs, "scripted/oracle", allow_code_execution=True, sandbox=missing, engine="ray",
            ray_address=machines.address,
        )  # fmt: skip


@needs_ray
def test_copies_of_a_local_model_answer_as_one(machines: Machines, adding: str, tmp_path: Path) -> None:
    if find_spec("torch") is None or find_spec("transformers") is None:
        pytest.skip("torch and transformers are not installed")
    from tiny_models import make_model, make_tokenizer

    make_model("Llama").save_pretrained(tmp_path / "tiny")
    make_tokenizer().save_pretrained(tmp_path / "tiny")
    options: dict[str, Any] = {"limit": 8, "max_tokens": 12, "samples": 2, "temperature": 0.8}
    here = evaluate(adding, "hf/tiny", **options)  # a path of the working directory, here and there
    there = evaluate(adding, "hf/tiny", **options, engine="ray", ray_address=machines.address, model_cpus=1)
    assert comparable(list(there.records())) == comparable(list(here.records()))
    assert there.run.provenance["candidate"] == here.run.provenance["candidate"]
    assert there.run.config["api"] == here.run.config["api"] == "chat"


def processes_with(mark: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "comm").read_text().strip())
        except OSError:
            continue
    return found


@needs_ray
def test_a_cluster_of_our_own_lives_as_long_as_the_run(
    contained: str, programs: str, proctor: Callable[..., Any]
) -> None:
    """Linux ends the processes that Ray starts with the thread that joined."""
    options = ["--model", "scripted/oracle", "--limit", "20", "--allow-code-execution", "--engine", "ray"]
    done = proctor("run", programs, *options, "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert "20 scored" in done.stdout


@needs_ray
def test_ctrl_c_ends_a_cluster_of_our_own(
    contained: str, programs: str, serve: Callable[[Handler], ModelServer]
) -> None:
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
            assert busy.wait(120)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everybody in it is told
            said, _ = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == 1, said
        assert "Traceback" not in said
        assert os.listdir(folder) == []
    store = open_store()
    assert [run.status for run in store.runs()] == ["interrupted"]
    assert processes_with(mark) == []


def test_without_ray_it_is_said_what_to_install(adding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'proctor\[ray\]'"):
        evaluate(adding, "scripted/oracle", engine="ray")


@pytest.mark.parametrize("option", [{"ray_address": "auto"}, {"model_cpus": 2}])
def test_options_of_a_cluster_need_one(adding: str, option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="say --engine ray"):
        evaluate(adding, "scripted/oracle", **option)


@needs_ray
def test_an_address_that_is_none_is_named(adding: str) -> None:
    with pytest.raises(UsageError, match=r"^ray_address: no cluster answers at 'nowhere': "):
        evaluate(adding, "scripted/oracle", engine="ray", ray_address="nowhere")
