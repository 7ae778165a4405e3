"""The registry of code tasks. A new one: write its file beside this one, and name its class here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from proctor.code.task import Task
from proctor.code.tasks import (
    apps,
    bigcodebench,
    codexglue_code_to_text,
    codexglue_text_to_text,
    conala,
    concode,
    ds1000,
    evalplus,
    evalplus_rows,
    gsm,
    humaneval,
    humanevalpack,
    instruct_humaneval,
    instruct_wizard_humaneval,
    livecodebench,
    mbpp,
    mercury,
    multiple,
    parity,
    python_bugs,
    quixbugs,
    recode,
    santacoder_fim,
    starter,
    studenteval,
)
from proctor.core import registry
from proctor.core.errors import UnknownNameError, UsageError
from proctor.core.loading import is_task_file
from proctor.core.task import create_task

TASK_REGISTRY: dict[str, type[Task]] = {
    **codexglue_code_to_text.create_all_tasks(),
    **codexglue_text_to_text.create_all_tasks(),
    **conala.create_all_tasks(),
    **concode.create_all_tasks(),
    "humaneval": humaneval.HumanEval,
    "humaneval-unstripped": humaneval.UnstrippedHumanEval,
    "mbpp": mbpp.MBPP,
    "mbpp-sanitized": mbpp.SanitizedMBPP,
    "humanevalplus": evalplus.HumanEvalPlus,
    "humanevalplus-unstripped": evalplus.UnstrippedHumanEvalPlus,
    "mbppplus": evalplus.MBPPPlus,
    **starter.create_all_tasks(),
    **apps.create_all_tasks(),
    **bigcodebench.create_all_tasks(),
    **ds1000.create_all_tasks(),
    **evalplus_rows.create_all_tasks(),
    **gsm.create_all_tasks(),
    "livecodebench": livecodebench.LiveCodeBench,
    "mercury": mercury.Mercury,
    "mercury-zero-shot": mercury.ZeroShotMercury,
    "parity": parity.Parity,
    "python_bugs": python_bugs.PythonBugs,
    **recode.create_all_tasks(),
    **humanevalpack.create_all_tasks(),
    **instruct_humaneval.create_all_tasks(),
    "instruct_wizard_humaneval": instruct_wizard_humaneval.WizardHumanEval,
    **multiple.create_all_tasks(),
    "quixbugs": quixbugs.QuixBugs,
    **santacoder_fim.create_all_tasks(),
    "studenteval": studenteval.StudentEval,
}


registry.import_object(registry.ADOPT)()  # whoever registers a task here may have to import it first


def get_task(task_name: str, args: Any = None, data: str | None = None) -> Task:
    """The task of this name, ready to use: a registered one, one of an installed package, or path/to/file.py:Class.

    `args` may have `prompt`, `prompts` and `load_data_path` for tasks that take them; `data` is a file with its rows.
    """
    name, task_class = _find(task_name.removeprefix("code/"))
    taken = inspect.signature(task_class.__init__).parameters
    given = {key: getattr(args, key, None) for key in ("prompt", "prompts", "load_data_path") if key in taken}
    settings = {key: value for key, value in given.items() if value is not None}
    task = create_task(task_class, name, settings, data=data)
    if data is not None:
        task.get_dataset = partial(_rows_of, task, task.get_dataset)  # type: ignore[method-assign]
    return task


def _rows_of(task: Task, get_dataset: Callable[[], Any]) -> Any:
    """From the file that was given, whoever asks."""
    with task._given.offered():
        return get_dataset()


def _find(name: str) -> tuple[str, type[Task]]:
    if name in TASK_REGISTRY:
        return f"code/{name}", TASK_REGISTRY[name]
    if not is_task_file(name) and name not in registry.installed_tasks():
        known = [*TASK_REGISTRY, *registry.installed_tasks()]
        raise UnknownNameError("task", name, known, f"Tasks: {', '.join(sorted(known))}, or path/to/file.py:Class.")
    found = registry.load_task_class(name)
    if not issubclass(found, Task):
        raise UsageError(f"{name} is not a code task: it does not extend proctor.code.Task.")
    return name, found
