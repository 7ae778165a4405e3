"""AsyncPolicy for a language model: it reads an observation and names an action."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.agents.envs.spaces import Choice, Sayable, is_sayable
from proctor.agents.envs.types import EnvInfo, PromptView
from proctor.core.config import RunConfig
from proctor.core.errors import UsageError
from proctor.core.reasoning import strip_reasoning
from proctor.core.types import Message, Sample, Usage
from proctor.models.base import Model

if TYPE_CHECKING:
    from proctor.agents.envs.task import EnvTask

RULES = """\
You play {name}, one action after the other. You are shown what you see, and answer with your next action: {actions}.
Answer with the action alone, without any other word."""


class ModelPolicy:
    """Plays one episode."""

    def __init__(self, env_task: EnvTask, sample: Sample, epoch: int, model: Model, config: RunConfig) -> None:
        self.usage = Usage()
        self.unreadable = 0
        self._env_task, self._sample, self._model, self._config = env_task, sample, model, config
        self._first = epoch * 10**9  # number of the first request: every request of a sample has its own
        self._moves: deque[Message] = deque(maxlen=2 * env_task.settings.history)
        self._actions: Sayable

    busy_seconds = 0.0  # its server's time limit is kept elsewhere

    def begin(self, about: EnvInfo) -> None:
        if not is_sayable(about.actions):
            raise UsageError(
                f"{self._env_task.name} cannot be played by a language model: its actions are neither a choice "
                "nor a few numbers."
            )
        self._actions = about.actions  # type: ignore[assignment]

    async def move(self, view: PromptView) -> Any:
        observed = view.text if view.reward is None else f"{view.text}\nreward of your last action: {view.reward:g}"
        prompt = (
            Message("system", RULES.format(name=self._env_task.name, actions=self._actions.telling())),
            *self._moves,
            Message("user", observed),
        )
        words = self._actions.words() if isinstance(self._actions, Choice) else ()
        asked = msgspec.structs.replace(self._sample, input=prompt, choices=words)
        output = await self._model.generate(self._env_task.request(asked, self._first + view.step, self._config))
        self.usage += output.usage
        answer = strip_reasoning(output.text).strip()
        self._moves += [Message("user", observed), Message("assistant", answer)]
        action = self._actions.read(answer)
        self.unreadable += action is None
        return action
