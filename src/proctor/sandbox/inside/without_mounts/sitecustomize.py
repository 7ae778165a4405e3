"""The scratch folder in place of /tmp, /var/tmp and /dev/shm, for honest programs that may not write there.

Elsewhere the scratch folder is mounted in these places. Here calls that name a file in them, and meet no such file or
no right to it, are repeated with one in the scratch folder. Semaphores and shared memory, which the C library has in
/dev/shm alone and without which multiprocessing has no locks, queues and pools, are files there as well: a semaphore is
one that processes share by mapping the same file. None of this holds anybody back; Landlock does that.

Python imports this file by its name when it starts, and so do the interpreters that a program starts.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import sys
from functools import partial, update_wrapper
from importlib.machinery import BuiltinImporter, ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_CHANGED = ("_multiprocessing", "_posixshmem", *(f"multiprocessing.{name}" for name in ("context", "heap", "spawn")))
_SCRATCH = os.environ.get("TMPDIR", "/tmp")
_PLACES = ("/tmp", "/var/tmp", "/dev/shm")
_CALLS_WITH_TWO = ("link", "rename", "replace", "symlink")
_CALLS_WITH_PATHS = (
    *("access", "chdir", "chmod", "listdir", "lstat", "mkdir", "mkfifo", "open", "readlink", "remove", "rmdir"),
    *("scandir", "stat", "statvfs", "truncate", "unlink", "utime", *_CALLS_WITH_TWO),
)
_HERE = os.path.dirname(os.path.abspath(__file__))
_SIZE = 64  # bytes, more than any C library needs for a semaphore


def install() -> None:
    """For this interpreter, and by the environment for those that it starts."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    os.environ["PYTHONPATH"] = _HERE
    sys.meta_path.insert(0, _Finder())
    for module in filter(None, map(sys.modules.get, _CHANGED)):  # imported before the program came
        _change(module)
    builtins.open = io.open = _moving(io.open, 1)
    for name in _CALLS_WITH_PATHS:
        setattr(os, name, _moving(getattr(os, name), 1 + (name in _CALLS_WITH_TWO)))


def _moving(call: Any, paths: int) -> Any:
    """The call, once more with other paths where it fails by those that it is given."""

    def moving(*arguments: Any, **options: Any) -> Any:
        try:
            return call(*arguments, **options)
        except (PermissionError, FileNotFoundError):
            moved = [*map(_moved, arguments[:paths]), *arguments[paths:]]
            if moved == list(arguments):
                raise
            return call(*moved, **options)

    return update_wrapper(moving, call)


def _moved(path: Any) -> Any:
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
    for place in _PLACES if isinstance(name, str) and not f"{name}/".startswith(f"{_SCRATCH}/") else ():
        if f"{name}/".startswith(f"{place}/"):
            return _SCRATCH + name[len(place) :]
    return path


def _file_of(name: str) -> str:
    return os.path.join(_SCRATCH, f".shm-{name.lstrip('/')}")


class _Finder:
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        found = BuiltinImporter.find_spec(name) or PathFinder.find_spec(name, path) if name in _CHANGED else None
        if found is not None:
            found.loader = _Loader(found.loader)  # type: ignore[assignment]
        return found


class _Loader:
    """Theirs, and a change afterwards."""

    def __init__(self, theirs: Any) -> None:
        self._theirs = theirs

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._theirs.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        self._theirs.exec_module(module)
        _change(module)


def _change(module: Any) -> None:
    if module.__name__ == "_posixshmem":
        module.shm_open, module.shm_unlink = _shm_open, _unlink
    elif module.__name__ == "multiprocessing.heap":
        module.Arena._dir_candidates = []  # else it prefers /dev/shm
    elif module.__name__ == "multiprocessing.context":
        # A server that forks workers is asked by a socket with a name, and of these there are none.
        as_server = type("ForkServerContext", (module.SpawnContext,), {"_name": "forkserver"})
        module._concrete_contexts["forkserver"] = as_server()
    elif module.__name__ == "multiprocessing.spawn":
        module.get_command_line = partial(_importing_this, module.get_command_line)
    else:
        Semaphore.SEM_VALUE_MAX = module.SemLock.SEM_VALUE_MAX
        module.SemLock, module.sem_unlink = Semaphore, _unlink


def _importing_this(get_command_line: Any, **options: Any) -> list[str]:
    """How a worker is started: with the options of this interpreter, which may import nothing by itself."""
    words: list[str] = get_command_line(**options)
    first = f"import sys; sys.path.insert(0, {_HERE!r}); import sitecustomize; del sys.path[0]; "
    return [first + word if before == "-c" else word for before, word in zip(["", *words], words, strict=False)]


def _shm_open(path: str, flags: int, mode: int = 0o777) -> int:
    return os.open(_file_of(path), flags | os.O_CLOEXEC, mode)


def _unlink(path: str) -> None:
    os.unlink(_file_of(path))


class Semaphore:
    """What `_multiprocessing.SemLock` is elsewhere, with the same methods and messages."""

    SEM_VALUE_MAX = 0

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> None:
        file = os.open(_file_of(name), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.ftruncate(file, _SIZE)
        self._map(file)
        _called("sem_init", self._place, 1, value)
        self._set(kind, maxvalue, None if unlink else name)
        if unlink:
            _unlink(name)

    @classmethod
    def _rebuild(cls, _handle: int, kind: int, maxvalue: int, name: str) -> Semaphore:
        """In another process."""
        semaphore = cls.__new__(cls)
        semaphore._map(os.open(_file_of(name), os.O_RDWR | os.O_CLOEXEC))
        semaphore._set(kind, maxvalue, name)
        return semaphore

    def _map(self, file: int) -> None:
        import ctypes
        import mmap

        self._memory = mmap.mmap(file, _SIZE)
        os.close(file)
        self._place = (ctypes.c_char * _SIZE).from_buffer(self._memory)

    def _set(self, kind: int, maxvalue: int, name: str | None) -> None:
        self.kind, self.maxvalue, self.name = kind, maxvalue, name
        self.handle = id(self)
        self._held = 0
        self._owner = 0

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        import threading
        import time

        if self.kind == _RECURSIVE and self._is_mine():
            self._held += 1
            return True
        deadline = None if timeout is None else time.time() + max(timeout, 0.0)
        while not self._taken(block, deadline):
            if not block or (deadline is not None and time.time() >= deadline):
                return False
        self._held += 1
        self._owner = threading.get_ident()
        return True

    def _taken(self, block: bool, deadline: float | None) -> bool:
        """False also where a signal came, whose handler then has its turn."""
        if not block:
            return _called("sem_trywait", self._place, refusals=(errno.EAGAIN, errno.EINTR))
        if deadline is None:
            return _called("sem_wait", self._place, refusals=(errno.EINTR,))
        import ctypes

        until = (ctypes.c_long * 2)(int(deadline), int(deadline % 1 * 1e9))
        return _called("sem_timedwait", self._place, until, refusals=(errno.ETIMEDOUT, errno.EINTR))

    def release(self) -> None:
        if self.kind == _RECURSIVE:
            if not self._is_mine():
                raise AssertionError("attempt to release recursive lock not owned by thread")
            if self._held > 1:
                self._held -= 1
                return
        elif self._get_value() >= self.maxvalue:
            raise ValueError("semaphore or lock released too many times")
        self._held -= 1
        _called("sem_post", self._place)

    def _count(self) -> int:
        return self._held

    def _is_mine(self) -> bool:
        import threading

        return self._held > 0 and self._owner == threading.get_ident()

    def _get_value(self) -> int:
        import ctypes

        value = ctypes.c_int()
        _called("sem_getvalue", self._place, ctypes.byref(value))
        return max(value.value, 0)

    def _is_zero(self) -> bool:
        return self._get_value() == 0

    def _after_fork(self) -> None:
        self._held = 0

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


_RECURSIVE = 0
_LIBRARY: list[Any] = []  # loaded when the first semaphore is made


def _called(function: str, *arguments: Any, refusals: tuple[int, ...] = ()) -> bool:
    """Whether the C library did it; other threads run while it waits."""
    import ctypes

    if not _LIBRARY:
        _LIBRARY.append(ctypes.CDLL(None, use_errno=True))
    if getattr(_LIBRARY[0], function)(*arguments) == 0:
        return True
    number = ctypes.get_errno()
    if number in refusals:
        return False
    raise OSError(number, os.strerror(number))


if __name__ == "sitecustomize":
    install()
