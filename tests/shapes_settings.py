"""What settings the tasks of the shapes family take, read from their definitions."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from proctor.errors import UsageError
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS
from proctor.task import create_task


def settings_schema(name: str) -> dict[str, dict[str, Any]]:
    schema = msgspec.json.schema(REGISTERED_TASKS[name].Settings)
    return next(iter(schema["$defs"].values()))["properties"]


def extreme(name: str, limit: str) -> dict[str, int]:
    """Every number among the settings of a task at its minimum or maximum."""
    return {key: field[limit] for key, field in settings_schema(name).items() if limit in field}


def settings_of(name: str) -> st.SearchStrategy[dict[str, object]]:
    """Any settings that a task takes, together."""

    def fit(settings: dict[str, object]) -> bool:
        try:
            create_task(REGISTERED_TASKS[name], name, settings)
        except UsageError:
            return False
        return True

    return st.fixed_dictionaries(
        {
            key: st.sampled_from(field["enum"]) if "enum" in field else st.integers(field["minimum"], field["maximum"])
            for key, field in settings_schema(name).items()
        }
    ).filter(fit)
