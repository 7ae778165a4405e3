"""HumanCandidate: a person who plays in windows on the display of the user."""

from __future__ import annotations

import os
import re

from proctor.core.candidate import Candidate
from proctor.core.config import RunConfig
from proctor.core.errors import UsageError

HUMAN = "human"
VIRTUAL = "virtual"  # the default of --display
NAME = re.compile(r"[\w.-]{1,80}")


class HumanCandidate(Candidate):
    """`human`, or `human:NAME` to distinguish several people."""

    def __init__(self, name: str) -> None:
        self.name = name

    def identity(self) -> dict[str, str]:
        return {"agent": self.name}


def is_human(agent: str) -> bool:
    """Whether the name is `human` or `human:NAME`; files and modules are human.py:Class or package.human:Class."""
    return agent.partition(":")[0] == HUMAN


def open_human(text: str) -> HumanCandidate:
    _, colon, name = text.partition(":")
    if colon and not NAME.fullmatch(name):
        raise UsageError(f"agent {text!r}: expected human, or human:NAME with letters, digits, dots and dashes.")
    return HumanCandidate(text)


def find_display(config: RunConfig, task: str) -> str:
    """The display on which the person plays: by default $DISPLAY."""
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
    """Raises before the first episode if the display cannot be used."""
    from proctor.agents.desktop.interface import DesktopError
    from proctor.agents.desktop.x11 import XDesktop

    try:
        XDesktop(name).close()
    except DesktopError as error:
        raise UsageError(f"--agent human: {error}.") from error
