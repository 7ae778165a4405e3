"""Generations, references and metrics as files: what is saved can be loaded again, whatever part of the exam it is."""

from __future__ import annotations

import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import proctor
from conftest import Command
from helpers.code_tasks import score_of
from helpers.paths import DATA
from proctor.analysis.report import Report
from proctor.code.rows import read_rows
from proctor.core.errors import UsageError
from proctor.formats.code_files import RunNames, save_generations, save_metrics, save_references, task_path

COPYING = """
from proctor.code import Task

class Copying(Task):
    def __init__(self):
        super().__init__(stop_words=["\\n#"])

    def get_prompt(self, doc):
        return doc["prompt"]

    def get_reference(self, doc):
        return doc["canonical_solution"]

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


@pytest.fixture
def _without_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the package that asks it were not installed."""
    monkeypatch.setitem(sys.modules, "datasets", None)


def wanted_part(limit_start: int, limit: int | None) -> list[int]:
    return list(range(6))[limit_start : None if limit is None else limit_start + limit]


parts = st.tuples(st.integers(0, 5), st.none() | st.integers(1, 7))


@settings(max_examples=15)
@given(saved=parts, loaded=parts, n=st.integers(1, 3), wrong=st.sets(st.integers(0, 5)), with_note=st.booleans())
def test_limit_and_load_and_save_agree(
    copying: tuple[str, str],
    saved: tuple[int, int | None],
    loaded: tuple[int, int | None],
    n: int,
    wrong: set[int],
    with_note: bool,
) -> None:
    task, data = copying
    all_texts = [[f"s{i}" if i not in wrong else f"{i} {k}" for k in range(n)] for i in range(6)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def run(file: Path, part: tuple[int, int | None], **options: Any) -> Report:
            with mock.patch("proctor.code.foreign.overrides", return_value=False):  # many runs, without a worker each
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


@pytest.mark.slow
def test_a_note_is_about_its_file_alone(copying: tuple[str, str], tmp_path: Path) -> None:
    """One that another file left behind says nothing; one of another task's generations is believed."""
    task, data = copying
    part = tmp_path / "part.json"
    saved: dict[str, Any] = {"data": data, "api": "completions"}
    save_generations(proctor.evaluate(task, "scripted/oracle", limit_start=2, limit=2, **saved), part)
    part.write_text(json.dumps([[f"s{i}"] for i in range(3)]))
    again = proctor.evaluate(task, f"scripted/generations:{part}", limit=3, data=data)
    assert again.metrics["exact"].value == 1

    save_generations(proctor.evaluate(task, "scripted/oracle", **saved), part)
    other = tmp_path / "other.py"
    other.write_text(COPYING)
    with pytest.raises(
        UsageError, match=r"has generations of .*copying\.py:Copying, not of .*other\.py:Copying; .* remove"
    ):
        proctor.evaluate(f"{other}:Copying", f"scripted/generations:{part}", data=data)
    (tmp_path / "part.note.json").unlink()
    assert proctor.evaluate(f"{other}:Copying", f"scripted/generations:{part}", data=data).metrics["exact"].value == 1


def test_references_and_metrics(copying: tuple[str, str], tmp_path: Path) -> None:
    task, data = copying
    report = proctor.evaluate(task, "scripted/oracle", data=data, limit_start=1, limit=2, api="completions")
    save_references(report, tmp_path / "references.json")
    assert json.loads((tmp_path / "references.json").read_text()) == ["s1", "s2"]
    save_metrics({"copying": report}, tmp_path / "metrics.json")
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["copying"] == {"exact": 1.0}
    assert metrics["config"]["limit_start"] == 1
    assert metrics["config"]["tasks"] == "copying"


def test_metrics_have_the_groups_of_the_report(tmp_path: Path) -> None:
    data = str(DATA / "code_rows" / "santacoder_fim.jsonl")
    report = proctor.evaluate("code/santacoder_fim", "scripted/oracle", data=data, api="completions")
    save_metrics({"santacoder_fim": report}, tmp_path / "metrics.json")
    found = json.loads((tmp_path / "metrics.json").read_text())["santacoder_fim"]
    of_each = {"exact_match": 1.0, "edit_similarity": 1.0}
    assert found == {**of_each, "by language": dict.fromkeys(("java", "js", "py"), of_each)}


def test_every_task_has_files_of_its_own(copying: tuple[str, str]) -> None:
    assert task_path("out/generations.json", "humaneval").as_posix() == "out/generations_humaneval.json"
    task, _ = copying
    alone = RunNames(["code/humaneval", task, task])
    assert [alone.name(task, {}) for task in ("code/humaneval", task)] == ["humaneval", "copying"]
    alike = RunNames(["a/exam", "b/exam", task], swept="k")
    assert alike.name("b/exam", {"j": 1}) == "b_exam"
    assert alike.name(task, {"k": [1, "x/y"]}) == "copying_k=-1,-x-y-"


def test_variants_of_one_file_have_names_of_their_own_whether_they_run_together_or_not(tmp_path: Path) -> None:
    factory = "\ndef create_all_tasks():\n    return {f'exam-{x}': type('Made', (A,), {}) for x in ('a/b', 'c')}\n"
    (tmp_path / "dup.py").write_text(DOUBLE + factory)
    tasks = [f"{tmp_path}/dup.py:{name}" for name in ("A", "B", "exam-a/b", "exam-c")]
    expected = ["dup_A", "dup_B", "exam-a-b", "exam-c"]
    together = RunNames(tasks)
    assert [together.name(task, {}) for task in tasks] == expected
    assert [RunNames([task]).name(task, {}) for task in tasks] == expected
    both = RunNames([tasks[3], "code/exam-c"])
    assert [both.name(task, {}) for task in (tasks[3], "code/exam-c")] == ["dup_exam-c", "code_exam-c"]
    assert RunNames([]).name("gone.py:pal-x", {}) == "pal-x", "a run may have outlived its file"


DOUBLE = """
from proctor.code import Task

class A(Task):
    mark = 0.25

    def __init__(self, k=1):
        super().__init__()
        self.k = k

    def get_dataset(self):
        return [{"canonical_solution": "good"}, {"canonical_solution": "bad"}]

    def get_prompt(self, doc):
        return f"{self.k}: "

    def get_reference(self, doc):
        return type(self).__name__

    def postprocess_generation(self, generation, idx):
        if generation.endswith("bad"):
            raise IndexError("list index out of range")
        return generation

    def process_results(self, generations, references):
        return {"em": self.mark}

class B(A):
    mark = 0.75
"""


@pytest.mark.slow
def test_tasks_of_one_file_and_points_of_a_sweep_have_files_of_their_own(proctor: Command, tmp_path: Path) -> None:
    (tmp_path / "dup.py").write_text(DOUBLE)
    options = ["--model", "scripted/oracle", "--api", "completions", "-q"]
    saved = ["--save_generations", "--save_references", "--metric_output_path", "m.json"]
    done = proctor("run", "dup.py:A", "dup.py:B", *options, *saved)
    assert done.returncode == 0, done.stderr
    metrics = json.loads((tmp_path / "m.json").read_text())
    assert (metrics["dup_A"], metrics["dup_B"]) == ({"em": 0.25}, {"em": 0.75})
    # What the task cannot read is an empty list, and the rest is there.
    assert json.loads((tmp_path / "generations_dup_A.json").read_text()) == [["1: good"], []]
    assert json.loads((tmp_path / "references_dup_B.json").read_text()) == ["B", "B"]
    done = proctor("run", "dup.py:A", "--sweep", "k=2,3", *options, *saved)
    assert done.returncode == 0, done.stderr
    assert set(json.loads((tmp_path / "m.json").read_text())) == {"dup_A_k=2", "dup_A_k=3", "config"}
    assert json.loads((tmp_path / "generations_dup_A_k=3.json").read_text()) == [["3: good"], []]


def test_two_runs_for_one_file_are_refused_before_the_first(proctor: Command, tmp_path: Path) -> None:
    (tmp_path / "dup.py").write_text(DOUBLE)
    for tasks, saved, said in (
        (["dup.py:A", "dup.py:A"], ["--save_generations"], "to generations_dup_A.json: give"),
        (["dup.py:A", "dup.py:A"], ["--metric_output_path", "m.json"], "would be dup_A in m.json"),
        (["dup.py:A"], ["--save_generations_path", "x.json", "--save_references_path", "x.json"], "to x_dup_A.json"),
    ):
        done = proctor("run", *tasks, "--model", "scripted/oracle", *saved)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr


def test_generations_of_a_task_that_looks_for_libraries(tmp_path: Path) -> None:
    """There is no sandbox to look into any more when files are written."""
    rows = DATA / "code_rows" / "mbppplus.jsonl"
    options: dict[str, Any] = {"data": str(rows), "limit": 2, "api": "completions"}
    judged = proctor.evaluate("code/mbppplus", "scripted/oracle", allow_code_execution=True, **options)
    save_generations(judged, tmp_path / "judged.json")
    asked = proctor.evaluate("code/mbppplus", "scripted/oracle", generation_only=True, **options)
    save_generations(asked, tmp_path / "asked.json")
    texts = json.loads((tmp_path / "judged.json").read_text())
    assert [len(of_one) for of_one in texts] == [1, 1]
    assert texts == [[score_of(record).answer[0]["generation"]] for record in judged.records()]
    assert texts == json.loads((tmp_path / "asked.json").read_text())


def test_the_guides_command_lines(proctor: Command, tmp_path: Path) -> None:
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
def test_rows_as_python_writes_them(tmp_path: Path, ending: str) -> None:
    """With numbers that are none in JSON, and half of a character."""
    path = tmp_path / f"rows.{ending}"
    row = {"high": math.inf, "texts": [{"a\ud83d": "b\ud83d"}], "low": -math.inf, "whole": "\U0001f642"}
    path.write_text(json.dumps([row] if ending == "json" else row))
    assert read_rows(path) == [row | {"texts": [{"a?": "b?"}]}]
    path.write_text(path.read_text().replace("-Infinity", "NaN"))
    assert math.isnan(read_rows(path)[0]["low"])


@pytest.mark.parametrize("content", ["[NaN]", "NaN", '{"a": NaN', '{"a": [NaN}'])
def test_what_is_no_row_is_none_with_such_numbers_either(tmp_path: Path, content: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(content)
    with pytest.raises(UsageError, match="line 1: not a row in JSON"):
        read_rows(path)


@pytest.mark.slow
def test_a_flag_for_constructors_is_given_to_those_that_take_it(
    proctor: Command, copying: tuple[str, str], tmp_path: Path
) -> None:
    task, data = copying
    asking = COPYING.replace("def __init__(self):", "def __init__(self, prompt, load_data_path=None):")
    (tmp_path / "asking.py").write_text(asking)
    options = ["--data", data, "--model", "scripted/oracle", "--api", "completions", "--json", "-q"]
    done = proctor("run", task, "asking.py:Copying", *options, "--prompt", "x", "--load_data_path", "y")
    assert done.returncode == 0, done.stderr
    settings = [run["config"]["settings"] for run in json.loads(done.stdout)["runs"]]
    assert settings == [{}, {"prompt": "x", "load_data_path": "y"}]
    done = proctor("run", "asking.py:Copying", *options, "--prompt", "x", "--sweep", "load_data_path=a,b")
    assert done.returncode == 0, done.stderr
    settings = [run["config"]["settings"] for run in json.loads(done.stdout)["runs"]]
    assert settings == [{"prompt": "x", "load_data_path": value} for value in "ab"]


def test_a_text_answer_is_cut_once_and_has_no_prompt(copying: tuple[str, str], tmp_path: Path) -> None:
    task, _ = copying
    data = tmp_path / "rows.jsonl"
    data.write_text(json.dumps({"task_id": "0", "prompt": "a\n# b\n", "canonical_solution": "c\n# d\n# e"}))
    report = proctor.evaluate(task, "scripted/oracle", data=str(data), api="completions")
    save_generations(report, tmp_path / "g.json")
    assert json.loads((tmp_path / "g.json").read_text()) == [["c"]]


@pytest.mark.usefixtures("_without_the_hub")
def test_a_task_without_data_does_not_keep_the_next_from_running(proctor: Command) -> None:
    run = ["run", "code/mbpp", "code/parity", "--model", "scripted/oracle", "--limit", "1", "--allow-code-execution"]
    done = proctor(*run, "--json")
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
        (["code/humaneval", "--limit-start", "164"], "has 164 samples"),
        (["code/humaneval", "--few-shot", "3"], "code/humaneval has fixed prompts: leave out --few-shot"),
        (["humaneval", "--load-generations-path", "short.json"], "2 problems, from number 0 on; the run asks for 164"),
        (["code/humaneval", "--load-generations-path", "uneven.json"], "--n-samples 1"),
        (["code/humaneval", "--load-generations-path", "flat.json"], "not a list of lists"),
        (["code/humaneval", "--load-generations-path", "none.json"], "Cannot read the generations none.json"),
        (["code/humaneval", "code/mbpp", "--load-generations-path", "short.json"], "belongs to one task"),
        (["code/humaneval", "--load-generations-path", "short.json", "--check-references"], "in a file: say one"),
        (["code/humaneval", "--do-sample", "perhaps"], "expected True or False"),
        (["code/humaneval", "--sweep", "y=1,2"], "has no setting 'y'"),
        (["shapes/existence", "--data", "short.json"], "takes no --data"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("_without_the_hub")
def test_bad_input_is_one_sentence(proctor: Command, tmp_path: Path, arguments: list[str], said: str) -> None:
    row = {"prompt": "def f():\n", "test": "def check(f): pass", "entry_point": "f"}
    lacking = {key: row[key] for key in ("prompt", "entry_point")}
    (tmp_path / "lacking.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(lacking)}\n")
    (tmp_path / "broken.jsonl").write_text(f"{json.dumps(row)}\n{{nothing\n")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "short.json").write_text('[["a"], ["b"]]')
    (tmp_path / "uneven.json").write_text('[["a"], ["b", "c"]]')
    (tmp_path / "flat.json").write_text('["a", "b"]')
    done = proctor("run", *arguments, "--model", "scripted/oracle", "--allow-code-execution")
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
