"""What the documents say is what the program does."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import textwrap
from glob import glob
from pathlib import Path

import msgspec
import pytest

from proctor import catalog
from proctor.randomness import Stream
from proctor.sandbox import Limits, Outcome
from proctor.sandbox.inside import warden
from proctor.sandbox.ladder import CONFINED, FULL, LIMITS
from proctor.sandbox.languages import LANGUAGES
from proctor.shapes.canvas import SMALL, draw_canvas
from proctor.shapes.drawing import svg
from proctor.task import create_task

ROOT = Path(__file__).parents[1]


def test_reference_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.reference()
    if sys.version_info[:2] == (3, 11):  # argparse words its help a little differently from version to version
        assert (ROOT / "docs" / "reference.md").read_text() == made, "run: python scripts/reference.py"
    assert "--max-errors" in made


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 2
    for number, block in enumerate(blocks):
        path = tmp_path / (re.search(r"# (\w+\.py)", block) or [None, f"block{number}.py"])[1]
        path.write_text(block.replace('"smollm2"', '"scripted/oracle"'))
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr


def test_the_commands_of_the_readme_run(tmp_path: Path, proctor, contained) -> None:
    """Every line that calls proctor, with a scripted candidate in place of a model that would have to think."""
    text = (ROOT / "README.md").read_text()
    (task,) = (block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "# capitals.py" in block)
    (tmp_path / "capitals.py").write_text(task)
    (tmp_path / "exam.toml").write_text(
        re.search(r"```toml\n(.*?)```", text, re.DOTALL)[1].replace("smollm2", "scripted/oracle")
    )
    commands = re.findall(r"^(?:echo|proctor) .+$", text, re.MULTILINE)
    assert len(commands) >= 10
    for command in commands:
        if "openai/" not in command:  # needs a server; test_openai talks to one
            run_line(command, tmp_path, proctor)


def test_the_commands_of_the_sandbox_guide_run(tmp_path: Path, proctor, contained) -> None:
    for command in re.findall(r"^(?:echo|proctor) .+$", (ROOT / "docs" / "sandbox.md").read_text(), re.MULTILINE):
        run_line(command, tmp_path, proctor)


def test_the_python_of_the_sandbox_guide_runs(tmp_path: Path, contained) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "sandbox.md").read_text(), re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr


def test_the_sandbox_guide_says_what_the_code_says() -> None:
    text = (ROOT / "docs" / "sandbox.md").read_text()
    for outcome in Outcome:
        assert f"\n| `{outcome}` | " in text
    limits = Limits()
    for name in ("seconds", "memory_mib", "output_kib", "disk_mib", "processes"):
        assert f"\n| `{name}` | {getattr(limits, name):g} | " in text
    assert all(f"\n| `{level}` | " in text for level in (FULL, CONFINED, LIMITS))
    picture = re.search(r"^    (warden .*?)\n\n", warden.__doc__, re.DOTALL | re.MULTILINE)[1]
    assert textwrap.dedent("    " + picture) in text
    assert len(LANGUAGES) == 29, "README.md and docs/sandbox.md give their number in words"


def run_line(command: str, folder: Path, proctor) -> None:
    """A line of a shell, as it stands in a guide."""
    verb, *words = shlex.split(command, comments=True)
    if verb == "echo":
        subprocess.run(command, shell=True, cwd=folder, check=True)
        return
    changed = {"smollm2": "scripted/oracle", "proctor-runs": os.environ["PROCTOR_STORE"]}
    for old, new in changed.items():
        words = [word.replace(old, new) for word in words]
    done = proctor(*(found for word in words for found in (glob(word) or [word])))
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_the_commands_of_the_shapes_guide_run(proctor) -> None:
    text = (ROOT / "docs" / "shapes.md").read_text()
    assert proctor("new", "shapes", "left_of").returncode == 0
    for command in re.findall(r"^proctor (.+)$", text, re.MULTILINE):
        done = proctor(*shlex.split(command.replace("smollm2", "scripted/random")))
        assert done.returncode == 0, f"proctor {command}\n{done.stdout}{done.stderr}"


def test_the_commands_of_the_code_guide_run(tmp_path: Path, proctor, contained) -> None:
    for command in re.findall(r"^(proctor .+)$", (ROOT / "docs" / "code.md").read_text(), re.MULTILINE):
        if "openai/" not in command:
            run_line(command, tmp_path, proctor)


@pytest.mark.parametrize("name", catalog.expand("shapes/*"))
def test_the_shapes_guide_lists_every_task_with_its_settings(name: str) -> None:
    text = (ROOT / "docs" / "shapes.md").read_text()
    (row,) = (line for line in text.splitlines() if line.startswith(f"| `{name}` "))
    schema = msgspec.json.schema(catalog.task_class(name).Settings)
    for key, field in next(iter(schema["$defs"].values()))["properties"].items():
        if "minimum" in field:
            assert f"`{key}` {field['minimum']}–{field['maximum']}" in row


def test_the_python_of_the_shapes_guide_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "shapes.md").read_text(), re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", catalog.expand("shapes/*"))
def test_the_shapes_guide_names_the_tasks_without_pictures(name: str) -> None:
    text = (ROOT / "docs" / "shapes.md").read_text()
    (line,) = (line for line in text.splitlines() if "have no picture to show" in line)
    without = not create_task(catalog.task_class(name), name, {}).has_pictures()
    assert (f"`{name.removeprefix('shapes/')}`" in line) == without


def test_the_picture_of_the_shapes_guide_is_up_to_date() -> None:
    assert (ROOT / "docs" / "canvas.svg").read_text() == svg(draw_canvas(10, Stream(0)), SMALL)


def test_links_lead_somewhere() -> None:
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        prose = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#:]+)\)", prose):
            assert (path.parent / target).exists(), f"{path.name} → {target}"
