"""What a program does must not reach the next program, nor the other processes of the machine.

Also a harness of its own, like helpers/sandbox_driver.py: test_neighbours.py LEVEL BACKEND prints what got through.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from helpers import needs
from helpers.paths import TESTS
from helpers.sandbox_driver import find_level
from proctor.sandbox import Limits, Pool, Program, Verdict, best_level
from proctor.sandbox.inside import kernel, process_tree, seccomp
from proctor.sandbox.isolation import IsolationLevel

LEVELS = ["full bubblewrap", "full kernel", "confined none"]
LIMITS = Limits(seconds=5.0)

C_LIBRARY = "import ctypes, os, struct, time\nlibc = ctypes.CDLL(None)\n"
# The first of each leaves something behind or breaks something; the second passes if it notices nothing.
PAIRS = {
    "a file deep down": (
        "import os\nfor _ in range(400):\n    os.mkdir('deep')\n    os.chdir('deep')\nopen('note', 'w').write('x')",
        "import os\nassert not os.path.exists('deep')",
    ),
    "a folder nobody may enter": (
        "import os\nos.makedirs('a/b/c')\nopen('a/b/c/d', 'w').write('x')\nfor name in ('a/b/c', 'a/b', 'a'):\n"
        "    os.chmod(name, 0)",
        "import os\nassert not os.path.exists('a')",
    ),
    "a working folder nobody may enter": (
        "import os\ntry: os.chmod('.', 0)\nexcept PermissionError: pass",
        "open('note', 'w').write('x')",
    ),
    "rules for the files of the next": (
        "import os, struct\nrules = struct.pack('<I', 2) + b''.join(\n"
        "    struct.pack('<HHI', tag, 0, 0xFFFFFFFF) for tag in (1, 4, 32))\n"
        "try: os.setxattr('.', 'system.posix_acl_default', rules)\nexcept OSError: pass",
        "import os\nos.mkdir('mine')\nassert os.stat('mine').st_mode & 0o700 == 0o700",
    ),
    "a message in the kernel": (
        C_LIBRARY + "libc.msgsnd(libc.msgget(77, 0o1666), struct.pack('l', 1) + b'boo', 3, 0)",
        C_LIBRARY + "assert libc.msgrcv(libc.msgget(77, 0), ctypes.create_string_buffer(64), 8, 0, 0o4000) == -1",
    ),
    "a counter in the kernel": (
        C_LIBRARY + "libc.semget(78, 1, 0o1666)",
        C_LIBRARY + "assert libc.semget(78, 0, 0) == -1",
    ),
    "a process that is not its child": (
        C_LIBRARY + f"if libc.syscall({seccomp.number_of('clone')}, {kernel.CLONE_PARENT | 17}, 0, 0, 0, 0) == 0:\n"
        "    end = time.monotonic() + 2\n    while time.monotonic() < end:\n"
        "        open('/tmp/haunted', 'w').close()\n        time.sleep(0.01)\n    os._exit(0)",
        "import os, time\nfor _ in range(20):\n    time.sleep(0.01)\n    assert not os.path.exists('/tmp/haunted')",
    ),
}


def test_other_users_data_is_safe_at_the_best_level() -> None:
    level = asyncio.run(best_level())
    _hold_at(f"{level.name} {level.namespace_backend}", "this user")


@pytest.mark.slow
@pytest.mark.parametrize("user", ["this user", "ordinary user"])
@pytest.mark.parametrize("level", LEVELS)
def test_other_users_data_is_safe_at_every_level(level: str, user: str) -> None:
    _hold_at(level, user)


# This file as a program of its own, which finds the helpers of the tests.
ALONE = f"import runpy, sys; sys.path.insert(0, {str(TESTS)!r}); runpy.run_path({__file__!r}, run_name='__main__')"


def _hold_at(level: str, user: str) -> None:
    if "bubblewrap" in level:
        needs.program("bwrap", "bubblewrap")
    command = [sys.executable, "-c", ALONE, *level.split()]
    if user == "ordinary user":
        if os.getuid() != 0:
            pytest.skip("this user is an ordinary one already")
        command = [sys.executable, "-m", "helpers.ordinary_user", *command]
    elif level.startswith("confined") and os.getuid() == 0:
        pytest.skip("this Python may lie where the level's own user cannot read it")
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, cwd=TESTS, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


# Also what a program may be able to see must be out of its reach.
TAMPER = """
import glob
for place in glob.glob("/proc/[0-9]*/mem"):
    try: open(place, "rb+")
    except OSError: continue
    if place.split("/")[2] != open("/proc/self/stat").read().split()[0]: raise SystemExit(place)
"""


async def _hold_all(level: IsolationLevel) -> list[str]:
    """Every wall has to hold by itself: with namespaces also without Landlock, which older kernels do not have."""
    without = [msgspec.structs.replace(level, landlock=0)] if level.namespaces else []
    return [fault for each in (level, *without) for fault in await _hold(each)]


async def _hold(level: IsolationLevel) -> list[str]:
    async with Pool(level, workers=1) as pool:

        async def judge(source: str) -> Verdict:
            return await pool.judge(Program(source=source), LIMITS)

        through = []
        for name, (leave, look) in PAIRS.items():
            await judge(leave)
            if not (verdict := await judge(look)).passed:
                through.append(f"{name}: {verdict.detail}")
        if not (verdict := await judge(TAMPER)).passed:
            through.append(f"the memory of another process: {verdict.detail}")
        if level.namespaces and (await judge("for i in range(20_000): open(f'{i}', 'w').close()")).passed:
            through.append("more files than the working folder should hold")
        compiled = await pool.judge(Program(source="int main() { return 0; }", language="c"), LIMITS)
        if not compiled.passed and "was not found" not in compiled.detail:  # also where no mode can be changed
            through.append(f"nothing, not even an honest compiler: {compiled.detail}")
        return through + await _reach_out(judge) + await _give_up(pool)


STRAY = """
import ctypes, os, time
ctypes.CDLL(None).prctl(15, b"stray", 0, 0, 0)
if os.fork() == 0:
    os.setsid()
    os.fork()
time.sleep(600)
"""


async def _give_up(pool: Pool) -> list[str]:
    """Whether anything of a program is left when nobody wants its verdict any more."""
    judging = asyncio.create_task(pool.judge(Program(source=STRAY), Limits(seconds=600)))
    while len(strays := _called("stray")) < 3:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    ends = [os.pidfd_open(process) for process in strays]
    judging.cancel()
    await asyncio.gather(judging, return_exceptions=True)
    left = [process for process, end in zip(strays, ends, strict=True) if not select.select([end], [], [], 20)[0]]
    for end in ends:
        os.close(end)
    for process in left:
        os.kill(process, signal.SIGKILL)
    return [f"{len(left)} processes of a program that was given up"] if left else []


def _called(name: str) -> list[int]:
    found = []
    for process, _ in process_tree.descendants(set()):
        with contextlib.suppress(OSError):  # it has ended
            if Path(f"/proc/{process}/comm").read_text().strip() == name:
                found.append(process)
    return found


CHANGES = {
    "mode": "os.chmod(file, 0)",
    "mode in another way": "os.chmod(file, 0, follow_symlinks=False)",
    "times": "os.utime(file, (1, 1))",
    "attributes": "os.setxattr(file, 'user.note', b'x')",
    "group": "os.chown(file, -1, os.getgid())",
    "length": "os.truncate(file, 0)",
    "length by opening": "os.open(file, os.O_RDONLY | os.O_TRUNC)",
    "name": "os.rename(file, file + '2')",
}


async def _change_files(judge: Callable[[str], Awaitable[Verdict]]) -> list[str]:
    """Programs that try to change a file of this user's."""
    through = []
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for name, change in CHANGES.items():
            file = Path(folder) / name
            file.write_text("x")
            before = file.stat().st_ctime_ns  # moves with every change of a file
            await judge(f"import os\nfile = {str(file)!r}\n{change}")
            if not file.exists() or file.stat().st_ctime_ns != before:
                through.append(f"a change of a file's {name}")
    return through


async def _reach_out(judge: Callable[[str], Awaitable[Verdict]]) -> list[str]:
    """Programs that try to reach this very process."""
    through = await _change_files(judge)
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as service:
        os.chmod(folder, 0o755)
        service.bind(f"{folder}/service")
        os.chmod(f"{folder}/service", 0o777)
        service.listen()
        service.setblocking(False)
        await judge(f"import socket\nsocket.socket(socket.AF_UNIX).connect({service.getsockname()!r})")
        try:
            service.accept()[0].close()
            through.append("a connection to a local service")
        except BlockingIOError:
            pass
    before = resource.getrlimit(resource.RLIMIT_CORE), os.getpriority(os.PRIO_PROCESS, 0)
    own = os.getpid()
    await judge(f"import resource\nresource.prlimit({own}, resource.RLIMIT_CORE, (0, 0))")
    await judge(f"import os\nos.setpriority(os.PRIO_PROCESS, {own}, 19)")
    if before != (resource.getrlimit(resource.RLIMIT_CORE), os.getpriority(os.PRIO_PROCESS, 0)):
        through.append("the limits or the rank of another process")
    return through


# The filters one by one, also those that this machine's own levels do not need


def _refusals(filters: Callable[[], list[bytes]], attempts: dict[str, Callable[[], object]]) -> dict[str, str]:
    """In a process of its own: how each attempt was refused."""
    ear, mouth = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            kernel.set_no_new_privileges()
            for code in filters():
                seccomp.Filter(code).install()
            refused = {}
            for name, attempt in attempts.items():
                try:
                    attempt()
                except OSError as error:
                    refused[name] = errno.errorcode[error.errno or 0]
            os.write(mouth, json.dumps(refused).encode())
        finally:
            os._exit(0)
    os.close(mouth)
    with open(ear, "rb") as pipe:
        told: dict[str, str] = json.loads(pipe.read())
    os.waitpid(process, 0)
    return told


def _pair(kind: int) -> Callable[[], object]:
    def make() -> None:
        for end in socket.socketpair(socket.AF_UNIX, kind):
            end.close()

    return make


SOCKETS: dict[str, Callable[[], object]] = {
    "internet": lambda: socket.socket(socket.AF_INET).close(),
    "host": lambda: socket.socket(socket.AF_VSOCK).close(),
    "local": lambda: socket.socket(socket.AF_UNIX).close(),
    "datagrams": _pair(socket.SOCK_DGRAM),
    "streams": _pair(socket.SOCK_STREAM),
    "packets": _pair(socket.SOCK_SEQPACKET),
}


@pytest.mark.parametrize(
    ("alone", "refused"), [(True, ["internet", "host"]), (False, ["internet", "host", "local", "datagrams"])]
)
def test_sockets_reach_no_other_process(alone: bool, refused: list[str]) -> None:
    assert _refusals(lambda: [seccomp.base_filter(alone)], SOCKETS) == dict.fromkeys(refused, "EACCES")


def test_other_processes_keep_limits_and_priority() -> None:
    other = os.getppid()
    cores = os.sched_getaffinity(0)
    attempts: dict[str, Callable[[], object]] = {
        "own limit": lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
        "own cores": lambda: os.sched_setaffinity(0, cores),
        "limit": lambda: resource.prlimit(other, resource.RLIMIT_CORE),
        "cores": lambda: os.sched_setaffinity(other, cores),
        "rank": lambda: os.setpriority(os.PRIO_PROCESS, other, os.getpriority(os.PRIO_PROCESS, other)),
    }
    told = _refusals(lambda: [seccomp.other_processes_filter(os.getpid())], attempts)
    assert told == dict.fromkeys(["limit", "cores", "rank"], "EPERM")


def test_files_keep_attributes_that_landlock_does_not_cover(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    opened = os.open(file, os.O_RDONLY)
    before = os.stat(file).st_ctime_ns
    quiet: dict[str, Callable[[], object]] = {
        "mode": lambda: os.chmod(file, 0),
        "mode of an open file": lambda: os.fchmod(opened, 0),
        "mode in a newer way": lambda: kernel.system_call("fchmodat2", 452, opened, b"", 0, 0x1000),
        "times": lambda: os.utime(file, (1, 1)),
        "times of an open file": lambda: os.utime(opened, (1, 1)),
    }
    refused: dict[str, tuple[str, Callable[[], object]]] = {
        "owner": ("EPERM", lambda: os.chown(file, 1, 1)),
        "owner of an open file": ("EPERM", lambda: os.fchown(opened, 1, 1)),
        "attribute": ("ENOTSUP", lambda: os.setxattr(file, "user.note", b"x")),
        "attribute of an open file": ("ENOTSUP", lambda: os.setxattr(opened, "user.note", b"x")),
        "flags": ("EPERM", lambda: fcntl.ioctl(opened, 0x4008_6602, struct.pack("l", 0x80))),
    }
    old_kernel: dict[str, tuple[str, Callable[[], object]]] = {
        "length": ("EACCES", lambda: os.truncate(file, 0)),
        "length by opening": ("EACCES", lambda: os.open(file, os.O_RDONLY | os.O_TRUNC)),
        "in a newer way": ("ENOSYS", lambda: kernel.system_call("openat2", 437, opened, b"", None, 0)),
    }
    allowed: dict[str, Callable[[], object]] = {
        "reading": lambda: os.close(os.open(file, os.O_RDONLY)),
        "writing": lambda: os.close(os.open(tmp_path / "other", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)),
    }
    for truncating, expected in ((False, refused | old_kernel), (True, refused)):
        attempts = quiet | allowed | {name: attempt for name, (_, attempt) in expected.items()}
        told = _refusals(lambda: [seccomp.files_filter(truncating)], attempts)  # noqa: B023
        assert told == {name: error for name, (error, _) in expected.items()}
    os.close(opened)
    assert (os.stat(file).st_ctime_ns, file.read_text()) == (before, "x")


def test_signals_reach_no_other_process() -> None:
    other = os.getppid()
    ear, mouth = os.pipe()
    word = struct.pack("iiI", 0, 0, 0xFFFF_FFFF).ljust(128, b"\0")  # a signal of the kind that anybody may send
    attempts: dict[str, Callable[[], object]] = {
        "itself": lambda: os.kill(os.getpid(), 0),
        "flags": lambda: fcntl.fcntl(ear, fcntl.F_GETFL),
        "kill": lambda: os.kill(other, 0),
        "everybody": lambda: os.kill(-1, 0),
        "queue": lambda: kernel.system_call("queue", seccomp.number_of("rt_sigqueueinfo"), other, 0, word),
        "process": lambda: signal.pidfd_send_signal(os.pidfd_open(other), 0),
        "owner": lambda: fcntl.fcntl(ear, fcntl.F_SETOWN, other),
        "owner's thread": lambda: fcntl.fcntl(ear, 15, struct.pack("ii", 1, other)),
        "owner by ioctl": lambda: fcntl.ioctl(ear, 0x8901, struct.pack("i", other)),
    }
    told = _refusals(lambda: [seccomp.own_signals_filter(os.getpid())], attempts)
    os.close(ear)
    os.close(mouth)
    assert told == dict.fromkeys(list(attempts)[2:], "EPERM")


if __name__ == "__main__":
    kernel.adopt_orphans()  # whatever gets away comes to us
    level = find_level(*sys.argv[1:])
    print(json.dumps(asyncio.run(_hold_all(level)) if level else []))
