"""The command line: output and exit codes."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import pty
import re
import runpy
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import Command, Serve, Stalling, right_sum

VERBS = ["run", "resume", "list", "show", "check", "compare", "export", "sandbox", "new", "doctor"]


def test_help_names_every_verb(proctor: Command) -> None:
    done = proctor("--help")
    assert done.returncode == 0
    assert all(f"\n  {verb} " in done.stdout for verb in VERBS)
    assert proctor().stdout == done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(proctor: Command, verb: str) -> None:
    done = proctor(verb, "--help")
    assert done.returncode == 0
    assert f"usage: proctor {verb}" in done.stdout


def test_run_help_shows_every_option(proctor: Command) -> None:
    from proctor.core.config import FIELDS

    text = proctor("run", "--help").stdout
    hidden = {"task", "settings"}  # TASK… and --set
    assert [name for name in FIELDS if name not in hidden and f"--{name.replace('_', '-')}" not in text] == []
    assert "retries after a transient model error (default: 5)" in " ".join(text.split())


def test_version(proctor: Command) -> None:
    from proctor import __version__

    assert proctor("--version").stdout == f"proctor {__version__}\n"


def test_run_prints_a_report(proctor: Command) -> None:
    done = proctor("run", "shapes/existence", "--model", "scripted/random", "--limit", "50")
    assert done.returncode == 0
    assert "accuracy" in done.stdout
    assert "95 % interval" in done.stdout
    assert "50/50" in done.stderr, "progress goes to stderr, as plain lines without a terminal"


def test_json_prints_only_the_report(proctor: Command) -> None:
    done = proctor("run", "shapes/existence", "--model", "scripted/oracle", "--limit", "5", "--seed", "3", "--json")
    (run,) = json.loads(done.stdout)["runs"]
    assert run["task"] == "shapes/existence"
    assert run["candidate"] == "scripted/oracle"
    assert (run["n"], run["errors"], run["seed"]) == (5, 0, 3)
    assert run["metrics"]["accuracy"]["value"] == 1
    assert set(run["metrics"]["accuracy"]) >= {"value", "stderr", "low", "high"}
    assert {"id", "version", "seconds", "provenance", "config"} <= set(run)


def test_json_is_valid_if_a_task_prints(proctor: Command, tmp_path: Path, adding: str) -> None:
    (tmp_path / "mine.py").write_text(
        "print('imported')\nfrom adding import *\nclass Mine(Adding):\n"
        "    def score_text(self, s, t):\n        print('scoring')\n        return super().score_text(s, t)\n"
    )
    done = proctor("run", "mine.py:Mine", "--model", "scripted/oracle", "--json")
    assert json.loads(done.stdout)["runs"][0]["n"] == 10
    assert done.stderr.count("imported") == 1, "a file is executed once"
    assert "scoring" in done.stderr


def test_json_includes_failed_runs(proctor: Command, tmp_path: Path, adding: str) -> None:
    (tmp_path / "mine.py").write_text(
        "from adding import *\nclass Mine(Adding):\n    def score_text(self, s, t): raise ValueError('broken')\n"
    )
    done = proctor("run", "mine.py:Mine", adding, "--model", "scripted/oracle", "--json", "--quiet")
    assert done.returncode == 1
    failed, fine = json.loads(done.stdout)["runs"]
    assert (failed["status"], failed["n"], failed["errors"]) == ("failed", 0, 10)
    assert "ValueError: broken" in failed["reason"]
    assert (fine["status"], fine["n"]) == ("done", 10)


def test_tasks_before_and_after_the_flags(proctor: Command, adding: str) -> None:
    done = proctor("run", "shapes/existence", "--model", "scripted/oracle", "--limit", "2", adding, "--json")
    assert [run["n"] for run in json.loads(done.stdout)["runs"]] == [2, 2]


def test_unknown_group_by_key_is_noted(proctor: Command, adding: str) -> None:
    done = proctor("run", adding, "--model", "scripted/oracle", "--group-by", "even")
    assert "no sample has metadata 'even' to group by; metadata: odd." in done.stderr


def test_resume_accepts_the_config_file_of_the_run(proctor: Command, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('tasks = ["shapes/*"]\nmodel = "scripted/oracle"\nlimit = 2\n')
    proctor("run", "--config", "run.toml")
    assert proctor("resume", "latest", "--config", "run.toml").returncode == 0
    (tmp_path / "run.toml").write_text('tasks = ["shapes/*"]\nmodel = "scripted/oracle"\nlimit = 3\n')
    assert "limit 2 → 3" in proctor("resume", "latest", "--config", "run.toml").stderr


def test_export_refuses_an_unknown_extension(proctor: Command, adding: str) -> None:
    proctor("run", adding, "--model", "scripted/oracle")
    assert "No format for files that end in .xlsx" in proctor("export", "latest", "--out", "r.xlsx").stderr


def test_help_verb_equals_verb_help(proctor: Command) -> None:
    assert proctor("help", "run").stdout == proctor("run", "--help").stdout


def test_quiet_prints_no_progress(proctor: Command) -> None:
    done = proctor("run", "shapes/existence", "--model", "scripted/oracle", "--limit", "5", "--quiet")
    assert done.stderr == ""


def test_several_tasks_and_wildcards(proctor: Command, adding: str) -> None:
    done = proctor("run", "shapes/*", adding, "--model", "scripted/oracle", "--limit", "5", "--json")
    runs = json.loads(done.stdout)["runs"]
    assert [run["task"] for run in runs][-1] == adding
    assert len(runs) >= 2


def test_underscores_are_dashes(proctor: Command, adding: str) -> None:
    done = proctor(
        "run", adding, "--model=scripted/oracle", "--limit_start=2", "--n_samples", "2", "--limit", "3", "--json"
    )
    config = json.loads(done.stdout)["runs"][0]["config"]
    assert (config["limit_start"], config["samples"]) == (2, 2)


def test_flags_override_the_config_file(proctor: Command, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(
        'tasks = ["shapes/existence"]\nmodel = "scripted/oracle"\nlimit = 7\nseed = 1\n[settings]\nshapes = 4\n'
    )
    done = proctor("run", "--config", "run.toml", "--seed", "2", "--json")
    config = json.loads(done.stdout)["runs"][0]["config"]
    assert (config["limit"], config["seed"], config["settings"]["shapes"]) == (7, 2, 4)
    done = proctor("run", "--config", "run.toml", "--set", "shapes=5", "--json")
    assert json.loads(done.stdout)["runs"][0]["config"]["settings"]["shapes"] == 5


def test_out_writes_report_and_records(proctor: Command, adding: str, tmp_path: Path) -> None:
    done = proctor("run", adding, "--model", "scripted/oracle", "--out", "results", "--json", "--quiet")
    run_id = json.loads(done.stdout)["runs"][0]["id"]
    assert json.loads((tmp_path / "results" / f"{run_id}.json").read_text())["n"] == 10
    assert len((tmp_path / "results" / f"{run_id}.jsonl").read_text().splitlines()) == 10


def test_list_and_show(proctor: Command, adding: str) -> None:
    assert "runs: none yet" in proctor("list").stdout
    proctor("run", adding, "--model", "scripted/oracle")
    listing = proctor("list").stdout
    assert "shapes/existence" in listing
    assert "openai/NAME" in listing
    assert "accuracy 1.000" in listing
    rows = json.loads(proctor("list", "runs", "--json").stdout)["runs"]
    shown = proctor("show", rows[0]["name"])
    assert "accuracy" in shown.stdout
    assert shown.stdout == proctor("show", "latest").stdout
    assert json.loads(proctor("show", "latest", "--json").stdout)["runs"][0]["n"] == 10


def test_show_prints_a_sample_as_the_candidate_sees_it(proctor: Command) -> None:
    done = proctor("show", "shapes/existence", "--few-shot", "1", "--index", "3")
    assert "[user]" in done.stdout
    assert "[assistant]" in done.stdout
    assert "Answer Yes or No." in done.stdout
    assert "gold answer:" in done.stdout
    assert "--set shapes=7" in done.stdout


def test_show_of_an_unfinished_run_names_the_resume_command(proctor: Command, adding: str, stalling: Stalling) -> None:
    server = stalling(3)
    command = [sys.executable, "-m", "proctor", "run", adding, "--model", "openai/m", "--base-url", server.url, "-q"]
    process = subprocess.Popen(command)
    try:
        while "running, so far correct 3" not in proctor("show", "latest").stderr:
            assert process.poll() is None
            time.sleep(0.05)
        assert "  running  " in proctor("list", "runs").stdout
    finally:
        process.kill()
        process.wait()
    shown = proctor("show", "latest")
    assert "killed, so far correct 3. Continue: proctor resume" in shown.stderr
    assert shown.returncode == 0
    listed = proctor("list", "runs").stdout
    assert "  killed  " in listed
    assert "  3 scored" in listed


def test_check(proctor: Command, adding: str) -> None:
    done = proctor("check", "shapes/e*", "-n", "10")
    assert done.returncode == 0
    assert "ok    an independent solver, where there is one, agrees" in done.stdout
    failed = proctor("check", adding)
    assert failed.returncode == 1
    assert "FAIL  another seed makes other samples" in failed.stdout


@pytest.mark.parametrize("form", ["jsonl", "json", "csv"])
def test_export(proctor: Command, adding: str, tmp_path: Path, form: str) -> None:
    proctor("run", adding, "--model", "scripted/oracle", "--epochs", "2")
    done = proctor("export", "latest", "--format", form)
    assert done.returncode == 0
    proctor("export", "latest", "--out", f"records.{form}")
    assert (tmp_path / f"records.{form}").read_text() == done.stdout
    if form == "csv":
        assert done.stdout.splitlines()[0].startswith("id,index,epoch,target,output")
        assert len(done.stdout.splitlines()) == 21
        return
    rows = json.loads(done.stdout) if form == "json" else [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == 20
    keys = {"id", "index", "epoch", "input", "target", "outputs", "score", "outcome", "error", "usage", "timing"}
    assert keys <= set(rows[0])
    assert [(row["index"], row["epoch"], row["score"]) for row in rows[:3]] == [(0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0)]


def test_export_into_a_closed_pipe(proctor: Command, adding: str) -> None:
    proctor("run", adding, "--model", "scripted/oracle", "--limit", "1000")
    done = subprocess.run(
        f"{sys.executable} -m proctor export latest | head -1", shell=True, capture_output=True, text=True, check=False
    )
    assert json.loads(done.stdout)["index"] == 0
    assert done.stderr == ""


def test_resume_on_the_command_line(proctor: Command, adding: str) -> None:
    proctor("run", adding, "--model", "scripted/oracle")
    assert proctor("resume", "latest", "--quiet").returncode == 0
    refused = proctor("resume", "latest", "--seed", "5")
    assert refused.returncode == 2
    assert "seed 0 → 5" in refused.stderr


@pytest.mark.parametrize("kind", ["task", pytest.param("shapes", marks=pytest.mark.slow), "code"])
def test_new_writes_a_task_that_works(proctor: Command, tmp_path: Path, kind: str) -> None:
    done = proctor("new", kind, "my-exam", "--out", "exams")
    assert done.returncode == 0
    assert (tmp_path / "exams" / "my_exam.py").exists()
    *lines, test = done.stdout.splitlines()[1:]
    for line in lines:
        verb, *words = line.split()
        assert verb == "proctor"
        ran = proctor(*words)
        assert ran.returncode == 0, f"{line}: {ran.stdout}{ran.stderr}"
    assert test.split() == ["pytest", str(Path("exams", "test_my_exam.py"))]
    call_tests(tmp_path / "exams" / "test_my_exam.py", tmp_path)
    again = proctor("new", kind, "my-exam", "--out", "exams")
    assert again.returncode == 2
    assert "exists already" in again.stderr


def call_tests(path: Path, folder: Path) -> None:
    """Calls the tests of a file, as pytest would."""
    tests = {name: value for name, value in runpy.run_path(str(path)).items() if name.startswith("test_")}
    assert len(tests) == 2
    for test in tests.values():
        test(**({"tmp_path": folder / "other"} if "tmp_path" in inspect.signature(test).parameters else {}))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["task", "shapes", "code"])
def test_generated_test_passes_under_pytest(proctor: Command, kind: str) -> None:
    assert proctor("new", kind, "my-exam").returncode == 0
    command = [sys.executable, "-m", "pytest", "test_my_exam.py"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_doctor(proctor: Command) -> None:
    done = proctor("doctor")
    assert done.returncode == 0
    assert "embedded runtime" in done.stdout
    secret = proctor("doctor", OPENAI_API_KEY="sk-hidden")
    assert "OPENAI_API_KEY is set" in secret.stdout
    assert "sk-hidden" not in secret.stdout


def test_doctor_names_the_programs_for_windows(proctor: Command, tmp_path: Path) -> None:
    whole = proctor("doctor")
    if shutil.which("Xvfb") and importlib.util.find_spec("Xlib"):
        assert re.search("^ok +windows +a virtual display starts", whole.stdout, re.MULTILINE)
    bare = proctor("doctor", PATH=str(tmp_path))
    for program in ("Xvfb", "ffmpeg", "faketime"):
        assert re.search(f"^– .*{program}", bare.stdout, re.MULTILINE)
    assert bare.returncode == 0


def test_doctor_finds_an_unwritable_store(proctor: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = proctor("doctor", "--store", str(tmp_path / "file"))
    assert done.returncode == 1
    assert "MISSING" in done.stdout


def test_identical_completions_are_noted(proctor: Command, adding: str, serve: Serve) -> None:
    server = serve(right_sum)
    run = ["run", adding, "--model", "openai/m", "--base-url", server.url, "--limit", "1", "--n_samples", "2"]
    assert "at temperature 0 the samples mostly repeat each other" in proctor(*run).stderr
    assert "repeat" not in proctor(*run, "--do_sample", "True").stderr
    proctor(*run, "--do_sample", "True", "--temperature", "0.8", "--top_p", "0.5")
    proctor(*run, "--do_sample", "False", "--temperature", "0.8")
    sampling = [(body["temperature"], body.get("top_p")) for body in server.requests]
    assert sampling[::2] == sampling[1::2] == [(0, None), (0.2, 0.95), (0.8, 0.5), (0, None)]


def test_live_progress_on_a_terminal(adding: str, serve: Serve) -> None:
    """A pseudo-terminal: the bar with done/total, rate, time left, score and errors."""
    server = serve(right_sum)
    main, terminal = pty.openpty()
    command = [sys.executable, "-m", "proctor", "run", adding, "--model", "openai/m", "--base-url", server.url]
    env = os.environ | {"TERM": "xterm", "COLUMNS": "160"}
    process = subprocess.Popen([*command, "--limit", "200"], stderr=terminal, stdout=subprocess.DEVNULL, env=env)
    os.close(terminal)
    seen = b""
    while True:
        try:
            chunk = os.read(main, 65536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        seen += chunk
    os.close(main)
    assert process.wait(60) == 0
    text = seen.decode(errors="replace")
    for part in ("200/200", "/s", "score 1.000", "0 errors", "ETA"):
        assert part in text, text
