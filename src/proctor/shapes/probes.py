"""Probes: guessers that see too little to know. One that beats chance has found a shortcut around the task.

Each probe may guess in several ways. All learn from the first items; some further ones show which way is the best;
it is measured on the rest, which it has not seen. A probe that sees so many lines of the description is only used on
tasks that need more lines than that: with enough of them, to be right is no shortcut.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from proctor.core.errors import UsageError
from proctor.core.types import Probe
from proctor.metrics.statistics import proportion
from proctor.shapes.canvas import FORMS, LARGE, SIZES
from proctor.shapes.loader import NoExamplesError, load_item, load_shots
from proctor.shapes.relational import (
    RelationalView,
    count_of,
    line_at,
    names_axis,
    order_across,
    pairs_of_lines,
    rank_of,
    rank_of_choice,
    ranks_across,
    read_view,
    single_lines,
    touching,
)

if TYPE_CHECKING:
    from proctor.shapes.task import Task

LEARN, CHOOSE = 0.4, 0.5  # up to which part of the items they learn, and then choose; the rest is the measurement
FEWEST = 100
MOST_ASKED = 4  # shapes that a question names
WORDS_KNOWN = 2000
RIDGE = 1e-3  # how much the weights of words are held back
PRIOR = 10  # items that a cue must outweigh before it counts

_NAME = re.compile(rf"({'|'.join(SIZES)}) ({'|'.join(LARGE.colours)}) ({'|'.join(FORMS)})")
_WORD = re.compile(rf"\b(?:{'|'.join((*SIZES, *LARGE.colours, *FORMS))})\b|-?\b\d+\b")


class Seen(NamedTuple):
    """What there is to see of an item; each guesser looks at a part of it."""

    description: str
    question: str
    answer: str
    choices: tuple[str, ...]
    shot: str | None  # the answer of a worked example
    view: RelationalView  # by how it relates to the question


NO_VIEW = RelationalView("", (), (), (), {})


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
        return _held_back(self._right[cue], self._seen[cue], 1 / len(item.choices))


class ByStrongestCue:
    """Of the many cues that an item shows, the one that tells most decides."""

    def __init__(self, cues: Callable[[RelationalView], Iterable[Hashable]]) -> None:
        self._cues = cues
        self._answers: dict[Hashable, Counter[str]] = defaultdict(Counter)

    def learn(self, items: Sequence[Seen]) -> None:
        for item in items:
            for cue in set(self._cues(item.view)):
                self._answers[cue][item.answer] += 1
        chance = _chance(items)
        self._best = {cue: _strongest(answers, chance) for cue, answers in self._answers.items()}

    def guess(self, items: Sequence[Seen]) -> list[str]:
        return [self._guess(item) for item in items]

    def _guess(self, item: Seen) -> str:
        known = [self._best[cue] for cue in self._cues(item.view) if cue in self._best]
        return max(known, default=(0.0, item.choices[0]))[1]


class ByStrongestCueOfChoice:
    """The choice that has the cue that most often went with the right one."""

    def __init__(self, cues: Callable[[RelationalView, int], Iterable[Hashable]]) -> None:
        self._cues = cues
        self._right: Counter[Hashable] = Counter()
        self._seen: Counter[Hashable] = Counter()

    def learn(self, items: Sequence[Seen]) -> None:
        for item in items:
            for choice, values in zip(item.choices, item.view.choices, strict=True):
                cues = set(self._cues(item.view, values))
                self._seen.update(cues)
                if choice == item.answer:
                    self._right.update(cues)
        chance = _chance(items)
        self._share = {cue: _sure_share(self._right[cue], seen, chance) for cue, seen in self._seen.items()}

    def guess(self, items: Sequence[Seen]) -> list[str]:
        return [item.choices[self._guess(item.view)] for item in items]

    def _guess(self, view: RelationalView) -> int:
        shares = [max((self._share.get(cue, 0.0) for cue in self._cues(view, c)), default=0.0) for c in view.choices]
        return shares.index(max(shares))


def _chance(items: Sequence[Seen]) -> float:
    return sum(1 / len(item.choices) for item in items) / len(items)


def _held_back(right: int, seen: int, chance: float) -> float:
    """How often a cue is right, but nearer to chance the less often it was seen."""
    return (right + PRIOR * chance) / (seen + PRIOR)


def _sure_share(right: int, seen: int, chance: float) -> float:
    """How often a cue is right at least, as far as can be told: of many cues, some are right by luck."""
    share = _held_back(right, seen, chance)
    return share - math.sqrt(share * (1 - share) / (seen + PRIOR))


def _strongest(answers: Counter[str], chance: float) -> tuple[float, str]:
    answer, right = answers.most_common(1)[0]
    return _sure_share(right, answers.total(), chance), answer


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


def _by_view(cue: Callable[[RelationalView], Hashable]) -> ByCue:
    return ByCue(lambda item: cue(item.view))


def _by_view_of_choice(cue: Callable[[RelationalView, int], Hashable]) -> ByCueOfChoice:
    return ByCueOfChoice(lambda item, choice: cue(item.view, item.view.choices[item.choices.index(choice)]))


Ways = dict[str, Guesser]  # each with what it goes by

NTH = ("first", "second", "third", "fourth")  # of the shapes that a question names
AXES = ("the question's axis, or x", "the other axis, or y")


def _question_only() -> Ways:
    return {
        "its words": ByWords(lambda item: item.question),
        "the whole question": ByCue(lambda item: item.question),
        "its outline": ByCue(lambda item: _outline(item.question)),
        "where the choices stand in it": ByCueOfChoice(lambda item, choice: _rank(item, choice, item.question.rfind)),
    }


def _description_only() -> Ways:
    return {
        "its words": ByWords(lambda item: item.description),
        "the outline of the last line": ByCue(lambda item: _outline(item.description.rpartition("\n")[2])),
        "the order of the choices": ByCueOfChoice(lambda item, choice: _rank(item, choice, item.description.find)),
    }


def _any_mention() -> Ways:
    return {
        "mentions of those asked about": ByCue(lambda item: tuple(_mentions(item, name) for name in _asked(item))),
        "mentions of the choices": ByCueOfChoice(lambda item, choice: item.description.count(choice)),
    }


def _last_mention_ways() -> Ways:
    # One shape at a time: what is said of several together is what there is to understand.
    return {
        **{f"of the {NTH[k]} asked about": ByCue(partial(_last_mention_of_asked, k)) for k in range(MOST_ASKED)},
        "of a choice": ByCueOfChoice(_last_mention),
        "which choice comes last": ByCueOfChoice(lambda item, choice: _rank(item, choice, item.description.rfind)),
    }


def _bag_of_words() -> Ways:
    return {"all words": ByWords(lambda item: f"{item.description} {_marked(item.question)}")}


def _first_shot() -> Ways:
    return {
        "its answer": ByCue(lambda item: item.shot),
        "the choice that is its answer": ByCueOfChoice(lambda item, choice: choice == item.shot),
    }


def _one_line(choices: bool) -> Ways:
    last, first, next_to_first = (partial(_line_at, number) for number in (-1, 0, 1))
    if choices:
        return {
            "the last line": _by_view_of_choice(last),
            "the first line": _by_view_of_choice(first),
            "any line": ByStrongestCueOfChoice(single_lines),
        }
    return {
        "the last line": _by_view(last),
        "the first line": _by_view(first),
        "the line after the first": _by_view(next_to_first),
        "any line": ByStrongestCue(single_lines),
    }


def _line_at(number: int, seen: RelationalView, choice: int = 0) -> Hashable:
    return line_at(seen, number if number < len(seen.lines) else -1, choice)


def _two_lines(choices: bool) -> Ways:
    if choices:
        return {"any two lines": ByStrongestCueOfChoice(pairs_of_lines)}
    return {"any two lines": ByStrongestCue(pairs_of_lines)}


def _one_count(choices: bool) -> Ways:
    ways: Ways = {}
    for k in range(MOST_ASKED):
        ways[f"shapes that are like the {NTH[k]} asked about"] = _by_view(partial(_of_number, count_of, k))
        ways[f"events that name the {NTH[k]} asked about"] = _by_view(partial(_of_number, touching, k))
    return ways


def _of_number(cue: Callable[[RelationalView, int], Hashable], number: int, seen: RelationalView) -> Hashable:
    return cue(seen, number)


def _one_rank(choices: bool, axes: Sequence[int] = (0, 1)) -> Ways:
    ways: Ways = {}
    for axis in axes:
        if choices:
            ways[f"of a choice along {AXES[axis]}"] = _by_view_of_choice(partial(_rank_of_choice, axis))
        for k in range(MOST_ASKED):
            ways[f"of the {NTH[k]} asked about along {AXES[axis]}"] = _by_view(partial(_rank_of, k, axis))
    return ways


def _rank_of(number: int, axis: int, seen: RelationalView) -> Hashable:
    return rank_of(seen, number, axis)


def _rank_of_choice(axis: int, seen: RelationalView, choice: int) -> Hashable:
    return rank_of_choice(seen, choice, axis)


def _other_axis(choices: bool) -> Ways:
    return {
        "the order of those asked about": _by_view(order_across),
        "their ranks": _by_view(ranks_across),
    }


PLAIN: dict[str, Callable[[], Ways]] = {
    "question only": _question_only,
    "description only": _description_only,
    "any mention": _any_mention,
    "last mention": _last_mention_ways,
    "bag of words": _bag_of_words,
    "first shot": _first_shot,
}
RELATIONAL: dict[str, Callable[[bool], Ways]] = {
    "one line": _one_line,
    "two lines": _two_lines,
    "one count": _one_count,
    "one rank": _one_rank,
    "other axis": _other_axis,
}
LINES = {"one line": 1, "two lines": 2}  # that a probe sees


def probe(task: Task, n: int) -> Iterator[Probe]:
    """How right each guesser is, where it has a chance to be."""
    if n < FEWEST:
        raise UsageError(f"Probes need {FEWEST} samples or more; 100,000 show a shortcut of one point.")
    items = _with_views(_with_choices([_see(task, index, n) for index in range(n)]))
    learnt, chosen = items[: int(n * LEARN)], items[int(n * LEARN) : int(n * CHOOSE)]
    measured = items[int(n * CHOOSE) :]
    chance = _chance(measured)
    for name in (*PLAIN, *RELATIONAL):
        reason = _why_not(name, task, items)
        if reason:
            yield Probe(name, None, chance, reason)
            continue
        way, best = _best(_ways(name, task, items), learnt, chosen)
        accuracy = proportion(_hits(best, measured), len(measured))
        yield Probe(name, accuracy, chance, way, _stated(name, task))


def _stated(name: str, task: Task) -> float | None:
    """How often a probe is right as the task itself says; where its figure does not apply, anything may be."""
    if name in task.partial_solving and task.settings != type(task.settings)():
        return 1.0
    return task.partial_solving.get(name)


def _ways(name: str, task: Task, items: Sequence[Seen]) -> Ways:
    if name in PLAIN:
        return PLAIN[name]()
    choices = all(item.view.choices for item in items)
    if name == "one rank" and task.asks_for_rank:
        return _one_rank(choices, axes=(1,))
    return RELATIONAL[name](choices)


def _why_not(name: str, task: Task, items: Sequence[Seen]) -> str:
    """Why a probe says nothing about a task, or nothing at all."""
    if name.endswith("mention") and task.asks_for_mention:
        return "to find the mention is what this task asks for"
    if name == "first shot" and any(item.shot is None for item in items):
        return "the task has no worked examples"
    if name in LINES and task.lines_needed <= LINES[name]:
        return f"the task can be solved with {name}"
    if name == "one count" and task.asks_for_mention and all(len(item.view.asked) < 2 for item in items):
        return "to count is what this task asks for"
    if name == "one rank" and task.asks_for_mention:
        return "whether a shape has a place at all is what this task asks for"
    if name in ("one rank", "other axis") and not any(item.view.ranks for item in items):
        return "the description has no coordinates"
    if name == "other axis" and not all(item.view.asked and names_axis(item.view) for item in items):
        return "the question is not about one axis"
    return ""


def _best(ways: Ways, learnt: Sequence[Seen], chosen: Sequence[Seen]) -> tuple[str, Guesser]:
    for guesser in ways.values():
        guesser.learn(learnt)
    return max(ways.items(), key=lambda way: _hits(way[1], chosen))


def _hits(guesser: Guesser, items: Sequence[Seen]) -> int:
    return sum(guess == item.answer for guess, item in zip(guesser.guess(items), items, strict=True))


def _see(task: Task, index: int, n: int) -> Seen:
    item = load_item(task, index, n)
    try:
        shot = load_shots(task, index, 1, item)[0].answer
    except NoExamplesError:
        shot = None
    return Seen(item.description, item.question, item.answer, item.choices, shot, NO_VIEW)


def _with_choices(items: list[Seen]) -> list[Seen]:
    """Where the set of answers is open, all that occur are possible."""
    if all(item.choices for item in items):
        return items
    answers = tuple(sorted({item.answer for item in items}))
    return [item._replace(choices=item.choices or answers) for item in items]


def _with_views(items: Sequence[Seen]) -> list[Seen]:
    return [item._replace(view=read_view(item.description, item.question, item.choices)) for item in items]
