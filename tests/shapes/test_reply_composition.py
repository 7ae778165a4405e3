"""Replies put together of what models write around an answer: none of it may be read in the answer's place.

The questions and descriptions are those of the tasks. A reply restates the question, repeats lines of the description,
gives up other answers and ends with the answer, in a word or in a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.task import create_task
from proctor.shapes.loader import Item, load_item
from proctor.shapes.replies import UNDETERMINED
from proctor.shapes.task import Task
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS

ITEMS = 6  # of each task
BEFORE = (
    "",
    "{question}\n\n",
    "The question is: {question}\n\n",
    "> {question}\n\n",
    "Let me work this out step by step.\n\n",
    "**Analysis**\n\n",
)
GIVEN_UP = (
    "",
    "One might think the answer is {other}. ",
    "It is tempting to say {other}, but that would be wrong. ",
    "The answer is not {other}. ",
    "It can't be {other}. ",
    "{other} is not right. ",
    "{other}? Not quite. ",
    "My first guess was {other}. But let me check again. ",
    "If I had misread the list, I would have said {other}. ",
    "Some may answer {other}, which is a mistake. ",
    "I initially wrote {other}, but I need to correct that. ",
    "I can rule out {other}. ",
    "It is either {answer} or {other}. ",
    "{other} would be wrong. ",
    "Had it been otherwise, the answer would be {other}. ",
    "A quick look suggests {other}. ",
    "{other} is incorrect because the list says otherwise. ",
    "Rejected: {other}. ",
    "~~{other}~~ ",
)
ENDS = (
    "Answer: {answer}",
    "**Answer:** {answer}",
    "So the answer is {answer}.",
    "Therefore, the answer is {answer}.",
    "Final answer: **{answer}**",
    "\\boxed{{{answer}}}",
    "The final answer is $\\boxed{{\\text{{{answer}}}}}$.",
    "<answer>{answer}</answer>",
    '{{"answer": "{answer}"}}',
    "The answer is {answer}, not {other}.",
    "**Final Answer**\n\n{answer}",
    "Correct answer: {answer}",
    "I conclude that the answer is {answer}.",
    "Result: {answer}",
)
AFTER = (
    "",
    "\n\nI hope this helps!",
    "\n\nLet me know if you have more questions.",
    "\n\n({other} would be wrong.)",
    "\n\nExplanation: {other} would only be right if the list were different.",
    "\n\nNote: a common mistake is to answer {other}.",
    "\n\nThis follows from the description.",
    "\n\nQuestion: Is there a large circle?\nAnswer: {other}",
)


WORDS = {"Left": "to the left of", "Right": "to the right of", "Above": "above", "Below": "below"}
OPPOSITES = {"Left": "Right", "Right": "Left", "Above": "Below", "Below": "Above"}


@cache
def asked(name: str) -> tuple[Task, list[Item]]:
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", {})
    return task, [load_item(task, i, ITEMS) for i in range(ITEMS)]


def read(task: Task, question: str, reply: str) -> str | None:
    return task.parse_answer(reply, question)  # type: ignore[call-arg]


def relation(direction: str) -> str:
    return " and ".join(WORDS[word] for word in direction.split())


def statements(name: str, question: str, answer: str) -> Sequence[str]:
    """Sentences that say the answer in the words of the question."""
    yes = answer == "Yes"
    if name in ("transitivity", "coordinate", "multi_hop"):
        a, b = re.findall(r"\bthe ((?:small|large) \w+ \w+)", question)
        inverse = " ".join(OPPOSITES[word] for word in answer.split())
        return (
            f"So the {a} is {relation(answer)} the {b}.",
            f"Therefore the {b} is {relation(inverse)} the {a}.",
            f"The {a} is {relation(answer)} the {b}.",
        )
    if found := re.fullmatch(r"Which(?: of the other shapes| shape) is (.*)\?", question):
        return f"The {answer} is {found[1]}.", f"So it is the {answer}.", f"It is the {answer} that is {found[1]}."
    if name == "odd_one_out":
        return f"The odd one out is the {answer}.", f"So the {answer} is the odd one out.", f"So it is the {answer}."
    if found := re.fullmatch(r"How many (.*) are there\?", question):
        return f"There are {answer} {found[1]}.", f"The number of {found[1]} is {answer}.", f"So there are {answer}."
    if name == "recolour_tracking":
        return f"So it is {answer} now.", f"Its final colour is {answer}.", f"The shape is {answer} in the end."
    if name == "undetermined":
        claim = re.sub(r"^Is (the \w+ \w+ \w+) (.*)\?$", r"\1 is \2", question)
        if answer == UNDETERMINED:
            return "So it cannot be determined.", f"We cannot tell whether {claim}.", "There is not enough information."
        return f"So {claim}." if yes else f"So {claim.replace(' is ', ' is not ')}.", f"So {answer.lower()}."
    return f"So {answer.lower()}.", *facts(name, question, yes)


def facts(name: str, question: str, yes: bool) -> Sequence[str]:
    no = "" if yes else "not "
    if found := re.search(r"Is there an? (.*?)( on the canvas now)?\?", question):
        there = f"There is {'a' if yes else 'no'} {found[1]}{' on the canvas now' if found[2] else ''}."
        return there, f"So there is {'a' if yes else 'no'} {found[1]}{' now' if found[2] else ''}."
    if found := re.search(r"is (the .*?) between (.*)\?", question):
        return f"{found[1].capitalize()} is {no}between {found[2]}.", f"So it is {no}between them."
    if name == "comparison":
        return f"The numbers are {no}equal.", f"So there are {no}as many."
    return f"So the statement is {'true' if yes else 'false'}.", f"Therefore the claim is {no}true."


@pytest.mark.parametrize("name", REGISTERED_TASKS)
@given(data=st.data())
def test_the_answer_is_read_and_not_what_is_given_up(name: str, data: st.DataObject) -> None:
    task, samples = asked(name)
    item = data.draw(st.sampled_from(samples))
    answers = [answer for answer in item.choices or ("0", "1", "2", "3") if answer != item.answer]
    parts = [data.draw(st.sampled_from(part)) for part in (BEFORE, GIVEN_UP, ENDS, AFTER)]
    reply = "".join(parts).format(question=item.question, answer=item.answer, other=data.draw(st.sampled_from(answers)))
    assert read(task, item.question, reply) == item.answer


@pytest.mark.parametrize("name", REGISTERED_TASKS)
@given(data=st.data())
def test_a_sentence_at_the_end_is_read_and_not_the_description(name: str, data: st.DataObject) -> None:
    task, samples = asked(name)
    item = data.draw(st.sampled_from(samples))
    lines = [line for line in item.description.splitlines() if not line.endswith(":")]
    repeated = data.draw(st.lists(st.sampled_from(lines), max_size=4))
    before = data.draw(st.sampled_from(BEFORE)).format(question=item.question)
    end = data.draw(st.sampled_from(statements(name, item.question, item.answer)))
    after = data.draw(st.sampled_from(AFTER[:3]))
    reply = "\n".join([before, *repeated, "", end]) + after
    assert read(task, item.question, reply) == item.answer


@pytest.mark.parametrize("name", REGISTERED_TASKS)
def test_the_question_and_its_description_are_no_answer(name: str) -> None:
    task, samples = asked(name)
    for item in samples:
        for reply in (
            item.question,
            f"{item.description}\n\n{item.question}",
            f"{item.question}\n\n{task.instruction}",
        ):
            assert read(task, item.question, reply) is None
