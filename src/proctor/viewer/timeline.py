"""What happened in an episode and when: its log, made short enough for a page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

EVENT_LOG = "events.jsonl"  # what the log of an episode is called
MAX_EVENTS = 5_000  # events that a page can show; longer logs are there as files
MAX_TEXT = 200
HIDDEN_KEYS = ("ns", "event", "kind", "what", "task_id")
UNSHORTENED_EVENTS = ("reply",)  # events whose text is not shortened: what a model that plays has said
NS_PER_SECOND = 1e9


class TimelineEvent(Struct, omit_defaults=True):
    at: float  # seconds since the first event, or the number of the step
    what: str
    more: str = ""
    lane: str = ""  # what belongs together: a key, an action
    held: float = 0.0  # seconds, of a key


class Timeline(Struct):
    events: list[TimelineEvent]
    length: float  # up to the last event
    by_step: bool = False  # the world waited for its agent: what counts is the step, not the time
    left_out: int = 0


def read_timeline(log: bytes) -> Timeline:
    """Of a log in either of the two forms: events as they come, or one line for each step of a world."""
    lines = list(_lines(log))
    timed = [line["ns"] for line in lines if isinstance(line.get("ns"), int)]
    if not timed:
        return Timeline([], 0.0)
    # The referee has the last word; agents may write a little longer.
    last = next((line["ns"] for line in reversed(lines) if line.get("event") == "result" and "ns" in line), timed[-1])
    shown = [line for line in lines if line.get("event") != "frame"]
    left_out = len(lines) - len(shown)
    if isinstance(header := lines[0].get("settings"), dict) and header.get("clock") == "step":
        steps = [_step(line, number, number) for number, line in enumerate(shown[1:]) if "action" in line]
        length: float = len(steps) - 1
        events = steps + [_end(line["ending"], length) for line in shown if "ending" in line]
        return Timeline(events[:MAX_EVENTS], length, True, left_out + len(events[MAX_EVENTS:]))
    length = (last - timed[0]) / NS_PER_SECOND
    events = list(_events(shown, timed[0], length))
    return Timeline(events[:MAX_EVENTS], length, False, left_out + len(events[MAX_EVENTS:]))


def _lines(log: bytes) -> Iterator[dict[str, Any]]:
    for line in log.rstrip(b"\0").splitlines():
        try:
            read = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # cut off in the middle
        if isinstance(read, dict):
            yield read


def _events(lines: Iterable[dict[str, Any]], start: int, length: float) -> Iterator[TimelineEvent]:
    held: dict[str, TimelineEvent] = {}
    step = -1
    for line in lines:
        if not isinstance(line.get("ns"), int):
            if "ending" in line:
                yield _end(line["ending"], length)
            continue
        at = (line["ns"] - start) / NS_PER_SECOND
        if "event" not in line:
            step += 1
            yield _step(line, step, at)
        elif line["event"] == "input":
            key = str(line.get("what") or line.get("kind"))
            match line.get("kind"):
                case "press":
                    held[key] = TimelineEvent(at, key, lane=key)
                    yield held[key]
                case "release" if key in held:
                    pressed = held.pop(key)
                    pressed.held = at - pressed.at
                    pressed.more = f"held for {pressed.held:.2f} s"
                case kind:
                    yield TimelineEvent(at, f"{kind} {line.get('what') or ''}".rstrip(), _facts(line), str(kind))
        else:
            what = str(line["event"])
            most = math.inf if what in UNSHORTENED_EVENTS else MAX_TEXT
            yield TimelineEvent(at, what.replace("_", " "), _facts(line, most=most))


def _step(line: dict[str, Any], number: int, at: float) -> TimelineEvent:
    action = line.get("action")
    if action is None:
        return TimelineEvent(at, "reset")
    told = _text(action)
    facts = [f"reward {reward:g}"] if (reward := line.get("reward")) else []
    facts += [name for name in ("terminated", "truncated") if line.get(name)]
    return TimelineEvent(
        at, f"step {number}: action {told}", ", ".join(facts), f"action {told}" if len(told) < 12 else ""
    )


def _end(ending: Any, at: float) -> TimelineEvent:
    return TimelineEvent(at, "end", _facts(ending, ("outcome", "reward", "why")) if isinstance(ending, dict) else "")


def _facts(line: dict[str, Any], keys: tuple[str, ...] | None = None, most: float = MAX_TEXT) -> str:
    """What there is to say about an event, in short."""
    told = {
        key: line[key]
        for key in keys or [key for key in line if key not in HIDDEN_KEYS]
        if line.get(key) not in (None, "", {})
    }
    text = ", ".join(f"{key} {_text(value)}" for key, value in told.items())
    return text if len(text) <= most else text[: MAX_TEXT - 1] + "…"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
