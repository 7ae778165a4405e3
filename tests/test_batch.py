"""The batch path gives the very bytes of the one-item path."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.config import build_config
from proctor.randomness import Stream, mix
from proctor.shapes import Shape
from proctor.shapes.batch import maker
from proctor.shapes.batch.streams import Streams, mix_rows, pick
from proctor.shapes.loader import load_row
from proctor.shapes.tasks.existence import ExistenceTask
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS
from proctor.task import create_task
from shapes_settings import settings_of, slow

NAMES = [name for name, task in REGISTERED_TASKS.items() if task.maker]
BATCHED = pytest.mark.parametrize("name", NAMES)


def lines_of_both_paths(
    name: str, chosen: dict[str, object], seed: int, part: range
) -> tuple[list[bytes], list[bytes]]:
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", chosen)
    config = build_config({"task": task.name, "model": "scripted/oracle", "limit": part.stop, "seed": seed})
    batch = b"".join(task.json_lines(config, part))
    task = task.seeded(seed)
    one_by_one = [msgspec.json.encode(load_row(task, index, part.stop, 0)) for index in part]
    return batch.splitlines(), one_by_one


@BATCHED
@settings(max_examples=20)
@given(data=st.data(), seed=st.integers(-(2**70), 2**70), start=st.integers(0, 10**11))
def test_the_batch_path_gives_the_items_of_the_other(name: str, data: st.DataObject, seed: int, start: int) -> None:
    batch, one_by_one = lines_of_both_paths(name, data.draw(settings_of(name)), seed, range(start, start + 12))
    assert batch == one_by_one


@BATCHED
def test_where_a_batch_ends_does_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maker, "ROWS", 7)
    monkeypatch.setattr(maker, "SPAN", 21)
    batch, one_by_one = lines_of_both_paths(name, {}, 1, range(30, 130))
    assert batch == one_by_one


@pytest.mark.parametrize("name", [NAMES[0], *map(slow, NAMES[1:])])
def test_a_batch_of_thousands_is_right_to_its_end(name: str) -> None:
    batch, one_by_one = lines_of_both_paths(name, {"shapes": 9}, 5, range(1, maker.ROWS + 300))
    assert batch == one_by_one


def test_a_class_that_changes_a_task_is_made_one_by_one() -> None:
    class Shouting(ExistenceTask):
        def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
            return [
                (question.upper(), answer) for question, answer in super().generate_questions(shapes, selected_answer)
            ]

    config = build_config({"task": "t", "model": "scripted/oracle", "limit": 1})
    (line,) = create_task(Shouting, "shouting", {}).json_lines(config, range(1))
    assert msgspec.json.decode(line)["question"].startswith("IS THERE")


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=5), st.integers(1, 2**32 - 1), st.integers(1, 30))
def test_streams_draw_what_a_stream_draws(keys: list[int], limit: int, n: int) -> None:
    streams = Streams.seeded(np.array(keys, np.uint64))
    drawn, sampled = streams.below(limit), streams.sample(n, n)
    for row, key in enumerate(keys):
        stream = Stream(key)
        assert stream.below(limit) == drawn[row]
        assert stream.shuffled(range(n)) == sampled[row].tolist()


@given(st.lists(st.integers(-(2**80), 2**80), max_size=3), st.integers(0, 2**63 - 1))
def test_rows_are_mixed_as_numbers_are(parts: list[int], last: int) -> None:
    assert mix_rows(*parts, last=np.array([last]))[0] == mix(*parts, last)


@given(st.lists(st.booleans(), min_size=1).filter(any), st.data())
def test_the_fitting_entry_of_a_number_is_picked(fitting: list[bool], data: st.DataObject) -> None:
    places = [place for place, fits in enumerate(fitting) if fits]
    number = data.draw(st.integers(0, len(places) - 1))
    assert pick(np.array([fitting]), np.array([number])).tolist() == [places[number]]
