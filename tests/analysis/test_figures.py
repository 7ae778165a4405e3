"""Figures of stored runs: every kind, the chosen kind, and refusals."""

import json
import re
import shlex
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image
from test_plots import EVIL, SVG

import proctor as package
from conftest import Command, Serve, TaskFile
from helpers.paths import CHECKOUT
from proctor.analysis.curve import gather_curves
from proctor.analysis.figures import KINDS, Figure, make_figure
from proctor.analysis.plots import Curves, Histograms, Scores, Spreads
from proctor.analysis.report import Report
from proctor.cli.main import main
from proctor.core.errors import TooManyErrorsError, UsageError
from proctor.core.options import differing_options, non_default_options
from proctor.core.types import Run
from proctor.metrics.passing import count_passes, pass_at_k
from proctor.store import open_store
from proctor.store.store import Store

RANDOM = "scripted/random"
GUIDE = (CHECKOUT / "docs" / "results.md").read_text()


@pytest.fixture
def store() -> Iterator[Store]:
    store = open_store()
    yield store
    store.close()


def run_task(task: str = "shapes/count", model: str = RANDOM, **options: Any) -> Run:
    return package.evaluate(task, model, **({"limit": 12} | options)).run


def run_sizes(*sizes: int, model: str = RANDOM, **options: Any) -> list[Run]:
    return [run_task(model=model, settings={"shapes": size}, **options) for size in sizes]


def draw(figure: Figure, width: int = 500) -> ElementTree.Element:
    return ElementTree.fromstring(figure.plot.draw(width).svg())


# -- kinds ------------------------------------------------------------------------------------


def test_scores_of_several_candidates_and_tasks(store: Store) -> None:
    runs = [run_task(model="scripted/oracle"), run_task(), run_task("shapes/existence")]
    figure = make_figure(store, runs)
    assert figure.kind == "scores"
    plot = figure.plot
    assert isinstance(plot, Scores)
    assert plot.title == "accuracy with 95\u00a0% interval"
    assert [(group.title, [row.label for row in group.rows]) for group in plot.groups] == [
        ("shapes/count (version 4)", ["scripted/oracle", RANDOM]),
        ("shapes/existence (version 4)", [RANDOM]),
    ]
    assert plot.groups[0].rows[0].metric == runs[0].metrics["accuracy"]


def test_scores_of_one_run_include_its_groups(store: Store, adding: str) -> None:
    run = run_task(adding, "scripted/oracle", group_by=["odd"])
    plot = make_figure(store, [run]).plot
    assert isinstance(plot, Scores)
    assert [(group.title, [row.label for row in group.rows]) for group in plot.groups] == [
        ("", ["accuracy"]),
        ("accuracy by odd", ["0", "1"]),
    ]


def test_equal_runs_are_labelled_with_their_ids(store: Store) -> None:
    runs = [run_task(), run_task()]
    plot = make_figure(store, runs, "scores").plot
    assert isinstance(plot, Scores)
    assert [row.label for row in plot.groups[0].rows] == [f"{RANDOM} ({run.id})" for run in runs]


def test_curve_is_chosen_for_runs_that_differ_in_one_setting(store: Store) -> None:
    runs = [*run_sizes(10, 3, 5), *run_sizes(3, 10, model="scripted/oracle")]
    figure = make_figure(store, runs)
    assert (figure.kind, figure.why) == ("curve", "the runs differ in shapes")
    plot = figure.plot
    assert isinstance(plot, Curves)
    assert (plot.title, plot.x, plot.y) == ("accuracy by shapes", "shapes", "accuracy")
    assert [(line.label, [point.x for point in line.points]) for line in plot.lines] == [
        (RANDOM, [3, 5, 10]),
        ("scripted/oracle", [3, 10]),
    ]
    assert plot.lines[0].points[2].metric == runs[0].metrics["accuracy"]
    assert sorted(x for x, _ in plot.chance) == [3, 5, 10]
    assert "chance" in "".join(draw(figure).itertext())


def test_curve_over_names_has_no_line(store: Store) -> None:
    runs = [run_task("shapes/existence", settings={"description": kind}) for kind in ("coordinates", "full")]
    root = draw(make_figure(store, runs))
    assert not [path for path in root.iter(f"{SVG}path") if "pp-line" in path.get("class", "")]
    assert {"coordinates", "full"} <= {text.text for text in root.iter(f"{SVG}text")}


def test_curve_uses_the_newest_of_equal_runs(store: Store) -> None:
    old, new, other = (
        run_task(settings={"shapes": 3}),
        run_task(settings={"shapes": 3}),
        run_task(settings={"shapes": 5}),
    )
    (curve,) = gather_curves([Report(run, store.url) for run in (new, other, old)])
    assert [point.run for point in curve.points] == [new.id, other.id]


def test_lines_are_labelled_with_other_differing_options(store: Store) -> None:
    runs = [*run_sizes(3, 5), *run_sizes(3, 5, few_shot=1)]
    with pytest.raises(UsageError, match="differ in shapes, few_shot: choose one for the curve, as in --by shapes"):
        make_figure(store, runs, "curve")
    plot = make_figure(store, runs, by="shapes").plot
    assert isinstance(plot, Curves)
    assert [line.label for line in plot.lines] == [f"{RANDOM} (few_shot=0)", f"{RANDOM} (few_shot=1)"]


def test_curve_over_an_option(store: Store) -> None:
    plot = make_figure(store, [run_task(few_shot=n) for n in (0, 2)]).plot
    assert isinstance(plot, Curves)
    assert plot.x == "few_shot"


def test_stored_runs_reproduce_the_curve_of_their_sweep(store: Store) -> None:
    swept = package.sweep("shapes/count", RANDOM, "shapes", [3, 5], limit=12)
    (gathered,) = gather_curves([Report(run, store.url) for run in store.runs()])
    assert gathered.to_dict() == swept.to_dict()
    assert str(gathered) == str(swept)


PROGRAMS = """
from proctor import Score
from adding import *

class Programs(Adding):
    async def judge(self, sample, outputs):
        passed = [(sample.index * 3 + i) % 4 < sample.index % 3 for i in range(len(outputs))]
        return Score(sum(passed) / len(passed), "", [{"passed": one} for one in passed])

    def tally(self):
        from proctor.metrics.passing import PassAtK
        return PassAtK((1, 2))
"""


def test_pass_at_k_is_computed_for_every_k(store: Store, task_file: TaskFile) -> None:
    run = run_task(f"{task_file(PROGRAMS)}:Programs", "scripted/oracle", samples=8)
    figure = make_figure(store, [run])
    assert (figure.kind, figure.why) == ("passes", "8 attempts per problem")
    assert isinstance(figure.plot, Curves)
    (line,) = figure.plot.lines
    assert [point.x for point in line.points] == list(range(1, 9))
    counts = count_passes(store.records(run))
    assert [n for n, _ in counts.values()] == [8] * 12
    for point in line.points:
        expected = [pass_at_k(n, c, point.x) for n, c in counts.values()]
        assert point.metric.value == pytest.approx(sum(expected) / 12)
        assert None not in (point.metric.low, point.metric.value, point.metric.high)
        assert (point.metric.low or 0) <= (point.metric.value or 0) <= (point.metric.high or 0)
    assert line.points[1].metric == run.metrics["pass@2"]


def test_epochs_count_as_attempts(store: Store) -> None:
    run = run_task("shapes/existence", epochs=3)
    plot = make_figure(store, [run], "passes").plot
    assert isinstance(plot, Curves)
    (line,) = plot.lines
    assert [point.x for point in line.points] == [1, 2, 3]
    assert line.points[0].metric.value == pytest.approx(run.metrics["accuracy"].value)


def test_histogram_counts_every_score(store: Store) -> None:
    run = run_task("shapes/existence", epochs=2)
    plot = make_figure(store, [run], "histogram").plot
    assert isinstance(plot, Histograms)
    (histogram,) = plot.runs
    assert len(histogram.scores) == 24
    assert sum(histogram.scores) == run.outcomes["correct"]


def test_latency_excludes_cached_outputs(store: Store, adding: str, serve: Serve) -> None:
    server = serve(lambda body, number: "1")
    run = run_task(adding, "openai/m", base_url=server.url)
    plot = make_figure(store, [run], "latency").plot
    assert isinstance(plot, Spreads)
    (spread,) = plot.spreads
    seconds = sorted(output.seconds for record in store.records(run) for output in record.outputs)
    assert spread.n == 12
    assert spread.longest == pytest.approx(1000 * seconds[-1])
    assert spread.median == pytest.approx(1000 * seconds[5], rel=0.02)


def test_lags_of_an_agent_run(store: Store) -> None:
    run = package.evaluate(
        "agents/catch",
        agent="proctor.agents.envs.catch:Catcher",
        settings={"clock": "realtime", "fps": 60},
        limit=1,
    ).run
    plot = make_figure(store, [run], "lags").plot
    assert isinstance(plot, Spreads)
    assert [spread.label for spread in plot.spreads] == ["observation", "reaction", "action"]
    for spread in plot.spreads:
        assert spread.n == run.metrics[f"{spread.label}_p50_ms"].n
        assert spread.median == run.metrics[f"{spread.label}_p50_ms"].value
        assert spread.late == run.metrics[f"{spread.label}_p95_ms"].value


# -- refusals -----------------------------------------------------------------------------


def test_impossible_plots_are_refused(store: Store) -> None:
    run = run_task()
    for options, message in [
        ({"kind": "pie"}, r"Unknown kind of plot 'pie'.*Kinds: scores, curve"),
        ({"kind": "score"}, "did you mean scores"),
        ({"metric": "f1"}, rf"Unknown metric 'f1'. Run {run.id} has: accuracy"),
        ({"kind": "curve", "metric": "f1"}, "Unknown metric 'f1'"),
        ({"kind": "curve"}, "differ in no setting"),
        ({"by": "colour"}, f"Run {run.id} of shapes/count has no setting 'colour'; it has: shapes, description"),
        ({"by": "shapes"}, "No two of these runs differ only in shapes"),
        ({"kind": "passes"}, "one attempt per problem.*--samples or --epochs"),
        ({"kind": "latency"}, "these runs have no times"),
        ({"kind": "lags"}, "no lags; only agents"),
        ({"kind": "scores", "by": "shapes"}, "--by is for curves, not for scores"),
        ({"kind": "lags", "metric": "accuracy"}, "--metric is for scores and curves, not for lags"),
    ]:
        with pytest.raises(UsageError, match=message):
            make_figure(store, [run], **options)
    with pytest.raises(UsageError, match="No run to plot"):
        make_figure(store, [])


def test_runs_without_scores(store: Store, adding: str) -> None:
    with pytest.raises(TooManyErrorsError) as caught:
        package.evaluate(adding, RANDOM, limit=3)
    run = caught.value.run
    assert run is not None
    with pytest.raises(UsageError, match="no scores"):
        make_figure(store, [run], "histogram")
    with pytest.raises(UsageError, match="no samples that passed or failed"):
        make_figure(store, [run], "passes")
    assert "nothing scored" in "".join(draw(make_figure(store, [run])).itertext())
    begun = msgspec.structs.replace(run, metrics={}, status="running", reason="")
    with pytest.raises(UsageError, match="has no metrics: it is running"):
        make_figure(store, [begun])


def test_candidate_names_are_escaped(store: Store) -> None:
    run = msgspec.structs.replace(run_task(), candidate=EVIL)
    for kind in ("scores", "histogram"):
        assert "<script" not in make_figure(store, [run], kind).plot.draw().svg()


# -- the verb ---------------------------------------------------------------------------------


def test_plot_writes_files(proctor: Command, tmp_path: Path) -> None:
    first, second = run_sizes(3, 5)
    done = proctor("plot", first.id, second.id, "--out", "curve.svg", "--width", "500")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("curve.svg: curve (chosen: the runs differ in shapes; others: --kind), 500 × ")
    root = ElementTree.parse(tmp_path / "curve.svg").getroot()
    assert root.get("width") == "500"
    assert "prefers-color-scheme" in (root.findtext(f"{SVG}style") or "")

    done = proctor("plot", "latest", "--kind", "histogram", "--out", "scores.png", "--theme", "dark", "--scale", "1.5")
    assert done.returncode == 0, done.stderr
    with Image.open(tmp_path / "scores.png") as image:
        assert image.width == 1080
        assert image.convert("RGB").getpixel((2, 2)) == (0x15, 0x18, 0x1D)
    assert sorted(path.name for path in tmp_path.glob("*.part")) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "a.gif"], "No format for a.gif: use the extension .svg or .png"),
        (["--out", "no/such/folder.svg"], "Cannot write no/such/folder.svg"),
        (["--out", "a.svg", "--kind", "pie"], "Unknown kind of plot 'pie'"),
        (["--out", "a.svg", "--width", "20"], "240 to 8,000 wide"),
        (["--out", "a.svg", "--height", "20"], "needs a height of"),
        (["--out", "a.png", "--scale", "99"], "--scale: expected a number from 0.1 to 16"),
        ([], "--out"),
    ],
)
def test_plot_refuses_bad_arguments(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    run_task(limit=2)
    assert main(["plot", "latest", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_every_kind_is_documented() -> None:
    assert all(f"`{kind}`" in GUIDE for kind in KINDS)


@pytest.mark.parametrize("title", ["Plots", "Leaderboard", "Export"])
def test_commands_of_the_results_guide_run(title: str, tmp_path: Path) -> None:
    """The lines of these sections that call proctor, one after the other, and their Python."""
    run_task()
    (section,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", GUIDE, re.DOTALL | re.MULTILINE)
    commands = re.findall(r"^proctor (.+)$", section, re.MULTILINE)
    assert commands
    for command in commands:
        assert main(shlex.split(command, comments=True)) == 0, command
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(compile(block, title, "exec"), {})
        assert (tmp_path / "mine.svg").read_text().startswith("<svg")


# -- what is particular to a run --------------------------------------------------------------


def test_list_shows_non_default_options(proctor: Command) -> None:
    run_task(settings={"shapes": 12}, few_shot=2, seed=7)
    run_task(settings={"shapes": 7})
    rows = json.loads(proctor("list", "runs", "--json").stdout)["runs"]
    assert "shapes/count · scripted/random  12 scored" in rows[0]["about"], "as by default"
    assert "shapes/count (shapes=12, seed=7, few_shot=2) · scripted/random  12 scored" in rows[1]["about"]


def test_runs_without_provenance_show_all_settings() -> None:
    run = run_task(settings={"shapes": 7})
    old = msgspec.structs.replace(run, provenance={}, config={"settings": run.config["settings"]})
    assert non_default_options(old) == {"shapes": 7, "description": "coordinates"}
    assert differing_options([old, run]) == ["limit", "max_tokens"], "which of these it had, it did not say either"


# -- notebooks --------------------------------------------------------------------------------


def test_reports_and_curves_have_html_with_plots() -> None:
    curve = package.sweep("shapes/count", RANDOM, "shapes", [3, 5], limit=12)
    shown = [curve._repr_html_(), curve.reports[0]._repr_html_()]
    for text in shown:
        table, _, svg = text.partition("</table>")
        assert table.startswith("<table><caption>shapes/count · scripted/random")
        assert "95 % interval" in table
        ElementTree.fromstring(svg)
    value = curve.points[0].metric
    assert f"<td>{value.value:.3f}</td><td>{value.low:.3f} – {value.high:.3f}</td>" in shown[0]
    assert f"<td>{value.value:.3f}</td><td>{value.low:.3f} – {value.high:.3f}</td>" in shown[1]


def test_html_of_reports_is_escaped(store: Store) -> None:
    run = run_task()
    evil = msgspec.structs.replace(run, candidate=EVIL, task=EVIL, metrics={EVIL: run.metrics["accuracy"]})
    report = Report(evil, store.url)
    assert "<script" not in report._repr_html_()
    object.__setattr__(report, "records", lambda: iter(()))
    assert "<script" not in package.Curve("shapes", [report])._repr_html_()
