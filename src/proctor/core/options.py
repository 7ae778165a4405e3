"""The settings and options of a run that could change its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.core.config import FIELDS, options_affecting
from proctor.core.types import Run

_RESULT_EFFECTS = options_affecting("task", "samples", "candidate")
_OPTIONS = [name for name in FIELDS if name in _RESULT_EFFECTS]
CHANGED_SETTINGS = "changed_settings"  # provenance: settings that are not the task's defaults
FILLED_OPTIONS = "filled_options"  # provenance: options that task and model chose, not the user


def result_options(run: Run) -> dict[str, Any]:
    """All settings of the task, then all options that could change a result."""
    options = {name: run.config.get(name, _default(name)) for name in _OPTIONS}
    settings: dict[str, Any] = run.config.get("settings", {})
    return settings | {name: value for name, value in options.items() if name not in settings}


def non_default_settings(run: Run) -> dict[str, Any]:
    """The settings that are not the task's defaults; all settings of a run that did not note which they are."""
    settings = run.config.get("settings", {})
    changed = run.provenance.get(CHANGED_SETTINGS, settings)
    return {name: value for name, value in settings.items() if name in changed}


def non_default_options(run: Run) -> dict[str, Any]:
    """Settings and options that are not the defaults; without `limit`, since reports show n."""
    hidden = {"limit", *run.provenance.get(FILLED_OPTIONS, ())}
    options = {name: run.config[name] for name in _OPTIONS if name in run.config and name not in hidden}
    return {
        **non_default_settings(run),
        **{name: value for name, value in options.items() if value != _default(name)},
    }


def differing_options(runs: Sequence[Run]) -> list[str]:
    """The names of the settings and options in which the runs differ."""
    options = [result_options(run) for run in runs]
    names = dict.fromkeys(name for each in options for name in each)
    return [n for n in names if any(each.get(n) != options[0].get(n) for each in options)]


def changed_settings(settings: Mapping[str, Any], kind: type[msgspec.Struct]) -> list[str]:
    """The settings whose values differ from the defaults of the class."""
    defaults = {}
    for field in msgspec.structs.fields(kind):
        if field.default is not msgspec.NODEFAULT:
            defaults[field.name] = msgspec.to_builtins(field.default)
        elif field.default_factory is not msgspec.NODEFAULT:
            defaults[field.name] = msgspec.to_builtins(field.default_factory())
    return [name for name, value in settings.items() if name not in defaults or defaults[name] != value]


def format_options(options: Mapping[str, Any]) -> str:
    """shapes=7, description=coordinates"""
    return ", ".join(
        f"{name}={value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        for name, value in options.items()
    )


def _default(name: str) -> Any:
    field = FIELDS[name]
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return field.default_factory() if field.default_factory is not msgspec.NODEFAULT else None
