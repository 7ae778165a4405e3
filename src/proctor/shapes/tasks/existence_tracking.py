"""Shapes are added and removed, one by one and in groups: is this one there in the end?"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from proctor.shapes.canvas import Board, Shape
from proctor.shapes.descriptions import Kind
from proctor.shapes.patterns import PATTERNS, all_values, name_values, shapes_in_text, words_of_values
from proctor.shapes.typed import YesNoTask

WAYS = ("removed", "removed", "listed", "added")  # how shapes may have been mentioned last
ADDITION = "A {} is added."
REMOVAL = "The {} is removed."
GROUP_REMOVAL = "All {} are removed."
GROUP_RETURN = "All removed {} come back."
QUESTION = "Is there a {} on the canvas now?"


class TrackingSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=2, le=46)] = 7
    events: Annotated[int, Meta(ge=1, le=100)] = 5
    description: Kind = "coordinates"


class ExistenceTrackingTask(YesNoTask):
    """The last event concerns a group, such as all green shapes, and decides.

    The history is drawn before the answer is known. Asked about is one of several shapes that were mentioned last in
    the same way (listed, added or removed), some of which are there in the end and some not: so neither being
    mentioned nor the last mention tells the answer. And since a group is as often taken away as brought back,
    belonging to it does not tell either.
    """

    summary = "shapes are added and removed; is this one there in the end? (Yes / No)"
    maker = "proctor.shapes.batch.existence_tracking:ExistenceTrackingMaker"
    Settings = TrackingSettings
    extends_description = True
    absent_kinds = 2

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        way, mentions, lines = self._history([str(shape) for shape in shapes])
        names = [name for name in self.board.names if mentions.get(name) == way]
        what, group = self.random.choice(_groups_that_part(self.board, names))
        lines.append((GROUP_RETURN if way == "removed" else GROUP_REMOVAL).format(what))
        self.description = "\n".join(lines)
        pairs = []
        for answer in self.wanted_answers(selected_answer):
            in_group = (answer == "Yes") == (way == "removed")
            name = self.random.choice([name for name in names if (name in group) == in_group])
            pairs.append((QUESTION.format(name), answer))
        return pairs

    def _history(self, listed: list[str]) -> tuple[str, dict[str, str], list[str]]:
        """All events but the last: the way of mentioning that will be asked about, each shape's last mention, the text.

        Two shapes at least are mentioned last in that way.
        """
        absent = self.random.sample([name for name in self.board.names if name not in listed], 2)
        slots = range(self.settings.events - 1)
        way, places = "listed", list[int]()
        if len(slots) > 1:
            way, places = self.random.choice(WAYS), self.random.sample(slots, 2)
        pair = absent if way == "added" else listed[:2]
        own = {} if way == "listed" else dict(zip(places, pair, strict=True))
        others = [name for name in self.board.names if name not in pair]
        mentions = dict.fromkeys(listed, "listed")
        lines = []
        for slot in slots:
            # Drawn for every event, also where the pair comes: the batch path draws in step.
            name = own.get(slot, self.random.choice(others))
            present = mentions.get(name, "removed") != "removed"
            lines.append((REMOVAL if present else ADDITION).format(name))
            mentions[name] = "removed" if present else "added"
        return way, mentions, lines

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: goes through the events and keeps what is there and what was taken away."""
        lines = description.splitlines()
        events = [line for line in lines[1:] if not line.startswith("- ")]
        there = shapes_in_text("\n".join(line for line in lines if line not in events))
        gone: set[str] = set()
        for event in events:
            sought = words_of_values(event)
            if event.startswith("A "):
                there |= shapes_in_text(event)
                continue
            touched = {name for name in there | gone if sought <= set(name.split())}
            if event.endswith("come back."):
                there |= touched & gone
            else:
                gone |= touched & there
                there -= touched
        asked = question.partition(" on the canvas")[0].removeprefix("Is there a ")
        return "Yes" if asked in there else "No"


def _groups_that_part(board: Board, names: list[str]) -> list[tuple[str, set[str]]]:
    """Groups of one or two attributes that hold some of these shapes and not others, each with its name."""
    groups = []
    for pattern in PATTERNS:
        if len(pattern) < 3:  # a group of one kind would be a mention by name
            for values in all_values(board, pattern):
                group = {name for name in names if set(values) <= set(name.split())}
                if 0 < len(group) < len(names):
                    groups.append((name_values(pattern, values, plural=True), group))
    return groups
