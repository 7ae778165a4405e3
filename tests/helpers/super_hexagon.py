"""An agent and an evaluator as a user writes them: keys pressed on a window, a vision service asked what it shows."""

from __future__ import annotations

import json
import logging
import time

from openai import OpenAI

from helpers.scripted_desktop import CALLABLES, LISTENERS, VK, KeyboardEvent, activate_module, get_current_frame_base64
from proctor.agents import TIMES, Agent, EvaluationResult, Evaluator, Task, env_lock

logger = logging.getLogger(__name__)


class MySuperHexagonAgent(Agent):
    def __init__(self) -> None:
        super().__init__()
        activate_module("owa.env.desktop")

        def on_keyboard_event(event: KeyboardEvent) -> None:
            if event.vk == VK.F10:
                self.stop_event.set()

        LISTENERS["keyboard"]().configure(callback=on_keyboard_event).start()

    def _play_env(self, task: Task) -> bool:
        with env_lock:
            CALLABLES["window.make_active"](task.window_name)
            CALLABLES["keyboard.press"](VK.RIGHT)
            time.sleep(TIMES.KEYBOARD_PRESS_DELAY)
            CALLABLES["keyboard.release"](VK.RIGHT)
        return True


class MySuperHexagonEvaluator(Evaluator):
    def __init__(self) -> None:
        super().__init__()
        self.openai_client = OpenAI()

    def _ask(self, question: str, task: Task, **options: object) -> str:
        picture = f"data:image/png;base64,{get_current_frame_base64(task.window_name)}"
        content = [{"type": "input_text", "text": question}, {"type": "input_image", "image_url": picture}]
        asked = [{"role": "user", "content": content}]
        return str(self.openai_client.responses.create(model="gpt-4o-mini", input=asked, **options).output_text)  # type: ignore[call-overload]

    def _check_env_continue(self, task: Task) -> bool:
        return "yes" not in self._ask("Can you see the text `PRESS SPACE TO RETRY`? Say only yes or no.", task).lower()

    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        schema = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
        text = {"format": {"type": "json_schema", "name": "score", "schema": schema}}
        score = json.loads(self._ask("What is the score?", task, text=text))["score"]
        metrics = {"success": score > task.success_criteria["time_survived"], "score": score}
        return EvaluationResult(task_id=task.task_id, metrics=metrics, notes=note)

    def _setup_environment(self, task: Task) -> None:
        with env_lock:
            CALLABLES["window.make_active"](task.window_name)
            CALLABLES["keyboard.press"](VK.SPACE)
            CALLABLES["keyboard.release"](VK.SPACE)
