"""`vllm/NAME` against a stand-in for vLLM, which checks how it is called; the slow tests run vLLM on the CPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from helpers import needs
from helpers.paths import CHECKOUT
from proctor import Record, evaluate
from proctor.core.errors import TooManyErrorsError, UsageError
from proctor.models.providers.vllm import ENVIRONMENT
from proctor.store import open_store


@dataclass
class AsyncEngineArgs:
    model: str
    revision: str | None
    trust_remote_code: bool
    dtype: str
    max_num_seqs: int
    disable_log_stats: bool
    kv_cache_memory_bytes: int | None = None
    enforce_eager: bool = False


@dataclass
class SamplingParams:
    max_tokens: int
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    stop: list[str]
    seed: int


BEGINS_REASONING = "it begins every answer with reasoning"


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
        begun = "<think>\n" if self.chat_template == BEGINS_REASONING else ""
        return "".join(f"<{message['role']}>{message['content']}" for message in messages) + f"<assistant>{begun}"


@dataclass
class StandIn:
    """What the module `vllm` offers, and what was asked of it."""

    template: str | None = "there is one"
    finish: str = "stop"
    reasoning: str = ""
    arguments: list[AsyncEngineArgs] = field(default_factory=list)
    asked: list[tuple[str, SamplingParams, str]] = field(default_factory=list)
    shut_down: int = 0
    cpu: bool = False

    def is_cpu(self) -> bool:
        return self.cpu

    def from_engine_args(self, arguments: AsyncEngineArgs) -> StandIn:
        if arguments.model == "missing":
            raise OSError("there is no such model")
        if arguments.model == "too-large":
            raise RuntimeError("Engine core initialization failed.")
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
        answer = self.reasoning + str(2 * int(text.strip("\1").removeprefix("<user>").partition("+")[0]))
        for length in range(1, len(answer) + 1):  # each time all that there is so far
            done = length == len(answer)
            made = SimpleNamespace(
                text=answer[:length], token_ids=list(range(length)), finish_reason=self.finish if done else None
            )
            yield SimpleNamespace(outputs=[made], finished=done)

    def shutdown(self) -> None:
        self.shut_down += 1


@pytest.fixture(autouse=True)
def _keeps_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is set already is left as it is."""
    for variable, value in ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    engine = StandIn()
    module: Any = ModuleType("vllm")
    module.__version__ = "0.0"
    module.AsyncLLMEngine, module.AsyncEngineArgs, module.SamplingParams = engine, AsyncEngineArgs, SamplingParams
    module.platforms = ModuleType("vllm.platforms")
    module.platforms.current_platform = engine
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setitem(sys.modules, "vllm.platforms", module.platforms)
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


def test_vllm_without_chat_template_uses_completions(stand_in: StandIn, adding: str) -> None:
    stand_in.template = None
    report = evaluate(adding, "vllm/base", limit=2, max_length=10)
    assert report.run.config["api"] == "completions"
    assert [text for text, _, _ in stand_in.asked] == ["\x010+0=", "\x011+1="]
    assert {parameters.max_tokens for _, parameters, _ in stand_in.asked} == {5}
    (first, _) = report.records()
    assert (first.usage.input_tokens, first.usage.output_tokens) == (5, 1)


@pytest.mark.parametrize(
    ("template", "api", "expected"),
    [("there is one", None, 8_192), ("there is one", "completions", 64), (None, None, 64)],
)
def test_only_chat_api_has_reasoning_tokens(
    stand_in: StandIn, adding: str, template: str | None, api: str | None, expected: int
) -> None:
    stand_in.template = template
    run = evaluate(adding, "vllm/name", limit=1, api=api).run
    assert {parameters.max_tokens for _, parameters, _ in stand_in.asked} == {run.config["max_tokens"]} == {expected}


def test_vllm_output_ended_by_length_is_truncated(stand_in: StandIn, adding: str) -> None:
    stand_in.finish = "length"
    (record,) = evaluate(adding, "vllm/name", limit=1).records()
    assert (record.outputs[0].finish, record.outcome) == ("length", "correct")


@pytest.mark.parametrize(
    ("reasoning", "text", "outcome"),
    [("It may be ", "<think>It may be 0", "truncated"), ("Both are 0.</think>", "Both are 0.</think>0", "wrong")],
)
def test_reasoning_started_by_template_is_stripped(
    stand_in: StandIn, adding: str, reasoning: str, text: str, outcome: str
) -> None:
    stand_in.template, stand_in.finish, stand_in.reasoning = BEGINS_REASONING, "length", reasoning
    (record,) = evaluate(adding, "vllm/name", limit=1).records()
    assert (record.outputs[0].text, record.outcome) == (text, outcome)


def test_aborted_vllm_answer_is_an_error(stand_in: StandIn, adding: str) -> None:
    stand_in.finish = "abort"
    with pytest.raises(TooManyErrorsError, match="aborted its answer"):
        evaluate(adding, "vllm/name", limit=1, retries=0)


@pytest.mark.parametrize(
    ("name", "why"), [("missing", "there is no such model"), ("too-large", r"Engine core initialization failed\.")]
)
def test_vllm_load_error_is_explained(stand_in: StandIn, adding: str, name: str, why: str) -> None:
    with pytest.raises(UsageError, match=rf"^vllm/{name} could not be loaded: {why}$"):
        evaluate(adding, f"vllm/{name}")


def test_vllm_on_cpu_limits_memory_and_skips_compilation(stand_in: StandIn, adding: str) -> None:
    stand_in.cpu = True
    evaluate(adding, "vllm/name", limit=1)
    (arguments,) = stand_in.arguments
    assert arguments.kv_cache_memory_bytes is not None
    assert 0 < arguments.kv_cache_memory_bytes <= 4 << 30
    assert arguments.enforce_eager


@pytest.mark.parametrize("option", [{"load_in_4bit": True}, {"modeltype": "seq2seq"}])
def test_vllm_refuses_unsupported_options(stand_in: StandIn, adding: str, option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="use hf/name"):
        evaluate(adding, "vllm/name", **option)


def test_missing_vllm_suggests_server(adding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(UsageError, match="`vllm serve owner/name`, then --model openai/owner/name --base-url http"):
        evaluate(adding, "vllm/owner/name")


@pytest.fixture
def tiny_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a folder with a Llama of random weights."""
    needs.module("torch", "hf")
    needs.module("transformers", "hf")
    monkeypatch.setattr("tqdm.tqdm.monitor_interval", 0)  # no thread that watches progress bars
    from helpers.tiny_models import make_model, make_tokenizer

    make_model("Llama", head_dim=32).save_pretrained(tmp_path / "tiny")  # vLLM's attention on the CPU needs 32
    make_tokenizer().save_pretrained(tmp_path / "tiny")
    return "tiny"


def run_real_vllm(*arguments: str) -> list[Record]:
    """A run by the environment that has vLLM, in the store of this test."""
    if not (CHECKOUT / ".venv" / "vllm").exists():
        pytest.skip("there is no vLLM for the CPU (it needs Python 3.11): make .venv/vllm")
    command = [str(CHECKOUT / ".venv-vllm" / "bin" / "python"), "-m", "proctor", "run", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pid=" not in done.stdout  # no log of the engine among the results
    store = open_store()
    (run,) = store.runs()
    assert run.errors == 0
    return sorted(store.records(run), key=lambda record: record.sample.index)


@pytest.mark.slow
def test_real_vllm_greedy_answers_equal_transformers(tiny_model: str, adding: str) -> None:
    options = ["--limit", "6", "--max-tokens", "16", "--precision", "fp32"]
    there = run_real_vllm(adding, "--model", f"vllm/{tiny_model}", "--samples", "2", *options)
    here = evaluate(adding, f"hf/{tiny_model}", limit=6, max_tokens=16, precision="fp32")
    answers = sorted(here.records(), key=lambda record: record.sample.index)
    expected = [[output.text] * 2 for record in answers for output in record.outputs]
    assert [[output.text for output in record.outputs] for record in there] == expected
    assert len({text for text, _ in expected}) > 1


@pytest.mark.slow
def test_real_vllm_uses_seeds_and_stop_strings(tiny_model: str, adding: str) -> None:
    options = ["--limit", "4", "--max-tokens", "32", "--temperature", "1", "--samples", "3"]
    records = run_real_vllm(adding, "--model", f"vllm/{tiny_model}", *options, "--stop", "e", "--stop", "t")
    outputs = [output for record in records for output in record.outputs]
    assert len(outputs) == 12
    assert len({output.text for output in outputs}) > 6  # each completion has a seed of its own
    assert not any(letter in output.text for output in outputs for letter in "et")
    assert {output.finish for output in outputs} <= {"stop", "length"}
    assert any(output.finish == "stop" for output in outputs)
    assert all(1 <= output.usage.output_tokens <= 32 for output in outputs)
