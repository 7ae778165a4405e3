"""AgentCandidate, the candidate of a run with an agent."""

from __future__ import annotations

from urllib.parse import urlsplit

from proctor.agents.human import is_human, open_human
from proctor.agents.runtime.hosting.recipe import Recipe, parse_recipe
from proctor.core.candidate import Candidate
from proctor.core.config import REMOTE
from proctor.core.errors import UsageError
from proctor.core.provenance import source_of

NAMED = ("random",)


class AgentCandidate(Candidate):
    """An agent: a user's class or function, a built-in name, or the address of a server."""

    def __init__(self, name: str, recipe: Recipe | None) -> None:
        self.name, self.recipe = name, recipe

    @property
    def url(self) -> str:
        """The address of a remote agent; empty for a local one."""
        return self.name if self.name.startswith(REMOTE) else ""

    def identity(self) -> dict[str, str]:
        source = None if self.recipe is None else source_of(self.recipe.load())
        return {"agent": self.name} | ({} if source is None else {"sha256": source["sha256"]})


def open_agent(text: str) -> Candidate:
    if is_human(text):
        return open_human(text)
    if text.startswith(REMOTE):
        return AgentCandidate(_address(text), None)
    return AgentCandidate(text, None if text in NAMED else parse_recipe(text, "agent"))


def _address(text: str) -> str:
    """Returns the address of a server; refuses one that contains a token."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port == 0 or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise UsageError(f"agent {text!r}: expected http://HOST:PORT.")
    if parts.username or parts.password:
        raise UsageError("agent: the token of an agent's server comes from $PROCTOR_TOKEN, not from its address.")
    return text.rstrip("/")
