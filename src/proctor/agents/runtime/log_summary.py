"""Reads the finished event log of an episode in a window, also that of an agent killed in mid-step."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from proctor.agents.runtime.lags import Lags
from proctor.agents.runtime.recording import RELEASE

MS = 1e6  # nanoseconds
LARGEST = 256 * 1024 * 1024  # bytes that are read


class EpisodeLog:
    """The complete lines of a log."""

    def __init__(self, path: Path) -> None:
        # Several processes write it, and lines may be out of order.
        self.lines = sorted(_read(path), key=lambda line: line["ns"])

    def first(self, event: str) -> dict[str, Any] | None:
        return next((line for line in self.lines if line["event"] == event), None)

    def reactions(self) -> Lags:
        """From a frame to the agent's first input after it. A release does not count: it ends a press."""
        reactions, frame_ns = Lags(), 0
        for line in self.lines:
            if line.get("by"):
                continue
            if line["event"] == "frame":
                frame_ns = line["ns"]
            elif line["event"] == "input" and line.get("kind") != RELEASE and frame_ns:
                reactions.add(line["ns"] - frame_ns)
                frame_ns = 0
        return reactions

    def program_seconds(self, ns: int) -> float:
        """The program's own time at a moment, from the last event about it."""
        at, since, runs = 0.0, ns, False
        for line in self.lines:
            if line["ns"] > ns:
                break
            if line["event"] in ("program", "paused", "resumed"):
                at, since, runs = line["at"], line["ns"], line["event"] != "paused"
        return at + (ns - since) / 1e9 if runs else at

    def played_ms(self) -> tuple[float, float] | None:
        """Start and end of the episode."""
        started, over = self.first("started"), self.first("over")
        return None if started is None or over is None else (started["ns"] / MS, over["ns"] / MS)

    def still_ms(self) -> list[tuple[float, float]]:
        """The spans in which the program was paused."""
        spans, since = [], None
        for line in self.lines:
            if line["event"] == "paused":
                since = line["ns"] / MS
            elif line["event"] == "resumed" and since is not None:
                spans.append((since, line["ns"] / MS))
                since = None
        return spans + ([] if since is None else [(since, float("inf"))])


def _read(path: Path) -> Iterator[dict[str, Any]]:
    decode = msgspec.json.Decoder().decode
    for text in _text_of(path).splitlines():
        try:
            line = decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue  # cut off
        if isinstance(line, dict) and isinstance(line.get("ns"), int) and isinstance(line.get("event"), str):
            yield line


def _text_of(path: Path) -> bytes:
    """Reads regular files only: a trusted agent could have replaced the file."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        return b""
    with open(file, "rb") as opened:
        return opened.read(LARGEST)
