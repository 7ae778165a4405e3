"""Benchmarks that compare texts: what they show, what they expect, and what they make of an answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

import pytest

import proctor
from helpers.code_tasks import make_task, score_of
from helpers.paths import DATA
from proctor.code import TASK_REGISTRY, get_task
from proctor.code.forms import Continuation
from proctor.code.rows import read_rows
from proctor.code.tasks.codexglue_code_to_text import around_docstring
from proctor.code.text_task import TwoShotTask
from proctor.core.config import RunConfig
from proctor.core.task import take_samples
from proctor.metrics.bleu import bleu, smoothed_bleu

ROWS = DATA / "code_rows"
PYTHON, JAVA = str(ROWS / "codexglue_code_to_text-python.jsonl"), str(ROWS / "codexglue_code_to_text.jsonl")
TRANSLATIONS = str(ROWS / "codexglue_text_to_text.jsonl")
CONALA = str(ROWS / "conala.jsonl")


def task(name: str, data: str = "") -> Any:
    return get_task(name, data=data or str(ROWS / f"{name}.jsonl"))


def shown(name: str, data: str, **options: Any) -> list[Any]:
    config = RunConfig(task=f"code/{name}", model="scripted/oracle", **options)
    return [sample.input for sample in take_samples(task(name, data), config)]


# Two solved problems and a third.


def test_the_prompt_of_conala() -> None:
    conala = task("conala-own-shots", CONALA)
    first, second, _ = conala.rows()
    prompt = conala.get_prompt(first)
    assert prompt.startswith(
        "Answer the following instructions in one line of Python code:\n\nInstruction:\nkeep the even"
    )
    assert prompt.endswith("\nInstruction:\nswap keys and values of dictionary `prices`\nSolution:\n")
    assert prompt.count("\nInstruction:\n") == prompt.count("\nSolution:\n") == 3
    assert "\n\nI" in prompt
    assert "\n\n\n" not in prompt
    # Where nobody has rewritten the question, it is shown as it was asked.
    assert "Instruction:\nHow to flip a dictionary?\nSolution:\n" in conala.get_prompt(second)


def test_the_prompt_of_concode_has_the_sentence_alone() -> None:
    concode = task("concode-own-shots", str(ROWS / "concode.jsonl"))
    assert concode.SPLIT == "validation"
    prompts = [concode.get_prompt(doc) for doc in concode.rows()]
    assert prompts[0].endswith("\nInstruction:\ntells whether the box has no content\nSolution:\n")
    assert prompts[1].endswith("\nInstruction:\nadds an item and counts it\nSolution:\n")


@pytest.mark.parametrize(
    ("pair", "language"), [("da_en", "Danish"), ("lv_en", "Latvian"), ("no_en", "Norwegian"), ("zh_en", "Chinese")]
)
def test_the_prompt_of_a_translation(pair: str, language: str) -> None:
    translation = task(f"codexglue_text_to_text-{pair}-own-shots", TRANSLATIONS)
    assert pair == translation.DATASET_NAME
    doc = translation.rows()[0]
    prompt = translation.get_prompt(doc)
    assert prompt.startswith(f"Translate the following documentation from {language} to English:\n\n{language}:\n2 . ")
    assert prompt.endswith(f"\n{language}:\n4 . Åbn mappen , og slet den gamle fil .\nEnglish:\n")
    assert prompt.count("\nEnglish:\n") == 3
    assert translation.get_reference(doc) == "4 . Open the folder , and delete the old file ."


@pytest.mark.parametrize("name", [name for name, cls in TASK_REGISTRY.items() if issubclass(cls, TwoShotTask)])
def test_the_examples_are_two_and_answer_in_one_line(name: str) -> None:
    examples = make_task(name, prompts=str(ROWS)).worked() if "own" not in name else make_task(name).worked()  # type: ignore[attr-defined]
    assert len(examples) == 2
    assert all("\n" not in answer and answer.strip() for _, answer in examples)


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("x.sort()", "x.sort()"),
        ("x.sort()\n\nInstruction:\nmore", "x.sort()"),
        ("  x.sort()  \nx", "x.sort()"),
        ("\nx.sort()", ""),  # the line is over
        ("", ""),
    ],
)
def test_a_completion_ends_with_its_line(completion: str, answer: str) -> None:
    conala = task("conala-own-shots", CONALA)
    prompt = conala.get_prompt(conala.rows()[0])
    assert conala.postprocess_generation(prompt + completion, 0) == answer


@pytest.mark.parametrize(
    "reply",
    [
        "x.sort()",
        "`x.sort()`",
        "```python\nx.sort()\n```",
        "Solution:\nx.sort()",
        "Solution: x.sort()",
        "This sorts it:\n\n```python\nx.sort()\n```\nIn place, that is.",
        "<think>sorted(x)?</think>x.sort()",
    ],
)
def test_a_reply_in_a_chat(reply: str) -> None:
    conala = task("conala-own-shots", CONALA)
    doc = conala.rows()[0]
    assert conala.read_chat(doc, Continuation(conala.get_prompt(doc)), reply, 0) == "x.sort()"


def test_a_reply_may_need_more_than_a_line() -> None:
    conala = task("conala-own-shots", CONALA)
    doc = conala.rows()[0]
    text = "```python\nimport re\nre.sub('a', 'b', x)\n```"
    assert conala.read_chat(doc, Continuation(conala.get_prompt(doc)), text, 0) == "import re\nre.sub('a', 'b', x)"


def test_bleu_is_that_of_the_corpus() -> None:
    conala = task("conala-own-shots", CONALA)
    references = [conala.get_reference(doc) for doc in conala.rows()]
    answers = ["{v: k for k, v in prices.items()}", references[1], ""]
    found = conala.process_results([[answer] for answer in answers], references)
    expected = bleu(answers, references, smooth=True)
    assert found == {name: expected[name] for name in ("bleu", "brevity_penalty", "length_ratio")}
    # Several answers to a problem are several pairs.
    several = conala.process_results([answers[:1], answers[1:2] * 2], references[:2])
    assert (
        several["bleu"]
        == bleu([answers[0], *answers[1:2] * 2], [references[0], *references[1:2] * 2], smooth=True)["bleu"]
    )


# What a function does.


def test_the_prompt_of_a_python_function_has_no_docstring() -> None:
    """As the BigCode harness shows it, down to the space that a docstring leaves and the quotes that go with it."""
    functions = task("codexglue_code_to_text-python", PYTHON)
    prompts = [functions.get_prompt(doc) for doc in functions.rows()]
    assert prompts[0] == (
        "def shorten(text, width=20):\n    \n    if len(text) <= width:\n        return text\n"
        '    return text[: width - 1] + "…"\n""" The goal of this function is to:\n'
    )
    assert prompts[1].startswith("def books(self):\n    query = SELECT * FROM books\n")
    assert prompts[2] == 'def pattern(word):\n    \n    return re.escape(word)\n""" The goal of this function is to:\n'


@pytest.mark.parametrize(
    ("before", "after", "whole", "left"),
    [
        ('def f():\n    """', '"""\n    return 1', "def f():\n    return 1", 'def f():\n    """'),
        ("def f():\n    '''", "'''\n    x = '''a'''", "def f():\n    x = a", 'def f():\n    """'),
        ('def f():\n    r"""', '"""\n    1', "def f():\n    r\n    1", 'def f():\n    r"""'),
        ("def f():\n    '", "'\n    1", "def f():'\n    1", 'def f():\n   """'),  # a space goes with the quote
    ],
)
def test_quotes_of_a_docstring_as_the_harness_takes_them(before: str, after: str, whole: str, left: str) -> None:
    doc = {"code": f"{before}Do it.{after}", "docstring": "Do it."}
    prompts = [task(f"codexglue_code_to_text-{kind}", PYTHON).get_prompt(doc) for kind in ("python", "python-left")]
    assert prompts == [f'{whole}\n""" The goal of this function is to:\n', left]


@pytest.mark.parametrize("language", ["java", "javascript", "php", "go", "ruby"])
def test_the_prompt_of_another_language(language: str) -> None:
    functions = task(f"codexglue_code_to_text-{language}", JAVA)
    assert functions.DATASET_NAME == functions.language == language
    doc = functions.rows()[0]
    opening = "=begin" if language == "ruby" else "/*"
    assert functions.get_prompt(doc) == f"{doc['code']}\n{opening} The goal of this function is to:\n"
    assert "\n" in functions.stop_words


def test_the_prompt_of_a_signature_goes_on_inside_the_docstring() -> None:
    prompts = shown("codexglue_code_to_text-python-left", PYTHON, api="completions")
    assert prompts == [
        'def shorten(text, width=20):\n    """',
        'def books(self):\n    """',
        'def pattern(word):\n    """',
    ]


def test_a_chat_is_asked_a_question() -> None:
    ((message,), *_) = shown("codexglue_code_to_text-java", JAVA, prefix="// p\n")
    assert message.text.startswith("// p\nWhat does this Java function do?")
    assert message.text.endswith("```java\npublic boolean isFull() {\n    return books.size() >= capacity;\n}\n```")
    for name in ("codexglue_code_to_text-python", "codexglue_code_to_text-python-left"):
        for (message,) in shown(name, PYTHON):
            assert "goal" not in message.text
    assert message.text.endswith("```python\ndef pattern(word):\n```")


@pytest.mark.parametrize("data", [PYTHON, JAVA])
def test_no_prompt_gives_the_answer_away(data: str) -> None:
    name = "codexglue_code_to_text-" + ("python" if data == PYTHON else "java")
    for api in ("chat", "completions"):
        for doc, prompt in zip(read_rows(data), shown(name, data, api=api), strict=True):
            text = prompt if isinstance(prompt, str) else prompt[0].text
            assert doc["docstring"].split(".")[0].removeprefix('r"""') not in text


@pytest.mark.parametrize("quote", ['"""', "'''", '"', "'", 'r"""', "u'''"])
@pytest.mark.parametrize("included", [False, True])
def test_quotes_go_with_the_docstring(quote: str, included: bool) -> None:
    """The data set's docstrings have their quotes now and then."""
    closing = quote.lstrip("ru")
    code = f"def f(x='a'):\n    {quote}Do it.{closing}\n    return 'b'"
    docstring = f"{quote}Do it." if included else "Do it."
    assert around_docstring(code, docstring) == ("def f(x='a'):\n    ", "\n    return 'b'")


def test_references_are_words() -> None:
    functions = task("codexglue_code_to_text-python", PYTHON)
    references = [functions.get_reference(doc) for doc in functions.rows()]
    assert references[0] == "Cut a text to a width and mark the place ."
    assert references[2] == "Escape a word with its \\ d and \\ w ."  # not "r Escape"
    java = task("codexglue_code_to_text-java", JAVA)
    assert java.get_reference(java.rows()[1]).startswith("returns the book")  # not "eturns"


@pytest.mark.parametrize(
    ("language", "completion", "answer"),
    [
        ("java", "add one. */\nint", "add one."),
        ("java", "add one.\nAnd more.", "add one."),
        ("java", " add one.", "add one."),
        ("ruby", "add one.\n=end", "add one."),
        ("python", "add one.\nAnd more.", "add one."),
        ("python", "\n  add one.\n", "add one."),
        ("python", 'add one.""" + x', "add one."),
        ("python", "add one.'''", "add one."),
        ("python-left", "Add one.\n\n    More.", "Add one."),
        ("python-left", '\n    Add one."""\n    return x', "Add one."),
    ],
)
def test_the_first_line_is_the_answer(language: str, completion: str, answer: str) -> None:
    functions = task(f"codexglue_code_to_text-{language}", PYTHON if language.startswith("python") else JAVA)
    prompt = functions.get_prompt(functions.rows()[0])
    assert functions.postprocess_generation(prompt + completion, 0) == answer


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("java", "Adds one."),
        ("java", "Adds one.\n\nIt does so by adding."),
        ("java", "/* Adds one. */"),
        ("java", "```\n/*\nAdds one.\n*/\n```"),
        ("python", '"""Adds one."""'),
        ("python", '```python\n"""\nAdds one.\n\nMore.\n"""\n```'),
        ("python", "<think>Subtracts?</think>\nAdds one."),
    ],
)
def test_a_sentence_in_a_chat(language: str, text: str) -> None:
    functions = task(f"codexglue_code_to_text-{language}", PYTHON if language == "python" else JAVA)
    doc = functions.rows()[0]
    assert functions.read_chat(doc, Continuation(functions.get_prompt(doc)), text, 0) == "Adds one."


def test_summaries_are_marked_one_by_one() -> None:
    functions = task("codexglue_code_to_text-java", JAVA)
    references = [functions.get_reference(doc) for doc in functions.rows()]
    answers = ["Tells whether there is room for a book.", "Returns the book"]
    found = functions.process_results([[answer] for answer in answers], references)
    of_each = map(smoothed_bleu, answers, references)
    assert found == {"bleu": pytest.approx(100 * fmean(of_each), abs=1e-12)}
    assert 0 < smoothed_bleu("", "Go .") < 1  # by smoothing alone
    assert functions.process_results([[""]], ["Go ."]) == {"bleu": 0}


# Rows from the hub.


class Hub(ModuleType):
    """Stands in for the package `datasets`: remembers what was asked for."""

    def __init__(self) -> None:
        super().__init__("datasets")
        self.asked: list[tuple[Any, ...]] = []

    def load_dataset(self, path: str, name: str | None, split: str | None, **options: Any) -> Any:
        self.asked.append((path, name, split, options))
        return [] if split else {"test": ["the test split"], "validation": ["the validation split"]}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    monkeypatch.setitem(sys.modules, "datasets", Hub())
    return sys.modules["datasets"]  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("name", "path", "subset", "split"),
    [
        ("codexglue_code_to_text-go", "google/code_x_glue_ct_code_to_text", "go", "test"),
        ("codexglue_code_to_text-python-left", "google/code_x_glue_ct_code_to_text", "python", "test"),
        ("codexglue_text_to_text-lv_en", "google/code_x_glue_tt_text_to_text", "lv_en", "test"),
        ("concode", "google/code_x_glue_tc_text_to_code", None, "validation"),
    ],
)
def test_the_split_that_has_answers(hub: Hub, name: str, path: str, subset: str | None, split: str) -> None:
    assert get_task(name).get_dataset() == [f"the {split} split"]
    assert hub.asked == [(path, subset, None, {})]


def test_conala_is_fetched_as_rows_and_not_as_a_script(hub: Hub) -> None:
    get_task("conala-own-shots", CONALA).get_dataset()
    files = {"test": "curated/test/*.parquet"}
    assert hub.asked == [("neulab/conala", None, "test", {"revision": "refs/convert/parquet", "data_files": files})]


# A whole run.


def replayed(tmp_path: Path, name: str, data: str, answers: list[str]) -> Any:
    file = tmp_path / "generations.json"
    file.write_text(json.dumps([[answer] for answer in answers]))
    return proctor.evaluate(f"code/{name}", f"scripted/generations:{file}", data=data)


def test_figures_with_intervals(tmp_path: Path) -> None:
    data = str(ROWS / "conala.jsonl")
    rows = read_rows(data)
    answers = [row["snippet"] for row in rows[:2]] + ["lines = [x for x in lines]"]
    report = replayed(tmp_path, "conala-own-shots", data, answers)
    assert list(report.metrics) == ["bleu", "brevity_penalty", "length_ratio"]
    metric = report.metrics["bleu"]
    assert metric.value == bleu(answers, [row["snippet"] for row in rows], smooth=True)["bleu"]
    assert (metric.n, metric.method) == (3, "jackknife")
    scores = [score_of(record).value for record in report.records()]
    assert scores[:2] == [1, 1]
    assert scores[2] is not None
    assert 0 < scores[2] < 1


def test_a_scale_to_100_is_scored_between_0_and_1(tmp_path: Path) -> None:
    rows = read_rows(JAVA)
    answers = ["Tells whether there is room for a book.", "returns the book that was taken out or null."]
    report = replayed(tmp_path, "codexglue_code_to_text-java", JAVA, answers)
    references = [" ".join(row["docstring_tokens"]) for row in rows]
    assert report.metrics["bleu"].value == pytest.approx(100 * fmean(map(smoothed_bleu, answers, references)))
    scores = [score_of(record).value for record in report.records()]
    assert scores == pytest.approx([smoothed_bleu(*pair) for pair in zip(answers, references, strict=True)])
    assert scores[1] == 1
