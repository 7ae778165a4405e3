"""What settings the tasks of the shapes family take, read from their definitions."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS


def settings_schema(name: str) -> dict[str, dict[str, Any]]:
    schema = msgspec.json.schema(REGISTERED_TASKS[name].Settings)
    return next(iter(schema["$defs"].values()))["properties"]


def limits(name: str) -> tuple[int, int]:
    """The smallest and the largest number of shapes that a task takes."""
    shapes = settings_schema(name)["shapes"]
    return shapes["minimum"], shapes["maximum"]


def settings_of(name: str) -> st.SearchStrategy[dict[str, object]]:
    """Any settings that a task takes."""
    return st.fixed_dictionaries(
        {
            key: st.sampled_from(field["enum"]) if "enum" in field else st.integers(field["minimum"], field["maximum"])
            for key, field in settings_schema(name).items()
        }
    )
