"""Imports task files of users from their location."""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import Loader
from pathlib import Path
from types import ModuleType

from proctor.core.errors import UsageError

MODULE_PREFIX = "proctor_task_"
in_scoring_process = False  # whether this process only scores for a run of another process


def is_task_file(name: str) -> bool:
    """Whether the name means a class in a file: path/to/file.py:Class."""
    return name.partition(":")[0].endswith(".py")


def import_file(path: Path, loader: type[Loader] | None = None) -> ModuleType:
    """Imports the file as a module, with a loader of this class if one is given."""
    path = path.resolve()
    status = path.stat()
    # A changed file gets a new module; objects of the old one stay valid.
    name = f"{MODULE_PREFIX}{path.stem}_{status.st_ino}_{status.st_mtime_ns}"
    if name in sys.modules:
        return sys.modules[name]
    instance = None if loader is None else loader(name, str(path))  # type: ignore[call-arg]
    spec = importlib.util.spec_from_file_location(name, path, loader=instance)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} cannot be imported as a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # for imports of files beside it
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UsageError(f"{path} could not be imported: {describe_error(error, path)}") from error
    return module


def describe_error(error: BaseException, path: Path | None = None) -> str:
    """The error in one sentence, with the line of the user's file where it happened."""
    text = f"{type(error).__name__}: {error}".rstrip(".")
    if isinstance(error, SyntaxError):
        return f"{text}."
    line, frame = None, error.__traceback__
    while frame is not None:
        if path is not None and Path(frame.tb_frame.f_code.co_filename) == path:
            line = frame.tb_lineno
        frame = frame.tb_next
    return f"{text} (line {line})." if line else f"{text}."
