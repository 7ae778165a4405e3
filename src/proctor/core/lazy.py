"""Lazy exports of a package: the module of a name is imported at its first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Explain = Callable[[str, ModuleNotFoundError], Exception]


def lazy_exports(
    package: str, modules: Mapping[str, str], explain: Explain | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` for a package. `modules` maps each public name to
    the module that defines it.

    `explain` turns the error of a missing package into one that says what to install.
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module  # lazy, since sandbox processes import this module

        try:
            return getattr(import_module(f"{package}.{modules[name]}"), name)
        except ModuleNotFoundError as error:
            if explain is None:
                raise
            raise explain(name, error) from None

    return get, lambda: sorted(modules)
