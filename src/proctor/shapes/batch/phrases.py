"""Texts as rows of phrase numbers: each phrase is written once, a text is put together from its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from proctor.shapes.batch.streams import Integers

_PIECE = 12_000  # phrases joined at once: more need fresh memory each time, which costs more than the joining

Column = int | Integers  # a phrase for all rows, one for each row, or several for each row


class Phrasebook:
    """Phrases as they stand in a JSON file."""

    def __init__(self) -> None:
        self._phrases: list[bytes] = []

    def add_json(self, phrases: Iterable[str]) -> int:
        """The number of the first of these phrases; the others follow it."""
        first = len(self._phrases)
        self._phrases += [phrase.encode() for phrase in phrases]
        return first

    def add(self, phrases: Iterable[str]) -> int:
        """For phrases that stand inside of a JSON text."""
        return self.add_json(msgspec.json.encode(phrase)[1:-1].decode() for phrase in phrases)

    def add_pair(self, template: str, names: Sequence[str]) -> tuple[int, int]:
        """A sentence with two names in it, as its part up to the first name and the rest."""
        head, rest = template.split("{}", 1)
        return self.add(head + name for name in names), self.add(rest.format(name) for name in names)

    def write(self, columns: Sequence[Column], rows: int, more: Sequence[bytes]) -> Iterator[bytes]:
        """The rows in pieces. `more` are phrases beyond the book's, for these rows alone."""
        widths = [column.shape[1] if isinstance(column, np.ndarray) and column.ndim == 2 else 1 for column in columns]
        numbers = np.empty((rows, sum(widths)), np.int32)
        at = 0
        for column, width in zip(columns, widths, strict=True):
            numbers[:, at : at + width] = column if isinstance(column, int) or column.ndim == 2 else column[:, None]
            at += width
        phrases = np.empty(len(self._phrases) + len(more), object)
        phrases[:] = [*self._phrases, *more]
        piece = max(1, _PIECE // numbers.shape[1])
        for start in range(0, rows, piece):
            yield b"".join(phrases.take(numbers[start : start + piece].reshape(-1)).tolist())

    @property
    def end(self) -> int:
        """The number of the first phrase beyond the book's."""
        return len(self._phrases)
