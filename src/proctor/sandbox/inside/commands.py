"""Programs that are judged by how they end: a Python script, or a command of any other language."""

from __future__ import annotations

import builtins
import marshal
import os
import stat
import sys

from proctor.sandbox.inside import program, wire

_STDIN = ".stdin"


def serve(read_fd: int, write_fd: int) -> None:
    """In the subject: the first message says what kind of program this is."""
    message = wire.receive(read_fd, wire.LARGEST)
    verb, *arguments = marshal.loads(message)
    if verb == "command":
        command, environment, stdin = arguments
        _set_stdin(stdin)
        os.execve(command[0], command, {**os.environ, **environment})
    vars(builtins).update(exit=sys.exit, quit=sys.exit)  # as in every Python that has read `site`
    if verb == "script":
        source, code, stdin = arguments
        _set_stdin(stdin)
        os._exit(program.run_script(code, program.write_source(source)))
    program.ProgramServer(read_fd, write_fd, program.write_source(arguments[0])).serve(message)


def write_files(files: list[tuple[str, int, int]], blob: bytes, folder: str = ".") -> None:
    """Puts what a program needs into the working folder: its source, or what a compiler made of it.

    Each file has a name, a mode and a size; a name that ends with a slash is a folder.
    """
    start = 0
    for name, mode, size in files:
        place = os.path.join(folder, name)
        if name.endswith("/"):
            if not os.path.exists(place):
                os.makedirs(place)
                os.chmod(place, mode)  # whatever the umask
            continue
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(blob[start : start + size])
        os.chmod(place, mode)
        start += size


def collect_files(most: int) -> tuple[list[tuple[str, int, int]], bytes]:
    """The files that a compiler left in the working folder, as `lay_out` takes them."""
    files: list[tuple[str, int, int]] = []
    contents: list[bytes] = []
    here = os.stat(".").st_dev
    for folder, folders, names in os.walk("."):
        # Mounted here are the mount_points, with what is not the compiler's work: see `Layout`.
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
                raise OSError("it is too large")
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
