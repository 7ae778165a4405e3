"""A vision model as a judge: it answers a question about a frame by a JSON schema."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
import numpy
from msgspec import Struct

from proctor.agents.constants import TIMEOUTS
from proctor.agents.desktop.names import png
from proctor.core.config import RunConfig
from proctor.core.errors import ModelError, UsageError
from proctor.core.types import Image, Message, Sample, Text
from proctor.models.base import REASONING_TOKENS, Request, Sampling
from proctor.models.client import ModelClient
from proctor.models.providers.openai import OpenAIModel

INSTRUCTION = """\
This is a picture of the window of a program that somebody uses.
{question}
Judge by what is to be seen and by nothing else. Answer in JSON:
success: whether it has succeeded;
over: whether it is at its end, with or without success;
score: the number that was asked for or is shown as the score, null if there is none;
why: what in the picture says so, in one sentence."""
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "success": {"type": "boolean"},
        "over": {"type": "boolean"},
        "score": {"type": ["number", "null"]},
        "why": {"type": "string"},
    },
    "required": ["success", "over", "score", "why"],
    "additionalProperties": False,
}
RETRIES = 2  # of a server that fails
TIMEOUT = 0.9 * TIMEOUTS.SCORING  # seconds, below the scoring timeout, so that the error names the model
SHOWN = 2_000  # characters of an invalid reply
FAMILY = "openai/"


class JudgeVerdict(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer that fits the schema."""

    success: bool
    over: bool
    score: float | None
    why: str


class _Server(OpenAIModel):
    url_option, api_option = "judge_base_url", "judge_api"


class VisionJudge:
    """Connects for each question: frames are seconds apart."""

    def __init__(self, model: str, base_url: str = "", api: str = "chat") -> None:
        family, _, name = model.partition("/")
        if f"{family}/" != FAMILY or not name:
            raise UsageError(f"judge_model: expected {FAMILY}NAME, got {model!r}.")
        self._name, self._url, self._api = name, base_url or None, api
        self._model()  # raises if there is no key

    def _model(self) -> ModelClient:
        server = _Server(self._name, self._url, self._api, TIMEOUT, "OPENAI_API_KEY")
        return ModelClient(server, RunConfig(task="", model=server.name, retries=RETRIES))

    async def reach(self) -> None:
        """Asks about an empty image. Raises UsageError if there is no such server, model or page."""
        with suppress(ModelError):  # it may be temporary
            await self._answer(png(numpy.zeros((64, 64, 3), numpy.uint8)), "Is anything to be seen?")

    def judge(self, image: bytes, question: str) -> tuple[JudgeVerdict, str]:
        """Returns the verdict and the model's reply. Raises ModelError if there is no valid verdict."""
        reply = asyncio.run(self._answer(image, question))
        try:
            return msgspec.json.decode(reply, type=JudgeVerdict), reply
        except msgspec.DecodeError as error:
            shown = reply[:SHOWN]
            raise ModelError(
                f"the reply of {FAMILY}{self._name} does not fit the schema ({error}): {shown!r}"
            ) from None

    async def _answer(self, image: bytes, question: str) -> str:
        words = INSTRUCTION.format(question=question)
        prompt = (Message("user", (Text(words), Image(image))),)
        request = Request(prompt, Sampling(REASONING_TOKENS), 0, Sample("judged", 0, prompt), SCHEMA)
        model = self._model()
        try:
            async with asyncio.timeout(TIMEOUT):
                await model.prepare(lambda: ())
                return (await model.generate(request)).text
        except TimeoutError:
            raise ModelError(f"{model.name} gave no verdict within {TIMEOUT:g} s") from None
        finally:
            await model.close()
