"""Tasks whose tests are too large to be stored with every answer: references name a row, and the tests stay in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from proctor.code.rows import Row
from proctor.code.task import Task


class KeyedTask(Task):
    """A task that gives `process_results`, and finds there what belongs to a reference by `row_of`."""

    KEYS: ClassVar[tuple[str, ...]] = ()  # together they name a row

    def get_reference(self, doc: Any) -> dict[str, Any]:
        return {key: doc[key] for key in self.KEYS}

    def row_of(self, reference: Mapping[str, Any]) -> Row:
        rows = self.rows()
        if getattr(self, "_placed", None) is not rows:  # a task that counts some problems alone has only their rows
            self._placed, self._places = rows, {self._key(rows[index]): index for index in range(len(rows))}
        return rows[self._places[self._key(reference)]]

    def _key(self, doc: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(doc[key] for key in self.KEYS)
