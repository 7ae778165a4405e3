"""An isolated agent as the referee sees it: what is let into its room are the lock and a filter of its display."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.agents.runtime.agent_client import LocalAgentClient
from proctor.agents.runtime.hosting.isolation import AgentSandbox, Isolation
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.agents.runtime.limits import RuntimeLimits
from proctor.agents.runtime.locking import VARIABLE
from proctor.agents.types import ISOLATED

if TYPE_CHECKING:
    from proctor.agents.display_filter.display import FilteredDisplay

LOCK_INSIDE = "/tmp/.proctor-env.lock"


def open_isolated_client(
    agent: Recipe,
    isolation: Isolation,
    folder: Path,
    environment: Mapping[str, str],
    lock: Path,
    limits: RuntimeLimits | None = None,
    log: str = "agent.log",
) -> tuple[LocalAgentClient, FilteredDisplay | None]:
    """The filter is the caller's to close. The environment names the display, if there is one, and its cookie."""
    lock = lock.resolve()
    lock.touch(mode=0o644)  # the agent may be another user: to lock a file it need only be able to read it
    if not isolation.level.namespaces:
        sandbox = AgentSandbox(isolation, agent, readable=[str(lock)])
        return LocalAgentClient(agent, folder / log, {VARIABLE: str(lock), ISOLATED: "1"}, limits, sandbox), None
    binds, inside = [(lock, LOCK_INSIDE)], {VARIABLE: LOCK_INSIDE, ISOLATED: "1"}
    filtered = None
    if display := environment.get("DISPLAY"):
        from proctor.agents.display_filter.display import FilteredDisplay

        filtered = FilteredDisplay(display, folder / "filter.log", environment)
        binds.append((filtered.socket, filtered.inside))
        inside["DISPLAY"] = display
    return LocalAgentClient(agent, folder / log, inside, limits, AgentSandbox(isolation, agent, binds)), filtered
