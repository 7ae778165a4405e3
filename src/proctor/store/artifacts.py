"""The files of a run: films and logs, written to a folder while it goes on."""

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

PART = 1 << 20  # bytes of a file that are one row


class Artifacts(ABC):
    """The files of a sample are in folders that begin with its index and epoch; some belong to the whole run."""

    @abstractmethod
    def folder(self, run_id: str) -> Path:
        """Where the files of the run are written; made by whoever writes the first."""

    @abstractmethod
    def fetch(self, run_id: str, starts: tuple[str, ...]) -> None:
        """Has the stored files that begin so in the folder, where an unfinished sample may need them."""

    @abstractmethod
    def keep(self, run_id: str, starts: tuple[str, ...] = ("",)) -> None:
        """Stores the files of the folder that begin so."""

    @abstractmethod
    def leave(self, run_id: str) -> None:
        """Stores what is not stored yet; the folder is needed no more."""

    @abstractmethod
    def names(self, run_id: str, starts: tuple[str, ...] = ("",)) -> list[str]:
        """All files that begin so, with their folders."""

    @abstractmethod
    def open(self, run_id: str, name: str) -> tuple[int, BinaryIO]:
        """The size of a file, and the file."""


class ArtifactFolder(Artifacts):
    """Files that stay where they were written, inside the store."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, run_id: str) -> Path:
        return self._root / run_id

    def fetch(self, run_id: str, starts: tuple[str, ...]) -> None:
        """They are there."""

    def keep(self, run_id: str, starts: tuple[str, ...] = ("",)) -> None:
        """They are stored by being written."""

    def leave(self, run_id: str) -> None:
        """They stay."""

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
        self._kept: dict[tuple[str, str], tuple[int, int]] = {}  # what each was like when it was stored

    def folder(self, run_id: str) -> Path:
        return user_state_path("proctor") / "artifacts" / run_id

    def fetch(self, run_id: str, starts: tuple[str, ...]) -> None:
        folder = self.folder(run_id)
        for name in self.names(run_id, starts):
            path = folder / name
            if path.exists():
                continue  # of a sitting on this machine that was killed: not older than what is stored
            path.parent.mkdir(parents=True, exist_ok=True)
            with self.open(run_id, name)[1] as stored, path.open("wb") as file:
                shutil.copyfileobj(stored, file, PART)
            self._kept[run_id, name] = _state(path)

    def keep(self, run_id: str, starts: tuple[str, ...] = ("",)) -> None:
        folder = self.folder(run_id).resolve()
        for name in _files(folder, starts):
            with suppress(FileNotFoundError):  # one that was only needed for a moment
                state = _state(folder / name)
                if self._kept.get((run_id, name)) != state:
                    self._copy(run_id, name.encode(errors="replace").decode(), folder / name)
                    self._kept[run_id, name] = state

    def leave(self, run_id: str) -> None:
        self.keep(run_id)
        shutil.rmtree(self.folder(run_id), ignore_errors=True)

    def _copy(self, run_id: str, name: str, path: Path) -> None:
        with path.open("rb") as file, self._database.transaction():
            self._database.execute("DELETE FROM artifacts WHERE run = ? AND name = ?", (run_id, name))
            for number, part in enumerate(iter(lambda: file.read(PART), b"")):
                self._insert(run_id, name, number, part)
            if file.tell() == 0:
                self._insert(run_id, name, 0, b"")  # an empty file is one too

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
    """A file of the table that is read part by part."""

    def __init__(self, database: Database, run_id: str, name: str, size: int) -> None:
        self._database, self._run_id, self._name, self._size = database, run_id, name, size
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = max(0, start + offset)
        return self._place

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # any buffer that can be written
        if self._place >= self._size:
            return 0
        number, skipped = divmod(self._place, PART)
        try:
            rows = self._database.execute(
                "SELECT substr(body, ?, ?) FROM artifacts WHERE run = ? AND name = ? AND part = ?",
                (skipped + 1, len(buffer), self._run_id, self._name, number),
            )
        except self._database.failure as error:
            raise OSError(self._database.describe_error(error)) from None
        if not rows:
            raise OSError(f"{self._name} has been stored anew while it was read")
        read = bytes(rows[0][0])
        buffer[: len(read)] = read
        self._place += len(read)
        return len(read)


def _missing(run_id: str, name: str) -> UsageError:
    return UsageError(f"Run {run_id} has no file {name!r}.")


def _files(folder: Path, starts: tuple[str, ...]) -> Iterator[str]:
    """The files of a folder whose names within it begin so."""
    for place in folder.iterdir() if folder.is_dir() else ():
        if not place.name.startswith(starts):
            continue
        for path in place.rglob("*") if place.is_dir() else (place,):
            if _is_own_file(path, folder):
                yield str(path.relative_to(folder))


def _is_own_file(path: Path, folder: Path) -> bool:
    """No link, and nothing outside: agents write here, too, and must not have other files shown."""
    return path.is_file() and path.is_relative_to(folder) and path.resolve() == path


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
