"""What the guide of agents says is what the program does."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from conftest import Command
from helpers.paths import CHECKOUT

GUIDE = (CHECKOUT / "docs" / "agents.md").read_text()


def test_the_first_agent_plays(tmp_path: Path, proctor: Command) -> None:
    counting, *others = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    (tmp_path / "counting.py").write_text(counting)
    (script,) = (block for block in others if "run_evaluation_client_with_server(" in block)
    free_ports = "(task, '127.0.0.1', 0, '127.0.0.1', 0, agent="
    (tmp_path / "script.py").write_text(script.replace("(task, agent=", free_ports))
    command = re.search(r"^proctor (run counting.py.*)$", GUIDE, re.MULTILINE)
    assert command is not None
    done = proctor(*shlex.split(command[1]))
    assert done.returncode == 0, done.stderr
    assert "success        1.000" in done.stdout
    ran = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "'success': True" in ran.stdout


def test_every_outcome_is_explained() -> None:
    from proctor.agents import EpisodeOutcome

    for outcome in EpisodeOutcome:
        assert f"| `{outcome}` |" in GUIDE


def test_the_agent_for_another_machine_acts() -> None:
    import numpy

    (source,) = (block for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "RemoteAgent" in block)
    names: dict[str, Any] = {}
    exec(source, names)
    agent = names["Far"]()
    assert agent.act(numpy.zeros((48, 64, 3), numpy.uint8)) == ["RIGHT"]
    assert agent.act(numpy.full((48, 64, 3), 255, numpy.uint8)) == []
