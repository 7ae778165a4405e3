"""The interface of the databases under a store; the store's SQL is the same for all of them."""

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
    """One connection that threads may share; a transaction excludes other threads."""

    failure: ClassVar[type[Exception]]  # the driver's exception
    # SQL words that differ between databases, inserted into statements by name.
    dialect: ClassVar[dict[str, str]]

    url: str  # opens this store from any working directory; may contain a password
    location: str  # for messages; never contains a password
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
        """A context in which statements take effect together or not at all."""

    @abstractmethod
    def version(self) -> int:
        """The version of the schema; 0 in an empty database."""

    @abstractmethod
    def migration(self) -> AbstractContextManager[None]:
        """A transaction of one process at a time, which can write even if the store is open for reading."""

    @abstractmethod
    def set_version(self, version: int) -> None: ...

    @abstractmethod
    def change_mark(self) -> str:
        """A text that differs after every change."""

    @abstractmethod
    def check(self) -> None:
        """Raise if writes no longer reach the store, for example because its file was replaced."""

    def reconnect(self) -> bool:
        """Restore a lost connection and its run locks; false if the connection was not lost."""
        return False

    def describe_error(self, error: Exception) -> str:
        """A driver error as a message without secrets."""
        return str(error)

    @abstractmethod
    def lock_run(self, run_id: str) -> AbstractContextManager[bool]:
        """Lock the run for this process until the context or the process ends; yields success."""

    @abstractmethod
    def is_locked(self, run_id: str) -> bool: ...

    @abstractmethod
    def close(self) -> None: ...
