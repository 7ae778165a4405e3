"""What went wrong, in a few lines, also when the exception itself is hostile."""

from __future__ import annotations

import errno

_FRAMES = 6
_MESSAGE = 2000
_LINE = 300


def describe(error: BaseException) -> list[str]:
    """An exception of the program, told as plain data: kind, class, nearest built-in class, message, frames."""
    if isinstance(error, SystemExit):
        return ["exit", _text(error.code)]
    if isinstance(error, MemoryError):
        return ["memory"]
    if _hit_process_limit(error):
        return ["processes"]
    builtin = nearest_builtin(type(error)).__name__
    return ["raise", type(error).__name__, builtin, _text(error), frames(error, "solution.py")]


def is_success_exit(leaving: SystemExit) -> bool:
    """Whether tests that leave this way, as unittest does, say that all was well."""
    return leaving.code is None or (isinstance(leaving.code, int) and leaving.code == 0)


def nearest_builtin(kind: type) -> type:
    return next((base for base in kind.__mro__ if base.__module__ == "builtins"), Exception)


def script_traceback(error: BaseException) -> str:
    return "".join(["Traceback (most recent call last):\n", frames(error, "solution.py"), summary(error), "\n"])


def summary(error: BaseException) -> str:
    text = _text(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def frames(error: BaseException, file: str, source: str = "") -> str:
    """The last frames that lie in one file, innermost last, with their lines where the source is given."""
    lines = source.splitlines()
    told = []
    if isinstance(error, SyntaxError) and _is_of(error.filename, file):
        told.append(f'  File "{file}", line {error.lineno}\n    {(error.text or "").strip()[:_LINE]}\n')
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if _is_of(code.co_filename, file):
            line = step.tb_lineno
            shown = f"    {lines[line - 1].strip()[:_LINE]}\n" if 0 < (line or 0) <= len(lines) else ""
            told.append(f'  File "{file}", line {line}, in {code.co_name}\n{shown}')
        step = step.tb_next
    return "".join(told[-_FRAMES:])


def _is_of(path: str | None, file: str) -> bool:
    """The source has a path, which is of no use to anybody who reads of an error."""
    return path is not None and (path == file or path.endswith(f"/{file}"))


def _hit_process_limit(error: BaseException) -> bool:
    """Whether the limit on processes and threads is what the program ran into."""
    if isinstance(error, BlockingIOError):  # what fork raises; programs have no other reason to meet it
        return error.errno == errno.EAGAIN
    return isinstance(error, RuntimeError) and _text(error) == "can't start new thread"


def _text(value: object) -> str:
    try:
        text = str(value)
    except BaseException as error:
        return f"<{type(value).__name__} whose text cannot be had: {type(error).__name__}>"
    return text if len(text) <= _MESSAGE else text[:_MESSAGE] + " …"
