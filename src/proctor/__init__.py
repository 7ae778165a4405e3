"""Proctor: an evaluation harness for models and agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.core.lazy import lazy_exports

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

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "compare": "analysis.comparison",
        "Comparison": "analysis.comparison",
        "evaluate": "core.evaluation",
        "sweep": "analysis.sweep",
        "Curve": "analysis.curve",
        "Report": "analysis.report",
        "RunConfig": "core.config",
        "Task": "core.task",
        "Image": "core.types",
        "Message": "core.types",
        "Output": "core.types",
        "Record": "core.types",
        "Sample": "core.types",
        "Score": "core.types",
        "Text": "core.types",
    },
)
