"""Checks, once per run, what tasks in windows need of this machine."""

from __future__ import annotations

import importlib.util
import shutil

from proctor.core.errors import MissingExtraError, UsageError

EXTRA = "desktop"


def require_modules(feature: str, *modules: str) -> None:
    """Those of the extra that the feature is made of."""
    if any(importlib.util.find_spec(module) is None for module in modules):
        raise MissingExtraError(feature, EXTRA)


def require_desktop(virtual: bool, film: bool) -> None:
    require_modules("a task in a window", "Xlib", "mss")
    if virtual:
        _require_program("a virtual display", "Xvfb", "xvfb")
    if film:
        _require_program("a film", "ffmpeg", "ffmpeg", "; or leave it out with --no-film")


def require_stoppable_clock() -> None:
    """For programs: an environment that is no program may have its own way to stand still."""
    _require_program("the clock `paused`", "faketime", "faketime", "; or use --set clock=realtime")


def _require_program(feature: str, program: str, package: str, otherwise: str = "") -> None:
    if shutil.which(program) is None:
        raise UsageError(f"{feature} needs {program}, which was not found: apt-get install {package}{otherwise}")
