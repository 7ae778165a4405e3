import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Command, TaskFile
from proctor.core import registry
from proctor.core.errors import UsageError
from proctor.shapes.tasks.existence import ExistenceTask


def test_built_in_tasks_are_registered() -> None:
    assert registry.load_task_class("shapes/existence") is ExistenceTask


def test_wildcard_expands_to_tasks() -> None:
    assert "shapes/existence" in registry.expand("shapes/*")
    with pytest.raises(UsageError, match="No task matches 'shapez/"):
        registry.expand("shapez/*")


@pytest.mark.parametrize("typo", ["shapes/existance", "existance", "shape/existence", "Existence"])
def test_typo_suggests_the_nearest_task(typo: str) -> None:
    with pytest.raises(UsageError, match="did you mean shapes/existence"):
        registry.expand(typo)


def test_task_loads_from_a_file(adding: str) -> None:
    cls = registry.load_task_class(adding)
    assert cls.__name__ == "Adding"
    assert registry.load_task_class(adding.removesuffix(":Adding")).__name__ == "Adding", "a lone class needs no name"


def test_task_file_imports_files_beside_it(task_file: TaskFile) -> None:
    path = task_file("from adding import Adding\nclass Mine(Adding): pass")
    assert registry.load_task_class(f"{path}:Mine").__name__ == "Mine"


def test_task_name_loads_the_same_class(adding: str) -> None:
    cls = registry.load_task_class(adding)
    assert registry.load_task_class(registry.find_task_name(cls)).__qualname__ == cls.__qualname__


@pytest.mark.parametrize(
    ("source", "name", "said"),
    [
        ("import msgspec\n\nprint(undefined)\n", "Mine", "NameError: name 'undefined' is not defined (line 3)"),
        ("class Mine(:\n", "Mine", "SyntaxError"),
        ("raise SystemError('boom.')", "Mine", "could not be imported: SystemError: boom (line 1)."),
        ("from proctor import Task\nclass Mine(Task): pass", "Mine", "not complete: it must define samples"),
        (
            "from proctor import Task\nclass Mine(Task):\n    def samples(self, config): pass",
            "Mine",
            "it must define score_text(sample, text) or judge",
        ),
        ("class Mine: pass", "Mine", "not a task"),
        ("from proctor import Task\nclass Mine(Task): pass", "Mien", "no class 'Mien'; did you mean Mine?"),
        ("from proctor import Task\nclass A(Task): pass\nclass B(Task): pass", "", "Which task"),
    ],
)
def test_bad_files_are_one_sentence(task_file: TaskFile, source: str, name: str, said: str) -> None:
    path = task_file(source)
    with pytest.raises(UsageError) as caught:
        registry.load_task_class(f"{path}:{name}" if name else str(path))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_task_file_is_named() -> None:
    with pytest.raises(UsageError, match=r"No task file nowhere\.py"):
        registry.load_task_class("nowhere.py:Mine")


def test_entry_point_of_an_installed_package(tmp_path: Path, adding: str) -> None:
    """A real installed distribution, in a new process."""
    site = tmp_path / "site"
    info = site / "acme_exams-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-exams\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[proctor.tasks]\nacme/adding = acme_exams:Adding\nacme/broken = acme_exams:Gone\n"
    )
    (site / "acme_exams.py").write_text(Path(adding.removesuffix(":Adding")).read_text())
    code = (
        "from proctor.core import registry\n"
        "print(registry.load_task_class('acme/adding').__name__, registry.expand('acme/*'))\n"
        "try: registry.load_task_class('acme/broken')\n"
        "except Exception as e: print(type(e).__name__, e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(site)}, capture_output=True, text=True, check=True
    )
    first, second = done.stdout.splitlines()
    assert first == "Adding ['acme/adding', 'acme/broken']"
    assert second.startswith("UsageError Task acme/broken (acme_exams:Gone) could not be loaded: AttributeError")


@pytest.fixture
def _without_reasoning_gym(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides the module, and imports its importers again."""
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    monkeypatch.delitem(sys.modules, "proctor.integrations.reasoning_gym", raising=False)


@pytest.mark.usefixtures("_without_reasoning_gym")
@pytest.mark.parametrize("name", ["reasoning-gym/chain_sum", "reasoning-gym/*"])
def test_family_without_its_extra_names_the_extra(proctor: Command, name: str) -> None:
    done = proctor("run", name, "--model", "scripted/oracle")
    said = "proctor: reasoning-gym/NAME needs the extra 'reasoning-gym': pip install 'proctor-eval[reasoning-gym]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


@pytest.mark.usefixtures("_without_reasoning_gym")
def test_other_families_work_without_the_extra(proctor: Command) -> None:
    listed = proctor("list", "tasks")
    assert listed.returncode == 0, listed.stderr
    assert "shapes/existence" in listed.stdout
    assert "reasoning-gym/*" in listed.stdout
    done = proctor("run", "shapes/*", "--model", "scripted/oracle", "--limit", "1", "--quiet")
    assert done.returncode == 0, done.stderr
