"""A user's own Python file, imported where it lies."""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import Loader
from pathlib import Path
from types import ModuleType

from proctor.core.errors import UsageError

PREFIX = "proctor_task_"
in_worker = False  # whether this process has the file to score for a run of another one


def is_file(name: str) -> bool:
    """Whether a task of this name is a class in a file: path/to/file.py:Class."""
    return name.partition(":")[0].endswith(".py")


def import_file(path: Path, loader: type[Loader] | None = None) -> ModuleType:
    """The file as a module; imported by a loader of this class, where the ordinary one will not do."""
    path = path.resolve()
    status = path.stat()
    # A changed file is another module: what was imported before stays what it was.
    name = f"{PREFIX}{path.stem}_{status.st_ino}_{status.st_mtime_ns}"
    if name in sys.modules:
        return sys.modules[name]
    made = None if loader is None else loader(name, str(path))  # type: ignore[call-arg]
    spec = importlib.util.spec_from_file_location(name, path, loader=made)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} cannot be imported as a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # the file may import its neighbours, now or later
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UsageError(f"{path} could not be imported: {said_where(error, path)}") from error
    return module


def said_where(error: BaseException, path: Path | None = None) -> str:
    """The error in one sentence, with the line of the user's file where it happened."""
    text = f"{type(error).__name__}: {error}".rstrip(".")
    if isinstance(error, SyntaxError):
        return f"{text}."
    line, step = None, error.__traceback__
    while step is not None:
        if path is not None and Path(step.tb_frame.f_code.co_filename) == path:
            line = step.tb_lineno
        step = step.tb_next
    return f"{text} (line {line})." if line else f"{text}."
