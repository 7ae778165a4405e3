"""Other descriptions that have some lines in common with a given one: what the rest could have said."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations, pairwise, permutations
from random import Random

from proctor.shapes import Task
from proctor.shapes.canvas import Shape
from proctor.shapes.descriptions import relation
from proctor.shapes.loader import Item
from proctor.shapes.tasks.recolour_tracking import EVENT

Lines = Sequence[str]  # of a description without its heading
World = Callable[[Task, Lines, Collection[int], str, Random], list[str] | None]  # None where a try led nowhere
Place = tuple[int, int]

NAME = re.compile(r"(?:small|large) \w+ (?:square|circle|triangle)")
RELATED = re.compile(r"- the (.+) is (above|below) and to the (left|right) of the (.+)")
STEPS = {"to the left of": (-1, 0), "to the right of": (1, 0), "above": (0, 1), "below": (0, -1)}
REACHES = (40, 500)  # of coordinates: the text does not say how large the canvas is
ROW = {
    "to the left of": "to the right of",
    "below": "above",
}  # from the lower shape, or from the higher


def lines_of(item: Item) -> tuple[list[str], list[str]]:
    """The heading, if the description has one, and the lines that count."""
    lines = item.description.splitlines()
    headed = not NAME.search(lines[0])
    return lines[:headed], lines[headed:]


def fixes(task: Task, item: Item, kept: Collection[int], tries: int, random: Random) -> bool:
    """Whether no other world was found in which these lines are said and the answer is another."""
    heading, lines = lines_of(item)
    for _ in range(tries):
        world = WORLDS[type(task).__name__](task, lines, kept, item.question, random)
        answer = world and solved(task, "\n".join([*heading, *world]), item.question)
        if answer and answer != item.answer:
            return False
    return True


def solved(task: Task, description: str, question: str) -> str | None:
    """None where the question makes no sense, since what it is about is not there."""
    try:
        answer = task.solve(description, question)
    except (KeyError, StopIteration):
        return None
    return None if answer is None or answer.startswith("(") else answer


def other_canvas(task: Task, lines: Lines, kept: Collection[int], question: str, random: Random) -> list[str] | None:
    """Any shapes of different kinds at any places; the lines beyond the canvas stay as they are."""
    size = sum(line.startswith("- ") for line in lines)
    related = getattr(task.settings, "description", "") in ("full", "partial")
    said = [line for i, line in enumerate(lines[:size]) if i in kept]
    names = NAME.findall(" ".join(said))
    names = list(dict.fromkeys(names))
    names += new_names(task, names, " ".join([question, *lines[size:]]), random)
    if related:
        return [*all_relations(task, names, said, random), *lines[size:]]
    rest = iter(names[len(said) :])
    canvas = [
        line if i in kept else f"- {next(rest)} at ({anywhere(random)}, {anywhere(random)})"
        for i, line in enumerate(lines[:size])
    ]
    return [*canvas, *lines[size:]]


def anywhere(random: Random) -> int:
    reach = random.choice(REACHES)
    return random.randint(-reach, reach)


def new_names(task: Task, names: Collection[str], text: str, random: Random) -> list[str]:
    """As many as the canvas lacks: any, or first of all those that the text is about."""
    free = [name for name in task.board.names if name not in names]
    random.shuffle(free)
    if random.random() < 0.7:
        free.sort(key=lambda name: name not in text)
    return free[: task.settings.shapes - len(names)]


def all_relations(task: Task, names: list[str], said: list[str], random: Random) -> Iterator[str]:
    told = [match.groups() for line in said if (match := RELATED.match(line))]
    across = an_order(names, [(a, b) if side == "left" else (b, a) for a, _, side, b in told], random)
    up = an_order(names, [(a, b) if level == "below" else (b, a) for a, level, _, b in told], random)
    shapes = []
    for name in names:
        size, colour, form = name.split()
        shapes.append(Shape(size, colour, form, across.index(name), up.index(name)))
    yield from said
    full = task.settings.description == "full"
    known = {frozenset((a, b)) if not full else (a, b) for a, _, _, b in told}
    for a, b in (permutations if full else combinations)(shapes, 2):
        pair = (str(a), str(b))
        if (pair if full else frozenset(pair)) not in known:
            yield f"- the {a} is {relation(a, b)} the {b}"


def an_order(names: Collection[str], pairs: Collection[tuple[str, str]], random: Random) -> list[str]:
    """Any in which the first of each pair comes before the second."""
    order, left = [], set(names)
    while left:
        free = sorted(left - {b for a, b in pairs if a in left})
        order.append(random.choice(free))
        left.remove(order[-1])
    return order


def other_history(task: Task, lines: Lines, kept: Collection[int], question: str, random: Random) -> list[str] | None:
    """Any canvas, and any additions and removals."""
    changed = other_canvas(task, lines, kept, question, random) or []
    names = NAME.findall(" ".join([question, *lines]))
    for i, line in enumerate(lines):
        if not line.startswith("- ") and i not in kept:
            changed[i] = random.choice(["A {} is added.", "The {} is removed."]).format(random.choice(names))
    return changed


def other_moves(task: Task, lines: Lines, kept: Collection[int], question: str, random: Random) -> list[str] | None:
    changed = other_canvas(task, lines, kept, " ".join([question, *(lines[i] for i in kept)]), random) or []
    names = NAME.findall(" ".join(changed[: task.settings.shapes]))
    for i in range(task.settings.shapes, len(lines)):
        if i not in kept:
            way = random.choice(["to the left", "to the right", "up", "down"])
            changed[i] = f"The {random.choice(names)} moves {abs(anywhere(random)) + 1} {way}."
    return changed


def other_exchanges(task: Task, lines: Lines, kept: Collection[int], question: str, random: Random) -> list[str] | None:
    """Any canvas with a shape at the place that the question is about, and any exchanges of colours."""
    changed = other_canvas(task, lines, kept, question, random) or []
    size, place = task.settings.shapes, question[question.index("(") : question.index(")") + 1]
    there = sum(line.endswith(f"at {place}") for line in changed[:size])
    if there > 1:
        return None  # no canvas has two shapes at one place
    if not there:
        number = random.choice([i for i in range(size) if i not in kept])
        changed[number] = f"{changed[number].partition(' at ')[0]} at {place}"
    for i in range(size, len(lines)):
        if i not in kept:
            changed[i] = EVENT.format(*random.sample(task.answers, 2))
    return changed


def other_swaps(task: Task, lines: Lines, kept: Collection[int], question: str, random: Random) -> list[str] | None:
    names = NAME.findall(lines[0])
    changed = [line if i in kept else swap(names, random) for i, line in enumerate(lines)]
    if 0 not in kept:
        random.shuffle(names)
        changed[0] = f"{lines[0].partition(': ')[0]}: {', '.join(names)}."
    return changed


def swap(names: list[str], random: Random) -> str:
    a, b = random.sample(names, 2)
    return f"The {a} and the {b} swap places."


def other_row(task: Task, lines: Lines, kept: Collection[int], question: str, random: Random) -> list[str] | None:
    """The same shapes in any row of which these neighbours are a part."""
    low, high = next((low, high) for low, high in ROW.items() if f" {low} " in lines[0] or f" {high} " in lines[0])
    after = dict(lower_first(lines[i]) for i in kept)
    starts = [name for name in dict.fromkeys(NAME.findall(" ".join(lines))) if name not in after.values()]
    random.shuffle(starts)
    row = []
    for name in starts:
        row.append(name)
        while row[-1] in after:
            row.append(after[row[-1]])
    return [random.choice([f"- the {a} is {low} the {b}", f"- the {b} is {high} the {a}"]) for a, b in pairwise(row)]


def lower_first(line: str) -> tuple[str, str]:
    a, b = NAME.findall(line)
    return (a, b) if any(f" {low} " in line for low in ROW) else (b, a)


def other_relations(task: Task, lines: Lines, kept: Collection[int], question: str, random: Random) -> list[str] | None:
    """Any lines about the same shapes that hold in one order of them."""
    names = sorted(set(NAME.findall(" ".join(lines))))
    low = next(low for low, high in ROW.items() if f" {low} " in lines[0] or f" {high} " in lines[0])
    order = an_order(names, [lower_first(lines[i]) for i in kept], random)
    asked = NAME.findall(question)
    changed = list(lines)
    for i in range(len(lines)):
        if i not in kept:
            a, b = sorted(random.choice([asked, random.sample(names, 2)]), key=order.index)
            changed[i] = f"- the {a} is {low} the {b}"
    return changed


def other_steps(task: Task, lines: Lines, kept: Collection[int], question: str, random: Random) -> list[str] | None:
    """The same shapes on other squares: the parts that the kept lines leave are put together again, anywhere."""
    parts = [{name: (0, 0)} for name in sorted(set(NAME.findall(" ".join(lines))))]
    changed = []
    for i in kept:
        a, b = NAME.findall(lines[i])
        parts = joined(parts, a, b, step_of(lines[i])) or []
        changed.append(lines[i])
    while len(parts) > 1:
        one, other = random.sample(parts, 2)
        a, b = random.choice(sorted(one)), random.choice(sorted(other))
        words = random.choice(list(STEPS))
        if (together := joined(parts, a, b, STEPS[words])) is not None:
            parts = together
            changed.append(f"- the {a} is one step {words} the {b}")
    first, second = NAME.findall(question)
    (places,) = parts
    axis = 0 if "left" in question else 1
    return changed if places[first][axis] != places[second][axis] else None  # the question says that they are not level


def step_of(line: str) -> Place:
    return next(step for words, step in STEPS.items() if f" {words} " in line)


def joined(parts: list[dict[str, Place]], a: str, b: str, step: Place) -> list[dict[str, Place]] | None:
    """The parts with those of a and b as one, if no two shapes come to stand on one square."""
    one, other = next(part for part in parts if a in part), next(part for part in parts if b in part)
    dx, dy = (other[b][axis] + step[axis] - one[a][axis] for axis in (0, 1))
    moved = {name: (x + dx, y + dy) for name, (x, y) in one.items()}
    if set(moved.values()) & set(other.values()):
        return None
    return [part for part in parts if part is not one and part is not other] + [moved | other]


WORLDS: Mapping[str, World] = {
    "MoveTrackingTask": other_moves,
    "RecolourTrackingTask": other_exchanges,
    "ExistenceTrackingTask": other_history,
    "ShuffleTrackingTask": other_swaps,
    "TransitivityTask": other_row,
    "UndeterminedTask": other_relations,
    "MultiHopTask": other_steps,
    **dict.fromkeys(
        (
            "ExistenceTask",
            "CountTask",
            "ComparisonTask",
            "LogicTask",
            "CoordinateTask",
            "BetweenTask",
            "SuperlativeTask",
            "NearestTask",
            "OddOneOutTask",
        ),
        other_canvas,
    ),
}
