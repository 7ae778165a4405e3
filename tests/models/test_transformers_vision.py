"""Local vision models: tiny models with random weights and real images."""

from __future__ import annotations

import inspect
import io
import os
import shutil
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image as PILImage

import proctor
from helpers.model_session import ModelSession, decode_all
from helpers.tiny_models import IMAGE_TEMPLATE, TEMPLATE, make_model, make_tokenizer, save_vision_model
from proctor.core import registry
from proctor.core.config import build_config
from proctor.core.errors import ModelError, UsageError
from proctor.core.task import create_task
from proctor.core.types import Image, Message, Prompt, Sample, Text
from proctor.models.base import Request, Sampling
from proctor.models.inference.checkpoint import PROCESSOR_FILES, load_checkpoint, look_up_model
from proctor.models.inference.job import Job
from proctor.models.inference.tokenization import TEXT_ONLY, PromptEncoder

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as the backend does it, who here is not the first to load it
torch = pytest.importorskip("torch", reason="the extra hf is not installed: pip install 'proctor-eval[hf]'")
transformers = pytest.importorskip(
    "transformers", reason="the extra hf is not installed: pip install 'proctor-eval[hf]'"
)

from proctor.models.inference.decoder import CausalDecoder  # noqa: E402
from proctor.models.inference.engine import BatchEngine, EngineThread  # noqa: E402
from proctor.models.inference.sequential import SequentialWorker  # noqa: E402
from proctor.models.inference.trial import DIFFERENT_LOGITS, find_batching_obstacle  # noqa: E402

TOGETHER = ["Llava", "Qwen2VL", "Qwen2_5_VL", "Qwen3VL", "Idefics3", "Gemma3"]
ALONE = "Mllama"  # cross-attention to images
SAMPLED = {"temperature": 1.0, "top_p": 0.95, "top_k": 200}


def draw_image(width: int, height: int, colour: str = "red") -> Image:
    drawn = PILImage.new("RGB", (width, height), "white")
    drawn.paste(colour, (width // 4, height // 3, width // 2, height - 5))
    file = io.BytesIO()
    drawn.save(file, "PNG")
    return Image(file.getvalue())


def asked(*parts: str | Image) -> tuple[Message, ...]:
    return (Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts)),)


class LoadedModel(NamedTuple):
    model: Any
    encoder: PromptEncoder
    reason: str  # why its prompts cannot be decoded together

    def engine(self, batch_size: int) -> EngineThread:
        """As the backend chooses it."""
        if self.reason:
            return SequentialWorker("hf/tiny", self.model, self.encoder.start)
        return BatchEngine("hf/tiny", CausalDecoder(self.model), self.encoder.start, batch_size)


PROMPTS: list[Prompt] = [
    asked(draw_image(40, 60), "What is in the box?"),
    "The quick brown fox",
    asked("Here is one", draw_image(90, 50, "blue"), "and another", draw_image(30, 30), ". Which is larger?"),
    (Message("system", "Be brief."), *asked(draw_image(64, 20), "The lazy dog"), Message("assistant", "sleeps on")),
    (Message("user", "What is in the box? There are three red circles, two blue squares and a green triangle."),),
    asked(draw_image(100, 100, "green")),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    return cache(lambda kind: save_vision_model(kind, tmp_path_factory.mktemp(kind)))


@pytest.fixture(
    scope="module",
    params=[
        "Qwen2VL",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in (ALONE, *TOGETHER) if kind != "Qwen2VL"),
    ],
)
def each(request: pytest.FixtureRequest, folders: Callable[[str], Path]) -> LoadedModel:
    return loaded(folders(request.param))


@pytest.fixture(scope="module")
def qwen(folders: Callable[[str], Path]) -> LoadedModel:
    """Images of different sizes have different numbers of tokens, and two-dimensional positions."""
    return loaded(folders("Qwen2VL"))


@pytest.fixture(scope="module")
def mllama(folders: Callable[[str], Path]) -> LoadedModel:
    return loaded(folders(ALONE))


def loaded(folder: Path, chat: bool = True) -> LoadedModel:
    config = build_config({"task": "t", "model": f"hf/{folder}"})
    model, tokenizer, processor, _ = load_checkpoint(str(folder), look_up_model(str(folder), config), config, "cpu")
    encoder = PromptEncoder(model, tokenizer, chat, causal=True, processor=processor)
    return LoadedModel(model, encoder, find_batching_obstacle(model, encoder))


def request(prompt: Prompt, **sampling: Any) -> Request:
    return Request(prompt, Sampling(**{"max_tokens": 12} | sampling), 0, Sample("s", 0, prompt))


def as_the_library_reads(prompt: Prompt, processor: Any) -> Any:
    """Its own tokens and tensors of a prompt, by the way that its documentation shows."""
    messages = (Message("user", prompt),) if isinstance(prompt, str) else prompt
    contents = [(Text(m.content),) if isinstance(m.content, str) else m.content for m in messages]
    return processor.apply_chat_template(
        [
            {"role": message.role, "content": [as_the_library_has_it(part) for part in parts]}
            for message, parts in zip(messages, contents, strict=True)
        ],
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
        add_generation_prompt=messages[-1].role != "assistant",
        continue_final_message=messages[-1].role == "assistant",
    )


def as_the_library_has_it(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image", "image": PILImage.open(io.BytesIO(part.data))}


class Spy:
    """Records the shapes of a model's inputs, and whether they include images."""

    def __init__(self, model: Any) -> None:
        self.read: list[tuple[int, int, bool]] = []
        self.reading = threading.Event()
        self._hook = model.register_forward_pre_hook(self._note, with_kwargs=True)

    def _note(self, model: Any, args: Any, kwargs: dict[str, Any]) -> None:
        self.read.append((*kwargs["input_ids"].shape, kwargs.get("pixel_values") is not None))
        self.reading.set()

    def __enter__(self) -> Spy:
        return self

    def __exit__(self, *_: object) -> None:
        self._hook.remove()


# Decoding


def test_greedy_tokens_equal_generate(each: LoadedModel) -> None:
    """Alone, in batches that are filled up again and again, and all at once."""
    model, encoder, _ = each
    names = set(inspect.signature(model.forward).parameters)
    expected = []
    for prompt in PROMPTS:
        inputs = as_the_library_reads(prompt, encoder._processor)
        inputs = {name: value for name, value in inputs.items() if name in names}
        tokens = inputs["input_ids"]
        theirs = model.generate(**inputs, max_new_tokens=12, do_sample=False)[0, tokens.shape[1] :]
        expected.append((tuple(tokens[0].tolist()), theirs.tolist()))
    for batch_size in (1, 2, 6):
        completions = decode_all(each.engine(batch_size), [request(prompt) for prompt in PROMPTS])
        assert [(completion.prompt_tokens, completion.tokens) for completion in completions] == expected
    assert len({tuple(tokens) for _, tokens in expected}) == len(PROMPTS)


def test_completions_do_not_depend_on_batch(each: LoadedModel) -> None:
    requests = [request(PROMPTS[i % 6], seed=i // 2, max_tokens=2 + 5 * i % 13, **SAMPLED) for i in range(10)]
    alone, some, all_of_them = ([c.tokens for c in decode_all(each.engine(size), requests)] for size in (1, 3, 10))
    assert alone == some == all_of_them


def test_prompts_with_equal_tokens_keep_their_images(qwen: LoadedModel) -> None:
    colours = ["red", "blue", "yellow", "black"]
    prompts = [asked(draw_image(50, 50, colour), "What is in the box?") for colour in colours]
    completions = decode_all(qwen.engine(4), [request(prompt) for prompt in prompts])
    assert len({completion.prompt_tokens for completion in completions}) == 1
    assert len({tuple(completion.tokens) for completion in completions}) == len(colours)


def test_completions_of_one_prompt_share_prefill(qwen: LoadedModel) -> None:
    engine = qwen.engine(3)
    with Spy(qwen.model) as spy:
        completions = decode_all(engine, [request(PROMPTS[2], seed=i, max_tokens=2 + i, **SAMPLED) for i in range(8)])
    assert [read for read in spy.read if read[1] > 1] == [(1, len(completions[0].prompt_tokens), True)]
    assert len({completion.text for completion in completions}) == 8


def test_texts_are_prefilled_together_and_images_alone(qwen: LoadedModel) -> None:
    engine = qwen.engine(6)
    with Spy(qwen.model) as spy:
        decode_all(engine, [request(prompt) for prompt in PROMPTS])
    assert [(rows, seen) for rows, width, seen in spy.read if width > 1] == [(2, False)] + 4 * [(1, True)]
    assert (6, 1, False) in spy.read


def test_stop_strings_and_limits(each: LoadedModel) -> None:
    (free,) = decode_all(each.engine(1), [request(PROMPTS[0])])
    stop = free.text[4:6]
    requests = [
        request(PROMPTS[0], stop=(stop,)),
        request(PROMPTS[0], max_length=len(free.prompt_tokens) + 3),
    ]
    stopped, limited = decode_all(each.engine(2), requests)
    assert (stopped.text, stopped.finish) == (free.text[: free.text.index(stop)], "stop")
    assert (limited.tokens, limited.finish) == (free.tokens[:3], "length")


def test_context_counts_image_tokens(qwen: LoadedModel) -> None:
    with pytest.raises(ModelError, match=r"has \d{3} tokens and the model's context is 512"):
        qwen.encoder.start(request(asked(*[draw_image(100, 100)] * 40)))


def test_batch_that_does_not_fit_is_halved(qwen: LoadedModel, caplog: pytest.LogCaptureFixture) -> None:
    requests = [request(PROMPTS[i % 6], seed=i, **SAMPLED) for i in range(9)]
    expected = [completion.text for completion in decode_all(qwen.engine(9), requests)]
    engine = qwen.engine(9)

    def refuse(model: Any, args: Any, kwargs: dict[str, Any]) -> None:
        if len(kwargs["attention_mask"]) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    hook = qwen.model.register_forward_pre_hook(refuse, with_kwargs=True)
    assert [completion.text for completion in decode_all(engine, requests)] == expected
    hook.remove()
    said = [record.getMessage() for record in caplog.records if record.name.startswith("proctor")]
    assert [line.partition("batch of ")[2] for line in said] == [
        "9 does not fit into memory, continuing with batches of 4",
        "4 does not fit into memory, continuing with batches of 2",
    ]


# One at a time


def test_trial_detects_models_that_cannot_be_batched(each: LoadedModel) -> None:
    assert bool(each.reason) == type(each.model).__name__.startswith(ALONE)


def test_trial_detects_wrong_image_positions(qwen: LoadedModel, monkeypatch: Any) -> None:
    model, encoder, _ = qwen
    forward = model.forward

    def without_deltas(*args: Any, **kwargs: Any) -> Any:
        output = forward(*args, **kwargs)
        if isinstance(kwargs.get("pixel_values"), torch.Tensor) and "position_ids" not in kwargs:
            model.base_model.rope_deltas = None
        return output

    without_deltas.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    monkeypatch.setattr(model, "forward", without_deltas)
    assert find_batching_obstacle(model, encoder) == DIFFERENT_LOGITS


def test_vision_prompt_that_does_not_fit_alone_fails_alone(mllama: LoadedModel) -> None:
    model, engine = mllama.model, mllama.engine(4)
    assert isinstance(engine, SequentialWorker)

    def refuse(model: Any, args: Any, kwargs: dict[str, Any]) -> None:
        if kwargs.get("pixel_values") is not None:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    hook = model.register_forward_pre_hook(refuse, with_kwargs=True)
    with_image, text = Job(request(PROMPTS[0])), Job(request(PROMPTS[1]))
    engine.submit([with_image, text])
    with pytest.raises(ModelError, match="do not fit into memory, even alone"):
        with_image.future.result(600)
    assert text.future.result(600).usage.output_tokens == 12
    hook.remove()
    engine.close()


def test_failure_does_not_affect_next_job(mllama: LoadedModel) -> None:
    engine = mllama.engine(1)

    def refuse(model: Any, args: Any, kwargs: dict[str, Any]) -> None:
        if kwargs.get("pixel_values") is not None:
            raise IndexError("out of range")

    hook = mllama.model.register_forward_pre_hook(refuse, with_kwargs=True)
    bad, good = Job(request(PROMPTS[0])), Job(request(PROMPTS[1]))
    engine.submit([bad, good])
    with pytest.raises(ModelError, match="decoding failed: IndexError: out of range"):
        bad.future.result(600)
    assert good.future.result(600).usage.output_tokens == 12
    hook.remove()
    engine.close()


def test_completion_aborted_by_generate_is_an_error(mllama: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.models.inference.sequential.generate", lambda *_: None)
    engine = mllama.engine(1)
    engine.submit([job := Job(request("dog"))])
    with pytest.raises(ModelError, match="stopped before the completion ended"):
        job.future.result(600)
    engine.close()


def test_cancelled_jobs_are_dropped_and_close_stops_decoding(mllama: LoadedModel) -> None:
    engine = mllama.engine(1)
    with Spy(mllama.model) as spy:
        gone, after = Job(request(PROMPTS[0], max_tokens=450)), Job(request("fox", max_tokens=2))
        release = threading.Event()
        hook = mllama.model.register_forward_pre_hook(lambda *_: release.wait(600) and None)
        engine.submit([gone, after])
        assert spy.reading.wait(600)
        assert gone.future.cancel()
        release.set()
        assert after.future.result(600).usage.output_tokens == 2
        assert len(spy.read) < 20
        spy.reading.clear()
        engine.submit([last := Job(request("dog", max_tokens=450))])
        assert spy.reading.wait(600)
        engine.close()
        hook.remove()
    assert last.future.cancelled() or last.future.done()
    assert "local-model" not in {thread.name for thread in threading.enumerate()}


# Prompts


def test_invalid_image_is_refused(qwen: LoadedModel) -> None:
    with pytest.raises(ModelError, match="an image of the prompt cannot be read"):
        qwen.encoder.start(request(asked(Image(b"not a picture"), "What?")))


@pytest.mark.parametrize(
    ("template", "chat", "reason"),
    [
        (IMAGE_TEMPLATE, False, "with --api completions it takes text only"),
        (TEMPLATE, True, "its chat template does not support images"),
    ],
)
def test_vision_model_without_image_support_refuses_images(
    tmp_path: Path, template: str, chat: bool, reason: str
) -> None:
    _, encoder, reason_to_be_alone = loaded(save_vision_model("Llava", tmp_path, template), chat)
    assert encoder.no_images_reason == reason
    with pytest.raises(ModelError, match=f"the model does not take images: {reason}"):
        encoder.start(request(PROMPTS[0]))
    assert "type" not in encoder._tokenizer.decode(encoder.start(request(PROMPTS[4])).prompt_tokens)
    assert not reason_to_be_alone


# The whole


@pytest.mark.parametrize(
    ("kind", "decoding"),
    [
        ("Qwen2VL", "plain: it takes pictures"),
        (ALONE, "one at a time: "),
        pytest.param("Llava", "plain: ", marks=pytest.mark.slow),
    ],
)
def test_model_folder_loads_and_answers(folders: Callable[[str], Path], kind: str, decoding: str) -> None:
    requests = [request(prompt) for prompt in PROMPTS]
    with ModelSession(f"hf/{folders(kind)}", batch_size=4) as session:
        outputs = session.ask(*requests)
        identity = session.model.identity()
    expected = decode_all(loaded(folders(kind)).engine(6), requests)
    assert [output.text for output in outputs] == [completion.text for completion in expected]
    assert [output.usage.input_tokens for output in outputs] == [
        len(completion.prompt_tokens) for completion in expected
    ]
    assert identity["decoding"].startswith(decoding)
    assert "ImageProcessor" in identity["pictures"]
    assert "pillow" in identity["pictures"]
    assert identity["api"] == "chat"


@pytest.mark.parametrize(
    "kind", ["Qwen2VL", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("Idefics3", ALONE))]
)
def test_image_tensors_have_model_dtype(folders: Callable[[str], Path], kind: str) -> None:
    with ModelSession(f"hf/{folders(kind)}", precision="bf16") as session:
        assert session.model.identity()["dtype"] == "bfloat16"
        assert session.model.identity()["decoding"].startswith("one" if kind == ALONE else "plain")
        assert session.ask(request(PROMPTS[2]))[0].usage.output_tokens > 0


def test_run_with_images(folders: Callable[[str], Path]) -> None:
    folder = folders("Qwen2VL")
    options: dict[str, Any] = {"limit": 6, "max_tokens": 4, "modality": "image", "settings": {"shapes": 2}}
    report = proctor.evaluate("shapes/existence", f"hf/{folder}", **options, batch_size=4)
    assert (report.run.n, report.run.errors) == (6, 0)
    messages = [record.sample.input[-1] for record in report.records()]
    assert all(isinstance(message, Message) and message.images for message in messages)
    again = proctor.evaluate("shapes/existence", f"hf/{folder}", **options, batch_size=1)
    assert [r.outputs[0].text for r in report.records()] == [r.outputs[0].text for r in again.records()]


def test_text_model_is_refused_before_loading_weights(tmp_path: Path) -> None:
    transformers.utils.logging.disable_progress_bar()
    make_model("Llama").save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(UsageError, match=f"does not take images: {TEXT_ONLY}"):
        proctor.evaluate("shapes/existence", f"hf/{tmp_path}", modality="image")


def test_vision_model_with_completions_api_is_refused(folders: Callable[[str], Path]) -> None:
    folder = folders("Qwen2VL")
    with pytest.raises(UsageError, match="does not take images: with --api completions"):
        proctor.evaluate("shapes/existence", f"hf/{folder}", modality="image", api="completions")


@pytest.mark.parametrize("kind", ["Qwen2VL", pytest.param("Gemma3", marks=pytest.mark.slow)])
def test_vision_model_without_images_is_decoded_in_slots(
    folders: Callable[[str], Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)  # also where there is a GPU
    requests = [request("The quick brown fox"), request("What is in the box? There are three red circles")]
    texts = []
    for fast, decoding in (((), "plain: there is no GPU"), (("cpu",), "slots without graphs")):
        monkeypatch.setattr("proctor.models.providers.transformers.SLOT_DEVICES", fast)
        with ModelSession(f"hf/{folders(kind)}", api="completions") as session:
            assert session.model.identity()["decoding"] == decoding
            texts.append([output.text for output in session.ask(*requests)])
    assert texts[0] == texts[1]


@pytest.mark.parametrize("kind", ["Qwen2VL", pytest.param("Gemma3", marks=pytest.mark.slow)])
def test_task_without_images_is_decoded_in_slots(
    folders: Callable[[str], Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)  # also where there is a GPU
    monkeypatch.setattr("proctor.models.providers.transformers.SLOT_DEVICES", {"cpu"})
    requests = [request("The quick brown fox"), request("What is in the box? There are three red circles")]
    text = [each.sample for each in requests]
    with_image = request(asked(draw_image(40, 30), "What is this?"))
    texts = []
    for samples, inputs_known, decoding in (
        ([*text, with_image.sample], True, "plain: it takes pictures"),
        (text, False, "plain: it takes pictures"),  # in a game pictures come later
        (text, True, "slots without graphs"),
    ):
        with ModelSession(f"hf/{folders(kind)}", samples, inputs_known) as session:
            assert session.model.identity()["decoding"] == decoding
            texts.append([output.text for output in session.ask(*requests)])
            if decoding.startswith("plain"):
                assert session.ask(with_image)
            else:
                with pytest.raises(ModelError, match="does not take images: the first samples had none"):
                    session.ask(with_image)
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize(
    ("name", "inputs_known"), [("shapes/existence", True), ("code/starter", True), ("agents/hexagon", False)]
)
def test_inputs_are_known_only_without_dialogue(name: str, inputs_known: bool) -> None:
    assert create_task(registry.load_task_class(name), name, {}).asks_its_inputs == inputs_known


def test_vision_model_without_processor_is_text_model(folders: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders("Gemma3"), folder)
    for name in PROCESSOR_FILES:
        (folder / name).unlink(missing_ok=True)
    with ModelSession(f"hf/{folder}", api="completions") as session:
        assert session.ask(request("The quick brown fox"))[0].text
        assert session.model.identity().get("pictures") is None


def test_missing_processor_library_is_named(folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folders("Qwen2VL")

    def fail(*_: Any, **__: Any) -> None:
        raise ImportError("Package `num2words` is required to run SmolVLM processor.")

    monkeypatch.setattr(transformers.AutoProcessor, "from_pretrained", fail)
    with pytest.raises(UsageError, match=r"Cannot load hf/.*: Package `num2words` is required"):
        proctor.evaluate("shapes/existence", f"hf/{folder}", modality="image")
