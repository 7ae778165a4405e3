"""What a test needs of the machine: where it is missing, the test is skipped and names the command that installs it."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

import pytest


def program(name: str, package: str) -> None:
    """Called at the top of a module, or in a test or fixture: a program of a Debian package."""
    if shutil.which(name, path=f"{os.environ['PATH']}:/usr/games") is None:
        pytest.skip(f"there is no {name}: apt-get install {package}", allow_module_level=True)


def module(name: str, extra: str) -> None:
    """A module of an extra of ours."""
    if find_spec(name) is None:
        pytest.skip(f"there is no {name}: .venv/bin/uv pip install -e '.[{extra}]'", allow_module_level=True)
