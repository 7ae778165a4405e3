"""Agents that try to forge their mark, or to see what is not theirs, and tell by raising it; and honest ones."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy

from proctor.agents import Agent, EvaluationResult, Evaluator, RemoteAgent, Task, env_lock
from proctor.agents.desktop import CALLABLES, VK, get_current_frame
from proctor.agents.desktop.interface import window_titled
from proctor.agents.desktop.names import desktop

STATE = Path(os.environ.get("FORGED_STATE", "/nonexistent"))  # the game's state: a file that the evaluator reads
SECRET = "a-key-of-the-user"


class Scored(Evaluator):
    """Success is what the state says: the agent has no honest way to change it."""

    uses_desktop = False

    def _setup_environment(self, task: Task) -> None:
        STATE.write_text("lost")

    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        return EvaluationResult(task_id=task.task_id, metrics={"success": STATE.read_text() == "won"}, notes=note)


class InMemory(Evaluator):
    """The same, in the evaluator's own memory, which a debugger could write to."""

    uses_desktop = False

    def _setup_environment(self, task: Task) -> None:
        self.state = bytearray(b"the-state-is-lost")

    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        return EvaluationResult(task_id=task.task_id, metrics={"success": self.state.endswith(b"won!")}, notes=note)


class FileForger(Agent):
    """Writes the state where the evaluator keeps it."""

    def _play_env(self, task: Task) -> bool:
        with suppress(OSError):
            STATE.write_text("won")
        return False


class MemoryForger(Agent):
    """Finds the state in the memory of every process of the harness that it can see, and overwrites it."""

    def _play_env(self, task: Task) -> bool:
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid():
                with suppress(OSError, ValueError):
                    if "proctor.agents.runtime.hosting.host" not in Path(f"/proc/{entry}/cmdline").read_text():
                        continue
                    _overwrite(entry, b"the-state-is-" + b"lost", b"the-state-is-" + b"won!")
        return False


def _overwrite(pid: str, old: bytes, new: bytes) -> None:
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if " rw-p " not in line:
            continue
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        if last - first > 64 << 20:
            continue
        with suppress(OSError, OverflowError), open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(first)
            for found in re.finditer(re.escape(old), memory.read(last - first)):
                memory.seek(first + found.start())
                memory.write(new)


class Spy(Agent):
    """Tells what it can see."""

    def _play_env(self, task: Task) -> bool:
        with env_lock:
            pass
        raise RuntimeError(json.dumps(seen()))


def seen() -> dict[str, Any]:
    places = json.loads(os.environ.get("SPIED_UPON", "{}"))
    return {
        "secret": SECRET in str(dict(os.environ)) or any(SECRET in text for text in _texts_of_processes()),
        "commands": [text for text in _texts_of_processes("cmdline") if "proctor" in text and "host" not in text],
        "store": _listed(places.get("store", "")),
        "home": _listed(places.get("home", "")),
        "beside": _listed(str(Path(__file__).parent)),
        "temporary": _listed("/tmp"),
        "network": _connects(int(places.get("port", "9"))),
        "user": os.getuid(),
    }


def _texts_of_processes(name: str = "environ") -> list[str]:
    texts = []
    for entry in _listed("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with suppress(OSError):
                texts.append(Path(f"/proc/{entry}/{name}").read_text(errors="replace"))
    return texts


def _listed(place: str) -> list[str]:
    try:
        return sorted(os.listdir(place)) if place else []
    except OSError:
        return []


def _connects(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


class Asker(Agent):
    """Is told by its environment what to look at."""

    def _play_env(self, task: Task) -> bool:
        wanted = task.success_criteria
        raise RuntimeError(json.dumps({"network": _connects(wanted["port"]), "file": _read(wanted["file"])}))


def _read(name: str) -> str:
    try:
        return Path(name).read_text()
    except OSError as error:
        return type(error).__name__


class Litterer(Agent):
    """Leaves processes behind, in sessions of their own, and files in its home."""

    def _play_env(self, task: Task) -> bool:
        home = Path(os.environ["HOME"])
        if (home / "mine").exists():
            raise RuntimeError("there are files of another episode")
        (home / "mine").touch()
        for _ in range(3):
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        if task.success_criteria.get("hang"):
            time.sleep(600)
        os.kill(os.getpid(), 9)
        return True


class Liar(Agent):
    """Says that it ended in a way that only a referee can say."""

    def _play_env(self, task: Task) -> bool:
        from proctor.agents.runtime.recording import recording

        for _ in range(100):
            recording.input("press", "RIGHT" * 5_000)  # no event is so long
        self.stop_event.set()
        return True


class Quitter(Agent):
    """Loses, and presses the key by which the user stops a run."""

    def _play_env(self, task: Task) -> bool:
        with suppress(Exception):
            CALLABLES["keyboard.press"](VK.F10)
        time.sleep(0.05)
        return True


class RightArrow(Agent):
    """Honest: looks and presses."""

    def _play_env(self, task: Task) -> bool:
        with env_lock:
            CALLABLES["window.make_active"](task.window_name)
            assert get_current_frame(task.window_name).shape == (240, 320, 3)
            CALLABLES["keyboard.press"](VK.RIGHT)
            time.sleep(0.05)
            CALLABLES["keyboard.release"](VK.RIGHT)
        return True


class Overlayer(Agent):
    """Lays a window of the winning colour over the game, draws into the game's own, and ends its connection."""

    def _play_env(self, task: Task) -> bool:
        from Xlib import X, display, error

        screen = (connection := display.Display()).screen()
        number = window_titled(desktop(), task.window_name).hWnd
        game = connection.create_resource_object("window", number)
        size = game.get_geometry()
        with suppress(error.XError):
            place = (0, 0, screen.width_in_pixels, screen.height_in_pixels)
            over = screen.root.create_window(
                *place, 0, screen.root_depth, X.InputOutput, background_pixel=0x00C800, override_redirect=True
            )
            over.map()
            connection.sync()
        with suppress(error.XError):
            paint = game.create_gc(foreground=0x00C800)
            game.fill_rectangle(paint, 0, 0, size.width, size.height)
            connection.sync()
        with suppress(error.XError):
            game.change_attributes(background_pixel=0x00C800)
            game.clear_area(0, 0, size.width, size.height)
            connection.sync()
        time.sleep(0.2)
        connection.close()
        return True


class FarRightArrow(RemoteAgent):
    """Plays from elsewhere: taps the right arrow until it sees green."""

    def act(self, frame: Any) -> list[Any] | None:
        assert frame.shape == (240, 320, 3)
        assert "DISPLAY" not in os.environ
        if frame[120, 160, 1] > 150:
            return []
        return ["RIGHT", {"do": "move", "x": 10, "y": 20}, {"do": "wait", "seconds": 0.01}]


class FarHolder(RemoteAgent):
    """Presses a key and a button, lets go of neither, and is done."""

    def act(self, frame: Any) -> list[Any] | None:
        if getattr(self, "pressed", False):
            return None
        self.pressed = True
        return [{"do": "press", "key": "RIGHT"}, {"do": "button_down"}]


class FarRaiser(RemoteAgent):
    def act(self, frame: Any) -> list[Any] | None:
        raise ValueError("it does not like the frame")


class FarHanger(RemoteAgent):
    def begin(self, task: dict[str, Any]) -> None:
        self.steps = 0

    def act(self, frame: Any) -> list[Any] | None:
        self.steps += 1
        if self.steps > 1:
            time.sleep(600)
        return []


class FarBabbler(RemoteAgent):
    def act(self, frame: Any) -> list[Any] | None:
        return [{"do": "press", "key": "NO SUCH KEY"}]


class Lever:
    """In a stepped environment: the same move again and again, and what it can see of the machine."""

    def reset(self, seed: int, world_info: Any) -> None:
        self.first = world_info.actions.first
        self.processes = [entry for entry in os.listdir("/proc") if entry.isdigit()]

    def act(self, observation: Any) -> Any:
        assert isinstance(observation, numpy.ndarray)
        if len(self.processes) > 3 or _connects(9):
            raise RuntimeError(f"it sees {len(self.processes)} processes")
        return self.first


class Steady:
    """The same move again and again."""

    def reset(self, seed: int, world_info: Any) -> None:
        self.first = world_info.actions.first

    def act(self, observation: Any) -> Any:
        assert isinstance(observation, numpy.ndarray)
        return self.first


class WorldForger:
    """Looks for the environment in its own process, where it would be by the clock `step`."""

    def act(self, observation: Any) -> int:
        import gc

        for found in gc.get_objects():
            if type(found).__name__ == "Catch":
                found.step = lambda action: (observation, 1_000.0, True, False, {"success": True})
        return 0


class Sleeper:
    def act(self, observation: Any) -> int:
        time.sleep(600)
        return 0


class Dying:
    def act(self, observation: Any) -> int:
        os._exit(7)


class Odd:
    """Its action is none."""

    def act(self, observation: Any) -> Any:
        return "nonsense"
