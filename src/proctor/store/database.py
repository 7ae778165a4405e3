"""What a store asks of the database under it; the SQL itself is the store's, and the same for all."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar, Literal

from proctor.store.artifacts import Artifacts

Mode = Literal["create", "write", "read"]
Row = tuple[Any, ...]


class Database(ABC):
    """One connection, which the threads of a process may share: a transaction is one thread's until it ends."""

    failure: ClassVar[type[Exception]]  # what the driver raises
    # Words that databases spell differently, put into the SQL by name.
    dialect: ClassVar[dict[str, str]]

    url: str  # opens the same store again, from any working directory; may hold a password
    location: str  # the store in words, for people
    mode: Mode
    artifacts: Artifacts

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._lock:
            return self._execute(sql.format_map(self.dialect), values)

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._lock:
            self._execute_many(sql.format_map(self.dialect), rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._lock, self._transaction():
            yield

    @abstractmethod
    def _execute(self, sql: str, values: Sequence[Any]) -> list[Row]: ...

    @abstractmethod
    def _execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None: ...

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Any]:
        """All or nothing of what is executed inside."""

    @abstractmethod
    def version(self) -> int:
        """Of the schema; 0 in a database without tables."""

    @abstractmethod
    def migration(self) -> AbstractContextManager[None]:
        """A transaction that only one process at a time can be in, also where the store could only be read so far."""

    @abstractmethod
    def set_version(self, version: int) -> None: ...

    @abstractmethod
    def change_mark(self) -> str:
        """Another text whenever anything may have changed."""

    @abstractmethod
    def check(self) -> None:
        """Raises when what is written no longer reaches the place that was opened."""

    def reconnect(self) -> bool:
        """Whether the connection had been lost, and is there again with all that was held through it."""
        return False

    def describe_error(self, error: Exception) -> str:
        """A failure of the driver in words that may be shown."""
        return str(error)

    @abstractmethod
    def lock_run(self, run_id: str) -> AbstractContextManager[bool]:
        """Whether the run is this process's alone, as long as the context or the process lasts."""

    @abstractmethod
    def is_locked(self, run_id: str) -> bool: ...

    @abstractmethod
    def close(self) -> None: ...
