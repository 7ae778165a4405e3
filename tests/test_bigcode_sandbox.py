"""Task files of the BigCode evaluation harness: what models wrote runs in the sandbox, or is refused."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import pytest

import proctor
from bigcode_tasks import FUNCTIONS, RUNNING, judge, values, write_rows, write_task
from code_tasks import score_of
from conftest import Command
from proctor.compat.bigcode.evaluate import load
from proctor.errors import UsageError


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


def test_executing_must_be_said(proctor: Command) -> None:
    path = write_task(
        RUNNING
        + """
        def __init__(self):
            super().__init__(stop_words=[], requires_execution=False)

        def process_results(self, generations, references):
            from evaluate import load
            return load("code_eval").compute(predictions=generations, references=references)[0]
        """
    )
    done = proctor("run", f"{path}:Running", "--data", write_rows(), "--model", "scripted/oracle", "-q")
    assert done.returncode == 2
    assert "call super().__init__(requires_execution=True, ...) in it." in done.stderr
    assert "Traceback" not in done.stderr


def test_the_harness_executes_unless_it_is_told_otherwise(proctor: Command) -> None:
    path = write_task(RUNNING)
    done = proctor("run", f"{path}:Running", "--data", write_rows(), "--model", "scripted/oracle", "-q")
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


def test_threads_of_a_task_belong_to_its_run(capfd: pytest.CaptureFixture[str]) -> None:
    task = f"{write_task(textwrap.dedent(RUNNING) + textwrap.dedent(THREADS))}:Threaded"
    report = judge(task, [[FUNCTIONS[0]], ["nothing"], [FUNCTIONS[2]]], data=write_rows())
    assert values(report) == {"share": pytest.approx(2 / 3)}
    assert [[t["outcome"] for t in score_of(r).answer["trials"]] for r in report.records()] == [
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
                            done = subprocess.run([*self.command, file.name], timeout=1, stdout=DEVNULL)
                            passed.append(done.returncode == 0)
                        except subprocess.TimeoutExpired:
                            passed.append(False)
            return [{"kind": "all of them", "share": sum(passed) / len(passed)}]

    assert subprocess.run(["true"]).returncode == 0  # while the file is read, nothing is judged
"""


def test_what_a_task_starts_itself_runs_in_the_sandbox(contained: str) -> None:
    task = write_task(textwrap.dedent(RUNNING) + textwrap.dedent(STARTING))
    endless, curious = "import time\ntime.sleep(600)\n", "open('/etc/shadow')\n"
    report = judge(f"{task}:Starting", [[FUNCTIONS[0]], [endless], [curious + FUNCTIONS[2]]], data=write_rows())
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
        def __init__(self, executes=True):
            super().__init__(requires_execution=executes)

        def process_results(self, generations, references):
            START
            return {"share": 1.0}
"""


# A metric of texts may spread its work over processes.
IN_PROCESSES = {start for start in STARTS if STARTS[start] in ("a process", "processes")}


@pytest.mark.parametrize(
    ("start", "executes"),
    [
        *((start, start in IN_PROCESSES) for start in STARTS),
        *(pytest.param(start, True, marks=pytest.mark.slow) for start in STARTS if start not in IN_PROCESSES),
    ],
)
def test_what_would_run_outside_the_sandbox_is_refused(start: str, executes: bool) -> None:
    source = textwrap.dedent(RUNNING) + textwrap.dedent(CARELESS).replace("START", start)
    options: dict[str, Any] = {"data": write_rows(), "allow_code_execution": True, "settings": {"executes": executes}}
    with pytest.raises(UsageError, match=f"process_results starts {STARTS[start]}.*, which would run .* say --unsafe"):
        proctor.evaluate(f"{write_task(source)}:Careless", "scripted/blank", **options)


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


@pytest.mark.parametrize("name", ["Pooled", pytest.param("Dummy", marks=pytest.mark.slow), "Threaded"])
def test_what_its_threads_start_runs_in_the_sandbox_too(contained: str, tmp_path: Path, name: str) -> None:
    task = write_task(textwrap.dedent(RUNNING) + textwrap.dedent(IN_THREADS))
    tmp_path.chmod(0o777)
    escaping = f"open({str(tmp_path / 'escaped')!r}, 'w').write('x')\n"
    report = judge(f"{task}:{name}", [[FUNCTIONS[0]], [escaping + FUNCTIONS[1]], ["1 /"]], data=write_rows())
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


@pytest.mark.parametrize(
    ("call", "executes"),
    [
        ("exec", True),
        ("eval", False),
        pytest.param("exec", False, marks=pytest.mark.slow),
        pytest.param("eval", True, marks=pytest.mark.slow),
        pytest.param("builtins.exec", False, marks=pytest.mark.slow),
        pytest.param("builtins.exec", True, marks=pytest.mark.slow),
    ],
)
def test_what_a_model_wrote_is_not_run_by_the_task_file(tmp_path: Path, call: str, executes: bool) -> None:
    source = textwrap.dedent(READING).replace("CALL", call).replace("TEMPORARY", tempfile.gettempdir())
    task = write_task(textwrap.dedent(RUNNING) + source)
    marker = tmp_path / "ran"
    texts = [[f"open({str(marker)!r}, 'w').close()"]] * 3
    said = f"process_results calls {call.rpartition('.')[2]}, which would run what a model wrote outside the sandbox"
    with pytest.raises(UsageError, match=said):
        judge(f"{task}:Reading", texts, data=write_rows(), settings={"executes": executes})
    options: dict[str, Any] = {"data": write_rows(), "api": "completions", "allow_code_execution": True}
    with pytest.raises(UsageError, match="postprocess_generation calls"):
        proctor.evaluate(f"{task}:Cleaning", "scripted/oracle", **options)
    with pytest.raises(UsageError, match="postprocess_generation starts"):
        proctor.evaluate(f"{task}:Starting", "scripted/oracle", **options)
    assert not marker.exists()
    assert values(judge(f"{task}:Reading", texts, data=write_rows(), unsafe=True)) == {"share": 1}
    assert marker.exists()


def test_unless_the_user_does_not_mind() -> None:
    checked = "assert os.system('exit 3') == 3 << 8"
    task = f"{write_task(textwrap.dedent(RUNNING) + textwrap.dedent(CARELESS).replace('START', checked))}:Careless"
    report = proctor.evaluate(task, "scripted/blank", data=write_rows(), allow_code_execution=True, unsafe=True)
    assert values(report) == {"share": 1}
