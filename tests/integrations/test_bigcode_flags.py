"""Command lines of the BigCode harness: each flag does what it does there, or says that it is not needed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import proctor as package
from conftest import Command
from helpers.bigcode_tasks import FUNCTIONS, RUNNING, write_rows, write_task
from proctor.core.config import build_config
from proctor.core.errors import UsageError
from proctor.models.inference.checkpoint import _placement
from proctor.models.providers.generations import LOADED

COPYING = """
    from bigcode_eval.base import Task

    class Copying(Task):
        def __init__(self, prompt="prompt"):
            super().__init__(stop_words=["STOP"], requires_execution=False)

        def get_dataset(self):
            return [{"prompt": f"p{i} ", "canonical_solution": f"s{i}STOPmore"} for i in range(4)]

        def get_prompt(self, doc):
            return doc["prompt"]

        def get_reference(self, doc):
            return doc["prompt"] + doc["canonical_solution"]

        def postprocess_generation(self, generation, idx):
            return generation.partition("STOP")[0].upper()

        def process_results(self, generations, references):
            return {"long": sum(len(text) > 4 for texts in generations for text in texts) / len(generations)}
"""
OPTIONS = ["--model", "scripted/replay:said.jsonl", "--api", "completions", "--json"]


@pytest.fixture
def task() -> str:
    """What a model says to its four problems is there, too, twice each."""
    write_rows([{"id": str(i), "outputs": [{"text": f"s{i}STOPmore"}] * 2} for i in range(4)], "said.jsonl")
    return f"{write_task(COPYING, name='copying.py')}:Copying"


def run_of(done: Any) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    return dict(run)


def generations() -> list[list[str]]:
    return [list(texts) for texts in json.loads(Path("generations_copying.json").read_text())]


def test_a_command_line_with_all_that_is_not_needed(proctor: Command, task: str) -> None:
    needless = ["--left_padding", "--use_auth_token", "--save_every_k_tasks", "1", "--max_memory_per_gpu", "auto"]
    done = proctor("run", "--task", task, *OPTIONS, *needless)
    assert run_of(done)["n"] == 4
    for flag in ("--left-padding", "--use-auth-token", "--save-every-k-tasks", "--max-memory-per-gpu"):
        assert f"note: {flag} changes nothing: " in done.stderr


def test_tasks_are_named_in_any_way(proctor: Command, task: str) -> None:
    write_task(COPYING, name="other.py")
    done = proctor("run", "--tasks", f"{task},tasks/other.py:Copying", "--task", task, *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["runs"]) == 3


def test_an_option_that_a_task_lacks_is_noted(proctor: Command, task: str) -> None:
    lacking = f"{write_task(COPYING.replace('self, prompt=', 'self, other='), name='lacking.py')}:Copying"
    done = proctor("run", task, lacking, *OPTIONS, "--prompt", "x", "--load_data_path", "y")
    assert done.returncode == 0, done.stderr
    assert f"note: --prompt is left out of {lacking}: there is no such setting.\n" in done.stderr
    assert f"note: --load-data-path is left out of {task}, {lacking}: " in done.stderr
    settings = [run["config"]["settings"] for run in json.loads(done.stdout)["runs"]]
    assert settings == [{"prompt": "x"}, {"other": "prompt"}]


def test_postprocess_switches_it_off_as_there(proctor: Command, task: str) -> None:
    save = ["--save_generations"]
    run_of(proctor("run", task, *OPTIONS, *save))
    assert generations() == [[f"P{i} S{i}"] for i in range(4)]
    done = proctor("run", task, *OPTIONS, *save, "--postprocess")
    assert run_of(done)["config"]["postprocess"] is False
    assert "note: --postprocess switches post-processing off" in done.stderr
    assert generations() == [[f"p{i} s{i}STOPmore"] for i in range(4)]


def test_eos_is_one_more_end(proctor: Command, task: str) -> None:
    run = run_of(proctor("run", task, *OPTIONS, "--eos", "</s>", "--stop", "###"))
    assert run["config"]["stop"] == ["###", "</s>"]


def test_the_model_names_who_made_the_generations(proctor: Command, task: str, tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(json.dumps([[f"text {i}"] for i in range(4)]))
    load = ["--load_generations_path", "g.json", "--metric_output_path", "m.json", "--save_generations"]
    done = proctor("run", task, "--model", "someone/starcoder", *load, "--json")
    run = run_of(done)
    assert (run["candidate"], run["config"]["generations"]) == ("someone/starcoder", "g.json")
    assert json.loads((tmp_path / "m.json").read_text())["config"]["model"] == "someone/starcoder"
    assert json.loads((tmp_path / "generations_copying.note.json").read_text())["model"] == "someone/starcoder"
    assert generations() == [[f"text {i}"] for i in range(4)]
    proctor("run", task, *load[:2])
    boards = json.loads(proctor("leaderboard", "--json").stdout)["boards"]
    names = {entry["candidate"] for board in boards for entry in board["entries"]}
    assert names == {"someone/starcoder", "scripted/generations:g.json"}
    assert len(boards) == 1, "whose generations were loaded is no other exam"


@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_problems_that_a_file_has_are_not_asked_again(
    proctor: Command, task: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, n: int
) -> None:
    """A list that is too short, of a job that was cut off, is asked for as a whole; so is what is not there."""
    there = [["a"] * n, ["b"] * n, ["c"] * (n - 1), None]
    (tmp_path / "part.json").write_text(json.dumps(there))
    load = ["--load_generations_intermediate_paths", "part.json", "--n_samples", str(n), "--save_generations"]
    done = proctor("run", task, *OPTIONS, *load)
    assert run_of(done)["n"] == 4
    assert "note: 2 problems have their generations in part.json; the others are generated." in caplog.text
    assert generations() == [["a"] * n, ["b"] * n, ["P2 S2"] * n, ["P3 S3"] * n]


def test_a_part_of_the_problems_goes_with_a_part_of_the_generations(task: str, tmp_path: Path) -> None:
    """Without a note, a file begins with the first problem of the run, as the harness writes it."""
    (tmp_path / "part.json").write_text('[["a"]]')
    options: dict[str, Any] = {"api": "completions", "limit_start": 2, "partial_generations": "part.json"}
    report = package.evaluate(task, "scripted/replay:said.jsonl", **options)
    assert [record.outputs[0].finish == LOADED for record in report.records()] == [True, False]
    assert report.run.provenance["candidate"]["generations"]
    options["partial_generations"] = "of a job that has not begun.json"
    report = package.evaluate(task, "scripted/replay:said.jsonl", **options)
    assert [record.outputs[0].finish == LOADED for record in report.records()] == [False, False]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--load_generations_intermediate_paths", "a.json", "b.json"], "1 tasks need 1 files, got 2"),
        (["--load_generations_intermediate_paths", "flat.json"], "flat.json is not a list of lists"),
        (
            ["--load_generations_intermediate_paths", "flat.json", "--load_generations_path", "whole.json"],
            "give only one of them",
        ),
        (["--k", "1,many"], "expected whole numbers such as 1,5,10, got '1,many'"),
        (["--k", "0"], "k: expected int >= 1"),
    ],
)
def test_what_cannot_be_loaded(proctor: Command, task: str, arguments: list[str], said: str) -> None:
    Path("flat.json").write_text('["a"]')
    Path("whole.json").write_text('[["a"], ["a"], ["a"], ["a"]]')
    done = proctor("run", task, *OPTIONS, *arguments)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


# A choice of k.

COUNTING = """
        def process_results(self, generations, references):
            from evaluate import load
            return load("code_eval").compute(predictions=generations, references=references, k=[1, 4])[0]
"""


@pytest.mark.parametrize("name", ["Running", pytest.param("Counting", marks=pytest.mark.slow)])
def test_k_is_chosen_for_any_task_that_passes_or_fails(proctor: Command, tmp_path: Path, name: str) -> None:
    """Also for a file that has its own: pass@2 of four tries, of which one, two and three are right."""
    counting = "\n    class Counting(Running):\n" + COUNTING
    path = write_task(RUNNING + counting)
    texts = [[FUNCTIONS[i]] * (i + 1) + ["pass"] * (3 - i) for i in range(3)]
    (tmp_path / "g.json").write_text(json.dumps(texts))
    load = ["--load_generations_path", "g.json", "--data", write_rows(), "--allow_code_execution", "--workers", "1"]
    done = proctor("run", f"{path}:{name}", *load, "--k", "1,2,3,9", "--json")
    run = run_of(done)
    found = {key: metric["value"] for key, metric in run["metrics"].items() if key.startswith("pass@")}
    expected = {"pass@1": 0.5, "pass@2": (1 / 2 + 5 / 6 + 1) / 3, "pass@3": (3 / 4 + 1 + 1) / 3}
    if name == "Counting":
        expected["pass@4"] = 1.0
    assert found == pytest.approx(expected)
    assert "note: no pass@9: it needs --n-samples 9." in done.stderr


def test_k_is_noted_where_nothing_passes_or_fails(proctor: Command, task: str) -> None:
    assert "note: no pass@1: the task does not report it." in proctor("run", task, *OPTIONS, "--k", "1").stderr


# Memory of GPUs.


def placement(device: str = "cuda:0", **options: Any) -> dict[str, Any]:
    config = build_config({"task": "t", "model": "hf/a/b", **options})
    torch = SimpleNamespace(cuda=SimpleNamespace(device_count=lambda: 2))
    return _placement(config, device, torch, SimpleNamespace(BitsAndBytesConfig=dict))


def test_memory_of_each_gpu() -> None:
    assert placement(max_memory_per_gpu="auto") == {"device_map": "auto"}
    found = placement(max_memory_per_gpu="20GiB", device_map="balanced")
    assert found["device_map"] == "balanced"
    assert {gpu: found["max_memory"][gpu] for gpu in (0, 1)} == {0: "20GiB", 1: "20GiB"}
    assert found["max_memory"]["cpu"].endswith("MiB"), "what does not fit lies there"
    assert placement(max_memory_per_gpu="20GiB", load_in_8bit=True)["device_map"] == "auto"
    assert placement("cpu", max_memory_per_gpu="20GiB") == {}, "without a GPU there is nothing to share"
    with pytest.raises(UsageError, match=r"max_memory_per_gpu: spreads one copy"):
        placement(max_memory_per_gpu="auto", devices=2)
