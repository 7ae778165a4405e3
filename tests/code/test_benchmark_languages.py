"""The benchmarks of many languages: in each of them right programs pass and wrong ones fail."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import RunInLanguages
from helpers.language_replies import MULTIPLE, PACK
from helpers.paths import DATA
from helpers.toolchains import marks, needs_language
from proctor.code import TASK_REGISTRY, Task
from proctor.code.tasks.humanevalpack import LANGUAGES as PACK_LANGUAGES
from proctor.code.tasks.multiple import LANGUAGES
from proctor.sandbox import Limits, Program
from proctor.sandbox.languages import find_language

ROWS = DATA / "code_rows"
# What a whole file has after the body that the tests expect to be still open.
CLOSING = {
    "adb": "\n   end Count_Above;\n\nend Placeholder;",
    **dict.fromkeys(("cpp", "dart", "rs", "sh", "swift"), "\n}"),
    **dict.fromkeys(("cs", "java", "scala"), "\n    }\n}"),
}


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ROWS / f"{name}.jsonl").read_text().splitlines()]


MULTIPLE_ROWS = dict(zip(LANGUAGES, rows("multiple"), strict=True))
PACK_ROWS = dict(zip(PACK_LANGUAGES, rows("humanevalpack"), strict=True))


def task(name: str, row: dict[str, Any], folder: Path, **settings: Any) -> Task:
    file = folder / f"{name}.jsonl"
    file.write_text(json.dumps(row))
    cls = TASK_REGISTRY[name]
    return cls.build(cls.Settings(**settings), str(file))


def of_completion(task: Task, completion: str) -> Program:
    row = task.rows()[0]
    return task.program(row, task.postprocess_generation(f"{task.get_prompt(row)}{completion}", 0))


def of_reply(task: Task, code: str) -> Program:
    row = task.rows()[0]
    return task.program(row, task.read_chat(row, task._form(0), f"Certainly:\n\n```\n{code}\n```\nIt counts.\n", 0))


def multiple_programs(language: str, folder: Path) -> dict[str, Program]:
    row = MULTIPLE_ROWS[language]
    multiple = task(f"multiple-{language}", row, folder)
    solution = multiple.solution(row)
    assert solution is not None
    wrong = re.sub(r">(?= (?:\$?[Ll]imit|\$2|% limit|number limit))", ">=", solution)
    assert wrong != solution
    return {
        "right": of_reply(multiple, MULTIPLE.get(language, solution)),
        "wrong": of_completion(multiple, wrong),
    }


def pack_programs(language: str, folder: Path) -> dict[str, Program]:
    row = PACK_ROWS[language]
    fix, write = (task(f"{kind}-{language}", row, folder) for kind in ("humanevalfixtests", "humanevalsynthesize"))
    return {
        "right": of_reply(write, PACK[language]),
        "wrong": of_completion(fix, f"\n{row['buggy_solution']}"),
    }


BENCHMARKS: dict[str, Callable[[str, Path], dict[str, Program]]] = {
    "multiple": multiple_programs,
    "humanevalpack": pack_programs,
}


@pytest.mark.parametrize(
    ("benchmark", "language"),
    [
        *(pytest.param("multiple", name, marks=marks(runs_as)) for name, runs_as in LANGUAGES.items()),
        *(pytest.param("humanevalpack", name, marks=marks(runs_as)) for name, (_, runs_as) in PACK_LANGUAGES.items()),
    ],
)
def test_right_programs_pass_and_wrong_ones_fail(
    benchmark: str, language: str, run_in_languages: RunInLanguages, tmp_path: Path
) -> None:
    programs = BENCHMARKS[benchmark](language, tmp_path)
    needs_language(programs["right"].language, libraries=True)
    right, wrong = run_in_languages([programs["right"], programs["wrong"]], Limits(seconds=15.0))
    assert right.passed, right
    assert not wrong.passed, wrong


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_whole_file_is_read_as_the_completion_in_it(language: str, tmp_path: Path) -> None:
    row = MULTIPLE_ROWS[language]
    multiple = task(f"multiple-{language}", row, tmp_path)
    end = CLOSING.get(language, "")
    completed = of_completion(multiple, f"{multiple.solution(row)}{end}\n")
    replied = of_reply(multiple, f"{row['prompt']}{row['canonical_solution']}{end}\n")
    assert replied.language == completed.language == LANGUAGES[language]
    assert replied.source.split() == completed.source.split()
    whole = f"{replied.source}\n{replied.tests}"  # those of Python are apart from the program
    assert row["tests"].split()[-5:] == whole.split()[-5:]


@pytest.mark.parametrize("language", PACK_LANGUAGES)
@pytest.mark.parametrize("kind", ["humanevalfixtests", "humanevalfixdocs", "humanevalsynthesize"])
def test_a_function_ends_with_its_brace_or_its_indentation(kind: str, language: str, tmp_path: Path) -> None:
    row = PACK_ROWS[language]
    pack = task(f"{kind}-{language}", row, tmp_path)
    asked = pack.get_prompt(row)
    assert isinstance(asked, str)
    further = "\nfn further() {\n    }\n}\n" if language != "python" else "\nassert False\n"
    generation = pack.postprocess_generation(f"{asked}{pack.solution(row)}{further}", 0)
    assert generation.split() == f"{pack.base(row)}{row['canonical_solution']}".split()  # type: ignore[attr-defined]


def test_the_table_of_languages_is_the_sandboxs() -> None:
    for name in [*LANGUAGES.values(), *(runs_as for _, runs_as in PACK_LANGUAGES.values())]:
        assert find_language(name).name == name
    assert {name for name in TASK_REGISTRY if name.startswith("multiple-mbpp-")} == {
        f"multiple-mbpp-{language}" for language in LANGUAGES if language not in ("dart", "py")
    }
