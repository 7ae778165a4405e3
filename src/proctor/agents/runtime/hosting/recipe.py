"""How an object is made again in another process: where its class is, and what its constructor was given."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct

from proctor.core.config import user_path
from proctor.core.errors import UsageError, did_you_mean
from proctor.core.loading import PREFIX, import_file, said_where


class Recipe(Struct, frozen=True):
    """`place` is a module, or the path of a Python file; `name` is what it defines there."""

    place: str
    name: str
    arguments: bytes = b""  # pickled: they come from the process that asks, never from the one that is asked

    @property
    def text(self) -> str:
        return f"{self.place}:{self.name}"

    def load(self) -> Any:
        """The class or function itself."""
        found: Any = import_file(Path(self.place)) if _is_file(self.place) else importlib.import_module(self.place)
        for part in self.name.split("."):
            found = getattr(found, part)
        return found

    def build(self) -> Any:
        """A new object of the class."""
        args, kwargs = pickle.loads(self.arguments) if self.arguments else ((), {})
        return self.load()(*args, **kwargs)


def parse_recipe(text: str, what: str) -> Recipe:
    """From what a user writes: module:Class, or path/to/file.py:Class."""
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name:
        raise UsageError(f"{what} {text!r}: expected module:Class or path/to/file.py:Class.")
    if _is_file(place):
        path = user_path(place).resolve()
        if not path.is_file():
            raise UsageError(f"{what} {text!r}: there is no file {place}.")
        place = str(path)
    elif "" not in sys.path:
        sys.path.insert(0, "")  # a module in the working directory, as `python -m` would find it
    recipe = Recipe(place, name)
    try:
        recipe.load()
    except UsageError:
        raise
    except AttributeError as error:
        known = [key for key in vars(error.obj) if not key.startswith("_")] if error.obj is not None else []
        raise UsageError(f"{what}: {place} has no {name!r}{did_you_mean(name, known)}") from None
    except (Exception, SystemExit) as error:
        raise UsageError(f"{what} {text!r} could not be imported: {said_where(error)}") from error
    return recipe


def recipe_of(made: type, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Recipe:
    """For a class at hand."""
    file = getattr(sys.modules.get(made.__module__), "__file__", None)
    if "<locals>" in made.__qualname__:
        raise UsageError(f"{made.__qualname__} is defined inside a function: a process of its own cannot import it.")
    if file is None:
        raise UsageError(f"{made.__qualname__} was typed at a prompt: put it into a file, for a process of its own.")
    is_script = made.__module__ == "__main__" or made.__module__.startswith(PREFIX)
    try:
        arguments = pickle.dumps((args, kwargs or {})) if args or kwargs else b""
    except Exception as error:
        raise UsageError(
            f"{made.__qualname__} cannot be made again in a process of its own, because what its constructor was given "
            f"cannot be sent there: {error}"
        ) from error
    return Recipe(str(Path(file).resolve()) if is_script else made.__module__, made.__qualname__, arguments)


def with_arguments(place: str, name: str, /, **kwargs: Any) -> Recipe:
    """For a class or function that need not be imported here."""
    return Recipe(place, name, pickle.dumps(((), kwargs)))


def _is_file(place: str) -> bool:
    return place.endswith(".py")
