"""The files of a run, such as videos and logs, which are written to a folder while it runs."""

from __future__ import annotations

import io
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from platformdirs import user_state_path

from proctor.core.errors import UsageError

if TYPE_CHECKING:
    from proctor.store.database import Database

PART = 1 << 20  # bytes of a file per row


class Artifacts(ABC):
    """Files of a sample are in folders named after its index and epoch; others belong to the run.

    ``starts``: only files whose names start with one of these prefixes.
    """

    @abstractmethod
    def folder(self, run_id: str) -> Path:
        """The folder of the run's files; the first writer creates it."""

    @abstractmethod
    def fetch(self, run_id: str, starts: tuple[str, ...]) -> None:
        """Copy stored files into the folder, for unfinished samples."""

    @abstractmethod
    def save(self, run_id: str, starts: tuple[str, ...] = ("",)) -> None:
        """Store files of the folder."""

    @abstractmethod
    def finish_run(self, run_id: str) -> None:
        """Store all remaining files; the folder is no longer needed."""

    @abstractmethod
    def names(self, run_id: str, starts: tuple[str, ...] = ("",)) -> list[str]:
        """The names of stored files, relative to the folder."""

    @abstractmethod
    def open(self, run_id: str, name: str) -> tuple[int, BinaryIO]:
        """The size of a file, and the file."""


class ArtifactFolder(Artifacts):
    """Files that are written into the store's own folder, so nothing is copied."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, run_id: str) -> Path:
        return self._root / run_id

    def fetch(self, run_id: str, starts: tuple[str, ...]) -> None:
        pass

    def save(self, run_id: str, starts: tuple[str, ...] = ("",)) -> None:
        pass

    def finish_run(self, run_id: str) -> None:
        pass

    def names(self, run_id: str, starts: tuple[str, ...] = ("",)) -> list[str]:
        return sorted(_files(self.folder(run_id).resolve(), starts))

    def open(self, run_id: str, name: str) -> tuple[int, BinaryIO]:
        folder = self.folder(run_id).resolve()
        if not _is_own_file(folder / name, folder):
            raise _missing(run_id, name)
        file = (folder / name).open("rb")
        return (folder / name).stat().st_size, file


class ArtifactTable(Artifacts):
    """Files that are copied into the database, for every machine to see."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._saved: dict[tuple[str, str], tuple[int, int]] = {}  # what each was like when it was stored

    def folder(self, run_id: str) -> Path:
        return user_state_path("proctor") / "artifacts" / run_id

    def fetch(self, run_id: str, starts: tuple[str, ...]) -> None:
        folder = self.folder(run_id)
        for name in self.names(run_id, starts):
            path = folder / name
            if path.exists():
                continue  # left by a killed process on this machine: not older than the stored file
            path.parent.mkdir(parents=True, exist_ok=True)
            with self.open(run_id, name)[1] as stored, path.open("wb") as file:
                shutil.copyfileobj(stored, file, PART)
            self._saved[run_id, name] = _state(path)

    def save(self, run_id: str, starts: tuple[str, ...] = ("",)) -> None:
        folder = self.folder(run_id).resolve()
        for name in _files(folder, starts):
            with suppress(FileNotFoundError):  # a temporary file
                state = _state(folder / name)
                if self._saved.get((run_id, name)) != state:
                    self._copy(run_id, name.encode(errors="replace").decode(), folder / name)
                    self._saved[run_id, name] = state

    def finish_run(self, run_id: str) -> None:
        self.save(run_id)
        shutil.rmtree(self.folder(run_id), ignore_errors=True)

    def _copy(self, run_id: str, name: str, path: Path) -> None:
        with path.open("rb") as file, self._database.transaction():
            self._database.execute("DELETE FROM artifacts WHERE run = ? AND name = ?", (run_id, name))
            for number, part in enumerate(iter(lambda: file.read(PART), b"")):
                self._insert(run_id, name, number, part)
            if file.tell() == 0:
                self._insert(run_id, name, 0, b"")  # an empty file

    def _insert(self, run_id: str, name: str, number: int, part: bytes) -> None:
        self._database.execute(
            "INSERT INTO artifacts (run, name, part, body) VALUES (?, ?, ?, ?)", (run_id, name, number, part)
        )

    def names(self, run_id: str, starts: tuple[str, ...] = ("",)) -> list[str]:
        rows = self._database.execute("SELECT name FROM artifacts WHERE run = ? AND part = 0", (run_id,))
        return sorted(name for (name,) in rows if name.startswith(starts))

    def open(self, run_id: str, name: str) -> tuple[int, BinaryIO]:
        rows = self._database.execute(
            "SELECT count(*), sum(length(body)) FROM artifacts WHERE run = ? AND name = ?", (run_id, name)
        )
        ((parts, size),) = rows
        if not parts:
            raise _missing(run_id, name)
        file: io.RawIOBase = _StoredFile(self._database, run_id, name, int(size))
        return int(size), io.BufferedReader(file, PART)


class _StoredFile(io.RawIOBase):
    """A stored file, read part by part."""

    def __init__(self, database: Database, run_id: str, name: str, size: int) -> None:
        self._database, self._run_id, self._name, self._size = database, run_id, name, size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # any writable buffer
        if self._position >= self._size:
            return 0
        number, skipped = divmod(self._position, PART)
        try:
            rows = self._database.execute(
                "SELECT substr(body, ?, ?) FROM artifacts WHERE run = ? AND name = ? AND part = ?",
                (skipped + 1, len(buffer), self._run_id, self._name, number),
            )
        except self._database.failure as error:
            raise OSError(self._database.describe_error(error)) from None
        if not rows:
            raise OSError(f"{self._name} was replaced while it was read")
        read = bytes(rows[0][0])
        buffer[: len(read)] = read
        self._position += len(read)
        return len(read)


def _missing(run_id: str, name: str) -> UsageError:
    return UsageError(f"Run {run_id} has no file {name!r}.")


def _files(folder: Path, starts: tuple[str, ...]) -> Iterator[str]:
    """The names of a folder's files that start with one of these prefixes."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if not entry.name.startswith(starts):
            continue
        for path in entry.rglob("*") if entry.is_dir() else (entry,):
            if _is_own_file(path, folder):
                yield str(path.relative_to(folder))


def _is_own_file(path: Path, folder: Path) -> bool:
    """Whether it is a regular file inside the folder: agents write here, and must not expose
    other files through links."""
    return path.is_file() and path.is_relative_to(folder) and path.resolve() == path


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
