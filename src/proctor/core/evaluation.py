"""From options to a finished run: what `proctor run`, `proctor resume` and `proctor.evaluate` share."""

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
from proctor.core.config import FIELDS, OPERATIONAL, RunConfig, build_config, changed_keys, stored_form, user_path
from proctor.core.errors import ChangedSampleError, StoreWriteError, TaskError, UsageError
from proctor.core.estimate import describe_estimate
from proctor.core.loading import is_file
from proctor.core.options import CHANGED, FILLED, changed_settings
from proctor.core.registry import import_object
from proctor.core.runner import Observer, run_samples
from proctor.core.task import Task, create_task, opened, take_samples
from proctor.core.types import Record, Run, Usage
from proctor.distributed import cluster
from proctor.models import open_model
from proctor.models.base import Model
from proctor.store import open_store
from proctor.store.export import as_jsonl
from proctor.store.store import Store

T = TypeVar("T")

MOST_SAMPLES = 100_000  # of an exam without end that asks as many as it takes, unless --limit says it
COLLECTING = (20_000, 20, 100)  # thresholds of the garbage collector's generations while an exam runs
AGENTS = "proctor.agents.candidate:open_agent"  # as text: the core imports no family


def evaluate(
    task: str | type[Task],
    model: str = "",
    *,
    observer: Observer | None = None,
    budget: Budget | None = None,
    **options: Any,
) -> Report:
    """Runs an exam and returns its report: the same as `proctor run TASK --model MODEL`, or `agent=` for an agent.

    A budget that several runs share can be given in place of max_cost, max_tokens_total and time_limit.
    """
    if loading.in_worker:
        raise UsageError(
            "A script that defines its own task is imported once more to score it: put what it runs under "
            'if __name__ == "__main__":'
        )
    name, task_class = registry.resolve(task)
    config = build_config({"task": name, "model": model, **options})
    return run_to_end(_start(task_class, config, observer or Observer(), budget or budget_of(config)))


def budget_of(config: RunConfig) -> Budget:
    return Budget(config.max_cost, config.max_tokens_total, config.time_limit)


def resume(run_id: str, overrides: Mapping[str, Any], observer: Observer | None = None) -> Report:
    """Goes on with a stored run. Options that could change a result must be what they were."""
    return run_to_end(_resume(run_id, overrides, observer or Observer()))


def run_to_end(job: Coroutine[Any, Any, T]) -> T:
    """asyncio.run that takes SIGTERM like Ctrl-C, and works where a loop is running already, as in a notebook."""
    if not _inside_a_loop():
        return _run(job)
    with ThreadPoolExecutor(1, thread_name_prefix="proctor-evaluate") as thread:
        return thread.submit(asyncio.run, job).result()


def _inside_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run(job: Coroutine[Any, Any, T]) -> T:
    async def stoppable() -> T:
        task = asyncio.current_task()
        if task is not None and threading.current_thread() is threading.main_thread():
            # Through the loop: raised between two instructions, it could leave a lock held for ever.
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await job

    try:
        return asyncio.run(stoppable())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _start(task_class: type[Task], config: RunConfig, observer: Observer, budget: Budget) -> Report:
    task = create_task(task_class, config.task, config.settings, config.modality, config.data)
    config = _with_full_settings(config, task)
    if config.until_ci is not None and config.limit is None and not task.fixed:
        config = msgspec.structs.replace(config, limit=MOST_SAMPLES)
    count = _count(task, config)
    if config.until_ci is not None:
        _refuse_clusters(task, config)
    out = _make_folder(config.out)
    store = open_store(config.store)
    try:
        run = Run(
            id=time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(3),
            task=config.task,
            version=task.version,
            candidate=config.candidate,
            config=stored_form(config),
            provenance=provenance.collect(task_class) | {CHANGED: changed_settings(config.settings, task.Settings)},
            created=time.time(),
            total=None if count is None else count * config.epochs,
        )
        with store.lock_run(run.id):
            return await _execute(run, task, config, store, out, observer, budget)
    finally:
        store.close()


def _count(task: Task, config: RunConfig) -> int | None:
    """How many samples there will be; None if nobody knows."""
    try:
        count = task.count(config)
    except UsageError:
        raise
    except Exception as error:
        raise TaskError(f"{task.name} cannot count its samples: {type(error).__name__}: {error}") from error
    if count is not None and not isinstance(count, int):
        raise TaskError(f"{task.name}: count must give a number or None, not {count!r}.")
    return None if config.until_ci is not None else count


def _refuse_clusters(task: Task, config: RunConfig) -> None:
    """A confidence sequence takes samples one by one as they were drawn, which those of a cluster were not."""
    looked_at = take_samples(task, config)
    for sample in looked_at if task.fixed else islice(looked_at, 1):
        if sample.cluster:
            raise UsageError(
                f"until_ci: samples of {task.name} are not independent ({sample.id} belongs to the cluster "
                f"{sample.cluster!r}), so the interval would not hold. Give a number of samples instead: --limit."
            )


async def _resume(run_id: str, overrides: Mapping[str, Any], observer: Observer) -> Report:
    store = open_store(overrides.get("store"), "write")
    try:
        run_id = store.run(run_id).id
        with store.lock_run(run_id):
            run = store.run(run_id)  # read again: only now is nobody else at work on it
            stored = {key: value for key, value in run.config.items() if key in FIELDS}
            settings = stored["settings"] | overrides.get("settings", {})  # what is not given is what it was
            config = build_config(stored | dict(overrides) | {"settings": settings})
            task_class = registry.task_class(config.task)
            task = create_task(task_class, config.task, config.settings, config.modality, config.data)
            config = _with_full_settings(config, task)
            run, config = _with_recorded_max_tokens(run, config, task)
            _refuse_changes(run, config, task)
            budget = budget_of(config)
            if budget.account():
                budget.count_before(_paid_usage(store.records(run)), run.seconds, run.provenance.get("budget", {}))
            return await _execute(run, task, config, store, _make_folder(config.out), observer, budget)
    finally:
        store.close()


def _paid_usage(records: Iterable[Record]) -> Usage:
    """What the answers used, without those from the cache: also of a run that was killed and has no totals."""
    usages = (output.usage for record in records for output in record.outputs if not output.cached)
    return sum(usages, Usage())


async def _execute(
    run: Run, task: Task, config: RunConfig, store: Store, out: Path | None, observer: Observer, budget: Budget
) -> Report:
    judging = task.executes and not config.generation_only
    if judging and not config.allow_code_execution:
        raise UsageError(
            f"{task.name} runs the programs that a model writes: say --allow-code-execution to let them run, in the "
            "sandbox; or --generation-only to judge them later."
        )
    if config.engine == "ray":
        cpus = max(2, machine.cores()) + (config.workers or 0)
        async with cluster.joined(config.ray_address, cpus) as joined:
            run = msgspec.structs.replace(run, provenance=run.provenance | {"cluster": joined})
            run = await _sit(run, task, config, store, observer, budget, judging)
    else:
        run = await _sit(run, task, config, store, observer, budget, judging)
    report = Report(run, store.url)
    if out is not None:
        _write_files(report, out)
    return report


async def _sit(
    run: Run, task: Task, config: RunConfig, store: Store, observer: Observer, budget: Budget, judging: bool
) -> Run:
    candidate = _open_candidate(config, budget, task)
    try:
        await candidate.prepare(lambda: take_samples(task, config))
        _refuse_another_candidate(run, candidate.identity())
        before = run
        filled = _model_defaults(config, task, candidate) if isinstance(candidate, Model) else {}
        config = build_config(msgspec.structs.asdict(config) | filled)
        run = msgspec.structs.replace(run, config=run.config | {"tags": config.tags} | filled)
        provenance = run.provenance | {"candidate": candidate.identity()}
        if filled:
            provenance |= {FILLED: sorted({*filled, *provenance.get(FILLED, ())})}
        run = msgspec.structs.replace(run, status="running", reason="", provenance=provenance)
        store.save(run)
        with store.working_folder(run) as task.artifacts:
            async with opened(task, config):
                if judging:
                    run = _with_sandbox(run, task.sandbox.level)
                    store.save(run)
                if task.agent_held:
                    run = _with_held_agent(run, task.agent_held)
                    store.save(run)
                if estimate := describe_estimate(task, config, run.total, len(store.scored(run))):
                    observer.planned(estimate)
                try:
                    with _seldom_collecting():
                        run = await run_samples(run, task, candidate, config, store, observer, budget)
                except ChangedSampleError:
                    store.save(before)  # a refusal changes nothing
                    raise
                if judging and (noted := _with_sandbox(run, task.sandbox.level)) != run:  # nodes may have joined
                    store.save(run := noted)
    finally:
        await candidate.close()
    return run


def _model_defaults(config: RunConfig, task: Task, model: Model) -> dict[str, Any]:
    """The options that were left to the model. They are stored, so that a resumed run has the same."""
    filled: dict[str, Any] = {} if config.api else {"api": model.default_api}
    if config.max_tokens is None and config.max_length is None:
        filled["max_tokens"] = max(task.max_tokens, model.reasoning_tokens)
    return filled


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """Hardly any garbage of an exam is cyclic; looking for it as often as usual takes a fifth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTING)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _open_candidate(config: RunConfig, budget: Budget, task: Task) -> Candidate:
    if config.model:
        return open_model(config, budget, inputs_known=task.asks_its_inputs)
    opener: Callable[[str], Candidate] = import_object(AGENTS)
    return opener(config.agent)


def _with_sandbox(run: Run, level: str) -> Run:
    """Notes what held the programs. A run that was resumed on another machine has more than one."""
    levels = run.provenance.get("sandbox", "").split("; ")
    noted = "; ".join(dict.fromkeys([*filter(None, levels), level]))
    return msgspec.structs.replace(run, provenance=run.provenance | {"sandbox": noted})


def _with_held_agent(run: Run, held: str) -> Run:
    """Notes where the agent was. A run that was resumed on another machine has more than one place."""
    before = run.provenance.get("agent_held", "").split("; then ")
    noted = "; then ".join(dict.fromkeys([*filter(None, before), held]))
    return msgspec.structs.replace(run, provenance=run.provenance | {"agent_held": noted})


def _make_folder(name: str | None) -> Path | None:
    """Made before the exam: it must not turn out at the end that there is no place for its results."""
    if name is None:
        return None
    folder = user_path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"out: cannot write to {folder}: {error.strerror}.") from None
    return folder


def _write_files(report: Report, folder: Path) -> None:
    """Report and records as files, named after the run so that runs never overwrite each other."""
    try:
        (folder / f"{report.run.id}.json").write_bytes(
            msgspec.json.format(msgspec.json.encode(report.to_dict()), indent=2)
        )
        with (folder / f"{report.run.id}.jsonl").open("wb") as file:
            file.writelines(as_jsonl(report.records()))
    except OSError as error:
        raise StoreWriteError(f"Cannot write to {folder}: {error.strerror}. The run itself is in the store.") from None


def _with_full_settings(config: RunConfig, task: Task) -> RunConfig:
    # Stored with the defaults filled in: a later change of a default must not change an old run.
    # By way of JSON, so that a tuple is the list that will be read back.
    return msgspec.structs.replace(config, settings=msgspec.json.decode(msgspec.json.encode(task.settings)))


def _with_recorded_max_tokens(run: Run, config: RunConfig, task: Task) -> tuple[Run, RunConfig]:
    """A run that did not store its max_tokens had the task's, whatever the default is now."""
    stored = run.config
    if not config.model or stored.get("max_tokens") is not None or stored.get("max_length") is not None:
        return run, config
    run = msgspec.structs.replace(run, config=stored | {"max_tokens": task.max_tokens})
    return run, msgspec.structs.replace(config, max_tokens=config.max_tokens or task.max_tokens)


def _refuse_changes(run: Run, config: RunConfig, task: Task) -> None:
    now = stored_form(config)
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
    # A task of the package says by its version what changed; a user's file says it by its content.
    if is_file(run.task) and provenance.source_of(type(task)) != run.provenance.get("task_source"):
        raise UsageError(f"Run {run.id} cannot go on: the file of {run.task} has changed since. Start a new run.")


def _refuse_another_candidate(run: Run, identity: dict[str, str]) -> None:
    before: dict[str, str] = run.provenance.get("candidate", identity)
    # What a server could not say this time, or could not say then, proves nothing.
    changed = [key for key in identity.keys() & before.keys() if "" != before[key] != identity[key] != ""]
    if changed or identity.keys() != before.keys():
        what = ", ".join(sorted(changed or identity.keys() ^ before.keys()))
        raise UsageError(f"Run {run.id} cannot go on: the candidate is not the same any more ({what}).")
