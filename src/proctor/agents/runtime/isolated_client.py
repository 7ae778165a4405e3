"""AgentClient for an isolated agent: its sandbox contains the lock file and a filter of the display."""

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
    """Returns the client and the display filter, which the caller closes. `environment` names display and cookie."""
    lock = lock.resolve()
    lock.touch(mode=0o644)  # the agent may run as another user: locking needs only read permission
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
