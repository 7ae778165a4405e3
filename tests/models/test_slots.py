"""Continuous batching with tiny models on a CPU: the code of a GPU without its kernels and graphs."""

from __future__ import annotations

import asyncio
import os
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from helpers.model_session import decode_all
from helpers.tiny_models import TEXT, make_model, make_tokenizer
from proctor.core.config import build_config
from proctor.core.errors import ModelError, UsageError
from proctor.core.random import mix
from proctor.core.types import Message, Prompt, Sample
from proctor.models import open_model
from proctor.models.base import Request, Sampling
from proctor.models.inference.completion import STRIDE, Completion
from proctor.models.inference.job import Job
from proctor.models.inference.prompt import TokenizedPrompt
from proctor.models.inference.tokenization import PromptEncoder

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as the backend does it, who here is not the first to load it
torch = pytest.importorskip("torch", reason="the extra hf is not installed: pip install 'proctor-eval[hf]'")
transformers = pytest.importorskip(
    "transformers", reason="the extra hf is not installed: pip install 'proctor-eval[hf]'"
)

from proctor.models.inference import attention, sampler, stepper  # noqa: E402
from proctor.models.inference.attention import DecodeStep, UnsupportedModelError  # noqa: E402
from proctor.models.inference.decoder import CausalDecoder  # noqa: E402
from proctor.models.inference.engine import BatchEngine, EngineThread  # noqa: E402
from proctor.models.inference.pages import PAGE, Layer, Pages  # noqa: E402
from proctor.models.inference.slots import SlotEngine  # noqa: E402
from proctor.models.inference.stepper import Stepper  # noqa: E402

PROMPTS = [
    "The quick",
    "def add(first",
    "What is in the box? There are three red circles and",
    "→",
    "a",
    "dog sleeps on and on, " * 9,  # longer than a page
]
SAMPLED = {"temperature": 1.0, "top_p": 0.95, "top_k": 200}
OTHERS_THAT_FIT = ["GPT2", "Mistral", "Qwen3", "Starcoder2", "GPTNeoX", "Mixtral"]


def slow(value: Any) -> Any:
    """A parameter for `make test-all` only."""
    return pytest.param(value, marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return make_tokenizer()


def request(prompt: Prompt, **sampling: Any) -> Request:
    return Request(prompt, Sampling(**{"max_tokens": 24} | sampling), 0, Sample("s", 0, prompt))


def in_slots(model: Any, tokenizer: Any, count: int, chat: bool = False) -> SlotEngine:
    return SlotEngine("hf/tiny", Stepper(model, count), PromptEncoder(model, tokenizer, chat, causal=True).start, count)


def plainly(model: Any, tokenizer: Any, chat: bool = False) -> BatchEngine:
    encoder = PromptEncoder(model, tokenizer, chat, causal=True)
    return BatchEngine("hf/tiny", CausalDecoder(model), encoder.start, 4)


def all_of(completion: Completion) -> tuple[list[int], str, str]:
    return completion.tokens, completion.text, completion.finish


class Spy:
    """Records the shapes of a model's inputs."""

    def __init__(self, model: Any) -> None:
        self.shapes: list[tuple[int, int]] = []
        self.reading = threading.Event()
        model.register_forward_pre_hook(self._note, with_kwargs=True)

    def _note(self, model: Any, args: Any, kwargs: dict[str, Any]) -> None:
        self.shapes.append(tuple(kwargs["input_ids"].shape))
        self.reading.set()


# What comes out


@pytest.mark.parametrize("kind", ["Llama", *map(slow, ["Gemma3Text", *OTHERS_THAT_FIT])])
def test_greedy_tokens_equal_generate(tokenizer: Any, kind: str) -> None:
    """Prompts of very different lengths, and completions that go beyond a page and beyond what is looked back at."""
    requests = [request(prompt, max_tokens=10 + 12 * i) for i, prompt in enumerate(PROMPTS)]
    ours = decode_all(in_slots(make_model(kind), tokenizer, 4), requests)
    model = make_model(kind)
    for each, completion in zip(requests, ours, strict=True):
        tokens = tokenizer(each.prompt, return_tensors="pt")
        theirs = model.generate(**tokens, max_new_tokens=each.sampling.max_tokens, do_sample=False)[0]
        theirs = theirs[tokens["input_ids"].shape[1] :]
        assert completion.tokens == theirs.tolist()
        assert completion.text == tokenizer.decode(theirs, skip_special_tokens=True)


@pytest.mark.parametrize("kind", ["Llama", *map(slow, ["GPT2", "Gemma3Text", "Qwen3"])])
def test_completions_do_not_depend_on_number_of_slots(tokenizer: Any, kind: str) -> None:
    """Nor does the way: one by one, a few, all at once, and the batch that is put together for every token.

    With 64 bits: what is rounded otherwise in another batch is then too little for any draw to tell.
    """
    settings = [{}, SAMPLED, {"temperature": 0.7}, {"temperature": 1.3, "top_k": 5}]
    requests = [
        request(PROMPTS[i % 6], seed=2**63 + i // 2, max_tokens=3 + 11 * i % 40, **settings[i % 4]) for i in range(14)
    ]
    plain = [c.tokens for c in decode_all(plainly(make_model(kind).double(), tokenizer), requests)]
    for count in (1, 5, 20):
        assert [c.tokens for c in decode_all(in_slots(make_model(kind).double(), tokenizer, count), requests)] == plain
    assert len({tuple(tokens) for tokens in plain}) > 10


@pytest.mark.parametrize("seed", [0, slow(1)])
def test_stop_strings_may_span_tokens(tokenizer: Any, seed: int) -> None:
    """Wherever one begins in a text, it ends there, after as many tokens as when each is looked at by itself."""
    free = request(PROMPTS[seed], seed=seed, max_tokens=40, **SAMPLED)
    (whole,) = decode_all(plainly(make_model("Llama"), tokenizer), [free])
    stops = [whole.text[i : i + 1 + i % 4] for i in range(0, len(whole.text), 3)]
    requests = [
        request(PROMPTS[seed], seed=seed, max_tokens=40, stop=(stop, "never said"), **SAMPLED) for stop in stops if stop
    ]
    ours = decode_all(in_slots(make_model("Llama"), tokenizer, 7), requests)
    assert [all_of(c) for c in ours] == [
        all_of(c) for c in decode_all(plainly(make_model("Llama"), tokenizer), requests)
    ]
    for completion, stop in zip(ours, stops, strict=False):
        assert completion.text == whole.text[: whole.text.index(stop)]
        assert completion.finish == "stop"


@pytest.mark.parametrize(
    ("chat", "prompts"),
    [
        (False, ["<fim_prefix>def add(<fim_suffix>\n<fim_middle>", "<fim_prefix><fim_suffix>dog<fim_middle>"]),
        (True, ["dog", (Message("system", "Be."), Message("user", "dog"), Message("assistant", "The fox"))]),
    ],
    ids=["fim", "chat"],
)
def test_prompts_with_special_tokens_match_plain_decoding(tokenizer: Any, chat: bool, prompts: list[Prompt]) -> None:
    requests = [request(prompt, seed=i, stop=("<|im_end|>",), **SAMPLED) for prompt in prompts for i in range(3)]
    ours = decode_all(in_slots(make_model("Llama"), tokenizer, 4, chat), requests)
    assert [all_of(c) for c in ours] == [
        all_of(c) for c in decode_all(plainly(make_model("Llama"), tokenizer, chat), requests)
    ]


def test_every_eos_token_ends_completion(tokenizer: Any) -> None:
    (free,) = decode_all(plainly(make_model("Llama"), tokenizer), [request("dog")])
    model = make_model("Llama")
    model.generation_config.eos_token_id = [0, free.tokens[9]]
    (ended,) = decode_all(in_slots(model, tokenizer, 2), [request("dog")])
    assert ended.tokens == free.tokens[: free.tokens.index(free.tokens[9]) + 1]
    assert ended.finish == "stop"


@hypothesis.given(
    text=strategies.text(strategies.sampled_from(TEXT + "ab\n\ufffd"), max_size=60),
    stop=strategies.lists(strategies.text(strategies.sampled_from("ab\nÖß字🙂 "), max_size=3), max_size=3),
    room=strategies.integers(1, 3 * STRIDE),
)
@hypothesis.example("the dog🙂", ["🙂"], 20)
def test_deferred_tokens_give_same_text(tokenizer: Any, text: str, stop: list[str], room: int) -> None:
    settings = Sampling(room, stop=tuple(stop))
    one_by_one, together = (
        Completion(TokenizedPrompt((1,)), settings, room, frozenset({0}), tokenizer, [1]) for _ in range(2)
    )
    for token in [*tokenizer(text)["input_ids"], 0]:
        if not one_by_one.finish:
            one_by_one.add(token)
        if not together.finish:
            together.add_deferred(token)
    assert all_of(one_by_one) == all_of(together)


# Drawing


@hypothesis.given(seed=strategies.integers(0, 2**64 - 1), position=strategies.integers(0, 10**6))
def test_device_draws_equal_completion_draws(tokenizer: Any, seed: int, position: int) -> None:
    completion = Completion(TokenizedPrompt((1,)), Sampling(1, seed=seed), 1, frozenset(), tokenizer, [])
    completion.tokens = [0] * position if position < 100 else range(position)  # type: ignore[assignment]
    key = mix(seed)
    keys = torch.tensor([key - 2**64 if key >= 2**63 else key])
    assert sampler.draw_uniform(keys, torch.tensor([position])).tolist() == [completion.draw()]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("heads", "kv_heads", "width"), [(8, 2, 64), (4, 4, 80), (6, 1, 128)])
@pytest.mark.parametrize("window", [None, 20])
def test_attention_kernel_equals_torch(
    dtype: str, heads: int, kv_heads: int, width: int, window: int | None, monkeypatch: Any
) -> None:
    device = torch.device("cuda")
    torch.manual_seed(0)
    found = []
    query, key, value = (
        torch.randn(5, count, 1, width, device=device).to(getattr(torch, dtype))
        for count in (heads, kv_heads, kv_heads)
    )
    tables = (torch.randperm(40, device=device).reshape(5, 8) + 1).int()
    shared, own = torch.tensor([[0, 5, 32, 64, 70], [3, 0, 32, 40, 95]], device=device)
    kernel = attention.attend_by_kernel
    for which in (kernel, None):
        torch.manual_seed(1)
        pages = Pages({0: Layer(kv_heads, width, width, getattr(torch, dtype))}, device)
        pages.grow(40)
        pages.keys[0].normal_()
        pages.values[0].normal_()
        monkeypatch.setattr(attention, "attend_by_kernel", which)
        step = DecodeStep(pages, tables, shared, own)
        found.append(step.attend(0, query, key, value, 0.1, window).float())
        found.append(pages.keys[0].float())
    tolerance = 1e-5 if dtype == "float32" else 1e-2
    for ours, expected in zip(found[:2], found[2:], strict=True):
        assert (ours - expected).norm() <= tolerance * expected.norm()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_sampling_kernel_equals_torch() -> None:
    torch.manual_seed(0)
    logits = 3 * torch.randn(8, 49_152, device="cuda")
    temperature = torch.tensor([0, 1.0, 0.7, 1.3, 0.2, 1.0, 1e-40, 2.0], dtype=torch.float64, device="cuda")
    top_k = torch.tensor([2**31 - 1, 2**31 - 1, 50, 2**31 - 1, 7, 1, 2**31 - 1, 300], device="cuda")
    top_p = torch.tensor([2.0, 2.0, 2.0, 0.6, 0.95, 0.9, 0.5, 0.3], dtype=torch.float64, device="cuda")
    for _ in range(50):
        draws = torch.rand(8, dtype=torch.float64, device="cuda")
        ours = stepper.pick_by_kernel(logits, temperature, top_k, top_p, draws)
        assert ours.tolist() == sampler.pick(logits, temperature, top_k, top_p, draws).tolist()


# What it costs


def test_prompt_is_prefilled_once_for_all_completions(tokenizer: Any) -> None:
    model = make_model("Llama")
    engine = in_slots(model, tokenizer, 3)
    spy = Spy(model)
    completions = decode_all(engine, [request(PROMPTS[2], seed=i, max_tokens=2 + i, **SAMPLED) for i in range(10)])
    assert [shape for shape in spy.shapes if shape[1] > 1] == [(1, len(completions[0].prompt_tokens) - 1)]
    assert len({completion.text for completion in completions}) == 10


def test_waiting_prompts_are_prefilled_in_one_row(tokenizer: Any) -> None:
    model = make_model("Llama")
    engine = in_slots(model, tokenizer, 2)
    spy = Spy(model)
    completions = decode_all(engine, [request(prompt, max_tokens=4) for prompt in PROMPTS])
    assert len(completions[-1].prompt_tokens) > PAGE + 1
    assert spy.shapes[0] == (1, sum(len(completion.prompt_tokens) - 1 for completion in completions))
    assert {width for _, width in spy.shapes[1:]} == {1}


def test_slots_are_refilled_without_wasted_steps(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    launch = Stepper.launch

    def noting(self: Stepper, slots: list[int], *changes: Any) -> Any:
        rows.append(len(slots))
        return launch(self, slots, *changes)

    monkeypatch.setattr(Stepper, "launch", noting)
    requests = [request(PROMPTS[i % 6], seed=i, max_tokens=3 + 5 * i % 17) for i in range(20)]
    completions = decode_all(in_slots(make_model("Llama"), tokenizer, 4), requests)
    # Who ends by the limit costs as many steps as there are tokens. Here nobody ended before it.
    assert {completion.finish for completion in completions} == {"length"}
    assert sum(rows) == sum(len(completion.tokens) for completion in completions)
    assert max(rows) == 4
    assert sorted(rows)[len(rows) // 4] == 4, "most of the time the slots are full"


def test_stopped_completion_costs_few_extra_steps(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    launch = Stepper.launch

    def counting(*given: Any) -> Any:
        nonlocal steps
        steps += 1
        return launch(*given)

    monkeypatch.setattr(Stepper, "launch", counting)
    (free,) = decode_all(plainly(make_model("Llama"), tokenizer), [request("dog", max_tokens=200)])
    (stopped,) = decode_all(
        in_slots(make_model("Llama"), tokenizer, 2), [request("dog", max_tokens=200, stop=(free.text[20:24],))]
    )
    assert steps <= len(stopped.tokens) + 2 * STRIDE < 100


def test_pages_are_released(tokenizer: Any) -> None:
    engine = in_slots(make_model("Llama"), tokenizer, 4)
    pages = engine._pages
    decode_all(engine, [request(prompt, seed=i, **SAMPLED) for prompt in PROMPTS for i in range(4)])
    assert pages.free == pages.count - 1, "all but the one for what is nobody's"


def test_all_tensors_are_on_model_device(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in for a GPU: whatever is made without saying where has no numbers in it, and cannot be used."""
    requests = [request(PROMPTS[i % 6], seed=i, max_tokens=3 + 9 * i, **[SAMPLED, {}][i % 2]) for i in range(8)]
    expected = [completion.tokens for completion in decode_all(in_slots(make_model("Llama"), tokenizer, 3), requests)]
    work = EngineThread._work

    def work_elsewhere(engine: EngineThread) -> None:
        with torch.device("meta"):
            work(engine)

    monkeypatch.setattr(EngineThread, "_work", work_elsewhere)
    model = make_model("Llama")
    with torch.device("meta"):
        elsewhere = Stepper(model, 3)
    engine = SlotEngine("hf/tiny", elsewhere, PromptEncoder(model, tokenizer, False, True).start, 3)
    assert [completion.tokens for completion in decode_all(engine, requests)] == expected


# Memory


def run_out() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory.")


def scarce(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Memory for so many pages."""
    monkeypatch.setattr(Pages, "_fits", lambda pages, count: pages.count + count <= most)


@pytest.mark.parametrize("most", [slow(9), 14, slow(20)])
def test_batch_is_halved_when_pages_do_not_fit(
    tokenizer: Any, caplog: pytest.LogCaptureFixture, most: int, monkeypatch: Any
) -> None:
    requests = [request(PROMPTS[i % 6], seed=i, max_tokens=50, **SAMPLED) for i in range(12)]
    expected = [all_of(c) for c in decode_all(in_slots(make_model("Llama"), tokenizer, 8), requests)]
    caplog.clear()
    scarce(monkeypatch, most)
    assert [all_of(c) for c in decode_all(in_slots(make_model("Llama"), tokenizer, 8), requests)] == expected
    said = [record.getMessage() for record in caplog.records if record.name.startswith("proctor")]
    sizes = [int(line.partition("batch of ")[2].split()[0]) for line in said]
    assert 1 <= len(said) <= 4
    assert all(later <= earlier // 2 for earlier, later in pairwise(sizes))


def test_step_that_does_not_fit_halves_batch_permanently(tokenizer: Any, caplog: pytest.LogCaptureFixture) -> None:
    requests = [request(PROMPTS[i % 6], seed=i, max_tokens=4 + i, **SAMPLED) for i in range(19)]
    expected = [all_of(c) for c in decode_all(in_slots(make_model("Llama"), tokenizer, 16), requests)]
    model = make_model("Llama")
    engine = in_slots(model, tokenizer, 16)

    def refuse(model: Any, args: Any, kwargs: dict[str, Any]) -> None:
        rows, width = kwargs["input_ids"].shape
        if width == 1 and rows > 8:
            run_out()

    model.register_forward_pre_hook(refuse, with_kwargs=True)
    caplog.clear()
    assert [all_of(c) for c in decode_all(engine, requests)] == expected
    said = [record.getMessage() for record in caplog.records if record.name.startswith("proctor")]
    assert said == ["hf/tiny: a batch of 16 does not fit into memory, continuing with batches of 8"]


def test_prefill_that_does_not_fit_is_split(tokenizer: Any) -> None:
    requests = [request(prompt, seed=i, **SAMPLED) for i, prompt in enumerate(PROMPTS)]
    expected = [all_of(c) for c in decode_all(in_slots(make_model("Llama"), tokenizer, 3), requests)]
    model = make_model("Llama")
    engine = in_slots(model, tokenizer, 3)
    spy = Spy(model)

    def refuse(model: Any, args: Any, kwargs: dict[str, Any]) -> None:
        if kwargs["input_ids"].shape[1] > 60:
            run_out()

    model.register_forward_pre_hook(refuse, with_kwargs=True)
    assert [all_of(c) for c in decode_all(engine, requests)] == expected
    refused = [width for _, width in spy.shapes if width > 60]
    assert 1 <= len(refused) <= 10
    assert all(later <= earlier for earlier, later in pairwise(refused))


@pytest.mark.parametrize("prompt", ["dog " * 90, "fox"], ids=["the prompt", "what is said"])
def test_completion_that_does_not_fit_alone_fails_alone(
    tokenizer: Any, prompt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scarce(monkeypatch, 5)
    engine = in_slots(make_model("Llama"), tokenizer, 4)
    jobs = [Job(request("The")), Job(request(prompt, max_tokens=200)), Job(request("box"))]
    engine.submit(jobs)
    with pytest.raises(ModelError, match=r"\d+ tokens do not fit into memory, even alone"):
        jobs[1].future.result(600)
    for job in (jobs[0], jobs[2]):
        assert job.future.result(600).usage.output_tokens == 24
    engine.close()


@pytest.mark.slow
def test_waiting_prompts_release_pages(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of waiting prompts are released for running completions."""
    requests = [request(prompt * 3, max_tokens=100, **SAMPLED) for prompt in PROMPTS]
    expected = [all_of(c) for c in decode_all(in_slots(make_model("Llama"), tokenizer, 1), requests)]
    scarce(monkeypatch, 16)
    assert [all_of(c) for c in decode_all(in_slots(make_model("Llama"), tokenizer, 1), requests)] == expected


# Trouble


def test_decoding_errors_fail_jobs(tokenizer: Any) -> None:
    model = make_model("Llama")
    engine = in_slots(model, tokenizer, 1)
    broken = True

    def refuse(model: Any, args: Any, kwargs: dict[str, Any]) -> None:
        if broken:
            raise IndexError("out of range")

    model.register_forward_pre_hook(refuse, with_kwargs=True)
    for prompt in ("a", "The quick"):  # fails at the first step, and when it is read
        engine.submit([bad := Job(request(prompt))])
        with pytest.raises(ModelError, match="decoding failed: IndexError: out of range"):
            bad.future.result(600)
    broken = False
    engine.submit([good := Job(request("The quick"))])
    assert good.future.result(600).usage.output_tokens == 24
    engine.close()
    engine.submit([late := Job(request("dog"))])
    with pytest.raises(RuntimeError, match="closed"):
        late.future.result(600)


def test_failing_tokenizer_fails_running_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of those who have had all their steps already, and wait for nothing but their text."""
    tokenizer = make_tokenizer()
    engine = in_slots(make_model("Llama"), tokenizer, 2)
    monkeypatch.setattr(tokenizer, "decode", lambda *_, **__: 1 / 0)
    engine.submit(jobs := [Job(request("dog", seed=i, max_tokens=3)) for i in range(5)])
    for job in jobs:
        with pytest.raises(ModelError, match="decoding failed: ZeroDivisionError"):
            job.future.result(600)
    engine.close()


def test_failing_prefill_fails_only_its_prompt(tokenizer: Any) -> None:
    """A token that the model has no weights for, for example: those that are read along are read without it."""
    model = make_model("Llama")
    engine = in_slots(model, tokenizer, 4)
    unknown = tokenizer("→ and")["input_ids"][0]

    def refuse(model: Any, args: Any, kwargs: dict[str, Any]) -> None:
        if kwargs["input_ids"].shape[1] > 1 and unknown in kwargs["input_ids"]:
            raise IndexError("out of range")

    model.register_forward_pre_hook(refuse, with_kwargs=True)
    jobs = [Job(request(prompt)) for prompt in ("The quick brown", "→ and so on", "What is in the box")]
    engine.submit(jobs)
    with pytest.raises(ModelError, match="decoding failed: IndexError"):
        jobs[1].future.result(600)
    for job in (jobs[0], jobs[2]):
        assert job.future.result(600).usage.output_tokens > 0
    engine.close()


@pytest.mark.parametrize("kind", ["slots", "plain"])
def test_failing_detokenization_fails_only_its_completion(
    tokenizer: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some tokenizers fail on a token that they do not know, which a model may have: others are answered all the same.

    Also those whose last token comes back in the same step.
    """
    begin = Completion._decode

    def decode(completion: Completion, tokens: list[int]) -> str:
        if completion.sampling.seed == 1:
            raise TypeError("expected str instance, NoneType found")
        return begin(completion, tokens)

    monkeypatch.setattr(Completion, "_decode", decode)
    model = make_model("Llama")
    engine = in_slots(model, tokenizer, 4) if kind == "slots" else plainly(model, tokenizer)
    jobs = [Job(request("dog", seed=seed, max_tokens=5 + 4 * (seed == 3), stop=("never said",))) for seed in range(4)]
    engine.submit(jobs)
    with pytest.raises(ModelError, match="decoding failed: TypeError: expected str"):
        jobs[1].future.result(600)
    for job in (jobs[0], *jobs[2:]):
        assert job.future.result(600).usage.output_tokens >= 5
    engine.close()


def test_no_memory_for_first_page_fails_request(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may take the memory between the trial and the allocation."""
    engine = in_slots(make_model("Llama"), tokenizer, 2)
    with monkeypatch.context() as scarcity:
        scarcity.setattr(Pages, "_resize", lambda pages, count: run_out())
        engine.submit([unlucky := Job(request("dog " * 90))])
        with pytest.raises(ModelError, match="do not fit into memory, even alone"):
            unlucky.future.result(600)
    engine.submit([next_one := Job(request("dog " * 90))])
    assert next_one.future.result(600).usage.output_tokens == 24
    engine.close()


@pytest.fixture
def endless() -> tuple[Any, Any]:
    """A model that would generate for hours."""
    model = make_model("Llama", max_position_embeddings=10**7)
    model.generation_config.eos_token_id = None
    tokenizer = make_tokenizer()
    tokenizer.eos_token = None
    return model, tokenizer


def test_cancelled_jobs_are_dropped(endless: tuple[Any, Any]) -> None:
    engine = in_slots(*endless, 2)
    spy = Spy(endless[0])
    gone = [Job(request("dog", max_tokens=10**6)) for _ in range(5)]
    engine.submit(gone)
    assert spy.reading.wait(600)
    for job in gone:
        assert job.future.cancel()
    engine.submit([last := Job(request("dog", max_tokens=2))])
    assert last.future.result(600).usage.output_tokens == 2
    engine.close()


def test_close_stops_decoding(endless: tuple[Any, Any]) -> None:
    engine = in_slots(*endless, 2)
    spy = Spy(endless[0])
    jobs = [Job(request("dog", max_tokens=10**6)) for _ in range(5)]
    engine.submit(jobs)
    assert spy.reading.wait(600)
    engine.close()
    assert all(job.future.cancelled() for job in jobs)
    assert "local-model" not in {thread.name for thread in threading.enumerate()}


# Which models


@pytest.mark.parametrize(
    ("kind", "settings", "reason"),
    [
        ("Lfm2", {}, "it has layers of another kind: conv"),
        ("Gemma2", {}, "its attention has softcap"),
        ("GPTJ", {}, "not all of its layers let their attention be chosen"),
        (
            "Llama",
            {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10_000.0}},
            "its positions depend on the longest text in the batch",
        ),
    ],
)
def test_unsupported_models_are_refused(tokenizer: Any, kind: str, settings: dict[str, Any], reason: str) -> None:
    model = make_model(kind, **settings)
    before = model.config._attn_implementation
    with pytest.raises(UnsupportedModelError, match=f"^{reason}$"):
        Stepper(model, 2)
    assert model.config._attn_implementation == before
    (completion,) = decode_all(plainly(model, tokenizer), [request("dog")])
    assert completion.tokens == decode_all(plainly(make_model(kind, **settings), tokenizer), [request("dog")])[0].tokens


def test_model_with_different_logits_is_refused() -> None:
    """Whatever the reason, it is found out."""
    model = make_model("Llama")
    attend = model.model.layers[1].self_attn.forward

    def keep_something(*args: Any, **kwargs: Any) -> Any:
        out, weights = attend(*args, **kwargs)
        return out + 0.1 * out.mean(1, keepdim=True), weights

    model.model.layers[1].self_attn.forward = keep_something
    with pytest.raises(UnsupportedModelError, match="its logits come out differently"):
        Stepper(model, 2)


@pytest.mark.parametrize(
    ("kind", "how"), [("Llama", "slots without graphs"), ("Gemma2", "plain: its attention has softcap")]
)
def test_identity_names_decoding(
    tmp_path: Path, tokenizer: Any, kind: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(kind)
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)

    async def scene() -> tuple[str, str]:
        opened = open_model(build_config({"task": "t", "model": f"hf/{tmp_path}", "api": "completions"}))
        await opened.prepare(list)
        output = await opened.generate(request("dog"))
        await opened.close()
        return opened.identity()["decoding"], output.text

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)  # also where there is one
    decoding, plain = asyncio.run(scene())
    assert decoding == "plain: there is no GPU"
    monkeypatch.setattr("proctor.models.providers.transformers.SLOT_DEVICES", {"cpu"})
    assert asyncio.run(scene()) == (how, plain)


def test_each_device_has_a_replica(tmp_path: Path, tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model("Llama")
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    requests = [request(PROMPTS[i % 6], seed=i, **SAMPLED) for i in range(12)]
    expected = [completion.text for completion in decode_all(plainly(model, tokenizer), requests)]
    seated: dict[str, set[int]] = {}
    start_row = SlotEngine._start_row

    def noting(engine: SlotEngine, row: Any) -> None:
        seated.setdefault(row.job.request.prompt, set()).add(id(engine))
        start_row(engine, row)

    async def scene() -> list[str]:
        config = build_config({"task": "t", "model": f"hf/{tmp_path}", "api": "completions", "devices": 2})
        opened = open_model(config)
        await opened.prepare(list)
        outputs = await asyncio.gather(*(opened.generate(each) for each in requests))
        await opened.close()
        return [output.text for output in outputs]

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(UsageError, match="--devices 2: this machine has 0 GPUs"):
        asyncio.run(scene())
    monkeypatch.setattr("proctor.models.providers.transformers.find_devices", lambda count: ["cpu"] * count)
    monkeypatch.setattr("proctor.models.providers.transformers.SLOT_DEVICES", {"cpu"})
    monkeypatch.setattr(SlotEngine, "_start_row", noting)
    assert asyncio.run(scene()) == expected
    assert {len(engines) for engines in seated.values()} == {1}, "each prompt is read on one of them"
    assert len(set().union(*seated.values())) == 2
