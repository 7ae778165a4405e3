"""An agent as the candidate of a run."""

from __future__ import annotations

from proctor.agents.hosting.recipe import Recipe, parse_recipe
from proctor.agents.human import is_human, open_human
from proctor.candidate import Candidate
from proctor.provenance import source_of

NAMED = ("random",)


class AgentCandidate(Candidate):
    """Whoever plays: a class or function of a user's, or one that has a name here."""

    def __init__(self, name: str, recipe: Recipe | None) -> None:
        self.name, self.recipe = name, recipe

    def identity(self) -> dict[str, str]:
        found = None if self.recipe is None else source_of(self.recipe.found())
        return {"agent": self.name} | ({} if found is None else {"sha256": found["sha256"]})


def open_agent(text: str) -> Candidate:
    if is_human(text):
        return open_human(text)
    return AgentCandidate(text, None if text in NAMED else parse_recipe(text, "agent"))
