"""Desktop: latency from key to pixel, cost of captures, accuracy of text recognition. Needs a quiet machine."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy
from PIL import Image, ImageDraw, ImageFont

from proctor import evaluate
from proctor.agents.desktop.display import VirtualDisplay
from proctor.agents.desktop.interface import window_titled
from proctor.agents.desktop.vk import VK
from proctor.agents.desktop.x11 import XDesktop
from proctor.agents.windows.screen_checks import find_text

RESULTS = Path(__file__).parent / "results" / "desktop.json"
PRESSES = 200
CAPTURES = 2_000
GAMES, SECONDS = 8, 60.0

# A game at 60 frames a second that shows whether space is pressed.
BLINKING = """
import pygame
pygame.display.init()
screen = pygame.display.set_mode((640, 480))
pygame.display.set_caption("Blinking")
clock = pygame.time.Clock()
while True:
    pygame.event.pump()
    screen.fill((255, 255, 255) if pygame.key.get_pressed()[pygame.K_SPACE] else (0, 0, 0))
    pygame.display.flip()
    clock.tick(60)
"""
TEXTS = ("PRESS SPACE TO RETRY", "LAST 12:34", "GAME OVER", "You win!", "SCORE 1070", "Level 12 complete")


def measure_key_to_pixel(desktop: XDesktop, environment: dict[str, str]) -> dict[str, float]:
    """Milliseconds from a key press until a capture shows it."""
    with subprocess.Popen([sys.executable, "-c", BLINKING], env=os.environ | environment) as game:
        while not any(window.title == "Blinking" for window in desktop.windows()):
            time.sleep(0.01)
        window = window_titled(desktop, "Blinking")
        desktop.activate(window)
        delays = []
        for number in range(PRESSES):
            down = number % 2 == 0
            expected = 255 if down else 0
            time.sleep(0.03 + (number % 17) / 1_000)  # at every phase of a frame
            pressed = time.perf_counter()
            desktop.key(VK.SPACE, down)
            while desktop.capture(window)[240, 320, 0] != expected:
                pass
            delays.append((time.perf_counter() - pressed) * 1e3)
        game.kill()
    return {"p50": statistics.median(delays), "p95": statistics.quantiles(delays, n=20)[-1], "max": max(delays)}


def measure_capture(desktop: XDesktop) -> float:
    """CPU milliseconds of a 640×480 capture as an array."""
    desktop.capture()
    begun = time.process_time()
    for _ in range(CAPTURES):
        desktop.capture()
    return (time.process_time() - begun) / CAPTURES * 1e3


def make_screens() -> list[tuple[str, numpy.ndarray[Any, Any]]]:
    """End screens: six texts, two fonts, four sizes, quiet and busy."""
    fonts = sorted(Path("/usr/share/fonts").rglob("DejaVuSans*.ttf"))
    made = []
    for text in TEXTS:
        for size in (18, 26, 34, 42):
            for bold in (False, True):
                for busy in (False, True):
                    image = Image.new("RGB", (640, 480), (30, 30, 60))
                    draw = ImageDraw.Draw(image)
                    generator = numpy.random.default_rng(size)
                    for _ in range(80 * busy):
                        x, y, width, height = (int(part) for part in generator.integers(0, 640, 4))
                        colour = tuple(int(part) for part in generator.integers(10, 130, 3))
                        draw.rectangle((x, y, x + width // 4, y + height // 4), fill=colour)
                    font = ImageFont.truetype(str(fonts[0]), size) if bold and fonts else ImageFont.load_default(size)
                    draw.text((20, 220), text, font=font, fill=(255, 255, 255))
                    made.append((text, numpy.asarray(image)))
    return made


def measure_recognition() -> dict[str, int]:
    shown = make_screens()
    return {"screens": len(shown), "read": sum(find_text(frame, [text])[0][0] for text, frame in shown)}


def measure_games() -> dict[str, Any]:
    """Concurrent games at 30 frames a second, each with an agent: frames shown, actions late."""
    with tempfile.TemporaryDirectory() as folder:
        report = evaluate(
            "agents/hexagon",
            agent="proctor.agents.games.hexagon.window_players:ReferenceAgent",
            limit=GAMES,
            parallel=GAMES,
            film=False,
            settings={"timeout": SECONDS, "fps": 30, "survive": SECONDS - 1},
            store=folder,
        )
        episodes = [record.score.answer for record in report.records() if record.score is not None]
    rates = [episode["frames"] / episode["task_elapsed_time"] for episode in episodes]
    late = sum(episode["late_frames"] for episode in episodes) / sum(episode["frames"] for episode in episodes)
    return {"games": len(episodes), "fps_least": min(rates), "fps_mean": statistics.mean(rates), "late_share": late}


def main() -> None:
    display = VirtualDisplay()
    display.start()
    desktop = XDesktop(display.name, display.authority)
    try:
        result: dict[str, Any] = {
            "key_to_pixel_ms": measure_key_to_pixel(desktop, display.environment),
            "capture_cpu_ms": measure_capture(desktop),
            "reading": measure_recognition(),
            "many_games": measure_games(),
        }
    finally:
        desktop.close()
        display.close()
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    delays = result["key_to_pixel_ms"]
    print("| measure | target | proctor |\n|---|---|---|")
    shown = f"{delays['p50']:.1f}, {delays['p95']:.1f} ms"
    print(f"| key to changed pixel, 60 fps, 640×480: p50, p95 | ≤ 17, ≤ 35 ms | {shown} |")
    print(f"| capture to numpy, 640×480 | ≤ 0.3 ms CPU | {result['capture_cpu_ms']:.3f} ms |")
    print(f"| end screens read | 48 of 48 | {result['reading']['read']} of {result['reading']['screens']} |")
    games = result["many_games"]
    summary = f"{games['fps_least']:.1f} at least, {games['late_share']:.1%} late"
    print(f"| {games['games']} games at 30 fps, {SECONDS:g} s, no video | ≥ 29.5 fps each, ≤ 1 % late | {summary} |")


if __name__ == "__main__":
    main()
