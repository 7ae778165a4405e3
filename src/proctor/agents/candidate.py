"""An agent as the candidate of a run."""

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
    """Whoever plays: a class or function of a user's, or one that has a name here."""

    def __init__(self, name: str, recipe: Recipe | None) -> None:
        self.name, self.recipe = name, recipe

    @property
    def url(self) -> str:
        """Of an agent on another machine; empty for one of this."""
        return self.name if self.name.startswith(REMOTE) else ""

    def identity(self) -> dict[str, str]:
        found = None if self.recipe is None else source_of(self.recipe.load())
        return {"agent": self.name} | ({} if found is None else {"sha256": found["sha256"]})


def open_agent(text: str) -> Candidate:
    if is_human(text):
        return open_human(text)
    if text.startswith(REMOTE):
        return AgentCandidate(_address(text), None)
    return AgentCandidate(text, None if text in NAMED else parse_recipe(text, "agent"))


def _address(text: str) -> str:
    """Of a server, and nothing that should not stand in a report."""
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
