"""Redirects /tmp, /var/tmp and /dev/shm to the scratch folder, where nothing is mounted.

At other levels the scratch folder is mounted there. Here, calls with a path in these
folders that fail are repeated with a path in the scratch folder. Semaphores and shared
memory, which the C library has only in /dev/shm and which multiprocessing needs for locks,
queues and pools, become files in the scratch folder: processes share a semaphore by mapping
the same file. This protects nothing; Landlock does.

Python imports this file by its name at start, in child interpreters, too.
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
_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
_CALLS_WITH_TWO = ("link", "rename", "replace", "symlink")
_CALLS_WITH_PATHS = (
    *("access", "chdir", "chmod", "listdir", "lstat", "mkdir", "mkfifo", "open", "readlink", "remove", "rmdir"),
    *("scandir", "stat", "statvfs", "truncate", "unlink", "utime", *_CALLS_WITH_TWO),
)
_HERE = os.path.dirname(os.path.abspath(__file__))
_SIZE = 64  # bytes, more than any C library needs for a semaphore


def install() -> None:
    """Installs the redirection in this interpreter and, by PYTHONPATH, in its children."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    os.environ["PYTHONPATH"] = _HERE
    sys.meta_path.insert(0, _Finder())
    for module in filter(None, map(sys.modules.get, _CHANGED)):  # imported before
        _change(module)
    builtins.open = io.open = _redirecting(io.open, 1)
    for name in _CALLS_WITH_PATHS:
        setattr(os, name, _redirecting(getattr(os, name), 1 + (name in _CALLS_WITH_TWO)))


def _redirecting(call: Any, paths: int) -> Any:
    """Wraps a call: if it fails, repeats it with redirected paths."""

    def redirecting(*arguments: Any, **options: Any) -> Any:
        try:
            return call(*arguments, **options)
        except (PermissionError, FileNotFoundError):
            redirected = [*map(_redirect, arguments[:paths]), *arguments[paths:]]
            if redirected == list(arguments):
                raise
            return call(*redirected, **options)

    return update_wrapper(redirecting, call)


def _redirect(path: Any) -> Any:
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
    for folder in _FOLDERS if isinstance(name, str) and not f"{name}/".startswith(f"{_SCRATCH}/") else ():
        if f"{name}/".startswith(f"{folder}/"):
            return _SCRATCH + name[len(folder) :]
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
    """Patches a module after its own loader."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _change(module)


def _change(module: Any) -> None:
    if module.__name__ == "_posixshmem":
        module.shm_open, module.shm_unlink = _shm_open, _unlink
    elif module.__name__ == "multiprocessing.heap":
        module.Arena._dir_candidates = []  # else it prefers /dev/shm
    elif module.__name__ == "multiprocessing.context":
        # The fork server needs a named socket, which this level does not have.
        as_server = type("ForkServerContext", (module.SpawnContext,), {"_name": "forkserver"})
        module._concrete_contexts["forkserver"] = as_server()
    elif module.__name__ == "multiprocessing.spawn":
        module.get_command_line = partial(_importing_this, module.get_command_line)
    else:
        Semaphore.SEM_VALUE_MAX = module.SemLock.SEM_VALUE_MAX
        module.SemLock, module.sem_unlink = Semaphore, _unlink


def _importing_this(get_command_line: Any, **options: Any) -> list[str]:
    """The command line of a worker, which imports this file explicitly."""
    words: list[str] = get_command_line(**options)
    first = f"import sys; sys.path.insert(0, {_HERE!r}); import sitecustomize; del sys.path[0]; "
    return [first + word if before == "-c" else word for before, word in zip(["", *words], words, strict=False)]


def _shm_open(path: str, flags: int, mode: int = 0o777) -> int:
    return os.open(_file_of(path), flags | os.O_CLOEXEC, mode)


def _unlink(path: str) -> None:
    os.unlink(_file_of(path))


class Semaphore:
    """Replaces `_multiprocessing.SemLock`, with the same methods and messages."""

    SEM_VALUE_MAX = 0

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> None:
        file = os.open(_file_of(name), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.ftruncate(file, _SIZE)
        self._map(file)
        _called("sem_init", self._address, 1, value)
        self._set(kind, maxvalue, None if unlink else name)
        if unlink:
            _unlink(name)

    @classmethod
    def _rebuild(cls, _handle: int, kind: int, maxvalue: int, name: str) -> Semaphore:
        """Opens the semaphore in another process."""
        semaphore = cls.__new__(cls)
        semaphore._map(os.open(_file_of(name), os.O_RDWR | os.O_CLOEXEC))
        semaphore._set(kind, maxvalue, name)
        return semaphore

    def _map(self, file: int) -> None:
        import ctypes
        import mmap

        self._memory = mmap.mmap(file, _SIZE)
        os.close(file)
        self._address = (ctypes.c_char * _SIZE).from_buffer(self._memory)

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
        while not self._try_acquire(block, deadline):
            if not block or (deadline is not None and time.time() >= deadline):
                return False
        self._held += 1
        self._owner = threading.get_ident()
        return True

    def _try_acquire(self, block: bool, deadline: float | None) -> bool:
        """False also after a signal, so that its handler runs."""
        if not block:
            return _called("sem_trywait", self._address, refusals=(errno.EAGAIN, errno.EINTR))
        if deadline is None:
            return _called("sem_wait", self._address, refusals=(errno.EINTR,))
        import ctypes

        until = (ctypes.c_long * 2)(int(deadline), int(deadline % 1 * 1e9))
        return _called("sem_timedwait", self._address, until, refusals=(errno.ETIMEDOUT, errno.EINTR))

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
        _called("sem_post", self._address)

    def _count(self) -> int:
        return self._held

    def _is_mine(self) -> bool:
        import threading

        return self._held > 0 and self._owner == threading.get_ident()

    def _get_value(self) -> int:
        import ctypes

        value = ctypes.c_int()
        _called("sem_getvalue", self._address, ctypes.byref(value))
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
_LIBRARY: list[Any] = []  # loaded with the first semaphore


def _called(function: str, *arguments: Any, refusals: tuple[int, ...] = ()) -> bool:
    """Calls the C library, without the GIL; returns whether it succeeded."""
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
