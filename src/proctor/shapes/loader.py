"""The loader: canvas, description, question and worked examples become one sample."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from proctor.core.errors import TaskError, UsageError
from proctor.core.random import Stream
from proctor.core.types import Image, Message, Modality, Prompt, Sample, ShotSource, Text
from proctor.shapes.canvas import Shape
from proctor.shapes.questions import asks_alike

if TYPE_CHECKING:
    from proctor.shapes.task import Task

TRIES = 50  # canvases tried for a worked example whose question is a new one
ATTEMPTS = 20  # how often a canvas is asked about again, where its remaining pairs cannot be used


class Item(NamedTuple):
    """A canvas with a question about it."""

    shapes: list[Shape]
    canvas: str  # the shapes in words; empty where the task brings its own description
    story: str  # what the task says instead, or in addition
    question: str
    answer: str
    choices: tuple[str, ...]
    evidence: int | None = None  # how many lines of the description it takes to answer, where the task says so
    others: tuple[tuple[str, str], ...] = ()  # the remaining pairs, about the same canvas
    asker: Task | None = None  # the task as it was before it asked: it can ask again

    @property
    def description(self) -> str:
        return "\n".join(part for part in (self.canvas, self.story) if part)


class ItemRow(Struct):
    """What `proctor generate` writes for one item."""

    id: str
    index: int
    task: str
    version: str
    prompt: Prompt  # what a model is given: a text, or with worked examples a list of messages
    description: str
    question: str
    choices: tuple[str, ...]
    answer: str
    shots: list[tuple[str, str]]  # what is asked, with the description of its canvas if that is another, and the answer
    shapes: list[Shape]
    settings: Any
    evidence: int | UnsetType = UNSET


def load_sample(
    task: Task, index: int, count: int, few_shot: int, modality: Modality, source: ShotSource = "same"
) -> Sample:
    """The same canvas, question and worked examples in every modality."""
    item = load_item(task, index, count)
    return Sample(
        id=f"{task.seed}-{index}",
        index=index,
        input=_prompt(task, item, load_shots(task, index, few_shot, item, source), modality),
        target=item.answer,
        seed=task.item_key(index),
        choices=item.choices,
        metadata=metadata_of(task, item.question, item.evidence),
    )


def metadata_of(task: Task, question: str, evidence: int | None) -> dict[str, Any]:
    known: dict[str, Any] = {"question": question} if evidence is None else {"question": question, "evidence": evidence}
    return {**msgspec.to_builtins(task.settings), **known}


def load_row(task: Task, index: int, count: int, few_shot: int, source: ShotSource = "same") -> ItemRow:
    item = load_item(task, index, count)
    shots = load_shots(task, index, few_shot, item, source)
    return ItemRow(
        f"{task.seed}-{index}",
        index,
        task.name,
        task.version,
        _prompt(task, item, shots, "text"),
        item.description,
        item.question,
        item.choices,
        item.answer,
        [
            (shot.question if shot.shapes is item.shapes else f"{shot.description}\n\n{shot.question}", shot.answer)
            for shot in shots
        ],
        item.shapes,
        task.settings,
        UNSET if item.evidence is None else item.evidence,
    )


def load_item(task: Task, index: int, count: int) -> Item:
    with _named(task, index):
        return _item(task, Stream(task.item_key(index)), task.select_expected_answer(index, count))


def _item(task: Task, random: Stream, wanted: str | None) -> Item:
    # On a copy: what the methods set on the task belongs to this item, and threads do not share it.
    task = copy.copy(task)
    task.random, task.description, task.evidence = random, None, None
    shapes = task.draw_shapes(random, wanted)
    asker = copy.copy(task)
    asker.random = copy.copy(random)
    (question, answer), *others = _checked(task.generate_questions(shapes, wanted))
    if wanted is not None and answer != wanted:
        raise TaskError(f"wanted the answer {wanted!r}, generate_questions gave {answer!r}.")
    if not isinstance(task.description, str | None):
        raise TaskError(f"self.description is {task.description!r}, not a text.")
    if not isinstance(task.evidence, int | None):
        raise TaskError(f"self.evidence is {task.evidence!r}, not a number of lines.")
    brought = task.description is not None and not task.extends_description
    canvas = "" if brought else task.describe(shapes)
    choices = task.choices(shapes, question)
    return Item(shapes, canvas, task.description or "", question, answer, choices, task.evidence, tuple(others), asker)


def _checked(pairs: Any) -> list[tuple[str, str]]:
    if isinstance(pairs, list | tuple) and not pairs:
        raise TaskError("generate_questions returned no pair.")
    if not isinstance(pairs, list | tuple) or not all(map(_is_pair, pairs)):
        raise TaskError(f"generate_questions returned {pairs!r:.200}, not a list of pairs of texts.")
    for question, answer in pairs:
        if not question.strip():
            raise TaskError(f"the question with the answer {answer!r} is empty.")
        if not answer.strip():
            raise TaskError(f"the answer to {question!r} is empty.")
    return [(question, answer) for question, answer in pairs]


def _is_pair(pair: Any) -> bool:
    match pair:
        case [str(), str()]:
            return True
    return False


@contextmanager
def _named(task: Task, index: int) -> Iterator[None]:
    """A fault in the making of an item names the task and the item."""
    try:
        yield
    except UsageError:
        raise
    except TaskError as error:
        raise type(error)(f"{task.name}, item {index}: {error}") from error
    except (Exception, SystemExit) as error:
        raise TaskError(f"{task.name}, item {index}: {type(error).__name__}: {error}") from error


class NoExamplesError(TaskError):
    """The task does not know enough canvases or questions."""


def load_shots(task: Task, index: int, few_shot: int, item: Item, source: ShotSource = "same") -> list[Item]:
    """Worked examples: the remaining pairs of the canvas, and before them as many as it takes of other canvases."""
    own = _own_shots(item, min(few_shot, len(item.others))) if source == "same" else []
    return [*_other_shots(task, index, few_shot - len(own), item), *own]


def _own_shots(item: Item, wanted: int) -> list[Item]:
    """Pairs about the same canvas, none of which tells anything about the answer.

    Were only those left out that ask the evaluated question again, the answers of the rest would differ from its answer
    too often. So there is a rival question for each of the other answers, made as the evaluated one was, and pairs that
    ask one of those again are left out as well: from what remains, nobody can tell which of them is evaluated.
    """
    shots: list[Item] = []
    if not wanted:
        return shots
    taken = [item.question, *_rivals(item)]
    for question, answer in _candidates(item):
        if len(shots) == wanted:
            break
        if not any(asks_alike(question, other) for other in taken):
            taken.append(question)
            shots.append(item._replace(question=question, answer=answer, choices=(), others=(), asker=None))
    return shots


def _rivals(item: Item) -> Iterator[str]:
    """What would be asked of the same canvas with the same random numbers, were the answer another."""
    for choice in item.choices:
        if choice != item.answer and item.asker is not None:
            pairs = _ask_again(item, copy.copy(item.asker.random), choice)
            if pairs and pairs[0][1] == choice:
                yield pairs[0][0]


def _candidates(item: Item) -> Iterator[tuple[str, str]]:
    """The remaining pairs; where some cannot be used, further ones, if they are about the same text."""
    yield from item.others
    if item.asker is not None:
        key = copy.copy(item.asker.random).below(1 << 62)
        for attempt in range(ATTEMPTS):
            if not (pairs := _ask_again(item, Stream(key, attempt), None)):
                return  # another text each time
            yield from pairs


def _ask_again(item: Item, random: Stream, wanted: str | None) -> list[tuple[str, str]]:
    asker = copy.copy(item.asker)
    if asker is None:
        return []
    asker.random, asker.description = random, None
    try:
        pairs = _checked(asker.generate_questions(list(item.shapes), wanted))
    except Exception:  # not every answer can be had from every canvas
        return []
    return pairs if (asker.description or "") == item.story else []


def _other_shots(task: Task, index: int, few_shot: int, item: Item) -> list[Item]:
    """Worked examples about canvases of their own, whose answers know nothing of the evaluated one."""
    shots: list[Item] = []
    asked_again: list[Item] = []
    same_words: list[Item] = []
    shown = {item.description}
    for attempt in range(TRIES + few_shot):
        if len(shots) == few_shot:
            return shots
        random = Stream(task.item_key(index), attempt + 1)
        with _named(task, index):
            shot = _item(task, random, random.choice(task.answers) if task.answers else None)
        if shot.description in shown:
            continue
        shown.add(shot.description)
        known = any(shot.question == other.question for other in shots)
        (same_words if shot.question == item.question else asked_again if known else shots).append(shot)
    # A task that knows few questions asks them again, of other canvases; one that knows a single question, that one.
    enough = [*shots, *asked_again, *(() if shots else same_words)][:few_shot]
    if len(enough) < few_shot:
        said = f"cannot find {few_shot} different worked examples; ask for fewer."
        raise NoExamplesError(f"{task.name}, item {index}: {said}")
    return enough


def _prompt(task: Task, item: Item, shots: list[Item], modality: Modality) -> Prompt:
    """Each canvas is shown once, before the first question about it; those of other canvases come first."""
    turns: list[Message] = []
    shown: list[Shape] | None = None
    for asked in (*shots, item):
        turns.append(Message("user", _ask(task, asked, modality, described=asked.shapes is shown)))
        turns.append(Message("assistant", asked.answer))
        shown = asked.shapes
    *turns, question, _ = turns
    return (*turns, question) if turns or not isinstance(question.content, str) else question.content


def _ask(task: Task, item: Item, modality: Modality, described: bool) -> str | tuple[Image, Text]:
    question = f"{item.question} {task.instruction}".rstrip()
    if described:
        return question
    if modality == "text":
        return f"{item.description}\n\n{question}"
    if not item.canvas:
        raise TaskError(f"{task.name}: {item.question!r} is about a description of its own, which has no picture.")
    from proctor.shapes.drawing import caption, png  # numpy

    words = item.description if modality == "both" else item.story
    said = caption(task.board, in_words=modality == "both")
    description = f"{said}\n{words}" if words else said
    return Image(png(item.shapes, task.board)), Text(f"{description}\n\n{question}")
