"""Infilling: which tokens a model is asked with, and what of its answer is compared."""

from __future__ import annotations

from typing import Any

import pytest

import proctor
from helpers.paths import DATA
from proctor.code import get_task
from proctor.code.rows import read_rows
from proctor.core.config import build_config
from proctor.core.types import Message

FILE = str(DATA / "code_rows" / "santacoder_fim.jsonl")


def evaluate(task: str, **options: Any) -> proctor.Report:
    return proctor.evaluate(f"code/{task}", "scripted/oracle", data=FILE, **options)


@pytest.mark.parametrize(
    ("task", "options", "token"),
    [
        ("santacoder_fim", {}, "<fim-prefix>"),
        ("starcoder_fim", {}, "<fim_prefix>"),
        ("santacoder_fim", {"fim": "qwen"}, "<|fim_prefix|>"),
    ],
)
def test_the_tokens_are_the_users_or_the_tasks(task: str, options: dict[str, Any], token: str) -> None:
    report = evaluate(task, api="completions", **options)
    prompts = [record.sample.input for record in report.records()]
    assert all(isinstance(prompt, str) and prompt.startswith(token) for prompt in prompts)


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        ({}, {"<|endoftext|>", "<|filename|>", "<file_sep>"}),
        ({"fim": "codellama", "stop": ["\n\n"]}, {"<|endoftext|>", "<|filename|>", " <EOT>", "<EOT>", "\n\n"}),
        ({"fim": "codellama", "api": "chat"}, set()),
    ],
)
def test_a_model_is_stopped_by_what_ends_a_middle(options: dict[str, Any], ends: set[str]) -> None:
    task = get_task("starcoder_fim", data=FILE)
    config = build_config({"task": "t", "model": "hf/x", "api": "completions", "limit": 1} | options)
    (sample,) = task.samples(config)
    stop = task.request(sample, 0, config).sampling.stop
    assert set(stop) == ends
    assert len(stop) == len(ends)


def test_a_chat_model_sees_the_hole() -> None:
    asked = next(iter(evaluate("starcoder_fim", api="chat", limit=1).records())).sample.input
    assert not isinstance(asked, str)
    (message,) = asked
    assert isinstance(message, Message)
    assert "while n > 1:\n<FILL IN HERE>        count += 1" in str(message.content)


def test_a_chat_model_sees_the_hole_in_the_language_of_its_row() -> None:
    asked = [str(record.sample.input[0].text) for record in evaluate("starcoder_fim", api="chat").records()]  # type: ignore[union-attr]
    fences = [text.partition("```")[2].partition("\n")[0] for text in asked]
    languages = {"py": "python", "js": "javascript", "java": "java"}
    assert fences == [languages[row["language"]] for row in read_rows(FILE)]
    assert len(set(fences)) == 3


def test_each_language_is_counted_apart() -> None:
    report = evaluate("santacoder_fim", api="completions")
    assert report.metrics["exact_match"].value == 1
    assert set(report.run.groups["language"]) == {"java", "js", "py"}


@pytest.mark.parametrize(
    ("middle", "similarity"),
    [
        ("            count++;", 1),
        ("count++;\n", 1),
        ("            count++;<|endoftext|>class", 1),
        ("            count ++;", 8 / 9),
        ("            count++; // one more", 8 / 20),
        ("", 0),
    ],
)
def test_only_the_middle_counts_and_only_space_around_it_may_differ(middle: str, similarity: float) -> None:
    task = get_task("santacoder_fim", data=FILE)
    row = task.rows()[2]
    generation = task.postprocess_generation(f"{row['prompt']}{middle}{row['suffix']}", 2)
    found = task.process_results([[generation]], [task.get_reference(row)])
    assert found == {"exact_match": similarity == 1, "edit_similarity": pytest.approx(similarity)}
    found = task.process_results([[generation, ""]], [task.get_reference(row)])
    assert found == {"exact_match": (similarity == 1) / 2, "edit_similarity": pytest.approx(similarity / 2)}
