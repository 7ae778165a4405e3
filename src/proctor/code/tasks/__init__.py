"""The registry of code tasks. A new one: write its file beside this one, and name its class here."""

from __future__ import annotations

import inspect
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
from proctor.errors import UnknownNameError
from proctor.task import create_task

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


def get_task(task_name: str, args: Any = None, data: str | None = None) -> Task:
    """The task of this name, ready to use. `args` may have `prompt`, `prompts` and `load_data_path` for those that take
    them."""
    if task_name not in TASK_REGISTRY:
        raise UnknownNameError("task", task_name, TASK_REGISTRY, f"Tasks: {', '.join(sorted(TASK_REGISTRY))}.")
    task_class = TASK_REGISTRY[task_name]
    taken = inspect.signature(task_class.__init__).parameters
    given = {key: getattr(args, key, None) for key in ("prompt", "prompts", "load_data_path") if key in taken}
    settings = {key: value for key, value in given.items() if value is not None}
    return create_task(task_class, f"code/{task_name}", settings, data=data)
