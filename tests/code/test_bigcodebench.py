"""BigCodeBench: what is shown, what is read of an output, and that a program cannot tamper with the tests beside it."""

from __future__ import annotations

from typing import Any

import pytest

import proctor
from helpers.code_tasks import (
    chat_prompt,
    make_task,
    prompt_parts,
    prompt_text,
    read,
    results,
    rows,
    solution_of,
    write_rows,
)
from proctor.code.imports import MissingLibraryError
from proctor.code.tasks.bigcodebench import PACKAGES

pytestmark = pytest.mark.usefixtures("one_sandbox")

WORDS, FETCH, DRAW = rows("bigcodebench")
COMPLETE, INSTRUCT = "bigcodebench-complete", "bigcodebench-instruct"
ASKED = "Please provide a self-contained Python script that solves the following problem in a markdown code block:"
RIGHT = WORDS["code_prompt"] + "\n" + WORDS["canonical_solution"]
ALWAYS = "def task_func(*_, **__):\n    return {}\n"


def passes(program: str, row: dict[str, Any] = WORDS, name: str = COMPLETE, **settings: Any) -> bool:
    return results(make_task(name, row, **settings), program)["pass@1"] == 1


def test_the_published_prompts() -> None:
    complete, instruct = make_task(COMPLETE, WORDS), make_task(INSTRUCT, WORDS)
    assert prompt_text(complete, WORDS) == WORDS["complete_prompt"]
    assert chat_prompt(complete, WORDS) == f"{ASKED}\n```\n{WORDS['complete_prompt'].strip()}\n```\n"
    assert chat_prompt(instruct, WORDS) == f"{ASKED}\n{WORDS['instruct_prompt'].strip()}\n"
    assert prompt_parts(instruct, WORDS)["instruction"] == chat_prompt(instruct, WORDS)
    assert complete.stop_words == [
        "<|endoftext|>", "<|endofmask|>", "</s>", "\nif __name__", "\ndef main(", "\nprint(",
        "\ndef ", "\nclass ", "\nimport ", "\nfrom ", "\nassert ",
    ]  # fmt: skip
    assert instruct.stop_words == complete.stop_words[:6]


def test_a_reply_and_a_completion_become_the_same_script() -> None:
    body = solution_of(make_task(COMPLETE, WORDS), WORDS)
    replies = [
        f"Here you are:\n```python\n{RIGHT}\n\nprint(task_func('a'))\n```\nIt counts.",
        RIGHT,
        body,
        f"```\n{body}```",
    ]
    for name in (COMPLETE, INSTRUCT):
        task = make_task(name, WORDS)
        scripts = [read(task, reply) for reply in replies]
        scripts.append(task.postprocess_generation(WORDS["complete_prompt"] + body, 0))
        for script in scripts:
            assert script.startswith("import re\nfrom collections import Counter\ndef task_func(text, least=1):\n")
            assert "print" not in script
    tabbed = body.replace("    ", "\t")
    task = make_task(COMPLETE, WORDS)
    assert "\t" not in task.postprocess_generation(WORDS["complete_prompt"] + tabbed, 0)


def test_imports_and_signature_stand_before_a_calibrated_program() -> None:
    without = RIGHT.replace("import re\nfrom collections import Counter\n", "")
    assert passes(without)
    assert not passes(without, calibrated=False)
    assert passes(RIGHT, calibrated=False)
    assert passes("from __future__ import annotations\n" + RIGHT)


WRONG = {
    "blank": "",
    "a constant": ALWAYS,
    "nearly right": RIGHT.replace(">= least", "> least"),
    "prints what is expected": "print({'to': 2, 'be': 2})\n" + ALWAYS,
    "leaves": "import sys\nsys.exit(0)",
    "leaves without a word": "import os\nos._exit(0)",
    "leaves when it is called": "import os\ndef task_func(*_):\n    os._exit(0)",
    "leaves while the tests run": "def task_func(*_):\n    raise SystemExit(0)",
}
# Each makes failures vanish in another way; behind it stands a function that is wrong.
TAMPERING = {
    "no failure is noted": "unittest.TestResult.addFailure = unittest.TestResult.addError = lambda *_: None",
    "tests are not run": "unittest.TestCase.run = lambda self, result=None: result",
    "tests are not found": "unittest.TestLoader.getTestCaseNames = lambda *_: []",
    "a suite does nothing": "unittest.TestSuite.run = lambda self, result, *_: result",
    "assertions hold": (
        "for name in dir(unittest.TestCase):\n"
        "    if name.startswith('assert') and name != 'assertRaises':\n"
        "        setattr(unittest.TestCase, name, lambda *_, **__: None)"
    ),
    "two assertions hold": "unittest.TestCase.assertEqual = unittest.TestCase.assertDictEqual = lambda *_, **__: None",
    "tests are emptied as they are made": (
        "class Empty(type):\n"
        "    def __new__(cls, name, bases, space):\n"
        "        for key in space:\n"
        "            if key.startswith('test'): space[key] = lambda self: None\n"
        "        return super().__new__(cls, name, bases, space)\n"
        "class Case(unittest.TestCase, metaclass=Empty): pass\n"
        "unittest.TestCase = Case"
    ),
    "an AssertionError that is none": "import builtins\nbuiltins.AssertionError = unittest.SkipTest",
    "the result of all is right": "unittest.TestResult.wasSuccessful = lambda self: True",
    "the verdict is sent at once": "import os, json\ntext = json.dumps(['ok', None]).encode()\n"
    "os.write(4, len(text).to_bytes(4, 'little') + text)\nos._exit(0)",
}
EQUAL_TO_ALL = {
    "an object": "class Yes:\n    __eq__ = lambda *_: True\n    __hash__ = None\n",
    "a dict": "class Yes(dict):\n    __eq__ = lambda *_: True\n    __ne__ = lambda *_: False\n",
}


@pytest.mark.parametrize("program", WRONG.values(), ids=WRONG)
def test_wrong_programs_fail(program: str) -> None:
    assert not passes(program)


@pytest.mark.parametrize("trick", TAMPERING.values(), ids=TAMPERING)
def test_a_program_that_tampers_with_the_tests_fails(trick: str) -> None:
    raising = "def task_func(text, least=1):\n    if least < 1: raise ValueError\n    return {}\n"
    assert not passes(f"import unittest, unittest.mock\n{trick}\n{raising}")


@pytest.mark.parametrize("kind", EQUAL_TO_ALL.values(), ids=EQUAL_TO_ALL)
@pytest.mark.parametrize("answer", ["Yes()", "{'to': Yes(), 'be': Yes()}"])
def test_an_answer_that_equals_everything_fails(kind: str, answer: str) -> None:
    assert not passes(f"{kind}def task_func(text, least=1):\n    if least < 1: raise ValueError\n    return {answer}\n")


def test_tests_may_replace_functions_of_libraries_and_look_at_files() -> None:
    task = make_task(COMPLETE, FETCH)
    script = FETCH["code_prompt"] + "\n" + solution_of(task, FETCH)
    assert results(task, script) == {"pass@1": 1}
    assert results(task, script.replace("exist_ok=True", "exist_ok=True, mode=0")) == {"pass@1": 0}
    assert results(task, script.replace("sum(numbers) / len(numbers)", "3.0")) == {"pass@1": 0}


def test_numbers_that_a_test_draws_are_replaced_in_the_program() -> None:
    script = DRAW["code_prompt"] + "\n" + DRAW["canonical_solution"]
    assert passes(script, DRAW)
    assert not passes(script.replace("random.randint(1, 6)", "1 + int(6 * random.random())"), DRAW)
    tampered = "import numpy.testing\nnumpy.testing.assert_array_equal = lambda *_: None\n"
    assert not passes(f"{tampered}{script.replace('[1:]', '[:6]')}", DRAW)


def test_a_missing_library_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKAGES, "no_such_library", "no-such-package")
    for needy in ({"libs": "['re', 'no_such_library.part']"}, {"test": f"import no_such_library\n{WORDS['test']}"}):
        report = proctor.evaluate(
            f"code/{COMPLETE}",
            "scripted/oracle",
            data=write_rows(WORDS, {**WORDS, "task_id": "BigCodeBench/9", **needy}),
            allow_code_execution=True,
            workers=1,
        )
        (error,) = (record.error for record in report.records() if record.error)
        assert error.type == "MissingLibraryError"
        assert "install no-such-package there" in error.message
        assert (report.metrics["pass@1"].value, report.metrics["pass@1"].n) == (1, 1)


def test_so_it_is_where_the_program_needs_it() -> None:
    other = {**WORDS, "task_id": "BigCodeBench/9", "libs": "['no_such_library']"}
    task = make_task(COMPLETE, WORDS, other)
    with pytest.raises(MissingLibraryError, match="no_such_library"):
        results(task, f"import no_such_library\n{RIGHT}")
    assert results(task, f"import unheard_of\n{RIGHT}")["pass@1"] == 0  # no part of the benchmark's environment


def test_rows_of_the_hard_subset_come_from_its_own_data_set() -> None:
    registry = proctor.code.TASK_REGISTRY
    assert registry["bigcodebench-hard-complete"].DATASET_PATH == "bigcode/bigcodebench-hard"
    assert registry["bigcodebench-instruct"].DATASET_PATH == "bigcode/bigcodebench"
    assert {registry[name].SPLIT for name in registry if name.startswith("bigcodebench-")} == {"v0.1.4"}
