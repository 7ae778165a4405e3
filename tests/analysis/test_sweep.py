"""Sweeps: each point is a run, every value is checked first, and a curve at the end."""

import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proctor as package
from conftest import Command, Stalling, TaskFile
from helpers.records import strip_times
from proctor.analysis.curve import WIDTH, Curve, CurvePoint
from proctor.core import registry
from proctor.core.errors import StoreError, UsageError
from proctor.core.types import Metric
from proctor.store import open_store

RANDOM = ("--model", "scripted/random")
SIZED = """
    from typing import Annotated
    import msgspec
    from adding import *

    class Sizes(msgspec.Struct, frozen=True):
        size: Annotated[int, msgspec.Meta(ge=1, le=9)]
        label: str = ""

    class Sized(Adding):
        Settings = Sizes

        def samples(self, config):
            for sample in super().samples(config):
                yield msgspec.structs.replace(sample, input=f"{sample.input} (of size {self.settings.size})")
"""


@pytest.fixture
def sized_task(task_file: TaskFile) -> str:
    """The adding task with a required setting from 1 to 9."""
    return f"{task_file(SIZED)}:Sized"


def runs_in_store() -> int:
    try:
        return len(open_store(mode="read").runs())
    except StoreError:
        return 0


# -- on the command line ----------------------------------------------------------------------


def test_each_point_equals_a_separate_run(proctor: Command) -> None:
    options = ("shapes/count", *RANDOM, "--limit", "30", "--seed", "4", "--json")
    swept = json.loads(proctor("run", *options, "--sweep", "shapes=3,10").stdout)["runs"]
    for run, value in zip(swept, (3, 10), strict=True):
        (single,) = json.loads(proctor("run", *options, "--set", f"shapes={value}").stdout)["runs"]
        for key in ("task", "version", "candidate", "status", "n", "metrics", "groups", "outcomes", "usage", "config"):
            assert run[key] == single[key], key
        assert run["provenance"] == single["provenance"]
        store = open_store(mode="read")
        one, other = (store.run(each["id"]) for each in (run, single))
        assert strip_times(store.records(one)) == strip_times(store.records(other))
        store.close()


def test_sweep_json_has_curves(proctor: Command) -> None:
    done = proctor(
        "run", "shapes/count", "shapes/superlative", *RANDOM, "--limit", "12", "--sweep", "shapes=4,9,5", "--json"
    )
    printed = json.loads(done.stdout)
    assert set(printed) == {"runs", "curves"}
    assert [curve["task"] for curve in printed["curves"]] == ["shapes/count", "shapes/superlative"]
    points = [point for curve in printed["curves"] for point in curve["points"]]
    for curve in printed["curves"]:
        assert set(curve) == {"task", "candidate", "metric", "setting", "points"}
        assert (curve["candidate"], curve["metric"], curve["setting"]) == ("scripted/random", "accuracy", "shapes")
        assert [point["value"] for point in curve["points"]] == [4, 9, 5], "in the order given"
    for point, run in zip(points, printed["runs"], strict=True):
        assert (point["run"], point["n"], point["status"]) == (run["id"], 12, "done")
        assert point["metric"] == run["metrics"]["accuracy"]
        assert point["value"] == run["config"]["settings"]["shapes"]
    assert [point["chance"] for point in points[3:]] == pytest.approx([1 / 4, 1 / 9, 1 / 5])


def test_run_without_sweep_has_no_curve(proctor: Command) -> None:
    assert set(json.loads(proctor("run", "shapes/count", *RANDOM, "--limit", "2", "--json").stdout)) == {"runs"}


def test_curve_is_printed_below_the_reports(proctor: Command) -> None:
    done = proctor("run", "shapes/superlative", *RANDOM, "--limit", "50", "--sweep", "shapes=2,20")
    assert done.returncode == 0
    reports, _, curve = done.stdout.partition("\n\n")
    assert [line for line in reports.splitlines() if "settings" in line] == [
        "  settings       shapes=2",
        "  settings       shapes=20",
    ]
    title, head, first, second = curve.splitlines()
    assert title == "shapes/superlative · scripted/random · accuracy by shapes"
    assert head.split() == ["shapes", "n", "accuracy", "95", "%", "interval", "chance", "0", "1"]
    second_run, first_run = open_store(mode="read").runs()
    for line, run, value, chance in ((first, first_run, "2", "0.500"), (second, second_run, "20", "0.050")):
        metric = run.metrics["accuracy"]
        accuracy, low, high = (f"{x:.3f}" for x in (metric.value, metric.low, metric.high))
        assert line.split()[:7] == [value, "50", accuracy, low, "–", high, chance]
        assert line.index(f" {accuracy} ") == head.index("accuracy") + 2, "figures stand in columns"
    assert first.index("●") > second.index("●")
    assert "1 of 2: shapes/superlative at shapes=2\n" in done.stderr


def test_ascii_terminal_gets_ascii_marks(proctor_process: Command) -> None:
    done = proctor_process(
        "run", "shapes/count", *RANDOM, "--limit", "20", "--sweep", "shapes=3,4", PYTHONIOENCODING="ascii"
    )
    assert done.returncode == 0
    drawn = [line[48:] for line in done.stdout.splitlines()[-2:]]
    assert all("o" in line and "--" in line and "?" not in line for line in drawn), done.stdout


def test_sweep_over_names(proctor: Command) -> None:
    done = proctor("run", "shapes/logic", *RANDOM, "--limit", "3", "--sweep", "description=full, partial", "--json")
    assert [run["config"]["settings"]["description"] for run in json.loads(done.stdout)["runs"]] == ["full", "partial"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shapes/count", "--sweep", "shape=3,5"], "no setting 'shape'; did you mean shapes? Settings: shapes, desc"),
        (["shapes/*", "--sweep", "shape=3,5"], "no setting 'shape'; did you mean shapes? Settings: shapes, desc"),
        (["shapes/count", "--sweep", "shapes=3,500"], "shapes/count: setting shapes: expected int <= 27, got 500."),
        (["shapes/*", "--sweep", "shapes=3,500"], "setting shapes: expected int <= 48, got 500."),
        (
            ["shapes/*", "shapes/transitivity", "--sweep", "shapes=3,7"],
            "transitivity: setting shapes: expected int >= 5",
        ),
        (["shapes/*", "--sweep", "shapes=7,many"], "setting shapes: expected int, got 'many'."),
        (["shapes/count", "--sweep", "description=full,short"], "expected coordinates or full or partial, got 'short'"),
        (["shapes/count", "--sweep", "shapes=3,5,3"], "the value 3 of shapes is given twice"),
        (["shapes/count", "--sweep", "shapes=3,,5"], "--sweep expects key=value,value,…"),
        (["shapes/count", "--sweep", "shapes="], "--sweep expects key=value,value,…"),
        (["shapes/count", "--sweep", "shapes"], "--sweep expects key=value,value,…"),
        (["shapes/count", "--sweep", "=3,5"], "--sweep expects key=value,value,…"),
        (["shapes/count", "--sweep", "shapes=3,5", "--sweep", "description=full"], "--sweep takes one setting, got 2"),
        (["shapes/count", "--sweep", "shapes=3,5", "--sweep", "shapes=7"], "--sweep takes one setting, got 2"),
        (["shapes/count", "--sweep", "shapes=3,5", "--set", "shapes=7"], "shapes is both swept and fixed"),
        (["shapes/*", "--sweep", "shapes=7", "--set", "events=3"], "shapes/between has no setting 'events'"),
        (["shapes/count", "--sweep", "shapes=3,5", "--limit", "0"], "limit: expected int >= 1"),
    ],
)
def test_impossible_sweep_is_refused_before_any_run(proctor: Command, arguments: list[str], message: str) -> None:
    done = proctor("run", *arguments, *RANDOM)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert runs_in_store() == 0


def test_wildcard_skips_values_a_task_refuses(proctor: Command) -> None:
    tasks = "shapes/[est]*"
    done = proctor("run", tasks, *RANDOM, "--limit", "2", "--sweep", "shapes=3,48,7", "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    values = {c["task"]: [p["value"] for p in c["points"]] for c in json.loads(done.stdout)["curves"]}
    assert list(values) == registry.expand(tasks)
    assert values["shapes/existence"] == [3, 7]
    assert values["shapes/transitivity"] == [48, 7]
    assert values["shapes/shuffle_tracking"] == [3, 48, 7]
    notes = done.stderr.splitlines()
    assert "note: skipped: shapes/transitivity: setting shapes: expected int >= 5, got 3." in notes
    assert "note: skipped: shapes/existence: setting shapes: expected int <= 47, got 48." in notes
    assert len(notes) == sum(3 - len(points) for points in values.values()), "one for each point"


def test_wildcard_skips_tasks_without_the_setting(proctor: Command) -> None:
    done = proctor("run", "shapes/*", *RANDOM, "--limit", "2", "--sweep", "events=2,4", "--json", "--quiet")
    tasks = [curve["task"] for curve in json.loads(done.stdout)["curves"]]
    assert tasks == [name for name in registry.expand("shapes/*") if name.endswith("_tracking")]
    left_out = set(registry.expand("shapes/*")) - set(tasks)
    notes = done.stderr.splitlines()
    assert {note.removeprefix("note: skipped: ").split()[0] for note in notes} == left_out
    assert len(notes) == len(left_out), "one for each task"


def test_task_named_twice_is_swept_once(proctor: Command) -> None:
    done = proctor("run", "shapes/count", "shapes/c*", *RANDOM, "--limit", "2", "--sweep", "shapes=4,5", "--json")
    curves = json.loads(done.stdout)["curves"]
    assert sorted(curve["task"] for curve in curves) == ["shapes/comparison", "shapes/coordinate", "shapes/count"]
    assert {len(curve["points"]) for curve in curves} == {2}


# -- in a file --------------------------------------------------------------------------------


def swept_values(done: subprocess.CompletedProcess[str]) -> list[Any]:
    assert done.returncode == 0, done.stderr
    (curve,) = json.loads(done.stdout)["curves"]
    return [point["value"] for point in curve["points"]]


def test_flags_override_the_sweep_of_a_file(proctor: Command, tmp_path: Path) -> None:
    head = 'task = "shapes/count"\nmodel = "scripted/random"\nlimit = 2\n'
    (tmp_path / "swept.toml").write_text(f"{head}[sweep]\nshapes = [3, 10]\n")
    (tmp_path / "fixed.toml").write_text(f"{head}[settings]\nshapes = 5\n")
    assert swept_values(proctor("run", "--config", "swept.toml", "--json")) == [3, 10]
    assert swept_values(proctor("run", "--config", "swept.toml", "--sweep", "description=full", "--json")) == ["full"]
    assert swept_values(proctor("run", "--config", "fixed.toml", "--sweep", "shapes=4,6", "--json")) == [4, 6]
    done = proctor("run", "--config", "swept.toml", "--set", "shapes=5")
    assert (done.returncode, runs_in_store()) == (2, 5)


@pytest.mark.parametrize(
    "sweep", ["5", "[3, 5]", "{}", "{shapes = 5}", "{shapes = []}", "{shapes = [3], description = ['full']}"]
)
def test_malformed_sweep_of_a_file_is_refused(proctor: Command, tmp_path: Path, sweep: str) -> None:
    (tmp_path / "sweep.toml").write_text(f"sweep = {sweep}\n")
    done = proctor("run", "shapes/count", *RANDOM, "--config", "sweep.toml")
    assert done.returncode == 2
    assert "sweep: expected one setting with its values, as in shapes = [3, 5, 7], got" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_run_of_a_sweep_is_resumed_with_its_file(proctor: Command, tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(
        'task = "shapes/count"\nmodel = "scripted/random"\nlimit = 2\n'
        '[settings]\ndescription = "full"\n[sweep]\nshapes = [3, 10]\n'
    )
    assert proctor("run", "--config", "sweep.toml").returncode == 0
    done = proctor("resume", "latest", "--config", "sweep.toml", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"][0]["config"]["settings"] == {"shapes": 10, "description": "full"}


# -- when something goes wrong ----------------------------------------------------------------


def test_failed_run_is_a_marked_point(proctor: Command, task_file: TaskFile) -> None:
    path = task_file(
        SIZED
        + """
        def score_text(self, sample, text):
            if self.settings.size == 2:
                raise ValueError("broken")
            return super().score_text(sample, text)
"""
    )
    done = proctor("run", f"{path}:Sized", "--model", "scripted/oracle", "--sweep", "size=1,2,3", "-q")
    assert done.returncode == 1
    first, second, third = done.stdout.splitlines()[-3:]
    assert first.split()[:3] == ["1", "10", "1.000"]
    assert second.split() == ["2", "0", "–", "failed"]
    assert third.split()[:3] == ["3", "10", "1.000"]


def test_killed_sweep_resumes_with_the_same_command(
    proctor: Command, sized_task: str, stalling: Stalling, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = stalling(7)  # all five of the first run, two of the second
    command = ["run", sized_task, "--model", "openai/m", "--base-url", server.url, "--limit", "5", "--cache"]
    command += ["--sweep", "size=4,5,6", "--json", "-q"]
    process = subprocess.Popen([sys.executable, "-m", "proctor", *command], stdout=subprocess.DEVNULL)

    def scored() -> list[int]:
        try:
            store = open_store(mode="read")
        except StoreError:
            return []
        try:
            return [len(store.scored(run)) for run in store.runs()]
        finally:
            store.close()

    end = time.monotonic() + 300
    while scored() != [2, 5] or len(server.requests) < 10:
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    server.open_gate()

    def asked_by(key: str) -> int:
        return sum(headers.get("Authorization") == f"Bearer {key}" for headers in server.headers)

    resumed = proctor("resume", "latest", "--json", "-q", OPENAI_API_KEY="resumed")
    (run,) = json.loads(resumed.stdout)["runs"]
    assert (run["status"], run["n"], run["config"]["settings"]["size"]) == ("done", 5, 5)
    assert asked_by("resumed") == 3

    again = json.loads(proctor(*command, OPENAI_API_KEY="again").stdout)
    assert asked_by("again") == 5, "what was answered before comes out of the cache"
    assert [(p["value"], p["n"], p["metric"]["value"]) for p in again["curves"][0]["points"]] == [
        (4, 5, 1),
        (5, 5, 1),
        (6, 5, 1),
    ]
    assert runs_in_store() == 5, "nothing is lost: the runs of the first go are still there"


# -- from Python ------------------------------------------------------------------------------


def test_sweep_from_python(sized_task: str) -> None:
    curve = package.sweep(sized_task, "scripted/oracle", "size", range(2, 5), limit=4, settings={"label": "x"})
    assert [point.value for point in curve.points] == [2, 3, 4]
    assert [point.run for point in curve.points] == [report.run.id for report in curve.reports]
    assert {report.run.config["settings"]["label"] for report in curve.reports} == {"x"}
    assert all(
        point.metric == report.metrics["accuracy"] for point, report in zip(curve.points, curve.reports, strict=True)
    )
    assert "accuracy by size\n  size  n  accuracy  95 % interval  0 " in str(curve), "no chance where the set is open"
    assert json.loads(json.dumps(curve.to_dict())) == curve.to_dict()


def test_sweep_from_python_with_a_class(sized_task: str) -> None:
    assert len(package.sweep(registry.load_task_class(sized_task), "scripted/oracle", "size", [1, 9]).points) == 2


@pytest.mark.parametrize(
    ("setting", "values", "options", "message"),
    [
        ("size", [1, 10], {}, "expected int <= 9, got 10"),
        ("sise", [1], {}, "did you mean size?"),
        ("size", [], {}, "sweep: expected one setting with its values"),
        ("size", [1, 1.0], {}, "is given twice"),
        ("size", [1, 2], {"settings": {"size": 1}}, "both swept and fixed"),
        ("label", ["a"], {}, "missing required field size"),
        ("size", [1], {"limt": 3}, "did you mean limit?"),
    ],
)
def test_sweep_checks_all_values_before_the_first_run(
    sized_task: str, setting: str, values: list[Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        package.sweep(sized_task, "scripted/oracle", setting, values, **options)
    assert message in str(caught.value)
    assert runs_in_store() == 0


def test_every_metric_has_a_curve(proctor: Command, task_file: TaskFile) -> None:
    path = task_file(
        SIZED
        + """
        def tally(self):
            return Both()

    class Both:
        def __init__(self):
            self.n = 0

        def add(self, record):
            self.n += 1

        def metrics(self):
            from proctor.core.types import Metric

            points = Metric(-40.0, 1.0, -42.0, 9.0, self.n, "x")
            return {"half": Metric(0.5, 0.1, 0.4, 0.6, self.n, "x"), "points": points}
"""
    )
    done = proctor("run", f"{path}:Sized", "--model", "scripted/oracle", "--sweep", "size=1,2", "--json")
    curves = json.loads(done.stdout)["curves"]
    assert [(curve["metric"], len(curve["points"])) for curve in curves] == [("half", 2), ("points", 2)]
    curve = package.sweep(f"{path}:Sized", "scripted/oracle", "size", [1])
    assert curve.metric == "half"
    assert str(Curve("size", curve.reports, "points")).splitlines()[1].split()[-2:] == ["-42", "9"], (
        "a scale of its own"
    )


# -- the drawing ------------------------------------------------------------------------------

MEASURES = st.tuples(*[st.floats(-1e6, 1e6)] * 3).map(sorted)
SHARES = st.tuples(*[st.floats(0, 1)] * 3).map(sorted)


def drawn(points: list[CurvePoint]) -> tuple[str, list[str]]:
    """The scale and the drawings of a curve with these points."""
    curve = Curve.__new__(Curve)
    curve.setting, curve.task, curve.candidate, curve.metric, curve.points = "s", "t", "c", "m", points
    _, head, *lines = str(curve).splitlines()
    start = len(head) - WIDTH
    return head[start:], [line[start:] for line in lines]


@given(st.lists(st.one_of(SHARES, MEASURES), min_size=1, max_size=6), st.none() | st.floats(0, 1))
def test_drawing_matches_the_numbers(bounds: list[list[float]], chance: float | None) -> None:
    points = [
        CurvePoint(i, "r", "done", 9, Metric(value, 0.1, low, high, 9, "x"), chance)
        for i, (low, value, high) in enumerate(bounds)
    ]
    scale, lines = drawn(points)
    assert len(scale) == WIDTH
    start, end = min(0.0, *(low for low, _, _ in bounds)), max(1.0, *(high for _, _, high in bounds))

    def near(cell: int, number: float) -> bool:
        """Half a cell, and a hair for the rounding of floats."""
        return abs(cell - (number - start) / (end - start) * (WIDTH - 1)) <= 0.5 + 1e-6

    for (low, value, high), line in zip(bounds, lines, strict=True):
        assert len(line) <= WIDTH
        assert line.count("●") == 1
        numbers = [low, high] if chance is None else [low, high, chance]
        marks = [i for i, mark in enumerate(line) if mark != " "]
        assert near(line.index("●"), value)
        assert near(min(marks), min(numbers))
        assert near(max(marks), max(numbers))
        assert chance is None or near(line.index("┊" if "┊" in line else "●"), chance)


def test_unscored_points_are_not_drawn() -> None:
    nothing = CurvePoint(1, "r", "interrupted", 0, Metric(None, None, None, None, 0, "wilson"), None)
    single = CurvePoint(2, "r", "done", 1, Metric(0.5, None, None, None, 1, "student-t"), None)
    odd = CurvePoint(3, "r", "done", 1, Metric(math.nan, None, -math.inf, 0.5, 1, "x"), None)
    assert [line.strip() for line in drawn([nothing, single, odd])[1]] == ["interrupted", "●", ""]
