"""Say what this machine can do, and how to get the rest. Exits with 1 when something needed is missing."""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import msgspec
from msgspec import Struct

from proctor import __version__
from proctor.cli.options import add_store_flag


class Symptom(Struct, frozen=True):
    name: str
    ok: bool
    found: str
    cure: str = ""
    needed: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print as JSON")
    add_store_flag(parser)


def call(args: argparse.Namespace) -> int:
    symptoms = list(examine(getattr(args, "store", None)))
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(symptoms), indent=2).decode())
    else:
        for symptom in symptoms:
            mark = "ok     " if symptom.ok else "MISSING" if symptom.needed else "–      "
            print(f"{mark}  {symptom.name:<16} {symptom.found}")
            if symptom.cure:
                print(f"{'':<26} {symptom.cure}")
    return 1 if any(symptom.needed and not symptom.ok for symptom in symptoms) else 0


def examine(store: str | None) -> Iterator[Symptom]:
    yield Symptom("proctor", True, f"{__version__} on Python {platform.python_version()}, {platform.platform()}")
    yield _machine()
    yield _store(store)
    yield _cache()
    yield _runtime()
    yield _weights()
    yield _key()
    yield _git()


def _machine() -> Symptom:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return Symptom("machine", True, f"{len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB memory")


def _store(store: str | None) -> Symptom:
    place = Path(store or os.environ.get("PROCTOR_STORE") or "proctor-runs").absolute()
    return _writable(
        "store",
        place,
        "Name another folder with --store or PROCTOR_STORE.",
        f"SQLite {sqlite3.sqlite_version}",
    )


def _cache() -> Symptom:
    from proctor.models.weights import cache_dir

    return _writable("cache", cache_dir(), "Set XDG_CACHE_HOME to a folder you may write to.", "weights and responses")


def _writable(name: str, folder: Path, cure: str, about: str) -> Symptom:
    """Tries the nearest folder that exists, because the rest can be made when it is needed."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        return Symptom(name, False, f"{folder}: {error.strerror}", cure, needed=True)
    free = shutil.disk_usage(existing).free / 2**30
    return Symptom(name, True, f"{folder} ({about}, {free:.1f} GiB free)")


def _runtime() -> Symptom:
    if importlib.util.find_spec("xllamacpp") is None:
        return Symptom("embedded runtime", False, "xllamacpp is not installed", "pip install 'proctor[embedded]'")
    return Symptom("embedded runtime", True, f"xllamacpp {metadata.version('xllamacpp')}")


def _weights() -> Symptom:
    from proctor.models.weights import smollm2_path

    path = smollm2_path()
    if path.exists():
        return Symptom("embedded model", True, str(path))
    return Symptom("embedded model", False, "not downloaded yet", "The first run with --model smollm2 gets it (93 MB).")


def _key() -> Symptom:
    if os.environ.get("OPENAI_API_KEY"):
        return Symptom("API key", True, "OPENAI_API_KEY is set")
    return Symptom("API key", False, "OPENAI_API_KEY is not set", "Needed for openai/NAME without --base-url.")


def _git() -> Symptom:
    if shutil.which("git"):
        return Symptom("git", True, "commits are noted with every run")
    return Symptom("git", False, "not found", "Install git to have the commit noted with every run.")
