"""Reviews by people: stars, comments and scores, which count only with --reviewed."""

import csv
import getpass
import json
import re
import shlex
from typing import Any

import pytest

from conftest import Command, TaskFile
from helpers.paths import CHECKOUT
from proctor import evaluate
from proctor.analysis.reviews import resolve_author
from proctor.core.types import Run
from proctor.store import open_store
from proctor.store.types import Review


@pytest.fixture
def run(adding: str, each_store: str) -> Run:
    """Ten samples, of which the last four are wrong."""
    rows = [{"id": f"add-{i}", "outputs": [{"text": str(2 * i if i < 6 else -1)}]} for i in range(10)]
    with open("replies.jsonl", "w") as file:
        file.write("\n".join(map(json.dumps, rows)))
    return evaluate(adding, "scripted/replay:replies.jsonl", group_by=["odd"]).run


def test_star_comment_and_score(run: Run, proctor: Command) -> None:
    done = proctor(
        "review", "latest", "add-7", "--star", "--comment", "a typo of ours", "--score", "1", "--author", "ann"
    )
    assert done.returncode == 0, done.stderr
    first, *lines = done.stdout.splitlines()
    assert first == "add-7: wrong 0.000"
    assert [line.split("  ")[-2:] for line in lines] == [
        ["ann", "starred it"],
        ["ann", "commented: a typo of ours"],
        ["ann", "scored it 1.000"],
    ]
    store = open_store(mode="read")
    assert [(r.kind, r.body, r.author) for r in store.reviews(run)] == [
        ("star", True, "ann"),
        ("comment", "a typo of ours", "ann"),
        ("score", 1.0, "ann"),
    ]
    score = store.record(run, 7).score
    assert score is not None
    assert score.value == 0
    done = proctor("review", "latest", "7", "--unstar", PROCTOR_AUTHOR="bob")
    assert "bob  removed the star" in done.stdout
    listed = json.loads(proctor("review", "latest", "--json").stdout)
    assert [review["author"] for review in listed["reviews"]] == ["ann", "ann", "ann", "bob"]
    assert proctor("review", "latest").stdout.startswith("add-7: wrong 0.000\n  ")
    assert proctor("review", "latest", "add-1").stdout == "no reviews\n"


def test_reviewed_scores_count_only_with_reviewed(run: Run, proctor: Command) -> None:
    for sample, score, author in ((7, "1", "ann"), (7, "0.5", "bob"), (8, "1", "ann"), (0, "0", "ann")):
        proctor("review", "latest", str(sample), "--score", score, "--author", author)
    plain = proctor("show", "latest").stdout
    assert "accuracy       0.600" in plain
    assert "REVIEWED" not in plain
    shown = proctor("show", "latest", "--reviewed").stdout
    assert "  REVIEWED       3 of 10 scores are people's (ann 2, bob 1); before, the mean score was 0.600" in shown
    assert "  score          0.650" in shown, "of several people's scores the newest counts"
    assert "accuracy" not in shown
    assert "odd = 0" in shown
    assert "outcomes       correct 5, reviewed 3, wrong 2" in shown
    (report,) = json.loads(proctor("show", "latest", "--reviewed", "--json").stdout)["runs"]
    assert report["metrics"]["score"]["value"] == 0.65
    assert report["reviews"]["by"] == {"ann": 2, "bob": 1}
    assert report["reviews"]["before"]["value"] == 0.6
    assert "reviews" not in json.loads(proctor("show", "latest", "--json").stdout)["runs"][0]


def test_reviewed_without_scores(run: Run, proctor: Command) -> None:
    shown = proctor("show", "latest", "--reviewed").stdout
    assert "REVIEWED       no sample was re-scored" in shown
    assert "score          0.600" in shown


def test_export_of_reviewed_scores(run: Run, proctor: Command) -> None:
    proctor("review", "latest", "add-7", "--score", "0.5", "--author", "ann")
    plain = proctor("export", "latest").stdout
    rows = [json.loads(line) for line in proctor("export", "latest", "--reviewed").stdout.splitlines()]
    assert [row["score"] for row in rows] == [1.0] * 6 + [0.0, 0.5, 0.0, 0.0]
    assert (rows[7]["outcome"], rows[7]["why"]) == ("reviewed", "re-scored by ann: was 0 (wrong)")
    assert [json.loads(line) for line in plain.splitlines()][7]["score"] == 0.0
    table = list(csv.DictReader(proctor("export", "latest", "--reviewed", "--format", "csv").stdout.splitlines()))
    assert table[7]["outcome"] == "reviewed"


def test_failed_sample_can_be_scored(task_file: TaskFile, proctor: Command) -> None:
    path = task_file(
        """
        from adding import *

        class Ill(Adding):
            def score_text(self, sample, text):
                if sample.index == 3:
                    raise RuntimeError("judge is ill")
                return super().score_text(sample, text)
        """
    )
    report = evaluate(f"{path}:Ill", "scripted/oracle")
    assert (report.run.n, report.run.errors) == (9, 1)
    proctor("review", "latest", "add-3", "--score", "1", "--author", "ann")
    reviewed = report.reviewed()
    assert (reviewed.run.n, reviewed.run.errors, reviewed.metrics["score"].n) == (10, 0, 10)
    record = list(reviewed.records())[3]
    assert record.score is not None
    assert record.score.why == "re-scored by ann: was not scored (error)\njudge is ill"
    assert list(report.records())[3].error is not None


def test_epochs_are_reviewed_separately(adding: str, proctor: Command) -> None:
    report = evaluate(adding, "scripted/oracle", limit=2, epochs=2)
    done = proctor("review", "latest", "add-1", "--epoch", "1", "--score", "0", "--author", "ann")
    assert done.stdout.startswith("add-1 (epoch 1): correct 1.000\n")
    assert report.reviewed().metrics["score"].value == 0.75
    done = proctor("review", "latest", "add-1", "--epoch", "2", "--star")
    assert done.returncode == 2
    assert "has no record of sample 1 in epoch 2" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--star"], "Which sample?"),
        (["add-0", "--score", "1.5"], "a score must be between 0 and 1, not 1.5"),
        (["add-0", "--star", "--author", "e\x1bve"], "one line of at most 100 characters"),
        (["add-0", "--score", "nan"], "a score must be between 0 and 1, not nan"),
        (["add-0", "--score", "good"], "invalid float value"),
        (["add-0", "--star", "--unstar"], "not allowed with argument"),
        (["nothing", "--star"], "has no sample 'nothing'"),
        (["99", "--star"], "has no record of sample 99 in epoch 0"),
        (["9" * 30, "--star"], "has no record of sample"),
        (["0", "--epoch", "9" * 30, "--star"], "has no record of sample 0 in epoch 9999"),
    ],
)
def test_bad_reviews_are_refused(adding: str, proctor: Command, words: list[str], message: str) -> None:
    evaluate(adding, "scripted/oracle", limit=1)
    done = proctor("review", "latest", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert open_store().reviews(open_store().run("latest")) == []


def test_author_of_a_review(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCTOR_AUTHOR", raising=False)
    assert resolve_author() == getpass.getuser()
    monkeypatch.setenv("PROCTOR_AUTHOR", "ann")
    assert resolve_author() == "ann"
    assert resolve_author("bob") == "bob"


def test_control_characters_of_reviews_are_escaped(adding: str, proctor: Command) -> None:
    evaluate(adding, "scripted/oracle", limit=1)
    done = proctor("review", "latest", "add-0", "--comment", "\x1b[2Jgone\nadd-1: correct", "--author", "eve")
    assert "\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("kind", "body"),
    [("star", 1.0), ("star", "yes"), ("comment", True), ("score", True), ("score", 1.5), ("score", "1"), ("score", 2)],
)
def test_review_body_must_match_its_kind(kind: Any, body: Any) -> None:
    with pytest.raises(ValueError, match=r"cannot be|lies between"):
        Review("run", 0, 0, "ann", kind, body)


def test_commands_of_the_review_guide_run(proctor: Command) -> None:
    run_guide("Review", proctor)


@pytest.mark.slow
def test_commands_of_the_team_store_guide_run(proctor: Command, postgres: str) -> None:
    run_guide("Team store", proctor)


def run_guide(title: str, proctor: Command) -> None:
    """The lines of this section that call proctor, one after the other."""
    guide = (CHECKOUT / "docs" / "results.md").read_text()
    (section,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", guide, re.DOTALL | re.MULTILINE)
    commands = re.findall(r"^proctor (.+)$", section, re.MULTILINE)
    assert len(commands) >= 3
    for command in commands:
        done = proctor(*shlex.split(command, comments=True))
        assert done.returncode == 0, f"{command}\n{done.stderr}"
