"""The sandbox: verdicts, limits, and what happens when its own parts fail."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from helpers.sandbox_session import LIMITS, Judge, SandboxSession
from helpers.toolchains import needs_language
from proctor.core.errors import UnknownNameError, UsageError
from proctor.sandbox import Limits, Mode, Outcome, Program, Verdict, run
from proctor.sandbox.inside import process_tree
from proctor.sandbox.judgement import Exchange, ProcessExit, verdict_of
from proctor.sandbox.languages import find_language
from proctor.sandbox.toolchain import SourceNames


@pytest.fixture
def own_session() -> Iterator[SandboxSession]:
    """For a test that has workers replaced."""
    session = SandboxSession()
    yield session
    session.close()


# Verdicts


def test_failure_shows_assertion_and_last_call(judge: Judge) -> None:
    verdict = judge("def double(x): return x + x + 1", "def check(f):\n    assert f(2) == 4, 'twice'\ncheck(double)")
    assert verdict.outcome is Outcome.FAILED
    assert "assert f(2) == 4, 'twice'" in verdict.detail
    assert "AssertionError: twice" in verdict.detail
    assert "double(2) returned 5" in verdict.detail


def test_exception_shows_its_frames(judge: Judge) -> None:
    verdict = judge("def f(x):\n    return g(x)\ndef g(x):\n    return 1 / x", "assert f(0) == 1")
    assert verdict.outcome is Outcome.FAILED
    assert "line 4, in g" in verdict.detail
    assert verdict.detail.rstrip().endswith("ZeroDivisionError: division by zero")


def test_syntax_error_is_a_failure(judge: Judge) -> None:
    verdict = judge("def f(:", "assert f(0) == 1")
    assert verdict.outcome is Outcome.FAILED
    assert "SyntaxError" in verdict.detail


def test_long_lines_are_truncated(judge: Judge) -> None:
    verdict = judge(f"x = '{'é' * 60_000}' $", "assert f(0) == 1")
    assert verdict.outcome is Outcome.FAILED
    assert "solution.py" in verdict.detail
    assert len(verdict.detail) < 1000


def test_unreadable_message_is_a_sandbox_error(own_session: SandboxSession, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = own_session.judge
    with monkeypatch.context() as patch:
        patch.setattr("proctor.sandbox.worker.LARGEST_MESSAGE", 40)  # less than any report
        verdict = judge("def f(): return 1", "assert f() == 1")
    assert verdict.outcome is Outcome.ERROR
    assert "invalid JSON" in verdict.detail
    assert judge("def f(): return 1", "assert f() == 1").passed


def test_tests_that_do_not_compile_are_a_sandbox_error(judge: Judge) -> None:
    assert judge("def f(): pass", "assert (").outcome is Outcome.ERROR


def test_a_missing_entry_point_fails(judge: Judge) -> None:
    verdict = judge("def g(): pass", "assert f() == 1", entry_point="f")
    assert verdict.outcome is Outcome.FAILED
    assert "NameError" in verdict.detail


def test_a_verdict_carries_its_level_and_figures(session: SandboxSession, judge: Judge) -> None:
    verdict = judge("def f():\n    return sum(range(10**6))", "assert f() == 499999500000")
    assert verdict.passed
    assert verdict.level == session.pool.level
    assert 0 < verdict.cpu_seconds < 60
    assert verdict.wall_seconds > 0
    assert 5 < verdict.memory_mib < 512


def test_verdict_has_output(judge: Judge) -> None:
    verdict = judge("import sys\ndef f():\n    print('héllo')\n    print('oops', file=sys.stderr)", "f()")
    assert (verdict.stdout, verdict.stderr) == ("héllo\n", "oops\n")


# Whole programs


def test_a_script_reads_and_writes(judge: Judge) -> None:
    verdict = judge("print(sum(map(int, input().split())))", stdin="1 2 3\n")
    assert (verdict.outcome, verdict.stdout, verdict.testing) == (Outcome.PASSED, "6\n", Mode.NONE)


@pytest.mark.parametrize(
    ("source", "outcome", "stdout"),
    [
        ("import sys; print(1); sys.exit(0)", Outcome.PASSED, "1\n"),
        ("import sys; sys.exit(3)", Outcome.FAILED, ""),
        ("print(1); exit(); print(2)", Outcome.PASSED, "1\n"),
        ("quit(1)", Outcome.FAILED, ""),
        ("import sys; sys.exit('bad')", Outcome.FAILED, ""),
        ("if __name__ == '__main__': print('main')", Outcome.PASSED, "main\n"),
        ("import atexit; atexit.register(print, 'bye')", Outcome.PASSED, "bye\n"),
        (
            "import atexit, io, sys\nsys.stdout = io.StringIO()\nprint('late')\n"
            "atexit.register(lambda: sys.__stdout__.write(sys.stdout.getvalue()))",
            Outcome.PASSED,
            "late\n",
        ),
        ("import threading; threading.Timer(0.01, print, ['later']).start()", Outcome.PASSED, "later\n"),
        ("1 / 0", Outcome.FAILED, ""),
        ("x = bytearray(10**9)", Outcome.MEMORY, ""),
        ("input()", Outcome.FAILED, ""),
        ("import os; os.kill(os.getpid(), 11)", Outcome.CRASHED, ""),
        ("", Outcome.PASSED, ""),
    ],
)
def test_scripts_end_as_under_python(judge: Judge, source: str, outcome: Outcome, stdout: str) -> None:
    verdict = judge(source)
    assert (verdict.outcome, verdict.stdout) == (outcome, stdout)


def test_a_failing_script_shows_its_traceback(judge: Judge) -> None:
    verdict = judge("def f():\n    return {}['x']\nf()")
    assert "line 2, in f" in verdict.stderr
    assert "KeyError: 'x'" in verdict.detail


def test_sandbox_has_the_usual_system_files(judge: Judge) -> None:
    verdict = judge(
        """
        import os, pwd, getpass
        assert pwd.getpwuid(0).pw_name == "root"
        assert open("/dev/stdin").read() == "in"
        open("/dev/stdout", "w").write("out")
        assert {"null", "zero", "full", "random", "urandom", "fd", "shm"} <= set(os.listdir("/dev"))
        assert open("/etc/hosts").read().startswith("127.0.0.1 localhost")
        """,
        stdin="in",
    )
    assert (verdict.outcome, verdict.stdout) == (Outcome.PASSED, "out"), verdict.detail


# The clock


def test_clock_starts_when_the_job_has_arrived(session: SandboxSession) -> None:
    """The harness may be busy with other things while it sends a large one."""
    source = "x = '" + "x" * 4_000_000 + "'\ndef f(): return 1\n"

    async def send_slowly() -> Verdict:
        task = asyncio.create_task(
            session.pool.judge(Program(source=source, tests="assert f() == 1"), Limits(seconds=0.5))
        )
        await asyncio.sleep(0)
        time.sleep(1.0)  # noqa: ASYNC251 (the event loop stands still, not the clock)
        return await task

    verdict = session.wait(send_slowly())
    assert verdict.passed, verdict


def test_sleep_counts_as_own_time(judge: Judge) -> None:
    limits = Limits(seconds=0.5)
    assert judge("import time\ndef f(): time.sleep(60)", "f()", limits).outcome is Outcome.TIMEOUT
    assert judge("import time\ndef f(): time.sleep(0.05)", "f()", limits).passed


def test_cpu_time_of_all_processes_counts(judge: Judge) -> None:
    source = "import os\nfor _ in range(3):\n    if os.fork() == 0:\n        while True: pass\nos.wait()"
    verdict = judge(source, limits=Limits(seconds=0.5))
    assert verdict.outcome is Outcome.TIMEOUT


class Waiting:
    """A meter of process 7, whose threads have waited as long as the test says, at the time that it says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._waited: dict[int, float] = {}
        self._now = 0.0
        monkeypatch.setattr(
            process_tree, "_waiting_seconds", lambda process, threads: dict(self._waited) if process == 7 else {}
        )
        monkeypatch.setattr(process_tree, "_all_processes", lambda: {7: ["R", str(os.getpid()), *"0" * 30]})
        self._meter = process_tree.Meter(os.getpid(), zygote=-1, clock=lambda: self._now)

    def read(self, now: float, waited: dict[int, float]) -> process_tree.ProcessUsage:
        self._now, self._waited = now, waited
        return self._meter.read()


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    return Waiting(monkeypatch)


def test_waiting_of_exited_threads_still_counts(waiting: Waiting) -> None:
    """A compiler starts many short processes: what they waited for a processor on a busy machine is not its time."""
    assert waiting.read(8.0, {7: 3.0, 8: 4.0}).waited_seconds == 7.0
    usage = waiting.read(10.0, {7: 3.5})
    assert usage.waited_seconds == 7.5
    assert usage.own_seconds(10.0) == pytest.approx(2.5)
    usage = waiting.read(12.0, {7: 3.5, 8: 1.0})  # another thread, with the number of the one that ended
    assert usage.waited_seconds == 7.5


def test_concurrent_waits_count_once(waiting: Waiting) -> None:
    """Sixty that compete for one processor for a second do not earn their program a minute of sleep."""
    for tenth in range(1, 11):
        usage = waiting.read(tenth / 10, {7 + number: tenth / 10 * 59 / 60 for number in range(60)})
        assert usage.waited_seconds <= tenth / 10 + 0.1
    asleep = waiting.read(9.0, {7: 59 / 60})
    assert asleep.waited_seconds == usage.waited_seconds
    assert asleep.own_seconds(9.0) >= 7.9


def test_later_waiting_does_not_offset_sleep(waiting: Waiting) -> None:
    assert waiting.read(9.0, {7: 0.0}).waited_seconds == 0
    for tenth in range(91, 101):
        usage = waiting.read(tenth / 10, {7 + number: (tenth / 10 - 9) * 59 / 60 for number in range(60)})
    assert usage.waited_seconds == pytest.approx(1.0, abs=0.2)


def test_wait_across_many_reads_counts_in_full(waiting: Waiting) -> None:
    """Its account grows when it gets a processor. Meanwhile another thread wakes up now and then."""
    ran = 0.05
    for read in range(1, 200):  # every 0.1 seconds: it waits for 0.7 seconds, computes for 0.05, and so on
        now = read / 10
        turns = int(now / (0.7 + ran))
        usage = waiting.read(now, {7: turns * 0.7, 8: read * 0.001})
        assert turns * 0.7 <= usage.waited_seconds + 1e-9
        assert usage.own_seconds(now) <= (turns + 1) * ran + 0.7


def test_kernel_cpu_limit_is_a_timeout() -> None:
    """The kernel stops it if the supervisor hardly gets a CPU."""
    end = ProcessExit(stopped="", status=-signal.SIGKILL, wall=9.0, cpu=2.95, memory=0, stdout=0, stderr=0)
    exchange = Exchange(report={"outcome": "ended", "detail": ""}, end=end, stdout="", stderr="")
    python = find_language("python")
    assert verdict_of(exchange, Limits(seconds=1), "", python, Mode.SPLIT).outcome is Outcome.TIMEOUT
    assert verdict_of(exchange, Limits(seconds=4), "", python, Mode.SPLIT).outcome is Outcome.CRASHED


def test_the_wall_clock_is_the_ceiling(judge: Judge) -> None:
    verdict = judge("import time; time.sleep(60)", limits=Limits(seconds=50, wall_seconds=0.3))
    assert verdict.outcome is Outcome.TIMEOUT
    assert "wall clock" in verdict.detail


# The pool


def test_programs_wait_for_a_free_worker(session: SandboxSession) -> None:
    programs = [Program(source=f"def f(): return {i}", tests=f"assert f() == {i}") for i in range(100)]
    verdicts = session.wait(run(programs, LIMITS, sandbox=session.pool))
    assert all(verdict.passed for verdict in verdicts)


def test_programs_do_not_see_each_other(judge: Judge) -> None:
    leave = "import os, pathlib\npathlib.Path('note').write_text('x')\nos.makedirs('deep/er')\nos.chmod('deep', 0)"
    look = "import os\nassert not {'note', 'deep'} & {*os.listdir('.'), *os.listdir('/dev/shm')}"
    for _ in range(4):
        assert judge(leave).passed
        verdict = judge(look)
        assert verdict.passed, verdict.detail


def test_cancelled_program_keeps_the_worker_count(own_session: SandboxSession) -> None:
    async def give_up() -> None:
        endless = Program(source="while True: pass")
        tasks = [asyncio.create_task(own_session.pool.judge(endless, Limits(seconds=60))) for _ in range(2)]
        while own_session.pool._idle.qsize():  # noqa: ASYNC110
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    own_session.wait(give_up())
    assert own_session.pool._idle.qsize() == 2
    assert own_session.judge("def f(): return 1", "assert f() == 1").passed


def test_dead_worker_is_replaced_and_program_retried(own_session: SandboxSession) -> None:
    async def kill_one() -> Verdict:
        program = Program(source="import time\ndef f():\n    time.sleep(0.5)\n    return 1", tests="assert f() == 1")
        before = set(_children())
        task = asyncio.create_task(own_session.pool.judge(program, LIMITS))
        while own_session.pool._idle.qsize() == 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for process in before:
            os.kill(process, signal.SIGKILL)
        return await task

    assert own_session.wait(kill_one()).passed
    for _ in range(4):
        assert own_session.judge("def f(): return 1", "assert f() == 1").passed
    assert own_session.pool._idle.qsize() == 2


HALF_A_JOB = """
import os, socket
from proctor.sandbox.inside.supervisor import HARNESS, Supervisor
supervisor = Supervisor.__new__(Supervisor)
os.dup2(os.pidfd_open(os.getppid()), HARNESS)
supervisor._test_runner_socket, test_runner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
test_runner.close()
supervisor._await_job()
"""


def test_supervisor_tells_a_dead_test_runner_from_a_dead_harness() -> None:
    done = subprocess.run([sys.executable, "-c", HALF_A_JOB], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr.splitlines()[-1] == "OSError: the test runner died while it read a job"


def _children() -> list[int]:
    own = str(os.getpid())
    return [process for process, fields in process_tree.descendants(set()) if fields[1] == own]


HARNESS = """
import asyncio, sys
from proctor.sandbox import Limits, Pool, Program, best_level
source = '''
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
print("under way", flush=True)
time.sleep(600)
'''
async def main():
    async with Pool(await best_level(), workers=2) as pool:
        tasks = [asyncio.create_task(pool.judge(Program(source=source), Limits(seconds=600))) for _ in range(2)]
        await asyncio.gather(*tasks)
asyncio.run(main())
"""


def test_a_killed_harness_leaves_no_process() -> None:
    harness = subprocess.Popen([sys.executable, "-c", HARNESS])

    def below() -> list[int]:
        fields_of = {process: int(fields[1]) for process, fields in process_tree.descendants(set())}
        found = {harness.pid}
        while more := {process for process, parent in fields_of.items() if parent in found} - found:
            found |= more
        return sorted(found - {harness.pid})

    # Per worker: zygote, test runner, init, program, its child and grandchild; the last two start later.
    while len(below()) < 12:
        assert harness.poll() is None
        time.sleep(0.02)
    ends = [os.pidfd_open(process) for process in below()]
    harness.kill()
    harness.wait()
    for end in ends:
        assert _ended(end), "a process outlived its harness"
        os.close(end)


def _ended(process: int) -> bool:
    import select

    return bool(select.select([process], [], [], 30)[0])


# Languages


def test_unknown_language_raises(judge: Judge) -> None:
    with pytest.raises(UnknownNameError, match="cobolt"):
        judge("x", language="cobolt")


def test_python_tests_cannot_call_other_languages(judge: Judge) -> None:
    with pytest.raises(UsageError, match="append the tests to its source"):
        judge("int f() { return 1; }", "assert f() == 1", language="c")


def test_usage_error_among_many_programs_is_raised_once(session: SandboxSession) -> None:
    programs = [Program(source="x", language=name) for name in ("cobolt", "fortrun", "cobolt")]
    with pytest.raises(UnknownNameError):
        session.wait(run(programs, LIMITS, sandbox=session.pool))


def test_large_compiler_output_is_a_failure(judge: Judge) -> None:
    needs_language("c")
    verdict = judge("char large[140 << 20] = {1};\nint main() { return 0; }", language="c")
    assert verdict.outcome is Outcome.FAILED
    assert "too large" in verdict.detail


@pytest.mark.slow
def test_compiled_files_may_have_any_name(judge: Judge) -> None:
    needs_language("haskell")
    source = """
    {-# LANGUAGE TemplateHaskell #-}
    import Language.Haskell.TH
    main :: IO ()
    main = print $(runIO (writeFile "\\xDC80" "") >> litE (integerL 42))
    """
    verdict = judge(source, language="haskell")
    assert (verdict.outcome, verdict.stdout) == (Outcome.PASSED, "42\n"), verdict.detail


@pytest.mark.parametrize(
    "part", ["\n", "abstract ", "public abstract ", "/* ", '""" ', '\\"', "'", "package ", "class ", "public  "]
)
def test_source_names_take_linear_time(part: str) -> None:
    """By the square of it, this would take hours."""
    assert SourceNames.of(part * 200_000 + '*/"""\nclass Found {}').main


# The floor


BARE = """
import asyncio, json, sys
from proctor.sandbox import best_level
from proctor.sandbox.inside import kernel, seccomp
from proctor.core.errors import SandboxUnavailableError

# A kernel that offers neither namespaces nor Landlock.
kernel.set_no_new_privileges()
refused = [seccomp.number_of("unshare"), 444]
program = seccomp._head()
for number in refused:
    program += seccomp._on_call(number, seccomp._REFUSE | 1)
program += [
    (seccomp._EQUAL, 0, 4, seccomp.number_of("clone")),
    (seccomp._LOAD, 0, 0, seccomp._ARGUMENT_AT),
    (seccomp._ANY_BIT, 0, 1, kernel.ALL_NAMESPACES),
    (seccomp._RETURN, 0, 0, seccomp._REFUSE | 1),
    (seccomp._RETURN, 0, 0, seccomp._ALLOW),
]
seccomp.Filter(seccomp._pack(program + seccomp._on_call(435, seccomp._REFUSE | 38))).install()
try:
    asyncio.run(best_level())
    print("safe")
except SandboxUnavailableError as error:
    print(error)
print(asyncio.run(best_level(unsafe=True)))
"""


def test_unsafe_level_needs_permission() -> None:
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    refusal, level = done.stdout.splitlines()
    assert "cannot be isolated" in refusal
    assert "--unsafe" in refusal
    assert level == "limits: limits"
