"""`proctor generate` and the data set class, with real files."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import numpy as np
import pyarrow.parquet
import pytest

from conftest import Command, TaskFile
from helpers.shapes_settings import sizes, slow
from proctor.core.config import build_config
from proctor.core.errors import UsageError
from proctor.core.task import create_task, take_samples
from proctor.core.types import Sample
from proctor.shapes import Shape, ShapeDataset
from proctor.shapes.pixels import read_png
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS

Generate = Callable[..., "subprocess.CompletedProcess[str]"]

# Writes fifty samples of every task, in the given number of shards.
WRITE_ALL = """
import sys
from proctor.cli.main import main
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS

shards = int(sys.argv[1])
for name in REGISTERED_TASKS:
    for k in range(1, shards + 1):
        out = ["--out", f"{name}-{k}.jsonl", "--shard", f"{k}/{shards}"]
        assert main(["generate", f"shapes/{name}", "-n", "50", "--seed", "7", *out]) == 0
"""


@pytest.fixture
def generate(proctor: Command) -> Generate:
    return lambda *arguments: proctor("generate", *map(str, arguments))


def test_processes_and_shards_write_the_same_bytes(tmp_path: Path) -> None:
    for shards in (1, 2):
        folder = tmp_path / str(shards)
        folder.mkdir()
        command = [sys.executable, "-c", WRITE_ALL, str(shards)]
        env = os.environ | {"PYTHONHASHSEED": str(shards)}
        subprocess.run(command, check=True, cwd=folder, env=env, stderr=subprocess.DEVNULL)
    for name in REGISTERED_TASKS:
        whole = (tmp_path / "1" / f"{name}-1.jsonl").read_bytes()
        assert whole == b"".join((tmp_path / "2" / f"{name}-{k}.jsonl").read_bytes() for k in (1, 2)), name
        rows = [msgspec.json.decode(line) for line in whole.splitlines()]
        assert [row["index"] for row in rows] == list(range(50))
        assert list(rows[0]) == [
            *("id", "index", "task", "version", "prompt", "description", "question", "choices", "answer"),
            *("shots", "shapes", "settings", "evidence"),
        ]
        assert len(rows[0]["shapes"]) == rows[0]["settings"]["shapes"]


def test_few_shot_examples_may_have_other_canvases(generate: Generate) -> None:
    done = generate("shapes/existence", "-n", 5, "--few-shot", 2, "--shots", "other", "--out", "-")
    for line in done.stdout.splitlines():
        row = msgspec.json.decode(line)
        assert len(row["shots"]) == 2
        for asked, answer in row["shots"]:
            description, _, question = asked.rpartition("\n\n")
            assert description.startswith("A canvas shows")
            assert description != row["description"]
            assert question != row["question"]
            assert answer in ("Yes", "No")


@pytest.mark.parametrize("few_shot", [0, 2])
@pytest.mark.parametrize("name", REGISTERED_TASKS)
def test_rows_match_the_samples_of_a_run(name: str, few_shot: int) -> None:
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", {})
    config = build_config({"task": task.name, "model": "scripted/oracle", "limit": 30, "seed": 4, "few_shot": few_shot})
    rows = [msgspec.json.decode(line) for piece in task.json_lines(config, range(30)) for line in piece.splitlines()]
    for row, sample in zip(rows, take_samples(task, config), strict=True):
        asked = msgspec.to_builtins(sample)
        assert row["prompt"] == msgspec.json.decode(msgspec.json.encode(asked["input"]))
        assert (row["id"], row["answer"], row["choices"]) == (sample.id, sample.target, list(sample.choices))
        assert (row["task"], row["version"]) == (task.name, task.version)
        last = row["prompt"] if few_shot == 0 else row["prompt"][-1]["content"]
        assert last.endswith(f"{row['question']} {task.instruction}".rstrip())


@pytest.mark.parametrize("few_shot", [0, 3])
def test_parquet_equals_jsonl(
    generate: Generate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_shot: int
) -> None:
    monkeypatch.setattr("proctor.formats.data_files.PARQUET_ROWS", 100)
    for name in ("d.parquet", "d.jsonl"):
        done = generate("shapes/count", "-n", 250, "--few-shot", few_shot, "--out", tmp_path / name)
        assert done.returncode == 0
    lines = [msgspec.json.decode(line) for line in (tmp_path / "d.jsonl").read_bytes().splitlines()]
    assert pyarrow.parquet.ParquetFile(tmp_path / "d.parquet").num_row_groups == 3
    rows = pyarrow.parquet.read_table(tmp_path / "d.parquet").to_pylist()
    assert len(rows) == 250
    for row, line in zip(rows, lines, strict=True):
        assert row | {"settings": msgspec.json.decode(row["settings"])} == line


def test_parquet_without_pyarrow_names_the_extra(
    generate: Generate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)  # as if not installed
    done = generate("shapes/count", "--out", "d.parquet")
    assert done.returncode == 2
    assert "proctor-eval[parquet]" in done.stderr
    assert not (tmp_path / "d.parquet").exists()


def test_any_task_can_be_generated(generate: Generate, adding: str, tmp_path: Path) -> None:
    done = generate(adding, "-n", 4, "--out", tmp_path / "d.jsonl")
    assert done.returncode == 0, done.stderr
    rows = [msgspec.json.decode(line) for line in (tmp_path / "d.jsonl").read_bytes().splitlines()]
    assert [row["index"] for row in rows] == [0, 1, 2, 3]
    assert {"id", "input", "target"} <= rows[0].keys()
    assert generate(adding, "-n", 4, "--out", "-", "--shard", "2/2").stdout.splitlines() == [
        msgspec.json.encode(row).decode() for row in rows[2:]
    ]


def test_images_are_written_beside_the_rows(generate: Generate, tmp_path: Path) -> None:
    for folder, shard in (("whole", "1/1"), ("half", "2/2")):
        arguments = ("-n", 6, "--out", tmp_path / f"{folder}.jsonl", "--images", tmp_path / folder, "--shard", shard)
        assert generate("shapes/count", *arguments).returncode == 0
    rows = [msgspec.json.decode(line) for line in (tmp_path / "whole.jsonl").read_bytes().splitlines()]
    assert [row["image"] for row in rows] == [f"0-{index}.png" for index in range(6)]
    for row in rows:
        shown = read_png((tmp_path / "whole" / row["image"]).read_bytes())
        assert sorted(map(repr, shown)) == sorted(repr(Shape(**shape)) for shape in row["shapes"])
    assert sorted(path.name for path in (tmp_path / "half").iterdir()) == ["0-3.png", "0-4.png", "0-5.png"]
    for path in (tmp_path / "half").iterdir():
        assert path.read_bytes() == (tmp_path / "whole" / path.name).read_bytes()
    plain = generate("shapes/count", "-n", 6, "--out", "-").stdout
    del rows[0]["image"]
    assert msgspec.json.decode(plain.splitlines()[0]) == rows[0]


def test_images_of_another_data_set_are_not_overwritten(generate: Generate, tmp_path: Path) -> None:
    into = ("-n", 3, "--out", tmp_path / "d.jsonl", "--images", tmp_path / "images")
    assert generate("shapes/count", *into).returncode == 0
    assert generate("shapes/count", *into).returncode == 0, "the same ones again"
    done = generate("shapes/existence", *into)
    assert done.returncode == 2
    assert "0-0.png is another image" in done.stderr


def test_images_may_be_svg(generate: Generate, tmp_path: Path) -> None:
    into = ("-n", 2, "--out", tmp_path / "d.jsonl", "--images", tmp_path / "images", "--image-format", "svg")
    assert generate("shapes/count", *into).returncode == 0
    for line in (tmp_path / "d.jsonl").read_bytes().splitlines():
        row = msgspec.json.decode(line)
        drawing = ElementTree.parse(tmp_path / "images" / row["image"]).getroot()
        assert len(drawing) == 1 + len(row["shapes"]), "the background and the shapes"


def test_summary_matches_the_file(generate: Generate, tmp_path: Path, task_file: TaskFile) -> None:
    path = task_file("""
        from adding import *

        class Three(Adding):
            def samples(self, config):
                yield from list(super().samples(config))[:3]
    """)
    done = generate(f"{path}:Three", "-n", 10, "--out", tmp_path / "d.jsonl")
    assert ": 3 samples in" in done.stderr
    assert len((tmp_path / "d.jsonl").read_bytes().splitlines()) == 3


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise SystemExit(0)", "item 2: SystemExit: 0"),
        ("raise KeyError('x')", "item 2: KeyError: 'x'"),
        ("return []", "item 2: generate_questions returned no pair."),
        ("return ['qa']", "item 2: generate_questions returned ['qa'], not a list of pairs of texts."),
        ("return [('q', 'a'), ('r', 7)]", "item 2: generate_questions returned [('q', 'a'), ('r', 7)], not a list of"),
        ("return [('q', 'a'), ('r', '')]", "item 2: the answer to 'r' is empty."),
        ("return [('q', 7)]", "item 2: generate_questions returned [('q', 7)], not a list of pairs of texts."),
        ("return iter([('q', 'a')])", "item 2: generate_questions returned <list_iterator"),
        ("return [(None, 'x')]", "item 2: generate_questions returned [(None, 'x')], not a list of pairs of texts."),
        ("return [('q', '  ')]", "item 2: the answer to 'q' is empty."),
        ("return [('', 'a')]", "item 2: the question with the answer 'a' is empty."),
        ("self.description = ['d']; return [('q', 'a')]", "item 2: self.description is ['d'], not a text."),
    ],
)
def test_faulty_task_is_reported_and_leaves_no_file(
    generate: Generate, tmp_path: Path, body: str, message: str
) -> None:
    (tmp_path / "faulty.py").write_text(f"""\
from proctor.shapes import Task

class Faulty(Task):
    def select_expected_answer(self, i, n):
        return "7" if i < 2 else None

    def generate_questions(self, shapes, selected_answer=None):
        if selected_answer == "7":
            return [("How many?", "7")]
        {body}
""")
    done = generate(tmp_path / "faulty.py:Faulty", "-n", 5, "--out", tmp_path / "d.jsonl")
    assert done.returncode == 1
    assert message in done.stderr
    assert "faulty.py:Faulty" in done.stderr
    assert list(tmp_path.glob("d.jsonl*")) == []


def test_killed_writer_leaves_no_complete_file(tmp_path: Path) -> None:
    out = tmp_path / "d.jsonl"
    command = [sys.executable, "-m", "proctor", "generate", "shapes/logic", "-n", "1000000", "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while not (tmp_path / "d.jsonl.part").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shapes/count", "--out", "d.txt"], ".jsonl or .parquet"),
        (["shapes/count", "--out", "d"], ".jsonl or .parquet"),
        (["shapes/count", "--out", "no/such/folder/d.jsonl"], "Cannot write"),
        (["shapes/count", "--out", f"{__file__}/d.jsonl"], "Cannot write"),
        (["shapes/count", "--out", f"{'d' * 300}.jsonl"], "Cannot write"),
        (["shapes/count", "-n", "0", "--out", "-"], "expected int >= 1"),
        (["shapes/count", "-n", "many", "--out", "-"], "expected int"),
        (["shapes/count", "--out", "-", "--shard", "0/3"], "K/M"),
        (["shapes/count", "--out", "-", "--shard", "4/3"], "K/M"),
        (["shapes/count", "--out", "-", "--shard", "half"], "K/M"),
        (["shapes/count", "--out", "-", "--set", "shapes=500"], "expected int <= 27"),
        (["shapes/transitivity", "--out", "-", "--set", "shapes=2"], "expected int >= 5"),
        (["shapes/cuont", "--out", "-"], "shapes/count"),
        (["shapes/*", "--out", "-"], "name one"),
        (["shapes/count"], "--out"),
        (["shapes/transitivity", "--out", "-", "--images", "d"], "no images"),
        (["shapes/count", "--out", "-", "--images", "/proc/d"], "Cannot write"),
    ],
)
def test_bad_arguments_are_refused(generate: Generate, arguments: list[str], message: str) -> None:
    done = generate(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_data_set_has_length_and_items() -> None:
    dataset = ShapeDataset("shapes/count", n=100, seed=3, shapes=5)
    assert len(dataset) == 100
    item = dataset[7]
    assert item.id == "3-7"
    assert item.description.count("\n- ") == 5
    assert item.question.startswith("How many")
    assert item.answer in item.choices
    assert item.prompt == f"{item.description}\n\n{item.question} Answer with a number."
    assert dataset[-1] == dataset[99]
    assert dataset[10:14] == [dataset[i] for i in range(10, 14)]
    assert len(list(dataset)) == 100
    with pytest.raises(IndexError):
        dataset[100]


def test_data_set_equals_the_file(generate: Generate) -> None:
    for few_shot in (0, 3):
        done = generate("shapes/count", "-n", 100, "--seed", 3, "--few-shot", few_shot, "--out", "-")
        row = msgspec.json.decode(done.stdout.splitlines()[42])
        item = ShapeDataset("shapes/count", n=100, seed=3, few_shot=few_shot)[42]
        assert item._asdict() == {field: row[field] for field in item._fields}
        for shots in ("same", "other"):
            other = ShapeDataset("shapes/count", n=100, seed=3, few_shot=few_shot, shots=shots)[42]
            assert (other == item) == (shots == "same" or few_shot == 0)


@pytest.mark.parametrize("name", REGISTERED_TASKS)
def test_data_set_scores_like_a_run(name: str) -> None:
    dataset = ShapeDataset(f"shapes/{name}", n=8, seed=2, few_shot=1)
    config = build_config({"task": f"shapes/{name}", "model": "scripted/oracle", "limit": 8, "seed": 2, "few_shot": 1})
    for item, sample in zip(dataset, take_samples(dataset.task, config), strict=True):
        for text in ("{}", "The answer is {}.", "I do not know.", "", "Yes", "0"):
            message = text.format(item.answer)
            assert dataset.score_answer(message, item) == dataset.task.score_text(sample, message).value
            assert dataset.score_answer(message, item._asdict()) == dataset.score_answer(message, item)
    assert dataset.score_answer(dataset[0].answer, dataset[0]) == 1


def test_item_of_another_task_is_refused(generate: Generate) -> None:
    row = msgspec.json.decode(generate("shapes/count", "-n", 1, "--out", "-").stdout)
    assert ShapeDataset("shapes/count").score_answer(row["answer"], row) == 1
    with pytest.raises(UsageError, match="shapes/existence cannot score an item of shapes/count"):
        ShapeDataset("shapes/existence").score_answer(row["answer"], row)


@pytest.fixture
def frequent_thread_switches() -> Iterator[None]:
    """Threads switch as often as possible."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@sizes(300, 5000)
@pytest.mark.usefixtures("frequent_thread_switches")
@pytest.mark.parametrize("name", ["transitivity", "recolour_tracking", slow("existence_tracking"), slow("count")])
def test_data_set_is_thread_safe(name: str, count: int) -> None:
    dataset = ShapeDataset(f"shapes/{name}", n=count, few_shot=1)
    alone = list(dataset)
    with ThreadPoolExecutor(6) as threads:
        together = list(threads.map(lambda index: dataset[index], [*range(count), *range(count)]))
    assert together == alone * 2


@pytest.mark.usefixtures("frequent_thread_switches")
def test_task_is_thread_safe_with_several_seeds() -> None:
    task = create_task(REGISTERED_TASKS["recolour_tracking"], "shapes/recolour_tracking", {})

    def make(seed: int) -> list[Sample]:
        return list(take_samples(task, build_config({"task": "t", "model": "scripted/oracle", "seed": seed})))

    alone = [make(seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(make, range(6))) == alone


def test_data_set_accepts_numpy_integers() -> None:
    dataset = ShapeDataset("shapes/existence", n=5)
    numbers: Any = np.arange(5)
    assert [dataset[i] for i in numbers] == list(dataset)


def test_data_set_is_picklable() -> None:
    """Workers of a DataLoader unpickle the data set."""
    dataset = ShapeDataset("shapes/existence_tracking", n=10)
    _ = dataset[0]
    assert list(pickle.loads(pickle.dumps(dataset))) == list(dataset)


def test_data_set_of_another_family_is_refused(adding: str) -> None:
    with pytest.raises(UsageError, match="shapes family"):
        ShapeDataset(adding)
    with pytest.raises(UsageError, match="expected int <= 27"):
        ShapeDataset("shapes/count", shapes=99)
    faults: list[dict[str, Any]] = [{"n": -1}, {"n": "5"}, {"seed": "a"}]
    for wrong in faults:
        with pytest.raises(UsageError, match="n is a number of items"):
            ShapeDataset("shapes/count", **wrong)
    faults = [{"few_shot": -1}, {"few_shot": "2"}, {"shots": "mine"}]
    for wrong in faults:
        with pytest.raises(UsageError, match="few_shot is a number and shots same or other"):
            ShapeDataset("shapes/count", **wrong)
