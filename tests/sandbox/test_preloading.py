"""What a sandbox worker imports once instead of once per program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.sandbox_session import Judge
from proctor.sandbox import Mode, Outcome

ONE_PROGRAM = """
import asyncio
from proctor.sandbox import Limits, Program, run
asyncio.run(run([Program(source="x = 1", tests="")], Limits(), workers=1))
"""


@pytest.mark.parametrize("module", ["unittest", "unittest.mock"])
def test_unittest_is_preloaded(judge: Judge, module: str) -> None:
    tests = f"import sys\nassert '{module}' in sys.modules\nimport {module}\nassert f() == 1"
    verdict = judge("def f(): return 1", tests, entry_point="f")
    assert (verdict.outcome, verdict.testing) == (Outcome.PASSED, Mode.SPLIT), verdict.detail


def test_patched_unittest_does_not_reach_later_tests(judge: Judge) -> None:
    tests = "import unittest\nassert not hasattr(unittest, 'changed')\nunittest.changed = f()"
    for _ in range(3):
        assert judge("def f(): return 1", tests, entry_point="f").passed


def test_programs_do_not_get_unittest(judge: Judge) -> None:
    source = "import sys\ndef f(): return 'unittest' in sys.modules"
    verdict = judge(source, "import unittest\nassert f() is False", entry_point="f")
    assert (verdict.outcome, verdict.testing) == (Outcome.PASSED, Mode.SPLIT), verdict.detail


def test_compiled_worker_is_cached(tmp_path: Path) -> None:
    """A worker reads its own sources from a read-only folder, so the process that starts it has to compile them."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    subprocess.run([sys.executable, "-c", ONE_PROGRAM], env=environment, check=True)
    compiled = {file.name.partition(".")[0] for file in tmp_path.rglob("proctor/sandbox/inside/*.pyc")}
    assert {"supervisor", "test_runner", "zygote", "program"} <= compiled
