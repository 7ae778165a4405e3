"""Export of the page with its data as a folder, for any web server or a file:// address."""

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
from proctor.viewer.assets import exported_page, page_files
from proctor.viewer.queries import StoreQueries
from proctor.viewer.timeline import EVENT_LOG

T = TypeVar("T")

LINES_PER_FILE = 1_000
RECORDS_PER_FILE = 100
MAX_PAIRS = 200  # comparisons in an export
MARKER_FILE = "proctor-export"  # marks the folder as an export, which a later one may overwrite


def export_page(store: str | None, folder: str, names: Sequence[str] = ()) -> Path:
    """Writes the page with these runs, by default all, and returns its index.html."""
    root = user_path(folder)
    opened = open_store(store, mode="read")
    try:
        runs = [opened.run(name) for name in names] if names else opened.runs()
        _prepare_folder(root)
        PageExport(opened, runs, root).write()
    except OSError as error:
        raise UsageError(f"Cannot write to {folder}: {error.strerror or error}.") from None
    finally:
        opened.close()
    return root / "index.html"


def _prepare_folder(root: Path) -> None:
    """Creates or empties the folder; refuses one with other files."""
    if root.exists() and any(root.iterdir()) and not (root / MARKER_FILE).is_file():
        raise UsageError(f"{root} is not empty and not an export: choose a new folder.")
    root.mkdir(parents=True, exist_ok=True)
    (root / MARKER_FILE).write_text("Written by proctor view --export, which may overwrite this folder.\n")
    for part in ("data", "files"):
        shutil.rmtree(root / part, ignore_errors=True)


class PageExport:
    def __init__(self, store: Store, runs: Sequence[Run], root: Path) -> None:
        self._store, self._root = store, root
        self._runs = list({run.id: run for run in runs}.values())
        self._queries = StoreQueries(store)

    def write(self) -> None:
        for name, (_, content) in page_files().items():
            (self._root / name).write_bytes(content)
        (self._root / "index.html").write_text(exported_page(), encoding="utf-8")
        for run in self._runs:
            self._write_run(run)
        self._write_shared()

    def _write_run(self, run: Run) -> None:
        everything, reviews = RecordFilter(), StoredReviews(self._store.reviews(run))
        total = self._store.count(run, everything)
        for number, start in enumerate(range(0, total, LINES_PER_FILE)):
            self._write(f"{run.id}/lines-{number}", self._store.summaries(run, everything, start, LINES_PER_FILE))
        for number, records in enumerate(_chunks(self._store.records(run), RECORDS_PER_FILE)):
            samples = [self._queries.record(run, record, reviews) for record in records]
            self._write(f"{run.id}/records-{number}", samples)
            for name in (name for sample in samples for name in sample["artifacts"]):
                self._copy(run, name)
        sizes = {"lines": {"total": total, "size": LINES_PER_FILE}, "records": {"size": RECORDS_PER_FILE}}
        self._write(f"{run.id}/run", self._queries.run(run.id) | sizes)
        if reviews.scores:
            self._write(f"{run.id}/reviewed", self._queries.reviewed(run.id))
        self._write(f"{run.id}/plots", self._queries.plots([run.id]))

    def _copy(self, run: Run, name: str) -> None:
        if Path(name).name == EVENT_LOG:
            self._write(f"{run.id}/events/{name}", self._queries.events(run.id, name))
        target = self._root / "files" / run.id / name
        target.parent.mkdir(parents=True, exist_ok=True)
        _, source = self._store.open_artifact(run, name)
        with source, target.open("wb") as file:
            shutil.copyfileobj(source, file)

    def _write_shared(self) -> None:
        """Writes what concerns several runs: the list, leaderboards, comparisons of two."""
        ids = {run.id for run in self._runs}
        tasks = sorted({run.task for run in self._runs})
        listed = [line for line in self._queries.runs()["runs"] if line["id"] in ids]
        self._write("runs", {"runs": listed, "leaderboards": tasks})
        for number, task in enumerate(tasks):
            self._write(f"leaderboards/{number}", self._queries.leaderboard(task, self._runs))
        alike = ((a.id, b.id) for a, b in combinations(self._runs, 2) if (a.task, a.version) == (b.task, b.version))
        for pair in islice(alike, MAX_PAIRS):
            names = sorted(pair)
            self._write(f"comparisons/{'+'.join(names)}", self._queries.comparison(names))

    def _write(self, name: str, content: Any) -> None:
        """Writes a script that passes its content to the page: the only kind of file that a file:// page may load."""
        path = self._root / "data" / f"{name}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"proctorData(%b, %b);\n" % (msgspec.json.encode(name), msgspec.json.encode(content)))


def _chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
