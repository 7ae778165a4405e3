"""Task files as the BigCode evaluation harness has them, in the working directory that each test has to itself."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import proctor
from proctor.code import Task
from proctor.core import registry

ROWS = [
    {
        "task_id": f"add/{i}",
        "prompt": f"def add_{i}(x):\n    '''Adds {i}.'''\n",
        "canonical_solution": f"    return x + {i}\n",
        "test": f"assert add_{i}(1) == {i + 1}",
        "entry_point": f"add_{i}",
        "sentence": f"adds {i} to x",
    }
    for i in range(3)
]
FUNCTIONS = [row["prompt"] + row["canonical_solution"] for row in ROWS]

RUNNING = """
    from bigcode_eval.base import Task

    class Running(Task):
        DATASET_PATH = "someone/something"

        def get_dataset(self):
            return self.dataset["test"]

        def get_prompt(self, doc):
            return doc["prompt"]

        def get_reference(self, doc):
            return doc["test"]

        def postprocess_generation(self, generation, idx):
            return self._stop_at_stop_token(generation, self.stop_words)
"""


def write_rows(rows: Sequence[dict[str, Any]] = ROWS, name: str = "rows.jsonl") -> str:
    path = Path(name).absolute()
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


def write_task(source: str, folder: str = "tasks", name: str = "exam.py") -> str:
    """A task file, in a folder of its own."""
    path = Path(folder, name).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source))
    return str(path)


def code_task(name: str) -> type[Task]:
    cls = registry.load_task_class(name)
    assert issubclass(cls, Task)
    return cls


def judge(task: str, texts: list[list[str]], **options: Any) -> proctor.Report:
    """A run with generations that are judged as they are."""
    path = Path("generations.json").absolute()
    path.write_text(json.dumps(texts))
    samples = max(map(len, texts))
    return proctor.evaluate(task, f"scripted/generations:{path}", allow_code_execution=True, samples=samples, **options)


def values(report: proctor.Report) -> dict[str, float | None]:
    return {name: metric.value for name, metric in report.metrics.items()}
