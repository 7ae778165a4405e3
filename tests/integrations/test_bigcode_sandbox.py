"""Task files of the BigCode evaluation harness: what a metric runs for them, it runs in the sandbox."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from conftest import Command
from helpers.bigcode_tasks import FUNCTIONS, RUNNING, judge, values, write_rows, write_task
from helpers.code_tasks import score_of
from proctor.integrations.bigcode.evaluate import load


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
        from proctor.integrations.bigcode.evaluate import load
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
    assert "add --allow-code-execution" in done.stderr


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
