"""Programs that go for their tests, in every language: what passes wrong expectations, too, has not passed."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_benchmark_languages import MULTIPLE_ROWS, PACK_ROWS, of_completion, task

from conftest import RunInLanguages
from helpers import tampering
from helpers.toolchains import marks, needs_language
from proctor.code import TASK_REGISTRY, Task
from proctor.code.tasks.humanevalpack import LANGUAGES as PACK_LANGUAGES
from proctor.code.tasks.multiple import LANGUAGES as MULTIPLE_LANGUAGES
from proctor.code.wrong_tests import defined_in, with_wrong_expectations
from proctor.core.task import create_task
from proctor.integrations.bigcode.code_eval import program_of
from proctor.sandbox import Limits, Outcome, Program

LIMITS = Limits(seconds=15.0)
STARTERS = [name for name in TASK_REGISTRY if name.startswith("starter-")]
# Of the starter set, problems whose tests are loops or tables, of which no others can be made.
WITHOUT_CONTROL = {
    *(f"{name}/cpp" for name in ("fold_pages", "seat_name", "split_bill", "subtract_ranges", "cable_cuts")),
    *("shift_clock/go", "fold_pages/go", "check_digit/lua", "check_digit/perl"),
}


def assert_only_the_first_passes(run: RunInLanguages, programs: dict[str, Program]) -> None:
    needs_language(programs["reference"].language, libraries=True)
    verdicts = dict(zip(programs, run(list(programs.values()), LIMITS), strict=True))
    assert verdicts["reference"].passed, verdicts["reference"]
    assert [kind for kind, verdict in verdicts.items() if verdict.passed] == ["reference"]
    assert [kind for kind, verdict in verdicts.items() if verdict.outcome is Outcome.ERROR] == []


@pytest.mark.parametrize(
    "language", [pytest.param(name, marks=marks(MULTIPLE_LANGUAGES[name])) for name in tampering.MULTIPLE]
)
def test_multiple(language: str, run_in_languages: RunInLanguages, tmp_path: Path) -> None:
    row = MULTIPLE_ROWS[language]
    multiple = task(f"multiple-{language}", row, tmp_path)
    solution = multiple.solution(row)
    assert solution is not None
    begun = f"{multiple.get_prompt(row)}{solution[: len(solution) - len(solution.lstrip(chr(10)))]}"
    hostile = {kind: multiple.program(row, begun + answer) for kind, answer in tampering.MULTIPLE[language].items()}
    assert all(program.control for program in hostile.values())
    assert_only_the_first_passes(run_in_languages, {"reference": of_completion(multiple, solution), **hostile})


@pytest.mark.parametrize(
    "language", [pytest.param(name, marks=marks(PACK_LANGUAGES[name][1])) for name in tampering.PACK]
)
def test_humanevalpack(language: str, run_in_languages: RunInLanguages, tmp_path: Path) -> None:
    row = PACK_ROWS[language]
    pack = task(f"humanevalfixtests-{language}", row, tmp_path)
    begun = f"{row['declaration'].rstrip()}\n"
    hostile = {kind: pack.program(row, begun + answer) for kind, answer in tampering.PACK[language].items()}
    assert_only_the_first_passes(
        run_in_languages, {"reference": of_completion(pack, f"\n{row['canonical_solution']}"), **hostile}
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTERS)
def test_right_answers_fail_other_expectations(name: str, run_in_languages: RunInLanguages) -> None:
    starter = create_task(TASK_REGISTRY[name], f"code/{name}", {})
    assert isinstance(starter, Task)
    needs_language(starter.language)
    programs = {
        row["task_id"]: starter.program(row, f"{row['prompt']}{row['canonical_solution']}") for row in starter.rows()
    }
    verdicts = run_in_languages(list(programs.values()), LIMITS)
    assert [verdict for verdict in verdicts if not verdict.passed] == []
    without = {problem.removeprefix("starter/") for problem, program in programs.items() if not program.control}
    assert without == {problem for problem in WITHOUT_CONTROL if problem.endswith(f"/{starter.language}")}


def test_what_a_file_of_another_harness_hands_over_is_run_against_other_expectations_too(
    run_in_languages: RunInLanguages,
) -> None:
    tests = "if (twice(2) != 4) exit(1);\n"
    wrong = "sub twice { return 3; }\nBEGIN { *CORE::GLOBAL::exit = sub { 1 }; }\n"
    checks = "\n".join(f"is_number(twice({n}), {2 * n});" for n in (1, 2, 3))
    helper = 'sub is_number { my ($a, $b) = @_; if ($a != $b) { die "no" } }\n'
    right = program_of("sub twice { return 2 * $_[0]; }", f"{helper}{checks}\nprint 1;\n", "perl")
    faked = program_of(f"{wrong}$SIG{{__DIE__}} = sub {{ 1 }};", f"{helper}{checks}\n", "perl")
    assert right.control
    assert [verdict.passed for verdict in run_in_languages([right, faked], LIMITS)] == [True, False]
    assert tests not in faked.source


@pytest.mark.parametrize(
    "tests",
    [
        'assert.equal(f(1), 4, "first");\nassert.equal(f(2), 4, "second");',
        'assert(f(7), "7 is prime");\nassert(f(11), "11 is prime");',
        "assert f(1) == 2.0\nassert f(2) == 2",
        "assert f(1) == 2  # case 1\nassert f(2) == 2  # case 2",
        "check(f(1) == 4,\nf(2) == 4);",
        "assert set(f(1)) == {1, 2}\nassert set(f(2)) == {2, 1}",
        "assert f(1) == 4",
        "assert(f(3) > 2);\nassert(f(5) > 4);",
        "assert(f(3)>=2);\nassert(f(5)>=4);",
        "console.log(f(3) === 2);\nconsole.log(f(5) === 4);",
        "assert f(3) != 2\nassert f(5) != 4",
        "assert(!(f(3) == 2));\nassert(!(f(5) == 4));",
        "if (f(3) == 2) throw new Error();\nif (f(5) == 4) throw new Error();",
        "expect(f(3)).toBeGreaterThan(2);\nexpect(f(5)).toBeGreaterThan(4);",
        "expect(f(3)).not.toBe(2);\nexpect(f(5)).not.toBe(4);",
        "assert.notEqual(f(3), 2);\nassert.notEqual(f(5), 4);",
        "assert_ne!(f(3), 2);\nassert_ne!(f(5), 4);",
        "assert.ok(f(3).includes(2));\nassert.ok(f(5).includes(4));",
        "assert(Math.abs(f(3) - 2) < 1);\nassert(Math.abs(f(5) - 4) < 1);",
        "for x in range(10):\n    assert f(x) == g(x)",
    ],
)
def test_expectations_that_may_be_the_same_are_not_exchanged(tests: str) -> None:
    assert with_wrong_expectations(tests, "javascript", ["f"]) == ""


@pytest.mark.parametrize(
    ("language", "tests", "wrong"),
    [
        ("javascript", 'is(f(")"), 1);\nis(f("b", [2]), -1);', 'is(f("b", [2]), 1);\nis(f(")"), -1);'),
        ("java", "assert(s.f(1) == 2);\nassert(s.f(3) == 4);", "assert(s.f(3) == 2);\nassert(s.f(1) == 4);"),
        ("racket", "(check (f 1) 2)\n(check (f (g 3)) 4)", "(check (f (g 3)) 2)\n(check (f 1) 4)"),
        ("ocaml", "assert ((f [1]) = (3));\nassert ((f []) = (5))", "assert ((f []) = (3));\nassert ((f [1]) = (5))"),
        ("rust", 'assert_eq!(f(1), "b");\nassert_eq!(f(2), "d");', 'assert_eq!(f(2), "b");\nassert_eq!(f(1), "d");'),
        ("php", "if (f(1) != 2) die();\nif (f(3) != 4) die();", "if (f(3) != 2) die();\nif (f(1) != 4) die();"),
        (
            "java",
            "assert(f(1).equals((new ArrayList<Long>(of(2l)))));\nassert(f(3).equals((new ArrayList<Long>(of(4l)))));",
            "assert(f(3).equals((new ArrayList<Long>(of(2l)))));\nassert(f(1).equals((new ArrayList<Long>(of(4l)))));",
        ),
        ("r", "if(!identical(f(1), 2)){quit('no', 1)}\nif(!identical(f(3), 4)){quit('no', 1)}",
         "if(!identical(f(3), 2)){quit('no', 1)}\nif(!identical(f(1), 4)){quit('no', 1)}"),
        ("go", '{f(1), "x"},\n{f(2), "y"},', ""),
    ],
)  # fmt: skip
def test_calls_are_exchanged_between_expectations(language: str, tests: str, wrong: str) -> None:
    assert with_wrong_expectations(tests, language, ["f"]) == wrong


def test_functions_of_a_source_that_tests_call_are_found() -> None:
    source = "static int helper(int x) {\n}\nlet twice = (x) => 2 * x;\nfn thrice(x: u8) -> u8 {\n}\ndef unused():\n"
    assert defined_in(source, "check(twice(1), 2); check(thrice(1)); helper(3)") == {"twice", "thrice", "helper"}
