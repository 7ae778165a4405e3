"""A store as a folder of files: the page with all its data, shown by any web server or from a file:// address."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from proctor.core.config import user_path
from proctor.core.errors import UsageError
from proctor.core.types import Run
from proctor.store import open_store
from proctor.store.reviews import StoredReviews
from proctor.store.store import Store
from proctor.store.types import RecordFilter
from proctor.viewer.answers import StoreQueries
from proctor.viewer.assets import exported_page, page_files
from proctor.viewer.timeline import LOG

T = TypeVar("T")

LINES = 1_000  # in a file
RECORDS = 100  # in a file
MOST_PAIRS = 200  # of runs that are compared
MARK = "proctor-export"  # a file that says that the folder is one of ours, which may be written over


def export(store: str | None, folder: str, names: Sequence[str] = ()) -> Path:
    """Writes the page with these runs, or with all; where it can be opened."""
    root = user_path(folder)
    opened = open_store(store, mode="read")
    try:
        runs = [opened.run(name) for name in names] if names else opened.runs()
        _prepare(root)
        Export(opened, runs, root).write()
    except OSError as error:
        raise UsageError(f"Cannot write to {folder}: {error.strerror or error}.") from None
    finally:
        opened.close()
    return root / "index.html"


def _prepare(root: Path) -> None:
    """An empty folder, a new one, or the one of an earlier export, whose files make room."""
    if root.exists() and any(root.iterdir()) and not (root / MARK).is_file():
        raise UsageError(f"{root} is not empty, and no export of ours: name a new folder.")
    root.mkdir(parents=True, exist_ok=True)
    (root / MARK).write_text("Written by proctor view --export, which may also write it anew.\n")
    for part in ("data", "files"):
        shutil.rmtree(root / part, ignore_errors=True)


class Export:
    def __init__(self, store: Store, runs: Sequence[Run], root: Path) -> None:
        self._store, self._root = store, root
        self._runs = list({run.id: run for run in runs}.values())
        self._answers = StoreQueries(store)

    def write(self) -> None:
        for name, (_, content) in page_files().items():
            (self._root / name).write_bytes(content)
        (self._root / "index.html").write_text(exported_page(), encoding="utf-8")
        for run in self._runs:
            self._write_run(run)
        self._write_together()

    def _write_run(self, run: Run) -> None:
        wanted, opinions = RecordFilter(), StoredReviews(self._store.reviews(run))
        total = self._store.count(run, wanted)
        for number, start in enumerate(range(0, total, LINES)):
            self._put(f"{run.id}/lines-{number}", self._store.summaries(run, wanted, start, LINES))
        for number, records in enumerate(_chunks(self._store.records(run), RECORDS)):
            told = [self._answers.record(run, record, opinions) for record in records]
            self._put(f"{run.id}/records-{number}", told)
            for name in (name for one in told for name in one["artifacts"]):
                self._copy(run, name)
        sizes = {"lines": {"total": total, "size": LINES}, "records": {"size": RECORDS}}
        self._put(f"{run.id}/run", self._answers.run(run.id) | sizes)
        if opinions.scores:
            self._put(f"{run.id}/reviewed", self._answers.reviewed(run.id))
        self._put(f"{run.id}/plots", self._answers.plots([run.id]))

    def _copy(self, run: Run, name: str) -> None:
        if Path(name).name == LOG:
            self._put(f"{run.id}/events/{name}", self._answers.events(run.id, name))
        target = self._root / "files" / run.id / name
        target.parent.mkdir(parents=True, exist_ok=True)
        _, source = self._store.open_artifact(run, name)
        with source, target.open("wb") as file:
            shutil.copyfileobj(source, file)

    def _write_together(self) -> None:
        """What is about several runs: the list, leaderboards, comparisons of two."""
        shown = {run.id for run in self._runs}
        tasks = sorted({run.task for run in self._runs})
        listed = [line for line in self._answers.runs()["runs"] if line["id"] in shown]
        self._put("runs", {"runs": listed, "leaderboards": tasks})
        for number, task in enumerate(tasks):
            self._put(f"leaderboards/{number}", self._answers.leaderboard(task, self._runs))
        alike = ((a.id, b.id) for a, b in combinations(self._runs, 2) if (a.task, a.version) == (b.task, b.version))
        for pair in islice(alike, MOST_PAIRS):
            together = sorted(pair)
            self._put(f"comparisons/{'+'.join(together)}", self._answers.comparison(together))

    def _put(self, name: str, content: Any) -> None:
        """A script that hands its content over: a page from a file:// address may load nothing else."""
        path = self._root / "data" / f"{name}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"proctorData(%b, %b);\n" % (msgspec.json.encode(name), msgspec.json.encode(content)))


def _chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
