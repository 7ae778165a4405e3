"""Local models of the transformers library: tiny ones with random weights, but real ones."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

import proctor
from conftest import Command
from helpers.hub_server import COMMIT, serving, use_hub
from helpers.model_session import ModelSession, decode_all
from helpers.tiny_models import END, TEXT, make_model, make_tokenizer
from proctor.core.config import build_config
from proctor.core.errors import MissingExtraError, ModelError, ProctorError, UsageError
from proctor.core.types import Message, Output, Prompt, Sample
from proctor.models import open_model
from proctor.models.base import Request, Sampling
from proctor.models.inference.checkpoint import folder_digest
from proctor.models.inference.completion import Completion
from proctor.models.inference.job import Job
from proctor.models.inference.prompt import TokenizedPrompt
from proctor.models.inference.tokenization import PromptEncoder
from proctor.models.providers.transformers import _find_slots_obstacle

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as the backend does it, who here is not the first to load it
torch = pytest.importorskip("torch", reason="the extra hf is not installed: pip install 'proctor-eval[hf]'")
transformers = pytest.importorskip(
    "transformers", reason="the extra hf is not installed: pip install 'proctor-eval[hf]'"
)

from proctor.models.inference.decoder import CausalDecoder, Decoder, Seq2SeqDecoder  # noqa: E402
from proctor.models.inference.engine import BatchEngine  # noqa: E402
from proctor.models.inference.sampler import _draw_tokens, _probabilities  # noqa: E402

PROMPTS = [
    "The quick",
    "def add(first",
    "What is in the box? There are three red circles and",
    "→",
    "dog sleeps on and on",
]
SAMPLED = {"temperature": 1.0, "top_p": 0.95, "top_k": 200}


def slow(value: Any, name: str | None = None) -> Any:
    """A parameter for `make test-all` only."""
    return pytest.param(value, marks=pytest.mark.slow, id=name)


@pytest.fixture(autouse=True)
def _on_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is a GPU, on which test_slots.py looks."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return make_tokenizer()


@pytest.fixture(scope="module")
def llama() -> Any:
    return make_model("Llama")


@pytest.fixture(scope="module")
def folder(llama: Any, tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("llama"), llama, tokenizer)


def saved(folder: Path, model: Any, tokenizer: Any) -> Path:
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def request(prompt: Prompt, **sampling: Any) -> Request:
    return Request(prompt, Sampling(**{"max_tokens": 24} | sampling), 0, Sample("s", 0, prompt))


def decoded(model: Any, tokenizer: Any, requests: Sequence[Request], batch_size: int) -> list[Completion]:
    """What an engine makes of requests that come all at once."""
    return decode_all(an_engine(model, tokenizer, batch_size), requests)


def an_engine(model: Any, tokenizer: Any, batch_size: int, decoder: Decoder | None = None) -> BatchEngine:
    causal = not model.config.is_encoder_decoder
    encoder = PromptEncoder(model, tokenizer, chat=False, causal=causal)
    if decoder is None:
        decoder = CausalDecoder(model) if causal else Seq2SeqDecoder(model, model.config.decoder_start_token_id)
    return BatchEngine("hf/tiny", decoder, encoder.start, batch_size)


class Spy:
    """Notes the shape of everything that a model reads."""

    def __init__(self, model: Any) -> None:
        self.shapes: list[tuple[int, int]] = []
        self.reading = threading.Event()
        self._hook = model.register_forward_pre_hook(self._note, with_kwargs=True)

    def _note(self, model: Any, args: Any, kwargs: dict[str, Any]) -> None:
        self.shapes.append(tuple(kwargs["input_ids"].shape))
        self.reading.set()

    def __enter__(self) -> Spy:
        return self

    def __exit__(self, *_: object) -> None:
        self._hook.remove()


# Decoding


@pytest.mark.parametrize("kind", ["Llama", "Lfm2", "T5", *map(slow, ["GPT2", "Mistral"])])
def test_greedy_tokens_equal_generate(tokenizer: Any, kind: str) -> None:
    model = make_model(kind)
    ours = decoded(model, tokenizer, [request(prompt) for prompt in PROMPTS], batch_size=3)
    for prompt, completion in zip(PROMPTS, ours, strict=True):
        tokens = tokenizer(prompt, return_tensors="pt")
        theirs = model.generate(**tokens, max_new_tokens=24, do_sample=False)[0]
        theirs = theirs[1:] if kind == "T5" else theirs[tokens["input_ids"].shape[1] :]
        assert completion.tokens == theirs.tolist()
        assert completion.text == tokenizer.decode(theirs, skip_special_tokens=True)


@pytest.mark.parametrize("kind", ["Llama", "T5", *map(slow, ["GPT2", "Mistral", "Lfm2"])])
@pytest.mark.parametrize("sampling", [slow({}, "greedy"), pytest.param(SAMPLED, id="sampled")])
def test_completions_do_not_depend_on_batch(tokenizer: Any, kind: str, sampling: dict[str, Any]) -> None:
    """Alone, in batches that are filled up again and again, and all at once; of very different lengths."""
    model = make_model(kind)
    requests = [request(PROMPTS[i % 5], seed=i // 2, max_tokens=3 + 7 * i % 24, **sampling) for i in range(12)]
    one_by_one, a_few, all_at_once = (decoded(model, tokenizer, requests, size) for size in (1, 4, 12))
    assert [c.tokens for c in one_by_one] == [c.tokens for c in a_few] == [c.tokens for c in all_at_once]
    assert len({tuple(c.tokens) for c in one_by_one}) > 6


def test_completions_of_one_prompt_share_prefill(llama: Any, tokenizer: Any) -> None:
    """Ten completions, three at a time: whoever comes later finds the prompt read."""
    prompt = PROMPTS[2]
    requests = [request(prompt, seed=i, max_tokens=2 + i, **SAMPLED) for i in range(10)]
    with Spy(llama) as spy:
        completions = decoded(llama, tokenizer, requests, batch_size=3)
    length = len(completions[0].prompt_tokens)
    assert [shape for shape in spy.shapes if shape[1] > 1] == [(1, length)]
    assert len({completion.text for completion in completions}) == 10


def test_waiting_prompts_are_prefilled_together_and_finished_rows_leave(llama: Any, tokenizer: Any) -> None:
    requests = [request(prompt, max_tokens=3 + 5 * i) for i, prompt in enumerate(PROMPTS)]
    with Spy(llama) as spy:
        completions = decoded(llama, tokenizer, requests, batch_size=4)
    longest = max(len(completion.prompt_tokens) for completion in completions[:4])
    assert spy.shapes[0] == (4, longest)
    # The last token of a completion is not read any more, and the fifth prompt came in for the first that was done.
    assert sum(rows for rows, width in spy.shapes if width == 1) == sum(len(c.tokens) - 1 for c in completions)
    assert max(rows for rows, width in spy.shapes if width == 1) == 4
    assert [shape for shape in spy.shapes[1:] if shape[1] > 1] == [(1, len(completions[4].prompt_tokens))]


@pytest.mark.parametrize("kind", ["Llama", "T5", slow("GPT2")])
def test_all_tensors_are_on_model_device(tokenizer: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in for a GPU: whatever is made without saying where has no numbers in it, and cannot be used."""
    model, work = make_model(kind), BatchEngine._work
    requests = [request(PROMPTS[i % 5], seed=i, max_tokens=3 + i, **[SAMPLED, {}][i % 2]) for i in range(8)]
    expected = [completion.tokens for completion in decoded(model, tokenizer, requests, 3)]

    def work_elsewhere(engine: BatchEngine) -> None:
        with torch.device("meta"):
            work(engine)

    monkeypatch.setattr(BatchEngine, "_work", work_elsewhere)
    assert [completion.tokens for completion in decoded(model, tokenizer, requests, 3)] == expected


# Sampling


def test_probabilities_equal_transformers() -> None:
    torch.manual_seed(0)
    logits = 5 * torch.randn(4, 300)
    settings = [Sampling(1, 0.7), Sampling(1, 1.3, top_k=7), Sampling(1, 1.0, top_p=0.6), Sampling(1, 0.5, 0.9, 40)]
    ours = _probabilities(logits, settings)
    for row, each in enumerate(settings):
        warped = logits[row : row + 1] / each.temperature
        if each.top_k:
            warped = transformers.TopKLogitsWarper(each.top_k)(None, warped)
        if each.top_p:
            warped = transformers.TopPLogitsWarper(each.top_p)(None, warped)
        chances = ours[row] / ours[row].sum()
        torch.testing.assert_close(chances, warped.softmax(-1)[0])
        assert ((chances > 0) == (warped[0] > -torch.inf)).all()


def test_draws_follow_probabilities() -> None:
    chances = torch.tensor([[0.0, 0.1, 0.0, 0.6, 0.3, 0.0]])
    draws = (torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000
    counts = torch.bincount(_draw_tokens(chances.expand(10_000, -1), draws), minlength=6)
    assert (counts - 10_000 * chances[0]).abs().max() <= 1
    assert _draw_tokens(chances, torch.tensor([1 - 2**-52], dtype=torch.float64)).tolist() == [4]
    assert _draw_tokens(chances, torch.tensor([0.0], dtype=torch.float64)).tolist() == [1]


def test_temperature_near_zero_is_greedy(llama: Any, tokenizer: Any) -> None:
    greedy, cold = decoded(llama, tokenizer, [request(PROMPTS[0]), request(PROMPTS[0], temperature=1e-40)], 2)
    assert greedy.tokens == cold.tokens


def test_seed_determines_completion(llama: Any, tokenizer: Any) -> None:
    first, other, again = decoded(llama, tokenizer, [request("The", seed=s, temperature=1.0) for s in (1, 2, 1)], 3)
    assert first.text == again.text != other.text


# The end of a completion


def typed(tokenizer: Any, text: str, prompt: str = "", **sampling: Any) -> Completion:
    """A completion of this text, token by token, as far as it is let."""
    settings = Sampling(**{"max_tokens": 10_000} | sampling)
    before = tokenizer(prompt)["input_ids"]
    completion = Completion(
        TokenizedPrompt(tuple(before)), settings, settings.max_tokens, frozenset({0}), tokenizer, before
    )
    for token in [*tokenizer(text)["input_ids"], 0]:
        if not completion.finish:
            completion.add(token)
    return completion


@hypothesis.given(
    text=strategies.text(strategies.sampled_from(TEXT + "ab\n\ufffd"), max_size=40),
    stop=strategies.lists(strategies.text(strategies.sampled_from("ab\nÖß字🙂 "), max_size=3), max_size=3),
)
@hypothesis.example("ab", ["b", "ab"])
@hypothesis.example("a🙂", ["🙂"])
@hypothesis.example("dog", [""])
def test_text_ends_before_first_stop_string(tokenizer: Any, text: str, stop: list[str]) -> None:
    completion = typed(tokenizer, text, stop=tuple(stop))
    found = [text.index(each) for each in stop if each and each in text]
    assert found or completion.text == text
    assert not any(each in completion.text for each in stop if each)
    assert text.startswith(completion.text)
    if len(set(stop) - {""}) == 1:
        assert len(completion.text) == min(found, default=len(text))
    assert completion.finish == "stop"


def test_stop_string_in_prompt_is_ignored(llama: Any, tokenizer: Any) -> None:
    free, stopped = decoded(llama, tokenizer, [request("dog"), request("dog", stop=("dog", "og"))], 2)
    assert "og" not in free.text
    assert stopped.tokens == free.tokens


def test_stop_string_cuts_completion(llama: Any, tokenizer: Any) -> None:
    (free,) = decoded(llama, tokenizer, [request(PROMPTS[0])], 1)
    stop = free.text[6:9]
    (stopped,) = decoded(llama, tokenizer, [request(PROMPTS[0], stop=(stop, free.text[12:14]))], 1)
    assert stopped.text == free.text[: free.text.index(stop)]
    assert (stopped.finish, free.finish) == ("stop", "length")
    assert len(stopped.tokens) < len(free.tokens)


def test_last_token_may_complete_stop_string(tokenizer: Any) -> None:
    tokens = len(tokenizer("the dog")["input_ids"])
    assert typed(tokenizer, "the dog", max_tokens=tokens).finish == "length"
    stopped = typed(tokenizer, "the dog", max_tokens=tokens, stop=("og",))
    assert (stopped.text, stopped.finish) == ("the d", "stop")


def test_incomplete_characters_are_kept_at_end(tokenizer: Any) -> None:
    tokens = len(tokenizer("a🙂")["input_ids"])
    cut = typed(tokenizer, "a🙂", max_tokens=tokens - 1, stop=("x",))
    assert (cut.text, cut.finish) == ("a\ufffd", "length")


@pytest.mark.parametrize("special", ["<fim_middle>", "<|im_end|>"])
def test_special_token_is_hidden_but_can_stop(llama: Any, tokenizer: Any, special: str) -> None:
    assert typed(tokenizer, f"the{special} dog").text == "the dog"
    encoder = PromptEncoder(llama, tokenizer, chat=False, causal=True)
    completion = encoder.start(request("A", stop=(special,)))
    for token in tokenizer(f"the{special}")["input_ids"]:
        completion.add(token)
    assert (completion.text, completion.finish) == ("the", "stop")


def test_special_token_with_space_marker_can_stop(llama: Any) -> None:
    """As Code Llama's ends of a middle are written."""
    tokenizer = make_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["\u2581<EOT>", "<｜end\u2581of\u2581sentence｜>"]})
    encoder = PromptEncoder(llama, tokenizer, chat=False, causal=True)
    for stop, said in ((" <EOT>", "\u2581<EOT>"), ("<｜end\u2581of\u2581sentence｜>",) * 2):
        completion = encoder.start(request("A", stop=(stop,)))
        for token in tokenizer(f"the{said}")["input_ids"]:
            completion.add(token)
        assert (completion.text, completion.finish) == ("the", "stop")


def test_every_eos_token_ends_completion(tokenizer: Any) -> None:
    model = make_model("Llama")
    model.generation_config.eos_token_id = [2, 5]
    encoder = PromptEncoder(model, tokenizer, chat=False, causal=True)
    for end in (0, 2, 5):
        completion = encoder.start(request("A"))
        completion.add(tokenizer("dog")["input_ids"][0])
        completion.add(end)
        assert completion.finish == "stop"
        assert len(completion.tokens) == 2


def test_space_after_prompt_is_kept() -> None:
    """Tokenizers of SentencePiece's kind drop the space before a first word: here it is none."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    raw = Tokenizer(models.BPE(unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    raw.decoder = decoders.Metaspace()
    raw.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=300, special_tokens=[END, "<unk>"]))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token=END)
    for stop in ((), ("!",)):
        assert typed(tokenizer, "brown fox", prompt="The quick", stop=stop).text == " brown fox"


# Prompts and limits


def test_limits_count_the_prompt(llama: Any, tokenizer: Any) -> None:
    encoder = PromptEncoder(llama, tokenizer, chat=False, causal=True)
    length = len(encoder.start(request(PROMPTS[2])).prompt_tokens)
    (completion,) = decoded(llama, tokenizer, [request(PROMPTS[2], max_length=length + 2)], 1)
    assert len(completion.tokens) == 2
    assert completion.finish == "length"
    with pytest.raises(ModelError, match=f"has {length} tokens and max_length is {length}"):
        encoder.start(request(PROMPTS[2], max_length=length))
    with pytest.raises(ModelError, match=r"has \d{3} tokens and the model's context is 256"):
        encoder.start(request("dog " * 300))
    nearly = "dog " * 100
    (completion,) = decoded(llama, tokenizer, [request(nearly, max_tokens=1_000)], 1)
    assert len(completion.prompt_tokens) + len(completion.tokens) == 256


def test_special_tokens_in_text_are_parsed(llama: Any, tokenizer: Any) -> None:
    encoder = PromptEncoder(llama, tokenizer, chat=False, causal=True)
    prompt = encoder.start(request("<fim_prefix>def<fim_suffix>\n<fim_middle>")).prompt_tokens
    assert [token for token in prompt if token < 6] == [3, 4, 5]


def test_prompt_has_one_bos_and_no_eos(llama: Any, tokenizer: Any) -> None:
    from tokenizers.processors import TemplateProcessing

    closing = make_tokenizer(bos_token="<|im_start|>")
    ends = [("<|im_start|>", 1), (END, 0)]
    closing.backend_tokenizer.post_processor = TemplateProcessing(f"<|im_start|> $A {END}", None, ends)
    encoder = PromptEncoder(llama, closing, chat=False, causal=True)
    dog = tuple(tokenizer("dog")["input_ids"])
    assert encoder.start(request("dog")).prompt_tokens == (1, *dog)
    assert encoder.start(request("<|im_start|>dog")).prompt_tokens == (1, *dog)
    assert encoder.start(request(f"dog{END}")).prompt_tokens == (1, *dog, 0)
    assert PromptEncoder(llama, closing, chat=False, causal=False).start(request("dog")).prompt_tokens == (1, *dog, 0)
    chat = PromptEncoder(llama, closing, chat=True, causal=True).start(request("dog")).prompt_tokens
    assert chat[0] == 1
    assert chat.count(1) == 2, "one for each turn"
    assert chat[-1] != 0


def test_empty_prompt_starts_from_eos(llama: Any, tokenizer: Any) -> None:
    assert PromptEncoder(llama, tokenizer, chat=False, causal=True).start(request("")).prompt_tokens == (0,)


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("dog", "<|im_start|>user\ndog<|im_end|>\n<|im_start|>assistant\n"),
        (
            (Message("system", "Be."), Message("user", "dog")),
            "<|im_start|>system\nBe.<|im_end|>\n<|im_start|>user\ndog<|im_end|>\n<|im_start|>assistant\n",
        ),
        (
            (Message("user", "dog"), Message("assistant", "The fox")),
            "<|im_start|>user\ndog<|im_end|>\n<|im_start|>assistant\nThe fox",
        ),
    ],
)
def test_messages_go_through_the_chat_template(llama: Any, tokenizer: Any, prompt: Prompt, text: str) -> None:
    encoder = PromptEncoder(llama, tokenizer, chat=True, causal=True)
    assert tokenizer.decode(encoder.start(request(prompt)).prompt_tokens) == text


def test_prompt_refused_by_template_is_sample_error(llama: Any) -> None:
    strict = make_tokenizer("{{ raise_exception('no system here') }}")
    encoder = PromptEncoder(llama, strict, chat=True, causal=True)
    with pytest.raises(ModelError, match="no system here"):
        encoder.start(request((Message("system", "Be."),)))


# Trouble


class Scarce(CausalDecoder):
    """Has memory for so many tokens, those that fill up the rows counted in."""

    def __init__(self, model: Any, tokens: int) -> None:
        super().__init__(model)
        self._memory = tokens

    def _forward(self, tokens: Any, lengths: list[int], columns: int, cache: Any, *others: Any, **seen: Any) -> Any:
        if len(lengths) * columns > self._memory:
            if cache is not None:
                cache.layers[0].keys = None  # as after a real one: some layers have the new token, others have not
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return super()._forward(tokens, lengths, columns, cache, *others, **seen)


@pytest.mark.parametrize("memory", [slow(60), 130, slow(200)])
def test_batch_that_does_not_fit_is_halved(
    llama: Any, tokenizer: Any, caplog: pytest.LogCaptureFixture, memory: int
) -> None:
    """Whether it is the prompts that do not fit, or what has grown from them."""
    requests = [request(PROMPTS[i % 5], seed=i, **SAMPLED) for i in range(16)]
    engine = an_engine(llama, tokenizer, 8, Scarce(llama, memory))
    jobs = [Job(each) for each in requests]
    engine.submit(jobs)
    texts = [job.future.result(600).text for job in jobs]
    engine.close()
    assert texts == [completion.text for completion in decoded(llama, tokenizer, requests, 8)]
    said = [record.getMessage() for record in caplog.records]
    sizes = [8, 4, 2, 1]
    assert 1 <= len(said) <= 3
    for line, (size, half) in zip(said, pairwise(sizes), strict=False):
        assert line == f"hf/tiny: a batch of {size} does not fit into memory, continuing with batches of {half}"


def fill_memory() -> None:
    torch.empty(2**62, dtype=torch.uint8)


def fill_gpu() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory.")


def fill_gpu_of_a_library() -> None:
    raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")


@pytest.mark.parametrize(
    ("kind", "run_out"),
    [("Llama", fill_gpu), ("Lfm2", fill_gpu_of_a_library), ("T5", fill_memory)],
)
def test_batch_is_halved_to_three_rows_of_memory(
    tokenizer: Any, kind: str, run_out: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    model = make_model(kind)
    requests = [request(PROMPTS[i % 5], seed=i, max_tokens=4 + i, **SAMPLED) for i in range(9)]
    expected = [completion.text for completion in decoded(model, tokenizer, requests, 9)]

    def refuse(model: Any, args: Any, kwargs: dict[str, Any]) -> None:
        if len(kwargs["attention_mask"]) > 3:
            run_out()

    model.register_forward_pre_hook(refuse, with_kwargs=True)
    assert [completion.text for completion in decoded(model, tokenizer, requests, 9)] == expected
    said = [record.getMessage() for record in caplog.records if record.name.startswith("proctor")]
    assert [line.partition("batch of ")[2] for line in said] == [
        "9 does not fit into memory, continuing with batches of 4",
        "4 does not fit into memory, continuing with batches of 2",
    ]


def test_prompt_that_does_not_fit_alone_fails_alone(llama: Any, tokenizer: Any) -> None:
    engine = an_engine(llama, tokenizer, 4, Scarce(llama, 60))
    jobs = [Job(request(prompt)) for prompt in ("The", "dog " * 90, "box", "fox")]
    engine.submit(jobs)
    with pytest.raises(ModelError, match=r"\d+ tokens do not fit into memory, even alone"):
        jobs[1].future.result(600)
    for job in (jobs[0], *jobs[2:]):
        assert job.future.result(600).usage.output_tokens == 24
    engine.close()


class Broken(CausalDecoder):
    """Fails at prompts of one token."""

    def _prefill(self, prompts: Any) -> Any:
        if len(prompts[0].tokens) == 1:
            raise IndexError("out of range")
        return super()._prefill(prompts)


def test_decoding_errors_fail_jobs(llama: Any, tokenizer: Any) -> None:
    engine = an_engine(llama, tokenizer, 1, Broken(llama))
    bad, good = Job(request("a")), Job(request("The quick"))
    engine.submit([bad, good])
    with pytest.raises(ModelError, match="decoding failed: IndexError: out of range"):
        bad.future.result(600)
    assert good.future.result(600).usage.output_tokens == 24
    engine.close()
    engine.submit([late := Job(request("dog"))])
    with pytest.raises(RuntimeError, match="closed"):
        late.future.result(600)


@pytest.fixture
def endless() -> tuple[Any, Any]:
    """A model that would go on for hours."""
    model = make_model("Llama", max_position_embeddings=10**7)
    model.generation_config.eos_token_id = None
    tokenizer = make_tokenizer()
    tokenizer.eos_token = None
    return model, tokenizer


def test_cancelled_jobs_are_dropped(endless: tuple[Any, Any]) -> None:
    model, tokenizer = endless
    engine = an_engine(model, tokenizer, 2)
    gone = [Job(request("dog", max_tokens=10**6)) for _ in range(5)]
    with Spy(model) as spy:
        engine.submit(gone)
        assert spy.reading.wait(600)
        for job in gone:
            assert job.future.cancel()
        # It is answered only when the others have left, and after it nothing is read any more.
        engine.submit([last := Job(request("dog", max_tokens=2))])
        assert last.future.result(600).usage.output_tokens == 2
        engine.close()
        assert spy.shapes[-1] == (1, 1)


def test_close_stops_decoding(endless: tuple[Any, Any]) -> None:
    engine = an_engine(*endless, 2)
    jobs = [Job(request("dog", max_tokens=10**6)) for _ in range(5)]
    with Spy(endless[0]) as spy:
        engine.submit(jobs)
        assert spy.reading.wait(600)
        engine.close()
    assert all(job.future.cancelled() for job in jobs)
    assert "local-model" not in {thread.name for thread in threading.enumerate()}


def test_cancelled_callers_do_not_block_others(
    endless: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved(tmp_path / "endless", *endless)
    admit = CausalDecoder.admit

    async def scene() -> Output:
        loop, reading = asyncio.get_running_loop(), asyncio.Event()

        def noting(*arguments: Any) -> None:
            admit(*arguments)
            loop.call_soon_threadsafe(reading.set)

        monkeypatch.setattr(CausalDecoder, "admit", noting)
        model = open_model(build_config({"task": "t", "model": str(folder), "batch_size": 2, "api": "completions"}))
        await model.prepare(list)
        callers = [asyncio.create_task(model.generate(request("dog", max_tokens=10**6))) for _ in range(4)]
        await reading.wait()
        for caller in callers:
            caller.cancel()
        output = await model.generate(request("dog", max_tokens=2))
        assert all(caller.cancelled() for caller in callers)
        await model.close()
        return output

    assert asyncio.run(scene()).usage.output_tokens == 2


# The whole


def test_model_folder_loads_and_answers(folder: Path, llama: Any, tokenizer: Any) -> None:
    with ModelSession(f"hf/{folder}", api="completions", precision="fp32") as session:
        outputs = session.ask(*(request(prompt) for prompt in PROMPTS))
        identity = session.model.identity()
    expected = decoded(llama, tokenizer, [request(prompt) for prompt in PROMPTS], 5)
    assert [output.text for output in outputs] == [completion.text for completion in expected]
    assert [output.usage.input_tokens for output in outputs] == [
        len(completion.prompt_tokens) for completion in expected
    ]
    assert all(output.seconds > 0 for output in outputs)
    assert identity["files"] == folder_digest(folder)
    assert identity["dtype"] == "float32"
    assert f"torch {version('torch')}, transformers {version('transformers')}" in identity["runtime"]


def test_run_uses_batches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the size that was asked for, however few requests may go to a server at once."""
    rows: list[int] = []
    advance = CausalDecoder.advance

    def noting(decoder: CausalDecoder, going: Sequence[int], tokens: Sequence[int]) -> None:
        rows.append(len(going))
        advance(decoder, going, tokens)

    monkeypatch.setattr(CausalDecoder, "advance", noting)
    options: dict[str, Any] = {"limit": 40, "max_tokens": 4, "batch_size": 10, "concurrency": 1}
    report = proctor.evaluate("shapes/existence", f"hf/{folder}", **options, settings={"shapes": 2})
    assert (report.run.n, report.run.errors) == (40, 0)
    assert report.run.usage.output_tokens > 40
    assert max(rows) == 10
    assert sorted(rows)[len(rows) // 2] == 10, "most of the time the batch is full"
    again = proctor.evaluate("shapes/existence", f"hf/{folder}", **options | {"batch_size": 3}, settings={"shapes": 2})
    assert [r.outputs[0].text for r in report.records()] == [r.outputs[0].text for r in again.records()]


def test_local_model_keeps_task_max_tokens_and_reports_truncation(tmp_path: Path, llama: Any, tokenizer: Any) -> None:
    folder = saved(tmp_path / "model", llama, tokenizer)
    options: dict[str, Any] = {"limit": 3, "settings": {"shapes": 2}}
    assert proctor.evaluate("shapes/existence", f"hf/{folder}", **options).run.config["max_tokens"] == 32
    run = proctor.evaluate("shapes/existence", f"hf/{folder}", **options, max_tokens=1).run
    assert run.outcomes == {"truncated": 3}, "one token of this model is no word"


def test_resume_refuses_changed_weights(tmp_path: Path, llama: Any, tokenizer: Any) -> None:
    from proctor.core.evaluation import resume

    folder = saved(tmp_path / "model", llama, tokenizer)
    options: dict[str, Any] = {"limit": 2, "max_tokens": 2, "settings": {"shapes": 2}}
    run = proctor.evaluate("shapes/existence", f"hf/{folder}", **options).run
    assert run.n == 2
    resume(run.id, {})
    with torch.no_grad():
        other = make_model("Llama")
        other.lm_head.weight.mul_(2)
    saved(folder, other, tokenizer)
    with pytest.raises(UsageError, match=r"the candidate changed \(files\)"):
        resume(run.id, {})


def test_folder_digest_detects_changes_in_every_part(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    content = bytearray(10 * 2**20)
    weights.write_bytes(content)
    (tmp_path / "README.md").write_text("one")
    before = folder_digest(tmp_path)
    (tmp_path / "README.md").write_text("two")
    assert folder_digest(tmp_path) == before
    for offset in (0, 2**20 - 1, 2**20, 2**20 + 2**22, len(content) - 1):
        content[offset] = 1
        weights.write_bytes(content)
        assert folder_digest(tmp_path) != before
        content[offset] = 0
    (tmp_path / "config.json").write_text("{}")
    assert folder_digest(tmp_path) != before


def test_precision_option_sets_dtype(folder: Path) -> None:
    with ModelSession(f"hf/{folder}", precision="bf16") as session:
        assert session.model.identity()["dtype"] == "bfloat16"
        assert session.ask(request("dog"))[0].usage.output_tokens > 0


def test_seq2seq_model_decodes(tmp_path: Path, tokenizer: Any) -> None:
    folder = saved(tmp_path / "t5", make_model("T5"), tokenizer)
    with ModelSession(f"hf/{folder}", api="completions", modeltype="seq2seq", batch_size=2) as session:
        requests = [request(prompt, seed=i, **SAMPLED) for i, prompt in enumerate(PROMPTS)]
        texts = [output.text for output in session.ask(*requests)]
    assert texts == [completion.text for completion in decoded(make_model("T5"), tokenizer, requests, 5)]
    with pytest.raises(UsageError, match="use --modeltype seq2seq"):
        proctor.evaluate("shapes/existence", f"hf/{folder}")


def test_wrong_modeltype_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="use --modeltype causal"):
        proctor.evaluate("shapes/existence", f"hf/{folder}", modeltype="seq2seq")


def test_without_chat_template_completions_api_is_used(
    tmp_path: Path, llama: Any, caplog: pytest.LogCaptureFixture
) -> None:
    folder = saved(tmp_path / "model", llama, make_tokenizer(template=None))
    with pytest.raises(UsageError, match="has no chat template: use --api completions"):
        proctor.evaluate("shapes/existence", f"hf/{folder}", api="chat")
    report = proctor.evaluate("code/parity", f"hf/{folder}", limit=1, max_tokens=2, generation_only=True)
    assert report.run.config["api"] == "completions"
    assert report.run.provenance["candidate"]["api"] == "completions"
    (record,) = report.records()
    assert isinstance(record.sample.input, str), "the code that was begun, and no word about it"
    (said,) = (record.getMessage() for record in caplog.records if record.name.startswith("proctor"))
    assert "has no chat template and is used with --api completions" in said


def test_missing_weights_are_refused(tmp_path: Path, llama: Any, tokenizer: Any) -> None:
    from safetensors.torch import load_file, save_file

    folder = saved(tmp_path / "model", llama, tokenizer)
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.0.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(UsageError, match=r"lacks 1 of its weights, for example model\.layers\.0\.mlp\.up_proj"):
        proctor.evaluate("shapes/existence", f"hf/{folder}")


def test_damaged_weights_are_refused(tmp_path: Path, llama: Any, tokenizer: Any) -> None:
    folder = saved(tmp_path / "model", llama, tokenizer)
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(UsageError, match="Cannot load hf/"):
        proctor.evaluate("shapes/existence", f"hf/{folder}")


@pytest.mark.parametrize(
    ("options", "extra"),
    [
        ({"peft_model": "x"}, "peft"),
        ({"load_in_8bit": True}, "bitsandbytes"),
        ({"load_in_4bit": True}, "bitsandbytes"),
        ({"device_map": "auto"}, "accelerate"),
    ],
)
def test_missing_extras_are_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], extra: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'proctor-eval\[{extra}\]'"):
        proctor.evaluate("shapes/existence", f"hf/{folder}", **options)


def test_both_quantizations_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        proctor.evaluate("shapes/existence", f"hf/{folder}", load_in_8bit=True, load_in_4bit=True)


@pytest.mark.parametrize(
    ("options", "why"),
    [({"devices": 2}, "remove --devices"), ({"engine": "ray"}, "on a Ray cluster each copy of a model has one GPU")],
)
def test_device_map_excludes_devices_and_ray(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=f"device_map: .*{why}"):
        build_config({"task": "t", "model": "hf/a/b", "device_map": "auto"} | options)


@pytest.mark.slow  # `make test-all` installs what it needs
def test_device_map_places_model(folder: Path) -> None:
    pytest.importorskip(
        "accelerate", reason="the extra accelerate is not installed: pip install 'proctor-eval[accelerate]'"
    )
    requests = [request(prompt) for prompt in PROMPTS]
    with ModelSession(f"hf/{folder}", api="completions") as session:
        expected = [output.text for output in session.ask(*requests)]
    with ModelSession(f"hf/{folder}", api="completions", device_map="auto") as session:
        assert [output.text for output in session.ask(*requests)] == expected


def test_slots_need_a_single_device(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model("Llama")
    assert _find_slots_obstacle(model) == "there is no GPU"
    monkeypatch.setattr("proctor.models.providers.transformers.SLOT_DEVICES", {"cpu"})
    assert _find_slots_obstacle(model) == ""
    model.hf_device_map = {"": 0}
    assert _find_slots_obstacle(model) == ""
    model.hf_device_map = {"model.layers.0": 0, "model.layers.1": 1}
    assert _find_slots_obstacle(model) == "it lies on several devices"


@pytest.mark.parametrize(
    ("fast", "said", "at_once"), [({}, None, 16), ({"cpu"}, None, 512), ({}, 40, 40), ({"cpu"}, 40, 40)]
)
def test_number_of_slots_follows_batch_size(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fast: set[str], said: int | None, at_once: int
) -> None:
    """As many as suit the way of decoding, unless the run says it; and who leaves has a successor waiting."""
    monkeypatch.setattr("proctor.models.providers.transformers.SLOT_DEVICES", fast)
    with ModelSession(f"hf/{folder}", batch_size=said) as session:
        assert session.model.slots == 2 * at_once
        assert session.ask(request("dog"))[0].usage.output_tokens > 0


@pytest.mark.slow  # `make test-all` installs what it needs
def test_adapter_is_merged(tmp_path: Path, folder: Path, tokenizer: Any) -> None:
    peft = pytest.importorskip("peft", reason="the extra peft is not installed: pip install 'proctor-eval[peft]'")
    settings = peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj", "down_proj"], init_lora_weights=False)
    adapted = peft.get_peft_model(make_model("Llama"), settings).eval()
    adapted.save_pretrained(tmp_path / "adapter")
    with ModelSession(f"hf/{folder}", api="completions", peft_model=str(tmp_path / "adapter")) as session:
        (output,) = session.ask(request(PROMPTS[0]))
        assert session.model.identity()["adapter"].endswith(folder_digest(tmp_path / "adapter"))
    (expected,) = decoded(adapted.merge_and_unload(), tokenizer, [request(PROMPTS[0])], 1)
    assert output.text == expected.text


def test_missing_transformers_is_explained(proctor: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    done = proctor("run", "shapes/existence", "--model", "hf/x/y")
    assert done.returncode == 2
    assert done.stderr == "proctor: A model of hf/ needs the extra 'hf': pip install 'proctor-eval[hf]'\n"


# The hub


def attempt(model: str, **options: Any) -> dict[str, Any]:
    try:
        report = proctor.evaluate(
            "shapes/existence", model, limit=2, max_tokens=2, settings={"shapes": 2}, api="completions", **options
        )
    except ProctorError as error:
        return {"error": str(error)}
    return {"n": report.run.n, "errors": report.run.errors, "identity": report.run.provenance["candidate"]}


@pytest.fixture(scope="module")
def attempts(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What becomes of asking a hub on loopback for models, and when it has gone."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("PROCTOR_STORE", str(home / "store"))
        patch.setattr(torch.cuda, "device_count", lambda: 0)
        with serving(folder) as url:
            use_hub(url, home / "hub", patch)
            became = {
                "there": attempt("tiny/llama"),
                "unknown": attempt("hf/tiny/other"),
                "no revision": attempt("hf/tiny/llama", revision="x"),
            }
        became |= {"away": attempt("hf/tiny/llama"), "away and unknown": attempt("hf/tiny/other")}
    return became


def test_hub_model_loads_by_commit(attempts: dict[str, Any]) -> None:
    """OWNER/NAME alone will do, as other harnesses have it."""
    became = attempts["there"]
    assert (became["n"], became["errors"]) == (2, 0)
    assert (became["identity"]["model"], became["identity"]["commit"]) == ("hf/tiny/llama", COMMIT)


def test_cached_hub_model_loads_offline(attempts: dict[str, Any]) -> None:
    assert attempts["away"] == attempts["there"]


def test_missing_hub_models_are_explained(attempts: dict[str, Any]) -> None:
    unknown = "There is no model tiny/other on the hub, and no folder of that name here."
    assert attempts["unknown"] == {"error": unknown}
    assert attempts["no revision"] == {"error": "The model tiny/llama on the hub has no revision x."}
    assert attempts["away and unknown"]["error"].startswith("Cannot load hf/tiny/other: the hub cannot be reached (")


@pytest.mark.parametrize("name", ["/nowhere/model", "./model", "~/nowhere-at-all", "a/b/c"])
def test_missing_folder_is_explained(name: str) -> None:
    with pytest.raises(UsageError, match="No folder "):
        proctor.evaluate("shapes/existence", f"hf/{name}")
