"""Action spaces as plain data, for other processes and for prompts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from numpy.random import Generator

MOST_NUMBERS = 16  # of an action that a language model can choose
PUNCTUATION = " \t\r\n.,;:!'\"`*()[]<>"


class IllegalActionError(Exception):
    """The value is not an action of this environment."""


class Choice(Struct, frozen=True, tag="choice"):
    """One of n actions, which may have names."""

    n: int
    start: int = 0
    names: tuple[str, ...] = ()

    @property
    def first(self) -> int:
        return self.start

    def take(self, action: Any) -> int:
        """Validates an action and converts it for the environment."""
        number = action if type(action) is int else _whole(action)
        if not 0 <= number - self.start < self.n:
            raise IllegalActionError(f"{action!r} is none of the actions {self.start} to {self.start + self.n - 1}")
        return number

    def draw(self, generator: Generator) -> int:
        return self.start + int(generator.integers(self.n))

    def words(self) -> tuple[str, ...]:
        """All actions, as a language model may write them."""
        return self.names or tuple(str(number) for number in range(self.start, self.start + self.n))

    def telling(self) -> str:
        if not self.names:
            return f"a number from {self.start} to {self.start + self.n - 1}"
        numbered = (f"{number} ({name})" for number, name in enumerate(self.names, self.start))
        return f"one of these, by its number or its name: {', '.join(numbered)}"

    def read(self, text: str) -> int | None:
        word = text.strip(PUNCTUATION).casefold()
        folded = [name.casefold() for name in self.names]
        if folded.count(word) == 1:
            return self.start + folded.index(word)
        if word.removeprefix("-").isascii() and word.removeprefix("-").isdigit() and len(word) < 20:
            number = int(word)
            return number if 0 <= number - self.start < self.n else None
        return None


class Choices(Struct, frozen=True, tag="choices"):
    """Several choices at once, as an array of whole numbers."""

    counts: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str

    @property
    def first(self) -> list[int]:
        return [0] * len(self.counts)

    def take(self, action: Any) -> Any:
        array = _array(action, self.shape, self.dtype)
        if any(not 0 <= number < count for number, count in zip(array.flat, self.counts, strict=True)):
            raise IllegalActionError(f"{action!r} is out of the range of {self.telling()}")
        return array

    def draw(self, generator: Generator) -> Any:
        return self.take([int(generator.integers(count)) for count in self.counts])

    def telling(self) -> str:
        ranges = ", ".join(f"0 to {count - 1}" for count in self.counts)
        return f"{len(self.counts)} whole numbers with commas between them, in the ranges {ranges}"

    def read(self, text: str) -> list[int] | None:
        numbers = _numbers(text, len(self.counts))
        if numbers is None or any(not n.is_integer() for n in numbers):
            return None
        whole = [int(n) for n in numbers]
        return whole if all(0 <= n < count for n, count in zip(whole, self.counts, strict=True)) else None


class Numbers(Struct, frozen=True, tag="numbers"):
    """An array of numbers, each between its bounds, which may be infinite."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: tuple[int, ...]
    dtype: str

    @property
    def first(self) -> list[float]:
        """Nothing at all, or what is nearest to it."""
        return [min(max(0.0, low), high) for low, high in zip(self.low, self.high, strict=True)]

    def take(self, action: Any) -> Any:
        array = _array(action, self.shape, self.dtype)
        # As the environment's own kind of number: the nearest to a bound that this kind cannot hold is within.
        if any(not low <= number <= high for number, low, high in zip(array.flat, self.low, self.high, strict=True)):
            raise IllegalActionError(f"{action!r} is out of the range of {self.telling()}")
        return array

    def draw(self, generator: Generator) -> Any:
        pairs = zip(self.low, self.high, strict=True)
        return self.take([_between(low, high, generator, "f" in self.dtype) for low, high in pairs])

    def telling(self) -> str:
        ranges = ", ".join(f"{low:g} to {high:g}" for low, high in zip(self.low, self.high, strict=True))
        return f"{len(self.low)} number{'s' * (len(self.low) > 1)}, with commas between, in the ranges {ranges}"

    def read(self, text: str) -> list[float] | None:
        numbers = _numbers(text, len(self.low))
        if numbers is None or ("f" not in self.dtype and any(not n.is_integer() for n in numbers)):
            return None
        bounds = zip(numbers, self.low, self.high, strict=True)
        return numbers if all(low <= number <= high for number, low, high in bounds) else None


class Several(Struct, frozen=True, tag="several"):
    """A dictionary of actions, or without keys a tuple of them."""

    parts: tuple[Space, ...]
    keys: tuple[str, ...] | None = None

    @property
    def first(self) -> Any:
        return self._built([None if isinstance(part, Anything) else part.first for part in self.parts])

    def take(self, action: Any) -> Any:
        try:
            given = list(action) if self.keys is None else [action[key] for key in self.keys]
            return self._built([part.take(value) for part, value in zip(self.parts, given, strict=True)])
        except (TypeError, KeyError, ValueError):
            raise IllegalActionError(f"{action!r} does not have the parts {self.keys or len(self.parts)}") from None

    def draw(self, generator: Generator) -> Any:
        return self._built([part.draw(generator) for part in self.parts])

    def _built(self, values: list[Any]) -> Any:
        return tuple(values) if self.keys is None else dict(zip(self.keys, values, strict=True))


class Anything(Struct, frozen=True, tag="anything"):
    """An unknown kind of action that can be serialized."""

    about: str

    @property
    def first(self) -> Any:
        raise IllegalActionError(f"{self.about} has no known action")

    def take(self, action: Any) -> Any:
        msgspec.json.encode(plain(action))
        return action

    def draw(self, generator: Generator) -> Any:
        raise IllegalActionError(f"no action can be drawn from {self.about}")


Space = Choice | Choices | Numbers | Several | Anything
Sayable = Choice | Choices | Numbers  # what can be written in a line of text


def described(space: Any, names: tuple[str, ...] = ()) -> Space:
    """From any object that looks like a space of Gymnasium."""
    dtype = str(getattr(space, "dtype", ""))
    if hasattr(space, "nvec"):
        counts = tuple(int(count) for count in space.nvec.flat)
        return Choices(counts, tuple(space.nvec.shape), dtype)
    if hasattr(space, "low") and hasattr(space, "high"):
        low, high = (tuple(float(bound) for bound in bounds.flat) for bounds in (space.low, space.high))
        return Numbers(low, high, tuple(space.shape), dtype)
    if hasattr(space, "n"):
        shape = tuple(getattr(space, "shape", None) or ())
        if shape:  # so many switches
            return Choices((2,) * math.prod(shape), shape, dtype)
        return Choice(int(space.n), int(getattr(space, "start", 0)), names if len(names) == space.n else ())
    parts = getattr(space, "spaces", None)
    if isinstance(parts, dict):
        return Several(tuple(described(part) for part in parts.values()), tuple(parts))
    if isinstance(parts, tuple | list):
        return Several(tuple(described(part) for part in parts))
    return Anything(type(space).__name__)


def is_sayable(space: Space) -> bool:
    """Whether a language model can be asked for such an action."""
    if isinstance(space, Choices):
        return len(space.counts) <= MOST_NUMBERS
    return isinstance(space, Choice) or (isinstance(space, Numbers) and len(space.low) <= MOST_NUMBERS)


def plain(action: Any) -> Any:
    """The action as JSON can hold it."""
    if type(action) is int:
        return action
    if isinstance(action, dict):
        return {key: plain(value) for key, value in action.items()}
    if isinstance(action, list | tuple):
        return [plain(value) for value in action]
    return action.tolist() if hasattr(action, "tolist") else action


def _whole(action: Any) -> int:
    try:
        number = int(action)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or number != action or isinstance(action, str):
        raise IllegalActionError(f"{action!r} is not a whole number")
    return number


def _array(action: Any, shape: tuple[int, ...], dtype: str) -> Any:
    import numpy as np

    try:
        given = np.asarray(action)
        if given.dtype.kind not in "biuf" or not np.isfinite(given).all():
            raise TypeError
        with np.errstate(all="ignore"):
            array = given.astype(dtype).reshape(shape)
    except (TypeError, ValueError):
        raise IllegalActionError(f"{action!r} is not an array of numbers of shape {shape}") from None
    if not np.isfinite(array).all() or ("f" not in dtype and not np.array_equal(array, given.reshape(shape))):
        raise IllegalActionError(f"{action!r} has numbers that {dtype} cannot hold")
    return array


def _numbers(text: str, count: int) -> list[float] | None:
    words = text.replace(",", " ").replace("[", " ").replace("]", " ").split()
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return None
    return numbers if len(numbers) == count and all(map(math.isfinite, numbers)) else None


def _between(low: float, high: float, generator: Generator, broken: bool) -> float:
    if math.isinf(low) and math.isinf(high):
        drawn = float(generator.normal())
    elif math.isinf(high):
        drawn = low + float(generator.exponential())
    elif math.isinf(low):
        drawn = high - float(generator.exponential())
    else:
        return float(generator.uniform(low, high)) if broken else float(generator.integers(int(low), int(high) + 1))
    return drawn if broken else float(math.floor(drawn))
