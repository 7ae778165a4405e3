"""How steadily a display shows new frames: counted from what the X server tells of each change."""

from __future__ import annotations

import os
import select
import statistics
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct
from Xlib import display, error
from Xlib.ext import damage

from proctor.agents.desktop.authority import authority_of

ONE_FRAME = 3  # milliseconds: what is drawn closer together belongs to one frame
LATE = 1.5  # times the usual interval, from which a frame is late
SLACK = 4.0  # milliseconds that it must be late at least: the server's clock has whole ones
STEADY = 0.25  # by how much of the usual interval a steady one may differ, beyond the slack
STEADY_SHARE = 0.5  # of all intervals; less is a program that draws when something changes, and is never late
FEWEST = 30  # frames of which a usual interval can be told
MOST = 2_000  # changes in a second: a program that draws in so many pieces would cost more than it tells
SECOND = 1_000  # milliseconds
WRAP = 2**32  # the server's milliseconds

Span = tuple[float, float]


class Frames(Struct, frozen=True):
    """What was shown in an episode."""

    shown: int
    late: int | None  # None where frames come as they like


class FrameWatch:
    """Listens, in a thread of its own, from its construction to `close`."""

    def __init__(self, name: str, authority: Path | None = None) -> None:
        self._times: list[int] = []  # of the server, in milliseconds
        self._flooded = False
        with authority_of(authority):
            self._display = display.Display(name)
        self._thread: threading.Thread | None = None
        is_told = self._display.has_extension("DAMAGE")
        if is_told:
            self._display.damage_query_version()
            root = self._display.screen().root
            root.damage_create(damage.DamageReportRawRectangles)
            self._display.sync()
        self._woken, self._wake = os.pipe()
        if is_told:
            self._thread = threading.Thread(target=self._run, daemon=True, name="proctor-frames")
            self._thread.start()

    def _run(self) -> None:
        with suppress(error.ConnectionClosedError, OSError, AssertionError):  # the display is gone
            while not self._flooded:
                while self._display.pending_events():
                    self._add(self._display.next_event())
                if self._woken in select.select([self._display, self._woken], [], [])[0]:
                    return

    def _add(self, event: Any) -> None:
        now = getattr(event, "timestamp", None)
        if now is None:
            return
        times = self._times
        times.append(now)
        self._flooded = len(times) > MOST and (now - times[-MOST]) % WRAP < SECOND

    def close(self) -> list[int] | None:
        """When something changed, in milliseconds of the system's steady clock; None if that cannot be told."""
        with suppress(OSError):
            os.write(self._wake, b"x")
        if self._thread is not None:
            self._thread.join()
        os.close(self._woken)
        os.close(self._wake)
        with suppress(Exception):  # of a connection that was cut, python-xlib raises what it likes
            self._display.close()
        return None if self._thread is None or self._flooded else _unwrapped(self._times)


def _unwrapped(times: Sequence[int]) -> list[int]:
    """The server's clock has 32 bits of the system's: they go round in seven weeks."""
    now = round(time.monotonic() * SECOND) + SECOND  # it may be a little ahead of ours
    return [now - (now - then) % WRAP for then in times]


def watch_frames(name: str, authority: Path | None) -> FrameWatch | None:
    """None where the display is gone already: whoever plays on it will say so."""
    try:
        return FrameWatch(name, authority)
    except (error.DisplayError, error.ConnectionClosedError, OSError):
        return None


def count_frames(changes: Sequence[int], begin: float, end: float, still: Sequence[Span] = ()) -> Frames:
    """Between two moments, in milliseconds; the program stood still in these spans, and was not late for them."""
    shown = [now for now in changes if begin <= now <= end]
    starts = [
        now for before, now in zip([None, *shown], shown, strict=False) if before is None or now - before > ONE_FRAME
    ]
    intervals = [now - before - _within(still, before, now) for before, now in pairwise(starts)]
    if len(starts) < FEWEST:
        return Frames(len(starts), None)
    usual = statistics.median(intervals)
    steady = sum(abs(interval - usual) <= STEADY * usual + SLACK for interval in intervals)
    if steady < STEADY_SHARE * len(intervals):
        return Frames(len(starts), None)
    return Frames(len(starts), sum(interval > max(LATE * usual, usual + SLACK) for interval in intervals))


def _within(spans: Sequence[Span], begin: float, end: float) -> float:
    return sum(max(0.0, min(end, last) - max(begin, first)) for first, last in spans)
