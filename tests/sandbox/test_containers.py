"""Programs in containers. Where no engine answers, all but the engine itself is tested with a stand-in for it."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from test_neighbours import PAIRS, TAMPER

import proctor
from helpers.hostile_programs import ATTACKS, HONEST, LIMITS, MARK, PLACES
from helpers.paths import TESTS
from helpers.sandbox_session import start_runner
from helpers.stand_in_engine import take_apart
from proctor.core.errors import SandboxUnavailableError, UnknownNameError, UsageError
from proctor.sandbox import Limits, Mode, Outcome, Program, Verdict, engine, open_sandbox, run
from proctor.sandbox.containers import COMMAND, IMAGE, ContainerPool
from proctor.sandbox.engine import ENGINES, ContainerEngine
from proctor.sandbox.inside import process_tree

T = TypeVar("T")
CASES = [*HONEST, *ATTACKS]


class StandIn:
    """Answers to the name docker."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        script = self.bin / "docker"
        # What it runs cannot write beside the checkout, so it is not counted by `make coverage`.
        command = f'PYTHONPATH="{TESTS}" exec "{sys.executable}" -m helpers.stand_in_engine "{folder}" "$@"'
        script.write_text(f"#!/bin/sh\nunset COVERAGE_PROCESS_CONFIG COVERAGE_PROCESS_START\n{command}\n")
        script.chmod(0o755)
        (folder / "images").write_text(f"{IMAGE}\n")

    def put_on_path(self, patch: pytest.MonkeyPatch) -> None:
        patch.setenv("PATH", f"{self.bin}:{os.environ['PATH']}")
        patch.setenv("PYTHONPATH", str(Path(proctor.__file__).parents[1]))


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand_in = StandIn(tmp_path)
    stand_in.put_on_path(monkeypatch)
    return stand_in


class ContainerSession:
    """One open sandbox for many tests, with its event loop."""

    def __init__(self, name: str) -> None:
        self.engine = name
        self._runner = start_runner()
        sandbox = self.wait(open_sandbox(engine=name, workers=2))
        assert isinstance(sandbox, ContainerPool)
        self.sandbox = sandbox
        self.wait(self.sandbox.open())

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)

    def judge(self, source: str, tests: str = "", limits: Limits = LIMITS, **more: Any) -> Verdict:
        return self.wait(self.sandbox.judge(Program(source=source, tests=tests, **more), limits))

    def close(self) -> None:
        self.wait(self.sandbox.close())
        self._runner.close()


PACKAGES = {"docker": "docker.io", "podman": "podman"}


def obstacle(name: str) -> str:
    """Why this engine cannot be tried here, '' if it can. Nothing is downloaded for a test."""
    if not shutil.which(name):
        return f"there is no {name}: apt-get install {PACKAGES[name]}, then {name} pull {IMAGE}"
    for words in (["info"], ["image", "inspect", IMAGE]):
        try:
            done = subprocess.run([name, *words], capture_output=True, text=True, timeout=60, check=False)
        except subprocess.TimeoutExpired:
            return f"{name} {' '.join(words)}: no answer within a minute"
        if done.returncode:
            return f"{name} {' '.join(words)}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}"
    return ""


OBSTACLES = {name: obstacle(name) for name in ENGINES}
ROOMS = ["stand-in", *(pytest.param(name, marks=pytest.mark.slow) for name, why in OBSTACLES.items() if not why)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_installed_engine_runs_a_program(name: str) -> None:
    """Skipped with the reason where it cannot: all tests with a session are then without this engine."""
    if OBSTACLES[name]:
        pytest.skip(OBSTACLES[name])
    (verdict,) = asyncio.run(run([Program(source="print(1)")], engine=name, workers=1))
    assert verdict.passed, verdict


@contextmanager
def open_session(name: str, folder: Path) -> Iterator[ContainerSession]:
    with pytest.MonkeyPatch.context() as patch:
        if name == "stand-in":
            if os.getuid() != 0:
                pytest.skip("the stand-in for an engine needs root, to give each program a user of its own")
            StandIn(folder).put_on_path(patch)
        session = ContainerSession("docker" if name == "stand-in" else name)
        yield session
        session.close()


@pytest.fixture(scope="module", params=ROOMS)
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerSession]:
    with open_session(request.param, tmp_path_factory.mktemp("stand-in")) as session:
        yield session


@pytest.fixture(params=ROOMS)
def own_session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContainerSession]:
    """For a test that has workers replaced."""
    with open_session(request.param, tmp_path) as session:
        yield session


# What an engine is told


def options_for(name: str, *folders: str) -> dict[str, list[str]]:
    words = ContainerEngine(name, f"/usr/bin/{name}").run_command(IMAGE, "proctor-1", folders, COMMAND)
    assert words[:2] == [f"/usr/bin/{name}", "run"]
    options, image, arguments = take_apart(words[2:])
    assert image == IMAGE
    assert [*options["--entrypoint"], *arguments] == COMMAND
    return dict(options)


@pytest.mark.parametrize(("name", "more"), [("docker", ""), ("podman", ",notmpcopyup")])
def test_engine_command_line(name: str, more: str) -> None:
    """Every option that there is: nothing of this machine is shown, and whatever is added to it is seen here."""
    assert options_for(name) == {
        "--rm": [""],
        "--interactive": [""],
        "--name": ["proctor-1"],
        "--pull": ["never"],
        "--log-driver": ["none"],
        "--no-healthcheck": [""],
        "--network": ["none"],
        "--ipc": ["none"],
        "--read-only": [""],
        "--tmpfs": [
            f"/tmp:rw,exec,nosuid,nodev,size=536870912,mode=1777{more}",
            f"/var/tmp:ro,noexec,nosuid,nodev,size=4096,mode=755{more}",
        ],
        "--memory": ["5632m"],
        "--memory-swap": ["5632m"],
        "--pids-limit": ["1024"],
        "--user": ["0:0"],
        "--cap-drop": ["ALL"],
        "--cap-add": ["SETUID", "SETGID", "SYS_NICE", "SYS_PTRACE", "KILL", "DAC_OVERRIDE", "FOWNER"],
        "--security-opt": ["no-new-privileges"],
        "--workdir": ["/tmp"],
        "--env": ["HOME=/tmp", "TMPDIR=/tmp", "LANG=C.UTF-8"],
        "--entrypoint": ["python3"],
    }


def test_prepared_folders_are_copied_into_the_container() -> None:
    tmpfs = options_for("docker", "/var/proctor/prepared")["--tmpfs"]
    assert tmpfs[2:] == ["/var/proctor/prepared:rw,noexec,nosuid,nodev,mode=755"]


# Engines that cannot be had


def refusal(name: str, image: str = IMAGE) -> str:
    async def open_and_close() -> None:
        async with await open_sandbox(engine=name, image=image, workers=1):
            pass

    with pytest.raises(SandboxUnavailableError) as refused:
        asyncio.run(open_and_close())
    return str(refused.value)


def test_an_unknown_engine() -> None:
    with pytest.raises(UnknownNameError, match="did you mean docker"):
        asyncio.run(open_sandbox(engine="dockr"))


def test_an_engine_that_is_not_installed(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(stand_in.bin))
    assert refusal("podman") == "podman is not on the PATH: use docker, which is."
    monkeypatch.setenv("PATH", str(stand_in.folder))
    assert refusal("podman") == "podman is not on the PATH: install it."


def test_an_engine_that_does_not_answer(stand_in: StandIn) -> None:
    (stand_in.folder / "down").touch()
    assert refusal("docker") == "docker does not answer: Cannot connect to the stand-in."


def test_an_engine_that_never_answers(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    (stand_in.bin / "docker").write_text("#!/bin/sh\nexec sleep 600\n")
    monkeypatch.setattr(engine, "_ANSWER_TIMEOUT", 0.1)
    assert refusal("docker") == "docker does not answer: no answer within 0.1 seconds"


def test_an_image_that_cannot_be_pulled(stand_in: StandIn) -> None:
    assert refusal("docker", "tools:1") == ("docker has no image tools:1 and cannot pull it: tools:1 cannot be pulled.")


def test_a_container_that_does_not_start(stand_in: StandIn) -> None:
    told = "docker: no space left.\\nSee 'docker run --help'."
    script = f'#!/bin/sh\n[ $1 != run ] || {{ printf "{told}\\n" >&2; exit 125; }}\n'
    (stand_in.bin / "docker").write_text(script)
    assert refusal("docker") == f"docker cannot run programs in the image {IMAGE}: docker: no space left."


@pytest.mark.skipif(os.getuid() != 0, reason="the stand-in for an engine needs root")
@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        ("strict", "programs cannot run as separate users"),
        ("littered", "/tmp must be empty when a container starts, but has litter"),
    ],
)
def test_container_that_cannot_isolate_is_refused(stand_in: StandIn, trouble: str, told: str) -> None:
    (stand_in.folder / trouble).touch()
    assert told in refusal("docker")


# Programs


def test_level_describes_the_isolation(session: ContainerSession) -> None:
    assert session.sandbox.level.startswith(f"container: {session.engine}, {IMAGE}, own user, seccomp, ")
    assert session.sandbox.level.endswith(", limits")
    assert session.judge("print(1)").level == session.sandbox.level


@pytest.mark.slow
def test_attacks_fail_in_a_container(session: ContainerSession) -> None:
    async def judge_all() -> list[Verdict]:
        return await asyncio.gather(*(case.judge(session.sandbox) for case in CASES))

    verdicts = session.wait(judge_all())
    assert [
        f"{case.name}: {verdict.outcome} ({verdict.testing}) {verdict.detail}"
        for case, verdict in zip(CASES, verdicts, strict=True)
        if verdict.outcome not in case.right
    ] == []
    assert [place for place in PLACES if os.path.exists(f"{place}/{MARK}")] == []


def test_output_is_returned(session: ContainerSession) -> None:
    verdict = session.judge("import sys\nprint(input() + 'é')\nprint('oops', file=sys.stderr)", stdin="hello\n")
    assert (verdict.outcome, verdict.stdout, verdict.stderr) == (Outcome.PASSED, "helloé\n", "oops\n")
    verdict = session.judge("print('x' * 200_000)")
    assert verdict.stdout == "x" * 200_000 + "\n"


def test_tests_beyond_plain_data_run_in_process(session: ContainerSession) -> None:
    verdict = session.judge("def f(g): return g(1)", "assert f(lambda x: x + 1) == 2")
    assert (verdict.outcome, verdict.testing) == (Outcome.PASSED, Mode.IN_PROCESS)


def test_large_programs_and_answers(session: ContainerSession) -> None:
    verdict = session.judge("def f(x): return x[::-1]", f"xs = {list(range(300_000))}\nassert f(xs) == xs[::-1]")
    assert verdict.passed, verdict.detail


def test_a_program_has_no_rights(session: ContainerSession) -> None:
    source = """
        import os
        status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines())
        assert os.getuid() >= 20000 and os.getgid() >= 20000, (os.getuid(), os.getgid())
        assert os.getgroups() == [], os.getgroups()
        assert all(int(status[f"Cap{kind}"], 16) == 0 for kind in ("Inh", "Prm", "Eff", "Amb")), status
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), status
    """
    verdict = session.judge("\n".join(line.removeprefix(" " * 8) for line in source.splitlines()))
    assert verdict.passed, verdict.detail


def test_long_program_may_use_all_cpus(session: ContainerSession) -> None:
    all_of_them = len(os.sched_getaffinity(0))
    assert session.judge(f"import os\nwhile len(os.sched_getaffinity(0)) < {all_of_them}: pass").passed


def test_a_program_sees_no_secret(session: ContainerSession) -> None:
    verdict = session.judge("import os\nassert 'proxy' not in str(os.environ).lower()\nprint(os.environ['HOME'])")
    assert (verdict.outcome, verdict.stdout) == (Outcome.PASSED, "/tmp\n"), verdict.detail
    assert not session.judge("print(open('/proc/1/environ').read())").passed


def test_programs_do_not_see_each_other(session: ContainerSession) -> None:
    leave = (
        "import os, pathlib\npathlib.Path('note').write_text('x')\npathlib.Path('/dev/shm/note').write_text('x')\n"
        "os.makedirs('deep/er')\nos.mkdir('sticky')\nopen('sticky/note', 'w')\nos.chmod('sticky', 0o1777)\n"
        "os.chmod('deep', 0)"
    )
    look = "import os\nassert (os.listdir('.'), os.listdir('/dev/shm')) == (['solution.py'], ['program'])"
    for _ in range(4):
        verdict = session.judge(leave)
        assert verdict.passed, verdict.detail
        verdict = session.judge(look)
        assert verdict.passed, verdict.detail


@pytest.mark.parametrize("name", PAIRS)
def test_programs_cannot_escape_the_container(session: ContainerSession, name: str) -> None:
    leave, look = PAIRS[name]
    session.judge(leave)
    verdict = session.judge(look)
    assert verdict.passed, verdict.detail


def test_other_processes_are_unreachable(session: ContainerSession) -> None:
    assert session.judge(TAMPER).passed


@pytest.mark.parametrize("limits", [Limits(memory_mib=8192), Limits(processes=2000)])
def test_limits_above_the_container_raise_usage_error(session: ContainerSession, limits: Limits) -> None:
    with pytest.raises(UsageError, match="4096 MiB of memory and 1000 processes at most"):
        session.judge("print(1)", limits=limits)


# Other languages


def test_language_missing_from_the_image(session: ContainerSession, monkeypatch: pytest.MonkeyPatch) -> None:
    assert session.sandbox._features is not None
    monkeypatch.setattr(session.sandbox, "_features", msgspec.structs.replace(session.sandbox._features, tools={}))
    verdict = session.judge("main", language="lua")
    assert verdict.outcome is Outcome.ERROR
    assert f"which the image {IMAGE} does not have" in verdict.detail


def test_a_script_of_another_language(session: ContainerSession) -> None:
    verdict = session.judge("read name; echo hello $name; exit 3", language="bash", stdin="you\n")
    assert (verdict.outcome, verdict.stdout) == (Outcome.FAILED, "hello you\n"), verdict.detail


COMPILED = {
    "c": '#include <stdio.h>\nint main() { printf("%d", 2); return 0; }\n',
    "cpp": "#include <bits/stdc++.h>\nint main() { std::vector<int> v{1, 2}; std::cout << v.size(); }\n",
}


@pytest.mark.parametrize("language", ["c", pytest.param("cpp", marks=pytest.mark.slow)])  # which prepares a header
def test_a_compiled_language(own_session: ContainerSession, language: str) -> None:
    limits = Limits()
    verdict = own_session.judge(COMPILED[language], language=language, limits=limits)
    if "which the image" in verdict.detail:
        pytest.skip(verdict.detail)
    assert (verdict.outcome, verdict.stdout) == (Outcome.PASSED, "2"), verdict.detail
    assert (
        own_session.judge(COMPILED[language].replace(";", ""), language=language, limits=limits).outcome
        is Outcome.FAILED
    )
    assert own_session.judge("def f(): return 1", "assert f() == 1").passed


# When something goes wrong


def test_cancelled_program_keeps_the_worker_count(own_session: ContainerSession) -> None:
    async def give_up() -> None:
        endless = Program(source="while True: pass")
        tasks = [asyncio.create_task(own_session.sandbox.judge(endless, Limits(seconds=60))) for _ in range(2)]
        while own_session.sandbox._idle.qsize():  # noqa: ASYNC110
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    own_session.wait(give_up())
    assert own_session.sandbox._idle.qsize() == 2
    assert own_session.judge("def f(): return 1", "assert f() == 1").passed


def test_dead_container_is_replaced_and_program_retried(own_session: ContainerSession) -> None:
    async def kill_one() -> Verdict:
        program = Program(source="import time\ndef f():\n    time.sleep(0.5)\n    return 1", tests="assert f() == 1")
        idle = [own_session.sandbox._idle.get_nowait() for _ in range(2)]
        for worker in idle:
            own_session.sandbox._idle.put_nowait(worker)
        before = [worker._process for worker in idle if worker]
        task = asyncio.create_task(own_session.sandbox.judge(program, LIMITS))
        while own_session.sandbox._idle.qsize() == 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for process in before:
            process.kill()
        return await task

    assert own_session.wait(kill_one()).passed
    for _ in range(4):
        assert own_session.judge("def f(): return 1", "assert f() == 1").passed
    assert own_session.sandbox._idle.qsize() == 2


HARNESS = """
import asyncio, sys
from proctor.sandbox import Limits, Program, open_sandbox
async def main():
    async with await open_sandbox(engine=sys.argv[1], workers=2) as sandbox:
        for worker in sandbox._idle._queue:
            print(worker._process.args[worker._process.args.index("--name") + 1])
        print("ready", flush=True)
        program = Program(source="import os\\nos.fork()\\nwhile True: pass")
        await asyncio.gather(*(sandbox.judge(program, Limits(seconds=600)) for _ in range(2)))
asyncio.run(main())
"""


def test_a_killed_harness_leaves_nothing(session: ContainerSession) -> None:
    command = [sys.executable, "-c", HARNESS, session.engine]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        lines = iter(harness.stdout.readline, "ready\n")
        containers = [line.strip() for line in lines]
        clients = {process for process, fields in process_tree.descendants(set()) if int(fields[1]) == harness.pid}
        assert len(containers) == len(clients) == 2
        ends = [os.pidfd_open(process) for process in clients]
        harness.kill()
    for end in ends:
        assert has_ended(end), "an engine's command outlived its harness"
        os.close(end)
    listed = subprocess.run(
        [session.engine, "ps", "--all", "--format", "{{.Names}}"], capture_output=True, text=True, check=True
    )
    assert not set(containers) & set(listed.stdout.split())


def has_ended(process: int) -> bool:
    return bool(select.select([process], [], [], 60)[0])


# Systems other than Linux

ELSEWHERE = """
import asyncio, fcntl, os, subprocess, sys
import selectors, socket, tempfile  # what they make of the system is their own affair
sys.platform = "darwin"
for module, names in (
    (os, ("pidfd_open", "memfd_create", "sched_getaffinity", "MFD_CLOEXEC", "MFD_ALLOW_SEALING", "setresuid")),
    (fcntl, ("F_ADD_SEALS", "F_SEAL_GROW", "F_SEAL_SHRINK", "F_SEAL_SEAL")),
):
    for name in names:
        delattr(module, name)
os.process_cpu_count = os.cpu_count  # as Python 3.13 has it where there is no sched_getaffinity
from proctor.core.errors import SandboxUnavailableError
from proctor.sandbox import Program, open_sandbox, run
from proctor.sandbox.inside import kernel
kernel.system_call = None
try:
    asyncio.run(open_sandbox())
except SandboxUnavailableError as error:
    print(error)
for verdict in asyncio.run(run([Program(source="print(1)"), Program(source="1 / 0")], engine=sys.argv[1], workers=2)):
    print(verdict.outcome)
"""


def test_harness_runs_without_linux(session: ContainerSession) -> None:
    """As far as that can be seen on Linux: without what only Linux has."""
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, session.engine], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "The sandbox needs Linux. Elsewhere run programs in containers: --sandbox docker (or podman).",
        "passed",
        "failed",
    ]
