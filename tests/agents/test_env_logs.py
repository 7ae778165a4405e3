"""The logs of episodes: cut off, forged, and read again by a run that goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from helpers.env_agents import FORGED
from helpers.env_tasks import PLAYERS, endings, play
from proctor.agents.envs.event_log import EpisodeEnding, Header, StepLog, StepState, close_log, ending_of, read_events
from proctor.agents.outcome import EpisodeOutcome
from proctor.core.errors import UsageError
from proctor.core.evaluation import resume


def test_a_log_that_was_cut_off_keeps_its_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "e" / "events.jsonl"
    log = StepLog(path, Header("t", {}, "a", 1, 0.0, {}))
    for number in range(1_000):
        log.add(number, StepState(number, 1.0, False, False, "f" * 32))
    assert read_events(path).length == 999, "before it is closed"
    trace = log.trace
    assert read_events(path).trace == trace
    log.close()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 10)
    close_log(path, EpisodeEnding(EpisodeOutcome.AGENT_CRASH))
    cut = read_events(path)
    assert (cut.length, cut.ending) == (998, EpisodeEnding(EpisodeOutcome.AGENT_CRASH))


@pytest.mark.parametrize("content", [b"", b"\n", b"{}", b"no json", b'{"format": 9}', b"\xff\xfe"])
def test_what_is_no_log_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(content)
    with pytest.raises(UsageError):
        read_events(path)
    assert ending_of(path, Header("t", {}, "a", 1, 0.0, {})) is None


# A run that was killed


def logs() -> dict[Path, int]:
    """Those that have an ending, and when it was written."""
    paths = Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/*/events.jsonl")
    return {path: path.stat().st_mtime_ns for path in paths if read_events(path).ending is not None}


def killed(*options: str) -> None:
    """A run of twenty episodes, in the middle of the eighth."""
    os.mkfifo("gate")
    command = [sys.executable, "-m", "proctor", "run", "agents/catch", "--agent", f"{PLAYERS}:Gated", "--limit", "20"]
    process = subprocess.Popen([*command, *options, "--quiet"], env=os.environ | {"GATE": "gate"})
    with process, open("gate") as gate:
        process.kill()
        gate.read()  # until the agents are gone, too


@pytest.mark.parametrize("clock", ["step", pytest.param("paused", marks=pytest.mark.slow)])
def test_killed_and_resumed_no_finished_episode_is_repeated(clock: str) -> None:
    """Every log holds one play, and those that had an ending when the kill came are the same files as before.

    An episode that was cut short is played with another seed: no agent has a second try at the first.
    """
    killed("--parallel", "2", "--set", f"clock={clock}", "--set", "fps=500")
    before = logs()
    assert 6 <= len(before) <= 7, "the other agent may have been in the middle of the seventh"
    report = resume("latest", {})
    after = logs()
    assert {path: after[path] for path in before} == before, "a finished episode was played again"
    assert len(after) == 20
    records = list(report.records())
    assert [record.sample.index for record in records] == list(range(20))
    cut_short = [record for record in records if len(record.outputs) > 1]
    assert 1 <= len(cut_short) <= 2
    for record in cut_short:
        first, second = (msgspec.json.decode(output.text, type=EpisodeEnding) for output in record.outputs)
        assert (first.outcome, first.interrupted, first.seed) == ("stopped", True, record.sample.seed)
        assert (second.outcome, second.seed == first.seed) == ("completed", False)
    assert report.metrics["lost_stopped"].value == len(cut_short)
    assert report.metrics["success_if_faults_fail"].n == 20
    whole = zip(endings(report), endings(play("Gated", limit=20, parallel=2)), records, strict=True)
    assert all(e.reward == w.reward for e, w, record in whole if record not in cut_short)


@pytest.mark.slow
def test_a_resumed_run_believes_no_log_that_does_not_fit() -> None:
    killed()
    first, *_ = sorted(logs())
    run, honest = first.parent.parent, first.read_text()
    (run / "000015-0-1").mkdir()
    (run / "000015-0-1" / first.name).write_text(FORGED)
    (run / "000016-0-1").mkdir()
    (run / "000016-0-1" / first.name).write_text(honest)  # of another episode
    under_way = run / "000007-0-1" / first.name
    under_way.write_bytes(under_way.read_bytes().splitlines()[0] + b"\n" + FORGED.encode())
    report = resume("latest", {})
    whole = play("Gated", limit=20)
    assert [e.trace for e in endings(report)] == [e.trace for e in endings(whole)]
