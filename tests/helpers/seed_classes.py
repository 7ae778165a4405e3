"""The classes of the guide that Proctor's agents come from, and the service that they ask."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from helpers.paths import CHECKOUT

SEED = CHECKOUT.parent / "shared" / "seeds" / "agent-evaluator.txt"
IMPORTS = """
import json, logging, time
from openai import OpenAI
from proctor.agents import TIMES, Agent, EvaluationResult, Evaluator, Task, env_lock
from {desktop} import CALLABLES, LISTENERS, VK, KeyboardEvent, activate_module, get_current_frame_base64
logger = logging.getLogger(__name__)
"""


def the_seeds_own_classes(folder: Path, monkeypatch: pytest.MonkeyPatch, desktop: str) -> tuple[Any, Any]:
    """The code of the document itself, with nothing but its imports before it."""
    if not SEED.is_file():
        pytest.skip(f"there is no ../shared/seeds/{SEED.name} beside the project")
    blocks = [block.partition("```")[0] for block in SEED.read_text().split("```python\n")[1:3]]
    name = f"from_the_seed_{desktop.rpartition('.')[2]}"
    (folder / f"{name}.py").write_text(IMPORTS.format(desktop=desktop) + "\n".join(blocks))
    monkeypatch.syspath_prepend(folder)
    module = import_module(name)
    return module.MySuperHexagonAgent, module.MySuperHexagonEvaluator


def responses_api(model: str, text: str) -> web.Response:
    """An answer as OpenAI's Responses API gives it."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
    fields = {"id": "r", "object": "response", "created_at": 0, "model": model, "output": [message]}
    return web.json_response(fields | {"parallel_tool_calls": False, "tool_choice": "auto", "tools": []})
