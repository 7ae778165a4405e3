"""Bad input gives one clear sentence and exit code 2, and loses nothing."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Command

ORACLE = ("--model", "scripted/oracle")


def assert_one_sentence(done: subprocess.CompletedProcess[str], *parts: str, code: int = 2) -> None:
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("proctor: ")
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rnu"], ["Unknown verb 'rnu'; did you mean run?"]),
        (["run", "shapes/existance", *ORACLE], ["Unknown task", "did you mean shapes/existence?"]),
        (["run", "shapez/*", *ORACLE], ["No task matches 'shapez/*'"]),
        (["run", "shapes/existence", "--model", "smolm2"], ["Unknown model 'smolm2'; did you mean smollm2?"]),
        (["run", "shapes/existence", "--model", "scripted/orcale"], ["did you mean scripted/oracle?"]),
        (["run", "shapes/existence", "--model", "scriptd/oracle"], ["did you mean scripted/oracle?"]),
        (["run", "shapes/existence", "--model", "opnai/gpt-5"], ["Unknown model 'opnai/gpt-5'"]),
        (["run", "shapes/existence", "--model", "hf/"], ["Unknown model 'hf/'"]),
        (["run", "shapes/existence"], ["No model given"]),
        (["run", *ORACLE], ["No task given"]),
        (["run", "shapes/existence", *ORACLE, "--limit", "-5"], ["limit", ">= 1"]),
        (["run", "shapes/existence", *ORACLE, "--limit", "0"], ["limit", ">= 1"]),
        (["run", "shapes/existence", *ORACLE, "--limit-start", "-1"], ["limit_start", ">= 0"]),
        (["run", "shapes/existence", *ORACLE, "--concurrency", "0"], ["concurrency", ">= 1"]),
        (["run", "shapes/existence", *ORACLE, "--limit", "ten"], ["limit", "'ten'"]),
        (["run", "shapes/existence", *ORACLE, "--temprature", "1"], ["did you mean --temperature?"]),
        (["run", "shapes/existence", *ORACLE, "--set", "shapes"], ["--set expects key=value"]),
        (["run", "shapes/existence", *ORACLE, "--set", "shapes=500"], ["shapes", "<= 47"]),
        (["run", "shapes/existence", *ORACLE, "--set", "shape=5"], ["did you mean shapes?"]),
        (["run", "shapes/existence", *ORACLE, "--set", "shapes=few"], ["shapes: expected int, got 'few'"]),
        (
            ["run", "shapes/existence", *ORACLE, "--set", "description=short"],
            ["description: expected coordinates or full or partial, got 'short'"],
        ),
        (["run", "shapes/*", *ORACLE, "--set", "shapes=3"], ["shapes/between: setting shapes: expected int >= 5"]),
        (["run", "shapes/multi_hop", *ORACLE, "--set", "hops=10"], ["hops=10 needs shapes=11 or more, got shapes=10."]),
        (["run", "shapes/existence", *ORACLE, "--config", "none.toml"], ["Cannot read the configuration none.toml"]),
        (["run", "nowhere.py:Task", *ORACLE], ["No task file nowhere.py"]),
        (["run", "shapes/existence", "--model", "openai/gpt-5"], ["No API key", "OPENAI_API_KEY"]),
        (["run", "shapes/existence", "--model", "gguf/none.gguf"], ["No model file none.gguf"]),
        (["run", "shapes/existence", *ORACLE, "--store", "mysql://h/d"], ["Unknown kind of store 'mysql'"]),
        (["show", "latest"], ["No store at"]),
        (["show", "shapes/existence", "--index", "-1"], ["limit_start", ">= 0"]),
        (["check", "shapes/existence", "-n", "0"], ["limit", ">= 1"]),
        (["export", "latest"], ["No store at"]),
        (["resume", "latest"], ["No store at"]),
        (["run", "shapes/existence", *ORACLE, "--epochs", "many"], ["epochs: expected int, got 'many'"]),
        (["run", "shapes/existence", *ORACLE, "--limit", "9" * 30], ["limit"]),
        (["run", "shapes/existence", *ORACLE, "--concurrency", "100000"], ["concurrency: expected int <= 4096"]),
        (["run", "shapes/existence", *ORACLE, "--timeout", "inf"], ["timeout: expected a finite number"]),
        (["run", "shapes/existence", *ORACLE, "--temperature", "nan"], ["temperature"]),
        (["run", "shapes/existence", *ORACLE, "--out", ""], ["out: expected the name of a folder"]),
        (["run", "shapes/existence", *ORACLE, "--out", "/proc/x"], ["out: cannot write to /proc/x"]),
        (["run", "shapes/existence", *ORACLE, "--store", "~nobody-here/x"], ["'~nobody-here/x' is not a valid path"]),
        (["run", "shapes/existence", *ORACLE, "--set", "shapes=" + "[" * 5000], ["shapes"]),
        (["run", "shapes/existence", "--model", "openai/m", "--base-url", "http://[::1/v1"], ["base_url"]),
        (["run", "shapes/existence", "--model", "openai/m", "--base-url", "http://a:99999/v1"], ["base_url"]),
        (["run", "shapes/existence", "--model", "openai/m", "--base-url", "http://a..b/v1"], ["http://a..b/v1"]),
        (["run", "shapes/existence", "--model", "openai/m", "--base-url", "http://a/v1?key=k"], ["expected only host"]),
        (["list", "things"], ["invalid choice: 'things'"]),
        (["new", "task", "1 + 1"], ["cannot be the name of a Python file"]),
        (["new", "teapot", "x"], ["invalid choice: 'teapot'"]),
    ],
)
def test_bad_arguments_are_named(proctor: Command, arguments: list[str], said: list[str]) -> None:
    assert_one_sentence(proctor(*arguments), *said)


def test_unknown_toml_key_is_named(proctor: Command, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("limt = 3\n")
    assert_one_sentence(
        proctor("run", "shapes/existence", *ORACLE, "--config", "run.toml"), "'limt'; did you mean limit?"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('tasks = "shapes/*"', "tasks must be a list"),
        ("tasks = [5]", "tasks must be a list"),
        ("task = 5", "task must be one name"),
        ("settings = 5", "settings must be a table"),
        ("limit = -1", "limit: expected int >= 1"),
        ('limit = "many"', "limit: expected int, got 'many'"),
    ],
)
def test_bad_toml_values_are_named(proctor: Command, tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "run.toml").write_text(content)
    assert_one_sentence(proctor("run", "shapes/existence", *ORACLE, "--config", "run.toml", "--set", "shapes=5"), said)


@pytest.mark.parametrize(
    ("body", "said", "code"),
    [
        ("def __init__(self, x): pass", "cannot be created: TypeError", 2),
        ("Settings = dict", "Settings must be a class that extends msgspec.Struct", 2),
        ("version = 1", "version must be a str", 2),
        ("def count(self, config): return 'x'", "count must return a number or None, not 'x'", 1),
        ("def count(self, config): raise ValueError('a\\nb')", "cannot count its samples: ValueError: a b", 1),
        ("def samples(self, config): return None", "failed to make the sample after index -1: TypeError", 1),
        ("def tally(self): return None", "failed to sum up", 1),
    ],
)
def test_incomplete_tasks_are_refused(
    proctor: Command, tmp_path: Path, adding: str, body: str, said: str, code: int
) -> None:
    (tmp_path / "mine.py").write_text(f"from adding import *\nclass Mine(Adding):\n    {body}\n")
    assert_one_sentence(proctor("run", "mine.py:Mine", *ORACLE, "--quiet"), said, code=code)
    assert "Traceback" not in proctor("show", "mine.py:Mine").stderr
    assert "Traceback" not in proctor("check", "mine.py:Mine").stderr
    assert proctor("list", "runs").returncode in (0, 2), "the store can be read whatever was run"


def test_unexpected_error_is_assert_one_sentence(proctor: Command, tmp_path: Path, adding: str) -> None:
    (tmp_path / "mine.py").write_text(
        "from adding import *\nclass Mine(Adding):\n    def gold(self, s): raise ValueError('hm')\n"
    )
    done = proctor("show", "mine.py:Mine")
    assert done.returncode == 1
    assert "ValueError: hm. PROCTOR_TRACEBACK=1 shows the traceback." in done.stderr
    assert len(done.stderr.splitlines()) == 1
    with pytest.raises(ValueError, match="hm"):  # the interpreter prints the traceback
        proctor("show", "mine.py:Mine", PROCTOR_TRACEBACK="1")


def test_argument_that_is_not_utf8_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "proctor", "run", b"\xff\xfe", *ORACLE], capture_output=True, text=True, check=False
    )
    assert_one_sentence(done, "is not valid UTF-8")


def test_full_output_device_is_assert_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "proctor", "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "proctor: [Errno 28] No space left on device.\n")


def test_ascii_terminal_shows_the_report(proctor_process: Command) -> None:
    done = proctor_process("run", "shapes/existence", *ORACLE, "--limit", "2", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "accuracy" in done.stdout


def test_import_error_of_a_task_file_names_its_line(proctor: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import proctor\n1 / 0\n")
    done = proctor("run", "mine.py:Mine", *ORACLE)
    assert_one_sentence(done, "mine.py could not be imported: ZeroDivisionError: division by zero (line 2)")


def test_unwritable_store_is_named(proctor: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert_one_sentence(
        proctor("run", "shapes/existence", *ORACLE, "--store", "file/store"), "Cannot use the store file/store"
    )


def test_read_only_store_is_named(proctor: Command, tmp_path: Path) -> None:
    proctor("run", "shapes/existence", *ORACLE, "--limit", "2")
    if os.geteuid() == 0:
        # Root may write everywhere but in /proc.
        assert_one_sentence(
            proctor("run", "shapes/existence", *ORACLE, "--store", "/proc/store"), "Cannot use the store"
        )
        return
    (tmp_path / "store").chmod(0o500)
    assert_one_sentence(proctor("run", "shapes/existence", *ORACLE), "Cannot use the store")


def test_store_of_a_newer_version_is_refused(proctor: Command, tmp_path: Path) -> None:
    proctor("run", "shapes/existence", *ORACLE, "--limit", "2")
    db = sqlite3.connect(tmp_path / "store" / "runs.db")
    db.execute("PRAGMA user_version = 999")
    db.close()
    assert_one_sentence(proctor("run", "shapes/existence", *ORACLE), "newer proctor (store version 999")
    db = sqlite3.connect(tmp_path / "store" / "runs.db")
    assert db.execute("SELECT count(*) FROM records").fetchone() == (2,)
    db.close()


def test_unreachable_server_is_named(proctor: Command) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        done = proctor("run", "shapes/existence", "--model", "openai/m", "--base-url", url)
    assert_one_sentence(done, "Cannot reach the model server", "--base-url")


def test_unwritable_export_is_named(proctor: Command) -> None:
    proctor("run", "shapes/existence", *ORACLE, "--limit", "2")
    assert_one_sentence(proctor("export", "latest", "--out", "none/records.jsonl"), "Cannot write none/records.jsonl")
    assert_one_sentence(proctor("export", "2020"), "Unknown run '2020'")


def test_run_with_too_many_errors_exits_with_1(proctor: Command, tmp_path: Path, adding: str) -> None:
    (tmp_path / "mine.py").write_text(
        "from adding import *\nclass Mine(Adding):\n    def score_text(self, *_): raise ValueError('broken')\n"
    )
    done = proctor("run", "mine.py:Mine", *ORACLE, "--max-errors", "3", "--quiet")
    assert done.returncode == 1
    assert "3 failed samples" in done.stderr
    assert "proctor resume" in done.stderr
