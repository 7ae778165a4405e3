"""The metrics of the BigCode evaluation harness, as its task files call them."""

from __future__ import annotations

import asyncio
import json
import textwrap
from pathlib import Path

import numpy as np
import pytest

from helpers.bigcode_tasks import FUNCTIONS, RUNNING, judge, values, write_rows, write_task
from helpers.code_tasks import score_of
from helpers.sandbox_session import SandboxSession
from proctor.integrations.bigcode import code_eval, code_to_text_bleu, diff_eval, multiple_metrics, pal_metric, utils
from proctor.integrations.bigcode.beyond_eval import compute_beyond_eval
from proctor.integrations.bigcode.evaluate import load


@pytest.fixture(scope="module", autouse=True)
def _one_sandbox_and_its_thread(session: SandboxSession, one_sandbox: None) -> None:
    session.wait(asyncio.to_thread(int))  # toolchains are looked for in a thread, which lives as long as the sandbox


def test_code_eval() -> None:
    candidates = [["def add(a, b): return a * b", "def add(a, b): return a + b"], ["def add(a, b): return 5", "1 /"]]
    passing, results = load("code_eval").compute(
        references=["assert add(2, 3) == 5"] * 2, predictions=candidates, k=[1, 2, 3]
    )
    assert passing == {"pass@1": 0.5, "pass@2": 1.0}
    assert [[(number, found["passed"]) for number, found in of_one] for of_one in results.values()] == [
        [(0, False), (1, True)],
        [(0, True), (1, False)],
    ]
    assert results[0][1][1] == {"task_id": 0, "passed": True, "result": "passed", "completion_id": 1}
    assert results[0][0][1]["result"].startswith("failed: ")
    assert "AssertionError" in results[0][0][1]["result"]
    assert "SyntaxError" in results[1][1][1]["result"]
    # Alone, the test is no Python: it is a part of the program.
    assert code_eval.compute_code_eval([["if True:"]], ["    assert True"], k=1)[0] == {"pass@1": 1.0}


LOOP = """
def check(out, right):
    assert out == right
for given, right in zip(['a b a'], [2]):
    check(set(given), right)
"""


@pytest.mark.parametrize(
    ("candidate", "test", "passed"),
    [
        ("def set(text): return len({*text.split()})", "assert set('a b a') == 2", True),  # MBPP has such functions
        ("def set(text): return len({*text.split()})", LOOP, True),
        ("def set(text): return 0", LOOP, False),
        ("def zip(*_): return []\ndef set(text): return 0", LOOP, False),  # which the test must not do without
        ("def set(_): return 0\ndef f(): return [1]", "assert set(f()) == set([2])", False),
    ],
)
def test_a_function_with_the_name_of_a_built_in_one(candidate: str, test: str, passed: bool) -> None:
    assert code_eval.compute_code_eval([[candidate]], [test], k=1)[0] == {"pass@1": float(passed)}


def test_tests_that_threads_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def confused(source: str) -> None:
        raise SystemError("AST constructor recursion depth mismatch (before=42, after=91)")

    monkeypatch.setattr("proctor.integrations.bigcode.code_eval.ast.parse", confused)
    assert code_eval.program_of("x = 1", "assert x").tests == "assert x"


def test_a_metric_takes_pairs_one_after_the_other() -> None:
    metric = load("exact_match")
    metric.add(prediction="a", reference="a")
    metric.add_batch(predictions=["b", 3], references=["c", "3"])
    assert metric.compute() == {"exact_match": pytest.approx(2 / 3)}
    assert metric.compute(predictions=["a"], references=["b"]) == {"exact_match": 0}


def test_check_correctness() -> None:
    found = code_eval.check_correctness("assert 1 + 1 == 2", 3.0, 7, 2)
    assert found == {"task_id": 7, "passed": True, "result": "passed", "completion_id": 2}
    assert not code_eval.check_correctness("raise SystemExit(0)\nassert False", 3.0, 0, 0)["passed"]


def test_estimate_pass_at_k() -> None:
    n, c = np.array([5, 5, 3]), np.array([0, 2, 3])
    by_hand = [0, 1 - (3 * 2) / (5 * 4), 1]
    assert code_eval.estimate_pass_at_k(n, c, 2) == pytest.approx(by_hand)
    assert code_eval.estimate_pass_at_k(5, [1, 5], 10).tolist() == [1, 1]


LANGUAGES = """
    import json, os, tempfile
    from pathlib import Path
    import numpy as np
    from bigcode_eval.tasks.custom_metrics.multiple_metrics.evaluation import evaluate_problem
    from bigcode_eval.tasks.custom_metrics.multiple_metrics.single_experiment_pass_k import for_file

    class ManyLanguages(Running):
        def process_results(self, generations, references):
            folder = tempfile.gettempdir()
            docs = [doc for place, doc in enumerate(self.get_dataset()) if place < len(generations)]
            names = [doc["task_id"].replace("/", "_") for doc in docs]
            for name, texts, tests in zip(names, generations, references):
                file = os.path.join(folder, f"{name}.json")
                with open(file, "w") as written:
                    problem = {"name": name, "language": "sh", "completions": texts, "tests": tests}
                    json.dump(problem, written)
                evaluate_problem(folder, file, 1)
            found = np.array([for_file(path) for path in Path(folder).glob("*.results.json")]).mean(axis=0)
            return {f"pass@{k}": v for k, v in zip([1, 10, 100], found) if k <= len(generations[0])}
"""


def test_results_in_files() -> None:
    """Each call has its folder, so that none counts the results of another."""
    task = f"{write_task(textwrap.dedent(RUNNING) + textwrap.dedent(LANGUAGES))}:ManyLanguages"
    data = [{"task_id": f"sh/{i}", "prompt": "f() {", "test": f"[ $(f) = {i} ]"} for i in range(3)]
    texts = [[f"f() {{ echo {i}; }}", "f() { echo 7; }"] for i in range(3)]
    report = judge(task, texts, data=write_rows(data, "sh.jsonl"))
    assert values(report) == {"pass@1": 0.5}
    assert [score_of(record).value for record in report.records()] == [0.5] * 3
    assert not list(Path("/tmp").glob("sh_*.results.json"))


def test_eval_string_script() -> None:
    found = multiple_metrics.eval_string_script("sh", "echo hello; echo oops >&2; exit 3")
    assert {key: found[key] for key in ("stdout", "exit_code", "status")} == {
        "stdout": "hello\n",
        "exit_code": 1,
        "status": "Exception",
    }
    assert "oops" in found["stderr"]
    assert multiple_metrics.eval_string_script("py", "1 /")["status"] == "SyntaxError"
    assert multiple_metrics.eval_string_script("notypes.py", "print(1)")["status"] == "OK"


PLACES = """
    from evaluate import load

    class ByPlace(Running):
        def process_results(self, generations, references):
            groups = {"even": [], "odd": []}
            chosen = self.get_dataset().select(range(len(generations)))
            for place, (texts, doc) in enumerate(zip(generations, chosen)):
                assert doc == self.get_dataset()[place]
                metric = load("Muennighoff/code_eval_octopack")
                test = self.get_dataset()["test"][place]
                texts[0] = "import math\\n" + texts[0]
                found, logs = metric.compute(predictions=[texts], references=[test], language="python", num_workers=1)
                groups["odd" if int(doc["task_id"][-1]) % 2 else "even"].append(found["pass@1"])
            return {f"{name} pass@1": sum(marks) / len(marks) for name, marks in groups.items() if marks}
"""


@pytest.mark.slow
def test_a_task_that_finds_its_problems_by_their_places() -> None:
    """Also when one problem is judged alone, or the run begins in the middle."""
    task = f"{write_task(textwrap.dedent(RUNNING) + textwrap.dedent(PLACES))}:ByPlace"
    report = judge(task, [[FUNCTIONS[0]], [FUNCTIONS[1]], ["nothing"]], data=write_rows())
    assert values(report) == {"even pass@1": 0.5, "odd pass@1": 1}
    assert [score_of(record).value for record in report.records()] == [1, 1, 0]
    report = judge(task, [[FUNCTIONS[1]], [FUNCTIONS[2]]], data=write_rows(), limit_start=1)
    assert values(report) == {"even pass@1": 1, "odd pass@1": 1}


def test_program_aided_answers() -> None:
    right, wrong, broken = ("print(7)\n", "print('6')", "1 / 0")
    found = pal_metric.compute([[right], [wrong], [broken]], [7, 7.0, 7])
    assert found == {"accuracy": pytest.approx(1 / 3), "num_failed_execution": 1}
    votes = [[wrong, right, broken, right]]
    assert pal_metric.compute(votes, [7], majority_voting=True)["accuracy"] == 1
    assert pal_metric.compute(votes, [7])["accuracy"] == 0
    assert pal_metric.compute([["x = 3"]], [3], answer_symbol="x")["accuracy"] == 1
    assert pal_metric.run_program("print(1)\nprint(2)", 3.0, 4, 5) == {"task_id": 4, "result": "2", "completion_id": 5}
    assert pal_metric.run_program("while True: pass", 0.3, 0, 0)["result"] == "failed: timed out"
    assert pal_metric.run_program("pass", 3.0, 0, 0)["result"].startswith("failed:")


APPS = """
    import json
    from evaluate import load
    from bigcode_eval.base import Task

    class Contest(Task):
        DATASET_PATH = "codeparrot/apps"

        def __init__(self):
            self.DATASET_NAME = "introductory"
            super().__init__(stop_words=["\\nQUESTION"], requires_execution=True)

        def get_dataset(self):
            return self.dataset["test"]

        def get_prompt(self, doc):
            return "QUESTION:\\n" + doc["question"] + "\\nANSWER:\\n"

        def get_reference(self, doc):
            return None

        def postprocess_generation(self, generation, idx):
            return generation.split("ANSWER:\\n", 1)[1]

        def process_results(self, generations, references):
            metric = load("codeparrot/apps_metric")
            return metric.compute(predictions=generations, k_list=[1, 2], level=self.DATASET_NAME)
"""


@pytest.mark.slow
def test_the_metric_of_contests() -> None:
    common = {"question": "?", "solutions": "[]", "difficulty": "introductory", "url": "", "starter_code": ""}
    adding = {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]}
    calling = {"fn_name": "twice", "inputs": [[1], [5]], "outputs": [[2], [10]]}
    rows = [{**common, "problem_id": i, "input_output": json.dumps(io)} for i, io in enumerate((adding, calling))]
    data = write_rows(rows, "apps.jsonl")
    task = f"{write_task(APPS)}:Contest"
    sums, twos = "print(sum(map(int, input().split())))", "def twice(x): return 2"
    report = judge(task, [[sums], [twos]], data=data)
    assert values(report) == {"avg_accuracy": 0.75, "strict_accuracy": 0.5}
    report = judge(task, [[sums, "nothing"], [twos, twos]], data=data)
    assert values(report) == {"pass_at_k pass@1": 0.25, "pass_at_k pass@2": 0.5}


def test_the_metric_of_fast_programs() -> None:
    slow = "class Solution:\n    def inc(self, x):\n        for _ in range(300_000): pass\n        return x + 1\n"
    fast = "class Solution:\n    def inc(self, x):\n        return x + 1\n"
    doc = {
        "slug_name": "inc",
        "prompt": "class Solution:\n    def inc(self, x):\n        ",
        "pretty_content": ["?"],
        "solutions": [{"solution": slow, "runtime": "9ms"}, {"solution": fast, "runtime": "1ms"}],
        "convert_offline": "def convert_offline(case):\n    return case\n",
        "evaluate_offline": "def evaluate_offline(inputs, outputs, expected):\n    return outputs == expected\n",
        "entry_point": "inc",
        "test_cases": json.dumps([{"input": [1], "expected": 2}]),
    }
    docs = [{**doc, "difficulty": "Easy"}, {**doc, "difficulty": "Hard"}]
    found = compute_beyond_eval([[fast], ["class Solution:\n    def inc(self, x): return x"]], docs)
    assert found["Easy"] == {"failed@cases": 0, "passed": 1}
    assert (found["Easy_pass@1"], found["Hard_pass@1"], found["Average_pass@1"]) == (1, 0, 0.5)
    assert found["Easy_beyond@1"] > found["Hard_beyond@1"] == 0


def test_code_to_text_bleu(tmp_path: Path) -> None:
    gold = tmp_path / "gold.txt"
    gold.write_text("0\tAdds two numbers.\n1\tReads a_file\n2\tunused\n")
    references, predictions = code_to_text_bleu.computeMaps(["0\tadds two numbers .\n", "1\n"], str(gold))
    assert references == {"0": ["adds two numbers ."], "1": ["reads a_file"]}
    assert predictions == {"0": ["adds two numbers ."], "1": [""]}
    whole = code_to_text_bleu.bleuFromMaps({"0": references["0"]}, predictions)
    assert whole == pytest.approx([100] * 5)
    assert code_to_text_bleu.bleuFromMaps(references, predictions)[1:] == pytest.approx([50] * 4)


def test_diffs() -> None:
    before, change = "def f(a, b):\n    return a - b\n\nx = 1", "@@ -2 +2 @@\n-    return a - b\n+    return a + b\n"
    text = f"<NME> f.py\n<BEF> {before}\n<MSG> Fix it\n<DFF> {change}"
    parts = diff_eval.split_diff(text)
    assert (parts["name"], parts["message"]) == ("f.py", "Fix it")
    assert diff_eval.apply_diff(parts["file"], parts["diff"]) == "def f(a, b):\n    return a + b\n\nx = 1"
    assert diff_eval.split_diff("anything else") == {}
    assert (
        diff_eval.apply_diff("a\nb", "@@ -1 +1 @@\n-nowhere\n+x\n@@ -2 +2 @@\n-b\n+c\n\\ No newline at end of file")
        == "a\nc"
    )
    assert diff_eval.apply_diff("abc", "@@ -1 +1 @@\n-ab\n+x") == "abc", "a part of a line is no place"
    assert diff_eval.apply_diff("b", "@@ -0,0 +1 @@\n+a") == "a\nb"
    assert diff_eval.apply_diff("ADDFILE", "@@ -0,0 +1 @@\n+a") == "a"


@pytest.mark.parametrize(
    ("code", "function"),
    [
        ("def f():\n    return 1\nprint(f())", "def f():\n    return 1\n"),
        ("\ndef f():\n\n    return 1\n\nx", "\ndef f():\n\n    return 1\n\n"),
        ("def f(): return 1", "def f(): return 1"),
        ("", ""),
    ],
)
def test_remove_after_return(code: str, function: str) -> None:
    assert utils.remove_after_return(code) == function
