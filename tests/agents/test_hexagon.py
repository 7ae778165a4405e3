"""Hexagon: its rules, that every wall can be survived, its picture, its step mode and its players."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from hashlib import sha256
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Command
from helpers.paths import CHECKOUT, TESTS
from proctor.agents.games.hexagon.env import SHOWN, Hexagon
from proctor.agents.games.hexagon.look import HALF_HEIGHT, PALETTES
from proctor.agents.games.hexagon.patterns import ALL, LANES, PATTERNS, THIN, mirrored, only, turned, walls
from proctor.agents.games.hexagon.players import ImagePlayer, LanePlayer, RandomPlayer
from proctor.agents.games.hexagon.rules import (
    CURSOR,
    LANE,
    LEFT,
    LEVELS,
    RIGHT,
    STEP,
    STRAIGHT,
    TICKS,
    TURN,
    Field,
    Game,
    Phase,
    Ring,
    clock,
    is_hit,
    moved,
    room,
)
from proctor.agents.games.hexagon.state import SLOT, StateFile, read_state, state_of
from proctor.core.random import Stream

pygame = pytest.importorskip("pygame", reason="the extra desktop is not installed: pip install 'proctor-eval[desktop]'")

from proctor.agents.games.hexagon.drawing import HexagonRenderer  # noqa: E402
from proctor.agents.games.hexagon.window import LONGEST_STALL, Keys, Pace  # noqa: E402

PLACES = range(0, TURN, STEP)
SEEDS = st.integers(0, 2**31 - 1)
INPUTS = st.lists(st.sampled_from((LEFT, STRAIGHT, RIGHT)), max_size=150)


def started(seed: int, level: int = 1) -> Game:
    game = Game(seed, level)
    game.start()
    return game


# The rules


def spawned_walls() -> set[int]:
    """Every arrangement of walls that any pattern can bring."""
    shapes = {blocked for pattern in PATTERNS for seed in range(30) for blocked, _ in pattern(Stream(seed))}
    return {
        turned(shape, turn) for blocked in shapes for shape in (blocked, mirrored(blocked)) for turn in range(LANES)
    }


def test_every_ring_has_a_wall_and_a_gap() -> None:
    assert all(0 < blocked < ALL for blocked in spawned_walls())
    assert {blocked for blocked, _ in islice(walls(Stream(1)), 3_000)} <= spawned_walls()


class Wanderers:
    """All players at once: from each place that was possible at the last wall, every place where one may be now."""

    def __init__(self, rings: Iterable[Ring]) -> None:
        self._rings = rings
        self._known: dict[int, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = {}
        self.reach = np.eye(len(PLACES), dtype=np.float32)[self._here()[1] > 0]

    def _here(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """From where to where a player can go, and where one is not hit: by the rules, for the ring that is passing."""
        passing = next((ring.blocked for ring in self._rings if ring.is_passing), 0)
        if passing not in self._known:
            ways = np.zeros((len(PLACES), len(PLACES)), np.float32)
            for place, way in product(PLACES, (LEFT, STRAIGHT, RIGHT)):
                ways[place // STEP, moved(place, way, self._rings) // STEP] = 1
            alive = np.array([not is_hit(place, self._rings) for place in PLACES], np.float32)
            self._known[passing] = ways, alive
        return self._known[passing]

    def move(self) -> None:
        self.reach = np.minimum(self.reach @ self._here()[0], 1)

    def meet_walls(self) -> None:
        self.reach *= self._here()[1]

    def all_live(self) -> bool:
        return bool(self.reach.any(axis=1).all())

    def start_anew(self) -> None:
        self.reach = np.eye(len(PLACES), dtype=np.float32)[self.reach.any(axis=0)]


@pytest.mark.parametrize("level", [1, *(pytest.param(level, marks=pytest.mark.slow) for level in LEVELS if level > 1)])
def test_after_every_wall_every_other_can_be_passed_from_every_place(level: int) -> None:
    speed = LEVELS[level].speed
    seconds = spawned_walls()
    firsts = {
        min(turned(blocked, turn) for turn in range(LANES)) for blocked in seconds
    }  # to turn both changes nothing
    for first, second, begun in product(firsts | {0}, seconds, (0, speed - 1)):
        near = Ring(first, CURSOR - begun, THIN)
        rings = [near, Ring(second, near.outer + room(first, second, LEVELS[level]), THIN)]
        wanderers = Wanderers(rings)
        assert len(wanderers.reach) == len(PLACES) - 8 * first.bit_count()
        while not rings[1].is_passing:
            wanderers.move()
            for ring in rings:
                ring.inner -= speed
            wanderers.meet_walls()
        assert wanderers.all_live(), (bin(first), bin(second))


@settings(max_examples=20)
@given(seed=SEEDS, level=st.sampled_from(sorted(LEVELS)))
def test_a_perfect_player_is_never_lost(seed: int, level: int) -> None:
    field = Field(seed, LEVELS[level])
    wanderers = Wanderers(field.rings)
    met = None
    for _ in range(10 * TICKS):
        wanderers.move()
        field.advance()
        wanderers.meet_walls()
        passing = next((ring for ring in field.rings if ring.is_passing), None)
        if passing is not None and passing is not met:
            assert wanderers.all_live()
            wanderers.start_anew()
            met = passing
    assert met is not None


@given(seed=SEEDS, level=st.sampled_from(sorted(LEVELS)), inputs=INPUTS)
def test_same_seed_and_inputs_same_game(seed: int, level: int, inputs: list[int]) -> None:
    def trace() -> list[Any]:
        game = started(seed, level)
        seen = []
        for direction in inputs:
            game.tick(direction)
            field = game.round.field
            rings = [(ring.blocked, ring.inner, ring.thickness) for ring in field.rings]
            seen.append((game.phase, game.round.cursor, field.rotation, rings))
        return seen

    assert trace() == trace()


def play_on(game: Game) -> None:
    """To the end of the round, without a key."""
    while game.phase is Phase.PLAYING:
        game.tick(STRAIGHT)


def test_seeds_and_rounds_differ() -> None:
    first = [[blocked for blocked, _ in islice(walls(Stream(seed)), 20)] for seed in range(20)]
    assert len({tuple(walls) for walls in first}) == 20
    game = started(5)
    before = game.round.field.rings[0].blocked, game.round.field.rings[-1].blocked
    play_on(game)
    rounds = set()
    for _ in range(5):
        game.start()
        rounds.add(tuple(ring.blocked for ring in game.round.field.rings))
        play_on(game)
    assert len(rounds | {before}) > 2


def test_a_wall_at_the_side_stops_and_one_in_front_kills() -> None:
    beside = Ring(only(1), CURSOR - 100, THIN)
    edge = LANE - STEP
    assert moved(edge, RIGHT, [beside]) == edge
    assert moved(edge, LEFT, [beside]) == edge - STEP
    assert moved(0, LEFT, []) == TURN - STEP
    assert not is_hit(edge, [beside])
    assert is_hit(LANE, [beside])
    assert not is_hit(LANE, [Ring(only(1), CURSOR + 1, THIN)])
    assert not is_hit(LANE, [Ring(only(1), CURSOR - THIN, THIN)])


def test_a_game_from_start_to_retry() -> None:
    game = Game(3)
    game.tick(RIGHT)
    assert (game.phase, game.round.ticks, game.last) == (Phase.READY, 0, None)
    lengths = []
    for number in range(1, 4):
        game.start()
        game.tick(RIGHT)
        game.start()  # under way: this changes nothing
        assert game.round.ticks == 1
        while game.phase is Phase.PLAYING:
            game.tick(RIGHT if number % 2 else STRAIGHT)
        lengths.append(game.round.ticks)
        assert (game.played, game.last, game.best) == (number, lengths[-1], max(lengths))
        game.tick(LEFT)
        assert game.round.ticks == lengths[-1]


def test_rounds_are_counted() -> None:
    game = Game(3, rounds=1)
    game.start()
    while game.phase is Phase.PLAYING:
        game.tick(STRAIGHT)
    game.start()
    assert game.phase is Phase.OVER


@pytest.mark.parametrize(
    ("ticks", "shown"), [(0, "00:00"), (1, "00:01"), (59, "00:98"), (60, "01:00"), (6_030, "100:50")]
)
def test_the_clock_shows_seconds_and_hundredths(ticks: int, shown: str) -> None:
    assert clock(ticks) == shown


def test_levels_become_harder() -> None:
    speeds, graces = zip(*((level.speed, level.grace) for level in LEVELS.values()), strict=True)
    assert list(speeds) == sorted(set(speeds))
    assert list(graces) == sorted(set(graces), reverse=True)
    with pytest.raises(ValueError, match="levels are 1, 2, 3, 4, 5, not 6"):
        Game(0, 6)


# The picture


def frames(seed: int, level: int, inputs: list[int], size: tuple[int, int]) -> str:
    game, drawing, seen = started(seed, level), HexagonRenderer(size), sha256()
    for direction in inputs:
        game.tick(direction)
        seen.update(drawing.frame(game).tobytes())
    return seen.hexdigest()


@settings(max_examples=8)
@given(seed=SEEDS, level=st.sampled_from(sorted(LEVELS)), inputs=INPUTS)
def test_same_seed_and_inputs_same_frames(seed: int, level: int, inputs: list[int]) -> None:
    assert frames(seed, level, inputs, (160, 120)) == frames(seed, level, inputs, (160, 120))


def test_same_frames_in_another_process() -> None:
    inputs = [RIGHT, RIGHT, STRAIGHT, LEFT] * 20
    program = (
        f"import sys; sys.path[:0] = {[str(TESTS), str(TESTS / 'agents')]!r}\n"
        f"from test_hexagon import frames; print(frames(7, 3, {inputs}, (320, 240)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == frames(7, 3, inputs, (320, 240))


@pytest.mark.parametrize("level", LEVELS)
def test_walls_and_gaps_are_drawn_where_the_rules_have_them(level: int) -> None:
    game, player = started(11, level), LanePlayer()
    env = Hexagon(level)
    observation, _ = env.reset(seed=11)
    seen = 0
    for tick in range(400):
        action = player.act(observation)
        observation = env.step(action)[0]
        game.tick((STRAIGHT, LEFT, RIGHT)[action])
        if tick % 10:
            continue
        frame = HexagonRenderer().frame(game)
        swelling = HexagonRenderer._swelling(game)
        for ring, lane in product(game.round.field.rings, range(LANES)):
            middle = ring.inner + ring.thickness / 2
            if not CURSOR + 1_000 < middle < HALF_HEIGHT * 0.8:
                continue
            angle = np.deg2rad((lane * LANE + LANE / 2 + game.round.field.rotation) / 10)
            length = middle / HALF_HEIGHT * 240 * swelling
            pixel = frame[round(240 - np.cos(angle) * length), round(320 + np.sin(angle) * length)]
            assert (tuple(pixel) == PALETTES[level].wall) == bool(ring.blocked >> lane & 1)
            seen += 1
    assert seen > 100


def text_is_shown(frame: np.ndarray[Any, Any], text: str, height: float) -> bool:
    """Whether these words stand somewhere in the frame, pixel by pixel."""
    font = pygame.font.Font(None, round(480 * height * 1.4))
    words = font.render(text, True, (255, 255, 255), (10, 10, 16))
    pixels = np.frombuffer(pygame.image.tobytes(words, "RGB"), np.uint8).reshape(words.get_height(), -1, 3)
    lit = np.argwhere(pixels[:, :, 0] == 255)
    low, high = lit.min(axis=0), lit.max(axis=0) + 1
    template = pixels[low[0] : high[0], low[1] : high[1]]
    windows = np.lib.stride_tricks.sliding_window_view(frame[:, :, 0], template.shape[:2])
    row = windows[:, :, template.shape[0] // 2]
    candidates = np.argwhere((row == template[template.shape[0] // 2, :, 0]).all(axis=2))
    return any(np.array_equal(frame[y : y + len(template), x : x + template.shape[1]], template) for y, x in candidates)


def test_the_words_of_every_phase() -> None:
    game, drawing = Game(3), HexagonRenderer()
    middle, big, small = 1 / 11, 1 / 6, 1 / 15
    assert text_is_shown(drawing.frame(game), "PRESS SPACE TO START", middle)
    game.start()
    for _ in range(75):
        game.tick(STRAIGHT)
    assert text_is_shown(drawing.frame(game), "TIME 01:25", small)
    assert not text_is_shown(drawing.frame(game), "TIME 01:26", small)
    while game.phase is Phase.PLAYING:
        game.tick(STRAIGHT)
    frame = drawing.frame(game)
    assert text_is_shown(frame, "GAME OVER", big)
    assert text_is_shown(frame, f"LAST {clock(game.round.ticks)}", middle)
    assert text_is_shown(frame, f"BEST {clock(game.round.ticks)}", middle)
    assert text_is_shown(frame[400:], "PRESS SPACE TO RETRY", middle)


# Step mode


def play(env: Hexagon, player: Any, seed: int) -> tuple[float, dict[str, Any]]:
    observation, info = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        observation, reward, terminated, truncated, info = env.step(player.act(observation))
        total += reward
        over = terminated or truncated
    return total, info


def test_the_reference_survives_and_chance_does_not() -> None:
    env = Hexagon(longest=61.0)
    assert min(play(env, LanePlayer(), seed)[0] for seed in range(20)) >= 60
    chance = [play(env, RandomPlayer(), seed)[0] for seed in range(20)]
    assert max(chance) < 10


@pytest.mark.parametrize("level", sorted(LEVELS)[1:])
def test_the_reference_survives_at_every_level(level: int) -> None:
    assert all(play(Hexagon(level), LanePlayer(), seed)[1]["is_success"] for seed in range(3))


@pytest.mark.parametrize("level", [1, 5])
def test_the_picture_is_enough(level: int) -> None:
    env = Hexagon(level, "pixels", survive=8, longest=8, size=(320, 240))
    assert play(env, ImagePlayer(), 4)[1]["is_success"]


def test_reward_is_the_time_survived() -> None:
    total, info = play(Hexagon(ticks_per_step=7), RandomPlayer(), 2)
    assert total == pytest.approx(info["survived"])
    assert not info["is_success"]


def test_an_episode_ends_when_it_has_lasted_long_enough() -> None:
    env = Hexagon(survive=1.0, longest=1.5)
    env.reset(seed=1)
    steps = [env.step(0) for _ in range(90)]
    assert [step[4]["is_success"] for step in steps] == [False] * 59 + [True] * 31
    assert [step[3] for step in steps] == [False] * 89 + [True]
    assert not any(step[2] for step in steps)


@given(seed=SEEDS, level=st.sampled_from(sorted(LEVELS)), actions=st.lists(st.integers(0, 2), max_size=150))
def test_the_vector_is_within_its_space(seed: int, level: int, actions: list[int]) -> None:
    env = Hexagon(level)
    observation, _ = env.reset(seed=seed)
    for action in actions:
        space = env.observation_space
        assert (observation.shape, observation.dtype) == (space.shape, space.dtype)
        assert (observation >= space.low).all()
        assert (observation <= space.high).all()
        rings = observation[1:].reshape(SHOWN, -1)
        assert (np.diff(rings[:, 0]) >= 0).all()  # the nearest first
        observation = env.step(action)[0]


def test_the_picture_is_within_its_space() -> None:
    env = Hexagon(observation="pixels", size=(320, 200))
    observation, _ = env.reset(seed=1)
    assert (observation.shape, observation.dtype) == (env.observation_space.shape, env.observation_space.dtype)


def test_the_words_say_where_to_go() -> None:
    env = Hexagon(ticks_per_step=8)
    observation, _ = env.reset(seed=3)
    text = env.text(observation)
    assert "You are in lane 0, at 0.50." in text
    assert "right moves you 1 lanes up" in text
    gaps = [lane for lane in range(LANES) if not observation[3 + lane]]
    assert f"A wall reaches you in 1.67 s; open lanes: {', '.join(map(str, gaps))}." in text
    blocked = Hexagon(observation="pixels")
    assert blocked.text(blocked.reset(seed=3)[0]).splitlines()[1:] == text.splitlines()[1:]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"level": 9}, "levels are"),
        ({"observation": "sound"}, "'state' or 'pixels'"),
        ({"ticks_per_step": 0}, "at least one tick"),
        ({"survive": 61.0}, "at most longest"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Hexagon(**options)


# The program's keys and clock, its state file, its options


def test_a_touch_counts_for_one_tick_and_two_keys_for_none() -> None:
    keys = Keys()
    assert keys.direction() == STRAIGHT
    keys.press(pygame.K_RIGHT)
    assert [keys.direction(), keys.direction()] == [RIGHT, RIGHT]
    keys.release(pygame.K_RIGHT)
    assert keys.direction() == STRAIGHT
    keys.press(pygame.K_LEFT)
    keys.release(pygame.K_LEFT)
    assert [keys.direction(), keys.direction()] == [LEFT, STRAIGHT]
    keys.press(pygame.K_LEFT)
    keys.press(pygame.K_RIGHT)
    assert keys.direction() == STRAIGHT


@pytest.mark.parametrize("fps", [25, 30, 60, 144])
def test_frames_on_time_make_sixty_ticks_a_second(fps: int) -> None:
    pace = Pace(fps, 100.0)
    assert sum(pace.ticks(100.0 + frame / fps + 0.001) for frame in range(10 * fps)) == 10 * TICKS
    assert pace.late == 0


def test_late_frames_are_counted_and_made_up_for_but_a_pause_is_not() -> None:
    pace = Pace(60, 0.0)
    assert pace.ticks(0.0) == 1
    assert pace.ticks(1 / 60 + 3.5 / 60) == 4
    assert pace.late == 3
    assert pace.due == pytest.approx(5 / 60)
    assert pace.ticks(5 / 60 + 20.001) == int(LONGEST_STALL * 60) + 1
    assert pace.late == 3 + 20 * 60


def test_the_state_file_is_whole_at_every_moment(tmp_path: Path) -> None:
    path = tmp_path / "state"
    assert read_state(path) is None
    file, game = StateFile(str(path)), started(3)
    assert read_state(path) is None
    for frame in range(1, 4):
        game.tick(RIGHT)
        file.write(state_of(game, frame, 0))
        assert read_state(path) == state_of(game, frame, 0)
    content = bytearray(path.read_bytes())
    content[40:60] = bytes(20)  # as if the third frame were being written
    path.write_bytes(content)
    state = read_state(path)
    assert state is not None
    assert (state.frame, state.tick, state.survived, state.phase) == (2, 2, 2 / TICKS, Phase.PLAYING)
    assert len(content) == 2 * SLOT


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--size", "640"], "'640' is no size: write 640x480"),
        (["--size", "10x10"], "of 160 to 4096 each"),
        (["--fps", "0"], "'0' is no number from 1 to 240"),
        (["--level", "7"], "invalid choice"),
        (["--rounds", "many"], "'many' is no number"),
    ],
)
def test_bad_options_are_one_sentence(proctor: Command, arguments: list[str], why: str) -> None:
    done = proctor("play", "hexagon", *arguments)
    assert done.returncode == 2
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_python_of_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    guide = CHECKOUT / "docs" / "hexagon.md"
    (block,) = re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)
    exec(compile(block, str(guide), "exec"), {})
    assert capsys.readouterr().out == "{'is_success': True, 'survived': 60.0}\n"
