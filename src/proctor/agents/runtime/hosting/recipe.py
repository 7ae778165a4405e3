"""Recipe: how another process creates an object, from its class and the arguments of its constructor."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct

from proctor.core.config import user_path
from proctor.core.errors import UsageError, did_you_mean
from proctor.core.extras import missing_extra
from proctor.core.loading import MODULE_PREFIX, describe_error, import_file


class Recipe(Struct, frozen=True):
    """`source` is a module, or the path of a Python file; `name` is what it defines there."""

    source: str
    name: str
    arguments: bytes = b""  # pickled by the process that uses the object, which is trusted

    @property
    def text(self) -> str:
        return f"{self.source}:{self.name}"

    def load(self) -> Any:
        """Imports the class or function."""
        obj: Any = import_file(Path(self.source)) if _is_file(self.source) else importlib.import_module(self.source)
        for part in self.name.split("."):
            obj = getattr(obj, part)
        return obj

    def build(self) -> Any:
        """Creates an object of the class."""
        args, kwargs = pickle.loads(self.arguments) if self.arguments else ((), {})
        return self.load()(*args, **kwargs)


def parse_recipe(text: str, what: str) -> Recipe:
    """Parses what a user writes: module:Class, or path/to/file.py:Class."""
    source, colon, name = text.rpartition(":")
    if not colon or not source or not name:
        raise UsageError(f"{what} {text!r}: expected module:Class or path/to/file.py:Class.")
    if _is_file(source):
        path = user_path(source).resolve()
        if not path.is_file():
            raise UsageError(f"{what} {text!r}: there is no file {source}.")
        source = str(path)
    elif "" not in sys.path:
        sys.path.insert(0, "")  # a module in the working directory, as `python -m` would find it
    recipe = Recipe(source, name)
    try:
        recipe.load()
    except UsageError:
        raise
    except AttributeError as error:
        known = [key for key in vars(error.obj) if not key.startswith("_")] if error.obj is not None else []
        raise UsageError(f"{what}: {source} has no {name!r}{did_you_mean(name, known)}") from None
    except (Exception, SystemExit) as error:
        if (missing := missing_extra(f"{what} {text}", error)) is not None:
            raise missing from None
        raise UsageError(f"{what} {text!r} could not be imported: {describe_error(error)}") from error
    return recipe


def recipe_of(cls: type, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Recipe:
    """The recipe of an imported class."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if "<locals>" in cls.__qualname__:
        raise UsageError(f"{cls.__qualname__} is defined inside a function: a process of its own cannot import it.")
    if file is None:
        raise UsageError(f"{cls.__qualname__} was typed at a prompt: put it into a file, for a process of its own.")
    is_script = cls.__module__ == "__main__" or cls.__module__.startswith(MODULE_PREFIX)
    try:
        arguments = pickle.dumps((args, kwargs or {})) if args or kwargs else b""
    except Exception as error:
        raise UsageError(
            f"{cls.__qualname__} cannot be created in its own process, because the arguments of its constructor "
            f"cannot be sent there: {error}"
        ) from error
    return Recipe(str(Path(file).resolve()) if is_script else cls.__module__, cls.__qualname__, arguments)


def with_arguments(source: str, name: str, /, **kwargs: Any) -> Recipe:
    """The recipe of a class or function that is not imported here."""
    return Recipe(source, name, pickle.dumps(((), kwargs)))


def _is_file(source: str) -> bool:
    return source.endswith(".py")
