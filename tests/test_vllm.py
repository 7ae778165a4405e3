"""`vllm/NAME` against a stand-in for vLLM, too large to be installed for a test: it checks how it is called."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from proctor import evaluate
from proctor.errors import HopelessRunError, UsageError


@dataclass
class AsyncEngineArgs:
    model: str
    revision: str | None
    trust_remote_code: bool
    dtype: str
    max_num_seqs: int
    disable_log_stats: bool


@dataclass
class SamplingParams:
    max_tokens: int
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    stop: list[str]
    seed: int


class Tokenizer:
    """A token for each character; a text begins with one more unless that is told not to be."""

    def __init__(self, template: str | None) -> None:
        self.chat_template = template

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": [*([1] if add_special_tokens else []), *map(ord, text)]}

    def apply_chat_template(
        self,
        messages: list[dict[str, str]],
        *,
        tokenize: bool,
        add_generation_prompt: bool,
        continue_final_message: bool,
    ) -> str:
        assert not tokenize
        assert add_generation_prompt is not continue_final_message
        return "".join(f"<{message['role']}>{message['content']}" for message in messages) + "<assistant>"


@dataclass
class StandIn:
    """What the module `vllm` offers, and what was asked of it."""

    template: str | None = "there is one"
    finish: str = "stop"
    arguments: list[AsyncEngineArgs] = field(default_factory=list)
    asked: list[tuple[str, SamplingParams, str]] = field(default_factory=list)
    shut_down: int = 0

    def from_engine_args(self, arguments: AsyncEngineArgs) -> StandIn:
        if arguments.model == "missing":
            raise OSError("there is no such model")
        self.arguments.append(arguments)
        return self

    async def get_tokenizer(self) -> Tokenizer:
        return Tokenizer(self.template)

    async def generate(
        self, prompt: dict[str, list[int]], sampling_params: SamplingParams, request_id: str
    ) -> AsyncIterator[Any]:
        tokens = prompt["prompt_token_ids"]
        text = "".join(map(chr, tokens))
        self.asked.append((text, sampling_params, request_id))
        if "2+2" in text:
            raise ValueError("this prompt is not taken")
        answer = str(2 * int(text.strip("\1").removeprefix("<user>").partition("+")[0]))
        for length in range(1, len(answer) + 1):  # each time all that there is so far
            done = length == len(answer)
            made = SimpleNamespace(
                text=answer[:length], token_ids=list(range(length)), finish_reason=self.finish if done else None
            )
            yield SimpleNamespace(outputs=[made], finished=done)

    def shutdown(self) -> None:
        self.shut_down += 1


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    engine = StandIn()
    module: Any = ModuleType("vllm")
    module.__version__ = "0.0"
    module.AsyncLLMEngine, module.AsyncEngineArgs, module.SamplingParams = engine, AsyncEngineArgs, SamplingParams
    monkeypatch.setitem(sys.modules, "vllm", module)
    return engine


def test_a_run(stand_in: StandIn, adding: str) -> None:
    report = evaluate(
        adding, "vllm/owner/name", limit=4, temperature=0.5, top_p=0.9, stop=["\n"], precision="bf16", batch_size=8
    )
    assert report.run.metrics["accuracy"].value == 1
    assert report.run.n == 3
    assert report.run.errors == 1
    (failed,) = [record.error for record in report.records() if record.error]
    assert failed.kind == "model"
    assert "this prompt is not taken" in failed.message
    assert stand_in.arguments == [AsyncEngineArgs("owner/name", None, False, "bfloat16", 8, True)]
    assert stand_in.shut_down == 1
    texts = sorted(text for text, _, _ in stand_in.asked)
    assert texts == [f"<user>{i}+{i}=<assistant>" for i in range(4)]
    assert len({number for _, _, number in stand_in.asked}) == 4
    _, parameters, _ = stand_in.asked[0]
    assert (parameters.temperature, parameters.top_p, parameters.top_k, parameters.stop) == (0.5, 0.9, -1, ["\n"])
    assert len({parameters.seed for _, parameters, _ in stand_in.asked}) == 4
    assert report.run.provenance["candidate"]["runtime"] == "vllm 0.0"


def test_a_model_without_a_template_completes(stand_in: StandIn, adding: str) -> None:
    stand_in.template = None
    report = evaluate(adding, "vllm/base", limit=2, max_length=10)
    assert report.run.config["api"] == "completions"
    assert [text for text, _, _ in stand_in.asked] == ["\x010+0=", "\x011+1="]
    assert {parameters.max_tokens for _, parameters, _ in stand_in.asked} == {5}
    (first, _) = report.records()
    assert (first.usage.input_tokens, first.usage.output_tokens) == (5, 1)


def test_an_answer_that_was_given_up_is_no_answer(stand_in: StandIn, adding: str) -> None:
    stand_in.finish = "abort"
    with pytest.raises(HopelessRunError, match="gave up in the middle"):
        evaluate(adding, "vllm/name", limit=1, retries=0)


def test_a_model_that_cannot_be_loaded(stand_in: StandIn, adding: str) -> None:
    with pytest.raises(UsageError, match=r"^vllm/missing could not be loaded: there is no such model$"):
        evaluate(adding, "vllm/missing")


@pytest.mark.parametrize("option", [{"load_in_4bit": True}, {"modeltype": "seq2seq"}])
def test_what_it_cannot_is_said(stand_in: StandIn, adding: str, option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="use hf/name"):
        evaluate(adding, "vllm/name", **option)


def test_without_vllm_the_way_over_a_server_is_shown(adding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(UsageError, match="`vllm serve owner/name`, then --model openai/owner/name --base-url http"):
        evaluate(adding, "vllm/owner/name")
