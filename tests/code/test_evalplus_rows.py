"""EvalPlus's own rows: its prompts, its inputs, and which answers it takes for the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

import proctor
from helpers.code_tasks import chat_prompt, make_task, prompt_text, read, results, rows, score_of, write_rows
from proctor.code.tasks.evalplus_rows import MBPPPlusRows

pytestmark = pytest.mark.usefixtures("one_sandbox")

HUMANEVAL = {row["entry_point"]: row for row in rows("evalplus-humaneval")}
MBPP = {row["entry_point"]: row for row in rows("evalplus-mbpp")}
ASKED = "Please provide a self-contained Python script that solves the following problem in a markdown code block:"


def passes(entry_point: str, body: str, **changes: Any) -> bool:
    """Of a function with one argument x, or two; its first line is given by the row that asks for it."""
    kind, row = ("humaneval", HUMANEVAL) if entry_point in HUMANEVAL else ("mbpp", MBPP)
    program = f"import re\ndef {entry_point}(x, y=None):\n    {body}\n"
    return results(make_task(f"evalplus-{kind}", row[entry_point] | changes), program)["pass@1"] == 1


def special(entry_point: str, reference: str, cases: list[Any], number: int = 1, atol: float = 0) -> dict[str, Any]:
    """A row of MBPP+ with a function for which there is a rule of its own."""
    code = f"def {entry_point}(x, y=None):\n    {reference}\n"
    return MBPP["mean"] | {
        "task_id": f"Mbpp/{number}",
        "entry_point": entry_point,
        "canonical_solution": code,
        "base_input": cases,
        "plus_input": [],
        "atol": atol,
    }


def takes(row: dict[str, Any], body: str) -> bool:
    program = f"def {row['entry_point']}(x, y=None):\n    {body}\n"
    return results(make_task("evalplus-mbpp", row), program)["pass@1"] == 1


@pytest.mark.parametrize("kind", ["humaneval", "mbpp"])
def test_the_published_prompts(kind: str) -> None:
    row = rows(f"evalplus-{kind}")[1]
    task = make_task(f"evalplus-{kind}", row)
    assert prompt_text(task, row) == row["prompt"].strip() + "\n"
    assert chat_prompt(task, row) == f"{ASKED}\n```python\n{row['prompt'].strip()}\n```"
    assert task.stop_words[:6] == ["<|endoftext|>", "<|endofmask|>", "</s>", "\nif __name__", "\ndef main(", "\nprint("]
    others = {"humaneval": ["\ndef ", "\nclass ", "\nimport ", "\nfrom ", "\nassert "], "mbpp": ['\n"""', "\nassert"]}
    assert task.stop_words[6:] == others[kind]


def test_the_hub_has_the_same_problems_with_tests_instead() -> None:
    row = rows("mbppplus")[0]
    task = make_task("evalplus-mbpp", row)
    assert prompt_text(task, row) == f'"""\n{row["prompt"]}\n{row["test_list"][0]}\n"""\n'
    assert results(task, row["code"])["pass@1"] == 1
    assert results(task, "def shared_items(one, other):\n    return (4, 5) if 5 in one else ()")["pass@1"] == 0
    row = rows("humanevalplus")[0]
    task = make_task("evalplus-humaneval", row)
    assert results(task, row["prompt"] + row["canonical_solution"])["pass@1"] == 1
    assert results(task, row["prompt"] + "    return None")["pass@1"] == 0


def test_original_tests_are_counted_beside_all() -> None:
    row = HUMANEVAL["half"]
    only_base = "def half(text):\n    return (text[:1], text[1:]) if len(text) < 4 and text else (text[:2], text[2:])\n"
    texts = [only_base, row["prompt"] + row["canonical_solution"], "def half(text):\n    return 'a', 'bc'"]
    with open("replay.jsonl", "w") as file:
        file.write(json.dumps({"id": row["task_id"], "outputs": [{"text": text} for text in texts]}))
    report = proctor.evaluate(
        "code/evalplus-humaneval",
        "scripted/replay:replay.jsonl",
        data=write_rows(row | {"plus_input": [[""], ["abcdefgh"]]}),
        samples=3,
        allow_code_execution=True,
    )
    assert report.metrics["pass@1"].value == pytest.approx(1 / 3)
    assert report.metrics["base pass@1"].value == pytest.approx(2 / 3)
    (record,) = report.records()
    assert [one["reading"] for one in score_of(record).answer] == [{"base": True}, {"base": True}, {"base": False}]
    assert {one["testing"] for one in score_of(record).answer} == {"split"}


@pytest.mark.parametrize(
    ("body", "right"),
    [
        ("return min(x) / 2 + max(x) / 2", True),
        ("return (min(x) + max(x)) / 2 + 1e-7", True),
        ("return (min(x) + max(x)) / 2 + 1e-4", False),
        ("return str((min(x) + max(x)) / 2)", False),
        ("return [(min(x) + max(x)) / 2]", False),
        ("class Yes(float):\n        __eq__ = lambda *_: True\n    return Yes()", False),
        ("import os; os._exit(0)", False),
        ("print((min(x) + max(x)) / 2)", False),
    ],
)
def test_floating_point_numbers_may_differ_a_little(body: str, right: bool) -> None:
    assert passes("middle", body) is right


@pytest.mark.parametrize(
    ("body", "right"),
    [
        ("return [0, 3.5]", True),
        ("return [0.00005, 3.5]", True),  # the tolerance of the row
        ("return (0, 3.5)", False),  # another type
        ("return [0, 3.5, 1]", False),
        ("return [0.001, 3.5]", False),
        ("return [float('nan'), 3.5]", False),
    ],
)
def test_lists_are_compared_number_by_number(body: str, right: bool) -> None:
    assert takes(special("numbers", "return [0, 3.5]", [[1]], atol=1e-4), body) is right


def test_the_tolerance_for_floating_point_numbers_stays() -> None:
    cases = [[[1.0]], [[0, 0.5]]]  # of the second answer alone, one number is whole
    row = special("numbers", "return x", cases)
    assert takes(row, "return [value + 1e-8 for value in x]")
    assert not takes(row | {"base_input": cases[1:]}, "return [value + 1e-8 for value in x]")


@pytest.mark.parametrize(
    ("entry_point", "reference", "cases", "accepted", "refused"),
    [
        ("find_char_long", "return ['a', 'b']", [["x"]], "return ['b', 'a', 'a']", "return ['a']"),
        ("check_str", "return x == 'a' or None", [["a"], ["b"]], "return x == 'a'", "return False"),
        ("check_str", "return x == 'a' or None", [["a"], ["b"]], "return 0 if x == 'a' else None", "return 0"),
        ("sum_div", "return 6", [[6]], "return 0", "return 1"),
        ("surface_Area", "return 33", [[3, 4]], "return 35", "return 34"),
        ("digit_distance_nums", "return 1", [[1, 20]], "return 3", "return 2"),
    ],
)
def test_problems_with_more_than_one_answer(
    entry_point: str, reference: str, cases: list[Any], accepted: str, refused: str
) -> None:
    row = special(entry_point, reference, cases)
    assert takes(row, reference)
    assert takes(row, accepted)
    assert not takes(row, refused)


def test_any_zero_of_a_polynomial_is_right() -> None:
    assert passes("find_zero", "return {2: -0.5, 4: {-6: 2.0, 8: -2.0}.get(x[0])}[len(x)]")
    assert not passes("find_zero", "return {2: -0.5, 4: {-6: 2.1, 8: -2.0}.get(x[0])}[len(x)]")


@pytest.mark.parametrize(
    ("number", "packed", "case"),
    [
        (2, [[1], [2]], [(1,), (2,)]),
        (63, [[[1, 2]], []], [[(1, 2)], []]),
        (75, [[[1]], 2], [[(1,)], 2]),
        (106, [[1], [2]], [[1], (2,)]),
        (115, [[[1], [], 3]], [[{1}, {}, {}]]),
        (124, ["1", "2j"], (1.0, 2j)),
        (250, [[1], [2]], [(1,), [2]]),
        (252, ["(1+2j)"], [1 + 2j]),
        (259, [[[1]], [[2]]], [((1,),), ((2,),)]),
        (278, [[1, [2]]], [(1, (2,))]),
        (307, [[1], 2, 3], [(1,), 2, 3]),
        (722, [{"a": [1]}, 2], [{"a": (1,)}, 2]),
        (580, [[1, [2]]], ((1, (2,)),)),
        (3, [[1]], [[1]]),
    ],
)
def test_inputs_are_what_they_were_before_they_were_written_as_json(number: int, packed: list[Any], case: Any) -> None:
    found = MBPPPlusRows.inputs(MBPPPlusRows.__new__(MBPPPlusRows), {"task_id": f"Mbpp/{number}", "x": [packed]}, "x")
    assert found == [case]
    assert repr(found) == repr([case])


@pytest.mark.parametrize(
    ("entry_point", "body"),
    [
        ("similar_elements", "return (4, 5)"),
        ("similar_elements", "return tuple(set(x) | set(y))"),
        ("distance", "return abs(x), x.imag"),
        ("text_match_three", "return re.search('ab{2}', x)"),
        ("all_empty", "return not x[0] if x else True"),
        ("last_digit_sum", "return sum(n % 10 for n in x)"),
        ("last_digit_sum", "x.clear(); return 0"),
    ],
)
def test_constants_and_nearly_right_programs_fail(entry_point: str, body: str) -> None:
    assert not passes(entry_point, body)


def test_what_a_chat_model_says_becomes_a_script() -> None:
    row = HUMANEVAL["half"]
    task = make_task("evalplus-humaneval", row)
    wanted = "def half(text):\n    return text[:1], text[1:]"
    assert read(task, f"Well:\n```python\n{wanted}\n\nassert half('ab') == ('a', 'b')\n```") == wanted
    assert read(task, "    return text[:1], text[1:]").endswith("return text[:1], text[1:]")
    assert (
        task.postprocess_generation(f"{prompt_text(task, row)}\treturn text[:1], text[1:]", 0).count("    return") == 1
    )
