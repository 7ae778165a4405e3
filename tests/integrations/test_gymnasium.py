"""Environments of Gymnasium as exams: the same seed gives the same trace, in games that others wrote."""

from __future__ import annotations

import importlib.util
import json
from importlib import import_module
from pathlib import Path

import pytest

import proctor
from conftest import Serve
from helpers import needs
from helpers.videos import frames
from proctor.core import registry
from proctor.core.errors import MissingExtraError, UnknownNameError
from proctor.core.task import create_task

needs.module("gymnasium", "gym")
gymnasium = import_module("gymnasium")

GAMES = {
    "CartPole-v1": "gymnasium",
    "MountainCarContinuous-v0": "gymnasium",
    "FrozenLake-v1": "gymnasium",
    "Taxi-v4": "gymnasium",
    "Blackjack-v1": "gymnasium",
    "LunarLander-v3": "Box2D",
    "MiniGrid-DoorKey-5x5-v0": "minigrid",
    "NetHackScore-v0": "nle",
    "VizdoomBasic-v1": "vizdoom",
    "ALE/Pong-v5": "ale_py",
    "ALE/Breakout-v5": "ale_py",
}

EXTRAS = {"gymnasium": "gym", "minigrid": "minigrid", "nle": "nle", "vizdoom": "vizdoom", "ale_py": "atari"}


def require(module: str) -> None:
    if module in EXTRAS:
        needs.module(module, EXTRAS[module])
    elif importlib.util.find_spec(module) is None:
        pytest.skip(f"there is no {module}: pip install 'gymnasium[{module.lower()}]'")


ONE_OF_EACH_KIND = ("CartPole-v1", "ALE/Pong-v5")


@pytest.mark.parametrize(
    ("game", "module"),
    [pytest.param(*item, marks=() if item[0] in ONE_OF_EACH_KIND else pytest.mark.slow) for item in GAMES.items()],
)
def test_the_same_seed_gives_the_same_trace_in_another_process(
    game: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The world and the agent live in a new process for every run."""
    require(module)
    played = []
    for hash_seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", hash_seed)
        report = proctor.evaluate(f"gym/{game}", agent="random", limit=2, settings={"max_steps": 300}, film=False)
        played.append([json.loads(record.outputs[-1].text) for record in report.records()])
    first, second = played
    assert [episode["trace"] for episode in first] == [episode["trace"] for episode in second]
    assert first[0]["trace"] != first[1]["trace"], "another seed, another episode"
    assert all(episode["outcome"] == "completed" and episode["length"] > 0 for episode in first)


def test_a_game_that_has_a_goal_can_be_lost_and_won(tmp_path: Path) -> None:
    (tmp_path / "balance.py").write_text("def policy(o): return int(o[2] + 0.5 * o[3] > 0)\n")
    won = proctor.evaluate("gym/CartPole-v1", agent="balance.py:policy", limit=5, film=False)
    assert won.metrics["success"].value == 1
    assert won.metrics["length"].value == 500
    lost = proctor.evaluate("gym/CartPole-v1", agent="random", limit=5, film=False)
    assert lost.metrics["success"].value == 0
    assert lost.run.outcomes == {"completed": 5}


@pytest.mark.slow
def test_a_game_without_a_goal_is_played_until_a_reward_is_named() -> None:
    played = proctor.evaluate("gym/Pendulum-v1", agent="random", limit=2, film=False)
    assert played.run.outcomes == {"played": 2}
    assert played.metrics["success"].value is None
    named = proctor.evaluate("gym/Pendulum-v1", agent="random", limit=2, settings={"success_reward": -1e6}, film=False)
    assert named.metrics["success"].value == 1


def test_an_action_out_of_bounds_is_the_agents_fault(tmp_path: Path) -> None:
    (tmp_path / "force.py").write_text("def policy(o): return [99.0]\n")
    report = proctor.evaluate("gym/MountainCarContinuous-v0", agent="force.py:policy", limit=1, film=False)
    assert report.run.outcomes == {"agent_crash": 1}
    score = next(report.records()).score
    assert score is not None
    assert "in the ranges -1 to 1" in score.why


def test_settings_reach_the_environment() -> None:
    report = proctor.evaluate(
        "gym/FrozenLake-v1",
        agent="random",
        limit=1,
        settings={"env_kwargs": {"map_name": "8x8", "is_slippery": False}, "max_steps": 4},
        film=False,
    )
    assert report.run.config["settings"]["env_kwargs"] == {"map_name": "8x8", "is_slippery": False}


def test_a_model_reads_a_lake(serve: Serve) -> None:
    """Down, down, right, down, right, right leads over the ice that does not slip."""
    way = iter(["down", "1", "Right", "down", "right", "2"])
    server = serve(lambda body, number: next(way))
    report = proctor.evaluate(
        "gym/FrozenLake-v1",
        "openai/m",
        base_url=server.url,
        limit=1,
        settings={"env_kwargs": {"is_slippery": False}},
        film=False,
    )
    assert report.metrics["success"].value == 1
    assert report.metrics["length"].value == 6
    asked = server.requests[0]["messages"]
    assert "0 (left), 1 (down), 2 (right), 3 (up)" in asked[0]["content"]
    assert "<red:S>FFF" in asked[1]["content"]


@pytest.mark.parametrize(
    ("game", "module", "expected"),
    [
        pytest.param(
            "MiniGrid-Empty-5x5-v0",
            "minigrid",
            ("mission: get to the green goal square", "2 (forward)"),
            marks=pytest.mark.slow,
        ),
        ("ALE/Pong-v5", "ale_py", ("brightness", "0 (NOOP)")),
        ("MountainCarContinuous-v0", "gymnasium", ("[", "1 number, with commas between, in the ranges -1 to 1")),
        pytest.param("NetHackScore-v0", "nle", ("St:", "CompassDirection.N"), marks=pytest.mark.slow),
        ("Blackjack-v1", "gymnasium", (", ", "0 (stick), 1 (hit)")),
    ],
)
def test_prompt_of_a_language_model(serve: Serve, game: str, module: str, expected: tuple[str, str]) -> None:
    require(module)
    server = serve(lambda body, number: "0")
    report = proctor.evaluate(
        f"gym/{game}", "openai/m", base_url=server.url, limit=1, settings={"max_steps": 2}, film=False
    )
    assert "unreadable" not in report.metrics
    system, seen = (message["content"] for message in server.requests[0]["messages"])
    assert expected[0] in seen
    assert expected[1] in system


def test_names_versions_and_lists() -> None:
    cls = registry.load_task_class("gym/CartPole-v1")
    assert cls is registry.load_task_class("gym/CartPole-v1")
    assert registry.find_task_name(cls) == "gym/CartPole-v1"
    assert cls.version.startswith(gymnasium.__version__)
    assert "gym/CartPole-v1" in registry.expand("gym/CartPole*")
    with pytest.raises(UnknownNameError, match="did you mean gym/CartPole-v1"):
        registry.expand("gym/CartPol-v1")
    assert create_task(cls, "gym/CartPole-v1", {"fps": 10}).settings.fps == 10


@pytest.mark.parametrize(
    ("game", "module", "extra"),
    [("ALE/Pong-v5", "ale_py", "atari"), ("NetHackScore-v0", "nle", "nle"), ("VizdoomBasic-v1", "vizdoom", "vizdoom")],
)
def test_a_missing_package_names_its_extra(game: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from proctor.integrations import gymnasium as adapter

    monkeypatch.setattr(adapter, "imported", lambda name: False)
    with pytest.raises(MissingExtraError, match=rf"proctor-eval\[{extra}\]"):
        registry.expand(f"gym/{game}")


def test_an_environment_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "corridor.py").write_text(
        """
import gymnasium

class Corridor(gymnasium.Env):
    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Discrete(6)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.place, {}
    def step(self, action):
        self.place = max(0, self.place + 2 * action - 1)
        return self.place, float(self.place == 5), self.place == 5, False, {"success": self.place == 5}

gymnasium.register("Corridor-v0", Corridor, max_episode_steps=50)

def onwards(observation): return 1
"""
    )
    report = proctor.evaluate("gym/corridor:Corridor-v0", agent="corridor:onwards", limit=2, film=False)
    assert report.metrics["success"].value == 1
    assert report.metrics["length"].value == 5


@pytest.mark.parametrize(
    "game", ["FrozenLake-v1", *(pytest.param(game, marks=pytest.mark.slow) for game in ("CartPole-v1", "ALE/Pong-v5"))]
)
def test_episodes_that_can_be_drawn_have_a_video(game: str) -> None:
    """The first ones of a run, as many as the settings say."""
    require(GAMES[game])
    needs.program("ffmpeg", "ffmpeg")
    report = proctor.evaluate(f"gym/{game}", agent="random", limit=2, settings={"max_steps": 20, "filmed": 1})
    folder = Path(report.store) / "artifacts" / report.run.id
    assert [film.parent.name for film in folder.glob("*/film.mp4")] == ["000000-0-1"]
    (length, _) = (json.loads(record.outputs[-1].text)["length"] for record in report.records())
    assert frames(folder / "000000-0-1" / "film.mp4") == length + 1


def test_without_ffmpeg_it_says_why_there_is_no_video(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("proctor.agents.envs.video.shutil.which", lambda name: None)
    report = proctor.evaluate("gym/FrozenLake-v1", agent="random", limit=2)
    assert report.run.outcomes.keys() <= {"completed", "timeout"}
    assert [record.message for record in caplog.records if "video" in record.message] == [
        "gym/FrozenLake-v1: no videos: ffmpeg was not found: apt-get install ffmpeg; or leave them out with --no-film"
    ]
