"""Marks of whole replies: a description gone through line by line, then a conclusion in the words of the question."""

import re
from collections.abc import Callable, Iterator, Sequence

import pytest

from helpers.shapes_settings import find, sizes
from proctor.core.task import create_task
from proctor.shapes.loader import Item, load_item, load_sample
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS

RELATIONS = {
    "Left": "to the left of",
    "Right": "to the right of",
    "Above": "above",
    "Below": "below",
    **{
        f"{level} {side}": f"{level.lower()} and to the {side.lower()} of"
        for level in ("Above", "Below")
        for side in ("Left", "Right")
    },
}
OPPOSITES = {"Left": "Right", "Right": "Left", "Above": "Below", "Below": "Above"}
NAME = r"(\w+ \w+ \w+)"


def opposite(direction: str) -> str:
    return " ".join(OPPOSITES[word] for word in direction.split())


def places(question: str, answer: str, choices: Sequence[str]) -> list[str]:
    a, b = re.findall(r"(?:small|large) \w+ \w+", question)
    return [f"So the {a} is {RELATIONS[answer]} the {b}.", f"Hence the {b} is {RELATIONS[opposite(answer)]} the {a}."]


def follows(question: str, answer: str, choices: Sequence[str]) -> list[str]:
    a, relation, b = find(rf"Is the {NAME} (.+?) the {NAME}\?", question).groups()
    other = RELATIONS[opposite(next(key for key, words in RELATIONS.items() if words == relation))]
    return {
        "Yes": [f"So the {a} is {relation} the {b}.", f"So the {b} is {other} the {a}."],
        "No": [f"So the {a} is {other} the {b}.", f"So the {a} is not {relation} the {b}."],
    }.get(answer, [f"So we cannot tell whether the {a} is {relation} the {b}.", f"No line links the {a} with the {b}."])


def ranks(question: str, answer: str, choices: Sequence[str]) -> list[str]:
    rank = find(r"Which shape is (.+?)(?: now)?\?", question)[1]
    other = next(choice for choice in choices if choice != answer)
    return [f"So the {answer} is {rank}, not the {other}.", f"{rank.capitalize()}: {answer}"]


def nearest(question: str, answer: str, choices: Sequence[str]) -> list[str]:
    rank, word, reference = find(rf"is (.+?) (to|from) the {NAME}\?", question).groups()
    return [
        f"The {answer} is {rank} {word} the {reference}.",
        f"The {rank} shape {word} the {reference} is the {answer}.",
    ]


def odd_one(question: str, answer: str, choices: Sequence[str]) -> list[str]:
    a, b = (choice for choice in choices if choice != answer)
    return [
        f"The {a} and the {b} are in the same direction, so the odd one out is the {answer}.",
        f"The {answer} is the odd one out; the {a} and the {b} are in the same direction.",
    ]


def colour(question: str, answer: str, choices: Sequence[str]) -> list[str]:
    place = find(r"\(.+?\)", question)[0]
    return [f"So the shape at {place} is now {answer}.", f"It ends up {answer}."]


def number(question: str, answer: str, choices: Sequence[str]) -> list[str]:
    group = find(r"How many (.+?) are there", question)[1]
    other = group.replace("small", "*").replace("large", "small").replace("*", "large")
    besides = f"There are {answer} {group} and 5 {other}." if other != group else f"There are {answer} {group}."
    return [besides, f"{group.capitalize()}: {answer}"]


def existence(question: str, answer: str, choices: Sequence[str]) -> list[str]:
    group = find(r"Is there a (.+?)(?: on the canvas now)?\?", question)[1]
    return [f"So there is {'a' if answer == 'Yes' else 'no'} {group} on the canvas.", f"{answer}, there is."]


def equal(question: str, answer: str, choices: Sequence[str]) -> list[str]:
    a, b = find(r"as many (.+?) as (.+?)\?", question).groups()
    no = "" if answer == "Yes" else "not "
    return [f"So there are {no}as many {a} as {b}.", f"The numbers are {no}equal."]


def between(question: str, answer: str, choices: Sequence[str]) -> list[str]:
    a, b, c = find(rf"is the {NAME} between the {NAME} and the {NAME}\?", question).groups()
    return [f"So the {a} is {'' if answer == 'Yes' else 'not '}between the {b} and the {c}."]


def claim(question: str, answer: str, choices: Sequence[str]) -> list[str]:
    return [f"So the statement is {'true' if answer == 'Yes' else 'false'}."]


CONCLUSIONS: dict[str, Callable[[str, str, Sequence[str]], list[str]]] = {
    **dict.fromkeys(("coordinate", "transitivity", "multi_hop"), places),
    **dict.fromkeys(("superlative", "move_tracking", "shuffle_tracking"), ranks),
    **dict.fromkeys(("existence", "existence_tracking"), existence),
    "undetermined": follows,
    "nearest": nearest,
    "odd_one_out": odd_one,
    "recolour_tracking": colour,
    "count": number,
    "comparison": equal,
    "between": between,
    "logic": claim,
}


def beginnings(item: Item, other: str) -> Iterator[str]:
    lines = item.description.splitlines()
    yield ""
    yield f"Let me go through it.\n\n{item.description}\n\n"
    yield "".join(f"{i}. {line.removeprefix('- ')}\n" for i, line in enumerate(lines, 1)) + "\n"
    yield f"The question is: {item.question}\n\n"
    yield f"<think>\n{item.description}\nHmm, {other}?\n</think>\n\n"


@sizes(3, 60)
@pytest.mark.parametrize("name", REGISTERED_TASKS)
def test_a_conclusion_in_the_words_of_the_question_is_marked_as_the_answer_it_gives(name: str, count: int) -> None:
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", {})
    for index in range(count):
        item, sample = load_item(task, index, count), load_sample(task, index, count, 0, "text")
        wrong = item.choices[index % len(item.choices)]
        for answer, other in ((item.answer, wrong), (wrong, item.answer)):
            styles = [
                f"So the answer is {answer}.",
                f"**{answer}**",
                *CONCLUSIONS[name](item.question, answer, item.choices),
            ]
            replies = [f"{before}{said}" for before in beginnings(item, other) for said in styles]
            outcome = "correct" if answer == item.answer else "wrong"
            marks = {reply: task.score_text(sample, reply).outcome for reply in replies}
            assert {reply: mark for reply, mark in marks.items() if mark != outcome} == {}
