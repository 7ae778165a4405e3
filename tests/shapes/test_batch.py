"""The batch path gives the very bytes of the one-item path."""

from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.shapes_settings import extreme, settings_of, slow
from proctor.core.config import build_config
from proctor.core.errors import TaskError
from proctor.core.random import Stream, mix
from proctor.core.task import create_task, take_samples
from proctor.core.types import Sample
from proctor.shapes import Shape
from proctor.shapes import task as task_module
from proctor.shapes.batch import maker
from proctor.shapes.batch.retries import draw_first
from proctor.shapes.batch.streams import Integers, Streams, choose_bit, mix_rows, pick
from proctor.shapes.loader import load_row
from proctor.shapes.tasks.existence import ExistenceTask
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS

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


def samples_of_both_paths(
    name: str, chosen: dict[str, object], seed: int, part: range
) -> tuple[list[Sample], list[Sample]]:
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", chosen)
    options = {"task": task.name, "model": "scripted/oracle", "seed": seed}
    config = build_config(options | {"limit": len(part), "limit_start": part.start})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_module, "BATCHED", 1)
        batch = list(take_samples(task, config))
        patch.setattr(task_module, "BATCHED", len(part) + 1)
        return batch, list(take_samples(task, config))


def test_every_task_is_made_in_batches() -> None:
    assert REGISTERED_TASKS.keys() == set(NAMES)


SEEDS, STARTS = st.integers(-(2**70), 2**70), st.integers(0, 10**11)


@BATCHED
@settings(max_examples=7)
@given(data=st.data(), seed=SEEDS, start=STARTS)
def test_the_batch_path_gives_the_items_of_the_other(name: str, data: st.DataObject, seed: int, start: int) -> None:
    batch, one_by_one = lines_of_both_paths(name, data.draw(settings_of(name)), seed, range(start, start + 12))
    assert batch == one_by_one


@pytest.mark.slow
@BATCHED
@settings(max_examples=60)
@given(data=st.data(), seed=SEEDS, start=STARTS)
def test_the_batch_path_gives_them_at_many_settings(name: str, data: st.DataObject, seed: int, start: int) -> None:
    batch, one_by_one = lines_of_both_paths(name, data.draw(settings_of(name)), seed, range(start, start + 12))
    assert batch == one_by_one


@BATCHED
@settings(max_examples=3)
@given(data=st.data(), seed=st.integers(-(2**63), 2**63 - 1), start=st.integers(0, 10**11))
def test_a_run_gets_the_same_samples_from_batches(name: str, data: st.DataObject, seed: int, start: int) -> None:
    batch, one_by_one = samples_of_both_paths(name, data.draw(settings_of(name)), seed, range(start, start + 8))
    assert batch == one_by_one
    assert [msgspec.json.encode(sample) for sample in batch] == [msgspec.json.encode(sample) for sample in one_by_one]


@BATCHED
@pytest.mark.parametrize("limit", ["minimum", "maximum"])
def test_the_extreme_settings_are_the_same_in_batches(name: str, limit: str) -> None:
    batch, one_by_one = lines_of_both_paths(name, dict(extreme(name, limit)), 3, range(40))
    assert batch == one_by_one


@BATCHED
def test_shards_of_a_batch_are_the_whole(name: str) -> None:
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", {})
    config = build_config({"task": task.name, "model": "scripted/oracle", "limit": 100})
    whole = b"".join(task.json_lines(config, range(100)))
    cuts = (0, 1, 37, 38, 100)
    assert b"".join(line for part in pairwise(cuts) for line in task.json_lines(config, range(*part))) == whole


def test_a_run_makes_a_batch_only_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maker, "ROWS", 600)
    task = create_task(ExistenceTask, "shapes/existence", {})
    drawn: list[int] = []
    draw = maker.Maker._draw

    def counted(self: maker.Maker, indices: Integers, wanted: Integers) -> maker.Batch:
        drawn.append(len(indices))
        return draw(self, indices, wanted)

    monkeypatch.setattr(maker.Maker, "_draw", counted)
    samples = task.samples(build_config({"task": task.name, "model": "scripted/oracle", "limit": 10**9}))
    assert [next(samples).index for _ in range(601)] == list(range(601))
    assert drawn == [600, 600]


@pytest.mark.parametrize("options", [{"few_shot": 1}, {"modality": "image"}, {"modality": "both"}])
def test_shots_and_pictures_are_made_one_by_one(options: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_module, "BATCHED", 1)
    task = create_task(ExistenceTask, "shapes/existence", {})
    config = build_config({"task": task.name, "model": "scripted/oracle", "limit": 2} | options)
    assert [len(sample.input) for sample in task.samples(config)] == [3 if "few_shot" in options else 1] * 2


@BATCHED
def test_where_a_batch_ends_does_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maker, "ROWS", 7)
    monkeypatch.setattr(maker, "SPAN", 21)
    batch, one_by_one = lines_of_both_paths(name, {}, 1, range(30, 130))
    assert batch == one_by_one


@pytest.mark.parametrize("name", [slow(name) if name != "existence" else name for name in NAMES])
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


@given(st.lists(st.lists(st.integers(0, 2**63 - 1), min_size=2, max_size=2).filter(any), min_size=1, max_size=5))
def test_one_of_the_bits_that_are_set_is_chosen(sets: list[list[int]]) -> None:
    keys = np.arange(len(sets), dtype=np.uint64)
    chosen = choose_bit(np.array(sets), Streams.seeded(keys))
    for row, (low, high) in enumerate(sets):
        bits = [bit for bit in range(128) if (low | high << 64) >> bit & 1]
        assert chosen[row] == Stream(row).choice(bits)


@given(st.integers(1, 12), st.integers(1, 2**12 - 1), st.integers(0, 2**63 - 1))
def test_the_first_that_fits_is_that_of_a_stream(pool: int, fitting: int, key: int) -> None:
    keys = np.arange(key, key + 20, dtype=np.uint64)
    # Each row has another that fits.
    fits = np.array([[(fitting >> (i + row) % 12 & 1) or i == row % pool for i in range(pool)] for row in range(20)])
    streams = Streams.seeded(keys)
    found = draw_first(pool, lambda rows, candidates: fits[rows, candidates] == 1, streams)
    after = streams.below(1000)
    for row in range(20):
        stream = Stream(key + row)
        assert found[row] == stream.first(range(pool), fits[row].astype(bool).__getitem__)
        assert after[row] == stream.below(1000)


def test_rows_that_never_fit_are_an_error() -> None:
    with pytest.raises(TaskError, match="in 3 tries"):
        draw_first(3, lambda rows, candidates: candidates < 0, Streams.seeded(np.arange(4, dtype=np.uint64)))
