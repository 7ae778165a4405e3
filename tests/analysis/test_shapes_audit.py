"""`proctor check` finds tasks that hide their canvas, and tasks that one answer passes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Command
from helpers.shapes_settings import extreme
from proctor.core import registry
from proctor.core.config import build_config
from proctor.core.random import Stream
from proctor.core.task import create_task
from proctor.shapes import audit
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS

Faults = Callable[[str], dict[str, str]]


@pytest.fixture
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Faults:
    """What is wrong with a task of which this is the body, as a user of the guide would write it."""
    monkeypatch.setattr(audit, "AUDITED", 200)

    def find(body: str) -> dict[str, str]:
        path = tmp_path / "mine.py"
        path.write_text(
            "from proctor.shapes import Shape, Task\n\n\nclass Mine(Task):\n"
            + textwrap.indent(textwrap.dedent(body), "    ")
        )
        name = f"{path}:Mine"
        task = create_task(registry.load_task_class(name), name, {})
        findings = task.findings(build_config({"task": name, "model": "scripted/oracle"}))
        return {finding.claim: f"{finding.seen} {finding.fault}".strip() for finding in findings if not finding.holds}

    return find


YES_OR_NO = """
answers = ("Yes", "No")

def select_expected_answer(self, i, n):
    return self.balanced_answer(i)

def names(self):
    return list(self.board.names)
"""

# Tracking tasks that should have been `extends_description = True`.
HIDING = {
    "asks for one shape": """
        def generate_questions(self, shapes, selected_answer=None):
            names = [str(shape) for shape in shapes]
            removed = self.random.sample(names, 3)
            self.description = "\\n".join(f"The {name} is removed." for name in removed)
            pairs = []
            for number in range(3):
                answer = selected_answer if number == 0 else self.random.choice(self.answers)
                asked = self.random.choice([n for n in names if (n in removed) == (answer == "No")])
                pairs.append((f"Is there a {asked} on the canvas now?", answer))
            return pairs
    """,
    "asks for attributes": """
        def generate_questions(self, shapes, selected_answer=None):
            removed = self.random.choice(shapes)
            self.description = f"The {removed} is removed."
            left = {shape.colour for shape in shapes if shape is not removed}
            colours = [c for c in self.board.colours if (c in left) == (selected_answer == "Yes")]
            return [(f"Is there a {self.random.choice(colours or ['red'])} shape now?", selected_answer)]
    """,
    "asks where a shape is": """
        def generate_questions(self, shapes, selected_answer=None):
            self.description = "Look closely."
            a, b = self.random.sample(shapes, 2)
            if (a.x < b.x) != (selected_answer == "Yes"):
                a, b = b, a
            return [(f"Is the {a} to the left of the {b}?", selected_answer)]
    """,
    "asks about two that it names": """
        def generate_questions(self, shapes, selected_answer=None):
            a, b = self.random.sample(shapes, 2)
            if (a.x < b.x) != (selected_answer == "Yes"):
                a, b = b, a
            self.description = f"The {a} moves 5 to the right. The {b} moves 5 to the right."
            return [(f"Is the {a} to the left of the {b} now?", selected_answer)]
    """,
    "says nothing": """
        def generate_questions(self, shapes, selected_answer=None):
            self.description = ""
            return [("Is the first shape farther to the left than the second one?", selected_answer)]
    """,
}
HIDING_NUMBERS = {
    "asks how many are left": """
        def generate_questions(self, shapes, selected_answer=None):
            removed = self.random.sample(shapes, 1 + self.random.below(5))
            self.description = "\\n".join(f"The {shape} is removed." for shape in removed)
            return [("How many shapes are there now?", str(len(shapes) - len(removed)))]
    """,
    "asks which one is where": """
        def generate_questions(self, shapes, selected_answer=None):
            first, *others = self.random.shuffled(shapes)
            self.description = f"The {first} is removed."
            return [("Which shape is leftmost now?", str(min(others, key=lambda shape: shape.x)))]
    """,
}


@pytest.mark.parametrize("body", HIDING.values(), ids=HIDING)
def test_audit_finds_task_that_hides_its_canvas(faults: Faults, body: str) -> None:
    source = textwrap.dedent(YES_OR_NO) + textwrap.dedent(body)
    fault = faults(source)[audit.SHOWN]
    assert "set `extends_description = True` in the class" in fault
    assert audit.SHOWN not in faults(f"extends_description = True\n{source}"), "the cure"


@pytest.mark.parametrize("body", HIDING_NUMBERS.values(), ids=HIDING_NUMBERS)
def test_audit_finds_hidden_canvas_without_declared_answers(faults: Faults, body: str) -> None:
    assert "self.description takes the place" in faults(body)[audit.SHOWN]
    assert audit.SHOWN not in faults("extends_description = True\n" + textwrap.dedent(body))


# Tasks that bring a complete description of their own.
HONEST = {
    "two shapes": """
        def generate_questions(self, shapes, selected_answer=None):
            a, b, c = self.random.sample(shapes, 3)
            order = (a, b, c) if selected_answer == "Yes" else (c, b, a)
            self.description = "The {} is to the left of the {}, which is to the left of the {}.".format(*order)
            return [(f"Is the {a} to the left of the {c}?", selected_answer)]
    """,
    "counts in words": """
        def generate_questions(self, shapes, selected_answer=None):
            self.description = f"{3 + self.random.below(3)} shapes are red and {self.random.below(3)} are blue."
            words = ("red", "blue") if selected_answer == "Yes" else ("blue", "red")
            return [("Are there more {} shapes than {} ones?".format(*words), selected_answer)]
    """,
    "no shapes": """
        def generate_questions(self, shapes, selected_answer=None):
            self.description = f"{self.random.below(9)} + {self.random.below(9)} is asked."
            return [("Is this a sum?" if selected_answer == "Yes" else "Is this a product?", selected_answer)]
    """,
    "a line of some": """
        def generate_questions(self, shapes, selected_answer=None):
            line = [str(shape) for shape in self.random.sample(shapes, 4)]
            self.description = f"In a line stand: {', '.join(line)}."
            a, b = line[:2] if selected_answer == "Yes" else line[1::-1]
            return [(f"Is the {a} before the {b}?", selected_answer)]
    """,
}


@pytest.mark.parametrize("body", HONEST.values(), ids=HONEST)
def test_audit_accepts_complete_description(faults: Faults, body: str) -> None:
    assert faults(textwrap.dedent(YES_OR_NO) + textwrap.dedent(body)) == {}


def test_extends_description_false_disables_the_canvas_audit(faults: Faults) -> None:
    body = """
        def generate_questions(self, shapes, selected_answer=None):
            line = [str(shape) for shape in self.random.sample(shapes, 3)]
            self.description = f"In a line stand: {', '.join(line)}."
            names = line if selected_answer == "Yes" else [n for n in map(str, shapes) if n not in line]
            return [(f"Does a {self.random.choice(names)} stand in the line?", selected_answer)]
    """
    source = textwrap.dedent(YES_OR_NO) + textwrap.dedent(body)
    assert list(faults(source)) == [audit.SHOWN]
    assert faults(f"extends_description = False\n{source}") == {}


ASKS = """
def generate_questions(self, shapes, selected_answer=None):
    colour, name = self.random.choice(self.board.colours), self.random.choice(self.board.names)
    found = name in map(str, shapes)
    {answer}
"""


@pytest.mark.parametrize(
    ("answer", "best"),
    [
        ("return [(f'Is there a {name}?', 'Yes' if found else 'No')]", "'No' scores 0."),
        ("return [(f'Is there a {name}?', 'Yes')]", "'Yes' scores 1.000"),
        (
            "return [(f'How many {colour} shapes are there?', str(sum(s.colour == colour for s in shapes)))]",
            "scores 0.",
        ),
    ],
)
def test_audit_finds_task_that_one_answer_passes(faults: Faults, answer: str, best: str) -> None:
    fault = faults(ASKS.format(answer=answer))[audit.VARIED]
    assert "make all answers equally frequent, name them in `answers`" in fault
    assert best in fault


def test_check_reports_hidden_canvas_and_constant_answer(faults: Faults, proctor: Command) -> None:
    body = """
        def generate_questions(self, shapes, selected_answer=None):
            self.description = f"The {self.random.choice(shapes)} is removed."
            return [("How many shapes are there now?", str(len(shapes) - 1))]
    """
    assert list(faults(body)) == [audit.SHOWN, audit.VARIED]
    done = proctor("check", "mine.py:Mine", "-n", "20")
    assert done.returncode == 1
    assert f"FAIL  {audit.SHOWN}\n" in done.stdout
    assert f"FAIL  {audit.VARIED}: '6' scores 1.000 of " in done.stdout


def test_an_answer_that_contains_others_is_found_among_many(faults: Faults) -> None:
    body = """
        numbers = [str(number) for number in range(8)] + ["12345670"]

        def generate_questions(self, shapes, selected_answer=None):
            return [("Which number do I think of?", self.random.choice([*self.numbers[:8] * 2, self.numbers[8]]))]
    """
    assert "'12345670' scores 1.000" in faults(body)[audit.VARIED]


def test_audit_finds_score_that_accepts_anything(faults: Faults) -> None:
    body = YES_OR_NO + textwrap.dedent("""
        def score(self, expected, actual):
            return 1.0

        def generate_questions(self, shapes, selected_answer=None):
            a, b = sorted(self.random.sample(shapes, 2), key=lambda shape: shape.x, reverse=selected_answer == "No")
            return [(f"Is the {a} to the left of the {b}?", selected_answer)]
    """)
    assert "score or parse_answer gives points to wrong answers" in faults(body)[audit.VARIED]
    assert faults(body.replace("1.0", "float(expected == actual)")) == {}


@pytest.mark.parametrize("n", [2, 3, 10])
def test_audit_accepts_random_answers(faults: Faults, n: int) -> None:
    body = f"""
        def generate_questions(self, shapes, selected_answer=None):
            number = self.random.below({n})
            self.extra = 3
            return [(f"What is {{number}} plus nothing?", str(number + 10))]
    """
    assert faults(body) == {}


def test_binomial_tail_matches_exact_values() -> None:
    assert audit._binomial_tail(0, 10, 0.3) == pytest.approx(1)
    assert audit._binomial_tail(10, 10, 0.5) == pytest.approx(0.5**10)
    assert audit._binomial_tail(6, 10, 0.5) == pytest.approx(386 / 1024)
    assert audit._binomial_tail(3, 10, 1) == 1


def test_audit_rarely_rejects_a_fair_task() -> None:
    """A fair coin, thrown for 400 tasks."""
    tails = []
    for seed in range(400):
        stream = Stream(seed)
        hits = sum(stream.below(2) for _ in range(audit.AUDITED))
        tails.append(audit._binomial_tail(max(hits, audit.AUDITED - hits), audit.AUDITED, 0.5 + audit.MARGIN))
    assert min(tails) > audit.ERROR_RATE / 2


@pytest.mark.parametrize("name", REGISTERED_TASKS)
@pytest.mark.parametrize("limit", ["default", pytest.param("minimum", marks=pytest.mark.slow)])
def test_audit_accepts_every_registered_task(name: str, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "AUDITED", 200)
    settings = {} if limit == "default" else extreme(name, limit)
    findings = list(audit.audit(create_task(REGISTERED_TASKS[name], f"shapes/{name}", settings), declared=False))
    assert [finding.claim for finding in findings] == [audit.SHOWN, audit.VARIED]
    assert [finding.fault for finding in findings] == ["", ""]
