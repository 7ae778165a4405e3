"""One exam room for models and agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from proctor.analysis.comparison import Comparison, compare
    from proctor.analysis.curve import Curve
    from proctor.analysis.report import Report
    from proctor.analysis.sweep import sweep
    from proctor.core.config import RunConfig
    from proctor.core.evaluation import evaluate
    from proctor.core.task import Task
    from proctor.core.types import Image, Message, Output, Record, Sample, Score, Text

__all__ = [
    "Comparison",
    "Curve",
    "Image",
    "Message",
    "Output",
    "Record",
    "Report",
    "RunConfig",
    "Sample",
    "Score",
    "Task",
    "Text",
    "compare",
    "evaluate",
    "sweep",
]

_HOMES = {
    "compare": "comparison",
    "Comparison": "comparison",
    "evaluate": "evaluation",
    "sweep": "sweeps",
    "Curve": "curve",
    "Report": "report",
    "RunConfig": "config",
    "Task": "task",
    "Image": "types",
    "Message": "types",
    "Output": "types",
    "Record": "types",
    "Sample": "types",
    "Score": "types",
    "Text": "types",
}


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that the command line prints its help without importing the engine.
    if name not in _HOMES:
        raise AttributeError(f"module 'proctor' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"proctor.{_HOMES[name]}"), name)
