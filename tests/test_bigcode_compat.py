"""Task files of the BigCode evaluation harness run as they are. Those here are our own, with the same imports."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proctor
from proctor import catalog
from proctor.code.tasks import get_task
from proctor.compat.bigcode import code_eval, code_to_text_bleu, diff_eval, multiple_metrics, pal_metric, utils
from proctor.compat.bigcode.beyond_eval import compute_beyond_eval
from proctor.compat.bigcode.evaluate import load
from proctor.errors import UsageError

ROWS = [
    {
        "task_id": f"add/{i}",
        "prompt": f"def add_{i}(x):\n    '''Adds {i}.'''\n",
        "canonical_solution": f"    return x + {i}\n",
        "test": f"assert add_{i}(1) == {i + 1}",
        "entry_point": f"add_{i}",
        "sentence": f"adds {i} to x",
    }
    for i in range(3)
]
FUNCTIONS = [row["prompt"] + row["canonical_solution"] for row in ROWS]

# As guides to the harness teach it: the first task, the patterns, the pitfalls, the factory.
GUIDED = """
import json
import os
from evaluate import load
from PACKAGE.base import Task

class Custom(Task):
    DATASET_PATH = "someone/something"
    DATASET_NAME = None

    def __init__(self):
        super().__init__(stop_words=["\\nclass", "\\ndef", "\\n#"], requires_execution=True)

    def get_dataset(self):
        from datasets import load_dataset
        return load_dataset(self.DATASET_PATH, self.DATASET_NAME, split="test")

    def get_prompt(self, doc):
        return doc["prompt"]

    def get_reference(self, doc):
        return doc["test"]

    def postprocess_generation(self, generation, idx):
        for word in self.stop_words:
            if word in generation:
                generation = generation[: generation.index(word)]
        return generation

    def process_results(self, generations, references):
        results, _ = load("code_eval").compute(references=references, predictions=generations, k=[1, 10], timeout=10.0)
        return results

class Careful(Custom):
    def postprocess_generation(self, generation, idx):
        if not generation or not generation.strip():
            return ""
        return super().postprocess_generation(generation, idx).rstrip()

class Compared(Custom):
    def __init__(self):
        Task.__init__(self, stop_words=["\\n\\n"], requires_execution=False)

    def get_reference(self, doc):
        return doc["prompt"] + doc["canonical_solution"]

    def process_results(self, generations, references):
        from evaluate import load
        predictions = [texts[0] for texts in generations]
        found = load("bleu").compute(predictions=predictions, references=[[one] for one in references])
        return {"bleu": found["bleu"]}

class FewShot(Custom):
    def __init__(self):
        super().__init__()
        with open(os.path.join(os.path.dirname(__file__), "few_shot_examples", "adding.json")) as file:
            self.examples = json.load(file)

    def get_prompt(self, doc):
        shown = "".join(f"# {one['problem']}\\n{one['solution']}\\n\\n" for one in self.examples[:2])
        return f"{shown}# {doc['sentence']}\\n{doc['prompt']}"

    def postprocess_generation(self, generation, idx):
        return generation[len(self.get_prompt(self.get_dataset()[idx])) - len(self.get_dataset()[idx]["prompt"]) :]

class Infilling(Task):
    PREFIX, SUFFIX, MIDDLE = "<fim_prefix>", "<fim_suffix>", "<fim_middle>"

    def __init__(self):
        super().__init__(stop_words=["<|endoftext|>", self.MIDDLE], requires_execution=False)

    def get_prompt(self, doc):
        return f"{self.PREFIX}{doc['prompt']}{self.SUFFIX}\\n{self.MIDDLE}"

    def get_reference(self, doc):
        return doc["canonical_solution"].strip()

    def postprocess_generation(self, generation, idx):
        if self.MIDDLE in generation:
            generation = generation.split(self.MIDDLE)[0]
        return generation.strip()

    def process_results(self, generations, references):
        return load("exact_match").compute(predictions=[texts[0] for texts in generations], references=references)

class Instructed(Task):
    def __init__(self):
        super().__init__(stop_words=["</s>"], requires_execution=True)

    def get_prompt(self, doc):
        return f"Write a Python function {doc['entry_point']}(x) that {doc['sentence']}.\\n\\nOnly the function:\\n"

    def get_reference(self, doc):
        return doc["test"]

def create_all_tasks():
    return {f"adding-{name}": create_task_class(name) for name in ("one", "two")}

def create_task_class(name):
    class Adding(Custom):
        DATASET_NAME = name
    return Adding
"""


@pytest.fixture
def rows(tmp_path: Path) -> str:
    return write_rows(tmp_path / "rows.jsonl", ROWS)


def write_rows(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Writes a task file, in a folder of its own."""

    def write(source: str, folder: str = "tasks", name: str = "exam.py") -> str:
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
        return str(path)

    return write


def judge(task: str, tmp_path: Path, texts: list[list[str]], **options: Any) -> proctor.Report:
    """A run with generations that are judged as they are."""
    path = tmp_path / "generations.json"
    path.write_text(json.dumps(texts))
    samples = max(map(len, texts))
    return proctor.evaluate(task, f"scripted/generations:{path}", allow_code_execution=True, samples=samples, **options)


def values(report: proctor.Report) -> dict[str, float | None]:
    return {name: metric.value for name, metric in report.metrics.items()}


@pytest.mark.parametrize("package", ["bigcode_eval", "proctor.code"])
@pytest.mark.parametrize("api", ["chat", "completions"])
def test_what_the_guide_teaches_runs(proctor, write, rows: str, tmp_path: Path, package: str, api: str) -> None:
    path = write(GUIDED.replace("PACKAGE", package))
    (tmp_path / "tasks" / "few_shot_examples").mkdir()
    examples = [{"problem": "twice", "solution": "def twice(x):\n    return 2 * x"}] * 2
    (tmp_path / "tasks" / "few_shot_examples" / "adding.json").write_text(json.dumps(examples))
    names = ["Custom", "Careful", "Compared", "FewShot", "Infilling", "adding-one"]
    options = ["--data", rows, "--api", api, "--model", "scripted/oracle", "--allow_code_execution", "--json", "-q"]
    done = proctor("run", *(f"{path}:{name}" for name in names), *options)
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    marks = [next(iter(run["metrics"].items())) for run in runs]
    assert [name for name, _ in marks] == ["pass@1", "pass@1", "bleu", "pass@1", "exact_match", "pass@1"]
    assert [metric["value"] for _, metric in marks] == [1.0] * 6
    assert [run["n"] for run in runs] == [3] * 6


@pytest.mark.parametrize("package", ["bigcode_eval", "proctor.code"])
@pytest.mark.parametrize("api", ["chat", "completions"])
def test_an_instruction_is_no_part_of_the_program(write, tmp_path: Path, package: str, api: str) -> None:
    rows = [{**row, "canonical_solution": function} for row, function in zip(ROWS, FUNCTIONS, strict=True)]
    data = write_rows(tmp_path / "whole.jsonl", rows)
    task = f"{write(GUIDED.replace('PACKAGE', package))}:Instructed"
    report = proctor.evaluate(task, "scripted/oracle", data=data, api=api, allow_code_execution=True)
    assert report.metrics["pass@1"].value == 1


class TestARegisteredTask:
    """What the guide tests of a task, with the other package name."""

    def test_task_loads(self) -> None:
        assert get_task("humaneval") is not None

    def test_dataset_loads(self) -> None:
        assert len(get_task("humaneval").get_dataset()) > 0

    def test_prompt_format(self) -> None:
        task = get_task("humaneval")
        prompt = task.get_prompt(task.get_dataset()[0])
        assert isinstance(prompt, str)
        assert len(prompt) > 0

    def test_postprocess(self) -> None:
        assert "class Bar" not in get_task("humaneval").postprocess_generation("def f():\n    pass\n\nclass Bar:", 0)


def test_nothing_changes_for_other_modules(write, rows: str) -> None:
    """The stand-ins are seen by task files, and by nobody else."""
    path = write(GUIDED.replace("PACKAGE", "bigcode_eval"))
    script = f"""
        import sys
        import proctor
        assert not any(name.startswith("proctor.compat") for name in sys.modules)
        before = list(sys.meta_path)
        from proctor import catalog
        catalog.task_class({str(path) + ":Custom"!r})
        assert len(sys.meta_path) == len(before) + 1
        import subprocess, tempfile, concurrent.futures
        assert type(subprocess).__name__ == type(concurrent.futures).__name__ == "module"
        assert "datasets" not in sys.modules and "evaluate" not in sys.modules
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr


RUNNING = """
    from bigcode_eval.base import Task

    class Running(Task):
        DATASET_PATH = "someone/something"

        def get_dataset(self):
            return self.dataset["test"]

        def get_prompt(self, doc):
            return doc["prompt"]

        def get_reference(self, doc):
            return doc["test"]

        def postprocess_generation(self, generation, idx):
            return self._stop_at_stop_token(generation, self.stop_words)
"""


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


def test_tests_that_threads_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def confused(source: str) -> None:
        raise SystemError("AST constructor recursion depth mismatch (before=42, after=91)")

    monkeypatch.setattr(code_eval.ast, "parse", confused)
    assert code_eval.program_of("x = 1", "assert x").tests == "assert x"


def test_a_metric_takes_pairs_one_after_the_other() -> None:
    metric = load("exact_match")
    metric.add(prediction="a", reference="a")
    metric.add_batch(predictions=["b", 3], references=["c", "3"])
    assert metric.compute() == {"exact_match": pytest.approx(2 / 3)}
    assert metric.compute(predictions=["a"], references=["b"]) == {"exact_match": 0}


def test_programs_of_code_eval_are_contained(contained: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    escaping = [
        "def read(): return len(open('/etc/shadow').read())",
        f"def read(): return open({str(tmp_path / 'escaped')!r}, 'w').write('x')",
        "import urllib.request\ndef read(): return urllib.request.urlopen('http://example.org').status",
        "import time\ndef read(): time.sleep(60)",
        "def read(): return 1",
    ]
    passing, results = load("code_eval").compute(
        predictions=[[source] for source in escaping], references=["assert read() > 0"] * 5, timeout=2
    )
    assert [of_one[0][1]["passed"] for of_one in results.values()] == [False] * 4 + [True]
    assert results[3][0][1]["result"] == "timed out"
    assert passing == {"pass@1": 0.2}
    assert not (tmp_path / "escaped").exists()


def test_in_a_plain_script(contained: str) -> None:
    """Without a run, without anything installed: the programs have a sandbox of their own."""
    script = """
        from proctor.compat.bigcode.evaluate import load
        programs = [["def f(): return open('/etc/shadow').read()", "def f(): return 'root'"]]
        print(load("code_eval").compute(predictions=programs, references=["assert 'root' in f()"], k=[1])[0])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.stdout, done.returncode) == ("{'pass@1': 0.5}\n", 0), done.stderr


def test_check_correctness() -> None:
    found = code_eval.check_correctness("assert 1 + 1 == 2", 3.0, 7, 2)
    assert found == {"task_id": 7, "passed": True, "result": "passed", "completion_id": 2}
    assert not code_eval.check_correctness("raise SystemExit(0)\nassert False", 3.0, 0, 0)["passed"]


def test_estimate_pass_at_k() -> None:
    n, c = np.array([5, 5, 3]), np.array([0, 2, 3])
    by_hand = [0, 1 - (3 * 2) / (5 * 4), 1]
    assert code_eval.estimate_pass_at_k(n, c, 2) == pytest.approx(by_hand)
    assert code_eval.estimate_pass_at_k(5, [1, 5], 10).tolist() == [1, 1]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Installs a module, which is forgotten afterwards."""
    before = set(sys.modules)

    def install(name: str, source: str) -> None:
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        monkeypatch.syspath_prepend(tmp_path / "site")

    yield install
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("datasets", "evaluate"):
            del sys.modules[name]


def test_unknown_metrics_are_asked_of_the_real_package(installed) -> None:
    with pytest.raises(UsageError, match=r"'meteor' needs the package evaluate: .* there are bleu, code_eval"):
        load("meteor")
    installed("evaluate.py", "def load(*args, **kwargs): return args, kwargs\n")
    assert load("meteor", module_type="metric") == (("meteor",), {"module_type": "metric"})


def test_the_rest_of_a_replaced_package_is_its_own(write, installed) -> None:
    hub = (
        "class Dataset: pass\ndef load_dataset(path, name=None, split=None, **options): return [path, name, options]\n"
    )
    installed("datasets/__init__.py", hub)
    installed("datasets/depths.py", "DEEP = True\n")
    path = write(
        """
        import datasets, datasets.depths
        from datasets.depths import DEEP
        from datasets import Dataset, load_dataset
        found = (datasets.Dataset is Dataset, datasets.depths.DEEP is DEEP, load_dataset("a", "b", revision="c"))
        from proctor.code import Task
        class Asking(Task):
            def get_prompt(self, doc): return ""
            def get_reference(self, doc): return ""
        """
    )
    module = sys.modules[catalog.task_class(path).__module__]
    assert module.found == (True, True, ["a", "b", {"revision": "c"}])


def test_executing_must_be_said(proctor, write, rows: str) -> None:
    path = write(
        RUNNING
        + """
        def __init__(self):
            super().__init__(stop_words=[], requires_execution=False)

        def process_results(self, generations, references):
            from evaluate import load
            return load("code_eval").compute(predictions=generations, references=references)[0]
        """
    )
    done = proctor("run", f"{path}:Running", "--data", rows, "--model", "scripted/oracle", "-q")
    assert done.returncode == 2
    assert "call super().__init__(requires_execution=True, ...) in it." in done.stderr
    assert "Traceback" not in done.stderr


def test_the_harness_executes_unless_it_is_told_otherwise(proctor, write, rows: str) -> None:
    path = write(RUNNING)
    done = proctor("run", f"{path}:Running", "--data", rows, "--model", "scripted/oracle", "-q")
    assert done.returncode == 2
    assert "say --allow-code-execution" in done.stderr


THREADS = """
    from concurrent.futures import ThreadPoolExecutor, as_completed
    from tqdm import tqdm
    import tqdm as bars
    from bigcode_eval.tasks.custom_metrics.execute import check_correctness

    class Threaded(Running):
        def process_results(self, generations, references):
            print("counting", len(generations))
            with ThreadPoolExecutor(max_workers=2) as threads:
                waiting = [
                    threads.submit(check_correctness, text + "\\n" + test, 3.0, number, 0)
                    for number, (texts, test) in enumerate(zip(generations, references)) for text in texts
                ]
                found = [one.result()["passed"] for one in tqdm(as_completed(waiting), total=len(waiting))]
            with bars.tqdm(total=1) as bar:
                bar.update(1)
            return {"share": sum(found) / len(found)}
"""


def test_threads_of_a_task_belong_to_its_run(
    write, rows: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    task = f"{write(textwrap.dedent(RUNNING) + textwrap.dedent(THREADS))}:Threaded"
    report = judge(task, tmp_path, [[FUNCTIONS[0]], ["nothing"], [FUNCTIONS[2]]], data=rows)
    assert values(report) == {"share": pytest.approx(2 / 3)}
    assert [[t["outcome"] for t in r.score.answer["trials"]] for r in report.records()] == [
        ["passed"],
        ["failed"],
        ["passed"],
    ]
    # Heard once, of all problems; and bars are not drawn.
    out, err = capfd.readouterr()
    assert (out, err) == ("counting 3\n", "")


STARTING = """
    import subprocess
    import tempfile
    from subprocess import DEVNULL

    class Starting(Running):
        command = ["python3"]

        def process_results(self, generations, references):
            passed = []
            for texts, test in zip(generations, references):
                for text in texts:
                    with tempfile.NamedTemporaryFile(mode="w", suffix=".py") as file:
                        file.write(text + "\\n" + test)
                        file.flush()
                        try:
                            done = subprocess.run([*self.command, file.name], timeout=2, stdout=DEVNULL)
                            passed.append(done.returncode == 0)
                        except subprocess.TimeoutExpired:
                            passed.append(False)
            return [{"kind": "all of them", "share": sum(passed) / len(passed)}]

    assert subprocess.run(["true"]).returncode == 0  # while the file is read, nothing is judged
"""


def test_what_a_task_starts_itself_runs_in_the_sandbox(contained: str, write, rows: str, tmp_path: Path) -> None:
    task = write(textwrap.dedent(RUNNING) + textwrap.dedent(STARTING))
    endless, curious = "while True: pass\n", "open('/etc/shadow')\n"
    report = judge(f"{task}:Starting", tmp_path, [[FUNCTIONS[0]], [endless], [curious + FUNCTIONS[2]]], data=rows)
    assert [record.outcome for record in report.records()] == ["passed", "timeout", "failed"]
    assert values(report) == {"all of them share": pytest.approx(1 / 3)}


STARTS = {
    "subprocess.call('gcc -o x', shell=True)": "gcc -o x",
    "subprocess.Popen(['gcc', '-o', 'x'])": "gcc -o x",
    "os.system('exit 3')": "exit 3",
    "multiprocessing.Process(target=print).start()": "a process",
    "ProcessPoolExecutor(1).submit(len, 'abc').result()": "processes",
    "multiprocessing.get_context('fork').Process(target=print).start()": "processes",
    "multiprocessing.pool.Pool(1)": "processes",
    "subprocess.getoutput('gcc -o x')": "subprocess.getoutput",
    "os.posix_spawn('/bin/true', ['true'], {})": "os.posix_spawn",
    "os.spawnv(os.P_WAIT, '/bin/true', ['true'])": "os.spawnv",
    "os.execv('/bin/true', ['true'])": "os.execv",
    "os.fork()": "os.fork",
    "importlib.import_module('os').system('true')": "true",
    "asyncio.run(started())": "asyncio.create_subprocess_exec",
    "runpy.run_path('/nowhere.py')": "runpy.run_path",
    "importlib.util.spec_from_file_location('x', '/nowhere.py')": "importlib.util.spec_from_file_location",
    # A thread of any kind, whoever catches the error there.
    "run_in(threading.Thread(target=subprocess.Popen, args=(['true'],)))": "true",
    "run_in(OfItsOwn())": "true",
    "run_in(multiprocessing.dummy.Process(target=os.system, args=('true',)))": "true",
    "mapped(multiprocessing.pool.ThreadPool(1))": "true",
    "mapped(multiprocessing.dummy.Pool(1))": "true",
    "run_in(threading.Timer(0, quietly))": "true in a thread that neither",
    "quietly()": "true",
}
CARELESS = """
    import asyncio, importlib.util, multiprocessing.dummy, multiprocessing.pool, os, runpy, subprocess, threading
    from concurrent.futures import ProcessPoolExecutor

    async def started():
        await asyncio.create_subprocess_exec("true")

    def run_in(thread):
        thread.start()
        thread.join()

    def mapped(pool):
        with pool as threads:
            threads.map(os.system, ["true"])

    def quietly():
        try:
            subprocess.check_call(["true"])
        except Exception:
            return False

    class OfItsOwn(threading.Thread):
        def run(self):
            os.system("true")

    class Careless(Running):
        def process_results(self, generations, references):
            START
            return {"share": 1.0}
"""


@pytest.mark.parametrize("start", STARTS)
def test_what_would_run_outside_the_sandbox_is_refused(write, rows: str, start: str) -> None:
    source = textwrap.dedent(RUNNING) + textwrap.dedent(CARELESS).replace("START", start)
    with pytest.raises(UsageError, match=f"process_results starts {STARTS[start]}.*, which would run .* say --unsafe"):
        proctor.evaluate(f"{write(source)}:Careless", "scripted/blank", data=rows, allow_code_execution=True)


IN_THREADS = """
    import tempfile
    import threading
    from multiprocessing.dummy import Pool
    from multiprocessing.pool import ThreadPool
    import subprocess

    def passes(program):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(program)
            file.flush()
            return subprocess.run(["python3", file.name]).returncode == 0

    class Pooled(Running):
        pool = ThreadPool

        def process_results(self, generations, references):
            programs = [text + "\\n" + test for texts, test in zip(generations, references) for text in texts]
            with self.pool(2) as threads:
                passed = threads.map(passes, programs)
            return {"share": sum(passed) / len(passed)}

    class Dummy(Pooled):
        pool = Pool

    class Threaded(Running):
        def process_results(self, generations, references):
            passed = []
            for texts, test in zip(generations, references):
                work = lambda: passed.append(passes(texts[0] + "\\n" + test))
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
            return {"share": sum(passed) / len(passed)}
"""


@pytest.mark.parametrize("name", ["Pooled", "Dummy", "Threaded"])
def test_what_its_threads_start_runs_in_the_sandbox_too(
    contained: str, write, rows: str, tmp_path: Path, name: str
) -> None:
    task = write(textwrap.dedent(RUNNING) + textwrap.dedent(IN_THREADS))
    tmp_path.chmod(0o777)
    escaping = f"open({str(tmp_path / 'escaped')!r}, 'w').write('x')\n"
    report = judge(f"{task}:{name}", tmp_path, [[FUNCTIONS[0]], [escaping + FUNCTIONS[1]], ["1 /"]], data=rows)
    assert [record.outcome for record in report.records()] == ["passed", "failed", "failed"]
    assert values(report) == {"share": pytest.approx(1 / 3)}
    assert not (tmp_path / "escaped").exists()


READING = """
    import builtins, subprocess, sys, tempfile

    total = 1
    exec("total += 1")  # while the file is read, nothing is judged
    assert total == 2 == eval("total") == builtins.eval("total", {"total": 2})

    def shadowed(total):
        return eval("total + 1"), eval("total", {"total": 5}), eval("total", {}, {"total": 6})

    assert shadowed(3) == (4, 5, 6)

    class Reading(Running):
        def __init__(self, executes=True):
            super().__init__(requires_execution=executes)

        def process_results(self, generations, references):
            try:
                CALL(generations[0][0])
            except Exception:
                pass
            return {"share": 1.0}

    class Cleaning(Reading):
        def postprocess_generation(self, generation, idx):
            assert tempfile.gettempdir() == "TEMPORARY"  # which is for all that the task leaves
            return str(CALL(generation))

    class Starting(Reading):
        def postprocess_generation(self, generation, idx):
            return str(subprocess.run([sys.executable, __file__]))
"""


@pytest.mark.parametrize("executes", [False, True])
@pytest.mark.parametrize("call", ["exec", "eval", "builtins.exec"])
def test_what_a_model_wrote_is_not_run_by_the_task_file(
    write, rows: str, tmp_path: Path, call: str, executes: bool
) -> None:
    source = textwrap.dedent(READING).replace("CALL", call).replace("TEMPORARY", tempfile.gettempdir())
    task = write(textwrap.dedent(RUNNING) + source)
    marker = tmp_path / "ran"
    texts = [[f"open({str(marker)!r}, 'w').close()"]] * 3
    said = f"process_results calls {call.rpartition('.')[2]}, which would run what a model wrote outside the sandbox"
    with pytest.raises(UsageError, match=said):
        judge(f"{task}:Reading", tmp_path, texts, data=rows, settings={"executes": executes})
    options = {"data": rows, "api": "completions", "allow_code_execution": True}
    with pytest.raises(UsageError, match="postprocess_generation calls"):
        proctor.evaluate(f"{task}:Cleaning", "scripted/oracle", **options)
    with pytest.raises(UsageError, match="postprocess_generation starts"):
        proctor.evaluate(f"{task}:Starting", "scripted/oracle", **options)
    assert not marker.exists()
    assert values(judge(f"{task}:Reading", tmp_path, texts, data=rows, unsafe=True)) == {"share": 1}
    assert marker.exists()


def test_unless_the_user_does_not_mind(write, rows: str) -> None:
    checked = "assert os.system('exit 3') == 3 << 8"
    task = f"{write(textwrap.dedent(RUNNING) + textwrap.dedent(CARELESS).replace('START', checked))}:Careless"
    report = proctor.evaluate(task, "scripted/blank", data=rows, allow_code_execution=True, unsafe=True)
    assert values(report) == {"share": 1}


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


def test_results_in_files(write, tmp_path: Path) -> None:
    """Each call has its folder, so that none counts the results of another."""
    task = f"{write(textwrap.dedent(RUNNING) + textwrap.dedent(LANGUAGES))}:ManyLanguages"
    data = [{"task_id": f"sh/{i}", "prompt": "f() {", "test": f"[ $(f) = {i} ]"} for i in range(3)]
    texts = [[f"f() {{ echo {i}; }}", "f() { echo 7; }"] for i in range(3)]
    report = judge(task, tmp_path, texts, data=write_rows(tmp_path / "sh.jsonl", data))
    assert values(report) == {"pass@1": 0.5}
    assert [record.score.value for record in report.records()] == [0.5] * 3
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


def test_a_task_that_finds_its_problems_by_their_places(write, rows: str, tmp_path: Path) -> None:
    """Also when one problem is judged alone, or the run begins in the middle."""
    task = f"{write(textwrap.dedent(RUNNING) + textwrap.dedent(PLACES))}:ByPlace"
    report = judge(task, tmp_path, [[FUNCTIONS[0]], [FUNCTIONS[1]], ["nothing"]], data=rows)
    assert values(report) == {"even pass@1": 0.5, "odd pass@1": 1}
    assert [record.score.value for record in report.records()] == [1, 1, 0]
    report = judge(task, tmp_path, [[FUNCTIONS[1]], [FUNCTIONS[2]]], data=rows, limit_start=1)
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


def test_the_metric_of_contests(write, tmp_path: Path) -> None:
    common = {"question": "?", "solutions": "[]", "difficulty": "introductory", "url": "", "starter_code": ""}
    adding = {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]}
    calling = {"fn_name": "twice", "inputs": [[1], [5]], "outputs": [[2], [10]]}
    rows = [{**common, "problem_id": i, "input_output": json.dumps(io)} for i, io in enumerate((adding, calling))]
    data = write_rows(tmp_path / "apps.jsonl", rows)
    task = f"{write(APPS)}:Contest"
    sums, twos = "print(sum(map(int, input().split())))", "def twice(x): return 2"
    report = judge(task, tmp_path, [[sums], [twos]], data=data)
    assert values(report) == {"avg_accuracy": 0.75, "strict_accuracy": 0.5}
    report = judge(task, tmp_path, [[sums, "nothing"], [twos, twos]], data=data)
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


def test_files_of_the_harness_are_found_beside_the_task(
    write, rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks import each other, forks add metrics and helpers, and examples lie below the folder of the harness."""
    write(
        "VERSION = 3\nfrom bigcode_eval.base import Task\nclass Parent(Task):\n    origin = __name__\n",
        "fork/bigcode_eval/tasks",
        "parent.py",
    )
    write("def shout(text): return text.upper()\n", "fork/bigcode_eval", "utils.py")
    write(
        "from evaluate import load\nmine = load('exact_match').name\n",
        "fork/bigcode_eval/tasks/custom_metrics",
        "mine.py",
    )
    write('{"hello": "world"}', "fork/bigcode_eval/tasks/few_shot_examples", "hello.json")
    path = write(
        """
        import json
        from bigcode_eval.tasks.parent import Parent, VERSION
        from bigcode_eval.tasks.custom_metrics.mine import mine
        from bigcode_eval.tasks.custom_metrics.code_eval import compute_code_eval
        from bigcode_eval.utils import remove_after_return, shout
        from bigcode_eval import tasks
        from . import parent
        from .custom_metrics import mine as again

        class Child(Parent):
            def get_prompt(self, doc):
                with open("bigcode_eval/tasks/few_shot_examples/hello.json") as file:
                    return json.load(file)["hello"] + doc["prompt"]

            def get_reference(self, doc):
                return doc["test"]

        assert parent.Parent is Parent and "humaneval" in tasks.ALL_TASKS
        found = (Child.origin, VERSION, mine, again.mine, shout("a"))
        """,
        "fork/bigcode_eval/tasks",
        "child.py",
    )
    monkeypatch.chdir("/")
    cls = catalog.task_class(f"{path}:Child")
    said = sys.modules[cls.__module__].found
    assert said == ("bigcode_eval.tasks.parent", 3, "exact_match", "exact_match", "A")
    task = cls.build(cls.Settings(), rows)
    assert task.get_prompt(ROWS[0]).startswith("worlddef add_0")
    missing = write("from bigcode_eval.utils import nowhere_to_be_found", "lone", "lone.py")
    with pytest.raises(UsageError, match="cannot import name 'nowhere_to_be_found'"):
        catalog.task_class(missing)


def test_tasks_that_a_file_makes(write) -> None:
    path = write(GUIDED.replace("PACKAGE", "bigcode_eval"))
    assert catalog.task_class(f"{path}:adding-two").DATASET_NAME == "two"
    with pytest.raises(UsageError, match="did you mean adding-two"):
        catalog.task_class(f"{path}:adding-too")
    with pytest.raises(UsageError, match="Which task"):
        catalog.task_class(path)
    broken = write("def create_all_tasks():\n    return 1 / 0\n", name="broken.py")
    with pytest.raises(UsageError, match=r"could not make its tasks: ZeroDivisionError: division by zero \(line 2\)"):
        catalog.task_class(f"{broken}:x")


def test_arguments_without_a_default(write, rows: str) -> None:
    constructor = """
        def __init__(self, prompt, level):
            super().__init__()
    """
    path = write(RUNNING + constructor)
    with pytest.raises(UsageError, match="missing required field level"):
        proctor.evaluate(f"{path}:Running", "scripted/blank", data=rows)
    report = proctor.evaluate(
        f"{path}:Running", "scripted/blank", data=rows, settings={"level": 3}, allow_code_execution=True, limit=1
    )
    assert report.run.config["settings"] == {"prompt": "prompt", "level": 3}, "the harness always passes a prompt"


FILLING = """
    from bigcode_eval.base import Task
    from evaluate import load

    class Filling(Task):
        def __init__(self):
            super().__init__(stop_words=["<|endoftext|>"], requires_execution=False)

        def get_prompt(self, doc):
            return {"prefix": doc["prompt"], "suffix": ""}

        def get_reference(self, doc):
            return doc["canonical_solution"]

        def postprocess_generation(self, generation, idx):
            before, end, _ = generation.partition("<|endoftext|>")
            return before if end else "it did not end"

        def process_results(self, generations, references):
            return load("exact_match").compute(predictions=[texts[0] for texts in generations], references=references)
"""


def test_the_middle_alone_and_the_end_of_the_text_as_the_harness_has_them(write, rows: str, tmp_path: Path) -> None:
    task = f"{write(FILLING)}:Filling"
    said = [{"id": row["task_id"], "outputs": [{"text": row["canonical_solution"]}]} for row in ROWS]
    model = f"scripted/replay:{write_rows(tmp_path / 'said.jsonl', said)}"
    report = proctor.evaluate(task, model, data=rows, api="completions", fim="starcoder")
    assert values(report) == {"exact_match": 1}


BLOCKS = """
    import re
    from evaluate import load

    class Blocks(Running):
        escape = staticmethod(str)
        words = ["\\nclass", "\\ndef", "\\n#"]

        def __init__(self):
            super().__init__(stop_words=self.words, requires_execution=True)

        def postprocess_generation(self, generation, idx):
            prompt = self.get_prompt(self.get_dataset()[idx])
            stops = "|".join(self.escape(word) for word in self.stop_words)
            # It ends with a stop word, and with what comes after it.
            return prompt + "".join(re.split(f"({stops})", generation[len(prompt) :])[:-2])

        def process_results(self, generations, references):
            return load("code_eval").compute(predictions=generations, references=references, k=[1])[0]

    class Escaped(Blocks):
        escape = staticmethod(re.escape)

    class WithEnd(Escaped):
        words = ["\\nclass", "<|endoftext|>"]

    class Uncut(Blocks):
        def postprocess_generation(self, generation, idx):
            return generation
"""


@pytest.mark.parametrize("api", ["chat", "completions"])
@pytest.mark.parametrize("name", ["Blocks", "Escaped", "WithEnd", "Uncut"])
def test_generations_end_as_those_of_the_harness(write, rows: str, name: str, api: str) -> None:
    task = f"{write(textwrap.dedent(RUNNING) + textwrap.dedent(BLOCKS))}:{name}"
    report = proctor.evaluate(task, "scripted/oracle", data=rows, api=api, allow_code_execution=True)
    assert values(report) == {"pass@1": 1}
    cls = catalog.task_class(task)
    assert cls.build(cls.Settings(), rows).stop_words.count("<|endoftext|>") == 1


STOPPING = """
    class Stopping(Running):
        def __init__(self):
            super().__init__(stop_words=["never"], requires_execution=True)

        def check_fn(self, completion):
            return completion.splitlines()[-1][:1] == "#"

        def postprocess_generation(self, generation, idx):
            return generation[len(self.get_prompt(self.get_dataset()[idx])) :]

        def process_results(self, generations, references):
            assert {text for texts in generations for text in texts} == {"    a()\\n#"}, generations
            return {"right": 1.0}

    class Long(Stopping):
        check_fn = None
        max_length_multiplier = 1.5

        def process_results(self, generations, references):
            assert all(len(texts[0]) == len("def f():\\n") // 2 for texts in generations), generations
            return {"right": 1.0}

    class Encoding(Stopping):
        def get_prompt_encoder(self, doc):
            return doc["prompt"]
"""


def test_where_a_task_says_that_a_completion_ends(write, tmp_path: Path) -> None:
    row = {"prompt": "def f():\n", "canonical_solution": "    a()\n# b\n    c()\n", "test": ""}
    path = write(textwrap.dedent(RUNNING) + textwrap.dedent(STOPPING))
    options = {
        "data": write_rows(tmp_path / "stopping.jsonl", [row]),
        "api": "completions",
        "allow_code_execution": True,
    }
    for name in ("Stopping", "Long"):
        assert values(proctor.evaluate(f"{path}:{name}", "scripted/oracle", **options)) == {"right": 1}
    with pytest.raises(UsageError, match=r"a text for the encoder and another for the decoder \(get_prompt_encoder\)"):
        proctor.evaluate(f"{path}:Encoding", "hf/nowhere", modeltype="seq2seq", **options)


SOLVED = """
    from evaluate import load

    class Mending(Running):
        def __init__(self):
            super().__init__(stop_words=["\\ndef"], requires_execution=True)

        def get_prompt(self, doc):
            return "Mend this function.\\n" + doc["prompt"]

        def get_reference(self, doc, get_solution=False):
            return doc["prompt"] + doc["canonical_solution"] if get_solution else doc["test"]

        def postprocess_generation(self, generation, idx):
            doc = self.get_dataset()[idx]
            body = generation[len(self.get_prompt(doc)) :]
            return doc["prompt"] + "\\n".join(line for line in body.split("\\n") if line[:1] == " ")

        def process_results(self, generations, references):
            return load("code_eval").compute(predictions=generations, references=references, k=[1])[0]

    class Translating(Running):
        def __init__(self):
            super().__init__(stop_words=["\\n"], requires_execution=False)

        def get_reference(self, doc):
            return [doc["sentence"] + " and says so", "nothing"]

        def postprocess_generation(self, generation, idx):
            return generation[len(self.get_prompt(self.get_dataset()[idx])) :]

        def process_results(self, generations, references):
            return load("bleu").compute(predictions=[texts[0] for texts in generations], references=references)
"""


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_solutions_are_judged_as_they_are(proctor, write, rows: str, api: str) -> None:
    path = write(textwrap.dedent(RUNNING) + textwrap.dedent(SOLVED))
    tasks = [f"{path}:Mending", f"{path}:Translating"]
    options = ["--check_references", "--allow_code_execution", "--data", rows, "--api", api, "--json", "-q"]
    done = proctor("run", *tasks, *options)
    assert done.returncode == 0, done.stderr
    mended, translated = json.loads(done.stdout)["runs"]
    assert mended["metrics"]["pass@1"]["value"] == translated["metrics"]["bleu"]["value"] == 1


def test_rows_of_a_file_answer_like_a_data_set(write, rows: str) -> None:
    task = catalog.task_class(f"{write(RUNNING)}:Running").build(proctor.task.NoSettings(), rows)
    table = task.dataset["validation"]
    assert (table.num_rows, table.column_names[:2]) == (3, ["task_id", "prompt"])
    assert table["entry_point"][1] == table[1]["entry_point"] == table[1:]["entry_point"][0] == "add_1"
    assert table.filter(lambda row: row["task_id"] > "add/0").select([1])[0]["task_id"] == "add/2"
    assert table.map(lambda row, i: {"number": i}, with_indices=True)["number"] == [0, 1, 2]
    assert table.sort("task_id", reverse=True)[0] == table[-1] == ROWS[2]
    assert sorted(table.shuffle(seed=1)["task_id"]) == table["task_id"]
    assert table.add_column("new", "abc")[2]["new"] == "c"
    assert table.to_list() == list(table) == ROWS
    with pytest.raises(KeyError):
        table["nothing"]
    with pytest.raises(AttributeError, match=r"A data set's 'to_pandas', .* needs the extra 'hub'"):
        table.to_pandas()
