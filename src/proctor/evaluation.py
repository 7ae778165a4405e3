"""From options to a finished run: what `proctor run`, `proctor resume` and `proctor.evaluate` share."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from proctor import catalog, provenance
from proctor.config import FIELDS, OPERATIONAL, RunConfig, build_config, changed_keys
from proctor.errors import UsageError
from proctor.models import open_model
from proctor.report import Report
from proctor.run import Observer, run_exam
from proctor.store import open_store
from proctor.store.export import as_jsonl
from proctor.store.sqlite import Store
from proctor.task import Task, create_task
from proctor.types import Record, Run

T = TypeVar("T")


class Silent:
    """An observer for those who want only the result."""

    def started(self, run: Run, done: int) -> None:
        pass

    def recorded(self, record: Record) -> None:
        pass


def evaluate(task: str | type[Task], model: str, *, observer: Observer | None = None, **options: Any) -> Report:
    """Runs an exam and returns its report: the same as `proctor run TASK --model MODEL`."""
    task_class = catalog.task_class(task) if isinstance(task, str) else catalog.checked(task)
    name = task if isinstance(task, str) else catalog.name_of(task)
    config = build_config({"task": name, "model": model, **options})
    return run_to_end(_start(task_class, config, observer or Silent()))


def resume(run_id: str, overrides: Mapping[str, Any], observer: Observer | None = None) -> Report:
    """Goes on with a stored run. Options that could change a result must be what they were."""
    store = open_store(overrides.get("store"), create=False)
    try:
        run = store.run(run_id)
        stored = {key: value for key, value in run.config.items() if key in FIELDS}
        config = build_config(stored | dict(overrides))
        task = create_task(catalog.task_class(config.task), config.task, config.settings)
        config = _with_full_settings(config, task)
        _refuse_changes(run, config, task)
        return run_to_end(_go_on(run, task, config, store, observer or Silent()))
    finally:
        store.close()


def run_to_end(job: Coroutine[Any, Any, T]) -> T:
    """asyncio.run that also works where a loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(job)
    result: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            result.append(asyncio.run(job))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, name="proctor-evaluate")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]


async def _start(task_class: type[Task], config: RunConfig, observer: Observer) -> Report:
    task = create_task(task_class, config.task, config.settings)
    config = _with_full_settings(config, task)
    store = open_store(config.store)
    try:
        count = task.count(config)
        run = Run(
            id=time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(3),
            task=config.task,
            version=task.version,
            candidate=config.model,
            config=_stored_form(config),
            provenance=provenance.collect(task_class),
            created=time.time(),
            total=None if count is None else count * config.epochs,
        )
        return await _go_on(run, task, config, store, observer)
    finally:
        store.close()


async def _go_on(run: Run, task: Task, config: RunConfig, store: Store, observer: Observer) -> Report:
    model = open_model(config)
    try:
        await model.prepare(lambda: task.samples(config))
        identity = model.identity()
        before = run.provenance.get("candidate", identity)
        if before != identity:
            changed = ", ".join(k for k in before.keys() | identity.keys() if before.get(k) != identity.get(k))
            raise UsageError(f"Run {run.id} cannot go on: the model is not the same any more ({changed}).")
        run = msgspec.structs.replace(
            run, status="running", reason="", provenance=run.provenance | {"candidate": identity}
        )
        with store.hold(run):
            store.save(run)
            run = await run_exam(run, task, model, config, store, observer)
    finally:
        await model.close()
    report = Report(run, store.folder)
    if config.out is not None:
        write_files(report, Path(config.out))
    return report


def write_files(report: Report, folder: Path) -> None:
    """Report and records as files, named after the run so that runs never overwrite each other."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{report.run.id}.json").write_bytes(
            msgspec.json.format(msgspec.json.encode(report.to_dict()), indent=2)
        )
        with (folder / f"{report.run.id}.jsonl").open("wb") as file:
            file.writelines(as_jsonl(report.records()))
    except OSError as error:
        raise UsageError(f"Cannot write to {folder}: {error.strerror}. The run itself is in the store.") from None


def _with_full_settings(config: RunConfig, task: Task) -> RunConfig:
    # Stored with the defaults filled in: a later change of a default must not change an old run.
    return msgspec.structs.replace(config, settings=msgspec.to_builtins(task.settings))


def _stored_form(config: RunConfig) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(config)
    return built


def _refuse_changes(run: Run, config: RunConfig, task: Task) -> None:
    now = _stored_form(config)
    differing = changed_keys(run.config, now)
    if differing:
        what = "; ".join(f"{key} was {run.config.get(key)!r}, now {now.get(key)!r}" for key in differing)
        free = ", ".join(sorted(OPERATIONAL))
        raise UsageError(f"Run {run.id} cannot go on with another configuration: {what}. Free to change: {free}.")
    if task.version != run.version:
        raise UsageError(
            f"Run {run.id} was begun with version {run.version} of {run.task}, now it is {task.version}: "
            "start a new run."
        )
