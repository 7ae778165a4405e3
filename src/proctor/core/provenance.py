"""Versions, commit and machine, stored with every run."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
import zlib
from collections.abc import Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from proctor import __version__
from proctor.core import machine

# Packages that affect a question, an answer or a metric.
_PACKAGES = ("msgspec", "aiohttp", "numpy", "xllamacpp", "reasoning-gym", "sympy", "gymnasium", "ale-py", "minigrid")


def collect_provenance(task_class: type) -> dict[str, Any]:
    return {
        "versions": {
            "proctor": __version__,
            "python": platform.python_version(),
            "zlib": zlib.ZLIB_RUNTIME_VERSION,  # decides the bytes of a PNG, though not its pixels
            **installed_versions(_PACKAGES),
        },
        "git": _git(Path.cwd()),
        "task_source": hash_source(task_class),
        "machine": {
            "system": platform.platform(),
            "processor": machine.processor(),
            "cores": machine.cores(),
            "memory_mib": machine.memory_mib(),
        },
    }


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    versions = {}
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def _git(folder: Path) -> dict[str, Any] | None:
    """The commit of the repository in the working directory, and whether files differ from it."""
    if not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        return None
    command = ["git", "-C", str(folder), "status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    try:
        lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return None
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "(initial)")
    changed = any(not line.startswith("#") for line in lines)
    return None if commit == "(initial)" else {"commit": commit, "changed": changed}


def hash_source(task_class: type) -> dict[str, str] | None:
    """Name and hash of the file that defines the task: they reveal an edited task."""
    file = getattr(sys.modules.get(task_class.__module__), "__file__", None)
    if file is None or not Path(file).is_file():  # from a prompt or a pipe
        return None
    return {"file": Path(file).name, "sha256": hashlib.sha256(Path(file).read_bytes()).hexdigest()}
