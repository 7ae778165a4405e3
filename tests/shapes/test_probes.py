"""The probes find the shortcuts that are there, and none that are not."""

import re
from collections import Counter

import msgspec
import pytest

from helpers.known import known
from helpers.shapes_settings import sizes
from proctor.analysis.check import probe_task
from proctor.cli.main import main
from proctor.core.config import build_config
from proctor.core.task import create_task
from proctor.core.types import Probe
from proctor.metrics.statistics import proportion
from proctor.shapes import Shape, Task, probes
from proctor.shapes.canvas import FORMS, SMALL
from proctor.shapes.descriptions import Kind
from proctor.shapes.loader import Item
from proctor.shapes.tasks.existence import ExistenceTask
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS
from proctor.shapes.typed import YesNoTask


def has_descriptions(task: type[Task]) -> bool:
    return any(field.name == "description" and field.type == Kind for field in msgspec.structs.fields(task.Settings))


def found(task_class: type[Task], n: int = 600, **settings: str) -> dict[str, Probe]:
    task = create_task(task_class, task_class.__name__, settings)
    config = build_config({"task": task.name, "model": "scripted/oracle", "limit": n})
    return {probe.name: probe for probe in task.probes(config)}


def shortcuts(task_class: type[Task], n: int = 600, **settings: str) -> set[str]:
    return {name for name, probe in found(task_class, n, **settings).items() if not probe.holds}


# With so few samples the interval is wide: 100,000 are for `proctor check --probes`.
@sizes(150, 3000)
@pytest.mark.parametrize("name", REGISTERED_TASKS)
def test_the_tasks_of_the_family_have_no_shortcut(name: str, count: int) -> None:
    assert shortcuts(REGISTERED_TASKS[name], count) == set()


@sizes(100, 3000)
@pytest.mark.parametrize("name", [name for name, task in REGISTERED_TASKS.items() if has_descriptions(task)])
def test_no_description_opens_a_shortcut(name: str, count: int) -> None:
    assert shortcuts(REGISTERED_TASKS[name], count, description="full") == set()


class Leaky(YesNoTask):
    """Each subclass gives the answer away in one place."""

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        name = str(self.random.choice(shapes))
        self.leak(name, selected_answer == "Yes")
        return [(self.question(name, selected_answer == "Yes"), str(selected_answer))]

    def leak(self, name: str, yes: bool) -> None:
        self.description = f"There is a {name}.\nIt is hard to say."

    def question(self, name: str, yes: bool) -> str:
        return f"What about the {name}?"


def test_a_task_that_cannot_be_guessed_is_left_alone() -> None:
    assert shortcuts(Leaky) == set()


def test_the_question_gives_it_away() -> None:
    class Question(Leaky):
        def question(self, name: str, yes: bool) -> str:
            return f"Is it really the {name}?" if yes and self.random.below(4) else f"Is it the {name}?"

    assert "question only" in shortcuts(Question)


def test_the_description_gives_it_away() -> None:
    class Description(Leaky):
        def leak(self, name: str, yes: bool) -> None:
            self.description = f"There {'are several' if yes and self.random.below(4) else 'is a'} {name}."

    assert "description only" in shortcuts(Description)


def test_a_mention_gives_it_away() -> None:
    class Mention(Leaky):
        def leak(self, name: str, yes: bool) -> None:
            other = "large red circle" if name != "large red circle" else "small red circle"
            self.description = f"The {name if yes else other} is removed.\nA large blue circle is added."

    assert "any mention" in shortcuts(Mention)


def test_the_last_mention_gives_it_away() -> None:
    class LastMention(Leaky):
        def leak(self, name: str, yes: bool) -> None:
            lines = [f"The {name} is removed.", f"A {name} is added."]
            self.description = "\n".join(lines if yes else reversed(lines))

    caught = shortcuts(LastMention)
    assert "last mention" in caught
    assert "any mention" not in caught


def test_the_words_together_give_it_away() -> None:
    class Together(Leaky):
        """Three words, each of them right three times in four; one stands in the question."""

        def leak(self, name: str, yes: bool) -> None:
            self.words = [self.random.below(4) < (3 if yes else 1) for _ in range(3)]
            self.description = (
                f"It is {'bright' if self.words[0] else 'dark'} and {'warm' if self.words[1] else 'cold'}."
            )

        def question(self, name: str, yes: bool) -> str:
            return f"Is it {'near' if self.words[2] else 'far'}?"

    results = found(Together)
    assert not results["bag of words"].holds
    bag_of_words, question_only = (known(results[name].accuracy) for name in ("bag of words", "question only"))
    assert known(bag_of_words.value) > known(question_only.value)


def test_the_worked_example_gives_it_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def opposite(task: Task, index: int, few_shot: int, item: Item) -> list[Item]:
        return [item._replace(answer="No" if item.answer == "Yes" else "Yes")]

    monkeypatch.setattr(probes, "load_shots", opposite)
    assert shortcuts(ExistenceTask) == {"first shot"}


def test_the_last_line_and_what_it_has_to_do_with_the_question_give_it_away() -> None:
    class LastLine(Leaky):
        """A group comes back or goes, with the shape asked about or without it: neither alone tells anything."""

        def leak(self, name: str, yes: bool) -> None:
            within = bool(self.random.below(2))
            others = [colour for colour in SMALL.colours if colour not in name]
            colour = name.split()[1] if within else self.random.choice(others)
            happens = "All {} shapes come back." if within == yes else "All {} shapes are removed."
            self.description = f"There are shapes.\n{happens.format(colour)}"

    results = found(LastLine)
    assert [name for name, probe in results.items() if not probe.holds] == ["one line"]
    assert known(known(results["one line"].accuracy).value) > 0.99
    assert results["one line"].note == "the last line"


def test_any_line_and_what_it_has_to_do_with_the_question_gives_it_away() -> None:
    class AnyLine(Leaky):
        """One of several lines, anywhere, is about a shape of the same form, which is near or far."""

        def leak(self, name: str, yes: bool) -> None:
            form = name.split()[2]
            lines = [f"The small green {form} is {'near' if yes else 'far'}."]
            lines += [f"The small green {other} is near." for other in FORMS if other != form]
            lines += [f"The small blue {other} is far." for other in FORMS if other != form]
            self.description = "\n".join(self.random.shuffled(lines))

    results = found(AnyLine)
    assert results["one line"].note == "any line"
    assert known(known(results["one line"].accuracy).value) > 0.95


def test_two_lines_together_give_it_away() -> None:
    class TwoLines(Leaky):
        """Each of two lines tells nothing. The second is about the shape that the first leads to."""

        lines_needed = 3

        def leak(self, name: str, yes: bool) -> None:
            near, far = self.random.sample(["large purple circle", "large black square"], 2)
            bright = bool(self.random.below(2))
            self.description = "\n".join(
                [
                    f"The {name} goes with the {near}.",
                    f"The {near} is {'bright' if bright == yes else 'dark'} by {'day' if bright else 'night'}.",
                    f"The {far} is bright by day.",
                ]
            )

        def question(self, name: str, yes: bool) -> str:
            return f"Is the {name} one of these?"

    results = found(TwoLines)
    assert not results["two lines"].holds


def test_lines_that_are_enough_to_know_are_no_shortcut() -> None:
    class Enough(Leaky):
        lines_needed = 1

        def leak(self, name: str, yes: bool) -> None:
            self.description = f"There are shapes.\nThe {name} is {'here' if yes else 'not here'}."

    result = found(Enough)["one line"]
    assert (result.accuracy, result.note) == (None, "the task can be solved with one line")


def test_a_number_alone_gives_it_away() -> None:
    class Number(Leaky):
        """There are more where there are three or more of the first."""

        def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
            counts = Counter(shape.colour for shape in shapes)
            fitting = [c for c in SMALL.colours if (counts[c] >= 2) == (selected_answer == "Yes")]
            first = self.random.choice(fitting or SMALL.colours)
            second = self.random.choice([colour for colour in SMALL.colours if colour != first])
            return [(f"Are there more {first} shapes than {second} shapes?", str(selected_answer))]

    assert "one count" in shortcuts(Number)


def test_the_order_along_the_other_axis_gives_it_away() -> None:
    class OtherAxis(Leaky):
        def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
            a, b = sorted(self.random.sample(shapes, 2), key=lambda shape: shape.y, reverse=selected_answer == "Yes")
            return [(f"Is the {a} to the left of the {b}?", str(selected_answer))]

    results = found(OtherAxis)
    assert known(known(results["other axis"].accuracy).value) > 0.99
    assert "one line" not in shortcuts(OtherAxis)


def test_a_rank_alone_gives_it_away() -> None:
    class Rank(Leaky):
        """Asked about is one of the three leftmost shapes, or one of the others."""

        def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
            row = sorted(shapes, key=lambda shape: shape.x)
            name = self.random.choice(row[:3] if selected_answer == "Yes" else row[3:])
            return [(f"Is the {name} one of these?", str(selected_answer))]

    results = found(Rank)
    assert known(known(results["one rank"].accuracy).value) > 0.99
    assert results["one rank"].note.startswith("of the first asked about")


def test_what_a_task_states_is_held_against_it_only_beyond_that() -> None:
    def holds(hits: int, stated: float | None) -> bool:
        return Probe("p", proportion(hits, 100_000), 0.5, stated=stated).holds

    assert not holds(60_000, None)
    assert holds(60_000, 0.6)
    assert not holds(62_000, 0.6)


def test_unbalanced_answers_are_a_shortcut() -> None:
    class Unbalanced(Leaky):
        def select_expected_answer(self, i: int, n: int) -> str:
            return "No" if i % 5 == 0 else "Yes"

    assert "question only" in shortcuts(Unbalanced)


def test_a_point_is_allowed_and_luck_is_not_held_against_a_task() -> None:
    def holds(hits: int, n: int) -> bool:
        return Probe("p", proportion(hits, n), 0.5).holds

    assert holds(50_900, 100_000)
    assert not holds(51_100, 100_000)
    assert holds(55, 100), "a hundred samples cannot tell"
    assert not holds(70, 100)


def test_the_probes_of_a_named_task() -> None:
    names = [probe.name for probe in probe_task("shapes/coordinate", {"shapes": 4}, 200)]
    assert names == [*probes.PLAIN, *probes.RELATIONAL]


def test_the_report_names_the_best_guesser_and_what_is_stated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "shapes/coordinate", "--probes", "-n", "300"]) == 0
    *lines, best = capsys.readouterr().out.splitlines()
    (rank,) = (line for line in lines if "one rank" in line)
    assert rank.endswith("(partial solving, stated as 0.237)")
    assert re.fullmatch(r"  best guesser: .+ 0\.\d{4}, chance 0\.1250", best)
