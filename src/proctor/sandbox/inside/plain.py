"""Plain data between a program and its tests: JSON, with tags for other types.

Other objects stay in their process; the other side gets a reference.
"""

from __future__ import annotations

import collections
import copy
import json
import operator
import re
import sys
from collections.abc import Callable
from typing import Any

TAG = "#"
ORIGIN = "origin in the program"
"""Attribute of a class made for a derived value: the object in the program."""
SIMPLE = frozenset({int, str, float, bool, type(None)})
# The dtypes of plain arrays: no objects, times, records or long doubles.
_ARRAYS = re.compile(r"[<>|](b1|[iu][1248]|f[248]|c8|c16|[SU]\d{1,7})")
_IN_ARRAYS = SIMPLE | {complex, bytes}
_PLAIN: tuple[Any, ...] = (
    [],
    (),
    {},
    {}.values(),
    {}.items(),
    set(),
    "",
    "é",
    b"",
    bytearray(),
    range(0),
    range(1 << 64),
)
ITERATORS = frozenset(map(type, map(iter, (*_PLAIN, collections.deque())))) | {type(reversed([])), reversed}
_VIEWS: dict[str, Callable[[Any], Any]] = {"dict_keys": dict.keys, "dict_values": dict.values, "dict_items": dict.items}
_LONGEST_ITERATOR = 1 << 20


def dumps(message: Any) -> bytes:
    with _UnlimitedIntegers():
        return json.dumps(message).encode()


def loads(data: bytes) -> Any:
    with _UnlimitedIntegers():
        return json.loads(data)


def is_immutable(value: Any) -> bool:
    """Whether a value is a simple one, or a tuple of simple ones."""
    kind = type(value)
    return kind in SIMPLE or (kind is tuple and SIMPLE.issuperset(map(type, value)))


class _UnlimitedIntegers:
    """Lifts the limit on digits of integers for messages, not for the program."""

    def __enter__(self) -> None:
        self._limit = sys.get_int_max_str_digits()
        sys.set_int_max_str_digits(0)

    def __exit__(self, *_: object) -> None:
        sys.set_int_max_str_digits(self._limit)


_COPY_AS_BASE: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
    tuple: lambda items: (*tuple.__iter__(items),),
    list: lambda items: [*list.__iter__(items)],
    dict: lambda items: {key: dict.__getitem__(items, key) for key in dict.__iter__(items)},
    set: lambda items: {*set.__iter__(items)},
    frozenset: lambda items: frozenset({*frozenset.__iter__(items)}),
}


class Packer:
    """Packs values as JSON; calls `refer`, which may raise, for everything else."""

    def __init__(self, refer: Callable[[Any], Any], *, names_derived: bool = False) -> None:
        self._refer = refer
        self._names_derived = names_derived

    def pack(self, value: Any) -> Any:
        kind = type(value)
        if kind in SIMPLE:
            return value
        if kind is list:
            return self._items(value)
        if kind is tuple:
            return {TAG: "tuple", "v": self._items(value)}
        if kind is dict:
            return self._mapping(value)
        if kind is set or kind is frozenset:
            return {TAG: kind.__name__, "v": self._items(value)}
        if kind is bytes or kind is bytearray:
            return {TAG: kind.__name__, "v": value.hex()}
        if kind is complex:
            return {TAG: "complex", "v": [value.real, value.imag]}
        if kind is range:
            return {TAG: "range", "v": [value.start, value.stop, value.step]}
        return self._library(value, kind)

    def _items(self, values: Any) -> list[Any]:
        if SIMPLE.issuperset(map(type, values)):
            return list(values)
        return [self.pack(value) for value in values]

    def _mapping(self, values: dict[Any, Any]) -> dict[str, Any]:
        if TAG not in values and all(type(key) is str for key in values):
            return {key: self.pack(value) for key, value in values.items()}
        return {TAG: "dict", "v": self._pairs(values)}

    def _pairs(self, values: dict[Any, Any]) -> list[Any]:
        return [[self.pack(key), self.pack(value)] for key, value in values.items()]

    def _library(self, value: Any, kind: type) -> Any:
        name = f"{kind.__module__}.{kind.__qualname__}"
        if name == "collections.OrderedDict":
            return {TAG: name, "v": {TAG: "dict", "v": self._pairs(value)}}
        if name == "collections.Counter":
            return {TAG: name, "v": self._mapping(dict(value))}
        if name == "collections.defaultdict":
            return self._mapping(dict(value))
        if name == "collections.deque":
            return {TAG: name, "v": [self._items(list(value)), value.maxlen]}
        if name in ("decimal.Decimal", "fractions.Fraction"):
            return {TAG: name, "v": str(value)}
        if name in ("datetime.datetime", "datetime.date", "datetime.time") and getattr(value, "tzinfo", None) is None:
            return {TAG: name, "v": value.isoformat()}
        if name == "datetime.timedelta":
            return {TAG: name, "v": [value.days, value.seconds, value.microseconds]}
        if kind.__module__ == "numpy":
            return self._numpy(value)
        return self._derived(value)

    def _numpy(self, value: Any) -> Any:
        import numpy

        if isinstance(value, numpy.ndarray) and _ARRAYS.fullmatch(value.dtype.str):
            content = self.pack(numpy.ndarray.tolist(value))
            return {TAG: "numpy.ndarray", "v": [content, value.dtype.str, list(value.shape)]}
        if isinstance(value, numpy.generic) and _ARRAYS.fullmatch(value.dtype.str):
            return {TAG: "numpy.scalar", "v": [self.pack(value.item()), value.dtype.str]}
        return self._derived(value)

    def _derived(self, value: Any) -> Any:
        """Packs a value of a derived class as its base, whatever its methods claim."""
        if (origin := vars(type(value)).get(ORIGIN)) is not None:
            return self._refer(origin)
        packed = self.content(value)
        if packed is None:
            return self._refer(value)
        return {TAG: "derived", "v": [packed, self._refer(value)["v"]]} if self._names_derived else packed

    def content(self, value: Any) -> Any:
        """The packed content of a value of a derived class, None for others."""
        for base, exactly in _COPY_AS_BASE.items():
            if isinstance(value, base):
                return self.pack(exactly(value))
        return None

    def passing(self, value: Any) -> dict[str, Any] | None:
        """Packs an iterator over plain data or a dict view, None for anything else."""
        if type(value) in ITERATORS:
            if operator.length_hint(value) > _LONGEST_ITERATOR:
                raise TypeError("An iterator with more than 2**20 values cannot be passed to the program.")
            return {TAG: "iterator", "v": self._items(list(copy.copy(value)))}
        for name in _VIEWS:
            if isinstance(value, type(_VIEWS[name]({}))):
                return {TAG: name, "v": self._mapping(dict(value.mapping))}
        return None


def _checked(value: Any, is_plain: bool) -> Any:
    if not is_plain:
        raise ValueError(f"not plain data: {type(value).__name__}")
    return value


class Unpacker:
    """Unpacks plain values, or raises; runs no code of the program.

    It makes nothing that `Packer` does not accept: otherwise an answer that the tests pass
    on would decide where they run. It passes references to no constructor, because the
    program would answer its calls.
    """

    def __init__(self, resolve: Callable[..., Any], derive: Callable[..., Any] | None = None) -> None:
        self._resolve = resolve
        self._derive = derive

    def unpack(self, value: Any) -> Any:
        kind = type(value)
        if kind in SIMPLE:
            return value
        if kind is list:
            return list(value) if SIMPLE.issuperset(map(type, value)) else [self.unpack(item) for item in value]
        if TAG not in value:
            return {key: self.unpack(item) for key, item in value.items()}
        return self._tagged(value[TAG], value["v"])

    def _tagged(self, tag: str, value: Any) -> Any:
        if tag == "tuple":
            return tuple(self._exactly(list, value))
        if tag == "dict":
            return {self.unpack(key): self.unpack(item) for key, item in value}
        if tag == "set":
            return set(self._exactly(list, value))
        if tag == "frozenset":
            return frozenset(self._exactly(list, value))
        if tag == "bytes":
            return bytes.fromhex(value)
        if tag == "bytearray":
            return bytearray.fromhex(value)
        if tag == "complex":
            return complex(*value)
        if tag == "range":
            return range(*value)
        if tag == "object":
            return self._resolve(*value)
        if tag == "derived" and self._derive is not None:
            content = self.unpack(value[0])
            return self._derive(_checked(content, type(content) in _COPY_AS_BASE), *value[1])
        if tag == "iterator":
            return iter(self._exactly(list, value))
        if tag in _VIEWS:
            return _VIEWS[tag](self._exactly(dict, value))
        return self._library(tag, value)

    def _library(self, tag: str, value: Any) -> Any:
        module, _, name = tag.partition(".")
        if module == "collections":
            if name == "deque":
                return collections.deque(self._exactly(list, value[0]), value[1])
            kind = {"OrderedDict": collections.OrderedDict, "Counter": collections.Counter}[name]
            return kind(self._exactly(dict, value))
        if module == "decimal":
            import decimal

            return decimal.Decimal(value)
        if module == "fractions":
            import fractions

            return fractions.Fraction(value)
        if module == "datetime":
            import datetime

            if name == "timedelta":
                return datetime.timedelta(*value)
            kinds: dict[str, Any] = {"datetime": datetime.datetime, "date": datetime.date, "time": datetime.time}
            moment = kinds[name].fromisoformat(value)
            return _checked(moment, getattr(moment, "tzinfo", None) is None)
        if module == "numpy":
            import numpy

            _checked(value[1], _ARRAYS.fullmatch(value[1]) is not None)
            if name == "ndarray":
                return numpy.array(self._of_array(value[0]), dtype=value[1]).reshape(value[2])
            return numpy.dtype(value[1]).type(self._of_array(value[0]))
        raise ValueError(f"not plain data: {tag!r}")

    def _exactly(self, kind: type, value: Any) -> Any:
        unpacked = self.unpack(value)
        return _checked(unpacked, type(unpacked) is kind)

    def _of_array(self, value: Any) -> Any:
        if type(value) is list:
            return value if SIMPLE.issuperset(map(type, value)) else [self._of_array(item) for item in value]
        unpacked = self.unpack(value)
        return _checked(unpacked, type(unpacked) in _IN_ARRAYS)
