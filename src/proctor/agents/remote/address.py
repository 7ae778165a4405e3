"""The address of a remote agent, and how a record says where its agent ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from proctor.agents.human import is_human
from proctor.core.config import URL_PREFIXES, RunConfig

if TYPE_CHECKING:
    from proctor.agents.runtime.hosting.isolation import Isolation

TRUSTED = "trusted"  # it ran as the user, without isolation
FrameFormat = Literal["png", "jpeg", "raw"]


class RemoteAddress(Struct, frozen=True):
    """The server of an agent, and the format of the frames that it is sent."""

    url: str
    frames: FrameFormat = "png"

    def __str__(self) -> str:
        return f"remote: {self.url}"


def describe_isolation(config: RunConfig, isolation: Isolation | None) -> str:
    """Says where the agent ran, for record and report; empty for a model and for a person."""
    if not config.agent or is_human(config.agent):
        return ""
    if config.agent.startswith(URL_PREFIXES):
        return str(RemoteAddress(config.agent))
    return TRUSTED if isolation is None else str(isolation)
