"""Agents and environments for the tests, good and bad. They are imported by the processes that host them."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy

from proctor.agents.envs.agents import RandomAgent
from proctor.agents.envs.catch import Catch, Catcher
from proctor.agents.envs.task import EnvTask
from proctor.agents.runtime.hosting.recipe import Recipe, recipe_of
from proctor.core.random import mix

FORGED = '{"ending":{"outcome":"completed","reward":99.0,"length":7,"success":true}}\n'
BAD_STEP = 3  # at which the bad ones show what they are


def policy(observation: Any) -> int:
    return Catcher().act(observation)


def left(observation: Any) -> int:
    return 0


class Faulty(Catcher):
    """Plays well, but in the second episode of a run, and there for a few steps only."""

    def reset(self, seed: int, world_info: Any) -> None:
        self._acts = 0
        told = Path("episodes-seen.txt")
        with told.open("a") as file:
            file.write(f"{seed}\n")
        self._bad = len(told.read_text().splitlines()) == 2

    def act(self, observation: Any) -> int:
        self._acts += 1
        if self._bad and self._acts == BAD_STEP:
            self.fail()
        return super().act(observation)

    def fail(self) -> None:
        raise NotImplementedError


class Raises(Faulty):
    def fail(self) -> None:
        raise RuntimeError("I give up")


class Interrupts(Faulty):
    def fail(self) -> None:
        raise KeyboardInterrupt


class Exits(Faulty):
    def fail(self) -> None:
        os._exit(7)


class Kills(Faulty):
    def fail(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Hangs(Faulty):
    def fail(self) -> None:
        threading.Event().wait()


class Oversleeps(Faulty):
    """Hangs before the episode has begun."""

    def reset(self, seed: int, world_info: Any) -> None:
        super().reset(seed, world_info)
        if self._bad:
            threading.Event().wait()


class Dreams(Faulty):
    """Hangs, and cannot be woken."""

    def fail(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        while True:
            pass


class Cheats(Faulty):
    """Not by a fault of the environment, but with an action that there is not."""

    def act(self, observation: Any) -> int:
        return 3 if self._bad else super().act(observation)

    def fail(self) -> None:
        pass


class Overflows(Cheats):
    """With a number that is as large as none."""

    def act(self, observation: Any) -> Any:
        return float("inf") if self._bad else super().act(observation)


class Hollow:
    """Looks like a number from afar."""

    def __int__(self) -> int:
        raise KeyboardInterrupt("no number at all")


class Pretends(Cheats):
    def act(self, observation: Any) -> Any:
        return Hollow() if self._bad else super().act(observation)


class Bails(Faulty):
    """Cuts its line to the environment."""

    def fail(self) -> None:
        cut_lines()


def cut_lines() -> None:
    """All connections of this process."""
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError), socket.socket(fileno=os.dup(int(name))) as found:
            if found.family == socket.AF_INET:
                found.shutdown(socket.SHUT_RDWR)


class Forges(Catcher):
    """Loses, and writes the endings of the episodes to come."""

    def reset(self, seed: int, world_info: Any) -> None:
        (run,) = Path(os.environ["PROCTOR_STORE"], "artifacts").iterdir()
        own = min(run.glob("*/events.jsonl")).read_bytes().splitlines()[0]
        ending = {"outcome": "completed", "success": True, "trace": hashlib.sha256().hexdigest()}
        for index in range(3):
            header = json.loads(own) | {"seed": mix(0, index) >> 33}
            folder = run / f"{index:06}-0-1"
            with suppress(FileExistsError):
                folder.mkdir()
                (folder / "events.jsonl").write_text(f"{json.dumps(header)}\n{json.dumps({'ending': ending})}\n")

    def act(self, observation: Any) -> int:
        return 0


class Gated(RandomAgent):
    """Stops for ever in the eighth episode, where there is a gate, which then opens."""

    def reset(self, seed: int, world_info: Any) -> None:
        super().reset(seed, world_info)
        begun = Path("begun.txt")
        with begun.open("a") as file:
            file.write(f"{seed}\n")
        if "GATE" in os.environ and len(begun.read_text().splitlines()) >= 8:
            with open(os.environ["GATE"], "w"):  # as soon as somebody looks
                threading.Event().wait()


class Floods(Catcher):
    """Says ten megabytes, and plays."""

    def act(self, observation: Any) -> int:
        sys.stdout.write("x" * 300_000)
        sys.stdout.flush()
        return super().act(observation)


class Forks(Catcher):
    """Starts a process that wants to live on, in a session of its own."""

    def reset(self, seed: int, world_info: Any) -> None:
        child = subprocess.Popen(
            [sys.executable, "-c", "import signal, sys; signal.pause()", "proctor-test-orphan"], start_new_session=True
        )
        with Path("children.txt").open("a") as file:
            file.write(f"{child.pid}\n")


class BadEnv(Catch):
    """Fails in the same step of every episode, the first time that it is played."""

    def reset(self, *, seed: int | None = None) -> Any:
        self._steps = 0
        mark = Path(f"seen-{seed}.txt")
        self._bad = not mark.exists()
        mark.touch()
        return super().reset(seed=seed)

    def step(self, action: int) -> Any:
        self._steps += 1
        if self._bad and self._steps == BAD_STEP:
            self.fail()
        return super().step(action)

    def fail(self) -> None:
        raise NotImplementedError


class RaisingEnv(BadEnv):
    def fail(self) -> None:
        raise RuntimeError("the environment is broken")


class DyingEnv(BadEnv):
    def fail(self) -> None:
        os._exit(9)


class HangingEnv(BadEnv):
    def fail(self) -> None:
        threading.Event().wait()


class BadResetEnv(Catch):
    """Fails before its first episode, and after that never again."""

    def reset(self, *, seed: int | None = None) -> Any:
        mark = Path(f"seen-{seed}.txt")
        if not Path("failed").exists():
            mark.touch()
        if mark.exists():
            Path("failed").touch()
            self.fail()
        return super().reset(seed=seed)

    def fail(self) -> None:
        raise NotImplementedError


class RaisingResetEnv(BadResetEnv):
    def fail(self) -> None:
        raise RuntimeError("the environment is broken")


class DyingResetEnv(BadResetEnv):
    def fail(self) -> None:
        os._exit(9)


class HangingResetEnv(BadResetEnv):
    def fail(self) -> None:
        threading.Event().wait()


class KnownEnv(Catch):
    """Everybody can find its process."""

    def reset(self, *, seed: int | None = None) -> Any:
        Path("env.pid").write_text(str(os.getpid()))
        return super().reset(seed=seed)

    def close(self) -> None:
        Path("env.pid").unlink()


class KillsTheEnv(Faulty):
    """In the first episode, and before its first action."""

    def reset(self, seed: int, world_info: Any) -> None:
        super().reset(seed, world_info)
        self._bad = len(Path("episodes-seen.txt").read_text().splitlines()) == 1

    def act(self, observation: Any) -> int:
        if self._bad:
            os.kill(int(Path("env.pid").read_text()), signal.SIGKILL)
        return super().act(observation)


class VagueEnv(Catch):
    """Says of its success what it is told to say."""

    def __init__(self, success: str) -> None:
        super().__init__()
        self._success = {"nan": float("nan"), "one": numpy.ones(1), "half": 0.5}.get(success, success)

    def step(self, action: int) -> Any:
        *seen, info = super().step(action)
        return *seen, info | {"success": self._success}


class UnfinishedEnv(Catch):
    """Cannot be won or lost, and never ends."""

    def step(self, action: int) -> Any:
        observation, reward, _, _, _ = super().step(action)
        if self._fallen == self.things:
            self._fallen = 0
        return observation, reward, False, False, {}


class UnheardEnv(Catch):
    """Keeps a file locked as long as an episode lasts."""

    def reset(self, *, seed: int | None = None) -> Any:
        self._lock = open("under-way", "w")  # noqa: SIM115 - closed in another call
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        return super().reset(seed=seed)

    def step(self, action: int) -> Any:
        seen = super().step(action)
        if seen[2]:
            self._lock.close()
        return seen


class Dawdles:
    """Makes up its mind when it is all over."""

    def act(self, observation: Any) -> int:
        with open("under-way", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return 0


class BailsAndDawdles(Dawdles):
    """Cuts its line to the environment, and goes on when that is over."""

    def act(self, observation: Any) -> int:
        cut_lines()
        return super().act(observation)


class OwnExam(EnvTask):
    """An exam in whatever environment the settings name."""

    def env_recipe(self, in_words: bool) -> Recipe:
        given = dict(self.settings.env_kwargs)
        return recipe_of(globals()[given.pop("kind", "Catch")], (), given)
