"""The isolation of an agent: what the user allows it, the level that holds it, and the room of each process."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from proctor.agents.human import is_human
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.core.config import RunConfig, user_path
from proctor.core.errors import UsageError
from proctor.sandbox.inside import landlock
from proctor.sandbox.isolated import IsolatedCommand, Permissions, find_level, isolate_command
from proctor.sandbox.isolation import IsolationLevel
from proctor.sandbox.worker import SOURCES

OPTION = "--isolate-agent"


class Isolation(Struct, frozen=True):
    """How the agent of a run is held."""

    level: IsolationLevel
    network: bool
    gpu: bool
    files: tuple[str, ...]
    variables: dict[str, str]

    def __str__(self) -> str:
        on = ["no network", "network"][self.network], ["no GPU", "GPU"][self.gpu]
        return f"isolated: {self.level}; {', '.join(on)}"


class Room:
    """Where one agent process after the other lives: files of the agent, read-only, and sockets that are let in."""

    def __init__(
        self,
        isolation: Isolation,
        recipe: Recipe,
        binds: Sequence[tuple[Path, str]] = (),
        readable: Sequence[str] = (),
    ) -> None:
        """`binds`: files of ours, and where they lie inside; `readable`: files that lie where they are."""
        self.isolation, self._recipe = isolation, recipe
        self._copies = tempfile.TemporaryDirectory(prefix="proctor-room-")
        shown, copied = self._agent_files()
        self._shown = (*shown, *readable)
        self._binds = (*copied, *((str(source), target) for source, target in binds))

    def enclose(self, program: list[str], handed: Sequence[int], environment: dict[str, str]) -> IsolatedCommand:
        isolation = self.isolation
        files = (*self._shown, *isolation.files)
        listable = () if self._recipe.place.endswith(".py") else tuple(map(os.path.dirname, self._shown))
        allowed = Permissions(isolation.network, isolation.gpu, files, self._binds, listable)
        given = {"PYTHONPATH": SOURCES} | isolation.variables | environment  # however Proctor was found here
        return isolate_command(isolation.level, program, handed, allowed, given)

    @property
    def search_path(self) -> list[str]:
        """As it is here; what of it is not shown is not there."""
        return [os.path.abspath(place) for place in sys.path]

    def close(self) -> None:
        self._copies.cleanup()

    def _agent_files(self) -> tuple[list[str], list[tuple[str, str]]]:
        """What lies where, and what is a copy: the agent is another user where root starts it."""
        shown: list[str] = []
        copied: list[tuple[str, str]] = []
        for place in _source_of(self._recipe):
            path = Path(place)
            if self.isolation.level.namespaces and path.is_file() and not path.stat().st_mode & 0o004:
                copy = Path(self._copies.name) / f"{len(copied)}-{path.name}"
                shutil.copyfile(path, copy)
                copy.chmod(0o644)
                copied.append((str(copy), place))
            else:
                shown.append(place)
        return shown, copied


def _source_of(recipe: Recipe) -> list[str]:
    """The file that defines the agent, or the package that it belongs to: nothing else that lies beside it."""
    if recipe.place.endswith(".py"):
        return [str(Path(recipe.place).resolve())]
    spec = importlib.util.find_spec(recipe.place.partition(".")[0])
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return [os.path.abspath(place) for place in spec.submodule_search_locations]
    return [os.path.abspath(spec.origin)] if spec.origin and os.path.exists(spec.origin) else []


def open_isolation(config: RunConfig, *, window: bool) -> Isolation | None:
    """What the run says about its agent; None if it is trusted. Raises where this machine cannot hold it."""
    if not config.isolate_agent:
        return None
    if is_human(config.agent):
        raise UsageError(f"{OPTION}: a person is no process that walls could hold: leave it out.")
    if window and not config.display.startswith("virtual"):
        raise UsageError(
            f"{OPTION}: on --display {config.display} the agent could reach every window of yours: "
            "play on a display of its own (--display virtual), or on another machine (--agent http://HOST:PORT)."
        )
    return make_isolation(
        window, config.agent_network, config.agent_gpu, config.agent_files, variables_of(config.agent_env)
    )


def make_isolation(
    window: bool,
    network: bool = False,
    gpu: bool = False,
    files: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> Isolation:
    """At the strongest level of this machine; raises where none holds an agent that is allowed all this."""
    if window and network and landlock.version() < landlock.SIGNALS_SINCE:
        raise UsageError(
            f"{OPTION}: with --agent-network this machine's other displays could be reached: that needs Landlock 6 "
            "(Linux 6.12). Leave it out, or play on another machine (--agent http://HOST:PORT)."
        )
    level = find_level(Permissions(network, gpu, binds=(("", ""),) if window else ()), OPTION)
    return Isolation(level, network, gpu, tuple(map(_shown, files)), dict(variables or {}))


def _shown(place: str) -> str:
    path = user_path(place).resolve()
    if not path.exists():
        raise UsageError(f"agent_files: there is no {place}.")
    if os.getuid() == 0 and path.stat().st_mode & 0o004 == 0:
        raise UsageError(f"agent_files: {place} can be read by its owner alone, and the agent is another user.")
    return str(path)


def variables_of(names: Sequence[str]) -> dict[str, str]:
    for name in names:
        if name not in os.environ:
            raise UsageError(f"agent_env: the environment variable {name} is not set.")
    return {name: os.environ[name] for name in names}
