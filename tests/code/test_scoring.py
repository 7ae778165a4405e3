"""Scoring functions of foreign task files: they process outputs in isolation."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import proctor
from conftest import Command
from helpers import needs
from helpers.bigcode_tasks import FUNCTIONS, ROWS, RUNNING, code_task, judge, values, write_rows, write_task
from helpers.code_tasks import score_of
from helpers.paths import TESTS
from helpers.scoring_driver import WAYS
from helpers.scoring_texts import HOSTILE, HOSTILE_HEAD, HOSTILE_NEXT, RARE_WAYS
from proctor.code.scoring import client, pool
from proctor.core.errors import SandboxUnavailableError, TaskError, UsageError
from proctor.formats.code_files import save_generations
from proctor.sandbox import best_level
from proctor.sandbox.isolation import LIMITS, levels

LEVELS = ["full bubblewrap", "full kernel", "confined none"]


def test_every_way_to_run_a_text_is_contained_at_the_best_level() -> None:
    level = asyncio.run(best_level())
    _contain(f"{level.name} {level.namespace_backend}", "this user", "usual")


@pytest.mark.slow
@pytest.mark.parametrize("ways", ["usual", "rare"])
@pytest.mark.parametrize("user", ["this user", "ordinary user"])
@pytest.mark.parametrize("level", LEVELS)
def test_every_way_to_run_a_text_is_contained_at_every_level(level: str, user: str, ways: str) -> None:
    _contain(level, user, ways)


def _contain(level: str, user: str, ways: str) -> None:
    if "bubblewrap" in level:
        needs.program("bwrap", "bubblewrap")
    command = [sys.executable, "-m", "helpers.scoring_driver", *level.split(), ways]
    if user == "ordinary user":
        if os.getuid() != 0:
            pytest.skip("this user is an ordinary one already")
        command = [sys.executable, "-m", "helpers.ordinary_user", *command]
    elif level.startswith("confined") and os.getuid() == 0:
        pytest.skip("this Python may lie where the level's own user cannot read it")
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=TESTS, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["held"] == len(RARE_WAYS if ways == "rare" else WAYS) > 20
    assert result["errors"] == {}, "none is refused"
    assert result["not run"] == []
    assert result["got out"] == []
    assert (result["connected"], result["left outside"], result["strays"]) == (False, ["secret"], [])
    assert result["testing"] == ["in the task's own worker"], "the record says that such a mark could be faked"
    assert result["together"] == {"ran": 1.0}


EXECUTING = """
    import os

    class Executing(Running):
        scoring_timeout = 0.5
        memory_mib = 64

        def __init__(self, executes=True):
            super().__init__(requires_execution=executes)

        def process_results(self, generations, references):
            marks = []
            for texts in generations:
                space = {"task": self, "mark": 0.0}
                exec(texts[0], space)
                marks.append(space["mark"])
            return {"mark": sum(marks) / len(marks)}
"""


def executing(texts: list[str], more: str = "", **options: Any) -> proctor.Report:
    """A run in which each text is executed by the task; a good text sets its own mark."""
    rows = [{"prompt": "#", "test": str(number)} for number in range(len(texts))]
    task = write_task(textwrap.dedent(RUNNING) + textwrap.dedent(EXECUTING) + textwrap.dedent(more))
    data = write_rows(rows, "executed.jsonl")
    return judge(f"{task}:Executing", [[text] for text in texts], data=data, **options)


def outcomes(report: proctor.Report) -> list[str | float | None]:
    """The kind of error, or the mark, of each problem."""
    return [record.error.type if record.error else score_of(record).value for record in report.records()]


GOOD = "mark = 1.0"


BAD = {
    "import time; time.sleep(3600)": "TimeoutError",
    "while True: pass": "TimeoutError",
    "import signal, time; signal.pthread_sigmask(0, range(1, 64)); time.sleep(3600)": "TimeoutError",
    "x = bytearray(1 << 40)": "MemoryError",
    "import os; os.write(1, b'x' * 100); os._exit(0)": "EndedError",
    "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": "EndedError",
    "raise KeyError('mark')": "KeyError",
    "raise SystemExit(0)": "SystemExit",
    "raise type('Liar', (Exception,), {'__str__': lambda self: 1 / 0})": "Liar",
}


def test_a_text_that_spoils_its_call_spoils_no_other() -> None:
    found = outcomes(executing([text for bad in BAD for text in (GOOD, bad)], max_errors=100))
    assert (found[::2], found[1::2]) == ([1] * len(BAD), list(BAD.values()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "TimeoutError"),
        (
            "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(3600,)).start()",
            "RuntimeError",
        ),
        (
            "import os, time\nfor _ in range(40):\n    if os.fork() == 0:\n        x = b'x' * (40 << 20)\n"
            "        time.sleep(60)\ntime.sleep(60)",
            "MemoryError",
        ),
    ],
    ids=["fork bomb", "threads without end", "memory in many processes"],
)
def test_a_bomb_spoils_no_other_call(monkeypatch: pytest.MonkeyPatch, bad: str, kind: str) -> None:
    monkeypatch.setattr(client, "_MEMORY_MIB", 512)
    more = "class Executing(Executing):\n    scoring_timeout = 5\n"
    assert outcomes(executing([GOOD, bad, GOOD], more, workers=1)) == [1, kind, 1]


@pytest.mark.slow
def test_a_hostile_text_spoils_no_other_call() -> None:
    """Its own mark is its own affair; the next text has the whole room again, and the harness all of its processes."""
    texts = [text for hostile in HOSTILE.values() for text in (HOSTILE_HEAD + hostile, HOSTILE_NEXT)]
    report = executing(texts, max_errors=100, workers=1)
    found = outcomes(report)
    assert dict(zip(HOSTILE, found[1::2], strict=True)) == dict.fromkeys(HOSTILE, 1)
    assert report.run.status == "done"


LEAVING = {
    "a changed class": "type(task).process_results = lambda *_: {'mark': 0.0}",
    "a changed module": "import proctor.code.results as results; results.numbers = lambda counted: {'mark': 0.0}",
    "a changed builtin": "import builtins; builtins.sum = builtins.list = None",
    "a changed signal": "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    "a file": "open('left', 'w').write('x')",
    "a process": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    while True:\n"
        "        open('/tmp/left', 'w').close()\n        time.sleep(0.001)"
    ),
}


def test_what_a_text_leaves_behind_is_gone_in_the_next_call() -> None:
    look = "import os; assert not os.path.exists('left') and sum([1]) == 1; mark = 1.0"
    leaving = [f"if len(task._rows) == 1: exec({leave!r}, globals())" for leave in LEAVING.values()]
    texts = [text for leave in leaving for text in (leave, look)]
    assert outcomes(executing(texts, workers=1))[1::2] == [1] * len(LEAVING)


FORGED = {
    "nothing": "os.close(3)",
    "too few bytes": "os.write(3, b'\\x10')",
    "a message without end": "os.write(3, b'\\xff\\xff\\xff\\xff')",
    "no JSON": "send(b'no JSON')",
    "half a character": "send(b'\"\\xff')",
    "depths": "send(b'[' * 1_000_000)",
    "another kind": 'send(b\'{"type": "Other"}\')',
    "a reply to another question": 'send(b\'{"type": "GenerationTexts", "texts": []}\')',
    "too many generations": 'send(b\'{"type": "Scored", "texts": ["a", "b"], "metrics": {"mark": 1}}\')',
    "a mark that is no number": 'send(b\'{"type": "Scored", "texts": ["a"], "metrics": {"mark": "1"}}\')',
    "a trial of nothing": 'send(b\'{"type": "Judged", "trial": null}\')',
    "an error of the whole run": (
        'send(b\'{"type": "ScoringFailure", "kind": "UsageError", "message": "x", "usage": true}\')'
    ),
    "an odd name of an error": 'send(b\'{"type": "ScoringFailure", "kind": "\\\\n", "message": "x"}\')',
    "a language that there is not": "run(language='none')",
    "endless limits": "run(seconds=1e308)",
    "a data set that there is not": 'send(b\'{"type": "RequestDataset"}\')',
    "limits below zero": "run(seconds=-1)",
    "too many programs": "run(times=20_000)",
}
FORGING = """
import json, os, time

def send(body):
    os.write(3, len(body).to_bytes(4, "little") + body)

def run(language="python", seconds=1, times=1):
    program = {"source": "raise SystemExit(1)", "language": language}
    limits = {"seconds": seconds}
    said = {"type": "RunPrograms", "programs": [program] * times, "limits": limits, "judged": False}
    send(json.dumps(said).encode())
    os.read(3, 1 << 16)

"""


def test_a_forged_message_is_an_error_of_its_sample() -> None:
    texts = [text for forged in FORGED.values() for text in (f"{FORGING}{forged}\ntime.sleep(3600)", GOOD)]
    report = executing(texts, max_errors=100)
    found = outcomes(report)
    assert found[1::2] == [1] * len(FORGED)
    assert {name: kind for name, kind in zip(FORGED, found[::2], strict=True) if not isinstance(kind, str)} == {}
    assert report.run.status == "done"


FAKED = b'{"type": "Scored", "texts": ["another text"], "metrics": {"mark": 1, "more": 2}}'


def test_a_text_can_fake_its_own_mark_and_the_record_says_that_it_could() -> None:
    fake = f"{FORGING}if len(task._rows) == 1:\n    send({FAKED!r})\n    time.sleep(60)\nmark = 1.0"
    report = executing([fake, "mark = 0.0"])
    first, second = map(score_of, report.records())
    assert (first.value, first.outcome, second.value, second.outcome) == (1, "passed", 0, "failed")
    assert first.answer["generations"] == [fake]
    assert first.answer["testing"] == second.answer["testing"] == "in the task's own worker"
    assert values(report) == {"mark": 0.5}


def test_a_failed_program_cannot_be_called_passed() -> None:
    text = (
        FORGING
        + """
said = {"type": "RunPrograms", "programs": [{"source": "1 / 0"}], "limits": {}, "judged": True}
send(json.dumps(said).encode())
os.read(3, 1 << 16)
send(b'{"type": "Judged", "trial": {"program": "", "outcome": "passed"}}')
time.sleep(3600)
"""
    )
    assert outcomes(executing([text, GOOD])) == ["TaskCodeError", 1]


SLOW_JUDGE = """
    import time
    from proctor.code.execution import run_programs, trial_of
    from proctor.sandbox import Limits, Program

    class Executing(Running):
        scoring_timeout = 0.5

        def process_results(self, generations, references):
            def judge(program, verdict):
                if "slow" in program.source:
                    time.sleep(3600)
                return trial_of(program, verdict)
            programs = [Program(source=text) for texts in generations for text in texts]
            trials = run_programs(programs, Limits(), judge)
            return {"mark": sum(trial.passed for trial in trials) / len(trials)}
"""


def test_the_time_that_programs_take_is_not_that_of_the_call() -> None:
    report = executing(["import time; time.sleep(1)", "slow = True"], SLOW_JUDGE)
    assert outcomes(report) == [1, "TimeoutError"]


@pytest.mark.slow
def test_an_error_of_the_final_count_is_none_of_the_run(capfd: pytest.CaptureFixture[str]) -> None:
    report = executing(["import time\nif len(task._rows) > 1: time.sleep(60)\nmark = 1.0", "mark = 0.0"])
    assert outcomes(report) == [1, 0]
    assert (report.run.status, values(report)) == ("done", {"mark": 0.5})
    told = "process_results failed for all samples together (TimeoutError: it took more than 1 seconds)"
    assert told in capfd.readouterr().err
    with pytest.raises(TaskError, match="TimeoutError"):  # without programs, a mean may be another figure
        executing(["import time\nif len(task._rows) > 1: time.sleep(60)", GOOD], settings={"executes": False})


UNPROTECTED = """
    import os

    class Executing(Running):
        def process_results(self, generations, references):
            assert os.getpid() != HARNESS
            return {"mark": 1.0}
"""


def test_without_walls_only_for_those_who_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    only = [level for level in levels() if level.name == LIMITS]
    monkeypatch.setattr(pool, "levels", lambda: only)
    more = UNPROTECTED.replace("HARNESS", str(os.getpid()))
    with pytest.raises(SandboxUnavailableError, match="pass --unsafe"):
        executing([GOOD], more)
    assert outcomes(executing([GOOD], more, unsafe=True)) == [1]


def test_where_there_are_no_walls_to_be_had_the_harness_scores_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on other systems, where programs run in containers."""
    monkeypatch.setattr(pool, "levels", list)
    monkeypatch.setattr("proctor.code.scoring.mixin.levels", list)
    more = UNPROTECTED.replace("!= HARNESS", f"== {os.getpid()}")
    with pytest.raises(SandboxUnavailableError):
        executing([GOOD], more)
    assert outcomes(executing([GOOD], more, unsafe=True)) == [1]


READING = """
    import os

    class Executing(Running):
        def __init__(self):
            super().__init__(stop_words=["never"], requires_execution=False)

        def check_fn(self, completion):
            assert os.getpid() != HARNESS
            return False

        def postprocess_generation(self, generation, idx):
            assert os.getpid() != HARNESS
            return {"none": None, "number": 3}.get(generation[1:], generation[1:])

        def process_results(self, generations, references):
            return {"letters": sum(len(text) for texts in generations for text in texts)}
"""


def test_an_answer_that_is_none_is_empty_and_one_that_is_no_text_an_error() -> None:
    said = [{"id": str(n), "outputs": [{"text": text}]} for n, text in enumerate(["none", "number", "abc"])]
    task = write_task(textwrap.dedent(RUNNING) + textwrap.dedent(READING).replace("HARNESS", str(os.getpid())))
    data = write_rows([{"prompt": "#", "test": ""}] * 3, "read.jsonl")
    model = f"scripted/replay:{write_rows(said, 'said.jsonl')}"
    report = proctor.evaluate(f"{task}:Executing", model, data=data, api="completions")
    first, second, third = report.records()
    assert score_of(first).answer["generations"] == [""]
    assert second.error is not None
    assert second.error.message == "postprocess_generation must return a str, not int"
    assert score_of(third).answer["generations"] == ["abc"]
    assert values(report) == {"letters": 3}


def test_generations_are_read_by_the_worker_without_judging(tmp_path: Path) -> None:
    task = write_task(textwrap.dedent(RUNNING) + textwrap.dedent(READING).replace("HARNESS", str(os.getpid())))
    data = write_rows([{"prompt": "#", "test": "", "canonical_solution": "ab"}], "read.jsonl")
    said = write_rows([{"id": "0", "outputs": [{"text": "ab"}]}], "said.jsonl")
    report = proctor.evaluate(
        f"{task}:Executing", f"scripted/replay:{said}", data=data, api="completions", generation_only=True
    )
    save_generations(report, tmp_path / "generations.json")
    assert json.loads((tmp_path / "generations.json").read_text()) == [["ab"]]


PRINTING = """
    class Executing(Running):
        def __init__(self):
            super().__init__(stop_words=[], requires_execution=False)

        def process_results(self, generations, references):
            print("counting", len(generations), "\\x1b[31mred")
            return {"number": len(generations)}
"""


def test_what_is_printed_is_heard_once_and_does_nothing_to_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    executing(["a", "b", "c"], PRINTING)
    assert capfd.readouterr() == ("counting 3 [31mred\n", "")


WITH_STATE = """
    import threading

    class Executing(Running):
        def __init__(self, level="low"):
            super().__init__(stop_words=["x"], requires_execution=False)
            self.level, self.made = level, {"a": (1, 2)}
            self.LOCK

        def get_reference(self, doc):
            return doc["test"], [1]

        def postprocess_generation(self, generation, idx):
            assert self.get_prompt(self.get_dataset()[idx]) == "#"
            return generation

        def process_results(self, generations, references):
            assert (self.level, self.made, self.settings.level) == ("high", {"a": (1, 2)}, "high")
            assert all(reference == (doc["test"], [1]) for reference, doc in zip(references, self.get_dataset()))
            assert len(self.get_dataset()) == len(generations) == len(self.get_dataset()["test"])
            assert self.dataset["test"][2]["test"] == "2"
            return {"mark": 1.0}
"""


@pytest.mark.parametrize("lock", ["lock = threading.Lock()", "lock = None"])
def test_the_worker_has_the_task_as_it_is(lock: str) -> None:
    """Settings, attributes and rows; also where some attribute cannot be sent and is made anew."""
    more = WITH_STATE.replace("self.LOCK", f"self.{lock}")
    report = executing(["a", "b", "c"], more, settings={"level": "high"})
    assert values(report) == {"mark": 1}


HUB = """
class Dataset:
    def __init__(self, rows):
        self.rows = rows

    def to_list(self):
        return self.rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, place):
        return self.rows[place]

class DatasetDict(dict):
    pass

def load_dataset(path, name=None, split=None, **options):
    rows = Dataset([{"prompt": "#", "test": f"{path} {name} {number}"} for number in range(3)])
    return rows if split else DatasetDict(test=rows)

for kind in (Dataset, DatasetDict):
    kind.__module__ = "datasets.made"
"""
FROM_HUB = """
    from datasets import load_dataset

    class Executing(Running):
        DATASET_NAME = "first"

        def __init__(self):
            super().__init__(stop_words=[], requires_execution=False)
            self.other = load_dataset("someone/other", split="test")

        def process_results(self, generations, references):
            again = load_dataset("someone/other", split="test")
            assert [row["test"] for row in again] == [row["test"] for row in self.other]
            assert self.other[1]["test"] == "someone/other None 1"
            assert [row["test"] for row in self.dataset["test"]][1] == "someone/something first 1"
            return {"mark": 1.0}
"""


def test_rows_from_the_hub_need_no_network_in_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "datasets.py").write_text(HUB)
    monkeypatch.syspath_prepend(tmp_path / "site")
    task = write_task(textwrap.dedent(RUNNING) + textwrap.dedent(FROM_HUB))
    try:
        assert values(judge(f"{task}:Executing", [["a"], ["b"], ["c"]])) == {"mark": 1}
    finally:
        sys.modules.pop("datasets", None)


TRUSTED = """
    class Executing(Running):
        def get_prompt(self, doc):
            return super().get_prompt(doc)

        def get_reference(self, doc):
            return f"assert True  # {doc['test']}"

        del Running.postprocess_generation
"""


def test_a_task_that_overrides_nothing_of_it_has_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.sandbox.service.ServiceWorker.start", None)
    assert outcomes(executing(["x = 1", "1 / 0"], TRUSTED)) == [1, 0]


PROBLEMS = """
import json, os, shutil, subprocess, tempfile, threading
from pathlib import Path

class Problem:
    def __init__(self, folder):
        self.folder, self.data = Path(folder), {"prompt": "x = "}
        self.data["reference_code"] = (self.folder / "reference.txt").read_text()

    def __getitem__(self, key):
        return self.data[key]

    def test(self, code):
        with tempfile.TemporaryDirectory() as place:
            shutil.copytree(self.folder, place, dirs_exist_ok=True)
            before = os.getcwd()
            os.chdir(place)
            Path("program.py").write_text(f"x = {code}\\nimport json; json.dump(x, open('result.json', 'w'))")
            process = subprocess.Popen("python program.py", shell=True, preexec_fn=os.setsid)
            thread = threading.Thread(target=process.communicate)
            thread.start()
            thread.join(20)
            right = Path("result.json").exists() and json.load(open("result.json")) == eval(self["reference_code"])
            os.chdir(before)
        return right
"""
LIBRARY = """
    import fcntl, functools, pathlib
    import tqdm
    from bigcode_eval.base import Task

    class Library(Task):
        def __init__(self):
            super().__init__(stop_words=["</code>"], requires_execution=True)
            self._dir = pathlib.Path(__file__).parent / "library"
            with open(self._dir / "data.lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)

        @functools.lru_cache()
        def get_dataset(self):
            from .library.problems import Problem
            return [Problem(folder) for folder in sorted((self._dir / "data").iterdir())]

        def get_prompt(self, doc):
            return doc["prompt"]

        def get_reference(self, doc):
            return doc["reference_code"]

        def postprocess_generation(self, generation, idx):
            return generation.split("x = ", 1)[-1].split("</code>")[0].strip()

        def process_results(self, generations, references):
            right = 0
            for texts, reference in tqdm.tqdm(zip(generations, references), total=len(references)):
                problem = [doc for doc in self.get_dataset() if doc["reference_code"] == reference][0]
                right += sum(problem.test(text) for text in texts)
            return {f"mean pass@1 ({len(generations[0])} samples)": right / len(references) / len(generations[0])}
"""


@pytest.mark.slow
def test_problems_that_test_themselves() -> None:
    """The form of DS-1000's file: its rows are objects, which run programs in folders of their own."""
    task = write_task(LIBRARY, name="libraries.py")
    for number in range(2):
        write_task(str(number), f"tasks/library/data/q{number}", "reference.txt")
    write_task(PROBLEMS, "tasks/library", "problems.py")
    write_task("", "tasks/library", "__init__.py")
    said = [{"id": str(n), "outputs": [{"text": text}]} for n, text in enumerate(["0</code>", "2"])]
    report = proctor.evaluate(
        f"{task}:Library",
        f"scripted/replay:{write_rows(said, 'said.jsonl')}",
        api="completions",
        allow_code_execution=True,
    )
    assert [(record.outcome, score_of(record).value) for record in report.records()] == [("passed", 1), ("failed", 0)]
    assert values(report) == {"mean pass@1 (1 samples)": 0.5}


FORKING = """
    import multiprocessing
    from concurrent.futures import ThreadPoolExecutor
    from bigcode_eval.tasks.custom_metrics.execute import check_correctness

    def check(program):
        return check_correctness(program, 3.0, 0, 0)["passed"]

    class Executing(Running):
        def process_results(self, generations, references):
            programs = [text + "\\n" + test for texts, test in zip(generations, references) for text in texts]
            with multiprocessing.get_context("fork").Pool(2) as pool:
                forked = pool.map(check, programs * 2)
            with ThreadPoolExecutor(2) as threads:
                assert [*threads.map(check, programs * 2)] == forked
            return {"share": sum(forked) / len(forked)}
"""


@pytest.mark.slow
def test_forks_and_threads_of_a_call_have_their_programs_run_in_turns() -> None:
    task = write_task(textwrap.dedent(RUNNING) + textwrap.dedent(FORKING))
    report = judge(f"{task}:Executing", [[FUNCTIONS[0]], ["nothing"], [FUNCTIONS[2]]], data=write_rows())
    assert values(report) == {"share": pytest.approx(2 / 3)}
    assert {trial["outcome"] for record in report.records() for trial in score_of(record).answer["trials"]} == {
        "passed",
        "failed",
    }


def test_a_task_that_cannot_be_loaded_in_isolation_is_named(tmp_path: Path) -> None:
    """It is an error of the task, and of every sample: the run ends."""
    more = f"""
        assert not hasattr(__import__("sys"), "prefixes") and {os.getpid()} == __import__("os").getpid()
    """
    with pytest.raises(UsageError, match=r"exam.py:Executing cannot be loaded by its scoring worker: .*line"):
        executing([GOOD], more)


SCRIPT = """
import proctor
from proctor.code import Task

class Mine(Task):
    def get_prompt(self, doc):
        return doc["prompt"]

    def get_reference(self, doc):
        return doc["test"]

    def process_results(self, generations, references):
        return {"mark": 1.0}

def main():
    print(proctor.evaluate(Mine, "scripted/blank", data="rows.jsonl", store="store").metrics["mark"].value)

"""


@pytest.mark.parametrize(("guard", "told"), [("if __name__ == '__main__': ", "1.0\n"), ("", "")])
def test_a_class_of_the_script_that_runs_it(guard: str, told: str) -> None:
    write_rows()
    Path("script.py").write_text(f"{SCRIPT}{guard}main()\n")
    path = {"PYTHONPATH": str(Path(proctor.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "script.py"], capture_output=True, text=True, timeout=100, check=False, env=os.environ | path
    )
    assert done.stdout == told, done.stderr
    if not told:
        assert 'if __name__ == "__main__":' in done.stderr


def test_a_file_that_lies_in_the_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only it and what it mentions are shown of such a folder."""
    monkeypatch.setattr("proctor.code.foreign.gettempdir", lambda: str(tmp_path / "tasks"))
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "secret.txt").write_text("secret")
    (tmp_path / "tasks" / "mentioned.txt").write_text("1")
    more = """
        found = {"mentioned.txt"}
        def process_results(self, generations, references):
            here = os.path.dirname(__file__)
            assert set(os.listdir(here)) - {"__pycache__"} == {"exam.py", *found}, os.listdir(here)
            return {"mark": float(open(here + "/mentioned.txt").read())}
    """
    assert outcomes(executing([GOOD], textwrap.indent(textwrap.dedent(more), "    "))) == [1]


@pytest.mark.slow
def test_check_scores_in_the_worker_too(proctor: Command) -> None:
    task = write_task(textwrap.dedent(RUNNING) + textwrap.dedent(FORKING))
    done = proctor("check", f"{task}:Executing", "--data", write_rows())
    assert done.returncode == 0, done.stdout + done.stderr
    assert code_task(f"{task}:Executing").build(proctor_settings(), write_rows()).rows()[0] == ROWS[0]


def proctor_settings() -> Any:
    from proctor.core.task import NoSettings

    return NoSettings()
