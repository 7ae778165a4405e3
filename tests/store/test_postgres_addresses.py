"""What can be said of a PostgreSQL store without a server: its address, its password, and what is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conftest import Command
from proctor.core.errors import StoreError
from proctor.store import open_store, store_location


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("postgresql://ann:se%40cret@db.example:5433/exams", "postgresql://ann@db.example:5433/exams"),
        ("postgres://ann:secret@db.example/exams?sslmode=require", "postgresql://ann@db.example/exams"),
        ("postgresql://db.example/exams?user=ann&password=secret", "postgresql://ann@db.example/exams"),
        ("postgresql:///exams", "postgresql:///exams"),
        ("postgresql://ann@/exams?host=/run/pg", "postgresql://ann@/exams?host=/run/pg"),
        ("postgresql://[::1]:5432/exams", "postgresql://[::1]:5432/exams"),
    ],
)
def test_location_has_no_password(url: str, location: str) -> None:
    assert store_location(url) == location


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:sec@ret@db.example/exams",
        "postgresql://ann:sec/ret@db.example/exams",
        "postgresql://ann:sec?ret@db.example/exams",
        "postgresql://ann:sec#ret@db.example/exams",
        "postgresql://ann:sec%ret@db.example/exams",
        "postgresql://ann:secret@[::1/exams",
        "postgresql://ann@db.example/exams?passwort=secret",
    ],
)
def test_url_with_unidentifiable_password_is_refused(url: str, proctor: Command) -> None:
    done = proctor("list", "runs", "--store", url)
    assert done.returncode == 2
    assert "The URL of the store cannot be parsed: expected postgresql://" in done.stderr
    assert "sec" not in done.stderr
    assert "ret" not in done.stderr.replace("store", "")
    assert len(done.stderr.splitlines()) == 1


def test_unreachable_server_is_explained(proctor: Command, tmp_path: Path) -> None:
    url = f"postgresql://ann:secret@/exams?host={tmp_path}"
    for verb in (("list", "runs"), ("run", "shapes/count", "-m", "scripted/oracle")):
        done = proctor(*verb, "--store", url)
        assert done.returncode == 2
        assert f"Cannot use the store postgresql://ann@/exams?host={tmp_path}: " in done.stderr
        assert "No such file or directory" in done.stderr
        assert "secret" not in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_password_in_driver_error_is_redacted(tmp_path: Path) -> None:
    """The folder of the socket, which the driver names, is called like the password."""
    folder = tmp_path / "open-sesame"
    folder.mkdir()
    with pytest.raises(StoreError) as caught:
        open_store(f"postgresql://ann:open-sesame@/exams?host={folder}")
    _, _, said = str(caught.value).partition(": ")
    assert f"{tmp_path}/…" in said
    assert "open-sesame" not in said


def test_doctor_names_unreachable_server(proctor: Command, tmp_path: Path) -> None:
    done = proctor("doctor", "--store", f"postgresql:///exams?host={tmp_path}")
    assert done.returncode == 1
    assert "No such file or directory" in " ".join(done.stdout.split())


def test_missing_driver_is_named(proctor: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "proctor.store.postgres", raising=False)
    done = proctor("list", "runs", "--store", "postgresql:///exams")
    assert done.returncode == 2
    assert (
        "A store on a PostgreSQL server needs the extra 'postgres': pip install 'proctor-eval[postgres]'" in done.stderr
    )
