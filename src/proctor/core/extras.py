"""Lazy imports of the modules that optional extras install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from proctor.core.errors import MissingExtraError, UsageError

# Shared libraries that wheels link to but do not bundle, with the Debian package of each.
SYSTEM_LIBRARIES = {"libgomp.so.1": "libgomp1", "libGL.so.1": "libgl1", "libglib-2.0.so.0": "libglib2.0-0"}


def import_extra(module: str, feature: str, extra: str) -> Any:
    """Imports the module; raises different errors if it is not installed or does not load."""
    try:
        found = import_module(module)
        if getattr(found, "__file__", "") is None:  # any folder of that name is a package to Python, too
            raise MissingExtraError(feature, extra)
        return found
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == module.partition(".")[0]:
            raise MissingExtraError(feature, extra) from None
        cure = f" Reinstall it: pip install --force-reinstall 'proctor[{extra}]'."
        raise UsageError(f"{feature} needs {module}, which does not load: {error}.{cure}") from None
    except ImportError as error:
        reason = " ".join(str(error).split()).removesuffix(".")
        cures = [
            f" Install it: apt-get install {package}." for name, package in SYSTEM_LIBRARIES.items() if name in reason
        ]
        raise UsageError(f"{feature} needs {module}, which does not load: {reason}.{''.join(cures)}") from None
