"""Names of a package that are imported when they are first used, so that importing the package costs little."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Explain = Callable[[str, ModuleNotFoundError], Exception]


def lazy_exports(
    package: str, homes: Mapping[str, str], explain: Explain | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package: `homes` says in which of its modules each public name is defined.

    `explain` turns the error of a package that is not installed into one that says what to install.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module  # here, because the sandbox's processes import this module, too

        try:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        except ModuleNotFoundError as error:
            if explain is None:
                raise
            raise explain(name, error) from None

    return get, lambda: sorted(homes)
