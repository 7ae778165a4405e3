"""Settings of a task from a foreign configuration: a dataclass whose `validate` knows what goes together."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Collection
from functools import partial
from typing import Any, ClassVar

import msgspec
from msgspec import Struct


class CheckedSettings(Struct, frozen=True):
    """Settings that their configuration has found valid."""

    configuration: ClassVar[Any]

    def __post_init__(self) -> None:
        try:
            configuration = self.configuration(**msgspec.structs.asdict(self))
            if hasattr(configuration, "validate"):
                configuration.validate()
        except Exception as error:
            raise ValueError(str(error) or "these values do not go together") from None


def settings_class(configuration: Any, without: Collection[str]) -> type[Struct]:
    """The fields of a configuration as settings, with its defaults."""
    hints = typing.get_type_hints(configuration)
    fields: list[tuple[str, Any, Any]] = []
    for field in dataclasses.fields(configuration):
        if field.name not in without:
            default = partial(_default, field)
            kind = _fitting_type(hints[field.name], default())
            fields.append((field.name, kind, msgspec.field(default_factory=default)))
    return msgspec.defstruct(
        "Settings", fields, bases=(CheckedSettings,), namespace={"configuration": configuration}, frozen=True
    )


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _fitting_type(hint: Any, default: Any) -> Any:
    try:
        msgspec.convert(msgspec.to_builtins(default), hint)
    except msgspec.ValidationError:
        return type(default)  # an annotation that does not fit the default is not what is meant
    return hint
