"""From options to a finished run: shared by `proctor run`, `proctor resume` and `proctor.evaluate`."""

from __future__ import annotations

import asyncio
import gc
import secrets
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from proctor.analysis.report import Report
from proctor.core import loading, machine, provenance, registry
from proctor.core.budget import Budget
from proctor.core.candidate import Candidate
from proctor.core.config import FIELDS, OPERATIONAL, RunConfig, build_config, changed_options, to_stored, user_path
from proctor.core.errors import ChangedSampleError, StoreWriteError, TaskError, UsageError
from proctor.core.estimate import describe_estimate
from proctor.core.loading import is_task_file
from proctor.core.options import CHANGED_SETTINGS, FILLED_OPTIONS, changed_settings
from proctor.core.registry import import_object
from proctor.core.runner import Observer, RunContext, run_samples
from proctor.core.task import Task, create_task, needs_sandbox, open_task, take_samples
from proctor.core.types import Record, Run, Usage
from proctor.distributed import cluster
from proctor.models import open_model
from proctor.models.base import Model
from proctor.store import open_store
from proctor.store.export import as_jsonl

T = TypeVar("T")

MAX_SAMPLES = 100_000  # of a run with --until-ci on an unlimited task, without --limit
GC_THRESHOLDS = (20_000, 20, 100)  # of the garbage collector during a run
OPEN_AGENT = "proctor.agents.candidate:open_agent"  # as text: the core imports no family


def evaluate(
    task: str | type[Task],
    model: str = "",
    *,
    observer: Observer | None = None,
    budget: Budget | None = None,
    **options: Any,
) -> Report:
    """Runs a task and returns its report, like `proctor run TASK --model MODEL`; `agent=`
    runs an agent.

    Several runs can share a `budget`; it replaces max_cost, max_tokens_total and time_limit.
    """
    if loading.in_scoring_process:
        raise UsageError(
            "The process that scores a task imports the script that defines it: put the calls that "
            'start a run under if __name__ == "__main__":'
        )
    name, task_class = registry.resolve_task(task)
    config = build_config({"task": name, "model": model, **options})
    job = _start(task_class, config, observer or Observer(), budget or create_budget(config))
    return run_async(job)


def create_budget(config: RunConfig) -> Budget:
    return Budget(config.max_cost, config.max_tokens_total, config.time_limit)


def resume(run_id: str, overrides: Mapping[str, Any], observer: Observer | None = None) -> Report:
    """Continues a stored run. Options that could change a result must not differ."""
    return run_async(_resume(run_id, overrides, observer or Observer()))


def run_async(job: Coroutine[Any, Any, T]) -> T:
    """Like asyncio.run, but treats SIGTERM like Ctrl-C and also works inside a running
    loop, as in a notebook.
    """
    if not _is_in_loop():
        return _run(job)
    with ThreadPoolExecutor(1, thread_name_prefix="proctor-evaluate") as thread:
        return thread.submit(asyncio.run, job).result()


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run(job: Coroutine[Any, Any, T]) -> T:
    async def stoppable() -> T:
        task = asyncio.current_task()
        if task is not None and threading.current_thread() is threading.main_thread():
            # By the loop: an exception at an arbitrary instruction could leave a lock held.
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await job

    try:
        return asyncio.run(stoppable())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _start(task_class: type[Task], config: RunConfig, observer: Observer, budget: Budget) -> Report:
    task = create_task(task_class, config.task, config.settings, config.modality, config.data)
    config = _with_all_settings(config, task)
    if config.until_ci is not None and config.limit is None and not task.fixed:
        config = msgspec.structs.replace(config, limit=MAX_SAMPLES)
    count = _count_samples(task, config)
    if config.until_ci is not None:
        _refuse_clusters(task, config)
    _create_folder(config.out)
    store = open_store(config.store)
    try:
        changed = changed_settings(config.settings, task.Settings)
        run = Run(
            id=time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(3),
            task=config.task,
            version=task.version,
            candidate=config.candidate,
            config=to_stored(config),
            provenance=provenance.collect_provenance(task_class) | {CHANGED_SETTINGS: changed},
            created=time.time(),
            total=None if count is None else count * config.epochs,
        )
        with store.lock_run(run.id):
            return await _execute(run, RunContext(task, config, store, observer, budget))
    finally:
        store.close()


def _count_samples(task: Task, config: RunConfig) -> int | None:
    """The number of samples, or None if it is unknown before the run."""
    try:
        count = task.count(config)
    except UsageError:
        raise
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
        raise TaskError(f"{task.name} cannot count its samples: {failure}") from error
    if count is not None and not isinstance(count, int):
        raise TaskError(f"{task.name}: count must return a number or None, not {count!r}.")
    return None if config.until_ci is not None else count


def _refuse_clusters(task: Task, config: RunConfig) -> None:
    """A confidence sequence needs independent samples; those of one cluster are not."""
    samples = take_samples(task, config)
    for sample in samples if task.fixed else islice(samples, 1):
        if sample.cluster:
            raise UsageError(
                f"until_ci: samples of {task.name} are not independent ({sample.id} belongs to the "
                f"cluster {sample.cluster!r}), so the interval would not hold. Give a number of "
                "samples instead: --limit."
            )


async def _resume(run_id: str, overrides: Mapping[str, Any], observer: Observer) -> Report:
    store = open_store(overrides.get("store"), "write")
    try:
        run_id = store.run(run_id).id
        with store.lock_run(run_id):
            run = store.run(run_id)  # again, since only now no other process can change it
            stored = {key: value for key, value in run.config.items() if key in FIELDS}
            settings = stored["settings"] | overrides.get("settings", {})
            config = build_config(stored | dict(overrides) | {"settings": settings})
            task_class = registry.load_task_class(config.task)
            task = create_task(task_class, config.task, config.settings, config.modality, config.data)
            config = _with_all_settings(config, task)
            run, config = _with_recorded_max_tokens(run, config, task)
            _refuse_changes(run, config, task)
            budget = create_budget(config)
            if budget.account():
                paid = _paid_usage(store.records(run))
                budget.add_earlier(paid, run.seconds, run.provenance.get("budget", {}))
            _create_folder(config.out)
            return await _execute(run, RunContext(task, config, store, observer, budget))
    finally:
        store.close()


def _paid_usage(records: Iterable[Record]) -> Usage:
    """The usage of all outputs that did not come from the cache. A killed run has no totals."""
    usages = (output.usage for record in records for output in record.outputs if not output.cached)
    return sum(usages, Usage())


async def _execute(run: Run, context: RunContext) -> Report:
    config = context.config
    if needs_sandbox(context.task, config) and not config.allow_code_execution:
        raise UsageError(
            f"{context.task.name} runs the programs that a model writes: add --allow-code-execution "
            "to run them in the sandbox, or --generation-only to judge them later."
        )
    if config.engine == "ray":
        cpus = max(2, machine.cores()) + (config.workers or 0)
        async with cluster.join_cluster(config.ray_address, cpus) as description:
            run = _with_provenance(run, cluster=description)
            run = await _run_candidate(run, context)
    else:
        run = await _run_candidate(run, context)
    report = Report(run, context.store.url)
    if config.out is not None:
        _write_files(report, user_path(config.out))
    return report


async def _run_candidate(run: Run, context: RunContext) -> Run:
    """Opens the candidate, runs it, and closes it."""
    candidate = _open_candidate(context)
    try:
        await candidate.prepare(lambda: take_samples(context.task, context.config))
        _refuse_changed_candidate(run, candidate.identity())
        filled: dict[str, Any] = {}
        if isinstance(candidate, Model):
            filled = _model_defaults(context.config, context.task, candidate)
        config = build_config(msgspec.structs.asdict(context.config) | filled)
        context = msgspec.structs.replace(context, config=config)
        begun = _mark_running(run, config, candidate, filled)
        context.store.save(begun)
        try:
            return await _run_task(begun, candidate, context)
        except ChangedSampleError:
            context.store.save(run)  # a refused resume changes nothing
            raise
        except Exception as error:
            if context.store.run(begun.id).status == "running":  # it failed before its first sample
                context.store.save(msgspec.structs.replace(begun, status="failed", reason=str(error)))
            raise
    finally:
        await candidate.close()


async def _run_task(run: Run, candidate: Candidate, context: RunContext) -> Run:
    """Opens the task and its sandbox, and runs the samples."""
    task, config, store = context.task, context.config, context.store
    with store.working_folder(run) as task.artifacts:
        async with open_task(task, config):
            if (noted := _with_isolation(run, context)) != run:
                store.save(run := noted)
            scored = len(store.scored(run))
            if estimate := describe_estimate(task, config, run.total, scored):
                context.observer.estimated(estimate)
            with _infrequent_gc():
                run = await run_samples(run, candidate, context)
            if (noted := _with_isolation(run, context)) != run:  # nodes may have joined
                store.save(run := noted)
    return run


def _model_defaults(config: RunConfig, task: Task, model: Model) -> dict[str, Any]:
    """Options that the user left to the model. The run stores them, so that a resume uses the same."""
    filled: dict[str, Any] = {} if config.api else {"api": model.default_api}
    if config.max_tokens is None and config.max_length is None:
        filled["max_tokens"] = max(task.max_tokens, model.reasoning_tokens)
    return filled


def _mark_running(run: Run, config: RunConfig, candidate: Candidate, filled: dict[str, Any]) -> Run:
    if filled:
        names = sorted({*filled, *run.provenance.get(FILLED_OPTIONS, ())})
        run = _with_provenance(run, **{FILLED_OPTIONS: names})
    stored = run.config | {"tags": config.tags} | filled
    run = msgspec.structs.replace(run, config=stored, status="running", reason="")
    return _with_provenance(run, candidate=candidate.identity())


def _with_provenance(run: Run, **notes: Any) -> Run:
    return msgspec.structs.replace(run, provenance=run.provenance | notes)


def _with_isolation(run: Run, context: RunContext) -> Run:
    """Notes how programs and the agent are isolated. A run that was resumed on another
    machine has several levels.
    """
    task = context.task
    levels = task.sandbox.level if needs_sandbox(task, context.config) else ""
    for key, level, separator in (
        ("sandbox", levels, "; "),
        ("agent_held", task.agent_held, "; then "),
    ):
        if level:
            earlier = filter(None, run.provenance.get(key, "").split(separator))
            note = separator.join(dict.fromkeys([*earlier, level]))
            run = _with_provenance(run, **{key: note})
    return run


@contextmanager
def _infrequent_gc() -> Iterator[None]:
    """A run creates hardly any cyclic garbage; default collections take a fifth of its time."""
    before = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _open_candidate(context: RunContext) -> Candidate:
    config = context.config
    if config.model:
        return open_model(config, context.budget, inputs_known=context.task.asks_its_inputs)
    open_agent: Callable[[str], Candidate] = import_object(OPEN_AGENT)
    return open_agent(config.agent)


def _create_folder(name: str | None) -> None:
    """Fails before the run, not after it, if the results cannot be written."""
    if name is None:
        return
    folder = user_path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"out: cannot write to {folder}: {error.strerror}.") from None


def _write_files(report: Report, folder: Path) -> None:
    """Writes report and records to files named after the run."""
    try:
        content = msgspec.json.format(msgspec.json.encode(report.to_dict()), indent=2)
        (folder / f"{report.run.id}.json").write_bytes(content)
        with (folder / f"{report.run.id}.jsonl").open("wb") as file:
            file.writelines(as_jsonl(report.records()))
    except OSError as error:
        message = f"Cannot write to {folder}: {error.strerror}. The store has the run."
        raise StoreWriteError(message) from None


def _with_all_settings(config: RunConfig, task: Task) -> RunConfig:
    # With the defaults: a later change of a default must not change an old run.
    # JSON turns tuples into the lists that the store will return.
    settings = msgspec.json.decode(msgspec.json.encode(task.settings))
    return msgspec.structs.replace(config, settings=settings)


def _with_recorded_max_tokens(run: Run, config: RunConfig, task: Task) -> tuple[Run, RunConfig]:
    """An old run that did not store max_tokens used the task's."""
    stored = run.config
    if not config.model or stored.get("max_tokens") is not None or stored.get("max_length") is not None:
        return run, config
    run = msgspec.structs.replace(run, config=stored | {"max_tokens": task.max_tokens})
    return run, msgspec.structs.replace(config, max_tokens=config.max_tokens or task.max_tokens)


def _refuse_changes(run: Run, config: RunConfig, task: Task) -> None:
    now = to_stored(config)
    if changed := changed_options(run.config, now):
        changes = ", ".join(f"{key} {run.config.get(key)!r} → {now.get(key)!r}" for key in changed)
        free = ", ".join(sorted(OPERATIONAL))
        raise UsageError(
            f"Cannot resume run {run.id}: the configuration changed ({changes}). These options may change: {free}."
        )
    if task.version != run.version:
        raise UsageError(
            f"Cannot resume run {run.id}: it used version {run.version} of {run.task}, which is now "
            f"version {task.version}. Start a new run."
        )
    # A built-in task changes its version; a user's file may change without it.
    source = provenance.hash_source(type(task))
    if is_task_file(run.task) and source != run.provenance.get("task_source"):
        raise UsageError(f"Cannot resume run {run.id}: the file of {run.task} changed. Start a new run.")


def _refuse_changed_candidate(run: Run, identity: dict[str, str]) -> None:
    before: dict[str, str] = run.provenance.get("candidate", identity)
    # An empty value means that the server did not report it: no evidence of a change.
    changed = [key for key in identity.keys() & before.keys() if "" != before[key] != identity[key] != ""]
    if changed or identity.keys() != before.keys():
        keys = ", ".join(sorted(changed or identity.keys() ^ before.keys()))
        raise UsageError(f"Cannot resume run {run.id}: the candidate changed ({keys}).")
