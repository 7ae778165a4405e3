import subprocess
from pathlib import Path
from typing import Any

import msgspec

import proctor
from proctor import __version__


def git(*arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    return subprocess.run(["git", *identity, *arguments], capture_output=True, text=True, check=True).stdout.strip()


def test_run_stores_its_provenance(adding: str) -> None:
    provenance = proctor.evaluate(adding, "scripted/oracle", seed=5).run.provenance
    assert provenance["versions"]["proctor"] == __version__
    assert provenance["versions"]["python"].startswith("3.")
    assert provenance["machine"]["cores"] >= 1
    assert provenance["task_source"]["file"] == "adding.py"
    assert provenance["candidate"] == {"model": "scripted/oracle"}
    assert len(provenance["samples_sha256"]) == 64


def test_provenance_has_git_commit_and_changes(adding: str, tmp_path: Path) -> None:
    git("init", "-q")
    git("add", "adding.py")
    git("commit", "-qm", "exam")
    report = proctor.evaluate(adding, "scripted/oracle")
    assert report.run.provenance["git"] == {"commit": git("rev-parse", "HEAD"), "changed": False}
    Path("adding.py").write_text(Path("adding.py").read_text() + "\n# edited\n")
    assert proctor.evaluate(adding, "scripted/oracle").run.provenance["git"]["changed"] is True


def test_provenance_outside_a_repository_has_no_commit(adding: str) -> None:
    assert proctor.evaluate(adding, "scripted/oracle").run.provenance["git"] is None


def test_provenance_of_a_repository_without_commits(adding: str) -> None:
    git("init", "-q")
    assert proctor.evaluate(adding, "scripted/oracle").run.provenance["git"] is None


def test_samples_hash_differs_between_seeds() -> None:
    def digest(**options: Any) -> str:
        report = proctor.evaluate("shapes/existence", "scripted/oracle", limit=10, **options)
        return str(report.run.provenance["samples_sha256"])

    assert digest() == digest(concurrency=1)
    assert (
        len({digest(), digest(seed=1), digest(settings={"shapes": 5}), digest(limit_start=1), digest(few_shot=1)}) == 5
    )


def test_the_whole_configuration_is_stored(adding: str) -> None:
    report = proctor.evaluate(adding, "scripted/oracle", temperature=0.5)
    places = {"store", "out"}
    assert set(report.run.config) == {field.name for field in msgspec.structs.fields(proctor.RunConfig)} - places
    assert report.run.config["temperature"] == 0.5
