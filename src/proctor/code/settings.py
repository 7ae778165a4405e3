"""Settings of a code task: the arguments of its constructor."""

from __future__ import annotations

import inspect
from copy import copy
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

_SETTABLE = (str, bool, int, float, list, tuple, dict, type(None))
_ALWAYS_PASSED = {"prompt": "prompt", "load_data_path": None}  # for constructors without these defaults


def constructor_settings(cls: type) -> dict[str, Any]:
    """Constructor arguments that can be set on a command line, with their defaults."""
    defaults: dict[str, Any] = {}
    for name, parameter in list(inspect.signature(cls.__init__).parameters.items())[1:]:  # type: ignore[misc]
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is parameter.empty:
            defaults[name] = _ALWAYS_PASSED.get(name, msgspec.NODEFAULT)
        elif isinstance(parameter.default, _SETTABLE):
            defaults[name] = parameter.default
    return defaults


def struct_of(defaults: dict[str, Any]) -> type[Struct]:
    fields: list[Any] = [
        (name, Any)
        if default is msgspec.NODEFAULT
        else (name, Any, msgspec.field(default_factory=partial(copy, default)))
        for name, default in defaults.items()
    ]
    return msgspec.defstruct("Settings", fields, frozen=True, kw_only=True)
