"""Shapes are added and removed, on conditions: is this one there in the end?"""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated

from msgspec import Meta, Struct

from proctor.shapes.canvas import Board, Shape
from proctor.shapes.descriptions import Kind, lines_to_mention
from proctor.shapes.patterns import PATTERNS, all_values, kinds_with, name_values, shapes_in_text, words_of_values
from proctor.shapes.typed import QUESTIONS, YesNoTask

SWITCH = (
    "If there is a {} on the canvas, a {} is added and the {} is removed; if not, the {} is removed and a {} is added."
)
PLAIN = {
    "addition": "A {} is added.",
    "removal": "The {} is removed.",
    "group removal": "All {} are removed.",
}
ASIDE = ("switch", *PLAIN)  # events that the answer does not depend on
QUESTION = "Is there a {} on the canvas now?"

Group = tuple[str, frozenset[str]]  # what shapes with attributes in common are called, and which they are


class TrackingSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=2, le=46)] = 7
    events: Annotated[int, Meta(ge=1, le=100)] = 5
    description: Kind = "coordinates"


class ExistenceTrackingTask(YesNoTask):
    """More than half of the events are links of a chain of switches: what each does depends on the one before it.

    A switch adds one of two shapes and removes the other, according to whether a third is there. The condition of the
    first link is a shape that the canvas has or lacks with equal probability; the condition of each further link is
    either of the two shapes of the link before. The other events leave these shapes alone. After the last link one of
    its two shapes is there, and the answer decides which of the two is asked about. The history does not depend on the
    answer, and whoever misses one link, or the canvas, knows nothing of what follows: each answer is equally likely.
    """

    summary = "shapes are added and removed, on conditions; is this one there in the end? (Yes / No)"
    maker = "proctor.shapes.batch.existence_tracking:ExistenceTrackingMaker"
    Settings = TrackingSettings
    extends_description = True
    absent_kinds = 2
    group_by = ("evidence",)
    instruction = (
        f"To add a shape that is already there, or to remove one that is not, changes nothing. {YesNoTask.instruction}"
    )

    @property
    def lines_needed(self) -> int:
        """The canvas, and every link."""
        return 1 + links_among(self.settings.events)

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        there = {str(shape) for shape in shapes}
        live, others = self._happen(there)
        answer, *more = self.wanted_answers(selected_answer)
        names = [next(name for name in live if (name in there) == (answer == "Yes"))]
        for wanted in more:
            left = [name for name in others if name not in names]
            names.append(self.random.choice([name for name in left if (name in there) == (wanted == "Yes")] or left))
        return [(QUESTION.format(name), "Yes" if name in there else "No") for name in names]

    def _happen(self, there: set[str]) -> tuple[list[str], list[str]]:
        """Lets all events happen, and tells them in the description.

        Returns the two shapes of the last link, and shapes to ask about besides: those of which a switch decided
        last might tell something about the chain, and are left out as long as there are others.
        """
        live, lines, switched = self._first_condition(there), [], set[str]()
        events = self.settings.events
        links = set(self.random.sample(range(events), links_among(events)))
        for slot in range(events):
            condition, pair, kind, (group, members) = self._draw_event(live, slot in links)
            added, removed = pair
            if kind == "switch":
                lines.append(SWITCH.format(condition, added, removed, added, removed))
                comes, goes = ([added], [removed]) if condition in there else ([removed], [added])
            else:
                lines.append(PLAIN[kind].format(group if kind == "group removal" else added))
                comes, goes = ([added], []) if kind == "addition" else ([], [*members] or [added])
            there.difference_update(goes)
            there.update(comes)
            (switched.update if kind == "switch" else switched.difference_update)([*comes, *goes])
            live = pair if slot in links else live
        self.description = "\n".join(lines)
        free = [name for name in self.board.names if name not in live]
        plain = [name for name in free if name not in switched]
        return live, plain if len(plain) >= QUESTIONS else free

    def _first_condition(self, there: set[str]) -> list[str]:
        listed = bool(self.random.below(2))
        # All events, since any of them could be about the shapes of the chain.
        mention = 1 if listed else lines_to_mention(len(there), self.settings.description)
        self.evidence = self.settings.events + mention
        return [self.random.choice([name for name in self.board.names if (name in there) == listed])]

    def _draw_event(self, live: list[str], link: bool) -> tuple[str, list[str], str, Group]:
        """All that any event needs is drawn for each: the batch path draws in step."""
        free = [name for name in self.board.names if name not in live]
        condition = self.random.choice(live if link else free)
        pair = self.random.sample([name for name in free if name != condition], 2)
        kind = self.random.choice(ASIDE)
        group = self.random.choice([group for group in groups(self.board) if not group[1].intersection(live)])
        kind = "switch" if link else kind
        return condition, pair, kind, group if kind == "group removal" else ("", frozenset())

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: goes back from the end, to the event that decided, and to its condition."""
        lines = description.splitlines()
        events = [line for line in lines[1:] if not line.startswith("- ")]
        asked, same = question.removeprefix("Is there a ").partition(" on the canvas")[0], True
        switch = r"If there is a (.+) on the canvas, a (.+) is added and the (.+) is removed; if not"
        for event in reversed(events):
            if parts := re.match(switch, event):
                if asked in parts.groups()[1:]:
                    same, asked = same == (asked == parts[2]), parts[1]
            elif words_of_values(event) <= set(asked.split()):
                return "Yes" if event.startswith("A ") == same else "No"
        listed = shapes_in_text("\n".join(line for line in lines if line not in events))
        return "Yes" if (asked in listed) == same else "No"


def links_among(events: int) -> int:
    """How many of the events the answer depends on."""
    return events // 2 + 1


@cache
def groups(board: Board) -> tuple[Group, ...]:
    """All that have one or two attributes in common; one kind is no group."""
    return tuple(
        (name_values(pattern, values, plural=True), frozenset(map(" ".join, kinds_with(board, pattern, values))))
        for pattern in PATTERNS
        if len(pattern) < 3
        for values in all_values(board, pattern)
    )
