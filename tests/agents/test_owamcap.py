"""Episodes as OWAMcap: what was pressed, what was seen and when, read back by mcap and by mcap-owa-support."""

# ruff: noqa: E402 - where something is missing, the reason for the skip comes before the imports

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from helpers import needs
from helpers.paths import CHECKOUT, HELPERS

needs.module("Xlib", "desktop")
needs.module("pygame", "desktop")
needs.module("mcap", "owamcap")
needs.program("Xvfb", "xvfb")
needs.program("ffmpeg", "ffmpeg")

from mcap.reader import make_reader

from conftest import Command
from proctor import evaluate
from proctor.agents.desktop import MESSAGES, VK, KeyboardEvent, MediaRef, ScreenCaptured
from proctor.agents.desktop.owamcap import OWAMcapWriter
from proctor.core.errors import UsageError

FILE = HELPERS / "desktop_players.py"
THEIRS = CHECKOUT / ".venv-owa" / "bin" / "python"
FRAME = 10**9 // 30  # nanoseconds
PERIODIC = {"window", "keyboard/state", "mouse/state"}


def play(agent: str, **options: Any) -> tuple[Any, Path]:
    """The record of an episode, and its folder."""
    settings = {"window_name": "Arrow", "timeout": 300}
    (record,) = evaluate(
        f"{FILE}:ArrowGame", agent=f"{FILE}:{agent}", limit=1, settings=settings, owamcap=True, **options
    ).records()
    (folder,) = Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/0*")
    return record, folder


def read(path: Path) -> dict[str, list[tuple[int, Any]]]:
    """Messages by topic, each with its time."""
    found: dict[str, list[tuple[int, Any]]] = {}
    with path.open("rb") as file:
        reader = make_reader(file)
        assert reader.get_header().profile == "owa"
        for schema, channel, message in reader.iter_messages():
            assert schema is not None
            decoded = MESSAGES[schema.name].model_validate_json(message.data)
            found.setdefault(channel.topic, []).append((message.log_time, decoded))
    return found


def colour(screen: ScreenCaptured, path: Path) -> str:
    """Of the game in the middle of the display: blue, and green when it is won."""
    frame = screen.resolve_relative_path(path.as_posix()).to_rgb_array()
    _, green, blue = frame[240, 320].tolist()
    return "green" if green > 100 > blue else "blue" if blue > 100 > green else "other"


def test_an_episode_is_recorded_with_its_input_and_its_frames() -> None:
    before = time.time_ns()
    record, folder = play("Pressing")
    assert (record.outcome, record.score.value, record.score.why) == ("completed", 1.0, "the evaluator saw the end")
    path = folder / "episode.mcap"
    topics = read(path)
    assert PERIODIC | {"keyboard", "screen"} <= set(topics)
    presses = [at for at, event in topics["keyboard"] if (event.vk, event.event_type) == (VK.RIGHT, "press")]
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert len(presses) == sum(event.get("kind") == "press" and event["what"] == "RIGHT" for event in events)
    assert topics["window"][-1][1].title == "Arrow Game"  # before that it may have had none yet
    times = [at for messages in topics.values() for at, _ in messages]
    assert before < min(times) <= max(times) < time.time_ns()
    screens = [screen for _, screen in topics["screen"]]
    assert all(screen.media_ref.uri == "film.mp4" and screen.shape == (640, 480) for screen in screens)
    assert [screen.utc_ns for screen in screens] == [at for at, _ in topics["screen"]]
    assert len({screen.media_ref.pts_ns for screen in screens}) == len(screens)
    # Times of keys and frames agree: the game is not won before its fifth press.
    early = [screen for screen in screens if screen.utc_ns < presses[4] - 2 * FRAME]
    assert colour(early[-1], path) != "green"


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["Raising", "Dying"])
def test_what_was_recorded_till_the_agent_crashed_can_be_read(agent: str) -> None:
    record, folder = play(agent, film=False)
    assert record.outcome == "agent_crash"
    topics = read(folder / "episode.mcap")
    assert set(topics) == PERIODIC | {"keyboard"}
    assert [(event.vk, event.event_type) for _, event in topics["keyboard"]] == [
        (VK.LEFT, "press"),
        (VK.LEFT, "release"),
        (VK.UP, "press"),
    ]


def test_what_has_no_display_is_not_recorded(proctor: Command) -> None:
    agents = str(HELPERS / "faulty_agents.py")
    done = proctor("run", f"{agents}:Watching", "--agent", f"{agents}:Good", "--owamcap")
    assert (done.returncode, "played without a display: --owamcap has nothing to record" in done.stderr) == (2, True)
    done = proctor("run", "agents/catch", "--agent", "random", "--owamcap")
    assert (done.returncode, "stepped, without a display: --owamcap has" in done.stderr) == (2, True)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "mcap.writer", None)
    with pytest.raises(UsageError, match=r"an episode as OWAMcap.*proctor-eval\[owamcap\]"):
        OWAMcapWriter(tmp_path / "episode.mcap")


READING = """
import json, sys
from mcap_owa.highlevel import OWAMcapReader
from owa.core import MESSAGES
from owa.msgs.desktop.screen import ScreenCaptured
topics, colours = {}, []
with OWAMcapReader(sys.argv[1]) as reader:
    for message in reader.iter_messages():
        decoded = message.decoded
        topics.setdefault(message.topic, []).append(decoded.model_dump(mode="json", exclude_none=True))
        if isinstance(decoded, ScreenCaptured):
            frame = decoded.resolve_relative_path(sys.argv[1]).to_rgb_array()
            colours.append(frame[240, 320].tolist())
    schemas = {schema.name: json.loads(schema.data) for schema in reader.reader.get_summary().schemas.values()}
theirs = {name: MESSAGES[name].get_schema() for name in MESSAGES}
print(json.dumps({"topics": topics, "colours": colours, "schemas": schemas, "theirs": theirs}))
"""


@pytest.mark.slow
def test_their_own_reader_reads_it() -> None:
    if not THEIRS.exists():
        pytest.skip("mcap-owa-support is not installed: make .venv/owa")
    _, folder = play("Pressing")
    path = folder / "episode.mcap"
    done = subprocess.run(
        [THEIRS, "-W", "error", "-c", READING, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    ours = {
        topic: [json.loads(message.model_dump_json(exclude_none=True)) for _, message in messages]
        for topic, messages in read(path).items()
    }
    for topic, messages in ours.items():
        assert [_sorted(message) for message in told["topics"][topic]] == [_sorted(message) for message in messages]
    for i in (0, len(told["colours"]) // 2, -1):  # a frame is the same frame here and there; two decoders round
        here = ScreenCaptured.model_validate(ours["screen"][i]).resolve_relative_path(str(path))
        pixel = here.to_rgb_array()[240, 320].tolist()
        assert max(abs(a - b) for a, b in zip(pixel, told["colours"][i], strict=True)) <= 8, i
    for name, schema in told["schemas"].items():
        assert _structure(schema) == _structure(told["theirs"][name]), name
    for name, message in MESSAGES.items():  # also those that no episode has
        assert _structure(message.get_schema()) == _structure(told["theirs"][name]), name


def _sorted(message: dict[str, Any]) -> dict[str, Any]:
    """A set has no order."""
    return {key: sorted(value) if key == "buttons" else value for key, value in message.items()}


def _structure(schema: Any) -> Any:
    """Without what it says about itself in words."""
    if isinstance(schema, dict):
        return {key: _structure(value) for key, value in schema.items() if key not in ("description", "title")}
    return [_structure(value) for value in schema] if isinstance(schema, list) else schema


@pytest.mark.slow
def test_a_file_without_messages_and_references_to_what_is_not_there(tmp_path: Path) -> None:
    OWAMcapWriter(tmp_path / "empty.mcap").close()
    assert read(tmp_path / "empty.mcap") == {}
    writer = OWAMcapWriter(tmp_path / "one.mcap")
    writer.write("keyboard", KeyboardEvent(event_type="press", vk=VK.KEY_A), 7)
    writer.close()
    assert [at for at, _ in read(tmp_path / "one.mcap")["keyboard"]] == [7]
    with pytest.raises(FileNotFoundError):
        MediaRef(uri=str(tmp_path / "none.mp4"), pts_ns=0).to_rgb_array()
