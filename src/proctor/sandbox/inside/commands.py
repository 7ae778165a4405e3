"""Programs that are run for their exit status: Python scripts and other commands."""

from __future__ import annotations

import builtins
import marshal
import os
import stat
import sys

from proctor.sandbox.inside import program, wire

_STDIN = ".stdin"


def serve(read_fd: int, write_fd: int) -> None:
    """Runs the program in its process; the first message says which kind it is."""
    message = wire.receive(read_fd, wire.LARGEST)
    verb, *arguments = marshal.loads(message)
    if verb == "command":
        command, environment, stdin = arguments
        _set_stdin(stdin)
        os.execve(command[0], command, {**os.environ, **environment})
    vars(builtins).update(exit=sys.exit, quit=sys.exit)  # as `site` does
    if verb == "script":
        source, code, stdin = arguments
        _set_stdin(stdin)
        os._exit(program.run_script(code, program.write_source(source)))
    program.ProgramServer(read_fd, write_fd, program.write_source(arguments[0])).serve(message)


def write_files(files: list[tuple[str, int, int]], blob: bytes, folder: str = ".") -> None:
    """Writes the files of a program to the folder: its source, or a compiler's output.

    Each file has a name, a mode and a size; a name with a final slash is a folder.
    """
    start = 0
    for name, mode, size in files:
        path = os.path.join(folder, name)
        if name.endswith("/"):
            if not os.path.exists(path):
                os.makedirs(path)
                os.chmod(path, mode)  # regardless of the umask
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(blob[start : start + size])
        os.chmod(path, mode)
        start += size


def collect_files(most: int) -> tuple[list[tuple[str, int, int]], bytes]:
    """The files in the working folder, as `write_files` takes them."""
    files: list[tuple[str, int, int]] = []
    contents: list[bytes] = []
    here = os.stat(".").st_dev
    for folder, folders, names in os.walk("."):
        # Other devices are the mount points of `Layout`, not written by the compiler.
        folders[:] = [name for name in folders if os.lstat(os.path.join(folder, name)).st_dev == here]
        files += [(os.path.relpath(os.path.join(folder, name)) + "/", 0o755, 0) for name in sorted(folders)]
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not stat.S_ISREG(os.lstat(path).st_mode):
                continue
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                content = file.read(most + 1)
                mode = os.fstat(file.fileno()).st_mode & 0o777
            most -= len(content)
            if most < 0:
                raise OSError("they are too large")
            files.append((os.path.relpath(path), mode, len(content)))
            contents.append(content)
    return files, b"".join(contents)


def _set_stdin(text: str) -> None:
    if text:
        with open(_STDIN, "w+", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            file.flush()
            os.lseek(file.fileno(), 0, os.SEEK_SET)
            os.dup2(file.fileno(), 0)
        os.unlink(_STDIN)
