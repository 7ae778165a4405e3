"""`proctor sandbox`, and the checks of `proctor doctor` for it.

The programs are harmless, so that they run with --unsafe also where nothing could hold them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from helpers.toolchains import needs_language
from proctor.core.errors import MissingToolchainError
from proctor.sandbox.languages import LANGUAGES, find_language
from proctor.sandbox.toolchain import locate

Sandbox = Callable[..., "subprocess.CompletedProcess[str]"]
ADD = "def add(a, b):\n    print('adding')\n    return a + b\n"


@pytest.fixture
def sandbox(proctor: Command, tmp_path: Path) -> Sandbox:
    """Runs files, given by name and content, with further arguments, in a separate folder."""

    def run(files: dict[str, str], *arguments: str, programs: int = 1) -> subprocess.CompletedProcess[str]:
        for name, content in files.items():
            (tmp_path / name).write_text(content)
        return proctor("sandbox", *list(files)[:programs], *arguments, "--unsafe")

    return run


def verdicts(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(done.stdout)["programs"]
    return told


def test_a_program_that_passes(sandbox: Sandbox) -> None:
    done = sandbox({"add.py": ADD, "tests.py": "assert add(2, 2) == 4"}, "--tests", "tests.py")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "add.py: passed"
    assert "  tests   split: the tests ran in a separate process" in lines
    assert any(line.startswith("  level   ") for line in lines)
    assert any(line.startswith("  used    ") and line.endswith(" MiB") for line in lines)
    assert lines[-1] == "  stdout  adding"


def test_a_program_that_fails(sandbox: Sandbox) -> None:
    done = sandbox({"add.py": ADD, "tests.py": "assert add(2, 2) == 5"}, "--tests", "tests.py")
    assert done.returncode == 1
    assert "add.py: failed" in done.stdout
    assert "assert add(2, 2) == 5" in done.stdout
    assert "add(2, 2) returned 4" in done.stdout


def test_in_process_tests_are_reported(sandbox: Sandbox) -> None:
    done = sandbox({"call.py": "def call(f): return f(1)", "tests.py": "assert call(abs) == 1"}, "--tests", "tests.py")
    assert done.returncode == 0
    assert "in-process: the tests ran in the process of the program, which could fake a pass" in done.stdout


def test_json_of_several_programs_in_their_order(sandbox: Sandbox) -> None:
    files = {"slow.py": "import time; time.sleep(0.3); print(input())", "fails.py": "raise SystemExit(3)", "in": "42\n"}
    done = sandbox(files, "--stdin", "in", "--json", "--workers", "2", programs=2)
    assert done.returncode == 1
    slow, fails = verdicts(done)
    assert (slow["file"], slow["language"], slow["outcome"], slow["stdout"]) == ("slow.py", "python", "passed", "42\n")
    assert (fails["file"], fails["outcome"], fails["testing"]) == ("fails.py", "failed", "exit status")
    assert "Exit status 3." in fails["detail"]
    assert {"level", "cpu_seconds", "wall_seconds", "memory_mib", "stderr"} <= set(slow)


@pytest.mark.parametrize(
    ("source", "flags", "outcome"),
    [
        ("while True: pass", ["--seconds", "0.3"], "timeout"),
        ("bytearray(10**8)", ["--memory", "64"], "memory"),
        ("print('x' * 10**5)", ["--output", "8"], "output"),
    ],
)
def test_limits(sandbox: Sandbox, source: str, flags: list[str], outcome: str) -> None:
    (verdict,) = verdicts(sandbox({"program.py": source}, *flags, "--json"))
    assert verdict["outcome"] == outcome


def test_entry_point_with_the_name_of_a_built_in(sandbox: Sandbox) -> None:
    files = {"program.py": "def sum(a, b): return a * b", "tests.py": "assert sum(3, 4) == 12"}
    assert sandbox(files, "--tests", "tests.py", "--entry-point", "sum").returncode == 0


def test_control_characters_of_a_program_are_escaped(sandbox: Sandbox) -> None:
    done = sandbox({"program.py": "print('\\x1b[2J\\x9b1m\\u202e\\rhello\\tthere')"})
    assert r"\x1b[2J\x9b1m\u202e\rhello" + "\tthere" in done.stdout


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("a.py", "python"), ("a.sh", "bash"), ("a.JS", "javascript"), ("a.R", "r"), ("a.cc", "cpp"), ("a.rs", "rust"),
        ("a.go", "go"), ("a_test.go", "go-test"), ("a.test.ts", "typescript"), ("A.java", "java"), ("a.adb", "ada"),
    ],
)  # fmt: skip
def test_extension_selects_the_language(name: str, language: str) -> None:
    from proctor.cli.sandbox import _language_of

    assert _language_of(name).name == language


def test_extension_of_every_language_is_known() -> None:
    from proctor.cli.sandbox import _language_of

    for language in LANGUAGES:
        if language.name != "rust-test":  # its tests have the same extension as rust
            assert _language_of(language.file.replace("{public}", "Main")) is language


def test_another_language(sandbox: Sandbox) -> None:
    needs_language("c")
    done = sandbox({"answer.c": '#include <stdio.h>\nint main() { puts("42"); return 0; }'}, "--json")
    (verdict,) = verdicts(done)
    assert (verdict["outcome"], verdict["language"], verdict["stdout"]) == ("passed", "c", "42\n"), verdict["detail"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.py"], "Cannot read nowhere.py: No such file or directory."),
        (["."], "give --language NAME"),
        (["notes.txt"], "The name notes.txt does not show its language: give --language NAME."),
        (["notes.txt", "--language", "pyton"], "Unknown language 'pyton'; did you mean python?"),
        (["bytes.py"], "bytes.py is not UTF-8 text."),
        (["program.sh", "--tests", "notes.txt"], "--tests are Python and cannot call program.sh (bash)"),
        (["program.py", "--tests", "nowhere.py"], "Cannot read nowhere.py"),
        (["program.py", "--seconds", "0"], "expected a number above 0 and below 1,000,000,000, got 0"),
        (["program.py", "--seconds", "nan"], "expected a number above 0"),
        (["program.py", "--memory", "much"], "invalid int value: 'much'"),
        (["program.py", "--workers", "-1"], "workers: expected int >= 1, got '-1'."),
        (["program.py", "--sandbox", "lxc"], "invalid choice: 'lxc'"),
        ([], "arguments are required: FILE"),
    ],
)
def test_bad_arguments_are_named(proctor: Command, tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "notes.txt").write_text("Buy milk.")
    (tmp_path / "program.py").write_text("print(1)")
    (tmp_path / "program.sh").write_text("true")
    (tmp_path / "bytes.py").write_bytes(b"print('\xff')")
    done = proctor("sandbox", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_missing_toolchain_names_its_package(proctor: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.sandbox.toolchain.SYSTEM_PATH", "/nowhere")
    (tmp_path / "program").write_text("")
    done = proctor("sandbox", "program", "--language", "racket", PATH="/nowhere")
    assert done.returncode == 2
    assert "apt-get install racket" in done.stderr


def _there(name: str) -> bool:
    try:
        locate(find_language(name))
    except MissingToolchainError:
        return False
    return True


# Less capable machines: the same command behind a filter that blocks their missing features

LESS = """
import os, sys
from proctor.cli.main import main
from proctor.sandbox.inside import kernel, seccomp

kernel.set_no_new_privileges()
program = seccomp._head()
if "namespaces" in sys.argv[1]:
    program += seccomp._on_call(seccomp.number_of("unshare"), seccomp._REFUSE | 1)
if "landlock" in sys.argv[1]:
    program += seccomp._on_call(444, seccomp._REFUSE | 38)
seccomp.Filter(seccomp._pack(program)).install()
sys.exit(main(sys.argv[2:]))
"""


def without(what: str, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """Runs on a machine without bubblewrap and without another feature."""
    return subprocess.run(
        [sys.executable, "-c", LESS, what, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PATH": path},
        check=False,
    )


def test_program_does_not_run_without_isolation(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print('here I am')")
    refused = without("namespaces landlock", "sandbox", "program.py")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--unsafe" in refused.stderr
    assert "proctor doctor" in refused.stderr
    done = without("namespaces landlock", "sandbox", "program.py", "--unsafe")
    assert done.returncode == 0, done.stderr
    assert "here I am" in done.stdout
    assert "  level   limits: limits" in done.stdout


# proctor doctor


def test_doctor_names_level_and_languages(proctor: Command, contained: str) -> None:
    done = proctor("doctor", "--json")
    assert done.returncode == 0, done.stderr
    symptoms = {symptom["name"]: symptom for symptom in json.loads(done.stdout)}
    assert (symptoms["sandbox"]["ok"], symptoms["sandbox"]["found"]) == (True, contained)
    assert "python" in symptoms["languages"]["found"]
    assert {"docker", "podman"} <= set(symptoms)
    for language in LANGUAGES:
        if not _there(language.name):
            assert not symptoms[language.name]["ok"]
            assert (language.packages or language.site) in symptoms[language.name]["cure"]


def test_doctor_names_obstacles_to_isolation() -> None:
    text = without("namespaces landlock", "doctor").stdout
    assert "–        sandbox          full: namespaces" in text
    assert "Install bubblewrap" in text
    assert "no isolation level works. Programs then need --unsafe." in text


def test_doctor_names_the_benefit_of_a_newer_kernel(contained: str) -> None:
    if not contained.startswith("full"):
        pytest.skip(f"needs namespaces; this machine offers {contained}")
    done = without("landlock", "doctor", "--json")
    level = next(symptom for symptom in json.loads(done.stdout) if symptom["name"] == "sandbox" and symptom["ok"])
    assert "Landlock" not in level["found"]
    assert "Landlock" in level["cure"]


def test_doctor_checks_the_container_engines(proctor: Command, tmp_path: Path) -> None:
    """One engine answers; the other is installed but does not answer."""
    for name, script in (("docker", "echo 'no service' >&2; exit 1"), ("podman", "echo 9.9")):
        engine = tmp_path / name
        engine.write_text(f"#!/bin/sh\n{script}\n")
        engine.chmod(0o755)
    shell = shutil.which("sh")
    assert shell is not None
    text = proctor("doctor", PATH=f"{tmp_path}:{os.path.dirname(shell)}").stdout
    assert "–        docker           installed, but: no service." in text
    assert "ok       podman           9.9, runs programs in containers" in text


def test_silent_container_engine_is_named(proctor: Command, tmp_path: Path) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\necho 'no service here' >&2\nexit 1\n")
    (tmp_path / "docker").chmod(0o755)
    (tmp_path / "program.py").write_text("print(1)")
    done = proctor("sandbox", "program.py", "--sandbox", "docker", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "docker does not answer: no service here" in done.stderr
