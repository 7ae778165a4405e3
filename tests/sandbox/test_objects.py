"""Objects of a program that its tests use: a right program passes, and nothing that only claims to be right."""

from __future__ import annotations

import textwrap

from helpers.claiming_programs import ANYTHING, ASKING, CHEATING
from helpers.object_programs import OBJECTS, REACHING_IN
from helpers.sandbox_session import SandboxSession
from proctor.sandbox import Limits, Mode, Program

LIMITS = Limits(seconds=10.0)


def test_right_programs_pass_tests_of_their_objects(session: SandboxSession) -> None:
    assert judged(session, OBJECTS, Mode.SPLIT) == {}


def test_tests_that_patch_the_process_run_in_process(session: SandboxSession) -> None:
    assert judged(session, REACHING_IN, Mode.IN_PROCESS) == {}


def judged(session: SandboxSession, known: dict[str, tuple[str, str]], testing: Mode) -> dict[str, str]:
    """Those that failed, or were tested elsewhere."""
    programs = [
        Program(source=textwrap.dedent(source), tests=textwrap.dedent(tests)) for source, tests in known.values()
    ]
    verdicts = dict(zip(known, session.judge_all(programs, LIMITS), strict=True))
    return {name: f"{v.testing} {v.detail}" for name, v in verdicts.items() if not v.passed or v.testing != testing}


def test_objects_never_equal_the_expected_value(session: SandboxSession) -> None:
    claims = [(f"{ANYTHING}\nV = {value}\n", tests) for value in ("0", "A()") for tests in ASKING]
    programs = [Program(source=source, tests=tests) for source, tests in [*claims, *CHEATING]]
    verdicts = zip(programs, session.judge_all(programs, LIMITS), strict=True)
    assert [(program.tests, verdict.testing) for program, verdict in verdicts if verdict.passed] == []
