"""Mercury: what is right, what is fast, and what cannot be told."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import proctor
from helpers.code_tasks import ROWS, make_task, prompt_text, read, results, rows, score_of
from proctor.code.tasks import mercury
from proctor.code.tasks.mercury import RESOLUTION, Course, completion_of
from proctor.core.errors import UsageError

pytestmark = pytest.mark.usefixtures("one_sandbox")

PAIR, TURN, LIST = rows("mercury")


def solutions(row: dict[str, Any]) -> list[str]:
    return [known["solution"] for known in row["solutions"]]


@pytest.mark.parametrize(
    ("seconds", "beyond"), [(1.0, 1.0), (2.0, 1.0), (4.0, 0.75), (6.0, 0.5), (10.0, 0.0), (12.0, 0.0)]
)
def test_beyond_is_the_place_between_the_slowest_and_the_fastest(seconds: float, beyond: float) -> None:
    assert Course(fastest=2.0, slowest=10.0, noise=0.1).beyond(seconds) == pytest.approx(beyond)


def test_a_course_is_made_of_the_least_times() -> None:
    course = Course.of([[3.0, 2.0, 2.5], [10.0, 10.2, 10.1], [5.0, 5.0, 5.5]])
    assert course == Course(fastest=2.0, slowest=10.0, noise=0.5)


def test_references_that_differ_by_no_more_than_the_noise_tell_nothing() -> None:
    assert Course(fastest=1.0, slowest=1.0 + 1.1 * RESOLUTION * 0.01, noise=0.01).tells_apart
    assert not Course(fastest=1.0, slowest=1.0 + 0.9 * RESOLUTION * 0.01, noise=0.01).tells_apart
    assert not Course(fastest=1.0, slowest=1.0, noise=0.0).tells_apart


@pytest.fixture
def noise_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """References tell programs apart however much a busy machine disturbs them."""
    monkeypatch.setattr(mercury, "RESOLUTION", 0)


@pytest.mark.usefixtures("noise_aside")
def test_a_fast_program_is_worth_more_than_a_slow_one() -> None:
    """They differ many times over, whatever else the machine does."""
    fast, _, slow = solutions(PAIR)
    task = make_task("mercury-zero-shot", PAIR)
    of_fast, of_slow = results(task, f"{fast}\n"), results(task, f"{slow}\n")
    assert (of_fast["pass@1"], of_fast["timed"]) == (of_slow["pass@1"], of_slow["timed"]) == (1, 1)
    assert of_fast["beyond@1"] > 0.5 > of_slow["beyond@1"]
    wrong = "class Solution:\n    def pairSum(self, nums, target):\n        return False"
    assert results(task, wrong) == {"pass@1": 0, "beyond@1": 0, "timed": 0}
    assert results(task, wrong, fast)["beyond@1"] == pytest.approx(of_fast["beyond@1"] / 2, abs=0.25)


@pytest.mark.usefixtures("noise_aside")
def test_what_a_program_says_of_its_time_does_not_count() -> None:
    _, _, slow = solutions(PAIR)
    liar = f"import time\ntime.process_time = time.perf_counter = time.time = lambda: 0.0\n{slow}"
    assert results(make_task("mercury-zero-shot", PAIR), liar)["beyond@1"] < 0.5


@pytest.mark.usefixtures("noise_aside")
def test_a_hopelessly_slow_program_does_not_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[str] = []
    measure = mercury.ZeroShotMercury._times

    def times(self: mercury.ZeroShotMercury, doc: Any, sources: list[str], repetitions: int) -> dict[str, list[float]]:
        timed.extend(sources)
        return measure(self, doc, sources, repetitions)

    monkeypatch.setattr(mercury.ZeroShotMercury, "_times", times)
    slow = solutions(PAIR)[0].replace("seen = set()", "seen = set()\n        sum(range(3 * 10**7))")
    found = results(make_task("mercury-zero-shot", PAIR), slow)
    assert (found["pass@1"], found["beyond@1"], found["timed"]) == (1, 0, 1)
    assert slow not in timed
    assert timed


def test_where_nothing_can_be_told_a_right_program_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Course, "tells_apart", False)
    assert results(make_task("mercury-zero-shot", PAIR), solutions(PAIR)[1]) == {"pass@1": 1, "beyond@1": 1, "timed": 0}


def test_one_reference_is_no_course() -> None:
    lonely = {**PAIR, "solutions": PAIR["solutions"][:1]}
    assert results(make_task("mercury-zero-shot", lonely), solutions(PAIR)[1]) == {
        "pass@1": 1,
        "beyond@1": 1,
        "timed": 0,
    }


def test_references_that_fail_here_are_left_out() -> None:
    broken = {"hash": 9, "runtime": "1ms", "solution": "class Solution:\n    def pairSum(self, a, b): return 1 / 0"}
    row = {**PAIR, "solutions": [broken, *PAIR["solutions"]]}
    assert results(make_task("mercury-zero-shot", row), solutions(PAIR)[0])["beyond@1"] > 0.5


def test_speed_can_be_left_out() -> None:
    assert results(make_task("mercury-zero-shot", PAIR, runs=0), solutions(PAIR)[1]) == {"pass@1": 1}
    with pytest.raises(UsageError, match="runs"):
        make_task("mercury-zero-shot", PAIR, runs=1)


def test_lists_changed_in_place_are_looked_at() -> None:
    task = make_task("mercury-zero-shot", TURN, runs=0)
    assert [results(task, solution)["pass@1"] for solution in solutions(TURN)] == [1, 1]
    copied = "class Solution:\n    def turn(self, nums):\n        nums = nums[::-1]"
    assert results(task, copied)["pass@1"] == 0


def test_linked_lists() -> None:
    task = make_task("mercury-zero-shot", LIST, runs=0)
    assert [results(task, solution)["pass@1"] for solution in solutions(LIST)] == [1, 1]
    own = "class ListNode:\n    def __init__(self, val=0, next=None):\n        self.val, self.next = val, next\n\n"
    assert results(task, own + solutions(LIST)[0])["pass@1"] == 1
    assert results(task, solutions(LIST)[0].replace("+= 1", "+= 2"))["pass@1"] == 0


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    exec(mercury._GIVEN + mercury._NODES, {})
    yield sys.modules["lctk"]
    del sys.modules["lctk"]


@pytest.mark.parametrize(
    "values",
    [[], [0], [1, 2, 3], [1, None, 2, 3], [5, 4, 7, 3, None, 2, None, -1, None, 9], [0, 0, 0], [1, 2, 3, 4, None, 5]],
)
def test_trees_are_written_level_by_level(nodes: Any, values: list[int | None]) -> None:
    assert nodes.binaryTree2Arr(nodes.binaryTree(values)) == values


def test_shapes_of_lists_and_trees(nodes: Any) -> None:
    tree = nodes.binaryTree([1, None, 2, 3])
    assert (tree.left, tree.right.val, tree.right.left.val, tree.right.right) == (None, 2, 3, None)
    ring = nodes.linkedList([1, 2, 3], 1)
    assert ring.next.next.next is ring.next
    assert nodes.linkedList2Arr(ring) == [1, 2, 3]
    assert nodes.linkedList([]) is None


def test_a_conversion_that_is_not_known_is_an_error_of_the_row() -> None:
    row = {**LIST, "convert_offline": LIST["convert_offline"].replace("linkedList", "graph")}
    with pytest.raises(ValueError, match=r"lctk\.graph"):
        results(make_task("mercury-zero-shot", row), solutions(LIST)[0])


def test_a_reference_becomes_a_completion() -> None:
    prompt = TURN["prompt"]
    whole = solutions(TURN)[1]
    completion = completion_of(whole, prompt, "turn")
    assert completion == ("nums[:] = self.turned(nums)\n\n    def turned(self, nums):\n        return nums[::-1]\n\n")
    assert completion_of(solutions(PAIR)[2], PAIR["prompt"], "pairSum") is None  # its arguments have other names
    assert completion_of(f"import x\n{whole}", prompt, "turn") is None
    assert completion_of("class Solution:\n  def other(self): pass", prompt, "turn") is None
    assert completion_of("no code", prompt, "turn") is None
    completion = completion_of(f"{whole}\n", prompt.rstrip() + "\n", "turn")
    assert completion is not None
    assert "return" in completion


def test_the_text_of_a_problem_is_no_part_of_the_program() -> None:
    row = {**TURN, "pretty_content": ["'''\\N and more"]}
    task = make_task("mercury-zero-shot", row, runs=0)
    generation = prompt_text(task, row) + "nums.reverse()\n"
    assert results(task, generation)["pass@1"] == 1


def test_a_class_in_a_reply() -> None:
    task = make_task("mercury-zero-shot", TURN, runs=0)
    reply = f"Like this:\n```python\n{solutions(TURN)[1]}\n```"
    assert results(task, read(task, reply))["pass@1"] == 1


def test_the_report_counts_what_was_measured() -> None:
    """Times differ from run to run: what is summed up must be what the records say, over all epochs."""
    with open("replay.jsonl", "w") as file:
        for epoch, row in itertools.product((0, 1), rows("mercury")):
            outputs = [{"text": f"```python\n{solution}\n```"} for solution in solutions(row)[:2]]
            chosen = [*outputs, outputs[0]] if epoch else [outputs[0], {"text": ""}, {"text": "class Solution: pass"}]
            file.write(json.dumps({"id": row["slug_name"], "epoch": epoch, "outputs": chosen}) + "\n")
    report = proctor.evaluate(
        "code/mercury-zero-shot",
        "scripted/replay:replay.jsonl",
        data=str(ROWS / "mercury.jsonl"),
        samples=3,
        epochs=2,
        allow_code_execution=True,
    )
    told = [score_of(record).answer["metrics"] for record in report.records()]
    assert report.metrics["pass@1"].value == pytest.approx(4 / 6)
    assert report.metrics["pass@3"].value == pytest.approx(1)
    assert report.metrics["pass@5"].value == 1
    assert report.metrics["beyond@1"].value == pytest.approx(sum(found["beyond@1"] for found in told) / 6)
    assert report.metrics["timed"].n == 3
    assert set(report.run.groups["difficulty"]) == {"Easy", "Medium", "Hard"}
