"""The environments of Gymnasium as tasks, including those of other packages."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from types import ModuleType
from typing import Any, ClassVar, cast

from msgspec import Struct

from proctor.agents.envs.observations import in_words, without_escapes
from proctor.agents.envs.task import EnvTask
from proctor.agents.runtime.hosting.recipe import Recipe, with_arguments
from proctor.core.errors import MissingExtraError, UsageError
from proctor.core.extras import import_extra

FAMILY = "gym"
RGB = "rgb_array"  # the render mode that returns images
REVISION = 2  # of this adapter; incremented when scores may change


class Package(Struct, frozen=True):
    """A package that registers environments on import."""

    module: str
    extra: str
    prefixes: tuple[str, ...]  # of the names of its environments


PACKAGES = (
    Package("ale_py", "atari", ("ALE/",)),
    Package("minigrid", "minigrid", ("MiniGrid-", "BabyAI-")),
    Package("vizdoom.gymnasium_wrapper", "vizdoom", ("Vizdoom",)),
    Package("nle", "nle", ("NetHack",)),
)

# Meanings of actions that environments do not declare.
ACTION_NAMES = {
    "Acrobot": ("push back", "nothing", "push forward"),
    "Blackjack": ("stick", "hit"),
    "CartPole": ("left", "right"),
    "CliffWalking": ("up", "right", "down", "left"),
    "FrozenLake": ("left", "down", "right", "up"),
    "LunarLander": ("nothing", "left engine", "main engine", "right engine"),
    "MountainCar": ("left", "nothing", "right"),
    "Taxi": ("down", "up", "right", "left", "pick up", "drop off"),
}
# Any reward means that a grid is solved, though its registration has no threshold.
LEAST_REWARD = 1e-9
WINNING_REWARDS = {"MiniGrid-": LEAST_REWARD, "BabyAI-": LEAST_REWARD}


class GymnasiumEnv:
    """An environment, with what a language model needs to play it."""

    def __init__(self, id: str, in_words: bool, **kwargs: Any) -> None:  # noqa: A002 - Gymnasium's word
        gymnasium = library()
        spec = registered(id)
        if spec is None:
            raise UsageError(f"Gymnasium has no environment {id!r}.")
        if in_words and "ansi" in render_modes(spec):
            kwargs.setdefault("render_mode", "ansi")
        kwargs.setdefault("disable_env_checker", True)  # the checker is slow
        self._env = env = gymnasium.make(id, **kwargs)
        self.reset, self.step, self.action_space = env.reset, env.step, env.action_space
        self.render, self.metadata = env.render, env.metadata
        if hasattr(env.unwrapped, "nethack"):
            self.reset = self._reset_nethack
        self.action_names = action_names(env.unwrapped, id)
        threshold = next((value for name, value in WINNING_REWARDS.items() if id.startswith(name)), None)
        self.spec = Threshold(env.spec.reward_threshold if threshold is None else threshold)

    def _reset_nethack(self, *, seed: int) -> Any:
        self._env.unwrapped.seed(core=seed, disp=seed, reseed=False)  # reset(seed=…) does not reach the game
        return self._env.reset(seed=seed)

    def text(self, observation: Any) -> str:
        """The text rendering of the environment, if it has one, else a description."""
        inner = self._env.unwrapped
        if isinstance(observation, dict) and "tty_chars" in observation:
            rows = (bytes(row).decode(errors="replace").rstrip() for row in observation["tty_chars"])
            return "\n".join(rows).strip("\n")
        if self._env.render_mode == "ansi":
            drawn = self._env.render()
            shown = without_escapes(drawn if isinstance(drawn, str) else drawn.getvalue())
            return shown if isinstance(observation, dict) else f"{shown.rstrip()}\nstate: {in_words(observation)}"
        if hasattr(inner, "pprint_grid"):
            return f"{inner.pprint_grid()}\nmission: {inner.mission}"
        return in_words(observation)


class Threshold(Struct, frozen=True):
    reward_threshold: float | None


def render_modes(spec: Any) -> list[str]:
    creator = spec.entry_point
    if isinstance(creator, str):
        creator = library().envs.registration.load_env_creator(creator)
    return list(getattr(creator, "metadata", {}).get("render_modes", ()))


def action_names(env: Any, id: str) -> tuple[str, ...]:  # noqa: A002
    if hasattr(env, "get_action_meanings"):
        return tuple(map(str, env.get_action_meanings()))
    given = getattr(env, "actions", ())
    if isinstance(given, Iterable) and all(isinstance(action, Enum) for action in given):
        names = [action.name for action in given]
        full = (f"{type(action).__name__}.{action.name}" for action in given)  # if names repeat
        if names:
            return tuple(long if names.count(name) > 1 else name for name, long in zip(names, full, strict=True))
    return ACTION_NAMES.get(id.partition("-")[0], ())


@cache
def library() -> ModuleType:
    return cast(ModuleType, import_extra("gymnasium", f"{FAMILY}/ENV_ID", FAMILY))


def registered(id: str) -> Any:  # noqa: A002
    """The spec of an environment, after importing its package; None if unknown."""
    known = library().envs.registry
    module, colon, name = id.rpartition(":")  # module:ENV_ID is an environment of the user
    if colon:
        if "" not in sys.path:
            sys.path.insert(0, "")  # the working directory, as for `python -m`
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise UsageError(f"{FAMILY}/{id}: {module} cannot be imported: {error}.") from None
        return known.get(name)
    for package in PACKAGES:
        if id.startswith(package.prefixes) and not imported(package.module):
            raise MissingExtraError(f"{FAMILY}/{id}", package.extra)
    return known.get(id)


@cache
def imported(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


class GymnasiumTask(EnvTask):
    """An environment of Gymnasium; `task_class` creates a subclass for each."""

    environment: ClassVar[str]

    def env_recipe(self, in_words: bool) -> Recipe:
        given = self.settings.env_kwargs | {"id": self.environment, "in_words": in_words}
        return with_arguments(__name__, GymnasiumEnv.__name__, **given)

    def rendered_env_recipe(self) -> Recipe | None:
        asked = self.settings.env_kwargs.get("render_mode", RGB)
        if asked != RGB or RGB not in render_modes(registered(self.environment)):
            return None
        given = self.settings.env_kwargs | {"id": self.environment, "in_words": False, "render_mode": RGB}
        return with_arguments(__name__, GymnasiumEnv.__name__, **given)


@cache
def task_class(id: str) -> type[GymnasiumTask]:  # noqa: A002
    spec = registered(id)
    entry = spec.entry_point if isinstance(spec.entry_point, str) else spec.entry_point.__module__
    home = entry.partition(":")[0].partition(".")[0]
    packages = dict.fromkeys(("gymnasium", *distributions().get(home, ())))
    members = {
        "__module__": __name__,
        "environment": id,
        "version": "-".join([*filter(None, map(_version, packages)), str(REVISION)]),
        "summary": f"an environment of {home}",
        "packages": (*packages, "numpy"),
    }
    return type(id, (GymnasiumTask,), members)


@cache
def distributions() -> Mapping[str, list[str]]:
    """The packages of each module; cached, because the lookup takes 0.1 s."""
    return packages_distributions()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


class Environments(Mapping[str, type[GymnasiumTask]]):
    """All environments by ID, looked up on demand."""

    def __getitem__(self, id: str) -> type[GymnasiumTask]:  # noqa: A002
        if registered(id) is None:
            raise KeyError(id)
        return task_class(id)

    def __iter__(self) -> Iterator[str]:
        for package in PACKAGES:
            imported(package.module)
        return iter(sorted(library().envs.registry))

    def __len__(self) -> int:
        return sum(1 for _ in self)


ENVIRONMENTS = Environments()
