"""Timelines of episodes: their event logs, shortened for the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

EVENT_LOG = "events.jsonl"
MAX_EVENTS = 5_000
MAX_TEXT = 200
HIDDEN_KEYS = ("ns", "event", "kind", "what", "task_id")
UNSHORTENED_EVENTS = ("reply",)  # replies of models
NS_PER_SECOND = 1e9


class TimelineEvent(Struct, omit_defaults=True):
    at: float  # seconds since the first event, or the step
    what: str
    more: str = ""
    lane: str = ""  # groups events of one key or action
    held: float = 0.0  # seconds that a key was held


class Timeline(Struct):
    events: list[TimelineEvent]
    length: float
    by_step: bool = False  # the environment waits for its agent: `at` counts steps, not seconds
    left_out: int = 0


def read_timeline(log: bytes) -> Timeline:
    """Reads a log in either format: timed events, or one line for each step of an environment."""
    lines = list(_lines(log))
    timed = [line["ns"] for line in lines if isinstance(line.get("ns"), int)]
    if not timed:
        return Timeline([], 0.0)
    # The referee's result ends the episode; agents may log a little longer.
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
            continue  # the last line may be incomplete
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
    text = _text(action)
    facts = [f"reward {reward:g}"] if (reward := line.get("reward")) else []
    facts += [name for name in ("terminated", "truncated") if line.get(name)]
    return TimelineEvent(
        at, f"step {number}: action {text}", ", ".join(facts), f"action {text}" if len(text) < 12 else ""
    )


def _end(ending: Any, at: float) -> TimelineEvent:
    return TimelineEvent(at, "end", _facts(ending, ("outcome", "reward", "why")) if isinstance(ending, dict) else "")


def _facts(line: dict[str, Any], keys: tuple[str, ...] | None = None, most: float = MAX_TEXT) -> str:
    """The fields of an event as short text."""
    facts = {
        key: line[key]
        for key in keys or [key for key in line if key not in HIDDEN_KEYS]
        if line.get(key) not in (None, "", {})
    }
    text = ", ".join(f"{key} {_text(value)}" for key, value in facts.items())
    return text if len(text) <= most else text[: MAX_TEXT - 1] + "…"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
