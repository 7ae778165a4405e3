"""What the documents say is what the program does."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import re
import shlex
import sys
import textwrap
from glob import glob
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from conftest import Command
from helpers.paths import CHECKOUT
from proctor.core import registry
from proctor.core.random import Stream
from proctor.core.task import create_task
from proctor.sandbox import Limits, Outcome
from proctor.sandbox.inside import supervisor
from proctor.sandbox.isolation import CONFINED, FULL, LIMITS
from proctor.sandbox.languages import LANGUAGES
from proctor.shapes.canvas import SMALL, draw_canvas
from proctor.shapes.drawing import svg

ROOT = CHECKOUT

# Lines of the README which take seconds: each of their kind is tested elsewhere with less.
LONG_LINES = (
    "proctor check code/humaneval",
    "proctor run 'shapes/*' -m scripted/random --sweep",
    "proctor generate shapes/count -n 100000",
    "proctor check shapes/count --probes -n 10000",
)


def test_reference_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    made = load_script("reference").reference()
    if sys.version_info[:2] == (3, 11):  # argparse words its help a little differently from version to version
        assert (ROOT / "docs" / "reference.md").read_text() == made, "run: python scripts/reference.py"
    assert "--max-errors" in made


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme_python_runs() -> None:
    blocks = python_blocks("README.md")
    assert len(blocks) >= 2
    for block in blocks:
        run_block(block.replace('"smollm2"', '"scripted/oracle"'))


@pytest.mark.parametrize("left_out", [LONG_LINES, pytest.param((), marks=pytest.mark.slow)], ids=["short", "all"])
def test_readme_commands_run(tmp_path: Path, proctor: Command, contained: str, left_out: tuple[str, ...]) -> None:
    """Every line that calls proctor, with a scripted candidate in place of a model that would have to think."""
    text = (ROOT / "README.md").read_text()
    (task,) = (block for block in python_blocks("README.md") if "# capitals.py" in block)
    (tmp_path / "capitals.py").write_text(task)
    (config,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "run.toml").write_text(config.replace("smollm2", "scripted/oracle"))
    lines = shell_lines("README.md")
    assert len(lines) >= 10
    assert all(any(line.startswith(start) for line in lines) for start in left_out), "no such line"
    for line in lines:
        if "openai/" not in line and not line.startswith(left_out):  # a server: test_openai talks to one
            run_line(line, tmp_path, proctor)


def test_sandbox_guide_commands_run(tmp_path: Path, proctor: Command, contained: str) -> None:
    for line in shell_lines("docs/sandbox.md"):
        run_line(line, tmp_path, proctor)


def test_sandbox_guide_python_runs(contained: str) -> None:
    blocks = python_blocks("docs/sandbox.md")
    assert len(blocks) >= 2
    for block in blocks:
        run_block(block)


def python_blocks(document: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


def run_block(source: str) -> None:
    """As a script of its own would run, in this process."""
    exec(compile(source, "<block>", "exec"), {"__name__": "__main__"})


def shell_lines(document: str) -> list[str]:
    return re.findall(r"^(?:echo|proctor) .+$", (ROOT / document).read_text(), re.MULTILINE)


def test_sandbox_guide_matches_the_code() -> None:
    text = (ROOT / "docs" / "sandbox.md").read_text()
    for outcome in Outcome:
        assert f"\n| `{outcome}` | " in text
    limits = Limits()
    for name in ("seconds", "memory_mib", "output_kib", "disk_mib", "processes"):
        assert f"\n| `{name}` | {getattr(limits, name):g} | " in text
    assert all(f"\n| `{level}` | " in text for level in (FULL, CONFINED, LIMITS))
    assert supervisor.__doc__ is not None
    picture = re.search(r"^    (supervisor .*?)\n\n", supervisor.__doc__, re.DOTALL | re.MULTILINE)
    assert picture is not None
    assert textwrap.dedent("    " + picture[1]) in text
    assert len(LANGUAGES) == 29, "README.md and docs/sandbox.md give their number in words"


def run_line(line: str, folder: Path, proctor: Command) -> None:
    """A line of a shell, as it stands in a guide."""
    verb, *words = shlex.split(line, comments=True)
    if verb == "echo":
        text, arrow, name = words
        assert arrow == ">"
        (folder / name).write_text(text + "\n")
        return
    changed = {"smollm2": "scripted/oracle", "proctor-runs": os.environ["PROCTOR_STORE"]}
    for old, new in changed.items():
        words = [word.replace(old, new) for word in words]
    done = proctor(*(found for word in words for found in (glob(word) or [word])))
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


@pytest.mark.slow
def test_shapes_guide_commands_run(proctor: Command) -> None:
    assert proctor("new", "shapes", "left_of").returncode == 0
    for line in shell_lines("docs/shapes.md"):
        verb, *words = shlex.split(line.replace("smollm2", "scripted/random"))
        assert verb == "proctor"
        done = proctor(*words)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


@pytest.mark.slow
def test_code_guide_commands_run(tmp_path: Path, proctor: Command, contained: str) -> None:
    for line in shell_lines("docs/code.md"):
        if "openai/" not in line:
            run_line(line, tmp_path, proctor)


@pytest.mark.parametrize("name", registry.expand("shapes/*"))
def test_the_shapes_guide_lists_every_task_with_its_settings(name: str) -> None:
    text = (ROOT / "docs" / "shapes.md").read_text()
    (row,) = (line for line in text.splitlines() if line.startswith(f"| `{name}` "))
    schema = msgspec.json.schema(registry.load_task_class(name).Settings)
    for key, field in next(iter(schema["$defs"].values()))["properties"].items():
        if "minimum" in field:
            assert f"`{key}` {field['minimum']}–{field['maximum']}" in row


def test_shapes_guide_python_runs() -> None:
    blocks = python_blocks("docs/shapes.md")
    assert len(blocks) >= 2
    for block in blocks:
        run_block(block)


@pytest.mark.parametrize("name", registry.expand("shapes/*"))
def test_the_shapes_guide_names_the_tasks_without_pictures(name: str) -> None:
    text = (ROOT / "docs" / "shapes.md").read_text()
    (line,) = (line for line in text.splitlines() if "have no picture to show" in line)
    without = not create_task(registry.load_task_class(name), name, {}).has_pictures()
    assert (f"`{name.removeprefix('shapes/')}`" in line) == without


def test_the_picture_of_the_shapes_guide_is_up_to_date() -> None:
    assert (ROOT / "docs" / "canvas.svg").read_text() == svg(draw_canvas(10, Stream(0)), SMALL)


def test_links_resolve() -> None:
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        prose = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#:]+)\)", prose):
            assert (path.parent / target).exists(), f"{path.name} → {target}"


def test_architecture_names_what_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    names = {name for name in re.findall(r"`([a-z_]+(?:\.\w+)+)`", text) if not name.endswith(".py")}
    assert len(names) > 20
    for name in names:
        assert pkgutil.resolve_name(f"proctor.{name}") is not None
