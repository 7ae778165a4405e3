"""LiveCodeBench: what is shown, what is read of an output, how tests are unpacked, and what passes them."""

from __future__ import annotations

import base64
import datetime
import json
import pickle
import zlib
from typing import Any

import pytest

import proctor
from helpers.code_tasks import ROWS, make_task, read, results, rows, score_of, write_rows
from proctor.code import rows as code_rows
from proctor.code.packed_tests import PackedTest, cases_of, load_plain_pickle
from proctor.code.task import Task
from proctor.code.tasks.livecodebench import last_fenced, same_output, with_imports
from proctor.core.config import build_config
from proctor.core.errors import MissingDataError, SettingError, UsageError
from proctor.core.types import Message

pytestmark = pytest.mark.usefixtures("one_sandbox")

NAME = "livecodebench"
PRINTING, _, CALLED, NESTED = rows(NAME)
SYSTEM = (
    "You are an expert Python programmer. You will be given a question (problem specification) and will generate a "
    "correct Python program that matches the specification and passes all tests."
)


def shown(task: Task, api: str) -> list[Any]:
    config = build_config({"task": "code/livecodebench", "model": "m", "api": api})
    return [sample.input for sample in task.samples(config)]


def problem(**changes: Any) -> dict[str, Any]:
    return {**PRINTING, "private_test_cases": "[]", **changes}


def test_the_published_prompt() -> None:
    (messages,) = shown(make_task(NAME, CALLED), "chat")
    assert messages == (
        Message("system", SYSTEM),
        Message(
            "user",
            f"### Question:\n{CALLED['question_content']}\n\n"
            "### Format: You will use the following starter code to write the solution to the problem and enclose your "
            f"code within delimiters.\n```python\n{CALLED['starter_code']}\n```\n\n"
            "### Answer: (use the provided format with backticks)\n\n",
        ),
    )
    task = make_task(NAME, PRINTING)
    (completed,) = shown(task, "completions")
    ((_, user),) = shown(task, "chat")
    assert completed == f"{SYSTEM}\n\n{user.content}"
    assert (
        "### Format: Read the inputs from stdin solve the problem and write the answer to stdout (do not directly test "
        "on the sample inputs). Enclose your code within delimiters as follows. Ensure that when the python program "
        "runs, it reads the inputs, runs the algorithm and writes output to STDOUT.\n"
        "```python\n# YOUR CODE HERE\n```\n\n### Answer: (use"
    ) in completed


def test_styles() -> None:
    (one,) = shown(make_task(NAME, PRINTING, style="OpenAIReasonPreview"), "chat")
    ((_, usual),) = shown(make_task(NAME, PRINTING), "chat")
    assert [message.content for message in one] == [f"{SYSTEM}\n\n{usual.content}"]
    ((_, stripped),) = shown(make_task(NAME, PRINTING, style="Claude3"), "chat")
    assert stripped.content == usual.content.rstrip()
    (reasoning,) = shown(make_task(NAME, PRINTING, style="OpenAIReason"), "chat")
    assert "Implement a function called `main()`" in reasoning[0].content
    with pytest.raises(SettingError, match="style: expected OpenAIChat or "):
        make_task(NAME, PRINTING, style="Generic")


def test_a_base_model_is_shown_the_example_of_a_checkout() -> None:
    base = {"style": "GenericBase", "prompts": str(ROWS / "livecodebench-prompts")}
    second, first = shown(make_task(NAME, CALLED, PRINTING, **base), "completions")
    assert first == (
        "### Question\nReturn the largest number.\n\n"
        "### Starter Code\nclass Solution:\n    def largest(self, numbers: List[int]) -> int:\n\n\n"
        "### Answer\n\n"
        "class Solution:\n    def largest(self, numbers: List[int]) -> int:\n        return max(numbers)\n\n"
        f"### Question\n{CALLED['question_content']}\n\n"
        f"### Starter Code\n{CALLED['starter_code']}\n\n### Answer\n\n"
    )
    assert second.startswith("### Question\nPrint the sum of the numbers on the line.\n\n### Answer\n\nprint(sum(")
    with pytest.raises(UsageError, match="prompts=PATH"):
        shown(make_task(NAME, CALLED, style="GenericBase"), "completions")
    with pytest.raises(UsageError, match=r"few_shot_examples/generation/func\.json in"):
        shown(make_task(NAME, CALLED, style="GenericBase", prompts="."), "completions")


@pytest.mark.parametrize(
    ("window", "ids"),
    [
        ({}, ["aaa101_a", "aaa102_b", "inv-3", "inv-4"]),
        ({"start_date": "2024-09-14"}, ["aaa102_b", "inv-3", "inv-4"]),
        ({"start_date": "2024-03-03", "end_date": "2025-01-19"}, ["aaa102_b", "inv-3"]),
        ({"end_date": "2024-03-02"}, ["aaa101_a"]),
    ],
)
def test_a_window_of_dates(window: dict[str, str], ids: list[str]) -> None:
    task = make_task(NAME, *rows(NAME), **window)
    assert [row["question_id"] for row in task.rows()] == ids


def test_what_is_wrong_with_a_window_is_said() -> None:
    with pytest.raises(SettingError, match="start_date: expected a day such as 2024-09-01, got 'May'"):
        make_task(NAME, PRINTING, start_date="May")
    with pytest.raises(
        MissingDataError, match=r"no problem from 2026-01-01 to .*; those in the data are from 2024-03-02 to"
    ):
        make_task(NAME, *rows(NAME), start_date="2026-01-01").rows()
    with pytest.raises(MissingDataError, match="no 'contest_date'; there is: question_id"):
        make_task(NAME, {"question_id": "a"}).rows()


@pytest.mark.parametrize(
    ("release", "files"),
    [
        ("release_latest", [1, 2, 3, 4, 5, 6]),
        ("release_v2", [1, 2]),
        ("v1", [1]),
        ("v6", [6]),
        ("v4_v5", [4, 5]),
    ],
)
def test_a_release_is_some_files_of_the_hub(release: str, files: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    class Hub:
        @staticmethod
        def load_dataset(kind: str, data_files: list[str], split: str) -> Any:
            assert (kind, split) == ("json", "train")
            asked.append(data_files)
            return code_rows.Table([PRINTING])

    monkeypatch.setattr(code_rows, "import_extra", lambda *_: Hub)
    task = proctor.code.get_task(NAME)
    task = type(task).build(type(task).Settings(release=release), None)
    assert len(task.rows()) == 1
    names = ["test.jsonl" if number == 1 else f"test{number}.jsonl" for number in files]
    assert asked == [[f"hf://datasets/livecodebench/code_generation_lite/{name}" for name in names]]


@pytest.mark.parametrize("release", ["v7", "release_v0", "v3_v2", "release_v1_v2", "2024"])
def test_an_unknown_release_is_named(release: str) -> None:
    cls = proctor.code.TASK_REGISTRY[NAME]
    with pytest.raises(SettingError, match="release: expected release_v1 to release_v6"):
        cls.build(cls.Settings(release=release), None)
    with pytest.raises(SettingError, match="with --data leave it out"):
        make_task(NAME, PRINTING, release="v1")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("So:\n```python\na\n```\nOr better:\n```python\nb\n```\nDone.", "b"),
        ("```\na\n\nb\n```", "a\n\nb"),
        ("It begins:\n```python\na\nb", "a\nb"),
        ("print(1)\n", "print(1)"),
        ("<think>\n```python\nno\n```\n</think>\n```python\nyes\n```", "yes"),
    ],
)
def test_the_last_fenced_block_is_the_answer(text: str, code: str) -> None:
    task = make_task(NAME, PRINTING)
    assert read(task, text) == code
    assert "<think>" in text or last_fenced(text) == code
    base = make_task(NAME, PRINTING, style="GenericBase", prompts=str(ROWS / "livecodebench-prompts"))
    assert base.postprocess_generation(" print(1)\n\n### Question\nAnother", 0) == "print(1)"


@pytest.mark.parametrize(
    ("found", "right", "same"),
    [
        (" 1 2 \n3\n\n", "1 2\n3", True),
        ("1 2 3", "1 2\n3", False),
        ("1\n\n2", "1\n2", False),
        ("1.50  2", "1.5 2.0", True),
        ("1e2", "100", True),
        ("0.30000000000000004", "0.3", False),  # equal, and not near
        ("50000000000000001", "50000000000000000", False),
        ("Yes", "YES", False),
        ("nan", "nan", True),
        ("nan", "NaN", False),
        ("sNaN", "1", False),
        ("", "", True),
        ("", "0", False),
    ],
)
def test_what_counts_as_the_same_output(found: str, right: str, same: bool) -> None:
    assert same_output(found, right) is same


CASES = [{"input": "1\n", "output": "ä", "testtype": "stdin"}]


def pack(value: Any, protocol: int = 4) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


@pytest.mark.parametrize(
    "packed",
    [CASES, json.dumps(CASES), *(pack(json.dumps(CASES), protocol) for protocol in range(1, 6)), pack(CASES)],
)
def test_test_cases_in_every_form(packed: Any) -> None:
    assert cases_of(packed) == [PackedTest("1\n", "ä")]


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return open, ("harmed", "w")


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (pack(Hostile()), "STACK_GLOBAL"),
        (pack(Hostile(), 0), "GLOBAL"),
        (pack(datetime.date(2024, 1, 1)), "pickle opcodes that are not allowed"),
        (base64.b64encode(zlib.compress(b"\x80\x04r\xff\xff\xff\x7f.")).decode(), "LONG_BINPUT"),
        (base64.b64encode(zlib.compress(b"\x80\x04")).decode(), "cannot be read"),
        (base64.b64encode(zlib.compress(b"\x80\x04h\x05.")).decode(), "cannot be read"),
        (base64.b64encode(b"neither").decode(), "neither JSON nor compressed"),
        ("no cases", "neither JSON nor compressed"),
        ('{"input": 1}', "not test cases"),
        ('[{"input": 1, "output": ""}]', "not test cases"),
    ],
)
def test_nothing_is_run_that_was_packed_as_test_cases(packed: str, why: str, tmp_path: Any) -> None:
    with pytest.raises(MissingDataError, match=why):
        cases_of(packed)
    assert not list(tmp_path.glob("**/harmed"))


def test_a_small_text_that_stands_for_a_large_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.code.packed_tests._LARGEST", 1 << 20)
    with pytest.raises(MissingDataError, match="larger than 1 MiB"):
        cases_of(pack("0" * (2 << 20)))


def test_plain_pickles_hold_texts_lists_and_dicts() -> None:
    value = {"a": ["b", {"c": []}], "d": "é"}
    assert load_plain_pickle(pickle.dumps(value)) == value


HOSTILE = {
    "prints what the sample expects": "print(3)",
    "leaves at once": "import sys\nsys.exit(0)",
    "leaves without a word": "import os\nos._exit(0)",
    "prints all answers": "print('3\\n1\\n1\\n6')",
    "nearly right": PRINTING["canonical_solution"].replace(">", ">="),
    "blank": "",
    "does not compile": "print(",
}


@pytest.mark.parametrize("program", HOSTILE.values(), ids=HOSTILE)
def test_wrong_programs_fail(program: str) -> None:
    assert results(make_task(NAME, PRINTING), program)["pass@1"] == 0


WRONG_METHODS = {
    "a constant": "        return 2",
    "nearly right": "        return sum(max(numbers) - n for n in numbers if n > 0)",
    "equals everything": "        class Yes(int):\n            __eq__ = lambda *_: True\n        return Yes()",
    "prints": "        print(2)",
    "leaves": "        import os\n        os._exit(0)",
}


@pytest.mark.parametrize("body", WRONG_METHODS.values(), ids=WRONG_METHODS)
def test_wrong_methods_fail(body: str) -> None:
    head = CALLED["starter_code"].rstrip()
    assert results(make_task(NAME, CALLED), f"{head}\n{body}")["pass@1"] == 0


@pytest.mark.parametrize(
    ("row", "program"),
    [
        (PRINTING, "print(len(set(accumulate([*map(int, open(0).read().split())][1:], max))))"),  # imports left out
        (PRINTING, "import sys\nnext(sys.stdin)\nprint(len({*accumulate(map(int, stdin.readline().split()), max)}))"),
        (PRINTING, "from __future__ import annotations\n" + PRINTING["canonical_solution"] + "exit()"),
        (CALLED, "def minimumSteps(numbers):\n    return sum(max(numbers) - n for n in numbers)"),  # without the class
        (NESTED, "from typing import *\n" + NESTED["canonical_solution"]),  # a tuple of lists is as good as a list
    ],
)
def test_right_programs_pass_as_contestants_write_them(row: dict[str, Any], program: str) -> None:
    assert results(make_task(NAME, row), program)["pass@1"] == 1


def test_only_a_tuple_that_is_the_whole_answer_counts_as_a_list() -> None:
    program = NESTED["canonical_solution"].replace("], [", "), tuple(").replace("parts = [", "parts = tuple(")
    program = program.replace("number % 2]", "number % 2)")
    assert "tuple(number for" in program
    assert results(make_task(NAME, NESTED), program)["pass@1"] == 0


def test_imports_are_made_for_the_names_in_a_program() -> None:
    made = with_imports("print(sqrt(input()))")
    assert "from math import *" in made
    assert "statistics" not in made
    assert with_imports("heapq.heappush([], 1)").index("from heapq") < with_imports("heapq.heappush([], 1)").index(
        "import heapq"
    )


def test_each_test_has_its_own_time() -> None:
    cases = json.dumps([{"input": str(number), "output": "1"} for number in range(3)])
    task = make_task(NAME, problem(public_test_cases=cases), timeout=0.6)
    slow = "import time\nt = time.process_time()\nwhile time.process_time() < t + 0.35: pass\nprint(1)"
    assert results(task, slow)["pass@1"] == 1


def test_a_run_with_results_by_difficulty_and_platform() -> None:
    report = proctor.evaluate(
        f"code/{NAME}", "scripted/oracle", data=str(ROWS / f"{NAME}.jsonl"), allow_code_execution=True
    )
    assert report.metrics["pass@1"].value == 1
    assert set(report.run.groups["platform"]) == {"leetcode", "atcoder", "codeforces"}
    assert report.run.groups["difficulty"]["easy"]["pass@1"].n == 2


def test_a_wrong_output_is_told() -> None:
    with open("replay.jsonl", "w") as file:
        file.write(json.dumps({"id": "aaa101_a", "outputs": [{"text": "```python\nprint(1)\n```"}]}))
    report = proctor.evaluate(
        f"code/{NAME}", "scripted/replay:replay.jsonl", data=write_rows(PRINTING), allow_code_execution=True
    )
    (record,) = report.records()
    assert (score_of(record).value, score_of(record).why) == (0, "It printed '1\\n' instead of '3\\n'.")


def test_a_problem_without_tests_is_an_error() -> None:
    with pytest.raises(ValueError, match="aaa101_a has no tests: it cannot be judged"):
        results(make_task(NAME, problem(public_test_cases="[]")), "print(1)")
