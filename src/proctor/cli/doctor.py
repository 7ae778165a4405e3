"""Say what this machine can do, and how to get the rest. Exits with 1 when something needed is missing."""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import platform
import shutil
import sqlite3
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from msgspec import Struct

from proctor import __version__
from proctor.cli.options import add_store_flag
from proctor.cli.output import print_json
from proctor.core import machine
from proctor.core.errors import StoreError
from proctor.store import is_server, open_database, store_location, store_url

WIDTH = 110
INDENT = " " * 26
# How each container engine says its version; Docker's command is of no use without its service, Podman has none.
VERSIONS = {"docker": "{{.Server.Version}}", "podman": "{{.Client.Version}}"}
WINDOW_MODULES = ("Xlib", "mss", "pygame", "rapidocr")
PAUSED = "windows that wait while an agent thinks"
PATIENCE = 5.0  # seconds for a container engine to answer


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
        print_json(symptoms)
    else:
        for symptom in symptoms:
            mark = "ok     " if symptom.ok else "MISSING" if symptom.needed else "–      "
            line = f"{mark}  {symptom.name:<16} {symptom.found}"
            together = f"{line}. {symptom.cure}"
            if symptom.cure and len(together) <= WIDTH:
                print(together)
                continue
            print(_fold(line))
            if symptom.cure:
                print(_fold(INDENT + symptom.cure))
    return 1 if any(symptom.needed and not symptom.ok for symptom in symptoms) else 0


def _fold(line: str) -> str:
    return textwrap.fill(line, WIDTH, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False)


def examine(store: str | None) -> Iterator[Symptom]:
    yield Symptom("proctor", True, f"{__version__} on Python {platform.python_version()}, {platform.platform()}")
    yield _machine()
    yield _store(store)
    yield _cache()
    yield _runtime()
    yield _weights()
    yield _local_models()
    yield _key()
    yield _reasoning_gym()
    yield from _desktop()
    yield _git()
    yield from asyncio.run(_sandbox())
    yield from _languages()


def _machine() -> Symptom:
    about = f"{machine.cores()} cores, {machine.memory_mib() / 1024:.0f} GiB memory, {machine.processor()}"
    return Symptom("machine", True, about)


def _store(store: str | None) -> Symptom:
    url = store_url(store)
    if is_server(url):
        try:
            open_database(url, "read").close()
        except StoreError as error:
            return Symptom("store", False, str(error), "Name another with --store or PROCTOR_STORE.", needed=True)
        return Symptom("store", True, f"{store_location(url)} answers")
    return _writable(
        "store",
        Path(url),
        "Name another folder with --store or PROCTOR_STORE.",
        f"SQLite {sqlite3.sqlite_version}",
    )


def _cache() -> Symptom:
    from proctor.models.providers.smollm2 import cache_dir

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
    from proctor.models.providers.smollm2 import smollm2_path

    path = smollm2_path()
    if path.exists():
        return Symptom("embedded model", True, str(path))
    return Symptom("embedded model", False, "not downloaded yet", "The first run with --model smollm2 gets it (93 MB).")


def _local_models() -> Symptom:
    missing = [package for package in ("torch", "transformers") if importlib.util.find_spec(package) is None]
    if missing:
        found = f"{' and '.join(missing)} not installed"
        return Symptom("local models", False, found, "Needed for hf/NAME: pip install 'proctor[hf]'")
    versions = ", ".join(f"{package} {metadata.version(package)}" for package in ("torch", "transformers"))
    return Symptom("local models", True, f"{versions}, run by hf/NAME")


def _key() -> Symptom:
    if os.environ.get("OPENAI_API_KEY"):
        return Symptom("API key", True, "OPENAI_API_KEY is set")
    return Symptom("API key", False, "OPENAI_API_KEY is not set", "Needed for openai/NAME without --base-url.")


def _reasoning_gym() -> Symptom:
    if importlib.util.find_spec("reasoning_gym") is None:
        cure = "pip install 'proctor[reasoning-gym]'"
        return Symptom("reasoning-gym", False, "not installed", cure)
    return Symptom("reasoning-gym", True, f"{metadata.version('reasoning-gym')}, its exams are reasoning-gym/NAME")


def _desktop() -> Iterator[Symptom]:
    """What agents need for windows."""
    missing = [module for module in WINDOW_MODULES if importlib.util.find_spec(module) is None]
    if missing:
        cure = "Needed for exams in windows: pip install 'proctor[desktop]'"
        yield Symptom("windows", False, f"not installed: {', '.join(missing)}", cure)
    else:
        yield _virtual_display()
    for name, program, gives in (("films", "ffmpeg", "films of episodes"), ("paused clock", "faketime", PAUSED)):
        found = shutil.which(program)
        cure = "" if found else f"Needed for {gives}: apt-get install {program}"
        yield Symptom(name, bool(found), f"{program}, for {gives}" if found else f"{program} not found", cure)


def _virtual_display() -> Symptom:
    from proctor.agents.desktop.display import VirtualDisplay
    from proctor.agents.desktop.interface import DesktopError

    display = VirtualDisplay()
    try:
        display.start()
    except DesktopError as error:
        return Symptom("windows", False, str(error))
    finally:
        display.close()
    real = os.environ.get("DISPLAY")
    return Symptom("windows", True, "a virtual display starts" + (f"; --display {real} is a real one" if real else ""))


def _git() -> Symptom:
    if shutil.which("git"):
        return Symptom("git", True, "commits are noted with every run")
    return Symptom("git", False, "not found", "Install git to have the commit noted with every run.")


async def _sandbox() -> list[Symptom]:
    levels, engines = await asyncio.gather(_levels(), asyncio.gather(*(_engine(name) for name in VERSIONS)))
    return [*levels, *engines]


async def _levels() -> list[Symptom]:
    """The level that programs run at, and the stronger ones that are not to be had, with the reason."""
    if not sys.platform.startswith("linux"):
        return [Symptom("sandbox", False, "needs Linux", "Elsewhere programs run in containers.")]
    from proctor.sandbox.detection import probe_levels

    symptoms: list[Symptom] = []
    async for finding in probe_levels():
        if finding.works and finding.level.safe:
            more = "" if finding.level.landlock else "A kernel with Landlock (5.13 or newer) would add one more wall."
            return [*symptoms, Symptom("sandbox", True, str(finding.level), more)]
        if not finding.works:
            about = f"{finding.level} – {finding.obstacle.rstrip('.')}"
            symptoms.append(Symptom("sandbox", False, about, finding.cure))
    return [*symptoms, Symptom("sandbox", False, "no level that holds programs", "Without one they need --unsafe.")]


async def _engine(name: str) -> Symptom:
    if not shutil.which(name):
        return Symptom(name, False, "not installed", "Needed to run programs in containers, for nothing else.")
    asking = await asyncio.create_subprocess_exec(
        *(name, "version", "--format", VERSIONS[name]),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            said, complaint = await asking.communicate()
    except TimeoutError:
        asking.kill()
        await asking.wait()
        said, complaint = b"", b"no answer"
    version = said.decode(errors="replace").strip()
    if asking.returncode == 0 and version:
        return Symptom(name, True, f"{version}, runs programs in containers")
    reason = complaint.decode(errors="replace").strip().splitlines() or ["no answer"]
    return Symptom(name, False, f"installed, but: {reason[-1].rstrip('.')}", f"Start its service ({name} info).")


def _languages() -> Iterator[Symptom]:
    from proctor.core.errors import MissingToolchainError
    from proctor.sandbox.languages import LANGUAGES
    from proctor.sandbox.toolchain import locate

    there, missing = [], []
    for language in LANGUAGES:
        cure = f"Debian: apt-get install {language.packages}" if language.packages else f"See {language.site}"
        try:
            locate(language)
            there.append(language.name)
            locate(language, libraries=True)
        except MissingToolchainError as error:
            what = "runs, but without" if language.name in there else "needs"
            missing.append(Symptom(language.name, False, f"{what} {error.tool}, which {error.fault}", cure))
    yield Symptom("languages", True, f"{len(there)} of {len(LANGUAGES)}: {', '.join(there)}")
    yield from missing
