"""Worked examples of the BigCode harness: read from the user's copy, shown as it shows them, never replaced by ours."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import proctor
from conftest import Command
from helpers.code_tasks import make_task, prompt_text, rows, solution_of
from helpers.paths import DATA
from proctor.code import TASK_REGISTRY
from proctor.code.shots import OWN, HarnessShots, find_in_harness
from proctor.core import registry
from proctor.core.errors import MissingDataError, UsageError

ROWS = DATA / "code_rows"
CONALA = "few_shot_examples/conala_few_shot_prompts.json"
GAP = " " * 19
UNDER_THEIR_NAMES = [
    name for name, cls in TASK_REGISTRY.items() if issubclass(cls, HarnessShots) and not name.endswith(OWN)
]


def test_the_tasks_that_show_examples() -> None:
    kinds = {"conala", "concode", "mercury"}
    kinds |= {f"codexglue_text_to_text-{pair}" for pair in ("da_en", "lv_en", "no_en", "zh_en")}
    kinds |= {f"pal-{data}-{way}" for data in ("gsm8k", "gsmhard") for way in ("greedy", "majority_voting")}
    assert set(UNDER_THEIR_NAMES) == kinds
    own = {f"{name}{TASK_REGISTRY[name].own_ending}" for name in kinds}  # type: ignore[attr-defined]
    assert own <= set(TASK_REGISTRY), "each can be had with examples of our own, or without"
    assert all(registry.load_task_class(f"code/{name}").version == "2" for name in kinds)


def conala(text: str) -> str:
    return (
        "Answer the following instructions in one line of Python code:\n"
        f"\nInstruction:\nadd `a` and `b`{GAP}\nSolution:\na + b{GAP}"
        f"\nInstruction:\nlast item of list `xs`{GAP}\nSolution:\nxs[-1]{GAP}"
        f"\nInstruction:\n{text}{GAP}\nSolution:\n"
    )


def test_two_examples_as_the_harness_shows_them() -> None:
    first, second, _ = rows("conala")
    task = make_task("conala", first, prompts=str(ROWS))
    assert prompt_text(task, first) == conala("swap keys and values of dictionary `prices`")
    assert prompt_text(task, second) == conala("How to flip a dictionary?")
    doc = rows("concode")[0]
    prompt = prompt_text(make_task("concode", doc, prompts=str(ROWS)), doc)
    assert prompt.startswith("Answer the following instructions in a one line of Java code:\n\nInstruction:\ngives the")
    assert prompt.endswith(f"\nInstruction:\ntells whether the box has no content{GAP}\nSolution:\n")
    doc = rows("codexglue_text_to_text")[0] | {"source": " Tekst .\n"}
    prompt = prompt_text(make_task("codexglue_text_to_text-no_en", doc, prompts=str(ROWS)), doc)
    assert prompt.startswith(
        "Translate the following documentation from Norwegian to English:\n\nNorwegian:\nnorwegian"
    )
    assert prompt.endswith(f"\nEnglish:\nTwo .{GAP}\nNorwegian:\n Tekst .\n{GAP}\nEnglish:\n")


def test_eight_examples_of_pal() -> None:
    doc = rows("pal-gsm8k")[0]
    prompt = prompt_text(make_task("pal-gsm8k-greedy", doc, prompts=str(ROWS)), doc)
    one = "Q: What is {n} and {n}?\n\n# solution in Python:\n\n\ndef solution():\n"
    one += '    """What is {n} and {n}?"""\n    result = {n} + {n}\n    return result\n\n\n\n\n\n'
    shown = "".join(one.format(n=n) for n in range(1, 9))
    assert prompt == f"{shown}Q: {doc['question']}\n\n# solution in Python:\n\n\n"


def test_the_example_of_mercury_is_read_from_the_source() -> None:
    doc = rows("mercury")[0]
    task = make_task("mercury", doc, prompts=str(ROWS))
    same = "class Solution(object):\n    def same(self, n: int) -> int:\n        "
    assert prompt_text(task, doc) == (
        f"### Question\nGiven a number, return it.\n\n### Code Prompt\n{same}\n\n### Completion\n{same}return n\n\n"
        f"### Question\n{doc['pretty_content'][0]}\n\n### Code Prompt\n{doc['prompt']}\n\n### Completion\n"
    )
    generation = prompt_text(task, doc) + solution_of(task, doc)
    assert task.postprocess_generation(f"{generation}\n### Question", 0).startswith(doc["prompt"])


@pytest.mark.parametrize("name", UNDER_THEIR_NAMES)
def test_under_their_name_nothing_else_is_shown(name: str) -> None:
    task = make_task(name, {})
    with pytest.raises(MissingDataError, match=r"--set prompts=PATH, .* the same task with.*example") as raised:
        task.rows()
    assert f"code/{name}{TASK_REGISTRY[name].own_ending}" in str(raised.value)  # type: ignore[attr-defined]


def test_a_wildcard_goes_on_with_the_next_task(proctor: Command) -> None:
    data = str(ROWS / "conala.jsonl")
    run = ["run", "code/conala*", "--model", "scripted/oracle", "--data", data, "-q"]
    done = proctor(*run)
    assert done.returncode == 2
    assert "code/conala shows worked examples of the BigCode harness" in done.stderr
    assert "code/conala-own-shots" in done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "harness" / "bigcode_eval" / "tasks"
    shutil.copytree(ROWS / "few_shot_examples", folder / "few_shot_examples")
    return tmp_path / "harness"


@pytest.mark.parametrize("where", ["", "bigcode_eval", "bigcode_eval/tasks", "bigcode_eval/tasks/few_shot_examples"])
def test_a_checkout_is_found_by_any_of_its_folders(checkout: Path, where: str) -> None:
    found = find_in_harness(str(checkout / where), CONALA)
    assert found is not None
    assert found.samefile(checkout / "bigcode_eval" / "tasks" / CONALA)
    (checkout / "bigcode_eval").rename(checkout / "lm_eval")  # as it was called before
    assert find_in_harness(str(checkout), CONALA) is not None


def test_an_installed_package_is_found_by_its_name_or_without(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_in_harness("", CONALA) is None
    monkeypatch.setattr(sys, "path", [*sys.path, str(checkout)])
    for name in ("", "bigcode_eval"):
        assert find_in_harness(name, CONALA) == checkout / "bigcode_eval" / "tasks" / CONALA
    assert find_in_harness("no.such/folder", CONALA) is None


def test_what_is_no_copy_of_the_harness_is_named(tmp_path: Path) -> None:
    doc = rows("conala")[0]
    with pytest.raises(UsageError, match=r"prompts: there is no few_shot_examples/conala.* in nowhere"):
        make_task("conala", doc, prompts="nowhere").rows()
    (tmp_path / "few_shot_examples").mkdir()
    (tmp_path / CONALA).write_text("{")
    with pytest.raises(UsageError, match=r"prompts: cannot read .*conala_few_shot_prompts\.json"):
        make_task("conala", doc, prompts=str(tmp_path)).rows()
    (tmp_path / "mercury.py").write_text("x = {'question': 1}\n")
    with pytest.raises(UsageError, match="there is no example with question, sample_code, answer in it"):
        make_task("mercury", doc, prompts=str(tmp_path)).rows()


def test_runs_with_other_examples_are_other_exams(tmp_path: Path) -> None:
    options: dict[str, Any] = {"data": str(ROWS / "conala.jsonl")}
    with_theirs = proctor.evaluate("code/conala", "scripted/oracle", settings={"prompts": str(ROWS)}, **options)
    with_ours = proctor.evaluate("code/conala-own-shots", "scripted/oracle", **options)
    assert with_theirs.metrics["bleu"].value == with_ours.metrics["bleu"].value == 1
    digests = {report.run.provenance["samples_sha256"] for report in (with_theirs, with_ours)}
    assert len(digests) == 2
