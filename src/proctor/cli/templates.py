"""Templates of `proctor new`: MODULE and CLASS are replaced by the names."""

from __future__ import annotations

_TASK = '''\
"""A task that adds numbers. Adapt it."""

from collections.abc import Iterator

from msgspec import Struct

from proctor import RunConfig, Sample, Score, Task
from proctor.core.random import Stream


class CLASS(Task):
    summary = "adds two numbers"
    version = "1"  # raise it when the same answer could get another score

    class Settings(Struct, frozen=True):
        largest: int = 99  # proctor run … --set largest=9

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        # Each sample must depend only on seed and index, so that runs can be repeated and resumed.
        for index in range(config.limit_start, config.limit_start + self.count(config)):
            random = Stream(config.seed, index)
            a, b = random.below(self.settings.largest + 1), random.below(self.settings.largest + 1)
            yield Sample(
                id=f"{index}",
                index=index,
                input=f"What is {a} + {b}? Answer with the number only.",
                target=str(a + b),
                metadata={"digits": len(str(a + b))},  # proctor run … --group-by digits
            )

    def count(self, config: RunConfig) -> int:
        return config.limit or 100

    def score_text(self, sample: Sample, text: str) -> Score:
        answer = text.strip().rstrip(".")
        if not answer.isdigit():
            return Score(0, "unparsed", answer)
        right = answer == sample.target
        return Score(float(right), "correct" if right else "wrong", answer)
'''

_SHAPES = '''\
"""Questions about a canvas of shapes. Adapt them."""

from proctor.shapes import Shape, Task
from proctor.shapes.answers import parse_yes_no


class CLASS(Task):
    summary = "is one shape to the left of another? (Yes / No)"
    version = "1"  # raise it when the same answer could get another score
    answers = ("Yes", "No")
    instruction = "Answer Yes or No."

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        """(question, answer) pairs. The first is the sample; its answer is selected_answer."""
        pairs = []
        for number in range(3):
            answer = selected_answer if selected_answer and number == 0 else self.random.choice(self.answers)
            a, b = self.random.sample(shapes, 2)
            if (a.x < b.x) != (answer == "Yes"):
                a, b = b, a
            pairs.append((f"Is the {a} to the left of the {b}?", answer))
        return pairs

    def select_expected_answer(self, i: int, n: int) -> str:
        return self.balanced_answer(i)  # as many Yes as No in every block of samples

    def parse_answer(self, text: str) -> str | None:
        return parse_yes_no(text)

    def score(self, expected: str, actual: str) -> float:
        return float(expected == actual)
'''

_TEST = """\
from pathlib import Path

import proctor
from proctor.analysis.check import check_task

TASK = f"{Path(__file__).with_name('MODULE.py')}:CLASS"


def test_task_passes_its_checks():
    assert [finding for finding in check_task(TASK, {}) if not finding.holds] == []


def test_oracle_gets_full_marks(tmp_path):
    report = proctor.evaluate(TASK, "scripted/oracle", limit=20, store=str(tmp_path))
    assert report.metrics["accuracy"].value == 1
"""

_CODE = '''\
"""Code problems. Adapt them."""

from proctor.code import STOP_WORDS, Task

PROBLEMS = [
    {
        "task_id": "MODULE/0",
        "prompt": "def double(x):\\n    # Twice x.\\n",
        "canonical_solution": "    return 2 * x\\n",
        "test": "assert double(3) == 6\\nassert double('ab') == 'abab'",
        "entry_point": "double",
    },
    {
        "task_id": "MODULE/1",
        "prompt": "def vowels(text):\\n    # How many of a, e, i, o, u there are in text, small or capital.\\n",
        "canonical_solution": "    return sum(letter in 'aeiou' for letter in text.lower())\\n",
        "test": "assert vowels('') == 0\\nassert vowels('An Apple') == 3",
        "entry_point": "vowels",
    },
]


class CLASS(Task):
    summary = "writes small functions in Python"
    version = "1"  # raise it when the same answer could get another score

    def __init__(self, timeout: float = 3.0):  # proctor run … --set timeout=10
        super().__init__(stop_words=STOP_WORDS["python"], requires_execution=True)
        self.timeout = timeout

    def get_dataset(self):
        # To read rows from the hub, set DATASET_PATH = "owner/name" in the class and remove
        # get_dataset; --data FILE.jsonl then reads them from a file.
        return PROBLEMS

    def get_prompt(self, doc):
        return doc["prompt"]

    def get_reference(self, doc):
        return doc["test"]
'''

_CODE_TEST = """\
from pathlib import Path

import proctor
from proctor.analysis.check import check_task

TASK = f"{Path(__file__).with_name('MODULE.py')}:CLASS"


def test_task_passes_its_checks():
    assert [finding for finding in check_task(TASK, {}) if not finding.holds] == []


def test_right_solutions_pass(tmp_path):
    report = proctor.evaluate(TASK, "scripted/oracle", allow_code_execution=True, store=str(tmp_path))
    assert report.metrics["pass@1"].value == 1
"""

_AGENT = '''\
"""An agent that plays in a window. Adapt it."""

import time

from proctor.agents import TIMES, Agent, Task, env_lock
from proctor.agents.desktop import CALLABLES, LISTENERS, VK, KeyboardEvent, activate_module, get_current_frame


class CLASS(Agent):
    def __init__(self) -> None:
        activate_module("owa.env.desktop")

        def on_keyboard_event(event: KeyboardEvent) -> None:
            if event.vk == VK.F10:  # stops the current task
                self.stop_event.set()

        LISTENERS["keyboard"]().configure(callback=on_keyboard_event).start()

    def _play_env(self, task: Task) -> bool:
        """One step: look, decide, act."""
        with env_lock:
            CALLABLES["window.make_active"](task.window_name)
            frame = get_current_frame(task.window_name)  # rows of red, green and blue
            key = self.decide(frame)
            CALLABLES["keyboard.press"](key)
            time.sleep(TIMES.KEYBOARD_PRESS_DELAY)
            CALLABLES["keyboard.release"](key)
        return True  # False: finished

    def decide(self, frame) -> VK:
        return VK.LEFT if frame[:, : frame.shape[1] // 2].mean() > frame[:, frame.shape[1] // 2 :].mean() else VK.RIGHT
'''

_AGENT_TEST = """\
from pathlib import Path

import proctor

AGENT = f"{Path(__file__).with_name('MODULE.py')}:CLASS"


def test_agent_plays(tmp_path):
    settings = {"timeout": 20, "survive": 0.5}
    report = proctor.evaluate("agents/hexagon", agent=AGENT, limit=1, settings=settings, store=str(tmp_path))
    (record,) = report.records()
    assert record.outcome in ("completed", "timeout"), record.score
    assert record.score.answer["time_survived"] > 0
"""

TEMPLATES = {
    "agent": {"task": _AGENT, "test": _AGENT_TEST},
    "task": {"task": _TASK, "test": _TEST},
    "shapes": {"task": _SHAPES, "test": _TEST},
    "code": {"task": _CODE, "test": _CODE_TEST},
}
