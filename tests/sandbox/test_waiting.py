"""A program's time does not run while its tests wait for a processor."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from proctor.sandbox import Limits, Mode, Outcome, Program, run

LIMIT = 1.0
COMPUTES = "import time\nwhile time.process_time() < 0.3: pass\nassert f() == 1"
ENDLESS = "import time\nwhile True: pass"


COMPETES = """
import os, time
children = []
for _ in range(40):
    child = os.fork()
    if child == 0:
        while time.process_time() < 0.05: pass
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
time.sleep(600)
"""


@pytest.fixture
def one_processor() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture
def crowded_processor(one_processor: None) -> Iterator[None]:
    """This process and what it starts share one processor with five busy loops, each in a session of its own."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) for _ in range(5)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.usefixtures("crowded_processor")
@pytest.mark.parametrize(
    ("tests", "outcome"),
    [(COMPUTES, Outcome.PASSED), pytest.param(ENDLESS, Outcome.TIMEOUT, marks=pytest.mark.slow)],
)
def test_forked_tests_may_wait_for_a_cpu(tests: str, outcome: Outcome) -> None:
    program = Program(source="def f(): return 1", tests=tests, entry_point="f")
    [verdict] = asyncio.run(run([program], Limits(seconds=LIMIT), workers=1))
    assert (verdict.outcome, verdict.testing) == (outcome, Mode.SPLIT), verdict.detail
    assert verdict.wall_seconds > LIMIT, "it never had to wait"


@pytest.mark.slow
@pytest.mark.usefixtures("one_processor")
def test_competing_processes_gain_no_time() -> None:
    """Together they wait for more than a minute, in the two seconds that they take."""
    limits = Limits(seconds=4.0, wall_seconds=60.0)
    [verdict] = asyncio.run(run([Program(source=COMPETES)], limits, workers=1))
    assert verdict.outcome is Outcome.TIMEOUT
    assert "wall clock" not in verdict.detail
