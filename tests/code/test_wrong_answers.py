"""In every language and every benchmark that runs programs, the reference passes and nothing that only looks right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_benchmark_languages import MULTIPLE_ROWS, PACK_ROWS, multiple_programs, of_completion, task
from test_code_conformance import rows_of, settings_of

from conftest import RunInLanguages
from helpers import wrong_answers
from helpers.code_tasks import rows, write_rows
from helpers.toolchains import marks, needs_language
from proctor.code import TASK_REGISTRY, Task
from proctor.code.tasks.humanevalpack import LANGUAGES as PACK_LANGUAGES
from proctor.code.tasks.multiple import LANGUAGES as MULTIPLE_LANGUAGES
from proctor.core.task import create_task
from proctor.sandbox import Limits, Outcome, Program, Verdict

LIMITS = Limits(seconds=15.0)
PACK_KINDS = ("humanevalfixtests", "humanevalfixdocs", "humanevalexplainsynthesize", "humanevalsynthesize")


def judge_all(run: RunInLanguages, programs: dict[str, Program]) -> dict[str, Verdict]:
    needs_language(programs["reference"].language, libraries=True)
    return dict(zip(programs, run(list(programs.values()), LIMITS), strict=True))


def assert_only_the_reference_passes(verdicts: dict[str, Verdict]) -> None:
    assert verdicts["reference"].passed, verdicts["reference"]
    assert {kind: verdict for kind, verdict in verdicts.items() if verdict.passed} == {
        "reference": verdicts["reference"]
    }
    errors = {kind: verdict for kind, verdict in verdicts.items() if verdict.outcome is Outcome.ERROR}
    assert errors == {}


@pytest.mark.parametrize(
    "language", [pytest.param(name, marks=marks(runs_as)) for name, runs_as in MULTIPLE_LANGUAGES.items()]
)
def test_multiple(language: str, run_in_languages: RunInLanguages, tmp_path: Path) -> None:
    multiple = task(f"multiple-{language}", MULTIPLE_ROWS[language], tmp_path)
    solution = multiple.solution(MULTIPLE_ROWS[language])
    assert solution is not None
    blank = solution[: len(solution) - len(solution.lstrip("\n"))]
    answers = dict(wrong_answers.MULTIPLE[language])
    if language in wrong_answers.TESTLESS:
        answers["no tests"] = wrong_answers.TESTLESS[language]
    programs = {
        "reference": of_completion(multiple, solution),
        "nearly right": multiple_programs(language, tmp_path)["wrong"],
        "blank": of_completion(multiple, ""),
        **{kind: of_completion(multiple, blank + answer) for kind, answer in answers.items()},
    }
    assert_only_the_reference_passes(judge_all(run_in_languages, programs))


@pytest.mark.parametrize(
    "language", [pytest.param(name, marks=marks(PACK_LANGUAGES[name][1])) for name in PACK_LANGUAGES]
)
def test_humanevalpack(language: str, run_in_languages: RunInLanguages, tmp_path: Path) -> None:
    """In all kinds of tasks the programs are the same, so they are run once."""
    row = PACK_ROWS[language]
    answers = {
        "reference": row["canonical_solution"],
        "nearly right": row["buggy_solution"],
        "blank": "",
        **wrong_answers.PACK[language],
    }
    descriptions = tmp_path / "descriptions.json"
    descriptions.write_text(json.dumps([["Return the largest difference between neighbours."]]))
    programs: dict[str, Program] = {}
    for kind in PACK_KINDS:
        settings = {"load_data_path": str(descriptions)} if "explain" in kind else {}
        pack = task(f"{kind}-{language}", row, tmp_path, **settings)
        for name, answer in answers.items():
            program = of_completion(pack, f"\n{answer}")
            if kind == PACK_KINDS[0]:
                programs[name] = program
            elif "docs" in kind or kind == "humanevalsynthesize":
                programs[f"{name}, {kind}"] = program
            else:
                assert program == programs[name]
    references = [name for name in programs if name.startswith("reference")]
    verdicts = judge_all(run_in_languages, programs)
    for name in references:
        assert_only_the_reference_passes(
            {"reference": verdicts[name], **{k: v for k, v in verdicts.items() if k not in references}}
        )


def python_tasks() -> dict[str, str]:
    """The tasks of Python's benchmarks, one or two of each kind, with the name of the kind."""
    found = {}
    for name in TASK_REGISTRY:
        kind = max((kind for kind in wrong_answers.PYTHON if f"{name}-".startswith(f"{kind}-")), key=len, default="")
        if kind:
            found[name] = kind
    return found


FIRST_OF_KIND = {kind: name for name, kind in reversed(python_tasks().items())}
IMPORTING_NUMPY = {"ds1000-numpy", "humanevalplus", "mbppplus"}  # which takes longer than all else here
FAST = {name for kind, name in FIRST_OF_KIND.items() if kind not in IMPORTING_NUMPY}


@pytest.mark.usefixtures("one_sandbox")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=[] if name in FAST else [pytest.mark.slow])
        for name, kind in python_tasks().items()
    ],
)
def test_python(name: str, kind: str) -> None:
    code = create_task(TASK_REGISTRY[name], f"code/{name}", settings_of(name), data=_first_row(name))
    assert isinstance(code, Task)
    reference = code.solution(code.rows()[0])
    assert reference is not None
    assert _marks_of(code, reference) == 1
    for wrong, answer in {"blank": "", "empty": "\n    pass\n", **wrong_answers.PYTHON[kind]}.items():
        assert _marks_of(code, answer) == 0, wrong


def _first_row(name: str) -> str | None:
    file = rows_of(name)
    if file is None:
        return None
    row = rows(Path(file).stem)[0]
    if name.startswith("apps-"):
        row["difficulty"] = name.removeprefix("apps-")
    return write_rows(row)


def _marks_of(code: Task, completion: str) -> float:
    form = code._form(0)
    generation = code._postprocessed(form, form.with_completion(completion), completion, 0)
    found = code.process_results([[generation]], [code.get_reference(code.rows()[0])])
    return next(iter(found.values()))


def test_every_benchmark_that_runs_programs_is_here() -> None:
    """A new one needs wrong answers of its own; those of the starter set stand beside its references."""
    walked = {f"multiple-{language}" for language in MULTIPLE_LANGUAGES}
    walked |= {f"multiple-mbpp-{language}" for language in MULTIPLE_LANGUAGES}  # of the same class
    walked |= {f"{kind}-{language}" for kind in PACK_KINDS for language in PACK_LANGUAGES}
    walked |= {name for name in TASK_REGISTRY if name.startswith(("starter", "ds1000"))} | python_tasks().keys()
    executing = {name for name, cls in TASK_REGISTRY.items() if _runs_programs(cls)}
    assert executing - walked == set()


def _runs_programs(cls: type[Any]) -> bool:
    return bool(cls().requires_execution)
