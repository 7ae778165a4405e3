import json
import re
import time
from collections.abc import Callable, Iterable
from itertools import product
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from helpers.paths import DATA
from helpers.shapes_settings import slow
from proctor.core.task import create_task
from proctor.core.types import Sample
from proctor.shapes import Shape, Task
from proctor.shapes.answers import (
    UNDETERMINED,
    parse_choice,
    parse_colour,
    parse_direction,
    parse_entailment,
    parse_integer,
    parse_shape,
    parse_yes_no,
)
from proctor.shapes.canvas import LARGE
from proctor.shapes.tasks.count import CountTask

REPLIES = DATA / "replies"
PARSERS: dict[str, Callable[..., str | None]] = {
    "yes_no": parse_yes_no,
    "entailment": parse_entailment,
    "number": parse_integer,
    "direction": parse_direction,
    "colour": parse_colour,
    "shape": parse_shape,
}
DIRECTIONS = (
    *("Left", "Right", "Above", "Below"),
    *(" ".join(pair) for pair in product(("Above", "Below"), ("Left", "Right"))),
)
ANSWERS = {
    "yes_no": ("Yes", "No"),
    "entailment": ("Yes", "No", UNDETERMINED),
    "number": tuple(map(str, range(100))),
    "direction": DIRECTIONS,
    "colour": LARGE.colours,
    "shape": LARGE.names,
}
QUESTIONS = {
    "yes_no": "Is there a small red square?",
    "entailment": "Is the small red square to the left of the large blue circle?",
    "number": "How many small squares are there?",
    "direction": "Where is the small red square relative to the large blue circle?",
    "colour": "What colour is the shape at (3, 4) now?",
    "shape": "Which of the other shapes is second nearest to the small red square?",
}
SHORT = ("{}", "{}.", "**{}**", "`{}`", "“{}”", "```\n{}\n```", "- {}", "({})", "{}\n\nI hope this helps!")
ANNOUNCED = (
    "Answer: {}",
    "**Answer:** {}",
    "### Answer\n\n{}",
    "Final answer: {}.",
    "The answer is {}.",
    "The answer is **{}** (see (3, 4) and (-5, 6)).",
    "So the final answer is: {}, because the description says so.",
    "Answer: {}\n\nExplanation: the shapes are at (3, 4), (5, 6) and (7, 8).",
    "Therefore, the answer is {} — as the lines say.",
    "\\boxed{{{}}}",
    "The final answer is $\\boxed{{\\text{{{}}}}}$.",
    "<answer>{}</answer>",
    '{{"reasoning": "as described", "answer": "{}"}}',
    '```json\n{{\n  "answer": "{}"\n}}\n```',
)
NEUTRAL = (
    "",
    "No problem! ",
    "Sure, I can help with that!\n\n",
    "Okay, let me look at the shapes at (3, 4) and (-5, 12).\n\n",
    "<think>\nIt must be {other}. No, wait.\n</think>\n\n",
    "It could be {other}.\n</think>\n\n",
)
MISLEADING = (
    "{other}\n\nWait, that is wrong.\n\n",
    "Answer: {other}\n\nHmm, let me check that again. I misread a line.\n\n",
    "First I thought the answer is {other}.\n\n",
    "1. {other}\n2. {other}\n\n",
    "It is not {other}. ",
    "Is it {other}? ",
)


class Row(NamedTuple):
    question: str
    reply: str
    answer: str | None
    whole: bool  # no sentence of it answers: only the reply as a whole does, so that nothing can be added


def corpus(kind: str) -> list[Row]:
    rows = map(json.loads, (REPLIES / f"{kind}.jsonl").read_text().splitlines())
    return [Row(row.get("question", ""), row["reply"], row["answer"], row.get("whole", False)) for row in rows]


def misread(kind: str, rows: Iterable[Row], around: str = "{}") -> list[tuple[Row, str | None]]:
    read = ((row, PARSERS[kind](around.format(row.reply), row.question)) for row in rows)
    return [(row, answer) for row, answer in read if answer != row.answer]


@pytest.mark.parametrize("kind", PARSERS)
def test_replies_are_read_as_a_person_reads_them(kind: str) -> None:
    assert misread(kind, corpus(kind)) == []


AROUND = (
    "<think>\nHmm. Yes, no, 3, left, red, small red square?\n</think>\n\n{}",
    "Sure! {}",
    "Let me think step by step.\n\n{}",
    "The shapes are at (3, 4), (-5, 12) and (7, 7).\n\n{}",
    "{}\n\nI hope this helps!",
    "\r\n{}\r\n\r\nLet me know if you have any questions.",
)


@pytest.mark.parametrize("kind", PARSERS)
def test_words_around_a_reply_change_nothing(kind: str) -> None:
    rows = [row for row in corpus(kind) if "think" not in row.reply and not row.whole]
    assert [misread(kind, rows[i :: 5 * len(AROUND)], around) for i, around in enumerate(AROUND)] == [[]] * len(AROUND)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize("around", AROUND)
def test_words_around_any_reply_change_nothing(kind: str, around: str) -> None:
    rows = (row for row in corpus(kind) if "think" not in row.reply and not row.whole)
    assert misread(kind, rows, around) == []


STEPS = {
    "yes_no": ("The small red square is removed. No change for the circle.", "The circle comes back, yes."),
    "entailment": ("No line links the two.", "One line says yes, one says no."),
    "number": ("There are 7 shapes.", "4 of them are small.", "The one at (3, 4) is red."),
    "direction": ("The square is above the circle.", "The circle is to the left of it.", "The triangle is below them."),
    "colour": ("The small red square turns green.", "The small green square turns black."),
    "shape": ("small yellow circle: x = 3", "large black triangle: x = -4", "small orange square: x = 12"),
}


@pytest.mark.parametrize("step", [6, slow(1)])
@pytest.mark.parametrize("kind", PARSERS)
def test_steps_before_a_reply_change_nothing(kind: str, step: int) -> None:
    steps = "".join(f"{i}. {step}\n" for i, step in enumerate(STEPS[kind], 1))
    # A list would go on with the steps.
    rows = [
        row
        for row in corpus(kind)
        if not row.whole and not re.search(r"think|^- |\A2\. |^1\. |\Aa\) ", row.reply, re.M)
    ]
    assert misread(kind, rows[::step], steps + "\n{}") == []


@pytest.mark.parametrize("kind", PARSERS)
def test_corpus_has_many_replies_of_every_kind(kind: str) -> None:
    rows = corpus(kind)
    assert len({(row.question, row.reply) for row in rows}) == len(rows) >= 700
    assert sum(row.answer is None for row in rows) >= 70


@pytest.mark.parametrize("kind", PARSERS)
@given(data=st.data())
def test_every_answer_is_read_in_every_style(kind: str, data: st.DataObject) -> None:
    answer, other = (data.draw(st.sampled_from(ANSWERS[kind])) for _ in range(2))
    assume(answer != other)
    before = data.draw(st.sampled_from((*NEUTRAL, *MISLEADING)))
    styles = ANNOUNCED if before in MISLEADING else (*SHORT, *ANNOUNCED)
    reply = before.format(other=other) + data.draw(st.sampled_from(styles)).format(answer)
    assert PARSERS[kind](reply) == answer
    assert PARSERS[kind](reply.upper().replace("BOXED", "boxed").replace("TEXT", "text")) == answer


@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize("style", SHORT + ANNOUNCED)
def test_every_style_is_read_for_every_answer(kind: str, style: str) -> None:
    read = {answer: PARSERS[kind](style.format(answer)) for answer in ANSWERS[kind]}
    assert read == {answer: answer for answer in ANSWERS[kind]}


@pytest.mark.parametrize("kind", PARSERS)
@given(
    data=st.data(),
    style=st.sampled_from(
        (
            "{} or {}",
            "{} or {}?",
            "Answer: {} or {}.",
            "Either {} or {}.",
            "It could be {}. It could also be {}.",
            "\\boxed{{{} or {}}}",
        )
    ),
)
def test_two_answers_are_none(kind: str, data: st.DataObject, style: str) -> None:
    a, b = (data.draw(st.sampled_from(ANSWERS[kind])) for _ in range(2))
    assume(a != b)
    assert PARSERS[kind](style.format(a, b)) is None


@pytest.mark.parametrize("text", ["1. small blue square\n2. small red square\n3.", "1. blue\n2. red\n3. "])
def test_a_list_that_is_cut_off_gives_no_number(text: str) -> None:
    assert parse_integer(text) is None
    assert parse_integer(f"{text}\n\nSo there are 3.") == parse_integer(f"1. blue\n2. red\n\n{3}.") == "3"


@pytest.mark.parametrize("kind", ["number", "direction", "colour", "shape"])
def test_what_is_denied_is_no_answer(kind: str) -> None:
    for answer in ANSWERS[kind]:
        for denial in ("It is not {}.", "It isn't {}", "The answer is not {}.", "Not {}, I am sure of that."):
            assert PARSERS[kind](denial.format(answer)) is None


@given(
    st.integers(0, 10**6),
    st.sampled_from(["{}", "{:,}", "There are {}.", "Answer: {} shapes", "{}.0", "We count {} of them."]),
)
def test_every_count_is_read(number: int, sentence: str) -> None:
    assert parse_integer(sentence.format(number)) == str(number)


@given(st.sampled_from(LARGE.names), st.permutations(range(3)), st.sampled_from((" ", ", ", " / ", " and ")))
def test_attributes_of_a_shape_come_in_any_order(name: str, order: list[int], glue: str) -> None:
    words = name.split()
    assert parse_shape(glue.join(words[i] for i in order)) == name
    labelled = [f"{('Size', 'Colour', 'Form')[i]}: {words[i]}" for i in order]
    assert parse_shape("\n".join(labelled)) == parse_shape(", ".join(labelled)) == name
    keyed = {("size", "color", "shape")[i]: words[i] for i in order}
    assert parse_shape(json.dumps(keyed)) == parse_shape(json.dumps({"answer": keyed}, indent=2)) == name


@given(st.text())
def test_no_text_breaks_a_parser(text: str) -> None:
    for kind, parse in PARSERS.items():
        for answer in (parse(text), parse(text, QUESTIONS[kind]), parse(f"{QUESTIONS[kind]} {text}", text)):
            assert answer is None or kind == "number" or answer in ANSWERS[kind]


PIECES = (
    *(
        "a",
        " \n",
        "1 ",
        "1. x\n",
        "(",
        "{",
        "[",
        "\\",
        "<answer>",
        "\\boxed{",
        '"answer": "',
        "**",
        "| a ",
        "' ",
        "answer is ",
    ),
    *(
        "the answer to ",
        "not ",
        "no ",
        "small red ",
        "left and ",
        "up ",
        "so ",
        "wait ",
        "if ",
        "... ",
        "one ",
        "x = ",
        "3 < ",
        "a:",
    ),
)


def seconds(kind: str, piece: str, size: int) -> float:
    text = piece * (size // len(piece))
    started = time.process_time()
    PARSERS[kind](text, QUESTIONS[kind])
    return time.process_time() - started


def test_long_replies_are_read_in_a_moment() -> None:
    assert max(seconds(kind, piece, 3_000) for piece in PIECES for kind in PARSERS) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("kind", PARSERS)
def test_time_to_read_a_reply_is_proportional_to_its_length(kind: str) -> None:
    """Ten times the length would take a hundred times the time if anything were searched again and again."""
    for piece in PIECES:
        short, long = (seconds(kind, piece, size) for size in (3_000, 30_000))
        assert long < 40 * max(short, 0.01), piece


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("north", "North"),
        ("Answer: South (not North)", "South"),
        ("It is not north but south.", "South"),
        ("North or south.", None),
        ("<think>North</think>The answer is *South West*.", "South West"),
        ("East", None),
        ("", None),
    ],
)
def test_choice_of_words(text: str, answer: str | None) -> None:
    assert parse_choice(text, ["North", "South", "South West"]) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("B", "B"),
        ("(C)", "C"),
        ("A square is there, so the answer is B.", "B"),
        ("Answer: A because it is red", "A"),
        ("a", None),
        ("A or B", None),
    ],
)
def test_choice_of_letters(text: str, answer: str | None) -> None:
    assert parse_choice(text, "ABC") == answer


def test_choices_that_look_the_same_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be told apart"):
        parse_choice("yes", ["yes", "Yes"])
    with pytest.raises(ValueError, match="cannot be told apart"):
        parse_choice("(3, 4)", ["(3, 4)", "(5, 6)"])


class Plain(Task):
    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        return [("?", "red")] * 3


def test_a_task_reads_replies_with_its_question_in_hand() -> None:
    task = create_task(CountTask, "shapes/count", {})
    sample = Sample("0", 0, "…", "3", metadata={"question": "How many small squares are there?"})
    other = msgspec.structs.replace(sample, metadata={"question": "How many large squares are there?"})
    reply = "There are 3 small squares and 2 large squares."
    assert [task.score_text(asked, reply).answer for asked in (sample, other)] == ["3", "2"]


class Own(Plain):
    """Its parser does not ask for the question."""

    def parse_answer(self, text: str) -> str | None:
        return parse_colour(text)


class OwnWithQuestion(Plain):
    def parse_answer(self, text: str, question: str = "") -> str | None:
        return parse_integer(text, question)


def test_a_parser_of_ones_own_may_have_the_question() -> None:
    sample = Sample("0", 0, "…", "3", metadata={"question": "How many small squares are there?"})
    assert Own().score_text(sample, "It is blue.").answer == "blue"
    reply = "There are 3 small squares and 2 large squares."
    assert OwnWithQuestion().score_text(sample, reply).answer == "3"
    assert OwnWithQuestion().parse_answer(reply) is None


def test_default_score_does_not_count_reasoning() -> None:
    task = Plain()
    assert task.parse_answer("<think>red or blue?</think> It is blue.") == "It is blue."
    assert task.parse_answer("<think>red") is None
    assert task.score("red", "It is red.") == 1
    assert task.score("red", "<think>red or blue?</think>It is blue.") == 0
