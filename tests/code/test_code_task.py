"""Code tasks on the core: settings from constructors, generations, programs judged one by one or by the task itself."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import proctor
from conftest import TaskFile
from helpers.code_tasks import prompt_text, score_of
from proctor.code import STOP_WORDS, TASK_REGISTRY, Task, get_task
from proctor.code.execution import CachedRunner, run_programs
from proctor.core import registry
from proctor.core.errors import UnknownNameError, UsageError
from proctor.core.evaluation import resume
from proctor.core.task import create_task
from proctor.formats.code_files import save_generations
from proctor.sandbox import Limits, Program
from proctor.sandbox.languages import LANGUAGES

ROWS = [
    {
        "prompt": f"def add_{i}(x):\n",
        "canonical_solution": f"    return x + {i}\n",
        "test": f"assert add_{i}(1) == {i + 1}",
    }
    for i in range(4)
]

COUNTING = """
from proctor.code import Task
from proctor.code.execution import run_programs
from proctor.sandbox import Limits, Program

class Counting(Task):
    def __init__(self, k=(1, 2), flourish="", executes=True):
        super().__init__(stop_words=["\\ndef"], requires_execution=executes)
        self.k, self.flourish = k, flourish

    def get_dataset(self):
        return self.dataset["test"]

    def get_prompt(self, doc):
        return doc["prompt"]

    def get_reference(self, doc):
        return doc["test"]
"""

BY_ITSELF = """
    def process_results(self, generations, references):
        programs = [Program(source=g, tests=r) for texts, r in zip(generations, references) for g in texts]
        trials = run_programs(programs, Limits())
        share = sum(trial.passed for trial in trials) / len(trials)
        return {"share": share, "squared": share ** 2, "longest": max(len(t) for g in generations for t in g)}
"""


Exam = Callable[..., tuple[str, str]]


@pytest.fixture
def exam(task_file: TaskFile, tmp_path: Path) -> Exam:
    """A task file with more methods, and a file with its rows."""

    def make(body: str = "", rows: list[dict[str, Any]] = ROWS) -> tuple[str, str]:
        data = tmp_path / "rows.jsonl"
        data.write_text("\n".join(map(json.dumps, rows)))
        return f"{task_file(textwrap.dedent(COUNTING) + body)}:Counting", str(data)

    return make


def evaluate(exam: tuple[str, str], model: str = "scripted/oracle", **options: Any) -> proctor.Report:
    return proctor.evaluate(exam[0], model, data=exam[1], allow_code_execution=True, **options)


def generations(tmp_path: Path, texts: list[list[str]]) -> str:
    path = tmp_path / "generations.json"
    path.write_text(json.dumps(texts))
    return f"scripted/generations:{path}"


def whole(row: dict[str, str]) -> str:
    return row["prompt"] + row["canonical_solution"]


def test_constructor_arguments_are_settings(exam: Exam) -> None:
    name, data = exam()
    task = create_task(registry.load_task_class(name), name, {"flourish": "!"}, data=data)
    assert (vars(task)["flourish"], vars(task)["k"], task.settings.executes) == ("!", (1, 2), True)
    with pytest.raises(UsageError, match=r"no setting 'flurish'; did you mean flourish\?"):
        create_task(registry.load_task_class(name), name, {"flurish": "!"}, data=data)
    report = evaluate((name, data), settings={"flourish": "?"})
    assert report.run.config["settings"] == {"k": [1, 2], "flourish": "?", "executes": True}


def test_pass_at_k_from_the_trials(exam: Exam, tmp_path: Path) -> None:
    texts = [[whole(row), "nothing", whole(row)] for row in ROWS[:2]] + [["nothing"] * 3, [whole(ROWS[3])] * 3]
    report = evaluate(exam("    ks = (1, 2, 3, 10)\n"), generations(tmp_path, texts), samples=3)
    values = {name: metric.value for name, metric in report.metrics.items()}
    one, both = (2 / 3 * 2 + 0 + 1) / 4, (1 / 3 * 2 + 0 + 1) / 4
    expected = {"pass@1": one, "pass@2": 3 / 4, "pass@3": 3 / 4, "pass^2": both, "pass^3": 1 / 4}
    assert values == pytest.approx(expected)
    records = list(report.records())
    assert [score_of(record).value for record in records] == pytest.approx([2 / 3, 2 / 3, 0, 1])
    assert [record.outcome for record in records] == ["partly", "partly", "failed", "passed"]
    assert "NameError" in score_of(records[0]).why
    assert [trial["testing"] for trial in score_of(records[3]).answer] == ["split"] * 3


def test_equal_generations_run_once(exam: Exam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from proctor.sandbox.pool import WorkerPool

    judged: list[str] = []
    judge = WorkerPool.judge

    async def counting(self: WorkerPool, program: Program, limits: Limits) -> Any:
        judged.append(program.source)
        return await judge(self, program, limits)

    monkeypatch.setattr(WorkerPool, "judge", counting)
    evaluate(exam(), generations(tmp_path, [[whole(row)] * 5 for row in ROWS]), samples=5)
    ours = [source for source in judged if "add_" in source]  # the survey of the machine runs one, too
    assert sorted(ours) == sorted(map(whole, ROWS))


def test_a_task_that_counts_itself(exam: Exam, tmp_path: Path) -> None:
    texts = [[whole(row), "def no(): pass"] for row in ROWS[:3]] + [[whole(ROWS[3])] * 2]
    report = evaluate(exam(BY_ITSELF), generations(tmp_path, texts), samples=2)
    assert report.metrics["share"].value == pytest.approx(5 / 8)
    assert report.metrics["share"].method == "student-t", "the mean of what each problem is worth"
    assert report.metrics["squared"].value == pytest.approx((5 / 8) ** 2)
    assert report.metrics["squared"].method == "jackknife", "only all problems together have it"
    low, high = report.metrics["squared"].low, report.metrics["squared"].high
    assert low is not None
    assert high is not None
    assert low < (5 / 8) ** 2 < high
    assert report.metrics["longest"].value == max(len(text) for pair in texts for text in pair)
    assert [score_of(record).value for record in report.records()] == [0.5, 0.5, 0.5, 1]


def test_programs_are_not_run_again_to_sum_up(exam: Exam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the run was resumed: how they fared is in the records."""
    name, data = exam(BY_ITSELF)
    model = generations(tmp_path, [[whole(row)] for row in ROWS])
    options: dict[str, Any] = {"data": data, "limit": 4}
    asked = proctor.evaluate(name, model, generation_only=True, **options)
    assert asked.run.n == 0
    resume("latest", {"generation_only": False, "allow_code_execution": True})

    def fails(*_: object) -> None:
        raise AssertionError("a program was run")

    monkeypatch.setattr("proctor.code.execution.SandboxRunner.run", fails)
    again = resume("latest", {"generation_only": False, "allow_code_execution": True})
    assert again.metrics["share"].value == 1


def test_epochs_are_put_together(exam: Exam, tmp_path: Path) -> None:
    name, data = exam(BY_ITSELF)
    texts = [[whole(row), "def no(): pass"] for row in ROWS]
    report = evaluate((name, data), generations(tmp_path, texts), epochs=2, limit=4)
    assert report.metrics["share"].value == pytest.approx(0.5)
    assert report.metrics["share"].n == 4


def test_executing_without_saying_so_is_refused_with_the_line_to_add(exam: Exam) -> None:
    with pytest.raises(UsageError, match=r"super\(\).__init__\(requires_execution=True, \.\.\.\)"):
        evaluate(exam(BY_ITSELF), settings={"executes": False})


BY_LOT = """
    def process_results(self, generations, references):
        import random
        texts = [[f"# {random.random()}\\n{text}" for text in of_one] for of_one in generations]
        programs = [Program(source=g, tests=r) for of_one, r in zip(texts, references) for g in of_one]
        trials = [run_programs([program], Limits())[0] for program in programs]
        share = sum(trial.passed for trial in trials) / len(trials)
        return {"share": share, "squared": share ** 2}
"""


def test_programs_that_are_others_each_time_are_run_again(exam: Exam, tmp_path: Path) -> None:
    texts = [[whole(ROWS[0])], [whole(ROWS[1])], ["nothing"], [whole(ROWS[3])]]
    report = evaluate(exam(BY_LOT), generations(tmp_path, texts))
    assert [score_of(record).value for record in report.records()] == [1, 1, 0, 1]
    assert report.metrics["share"].value == 0.75
    assert report.metrics["squared"].value == 0.75**2
    assert report.metrics["squared"].low is None, "an interval is not worth that many programs"


def test_what_has_not_been_run_is_not_remembered() -> None:
    known, new = Program(source="x = 1"), Program(source="1 /")
    (trial,) = run_programs([known], Limits())
    assert CachedRunner([]).run([], Limits()) == []
    assert CachedRunner([trial]).run([known], Limits()) == [trial]
    with pytest.raises(RuntimeError, match="other programs than before"):
        CachedRunner([trial]).run([known, new], Limits())


SPREAD = """
    def process_results(self, generations, references):
        import statistics
        return {"spread": statistics.stdev(1000 / (8 - len(texts[0])) for texts in generations)}
"""


def test_figures_of_several_problems_alone(exam: Exam, tmp_path: Path) -> None:
    options: dict[str, Any] = {"settings": {"executes": False}}
    report = evaluate(exam(SPREAD), generations(tmp_path, [["a" * n] for n in (3, 3, 4, 6)]), **options)
    assert report.metrics["spread"].value == pytest.approx(143.614067)
    assert [(record.outcome, score_of(record).value) for record in report.records()] == [("counted", None)] * 4
    assert "cannot be counted alone: StatisticsError" in score_of(next(report.records())).why
    with pytest.raises(proctor.core.errors.TaskError, match="ZeroDivisionError"):
        evaluate(exam(SPREAD), generations(tmp_path, [["a" * n] for n in (3, 8, 4, 6)]), **options)


def test_an_answer_that_cannot_be_counted_does_not_spoil_the_others(exam: Exam, tmp_path: Path) -> None:
    body = """
    def process_results(self, generations, references):
        return {"inverse": sum(1 / len(texts[0]) for texts in generations) / len(generations)}
"""
    texts = [["a"], [""], ["aaaa"], ["aa"]]
    report = evaluate(exam(body), generations(tmp_path, texts), settings={"executes": False})
    assert report.metrics["inverse"].value == pytest.approx(1.75 / 3)
    assert report.metrics["inverse"].n == 3


@pytest.mark.parametrize("right", [1.0, 0.5])
def test_figures_that_are_called_after_places_have_no_interval(exam: Exam, tmp_path: Path, right: float) -> None:
    """Alone each problem is the first: what is left out moves the others to other names."""
    body = f"""
    def process_results(self, generations, references):
        return {{f"{{place}} bugs": {{"pass@1": {right}}} for place, _ in enumerate(generations, 1)}}
"""
    report = evaluate(exam(body), generations(tmp_path, [["a"]] * 4), settings={"executes": False})
    found = {name: (metric.value, metric.low) for name, metric in report.metrics.items()}
    assert found == {f"{place} bugs pass@1": (right, None) for place in range(1, 5)}


@pytest.mark.parametrize("limit", [1, 4])
def test_counts_and_ratios_have_no_interval_of_a_proportion(exam: Exam, tmp_path: Path, limit: int) -> None:
    """Though they lie between 0 and 1 here, and are what the mean over the problems would be."""
    body = """
    def process_results(self, generations, references):
        return {"right": 1.0, "share": 1.0, "num_failed_execution": 0, "failures": 0, "n correct num": 0.0,
                "length_ratio": 1.0, "all": {"share": 1.0}, "brevity_penalty": 1.0}
"""
    texts = [["a"]] * 4
    report = evaluate(exam(body), generations(tmp_path, texts), settings={"executes": False}, limit=limit)
    assert next(iter(report.metrics)) == "all share", "what concerns all groups comes first"
    methods = {name: (metric.method, metric.low is None) for name, metric in report.metrics.items()}
    assert methods == {
        **dict.fromkeys(("all share", "right", "share"), ("wilson", False)),
        **dict.fromkeys(("num_failed_execution", "failures", "n correct num"), ("count", True)),
        **dict.fromkeys(("length_ratio", "brevity_penalty"), ("jackknife", True)),
    }


def test_outside_of_a_run_programs_have_a_sandbox_of_their_own() -> None:
    task = get_task("humaneval")
    rows = task.rows()
    right, wrong = (rows[0]["prompt"] + body for body in (rows[0]["canonical_solution"], "    return 0\n"))
    assert task.process_results([[right, wrong]], [task.get_reference(rows[0])]) == {"pass@1": 0.5}
    (trial,) = run_programs([Program(source="open('/etc/shadow')")], Limits())
    assert (trial.passed, trial.outcome) == (False, "failed")


def test_a_time_limit_from_the_command_line_is_for_both_kinds(exam: Exam, tmp_path: Path) -> None:
    slow = [[f"import time\ntime.sleep(60)\n{whole(row)}"] for row in ROWS]
    for body in ("", BY_ITSELF):
        report = evaluate(exam(body), generations(tmp_path, slow), program_timeout=0.2)
        assert [record.outcome for record in report.records()] == ["timeout"] * 4
        assert report.run.errors == 0


def test_a_missing_toolchain_is_an_error_and_no_failure(
    exam: Exam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(proctor.core.errors.TooManyErrorsError, match="SandboxFailedError: Programs in swift need"):
        evaluate(exam("    language = 'swift'\n"), limit=2)


@pytest.mark.parametrize(
    ("prompt", "whole"),
    [
        ('"import math\\ndef f(x):\\n"', "import math\ndef f(x):\n    return x"),
        ('{"instruction": "Do it.", "context": "import math\\ndef f(x):\\n"}', "import math\ndef f(x):\n    return x"),
        (
            '{"prefix": "import math\\ndef f(x):\\n", "suffix": "\\n# end"}',
            "import math\ndef f(x):\n    return x\n# end",
        ),
    ],
    ids=["continuation", "instruction", "infilling"],
)
def test_ones_own_code_never_cuts_the_prompt(exam: Exam, tmp_path: Path, prompt: str, whole: str) -> None:
    """The guide's way to cut would stop at what the prompt itself contains."""
    body = f"""
    def get_prompt(self, doc):
        return {prompt}

    def postprocess_generation(self, generation, idx):
        for stop in self.stop_words:
            if stop in generation:
                generation = generation[: generation.index(stop)]
        return generation
"""
    rows = [{"canonical_solution": "    return x\ndef g(): pass", "test": "assert f(1) == 1"}]
    report = evaluate(exam(body, rows), api="completions", fim="starcoder")
    save_generations(report, tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == [[whole]]
    assert report.metrics["pass@1"].value == 1


def test_ones_own_code_need_not_foresee_blank_texts(exam: Exam) -> None:
    body = "    def postprocess_generation(self, generation, idx):\n        return generation.split('return')[1]\n"
    report = evaluate(exam(body), "scripted/blank", api="completions")
    assert (report.run.errors, report.metrics["pass@1"].value) == (0, 0)


def test_rows_without_a_key_are_named(exam: Exam) -> None:
    with pytest.raises(
        proctor.core.errors.TaskError, match="row 1 has no 'test', which the task needs; there is: prompt"
    ):
        evaluate(exam(rows=[ROWS[0], {"prompt": "def f():"}]))


def test_registry() -> None:
    task = get_task("humaneval")
    assert isinstance(task, Task)
    assert prompt_text(task, task.get_dataset()[0]).startswith("from typing")
    assert "class Bar" not in task.postprocess_generation("def foo():\n    return 1\n\nclass Bar:", 0)
    assert task.postprocess_generation(" \n", 0) == ""
    with pytest.raises(UnknownNameError, match="did you mean humaneval"):
        get_task("humanevil")
    assert registry.expand("humaneval") == ["code/humaneval"]
    assert TASK_REGISTRY["humaneval"] is registry.load_task_class("code/humaneval")


def test_stop_words_are_of_languages_that_there_are() -> None:
    assert set(STOP_WORDS) <= {language.name for language in LANGUAGES}
