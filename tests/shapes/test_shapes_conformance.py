"""Every shapes task keeps the promises of an exam. A new task is tested by being registered."""

import subprocess
import sys

import pytest

import proctor
from conftest import TaskFile
from helpers.shapes_settings import extreme, sizes
from proctor.analysis.check import check_task
from proctor.core import registry
from proctor.core.config import build_config
from proctor.core.task import create_task

TASKS = registry.expand("shapes/*")


@sizes(20, 200)
@pytest.mark.parametrize("name", TASKS)
def test_check(name: str, count: int) -> None:
    findings = check_task(name, {}, n=count)
    assert [f"{finding.claim}: {finding.fault}" for finding in findings if not finding.holds] == []


@pytest.mark.parametrize("name", TASKS)
def test_described_and_versioned(name: str) -> None:
    cls = registry.load_task_class(name)
    assert cls.summary
    assert cls.version
    assert cls.__module__.startswith("proctor.")


@pytest.mark.parametrize("name", TASKS)
def test_the_whole_path_with_the_scripted_candidates(name: str) -> None:
    assert proctor.evaluate(name, "scripted/oracle", limit=20).metrics["accuracy"].value == 1
    assert proctor.evaluate(name, "scripted/blank", limit=20).metrics["accuracy"].value == 0


@sizes(15, 50)
@pytest.mark.parametrize("name", TASKS)
def test_few_shot_never_shows_the_question_that_is_evaluated(name: str, count: int) -> None:
    for settings, few_shot in (({}, 3), ({}, 10), (extreme(name.removeprefix("shapes/"), "minimum"), 3)):
        task = create_task(registry.load_task_class(name), name, settings)
        config = build_config({"task": name, "model": "scripted/oracle", "limit": count, "few_shot": few_shot})
        for sample in task.samples(config):
            assert not isinstance(sample.input, str)
            asked = [str(message.content) for message in sample.input if message.role == "user"]
            assert len(set(asked)) == len(asked) == few_shot + 1
            *shots, evaluated = (content.rpartition("\n\n")[2] for content in asked)
            assert evaluated not in shots


def broken(task_file: TaskFile, body: str) -> list[str]:
    path = task_file(f"from adding import *\nfrom proctor.core.types import Output\n\nclass Bad(Adding):\n{body}\n")
    return [finding.claim for finding in check_task(f"{path}:Bad", {}, n=10) if not finding.holds]


@pytest.mark.parametrize(
    ("body", "claim"),
    [
        ("    def score_text(self, sample, text): return Score(0.5)", "the right answer gets full marks"),
        (
            "    async def open(self, config): self.api = config.api\n"
            "    def generation(self, sample, output): return output.text if self.api == 'chat' else ''\n"
            "    async def judge(self, sample, outputs):\n"
            "        return self.score_text(sample, self.generation(sample, outputs[0]))",
            "so it does with --api completions",
        ),
        ("    def score_text(self, sample, text): return Score(1.0)", "a blank answer gets none"),
        ("    def proofs(self, sample): yield 'no'", "an independent solver, where there is one, agrees"),
        (
            "    def samples(self, config):\n"
            "        for s in super().samples(config): yield Sample('same', s.index, s.input, s.target)",
            "samples can be made, and their ids are unique",
        ),
        (
            "    def samples(self, config):\n"
            "        for s in super().samples(config): yield Sample(s.id, s.index, str(hash('a')), s.target)",
            "another process makes the same samples",
        ),
        (
            "    calls = 0\n"
            "    def samples(self, config):\n"
            "        type(self).calls += 1\n"
            "        for s in super().samples(config): yield Sample(s.id, s.index, str(self.calls), s.target)",
            "a sample depends on seed and index alone",
        ),
        (
            "    def samples(self, config):\n"
            "        for s in super().samples(config): yield Sample(s.id, s.index, s.input, (1, 2))",
            "samples survive storing",
        ),
        ("    def samples(self, config): raise ValueError('none')", "samples can be made, and their ids are unique"),
        ("    fixed = False", "another seed makes other samples"),
    ],
)
def test_check_finds_what_is_wrong(task_file: TaskFile, body: str, claim: str) -> None:
    """A suite that cannot fail proves nothing."""
    assert claim in broken(task_file, body)


def test_a_fixed_data_set_is_no_fault(task_file: TaskFile) -> None:
    assert broken(task_file, "    fixed = True") == []


def test_help_imports_neither_numpy_nor_a_model() -> None:
    code = (
        "import sys; from proctor.cli.main import main; main(['--help']);"
        "heavy = {'numpy', 'xllamacpp', 'aiohttp', 'rich', 'asyncio', 'proctor.models', 'proctor.shapes', 'msgspec'};"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"imported: {done.stderr}"
    assert "proctor VERB" in done.stdout


def test_a_run_with_a_scripted_model_imports_no_http_client_and_no_runtime(adding: str) -> None:
    code = (
        f"import sys, proctor; proctor.evaluate({adding!r}, 'scripted/oracle');"
        "sys.exit(', '.join(sorted({'numpy', 'xllamacpp', 'aiohttp', 'rich', 'pandas'} & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"imported: {done.stderr}"


def test_listing_imports_no_guest() -> None:
    code = (
        "import sys; from proctor.cli.main import main; main(['list', 'tasks']);"
        "sys.exit(', '.join(sorted({'reasoning_gym', 'proctor.integrations.reasoning_gym'} & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"imported: {done.stderr}"
    assert "reasoning-gym/*" in done.stdout
