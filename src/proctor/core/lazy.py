"""Names of a package that are imported when they are first used, so that importing the package costs little."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any


def lazy_exports(
    package: str, homes: Mapping[str, str], extra: str = "", modules_of_extra: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package: `homes` says in which of its modules each public name is defined.

    A name whose module imports one of `modules_of_extra` raises MissingExtraError where `extra` is not installed.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module  # here, because the sandbox's processes import this module, too

        try:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in modules_of_extra:
                from proctor.core.errors import MissingExtraError

                raise MissingExtraError(f"{package}.{name}", extra) from None
            raise

    return get, lambda: sorted(homes)
