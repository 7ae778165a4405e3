"""Probes: guessers that see too little to know. One that beats chance has found a shortcut around the task.

Each probe may guess in several ways. All learn from the first items; some further ones show which way is the best;
it is measured on the rest, which it has not seen.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from proctor.errors import UsageError
from proctor.metrics.statistics import proportion
from proctor.shapes.canvas import FORMS, LARGE, SIZES
from proctor.shapes.loader import NoExamplesError, load_item, load_shots
from proctor.types import Probe

if TYPE_CHECKING:
    from proctor.shapes.task import Task

LEARN, CHOOSE = 0.4, 0.5  # up to which part of the items they learn, and then choose; the rest is the measurement
FEWEST = 100
MOST_ASKED = 4  # shapes that a question names
WORDS_KNOWN = 2000
RIDGE = 1e-3  # how much the weights of words are held back

_NAME = re.compile(rf"({'|'.join(SIZES)}) ({'|'.join(LARGE.colours)}) ({'|'.join(FORMS)})")
_WORD = re.compile(rf"\b(?:{'|'.join((*SIZES, *LARGE.colours, *FORMS))})\b|-?\b\d+\b")


class Seen(NamedTuple):
    """What there is to see of an item; each guesser looks at a part of it."""

    description: str
    question: str
    answer: str
    choices: tuple[str, ...]
    shot: str | None  # the answer of a worked example


class Guesser(Protocol):
    def learn(self, items: Sequence[Seen]) -> None: ...

    def guess(self, items: Sequence[Seen]) -> list[str]: ...


class ByCue:
    """The answer that came most often with the same cue."""

    def __init__(self, cue: Callable[[Seen], Hashable]) -> None:
        self._cue = cue
        self._answers: dict[Hashable, Counter[str]] = defaultdict(Counter)

    def learn(self, items: Sequence[Seen]) -> None:
        for item in items:
            self._answers[self._cue(item)][item.answer] += 1

    def guess(self, items: Sequence[Seen]) -> list[str]:
        return [max(item.choices, key=self._answers[self._cue(item)].__getitem__) for item in items]


class ByCueOfChoice:
    """The choice whose own cue most often went with the right one."""

    def __init__(self, cue: Callable[[Seen, str], Hashable]) -> None:
        self._cue = cue
        self._right: Counter[Hashable] = Counter()
        self._seen: Counter[Hashable] = Counter()

    def learn(self, items: Sequence[Seen]) -> None:
        for item in items:
            for choice in item.choices:
                cue = self._cue(item, choice)
                self._seen[cue] += 1
                self._right[cue] += choice == item.answer

    def guess(self, items: Sequence[Seen]) -> list[str]:
        return [max(item.choices, key=lambda choice: self._share(item, choice)) for item in items]

    def _share(self, item: Seen, choice: str) -> float:
        cue = self._cue(item, choice)
        return self._right[cue] / self._seen[cue] if self._seen[cue] else 0.0


class ByWords:
    """A linear classifier of how often each word occurs."""

    def __init__(self, text: Callable[[Seen], str]) -> None:
        self._text = text

    def learn(self, items: Sequence[Seen]) -> None:
        texts = [self._text(item).split() for item in items]
        known = Counter(word for words in texts for word in words).most_common(WORDS_KNOWN)
        self._columns = {word: column for column, (word, _) in enumerate(known)}
        self._answers = {answer: number for number, answer in enumerate(sorted({item.answer for item in items}))}
        counts = self._counts(texts)
        right = np.zeros((len(items), len(self._answers)))
        right[np.arange(len(items)), [self._answers[item.answer] for item in items]] = 1
        held_back = RIDGE * len(items) * np.eye(counts.shape[1])
        self._weights = np.linalg.solve(counts.T @ counts + held_back, counts.T @ right)

    def guess(self, items: Sequence[Seen]) -> list[str]:
        scores = self._counts([self._text(item).split() for item in items]) @ self._weights
        return [
            max(item.choices, key=lambda choice: row[self._answers[choice]] if choice in self._answers else -np.inf)
            for item, row in zip(items, scores, strict=True)
        ]

    def _counts(self, texts: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        width = len(self._columns) + 1  # the last column is always 1
        counts = np.zeros((len(texts), width))
        counts[:, -1] = 1
        for number, words in enumerate(texts):
            known = [self._columns[word] for word in words if word in self._columns]
            counts[number] += np.bincount(known, minlength=width)
        return counts


def _outline(text: str) -> str:
    """The text with shapes and numbers left open."""
    return _WORD.sub("_", text)


def _asked(item: Seen) -> list[str]:
    """The shapes that the question names."""
    return [match[0] for match in _NAME.finditer(item.question)]


def _mentions(item: Seen, name: str) -> tuple[int, int]:
    """How often a name occurs in the lines that list things, and in all others."""
    lines = [line for line in item.description.splitlines() if name in line]
    listed = sum(line.startswith("- ") for line in lines)
    return listed, len(lines) - listed


def _last_mention(item: Seen, name: str) -> tuple[str, bool]:
    """What is said where a name occurs last, and if it is said of that name first."""
    line = next((line for line in reversed(item.description.splitlines()) if name in line), "")
    first = _NAME.search(line)
    return _outline(line), first is not None and first[0] == name


def _last_mention_of_asked(number: int, item: Seen) -> Hashable:
    names = _asked(item)
    return _last_mention(item, names[number]) if number < len(names) else None


def _rank(item: Seen, choice: str, place: Callable[[str], int]) -> tuple[int, int]:
    """The place of a choice among all, by where it occurs."""
    places = [place(other) for other in item.choices]
    return sum(other < place(choice) for other in places), len(places)


def _marked(question: str) -> str:
    """The words of the question, told apart from the same words in the description."""
    return " ".join(f"?{word}" for word in question.split())


PROBES: dict[str, Callable[[], list[Guesser]]] = {
    "question only": lambda: [
        ByWords(lambda item: item.question),
        ByCue(lambda item: item.question),
        ByCue(lambda item: _outline(item.question)),
        ByCueOfChoice(lambda item, choice: _rank(item, choice, item.question.rfind)),
    ],
    "description only": lambda: [
        ByWords(lambda item: item.description),
        ByCue(lambda item: _outline(item.description.rpartition("\n")[2])),
        ByCueOfChoice(lambda item, choice: _rank(item, choice, item.description.find)),
    ],
    "any mention": lambda: [
        ByCue(lambda item: tuple(_mentions(item, name) for name in _asked(item))),
        ByCueOfChoice(lambda item, choice: item.description.count(choice)),
    ],
    "last mention": lambda: [
        # One shape at a time: what is said of several together is what there is to understand.
        *(ByCue(partial(_last_mention_of_asked, number)) for number in range(MOST_ASKED)),
        ByCueOfChoice(_last_mention),
        ByCueOfChoice(lambda item, choice: _rank(item, choice, item.description.rfind)),
    ],
    "bag of words": lambda: [ByWords(lambda item: f"{item.description} {_marked(item.question)}")],
    "first shot": lambda: [
        ByCue(lambda item: item.shot),
        ByCueOfChoice(lambda item, choice: choice == item.shot),
    ],
}


def probe(task: Task, n: int) -> Iterator[Probe]:
    """How right each guesser is, where it has a chance to be."""
    if n < FEWEST:
        raise UsageError(f"Probes need {FEWEST} samples or more; 100,000 show a shortcut of one point.")
    items = _with_choices([_see(task, index, n) for index in range(n)])
    learnt, chosen = items[: int(n * LEARN)], items[int(n * LEARN) : int(n * CHOOSE)]
    measured = items[int(n * CHOOSE) :]
    chance = sum(1 / len(item.choices) for item in measured) / len(measured)
    for name, guessers in PROBES.items():
        if name.endswith("mention") and task.asks_for_mention:
            yield Probe(name, None, chance, "to find the mention is what this task asks for")
        elif name == "first shot" and any(item.shot is None for item in items):
            yield Probe(name, None, chance, "the task has no worked examples")
        else:
            best = _best(guessers(), learnt, chosen)
            yield Probe(name, proportion(_hits(best, measured), len(measured)), chance)


def _best(guessers: list[Guesser], learnt: Sequence[Seen], chosen: Sequence[Seen]) -> Guesser:
    for guesser in guessers:
        guesser.learn(learnt)
    return max(guessers, key=lambda guesser: _hits(guesser, chosen))


def _hits(guesser: Guesser, items: Sequence[Seen]) -> int:
    return sum(guess == item.answer for guess, item in zip(guesser.guess(items), items, strict=True))


def _see(task: Task, index: int, n: int) -> Seen:
    item = load_item(task, index, n)
    try:
        shot = load_shots(task, index, 1, item)[0].answer
    except NoExamplesError:
        shot = None
    return Seen(item.description, item.question, item.answer, item.choices, shot)


def _with_choices(items: list[Seen]) -> list[Seen]:
    """Where the set of answers is open, all that occur are possible."""
    if all(item.choices for item in items):
        return items
    answers = tuple(sorted({item.answer for item in items}))
    return [item._replace(choices=item.choices or answers) for item in items]
