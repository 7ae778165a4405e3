"""Short descriptions of exceptions, even of hostile ones."""

from __future__ import annotations

import errno

_FRAMES = 6
_MESSAGE = 2000
_LINE = 300


def describe(error: BaseException) -> list[str]:
    """An exception of the program as data: kind, class, built-in base, message, frames."""
    if isinstance(error, SystemExit):
        return ["exit", _text(error.code)]
    if isinstance(error, MemoryError):
        return ["memory"]
    if _hit_process_limit(error):
        return ["processes"]
    builtin = nearest_builtin(type(error)).__name__
    return ["raise", type(error).__name__, builtin, _text(error), frames(error, "solution.py")]


def is_success_exit(error: SystemExit) -> bool:
    """Whether tests that call sys.exit, as unittest does, report success."""
    return error.code is None or (isinstance(error.code, int) and error.code == 0)


def nearest_builtin(kind: type) -> type:
    return next((base for base in kind.__mro__ if base.__module__ == "builtins"), Exception)


def script_traceback(error: BaseException) -> str:
    return "".join(["Traceback (most recent call last):\n", frames(error, "solution.py"), summary(error), "\n"])


def summary(error: BaseException) -> str:
    text = _text(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def frames(error: BaseException, file: str, source: str = "") -> str:
    """The last frames in a file, innermost last, with lines if the source is given."""
    lines = source.splitlines()
    entries = []
    if isinstance(error, SyntaxError) and _is_of(error.filename, file):
        entries.append(f'  File "{file}", line {error.lineno}\n    {(error.text or "").strip()[:_LINE]}\n')
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if _is_of(code.co_filename, file):
            line = step.tb_lineno
            shown = f"    {lines[line - 1].strip()[:_LINE]}\n" if 0 < (line or 0) <= len(lines) else ""
            entries.append(f'  File "{file}", line {line}, in {code.co_name}\n{shown}')
        step = step.tb_next
    return "".join(entries[-_FRAMES:])


def _is_of(path: str | None, file: str) -> bool:
    """Whether a path is that of `file`, in any folder."""
    return path is not None and (path == file or path.endswith(f"/{file}"))


def _hit_process_limit(error: BaseException) -> bool:
    """Whether the program hit the limit on processes and threads."""
    if isinstance(error, BlockingIOError):  # raised by fork
        return error.errno == errno.EAGAIN
    return isinstance(error, RuntimeError) and _text(error) == "can't start new thread"


def _text(value: object) -> str:
    try:
        text = str(value)
    except BaseException as error:
        return f"<{type(value).__name__} without a message: {type(error).__name__}>"
    return text if len(text) <= _MESSAGE else text[:_MESSAGE] + " …"
