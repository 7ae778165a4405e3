"""HumanEvalPack: how models are asked, what of an answer counts, and descriptions that become problems."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import proctor
from helpers.code_tasks import chat_prompt, solution_of
from helpers.paths import DATA
from proctor.code import TASK_REGISTRY, get_task
from proctor.code.execution import run_programs
from proctor.code.patches import first_hunks
from proctor.code.rows import read_rows
from proctor.code.tasks.humanevalpack import LANGUAGES
from proctor.core.errors import UsageError
from proctor.formats.code_files import save_generations

ROWS = DATA / "code_rows"
PYTHON = str(ROWS / "humanevalpack-python.jsonl")
ROW = json.loads(Path(PYTHON).read_text().splitlines()[0])
BUGGY = ROW["declaration"] + ROW["buggy_solution"]
ASKED = f"Fix bugs in largest_gap.\n{BUGGY}\n{ROW['test']}"


class Arguments:
    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


def prompt_of(task: str, **given: Any) -> Any:
    return get_task(task, Arguments(**given), data=PYTHON).get_prompt(ROW)


def test_five_kinds_in_six_languages() -> None:
    kinds = ("fixtests", "fixdocs", "explaindescribe", "explainsynthesize", "synthesize")
    assert {f"humaneval{kind}-{language}" for kind in kinds for language in LANGUAGES} <= set(TASK_REGISTRY)


def test_what_is_wrong_is_shown_with_tests_or_with_the_description() -> None:
    begun = ROW["declaration"].rstrip()
    with_tests = f"{BUGGY}\n{ROW['test']}\nFix bugs in largest_gap.\n\n{begun}"
    assert prompt_of("humanevalfixtests-python") == with_tests.strip()
    with_docs = prompt_of("humanevalfixdocs-python")
    assert with_docs.endswith(f"Fix bugs in largest_gap.\n\n{ROW['prompt'].rstrip()}")
    assert ROW["test"] not in with_docs


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("octocoder", f"Question: Fix bugs in largest_gap.\n{BUGGY}\n{ROW['test']}\n\nAnswer:\n{ROW['declaration']}"),
        ("codellama", f"[INST] Fix bugs in largest_gap.\n{BUGGY}\n{ROW['test']} [/INST] {ROW['declaration']}"),
        (
            "starcodercommit",
            f"<commit_before>{BUGGY}\n{ROW['test']}<commit_msg>Fix bugs in largest_gap.<commit_after>"
            f"{ROW['declaration']}",
        ),
        (
            "file",
            f"<file_name>\nlargest_gap.py\n<commit_before>\n{BUGGY}\n{ROW['test']}\n<commit_msg>\n"
            f"Fix bugs in largest_gap.<commit_after>\n{ROW['declaration']}",
        ),
        ("zephyr", f"<|user|>\n{ASKED}</s>\n<|assistant|>\n{ROW['declaration']}"),
        ("tulu", f"<|user|>\n{ASKED}\n<|assistant|>\n{ROW['declaration']}"),
        ("gritlm", f"<|user|>\n{ASKED}\n<|assistant|>\n{ROW['declaration']}"),
        *(
            (name, f"<|im_start|>user\n{ASKED}<|im_end|>\n<|im_start|>assistant\n{ROW['declaration']}")
            for name in ("yi", "starchat2", "codeqwen")
        ),
        ("codegemma", f"<start_of_turn>user\n{ASKED}<end_of_turn>\n<start_of_turn>model\n{ROW['declaration']}"),
        ("aurora-m", f"### Instruction:\n{ASKED}\n### Response:\n{ROW['declaration']}"),
        (
            "issue",
            f"<issue_start>username_0: Fix bugs in largest_gap.\n\n```{BUGGY}\n{ROW['test']}```\nUpvotes: 100"
            f"<issue_comment>username_1: Sure, here is the fixed code.\n\n```{ROW['declaration']}",
        ),
        (
            "diff-carper",
            f"<NME> largest_gap.py\n<BEF> {BUGGY}\n{ROW['test']}\n<MSG> Fix bugs in largest_gap.\n<DFF>",
        ),
    ],
)
def test_models_are_asked_as_they_were_trained(prompt: str, expected: str) -> None:
    assert prompt_of("humanevalfixtests-python", prompt=prompt) == expected.strip()


def test_deepseek_is_told_who_it_is() -> None:
    prompt = prompt_of("humanevalsynthesize-python", prompt="deepseek")
    assert prompt.startswith("You are an AI programming assistant, utilizing the Deepseek Coder model, developed by")
    begun = ROW["prompt"].rstrip()
    assert prompt.endswith(f"refuse to answer\n### Instruction:\n{ROW['instruction'].strip()}\n### Response:\n{begun}")


# The forms in which the answer is a patch.


@pytest.mark.parametrize("prompt", ["diff", "diff-carper"])
@pytest.mark.parametrize("kind", ["humanevalfixtests", "humanevalfixdocs"])
def test_a_patch_is_applied_to_the_buggy_function(kind: str, prompt: str, one_sandbox: None) -> None:
    if prompt == "diff":
        pytest.importorskip("diff_match_patch")
    task = get_task(f"{kind}-python", Arguments(prompt=prompt), data=PYTHON)
    for index, row in enumerate(task.rows()):
        patch, asked = solution_of(task, row), task.get_prompt(row)
        further = "<commit_before>" if prompt == "diff" else "\n<NME> other.py"
        right = task.postprocess_generation(f"{asked}{patch}{further}", index)
        assert "@@" in right
        assert further.strip() not in right
        nothing = task.postprocess_generation(f"{asked} I see no bug.", index)
        programs = [task.program(row, text) for text in (right, nothing, "")]
        assert [trial.passed for trial in run_programs(programs, task.limits())] == [True, False, False]


def test_a_chat_is_asked_for_the_function_in_any_form() -> None:
    task = get_task("humanevalfixdocs-python", Arguments(prompt="diff-carper"), data=PYTHON)
    fixed = ROW["prompt"] + ROW["canonical_solution"]
    generation = task.read_chat(ROW, task._form(0), f"```python\n{fixed}```", 0)
    assert fixed.strip() in task.program(ROW, generation).source


def test_a_form_that_needs_a_package_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "diff_match_patch", None)
    with pytest.raises(UsageError, match=r"The prompt form diff needs .*proctor-eval\[diff\]"):
        get_task("humanevalfixdocs-python", Arguments(prompt="diff"), data=PYTHON)


@pytest.mark.parametrize(
    ("completion", "hunks"),
    [
        (" @@ -1 +1 @@\n-a\n+b\n", "@@ -1 +1 @@\n-a\n+b\n"),
        ("\n@@ -1,2 +1,2 @@ def f\n a\n-b\n+c\nThat is all.\n-d", "@@ -1,2 +1,2 @@ def f\n a\n-b\n+c"),
        ("@@ -1 +1 @@\n-a\n+b\n\n@@ -9 +9 @@\n-x", "@@ -1 +1 @@\n-a\n+b"),
        ("Here is the fix: a + b", ""),
        ("", ""),
    ],
)
def test_a_patch_ends_where_no_hunk_goes_on(completion: str, hunks: str) -> None:
    assert first_hunks(completion) == hunks


def test_bugs_are_counted_by_their_kind() -> None:
    options: dict[str, Any] = {"data": PYTHON, "allow_code_execution": True, "workers": 1}
    report = proctor.evaluate("code/humanevalfixdocs-python", "scripted/oracle", **options)
    assert set(report.run.groups["bug_type"]) == {row["bug_type"] for row in read_rows(PYTHON)}


def test_a_prompt_that_a_kind_does_not_know() -> None:
    assert prompt_of("humanevalsynthesize-python", prompt="continue") == ROW["prompt"].strip()
    with pytest.raises(UsageError, match=r"'continue' is not one of instruct, octocoder, .*codellama-70b, .*file"):
        prompt_of("humanevalfixtests-python", prompt="continue")


def test_a_chat_model_gets_the_code_apart_from_the_instruction() -> None:
    task = get_task("humanevalfixdocs-python", data=PYTHON)
    asked = chat_prompt(task, ROW)
    assert asked.startswith("Fix bugs in largest_gap.\n\n```python\nfrom typing import List")
    assert asked.endswith(f"Begin with this code:\n\n```python\n{ROW['prompt'].strip()}\n```")


def test_code_that_comes_back_unchanged_is_the_buggy_function() -> None:
    task = get_task("humanevalfixdocs-python", data=PYTHON)
    generation = task.postprocess_generation(f"{task.get_prompt(ROW)}\n{ROW['buggy_solution']}\nprint(1)", 0)
    assert generation.split() == (ROW["prompt"] + ROW["buggy_solution"]).split()


def test_a_description_is_cut_to_the_docstrings_length_and_names_no_code() -> None:
    task = get_task("humanevalexplaindescribe-python", data=PYTHON)
    line = ROW["canonical_solution"].strip()
    text = f"It does `{line}`. " + "Really. " * 100
    for description in (
        task.postprocess_generation(f"{task.get_prompt(ROW)}\n{text}", 0),
        task.read_chat(ROW, task._form(0), f"<think>Hm</think>{text}", 0),
    ):
        assert description.startswith("It does ``. Really.")
        assert len(description) <= len(ROW["docstring"])


@pytest.mark.parametrize("limit_start", [0, 1])
def test_descriptions_of_one_run_are_the_problems_of_another(limit_start: int, tmp_path: Path) -> None:
    options: dict[str, Any] = {"data": PYTHON, "allow_code_execution": True}
    described = proctor.evaluate(
        "code/humanevalexplaindescribe-python", "scripted/oracle", limit_start=limit_start, samples=2, **options
    )
    assert described.metrics["described"].value == 1
    file = tmp_path / "descriptions.json"
    save_generations(described, file)
    settings = {"load_data_path": str(file)}
    written = proctor.evaluate(
        "code/humanevalexplainsynthesize-python", "scripted/oracle", settings=settings, **options
    )
    ids = [f"Python/{problem}/{candidate}" for problem in range(limit_start, 2) for candidate in range(2)]
    assert [record.sample.id for record in written.records()] == ids
    assert written.metrics["pass@1"].value == 1
    assert all("according to the description" in str(record.sample.input) for record in written.records())


def test_descriptions_that_are_missing_or_too_many(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"humanevalexplaindescribe-python and --save-generations"):
        get_task("humanevalexplainsynthesize-python", data=PYTHON).rows()
    (tmp_path / "d.json").write_text('[["a"], ["b"], ["c"]]')
    task = get_task(
        "humanevalexplainsynthesize-python", Arguments(load_data_path=str(tmp_path / "d.json")), data=PYTHON
    )
    with pytest.raises(UsageError, match=r"describes 3 problems; there are 2"):
        task.rows()


def test_crates_are_imported_only_where_they_are_used() -> None:
    file = ROWS / "humanevalpack.jsonl"
    row = next(row for row in map(json.loads, file.read_text().splitlines()) if row["task_id"] == "Rust/0")
    task = get_task("humanevalsynthesize-rust", data=str(file))
    plain = task.program(row, row["prompt"] + row["canonical_solution"]).source
    assert not any(crate in plain for crate in ("rand", "regex", "md5"))
    hashing = task.program(row, row["prompt"] + 'md5::compute("a");\n}').source
    assert "use md5;" in hashing
    assert "use rand::Rng;" not in hashing
    replied = task.read_chat(row, task._form(0), "```rust\nfn largest_gap(numbers: Vec<i32>) -> i32 { 0 }\n```", 0)
    assert task.program(row, replied).source.count("collections::{HashSet, HashMap}") == 1
