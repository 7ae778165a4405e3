"""The attack table, on every level that claims to withstand it, as root and as an ordinary user."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys

import pytest

from helpers import needs
from helpers.hostile_programs import ATTACKS, HONEST, MARK, PLACES, Case
from helpers.paths import TESTS
from helpers.sandbox_driver import WORKERS
from proctor.sandbox import Limits, Outcome, Pool, best_level, run

LEVELS = ["full bubblewrap", "full kernel", "confined none"]


def test_attacks_fail_at_the_best_level() -> None:
    level = asyncio.run(best_level())
    _withstand(f"{level.name} {level.namespace_backend}", "this user")


@pytest.mark.slow
@pytest.mark.parametrize("user", ["this user", "ordinary user"])
@pytest.mark.parametrize("level", LEVELS)
def test_attacks_fail_at_every_level(level: str, user: str) -> None:
    _withstand(level, user)


def _withstand(level: str, user: str) -> None:
    if "bubblewrap" in level:
        needs.program("bwrap", "bubblewrap")
    command = [sys.executable, "-m", "helpers.sandbox_driver", *level.split()]
    if user == "ordinary user":
        if os.getuid() != 0:
            pytest.skip("this user is an ordinary one already")
        command = [sys.executable, "-m", "helpers.ordinary_user", *command]
    elif level.startswith("confined") and os.getuid() == 0:
        pytest.skip("the table kills every process it can reach: as root only at levels that are tested already")
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, cwd=TESTS, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["wrong"] == []
    assert result["held"] > 60
    assert result["ready"] == WORKERS
    assert result["strays"] == []
    assert [place for place in PLACES if os.path.exists(f"{place}/{MARK}")] == []


QUICK = Limits(seconds=0.3, memory_mib=96, output_kib=64, processes=16)
SLOW = {Outcome.TIMEOUT, Outcome.MEMORY, Outcome.OUTPUT}
SLEEPING = {"process whose name is no text"}  # until it has been looked at


def _is_slow(case: Case) -> bool:
    return bool(case.right & SLOW) or case.name in SLEEPING


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_hostile_programs(count: int) -> None:
    draw = random.Random(4)
    fast = [case.program for case in ATTACKS if not _is_slow(case)]
    slow = [case.program for case in ATTACKS if _is_slow(case)]
    programs = [draw.choice(slow) if index % 100 == 0 else draw.choice(fast) for index in range(count)]
    honest = HONEST[0].program

    async def hold() -> tuple[list[Outcome], list[Outcome], int]:
        async with Pool(await best_level(), WORKERS) as pool:
            outcomes = [verdict.outcome for verdict in await run(programs, QUICK, sandbox=pool)]
            after = [verdict.outcome for verdict in await run([honest] * 50, QUICK, sandbox=pool)]
            return outcomes, after, pool._idle.qsize()

    outcomes, after, ready = asyncio.run(hold())
    assert len(outcomes) == count
    assert Outcome.ERROR not in outcomes
    assert after == [Outcome.PASSED] * 50
    assert ready == WORKERS


BUSY = "while True: pass"
STEADY = [case for case in (*ATTACKS, *HONEST) if len(case.right) == 1 and "bomb" not in case.name]


@pytest.mark.slow
def test_verdicts_do_not_depend_on_load() -> None:
    async def hold() -> list[Outcome]:
        async with Pool(await best_level(), WORKERS) as pool:
            return [verdict.outcome for verdict in await asyncio.gather(*(case.judge(pool) for case in STEADY))]

    idle = asyncio.run(hold())
    loops = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(4)]
    try:
        busy = asyncio.run(hold())
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    assert busy == idle == [next(iter(case.right)) for case in STEADY]
