"""What is particular to a run among others: the settings and options that could change its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.core.config import FIELDS, OPERATIONAL, PATH_OPTIONS
from proctor.core.types import Run

# Who was asked what is said elsewhere, and where a model is to be had is no property of the run.
_TOLD_ELSEWHERE = frozenset({"task", "model", "agent", "settings", "base_url", "api", "price_input", "price_output"})
_OPTIONS = [name for name in FIELDS if name not in OPERATIONAL | PATH_OPTIONS | _TOLD_ELSEWHERE]
CHANGED_SETTINGS = "changed_settings"  # in the provenance: names of the settings that were not the task's defaults
FILLED_OPTIONS = "filled_options"  # in the provenance: names of the options that nobody gave, set by task and model


def result_options(run: Run) -> dict[str, Any]:
    """All settings of the task, then all options that could change a result."""
    options = {name: run.config.get(name, _default(name)) for name in _OPTIONS}
    return {**run.config.get("settings", {}), **{k: v for k, v in options.items() if k not in run.config["settings"]}}


def non_default_options(run: Run) -> dict[str, Any]:
    """Those that were not the defaults, as far as that was noted; how many samples there were is seen anyway."""
    settings = run.config.get("settings", {})
    changed = run.provenance.get(CHANGED_SETTINGS, settings)
    told = {"limit", *run.provenance.get(FILLED_OPTIONS, ())}
    options = {name: run.config[name] for name in _OPTIONS if name in run.config and name not in told}
    return {
        **{name: value for name, value in settings.items() if name in changed},
        **{name: value for name, value in options.items() if value != _default(name)},
    }


def differing_options(runs: Sequence[Run]) -> list[str]:
    """The names of those in which the runs are not all alike."""
    found = [result_options(run) for run in runs]
    names = dict.fromkeys(name for one in found for name in one)
    return [name for name in names if any(one.get(name) != found[0].get(name) for one in found)]


def non_default_settings(settings: Mapping[str, Any], kind: type[msgspec.Struct]) -> list[str]:
    """Which of these are not the defaults of the settings of this kind."""
    defaults = {}
    for field in msgspec.structs.fields(kind):
        if field.default is not msgspec.NODEFAULT:
            defaults[field.name] = msgspec.to_builtins(field.default)
        elif field.default_factory is not msgspec.NODEFAULT:
            defaults[field.name] = msgspec.to_builtins(field.default_factory())
    return [name for name, value in settings.items() if name not in defaults or defaults[name] != value]


def format_options(found: Mapping[str, Any]) -> str:
    """shapes=7, description=coordinates"""
    return ", ".join(
        f"{name}={value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        for name, value in found.items()
    )


def _default(name: str) -> Any:
    field = FIELDS[name]
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return field.default_factory() if field.default_factory is not msgspec.NODEFAULT else None
