"""Plain data between a program and its tests: written as JSON, with a tag where JSON has no such type.

What is no plain data stays where it is; the other side gets a reference to it.
"""

import json
import sys

TAG = "#"
_SIMPLE = frozenset({int, str, float, bool, type(None)})


def dumps(message) -> bytes:
    with _NumbersOfAnySize():
        return json.dumps(message).encode()


def loads(data: bytes):
    with _NumbersOfAnySize():
        return json.loads(data)


class _NumbersOfAnySize:
    """Python refuses to write out very long integers; the program shall meet that limit, its answers shall not."""

    def __enter__(self):
        self._limit = sys.get_int_max_str_digits()
        sys.set_int_max_str_digits(0)

    def __exit__(self, *_):
        sys.set_int_max_str_digits(self._limit)


class Packer:
    """Turns values into what JSON can say. `refer` is asked about everything else, and may raise."""

    def __init__(self, refer):
        self._refer = refer

    def pack(self, value):
        kind = type(value)
        if kind in _SIMPLE:
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

    def _items(self, values):
        if _SIMPLE.issuperset(map(type, values)):
            return list(values)
        return [self.pack(value) for value in values]

    def _mapping(self, values):
        if TAG not in values and all(type(key) is str for key in values):
            return {key: self.pack(value) for key, value in values.items()}
        return {TAG: "dict", "v": [[self.pack(key), self.pack(value)] for key, value in values.items()]}

    def _library(self, value, kind):
        name = f"{kind.__module__}.{kind.__qualname__}"
        if name == "collections.OrderedDict":
            return {TAG: name, "v": self._mapping(dict(value))}
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
            return self._numpy(value, name)
        return self._derived(value)

    def _numpy(self, value, name):
        if name == "numpy.ndarray" and value.dtype.kind in "biufcSU":
            return {TAG: name, "v": [self.pack(value.tolist()), value.dtype.str, list(value.shape)]}
        if hasattr(value, "dtype") and value.dtype.kind in "biufcSU" and hasattr(value, "item"):
            return {TAG: "numpy.scalar", "v": [self.pack(value.item()), value.dtype.str]}
        return self._derived(value)

    def _derived(self, value):
        """A class made from a plain one counts as what it is made from, whatever its methods claim."""
        for base, exact in (
            (bool, bool), (int, int.__int__), (float, float.__float__), (str, str.__str__),
            (tuple, lambda items: (*tuple.__iter__(items),)), (list, lambda items: [*list.__iter__(items)]),
            (dict, lambda items: {key: dict.__getitem__(items, key) for key in dict.__iter__(items)}),
            (set, lambda items: {*set.__iter__(items)}), (frozenset, lambda items: frozenset(frozenset.__iter__(items))),
        ):  # fmt: skip
            if isinstance(value, base):
                exactly = exact(value)
                if type(exactly) is base:
                    return self.pack(exactly)
        return {TAG: "object", "v": self._refer(value)}


class Unpacker:
    """The way back. Nothing that is read here runs anybody's code: it makes plain values, or raises."""

    def __init__(self, resolve):
        self._resolve = resolve

    def unpack(self, value):
        kind = type(value)
        if kind in _SIMPLE:
            return value
        if kind is list:
            return list(value) if _SIMPLE.issuperset(map(type, value)) else [self.unpack(item) for item in value]
        if TAG not in value:
            return {key: self.unpack(item) for key, item in value.items()}
        return self._tagged(value[TAG], value["v"])

    def _tagged(self, tag, value):
        if tag == "tuple":
            return tuple(self.unpack(value))
        if tag == "dict":
            return {self.unpack(key): self.unpack(item) for key, item in value}
        if tag == "set":
            return set(self.unpack(value))
        if tag == "frozenset":
            return frozenset(self.unpack(value))
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
        return self._library(tag, value)

    def _library(self, tag, value):
        module, _, name = tag.partition(".")
        if module == "collections":
            import collections

            if name == "deque":
                return collections.deque(self.unpack(value[0]), value[1])
            return {"OrderedDict": collections.OrderedDict, "Counter": collections.Counter}[name](self.unpack(value))
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
            return {"datetime": datetime.datetime, "date": datetime.date, "time": datetime.time}[name].fromisoformat(
                value
            )
        if module == "numpy":
            import numpy

            if name == "ndarray":
                return numpy.array(self.unpack(value[0]), dtype=value[1]).reshape(value[2])
            return numpy.dtype(value[1]).type(self.unpack(value[0]))
        raise ValueError(f"not plain data: {tag!r}")
