"""The payload of a scoring worker: the task's class, attributes and readable paths."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.code import foreign
from proctor.code.rows import Table
from proctor.code.scoring.messages import Contents
from proctor.code.scoring.pool import WorkerPayload
from proctor.core.config import RunConfig, user_path

if TYPE_CHECKING:
    from proctor.code.task import Task

# Bound to this process, or made anew in the worker.
_NOT_SENT = ("sandbox", "artifacts", "settings", "get_dataset", "_config", "_scoring", "_environment")
_LARGE_DATASET = 256 << 20  # bytes from which a data set stays in its files


def contents_of(task: Task, config: RunConfig) -> WorkerPayload:
    task.rows()  # the worker has no network to load them
    state = {name: value for name, value in vars(task).items() if name not in _NOT_SENT}
    data = task._given.file and str(user_path(task._given.file).resolve())
    files = _Files()
    try:
        body, complete = pickled(state, files), True
    except Exception:
        body, complete = pickled({n: v for n, v in state.items() if _can_be_pickled(v)}, files), False
    contents = Contents(
        origin=foreign.origin_of(task),
        settings=msgspec.structs.asdict(task.settings),
        data=data,
        config=msgspec.structs.replace(config, store=None, out=None),  # a store's URL may contain a password
        state=body,
        complete=complete,
    )
    visible = foreign.code_paths(task) | foreign.search_paths() | files.names | ({data} if data else set())
    return WorkerPayload(task.name, pickle.dumps(contents), sorted(path for path in visible if Path(path).exists()))


class _Files:
    """The files that pickled rows refer to."""

    def __init__(self) -> None:
        self.names: set[str] = set()


class _Pickler(pickle.Pickler):
    """Pickles data sets of `datasets` as plain rows; large ones stay in their files."""

    def __init__(self, file: io.BytesIO, files: _Files) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._files = files

    def reducer_override(self, value: Any) -> Any:
        if type(value).__module__.partition(".")[0] != "datasets":
            return NotImplemented
        if isinstance(value, dict):
            return dict, (dict(value),)
        if not hasattr(value, "to_list"):
            return NotImplemented
        if getattr(getattr(value, "data", None), "nbytes", 0) > _LARGE_DATASET:
            self._files.names |= {entry["filename"] for entry in value.cache_files}
            return NotImplemented
        return Table, (value.to_list(),)


def pickled(value: Any, files: _Files | None = None) -> bytes:
    content = io.BytesIO()
    _Pickler(content, files or _Files()).dump(value)
    return content.getvalue()


def _can_be_pickled(value: Any) -> bool:
    try:
        pickled(value)
    except Exception:
        return False
    return True
