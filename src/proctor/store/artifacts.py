"""The files of a run: films and logs, written to a folder while it goes on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import BinaryIO

from proctor.errors import UsageError


class Artifacts(ABC):
    @abstractmethod
    def folder(self, run_id: str) -> Path:
        """Where the files of the run are written; made by whoever writes the first."""

    @abstractmethod
    def names(self, run_id: str) -> list[str]:
        """All files of the run, with their folders."""

    @abstractmethod
    def open(self, run_id: str, name: str) -> tuple[int, BinaryIO]:
        """The size of a file, and the file."""


class ArtifactFolder(Artifacts):
    """Files that stay where they were written, inside the store."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, run_id: str) -> Path:
        return self._root / run_id

    def names(self, run_id: str) -> list[str]:
        folder = self.folder(run_id).resolve()
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if _is_own_file(path, folder))

    def open(self, run_id: str, name: str) -> tuple[int, BinaryIO]:
        folder = self.folder(run_id).resolve()
        path = folder / name
        if not _is_own_file(path, folder):
            raise missing_artifact(run_id, name)
        file = path.open("rb")
        return path.stat().st_size, file


def missing_artifact(run_id: str, name: str) -> UsageError:
    return UsageError(f"Run {run_id} has no file {name!r}.")


def _is_own_file(path: Path, folder: Path) -> bool:
    """No link, and nothing outside: agents write here, too, and must not have other files shown."""
    return path.is_file() and path.is_relative_to(folder) and path.resolve() == path
