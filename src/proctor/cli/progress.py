"""Progress of a run: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from proctor.core.runner import Observer
from proctor.core.types import Record, Run

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LINE_PERIOD = 10.0  # seconds between plain lines


def open_display(quiet: bool) -> Observer:
    if quiet:
        return Observer()
    return LiveDisplay() if sys.stderr.isatty() else LineDisplay()


class Tracker:
    """The figures that every display shows."""

    def __init__(self) -> None:
        self.begin(None, 0)

    def begin(self, run: Run | None, done: int) -> None:
        self.run = run
        self.before = done
        self.done = done
        self.errors = 0
        self.truncated = 0
        self.scored = 0
        self.value = 0.0
        self.cost: float | None = None
        self.clock = time.monotonic()

    def count(self, record: Record) -> None:
        self.done += 1
        if (cost := record.usage.cost) is not None:
            self.cost = (self.cost or 0.0) + cost
        if record.score is not None:
            self.truncated += record.score.truncated
        if record.error is not None:
            self.errors += 1
        elif record.score is not None and record.score.value is not None:
            self.scored += 1
            self.value += record.score.value

    @property
    def rate(self) -> float:
        """Samples per second of this session."""
        return (self.done - self.before) / max(1e-9, time.monotonic() - self.clock)

    def figures(self) -> str:
        score = f"score {self.value / self.scored:.3f}" if self.scored else "score –"
        truncated = f"  {self.truncated} truncated" if self.truncated else ""
        return f"{self.rate:.1f}/s  {score}  {self.errors} errors{truncated}{self._costs()}"

    def _costs(self) -> str:
        """The cost so far, and the projected total."""
        if self.run is None or self.cost is None:
            return ""
        cost = (self.run.usage.cost or 0.0) + self.cost
        if self.run.total is None:
            return f"  cost {cost:.4f}"
        remaining = (self.run.total - self.done) * self.cost / max(1, self.done - self.before)
        return f"  cost {cost:.4f} of about {cost + remaining:.4f}"

    def eta(self) -> str:
        if self.run is None or self.run.total is None or self.done == self.before:
            return "–"
        return _duration((self.run.total - self.done) / self.rate)


class ProgressDisplay(Observer):
    def estimated(self, estimate: str) -> None:
        print(estimate, file=sys.stderr, flush=True)


class LineDisplay(ProgressDisplay):
    """A line at the start, one every few seconds, one at the end."""

    def __init__(self) -> None:
        self._tracker = Tracker()
        self._next = 0.0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._tracker.run is not None:
            self._print()

    def started(self, run: Run, done: int) -> None:
        self._tracker.begin(run, done)
        resumed = f", {done} done before" if done else ""
        print(f"{run.task} · {run.candidate} · run {run.id}{resumed}", file=sys.stderr, flush=True)
        self._next = time.monotonic() + LINE_PERIOD

    def recorded(self, record: Record) -> None:
        self._tracker.count(record)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + LINE_PERIOD
            self._print()

    def _print(self) -> None:
        tracker = self._tracker
        total = tracker.run.total if tracker.run else None
        print(
            f"  {tracker.done}/{'?' if total is None else total}  {tracker.figures()}  ETA {tracker.eta()}",
            file=sys.stderr,
            flush=True,
        )


class LiveDisplay(ProgressDisplay):
    """A bar with done/total, rate, time left, running score and errors."""

    def __init__(self) -> None:
        self._tracker = Tracker()
        self._bar: Progress | None = None
        self._row: TaskID | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None and self._row is not None:
            self._show()
            self._bar.stop()

    def started(self, run: Run, done: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.table import Column

        self._tracker.begin(run, done)
        self._bar = Progress(
            MofNCompleteColumn(),
            BarColumn(bar_width=24),
            TextColumn("ETA {task.fields[eta]}"),
            TextColumn("{task.fields[figures]}"),
            TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
            console=Console(stderr=True),
            refresh_per_second=4,
        )
        self._row = self._bar.add_task(
            f"{run.task} · {run.candidate}", total=run.total, completed=done, figures="", eta="–"
        )
        self._bar.start()
        self._next = 0.0

    def recorded(self, record: Record) -> None:
        self._tracker.count(record)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.1
            self._show()

    def _show(self) -> None:
        if self._bar is not None and self._row is not None:
            self._bar.update(
                self._row,
                completed=self._tracker.done,
                figures=self._tracker.figures(),
                eta=self._tracker.eta(),
            )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
