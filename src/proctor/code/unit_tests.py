"""Runs a class of unit tests beside the program that it tests, and looks whether that has tampered with the tests.

This file is sent to the sandbox as text and runs there, in the process of the program. Two tests that must fail run
among the others: a program that has made failures vanish, has made them vanish too.
"""

from __future__ import annotations

import functools
import os
import sys
import unittest
from collections.abc import Callable, Iterator
from typing import Any

_LOOKED_AT = 10_000  # values of an answer
# Calls of assertions that fail.
_WRONG: dict[str, tuple[Any, ...]] = {
    "assertEqual": (1, 2),
    "assertNotEqual": (1, 1),
    "assertTrue": (False,),
    "assertFalse": (True,),
    "assertIs": (1, 2),
    "assertIsNot": (None, None),
    "assertIsNone": (0,),
    "assertIsNotNone": (None,),
    "assertIn": (1, []),
    "assertNotIn": (1, [1]),
    "assertIsInstance": (1, str),
    "assertNotIsInstance": (1, int),
    "assertAlmostEqual": (1, 2),
    "assertNotAlmostEqual": (1, 1),
    "assertGreater": (1, 2),
    "assertGreaterEqual": (1, 2),
    "assertLess": (2, 1),
    "assertLessEqual": (2, 1),
    "assertRegex": ("a", "b"),
    "assertNotRegex": ("a", "a"),
    "assertCountEqual": ([1], [2]),
    "assertSequenceEqual": ([1], [2]),
    "assertMultiLineEqual": ("a", "b"),
    "assertListEqual": ([1], [2]),
    "assertTupleEqual": ((1,), (2,)),
    "assertSetEqual": ({1}, {2}),
    "assertDictEqual": ({1: 1}, {1: 2}),
    "assertRaises": (ValueError, int),
    "fail": (),
}
_WRONG_ARRAYS = (
    "assert_equal",
    "assert_array_equal",
    "assert_almost_equal",
    "assert_array_almost_equal",
    "assert_allclose",
)


def run(tests: type[unittest.TestCase], token: str) -> None:
    """Raises where a test fails. The token shows that all of them were run."""
    spared: list[str] = []

    def must_fail(case: unittest.TestCase) -> None:
        spared.extend(_spared(case))
        case.fail(token)

    def must_raise(case: unittest.TestCase) -> None:
        raise RuntimeError(token)

    # Named and made like the tests, so that whatever was done to those is done to them.
    controls = {f"test_case_{token}_fails": must_fail, f"test_case_{token}_raises": must_raise}
    kind: Any = type(tests)
    whole = kind(tests.__name__, (tests,), {"__module__": tests.__module__, **controls})
    result = unittest.TestResult()
    unittest.TestLoader().loadTestsFromTestCase(whole).run(result)
    faults = [(case.id().rpartition(".")[2], told) for case, told in result.failures + result.errors]
    real = [(name, told) for name, told in faults if name not in controls]
    if real:
        raise AssertionError("{}: {}".format(*real[0]))
    if spared or {name for name, _ in faults} != set(controls):
        raise AssertionError(f"The program has tampered with the tests: {', '.join(spared) or 'failures vanish'}.")
    if result.testsRun <= len(controls):
        raise AssertionError("There is no test.")
    os.write(1, f"\n{token}\n".encode())


def _spared(case: unittest.TestCase) -> Iterator[str]:
    """The assertions that do not fail where they must."""
    calls: dict[str, Callable[[], Any]] = {
        name: functools.partial(getattr(case, name), *arguments) for name, arguments in _WRONG.items()
    }
    if "numpy.testing" in sys.modules:
        calls |= {f"numpy.{name}": functools.partial(_array, name) for name in _WRONG_ARRAYS}
    if "pandas.testing" in sys.modules:
        calls |= {"pandas.assert_frame_equal": _frame, "pandas.assert_series_equal": _series}
    for name, call in calls.items():
        try:
            call()
        except AssertionError:
            continue
        yield name


def _array(name: str) -> None:
    getattr(sys.modules["numpy.testing"], name)([1.0], [2.0])


def _frame() -> None:
    pandas = sys.modules["pandas"]
    pandas.testing.assert_frame_equal(pandas.DataFrame({"a": [1]}), pandas.DataFrame({"a": [2]}))


def _series() -> None:
    pandas = sys.modules["pandas"]
    pandas.testing.assert_series_equal(pandas.Series([1]), pandas.Series([2]))


def watched(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which may not answer with what equals everything."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        answer = function(*arguments, **options)
        if any(_equals_anything(value) for value in _values(answer)):
            raise AssertionError("The answer equals whatever it is compared with.")
        return answer

    return call


def _values(answer: Any) -> Iterator[Any]:
    """The answer, and what is in it where it is a plain container."""
    waiting = [answer]
    for _ in range(_LOOKED_AT):
        if not waiting:
            return
        value = waiting.pop()
        yield value
        if type(value) in (list, tuple, set, frozenset):
            waiting += value
        elif type(value) is dict:
            waiting += [*value, *value.values()]


def _equals_anything(value: Any) -> bool:
    if type(value) in (int, float, complex, str, bytes, bool, type(None), list, tuple, dict, set, frozenset):
        return False
    try:
        return (value == object()) is True
    except Exception:  # it cannot be compared, which it says itself
        return False
