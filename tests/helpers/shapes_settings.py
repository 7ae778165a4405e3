"""What settings the tasks of the shapes family take, read from their definitions."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st

from proctor.core.errors import UsageError
from proctor.core.task import create_task
from proctor.core.types import Sample
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS


def settings_schema(name: str) -> dict[str, dict[str, Any]]:
    schema = msgspec.json.schema(REGISTERED_TASKS[name].Settings)
    properties: dict[str, dict[str, Any]] = next(iter(schema["$defs"].values()))["properties"]
    return properties


def sizes(plain: int, large: int) -> pytest.MarkDecorator:
    """Calls a test with `count` samples: few of them in `make test`, many in `make test-all`."""
    return pytest.mark.parametrize("count", [plain, slow(large)])


def slow(*values: object) -> Any:
    """A parameter of `make test-all` alone."""
    return pytest.param(*values, marks=pytest.mark.slow)


def text_of(sample: Sample) -> str:
    """The prompt of a sample without worked examples."""
    assert isinstance(sample.input, str)
    return sample.input


def find(pattern: str, text: str) -> re.Match[str]:
    """The first match, which must be there."""
    match = re.search(pattern, text)
    assert match is not None, f"no {pattern} in {text}"
    return match


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
