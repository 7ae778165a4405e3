"""Honest programs pass: at the best level here, and at every level, as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from helpers import needs
from helpers.honest_programs import ALL, FOLDERS, OWN_SOURCE, PROCESSES
from helpers.paths import TESTS
from helpers.sandbox_session import SandboxSession
from proctor.sandbox import Limits

# The others take a fresh interpreter or more, and are run at every level by `make test-all`.
QUICK = [case for case in (*OWN_SOURCE, *FOLDERS) if "subprocess" not in case.program.source]
SPAWNED = next(case for case in PROCESSES if case.name == "spawn pool")


def test_honest_programs_pass(session: SandboxSession) -> None:
    cases = [*QUICK, SPAWNED]
    verdicts = session.judge_all([case.program for case in cases], Limits(seconds=20.0))
    assert {case.name: verdict for case, verdict in zip(cases, verdicts, strict=True) if not verdict.passed} == {}


@pytest.mark.slow
@pytest.mark.parametrize("user", ["this user", "ordinary user"])
@pytest.mark.parametrize("level", ["full bubblewrap", "full kernel", "confined none", "limits none"])
def test_honest_programs_pass_at_every_level(level: str, user: str) -> None:
    if "bubblewrap" in level:
        needs.program("bwrap", "bubblewrap")
    command = [sys.executable, "-m", "helpers.honest_driver", *level.split()]
    if user == "ordinary user":
        if os.getuid() != 0:
            pytest.skip("this user is an ordinary one already")
        command = [sys.executable, "-m", "helpers.ordinary_user", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=TESTS, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    if "missing" in result:
        pytest.skip(result["missing"])
    assert result["failed"] == []
    assert result["held"] >= len([case for case in ALL if not case.needs])
