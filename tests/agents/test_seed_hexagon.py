"""The guide's own agent and evaluator in a real window: focus, space, right arrow, game over seen, score read."""

# ruff: noqa: E402 - where something is missing, the reason for the skip comes before the imports

from __future__ import annotations

import base64
import io
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy
import pytest
from aiohttp import web
from PIL import Image

from helpers import needs

for module in ("Xlib", "pygame", "rapidocr"):
    needs.module(module, "desktop")
needs.program("Xvfb", "xvfb")

from test_desktop import until

from conftest import Serve
from helpers.seed_classes import responses_api, the_seeds_own_classes
from proctor.agents import EpisodeOutcome, EvaluationResult, Task, run_evaluation_client_with_server
from proctor.agents.desktop.display import VirtualDisplay
from proctor.agents.desktop.x11 import XDesktop
from proctor.agents.windows.screen_checks import read_text, shows_text

LOCAL = "127.0.0.1"


@pytest.mark.slow
def test_the_guides_example_plays_hexagon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Serve) -> None:
    reading = threading.Lock()

    def look(body: dict[str, Any], _: int) -> web.Response:
        """A service that really reads the picture."""
        question, picture = body["input"][0]["content"]
        data = base64.b64decode(picture["image_url"].partition(",")[2])
        frame = numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        with reading:
            lines = read_text(frame)
        if "What is the score" not in question["text"]:
            return responses_api(body["model"], "Yes." if shows_text(lines, "PRESS SPACE TO RETRY") else "No.")
        found = re.search(r"LAST\W*(\d+)\W(\d+)", " ".join(lines))
        score = int(found[1]) + int(found[2]) / 100 if found else -1
        return responses_api(body["model"], json.dumps({"score": score}))

    agent, evaluator = the_seeds_own_classes(tmp_path, monkeypatch, "proctor.agents.desktop")
    display = VirtualDisplay()
    display.start()
    for name, value in display.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENAI_BASE_URL", serve(look).url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    desktop = XDesktop(display.name, display.authority)
    report = tmp_path / "report.jsonl"
    game = [sys.executable, "-m", "proctor.agents.games.hexagon", "--title", "Super Hexagon", "--seed", "1"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        with subprocess.Popen(game, env=environment) as process:
            until(lambda: any("Super Hexagon" in window.title for window in desktop.windows()))
            task = Task(
                env_name="Super Hexagon",
                window_name="Super Hexagon",
                timeout=300,
                success_criteria={"time_survived": 0.5},
            )
            result = run_evaluation_client_with_server(
                task, LOCAL, 0, LOCAL, 0, agent=agent, evaluator=evaluator, report=report
            )
            process.kill()
    finally:
        desktop.close()
        display.close()
    assert result.outcome is EpisodeOutcome.COMPLETED, result.notes
    assert result.metrics["score"] > 0.5
    assert result.metrics["success"] is True
    (line,) = report.read_text().splitlines()
    assert EvaluationResult.model_validate_json(line) == result
