"""A person as the candidate of a run: plays in windows on the display of the user."""

from __future__ import annotations

import os
import re

from proctor.core.candidate import Candidate
from proctor.core.config import RunConfig
from proctor.core.errors import UsageError

HUMAN = "human"
VIRTUAL = "virtual"  # what --display is unless it is given
NAME = re.compile(r"[\w.-]{1,80}")


class HumanCandidate(Candidate):
    """`human`, or `human:NAME` where several are to be told apart."""

    def __init__(self, name: str) -> None:
        self.name = name

    def identity(self) -> dict[str, str]:
        return {"agent": self.name}


def is_human(agent: str) -> bool:
    """A file or module of this name has another: human.py:Class, package.human:Class."""
    return agent.partition(":")[0] == HUMAN


def open_human(text: str) -> HumanCandidate:
    _, colon, name = text.partition(":")
    if colon and not NAME.fullmatch(name):
        raise UsageError(f"agent {text!r}: expected human, or human:NAME with letters, digits, dots and dashes.")
    return HumanCandidate(text)


def find_display(config: RunConfig, task: str) -> str:
    """Where the person plays: unless another is named, on the display that this process would use itself."""
    if config.parallel > 1:
        raise UsageError("--agent human: one person plays one episode at a time; leave out --parallel.")
    if config.display == "none":
        raise UsageError(f"{task}: --agent human plays in a window; --display none leaves none to play in.")
    if config.display.startswith(f"{VIRTUAL}:"):
        raise UsageError("--agent human: nobody sees a virtual display; --display :0 names that of a person.")
    name = os.environ.get("DISPLAY", "") if config.display == VIRTUAL else config.display
    if not name:
        raise UsageError(
            "--agent human plays on your display, and $DISPLAY names none: run it in a terminal of your desktop, "
            "or name one with --display :0."
        )
    return name


def check_display(name: str) -> None:
    """Found out before the first episode."""
    from proctor.agents.desktop.interface import DesktopError
    from proctor.agents.desktop.x11 import XDesktop

    try:
        XDesktop(name).close()
    except DesktopError as error:
        raise UsageError(f"--agent human: {error}.") from error
