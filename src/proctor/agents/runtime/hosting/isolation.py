"""The isolation of an agent: level, permissions, and the sandbox of each process."""

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
    """How the agent of a run is isolated."""

    level: IsolationLevel
    network: bool
    gpu: bool
    files: tuple[str, ...]
    variables: dict[str, str]

    def __str__(self) -> str:
        on = ["no network", "network"][self.network], ["no GPU", "GPU"][self.gpu]
        return f"isolated: {self.level}; {', '.join(on)}"


class AgentSandbox:
    """The sandbox of an agent's processes: the agent's files, read-only, and permitted sockets."""

    def __init__(
        self,
        isolation: Isolation,
        recipe: Recipe,
        binds: Sequence[tuple[Path, str]] = (),
        readable: Sequence[str] = (),
    ) -> None:
        """`binds`: files and their paths inside; `readable`: files with the same path inside."""
        self.isolation, self._recipe = isolation, recipe
        self._copies = tempfile.TemporaryDirectory(prefix="proctor-room-")
        shown, copied = self._agent_files()
        self._shown = (*shown, *readable)
        self._binds = (*copied, *((str(source), target) for source, target in binds))

    def enclose(self, program: list[str], handed: Sequence[int], environment: dict[str, str]) -> IsolatedCommand:
        isolation = self.isolation
        files = (*self._shown, *isolation.files)
        listable = () if self._recipe.source.endswith(".py") else tuple(map(os.path.dirname, self._shown))
        permissions = Permissions(isolation.network, isolation.gpu, files, self._binds, listable)
        env = {"PYTHONPATH": SOURCES} | isolation.variables | environment
        return isolate_command(isolation.level, program, handed, permissions, env)

    @property
    def search_path(self) -> list[str]:
        """sys.path of this process; folders that the sandbox does not show are missing there."""
        return [os.path.abspath(source) for source in sys.path]

    def close(self) -> None:
        self._copies.cleanup()

    def _agent_files(self) -> tuple[list[str], list[tuple[str, str]]]:
        """Returns files to show and copies to bind: started by root, the agent runs as another user."""
        shown: list[str] = []
        copied: list[tuple[str, str]] = []
        for source in _source_of(self._recipe):
            path = Path(source)
            if self.isolation.level.namespaces and path.is_file() and not path.stat().st_mode & 0o004:
                copy = Path(self._copies.name) / f"{len(copied)}-{path.name}"
                shutil.copyfile(path, copy)
                copy.chmod(0o644)
                copied.append((str(copy), source))
            else:
                shown.append(source)
        return shown, copied


def _source_of(recipe: Recipe) -> list[str]:
    """The file that defines the agent, or its whole package."""
    if recipe.source.endswith(".py"):
        return [str(Path(recipe.source).resolve())]
    spec = importlib.util.find_spec(recipe.source.partition(".")[0])
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return [os.path.abspath(source) for source in spec.submodule_search_locations]
    return [os.path.abspath(spec.origin)] if spec.origin and os.path.exists(spec.origin) else []


def open_isolation(config: RunConfig, *, window: bool) -> Isolation | None:
    """The isolation of a run's agent; None if it is trusted. Raises if this machine cannot isolate it."""
    if not config.isolate_agent:
        return None
    if is_human(config.agent):
        raise UsageError(f"{OPTION}: a person cannot be isolated: leave it out.")
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
    """Uses the strongest level of this machine; raises if none supports these permissions."""
    if window and network and landlock.version() < landlock.SIGNALS_SINCE:
        raise UsageError(
            f"{OPTION}: with --agent-network this machine's other displays could be reached: that needs Landlock 6 "
            "(Linux 6.12). Leave it out, or play on another machine (--agent http://HOST:PORT)."
        )
    level = find_level(Permissions(network, gpu, binds=(("", ""),) if window else ()), OPTION)
    return Isolation(level, network, gpu, tuple(map(_shown, files)), dict(variables or {}))


def _shown(source: str) -> str:
    path = user_path(source).resolve()
    if not path.exists():
        raise UsageError(f"agent_files: there is no {source}.")
    if os.getuid() == 0 and path.stat().st_mode & 0o004 == 0:
        raise UsageError(f"agent_files: {source} can be read by its owner alone, and the agent is another user.")
    return str(path)


def variables_of(names: Sequence[str]) -> dict[str, str]:
    for name in names:
        if name not in os.environ:
            raise UsageError(f"agent_env: the environment variable {name} is not set.")
    return {name: os.environ[name] for name in names}
