"""Generations, references and metrics as files: what is saved can be loaded again, whatever part of the exam it is."""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import proctor
from proctor.code.rows import read_rows
from proctor.errors import UsageError
from proctor.exchange import path_for, save_generations, save_metrics, save_references
from proctor.report import Report

Proctor = Callable[..., subprocess.CompletedProcess[str]]

COPYING = """
from proctor.code import Task

class Copying(Task):
    def __init__(self):
        super().__init__(stop_words=["\\n#"])

    def get_prompt(self, doc):
        return doc["prompt"]

    def get_reference(self, doc):
        return doc["prompt"] + doc["canonical_solution"]

    def process_results(self, generations, references):
        right = [g == r for texts, r in zip(generations, references, strict=True) for g in texts]
        return {"exact": sum(right) / len(right)}
"""


@pytest.fixture(scope="module")
def copying(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A task of six problems that runs nothing, and its data."""
    folder = tmp_path_factory.mktemp("copying")
    (folder / "copying.py").write_text(COPYING)
    rows = [{"task_id": f"c/{i}", "prompt": f"p{i} ", "canonical_solution": f"s{i}"} for i in range(6)]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return f"{folder}/copying.py:Copying", f"{folder}/rows.jsonl"


def wanted_part(limit_start: int, limit: int | None) -> list[int]:
    return list(range(6))[limit_start : None if limit is None else limit_start + limit]


parts = st.tuples(st.integers(0, 5), st.none() | st.integers(1, 7))


@settings(max_examples=40)
@given(saved=parts, loaded=parts, n=st.integers(1, 3), wrong=st.sets(st.integers(0, 5)), with_note=st.booleans())
def test_limit_and_load_and_save_agree(
    copying: tuple[str, str],
    saved: tuple[int, int | None],
    loaded: tuple[int, int | None],
    n: int,
    wrong: set[int],
    with_note: bool,
):
    task, data = copying
    all_texts = [[f"p{i} s{i}" if i not in wrong else f"{i} {k}" for k in range(n)] for i in range(6)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def run(file: Path, part: tuple[int, int | None], **options: object) -> Report:
            return proctor.evaluate(
                task,
                f"scripted/generations:{file}",
                data=data,
                limit_start=part[0],
                limit=part[1],
                samples=n,
                store=str(folder / "store"),
                **options,
            )

        whole, part = folder / "whole.json", folder / "part.json"
        whole.write_text(json.dumps(all_texts))
        first = run(whole, saved)
        of_saved, of_loaded = wanted_part(*saved), wanted_part(*loaded)
        assert first.metrics["exact"].value == pytest.approx(sum(i not in wrong for i in of_saved) / len(of_saved))
        save_generations(first, part)
        assert json.loads(part.read_text()) == [all_texts[i] for i in of_saved]
        if not with_note:
            part.with_name("part.note.json").unlink()
            first_saved = of_loaded[0] if len(of_saved) == len(of_loaded) else 0
            if first_saved != of_saved[0]:
                return  # nobody could know which problems these are
        if set(of_loaded) <= set(of_saved):
            second = run(part, loaded)
            texts = [[output.text for output in record.outputs] for record in second.records()]
            assert texts == [all_texts[i] for i in of_loaded]
        else:
            with pytest.raises(UsageError, match=f"for {len(of_saved)} problems, .* asks for {len(of_loaded)},"):
                run(part, loaded)


def test_references_and_metrics(copying: tuple[str, str], tmp_path: Path):
    task, data = copying
    report = proctor.evaluate(task, "scripted/oracle", data=data, limit_start=1, limit=2, api="completions")
    save_references(report, tmp_path / "references.json")
    assert json.loads((tmp_path / "references.json").read_text()) == ["p1 s1", "p2 s2"]
    save_metrics([report], tmp_path / "metrics.json")
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["copying"] == {"exact": 1.0}
    assert metrics["config"]["limit_start"] == 1
    assert metrics["config"]["tasks"] == "copying"


def test_every_task_has_files_of_its_own():
    assert path_for("out/generations.json", "code/humaneval").as_posix() == "out/generations_humaneval.json"
    assert path_for("g.json", "my/file.py:Class").as_posix() == "g_file.json"


def test_the_guides_command_lines(proctor: Proctor, tmp_path: Path):
    exam = ["--tasks", "humaneval", "--limit", "3", "--allow_code_execution", "--json"]
    done = proctor(
        "run", *exam, "--check_references", "--n_samples", "2", "--batch_size", "4", "--do_sample", "False",
        "--save_generations", "--save_generations_path", "g.json", "--save_references",
        "--metric_output_path", "m.json", "--max_length_generation", "512", "--temperature", "0.2",
        "--save_every_k_tasks", "1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"][0]["config"]["temperature"] == 0
    generations = json.loads((tmp_path / "g_humaneval.json").read_text())
    assert [len(texts) for texts in generations] == [2, 2, 2]
    assert all("def " in text for texts in generations for text in texts)
    assert len(json.loads((tmp_path / "references_humaneval.json").read_text())) == 3
    assert json.loads((tmp_path / "m.json").read_text())["humaneval"] == {"pass@1": 1.0}
    again = proctor("run", *exam, "--load_generations_path", "g_humaneval.json")
    assert again.returncode == 0, again.stderr
    run = json.loads(again.stdout)["runs"][0]
    assert run["metrics"]["pass@1"]["value"] == 1
    assert run["config"]["samples"] == 2


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_rows_as_python_writes_them(tmp_path: Path, ending: str):
    """With numbers that are none in JSON, and half of a character."""
    path = tmp_path / f"rows.{ending}"
    row = {"high": math.inf, "texts": [{"a\ud83d": "b\ud83d"}], "low": -math.inf, "whole": "\U0001f642"}
    path.write_text(json.dumps([row] if ending == "json" else row))
    assert read_rows(path) == [row | {"texts": [{"a?": "b?"}]}]
    path.write_text(path.read_text().replace("-Infinity", "NaN"))
    assert math.isnan(read_rows(path)[0]["low"])


@pytest.mark.parametrize("content", ["[NaN]", "NaN", '{"a": NaN', '{"a": [NaN}'])
def test_what_is_no_row_is_none_with_such_numbers_either(tmp_path: Path, content: str):
    path = tmp_path / "rows.jsonl"
    path.write_text(content)
    with pytest.raises(UsageError, match="line 1: not a row in JSON"):
        read_rows(path)


def test_a_prompt_is_never_cut_and_a_completion_once(copying: tuple[str, str], tmp_path: Path):
    task, _ = copying
    data = tmp_path / "rows.jsonl"
    data.write_text(json.dumps({"task_id": "0", "prompt": "a\n# b\n", "canonical_solution": "c\n# d\n# e"}))
    report = proctor.evaluate(task, "scripted/oracle", data=str(data), api="completions")
    save_generations(report, tmp_path / "g.json")
    assert json.loads((tmp_path / "g.json").read_text()) == [["a\n# b\nc"]]


def test_a_task_without_data_does_not_keep_the_next_from_running(proctor: Proctor):
    run = ["run", "code/mbpp", "code/parity", "--model", "scripted/oracle", "--limit", "1", "--allow-code-execution"]
    done = proctor(*run, "--json", HF_HUB_OFFLINE="1")
    assert done.returncode == 2
    assert "--data FILE" in done.stderr
    assert [run["task"] for run in json.loads(done.stdout)["runs"]] == ["code/parity"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["code/mbpp", "--data", "nowhere.jsonl"], "Cannot read the rows in nowhere.jsonl"),
        (["code/mbpp"], "--data FILE"),
        (["code/humaneval", "--data", "lacking.jsonl"], "row 1 has no 'test'"),
        (["code/humaneval", "--data", "broken.jsonl"], "broken.jsonl, line 2"),
        (["code/humaneval", "--data", "empty.jsonl"], "empty.jsonl has no rows"),
        (["code/humaneval", "--limit-start", "164"], "has 164 problems"),
        (["code/humaneval", "--few-shot", "3"], "code/humaneval takes no --few-shot"),
        (["humaneval", "--load-generations-path", "short.json"], "2 problems, from number 0 on; the run asks for 164"),
        (["code/humaneval", "--load-generations-path", "uneven.json"], "--n-samples 1"),
        (["code/humaneval", "--load-generations-path", "flat.json"], "not a list of lists"),
        (["code/humaneval", "--load-generations-path", "none.json"], "Cannot read the generations none.json"),
        (["code/humaneval", "code/mbpp", "--load-generations-path", "short.json"], "belongs to one task"),
        (["code/humaneval", "--do-sample", "perhaps"], "expected True or False"),
        (["code/humaneval", "--prompt", "x"], "has no setting 'prompt'"),
        (["shapes/existence", "--data", "short.json"], "takes no --data"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(proctor: Proctor, tmp_path: Path, arguments: list[str], said: str):
    row = {"prompt": "def f():\n", "test": "def check(f): pass", "entry_point": "f"}
    lacking = {key: row[key] for key in ("prompt", "entry_point")}
    (tmp_path / "lacking.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(lacking)}\n")
    (tmp_path / "broken.jsonl").write_text(f"{json.dumps(row)}\n{{nothing\n")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "short.json").write_text('[["a"], ["b"]]')
    (tmp_path / "uneven.json").write_text('[["a"], ["b", "c"]]')
    (tmp_path / "flat.json").write_text('["a", "b"]')
    done = proctor("run", *arguments, "--model", "scripted/oracle", "--allow-code-execution", HF_HUB_OFFLINE="1")
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
