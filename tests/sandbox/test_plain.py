"""Plain data, and the question whether tests leave anything behind."""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.sandbox.inside import plain, purity
from proctor.sandbox.inside.plain import Packer, Unpacker

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.complex_numbers(allow_nan=False)
)
LIBRARY = st.decimals(allow_nan=False) | st.fractions() | st.dates() | st.datetimes() | st.times() | st.timedeltas()
HASHABLE = st.recursive(SCALARS | LIBRARY, lambda inner: st.tuples(inner, inner) | st.frozensets(inner), max_leaves=5)
VALUES: st.SearchStrategy[Any] = st.recursive(
    HASHABLE,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(HASHABLE, inner)
        | st.sets(HASHABLE)
        | st.builds(collections.deque, st.lists(inner), st.none() | st.integers(10, 20))
        | st.builds(collections.OrderedDict, st.dictionaries(st.text(), inner))
    ),
    max_leaves=20,
)


def refuse(value: object) -> Any:
    raise TypeError(f"not plain: {value!r}")


def there_and_back(value: Any) -> Any:
    return Unpacker(refuse).unpack(plain.loads(plain.dumps(Packer(refuse).pack(value))))


def shape(value: Any) -> Any:
    """The types all the way down, in an order that does not matter for sets."""
    if isinstance(value, dict):
        return type(value), sorted(((shape(key), shape(item)) for key, item in value.items()), key=str)
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return type(value), sorted((shape(item) for item in value), key=str)
    return type(value)


@settings(max_examples=50)
@given(VALUES)
def test_plain_data_round_trip(value: Any) -> None:
    back = there_and_back(value)
    assert back == value
    assert shape(back) == shape(value)


def test_nan_round_trip() -> None:
    assert math.isnan(there_and_back(float("nan")))
    assert math.copysign(1, there_and_back(-0.0)) == -1
    assert there_and_back(10**10_000) == 10**10_000


class Liar(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class Shifty(list[int]):
    def __iter__(self) -> Any:
        return iter([1, 2, 3])


Pair = collections.namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    ("value", "counts_as"),
    [
        (Liar(7), 7),
        (Shifty([9]), [9]),
        (Pair(1, 2), (1, 2)),
        (collections.defaultdict(int, a=1), {"a": 1}),
        (True, True),
    ],
)
def test_derived_value_is_packed_as_its_base(value: Any, counts_as: Any) -> None:
    back = there_and_back(value)
    assert back == counts_as
    assert type(back) is type(counts_as)


TAGS = [
    "tuple",
    "dict",
    "set",
    "bytes",
    "complex",
    "range",
    "object",
    "collections.deque",
    "numpy.ndarray",
    "os.system",
]
MESSAGES = st.recursive(
    st.none() | st.integers() | st.text() | st.sampled_from(TAGS),
    lambda inner: st.lists(inner) | st.fixed_dictionaries({"#": st.sampled_from(TAGS), "v": inner}),
)


@given(MESSAGES)
def test_invalid_data_is_refused(message: Any) -> None:
    """Whatever a program sends: nothing is run, and nothing but plain values comes out."""
    try:
        value = Unpacker(refuse).unpack(message)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, ArithmeticError):
        return
    there_and_back(value)


class Nosy:
    """Stands for a reference. Whoever asks it anything would ask the program."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return Nosy
        raise AssertionError(name)

    __iter__ = __len__ = __getitem__ = __float__ = __index__ = lambda self, *_: pytest.fail("it was asked")


REFERENCE = {"#": "object", "v": []}


@pytest.mark.parametrize(
    "message",
    [
        {"#": "tuple", "v": REFERENCE},
        {"#": "set", "v": REFERENCE},
        {"#": "frozenset", "v": REFERENCE},
        {"#": "collections.deque", "v": [REFERENCE, None]},
        {"#": "collections.OrderedDict", "v": REFERENCE},
        {"#": "collections.Counter", "v": REFERENCE},
        {"#": "numpy.ndarray", "v": [REFERENCE, "|u1", [-1]]},
        {"#": "numpy.ndarray", "v": [[[REFERENCE]], "|u1", [-1]]},
        {"#": "numpy.ndarray", "v": [{"#": "tuple", "v": [REFERENCE]}, "|u1", [-1]]},
        {"#": "numpy.ndarray", "v": [[1], "|O", [-1]]},
        {"#": "numpy.scalar", "v": [REFERENCE, "<f8"]},
    ],
)
def test_references_are_not_passed_to_constructors(message: Any) -> None:
    with pytest.raises(ValueError, match="not plain data"):
        Unpacker(Nosy).unpack(message)


@pytest.mark.parametrize(
    "message", [[REFERENCE], {"#": "tuple", "v": [REFERENCE]}, {"#": "dict", "v": [[1, REFERENCE]]}]
)
def test_references_in_containers_stay_references(message: Any) -> None:
    unpacked = Unpacker(Nosy).unpack(message)
    (value,) = unpacked.values() if isinstance(unpacked, dict) else unpacked
    assert type(value) is Nosy


@pytest.mark.parametrize(
    "tests",
    [
        "assert f(1) == 2",
        "import math, random\nfrom collections import Counter\ndef check(g):\n    assert g(random.random()) > 0",
        "METADATA = {'author': 'x'}\nassert all(f(x) for x in [1, 2])",
    ],
)  # fmt: skip
def test_pure_tests_share_a_process(tests: str) -> None:
    assert purity.is_pure(compile(tests, "tests.py", "exec"))


@pytest.mark.parametrize(
    "tests",
    [
        "import sys\nassert f()",
        "import math\nmath.pi = 3",
        "import decimal\ndecimal.getcontext().prec = 3",
        "def check():\n    import os\n    os.chdir('/')",
        "open('x', 'w')",
        "exec('import sys')",
        "f.__class__",
        "setattr(f, 'x', 1)",
        "from os.path import join",
        "(lambda: globals().clear())()",
        "class Box:\n    x = 1\nassert f(Box.x) == 1",
    ],
)
def test_impure_tests_run_in_a_fork(tests: str) -> None:
    assert not purity.is_pure(compile(tests, "tests.py", "exec"))


def test_library_types_round_trip() -> None:
    for value in (
        decimal.Decimal("1.10"),
        fractions.Fraction(2, 6),
        datetime.timedelta(days=1, microseconds=3),
        collections.Counter("abca"),
    ):
        assert repr(there_and_back(value)) == repr(value)


def test_owners_finds_modules_among_many_names() -> None:
    many = "\n".join(f"x{number} = {number}" for number in range(300))
    tests = compile(f"{many}\nassert math.isclose(f(x1), 2)", "tests.py", "exec")
    assert purity.owners(tests, {"math", "f", "x1"}) == {"math"}
