"""The game in a window, by the clock on the wall: a fixed time step, and a count of the frames that came too late."""

from __future__ import annotations

import os
import time

import pygame

from proctor.agents.games.hexagon.drawing import HexagonRenderer
from proctor.agents.games.hexagon.moves import MovesFile
from proctor.agents.games.hexagon.options import Options
from proctor.agents.games.hexagon.rules import TICKS, Game
from proctor.agents.games.hexagon.state import StateFile, state_of

UNSEEN = ("offscreen", "dummy", "evdev")  # what SDL falls back on where there is no display, without a word
LONGEST_STALL = 0.25  # seconds that the game makes up for; when it was kept longer than that, it was a pause


class Pace:
    """When frames are due, and how many ticks go before each."""

    def __init__(self, fps: int, now: float) -> None:
        self._fps, self._due = fps, now
        self._owed = 0  # ticks, times fps
        self.late = 0

    @property
    def due(self) -> float:
        return self._due

    def ticks(self, now: float) -> int:
        """Called when a frame begins: the ticks before it, with those of frames that were missed."""
        missed = max(0, int((now - self._due) * self._fps))
        self.late += missed
        frames = min(missed, int(LONGEST_STALL * self._fps)) + 1
        self._due += (missed + 1) / self._fps
        ticks, self._owed = divmod(self._owed + frames * TICKS, self._fps)
        return ticks


class Keys:
    """Which way the cursor is to go. A key that was only touched between two frames counts for one tick."""

    def __init__(self) -> None:
        self._held: set[int] = set()
        self._touched: set[int] = set()

    def press(self, key: int) -> None:
        self._held.add(key)
        self._touched.add(key)

    def release(self, key: int) -> None:
        self._held.discard(key)

    def direction(self) -> int:
        keys = self._held | self._touched
        self._touched.clear()
        return (pygame.K_RIGHT in keys) - (pygame.K_LEFT in keys)


class Window:
    """Space starts, the arrows steer, escape ends the program."""

    def __init__(self, options: Options) -> None:
        self._file = StateFile(options.state) if options.state else None
        self._moves = MovesFile(options.moves) if options.moves else None
        # Pictures go to the display as they are: where there is no graphics card, anything else is slower.
        os.environ.setdefault("SDL_FRAMEBUFFER_ACCELERATION", "0")
        pygame.display.init()  # and nothing else: the game makes no sound
        if pygame.display.get_driver() in UNSEEN and "SDL_VIDEODRIVER" not in os.environ:
            raise pygame.error("there is no display")
        pygame.display.set_caption(options.title)
        self._options = options
        self._surface = pygame.display.set_mode(options.size)
        self._drawing = HexagonRenderer(options.size)
        self._game = Game(options.seed, options.level, options.rounds)
        self._keys = Keys()

    def run(self) -> None:
        pace = Pace(self._options.fps, time.monotonic())
        frame = 0
        while self._take_events():
            for _ in range(pace.ticks(time.monotonic())):
                direction = self._keys.direction()
                if self._moves is not None:
                    self._moves.note(self._game, direction)
                self._game.tick(direction)
            self._drawing.draw(self._surface, self._game)
            pygame.display.flip()
            frame += 1
            if self._file is not None:
                self._file.write(state_of(self._game, frame, pace.late))
            time.sleep(max(0.0, pace.due - time.monotonic()))

    def _take_events(self) -> bool:
        """False when the program is to end."""
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                return False
            if event.type == pygame.KEYDOWN:
                if event.key == pygame.K_ESCAPE and not self._options.locked:
                    return False
                if event.key == pygame.K_SPACE:
                    self._game.start()
                self._keys.press(event.key)
            elif event.type == pygame.KEYUP:
                self._keys.release(event.key)
        return True


def run(options: Options) -> None:
    try:
        Window(options).run()
    finally:
        pygame.quit()
