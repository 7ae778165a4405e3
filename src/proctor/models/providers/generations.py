"""Generations files, as code harnesses exchange them: a JSON list with a list of texts per problem."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from proctor.core.errors import ModelError, StoreWriteError, UsageError
from proctor.core.types import Output, Sample
from proctor.models.base import Model, Request

logger = logging.getLogger(__name__)
T = TypeVar("T")

LOADED = "loaded"  # the finish reason of an output from a file


class GenerationsNote(Struct, frozen=True):
    """The origin of a generations file, in a file beside it."""

    task: str
    model: str
    limit_start: int
    problems: int
    sha256: str  # of the file, which may have been replaced or edited
    config: dict[str, Any] = {}


class GenerationsModel(Model):
    """Repeats the generations of another harness or an earlier run.

    They are whole programs or texts, and are scored without post-processing.
    """

    def __init__(self, path: Path, task: str, name: str = "") -> None:
        """``name``: of the model that generated them."""
        self.name = name or f"scripted/generations:{path}"
        self._path, self._task, self._first = path, task, 0
        self._texts, self._sha256 = _read_generations(path)

    def identity(self) -> dict[str, str]:
        return {"model": self.name, "sha256": self._sha256}

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        """Determine the first problem of the file, and check that it covers the samples."""
        note = _read_note(self._path, self._sha256)
        if note is not None and _base_name(note.task) != _base_name(self._task):
            raise UsageError(
                f"{self._path} has generations of {note.task}, not of {self._task}; to score them anyway, "
                f"remove {_note_path(self._path)}."
            )
        indices = [sample.index for sample in samples()]
        first = note.limit_start if note else indices[0] if len(self._texts) == len(indices) else 0
        end = first + len(self._texts)
        if indices and not (first <= indices[0] and indices[-1] < end):
            raise UsageError(
                f"{self._path} has generations for {len(self._texts)} problems, from number {first} on; "
                f"the run asks for {len(indices)}, from number {indices[0]} to {indices[-1]}."
            )
        self._first = first

    async def generate(self, request: Request) -> Output:
        texts = self._texts[request.sample.index - self._first]
        if request.number >= len(texts):
            raise ModelError(f"{self._path} has only {len(texts)} generations for sample {request.sample.id}")
        return Output(text=texts[request.number], finish=LOADED)


class PartialGenerations(Model):
    """Repeats the generations of a file, and generates the others with a model.

    A problem with fewer generations than the run needs is generated completely, because it is
    unknown which of them are missing.
    """

    def __init__(self, model: Model, path: Path, first: int, needed: int) -> None:
        self.name, self._model, self._needed = model.name, model, needed
        self._texts, self._sha256 = _read_partial(path, first)
        self._copy_traits()
        complete = sum(len(texts) >= needed for texts in self._texts.values())
        logger.warning("note: %d problems have their generations in %s; the others are generated.", complete, path)

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        await self._model.prepare(samples)
        self._copy_traits()

    def identity(self) -> dict[str, str]:
        return self._model.identity() | {"generations": self._sha256}

    def provenance(self) -> dict[str, Any]:
        return self._model.provenance()

    async def generate(self, request: Request) -> Output:
        texts = self._texts.get(request.sample.index, [])
        if len(texts) < self._needed:
            return await self._model.generate(request)
        return Output(text=texts[request.number], finish=LOADED)

    async def close(self) -> None:
        await self._model.close()

    def _copy_traits(self) -> None:
        """Copy the model's attributes, some of which are final only once it is prepared."""
        for trait in (
            "no_images_reason",
            "batches_requests",
            "in_process",
            "slots",
            "reasoning_tokens",
            "server",
            "default_api",
        ):
            setattr(self, trait, getattr(self._model, trait))


def _read_partial(path: Path, first: int) -> tuple[dict[int, list[str]], str]:
    """The lists by problem number. A missing file has none: a chain of jobs starts without it."""
    if not path.exists():
        return {}, ""
    lists, sha256 = _read_lists(path, list[list[str | None] | None])
    note = _read_note(path, sha256)
    texts = [[text for text in of_one or () if text is not None] for of_one in lists]
    return dict(enumerate(texts, note.limit_start if note else first)), sha256


def read_generations(path: Path) -> dict[int, list[str]]:
    """The lists of a file by problem number."""
    texts, sha256 = _read_generations(path)
    note = _read_note(path, sha256)
    return dict(enumerate(texts, note.limit_start if note else 0))


def count_generations(path: Path) -> int:
    """The number of generations per problem, which is the same for all that have any."""
    numbers = [len(texts) for texts in _read_generations(path)[0] if texts]
    if len(set(numbers)) > 1:
        raise UsageError(
            f"{path}: some problems have {min(numbers)} generations, others {max(numbers)}; pass --n-samples "
            f"{min(numbers)} to use that many of each."
        )
    return numbers[0] if numbers else 1


def _read_generations(path: Path) -> tuple[list[list[str]], str]:
    """The lists, and the digest of the file."""
    return _read_lists(path, list[list[str]])


def _read_lists(path: Path, kind: type[T]) -> tuple[T, str]:
    try:
        content = path.read_bytes()
        return msgspec.json.decode(content, type=kind), hashlib.sha256(content).hexdigest()
    except OSError as error:
        raise UsageError(f"Cannot read the generations {path}: {error.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a list of lists of texts: {error}.") from None


def write_generations(path: Path, generations: list[list[str]], **note: Any) -> None:
    """Write the generations, and a note with these fields beside them."""
    sha256 = hashlib.sha256(write_json(path, generations)).hexdigest()
    write_json(_note_path(path), GenerationsNote(problems=len(generations), sha256=sha256, **note))


def write_json(path: Path, content: Any, *, readable: bool = False) -> bytes:
    """Write JSON; return its bytes."""
    content_bytes = msgspec.json.encode(content)
    if readable:
        content_bytes = msgspec.json.format(content_bytes, indent=2)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content_bytes)
    except OSError as error:
        raise StoreWriteError(f"Cannot write {path}: {error.strerror}. The run itself is in the store.") from None
    return content_bytes


def _note_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.note.json")


def _read_note(path: Path, sha256: str) -> GenerationsNote | None:
    """The note of this content; None if there is none, or if the file has changed since."""
    try:
        note = msgspec.json.decode(_note_path(path).read_bytes(), type=GenerationsNote)
    except (OSError, msgspec.DecodeError):
        return None
    return note if note.sha256 == sha256 else None


def _base_name(task: str) -> str:
    """The name without family or folder, which may have been renamed."""
    return task.rpartition("/")[2]
