"""Check what this machine can run and how to install the rest. Exits with 1 if a required part is
missing."""

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
# Format of the version of each container engine. Docker needs its service, Podman has none.
VERSIONS = {"docker": "{{.Server.Version}}", "podman": "{{.Client.Version}}"}
DESKTOP_MODULES = ("Xlib", "mss", "pygame", "rapidocr")
PAUSED = "windows that pause while an agent thinks"
ENGINE_TIMEOUT = 5.0


class Check(Struct, frozen=True, rename={"status": "found", "fix": "cure"}):
    name: str
    ok: bool
    status: str
    fix: str = ""
    needed: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print as JSON")
    add_store_flag(parser)


def call(args: argparse.Namespace) -> int:
    checks = list(run_checks(getattr(args, "store", None)))
    if args.json:
        print_json(checks)
    else:
        for check in checks:
            mark = "ok     " if check.ok else "MISSING" if check.needed else "–      "
            line = f"{mark}  {check.name:<16} {check.status}"
            together = f"{line}. {check.fix}"
            if check.fix and len(together) <= WIDTH:
                print(together)
                continue
            print(_fold(line))
            if check.fix:
                print(_fold(INDENT + check.fix))
    return 1 if any(check.needed and not check.ok for check in checks) else 0


def _fold(line: str) -> str:
    return textwrap.fill(line, WIDTH, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False)


def run_checks(store: str | None) -> Iterator[Check]:
    yield Check("proctor", True, f"{__version__} on Python {platform.python_version()}, {platform.platform()}")
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


def _machine() -> Check:
    about = f"{machine.cores()} cores, {machine.memory_mib() / 1024:.0f} GiB memory, {machine.processor()}"
    return Check("machine", True, about)


def _store(store: str | None) -> Check:
    url = store_url(store)
    if is_server(url):
        try:
            open_database(url, "read").close()
        except StoreError as error:
            return Check("store", False, str(error), "Choose another with --store or PROCTOR_STORE.", needed=True)
        return Check("store", True, f"{store_location(url)} answers")
    return _writable(
        "store",
        Path(url),
        "Choose another folder with --store or PROCTOR_STORE.",
        f"SQLite {sqlite3.sqlite_version}",
    )


def _cache() -> Check:
    from proctor.models.providers.smollm2 import cache_dir

    return _writable("cache", cache_dir(), "Set XDG_CACHE_HOME to a writable folder.", "weights and responses")


def _writable(name: str, folder: Path, fix: str, about: str) -> Check:
    """Tries the nearest existing parent, because Proctor creates the rest."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        return Check(name, False, f"{folder}: {error.strerror}", fix, needed=True)
    free = shutil.disk_usage(existing).free / 2**30
    return Check(name, True, f"{folder} ({about}, {free:.1f} GiB free)")


def _runtime() -> Check:
    if importlib.util.find_spec("xllamacpp") is None:
        return Check("embedded runtime", False, "xllamacpp is not installed", "pip install 'proctor-eval[embedded]'")
    return Check("embedded runtime", True, f"xllamacpp {metadata.version('xllamacpp')}")


def _weights() -> Check:
    from proctor.models.providers.smollm2 import smollm2_path

    path = smollm2_path()
    if path.exists():
        return Check("embedded model", True, str(path))
    return Check(
        "embedded model", False, "not downloaded yet", "The first run with --model smollm2 downloads it (93 MB)."
    )


def _local_models() -> Check:
    missing = [package for package in ("torch", "transformers") if importlib.util.find_spec(package) is None]
    if missing:
        found = f"{' and '.join(missing)} not installed"
        return Check("local models", False, found, "Needed for hf/NAME: pip install 'proctor-eval[hf]'")
    versions = ", ".join(f"{package} {metadata.version(package)}" for package in ("torch", "transformers"))
    return Check("local models", True, f"{versions}, run by hf/NAME")


def _key() -> Check:
    if os.environ.get("OPENAI_API_KEY"):
        return Check("API key", True, "OPENAI_API_KEY is set")
    return Check("API key", False, "OPENAI_API_KEY is not set", "Needed for openai/NAME without --base-url.")


def _reasoning_gym() -> Check:
    if importlib.util.find_spec("reasoning_gym") is None:
        fix = "pip install 'proctor-eval[reasoning-gym]'"
        return Check("reasoning-gym", False, "not installed", fix)
    return Check("reasoning-gym", True, f"{metadata.version('reasoning-gym')}, its tasks are reasoning-gym/NAME")


def _desktop() -> Iterator[Check]:
    """The parts that agents need for windows."""
    missing = [module for module in DESKTOP_MODULES if importlib.util.find_spec(module) is None]
    if missing:
        fix = "Needed for tasks in windows: pip install 'proctor-eval[desktop]'"
        yield Check("windows", False, f"not installed: {', '.join(missing)}", fix)
    else:
        yield _virtual_display()
    for name, program, use in (("videos", "ffmpeg", "videos of episodes"), ("paused clock", "faketime", PAUSED)):
        path = shutil.which(program)
        fix = "" if path else f"Needed for {use}: apt-get install {program}"
        yield Check(name, bool(path), f"{program}, for {use}" if path else f"{program} not found", fix)


def _virtual_display() -> Check:
    from proctor.agents.desktop.display import VirtualDisplay
    from proctor.agents.desktop.interface import DesktopError

    display = VirtualDisplay()
    try:
        display.start()
    except DesktopError as error:
        return Check("windows", False, str(error))
    finally:
        display.close()
    real = os.environ.get("DISPLAY")
    return Check("windows", True, "a virtual display starts" + (f"; --display {real} is a real one" if real else ""))


def _git() -> Check:
    if shutil.which("git"):
        return Check("git", True, "runs store the commit")
    return Check("git", False, "not found", "Install git to store the commit with every run.")


async def _sandbox() -> list[Check]:
    levels, engines = await asyncio.gather(_levels(), asyncio.gather(*(_engine(name) for name in VERSIONS)))
    return [*levels, *engines]


async def _levels() -> list[Check]:
    """The isolation level of programs, and why stronger ones are not available."""
    if not sys.platform.startswith("linux"):
        return [Check("sandbox", False, "needs Linux", "Elsewhere programs run in containers.")]
    from proctor.sandbox.detection import probe_levels

    checks: list[Check] = []
    async for finding in probe_levels():
        if finding.works and finding.level.safe:
            more = "" if finding.level.landlock else "A kernel with Landlock (5.13 or newer) adds another layer."
            return [*checks, Check("sandbox", True, str(finding.level), more)]
        if not finding.works:
            about = f"{finding.level} – {finding.obstacle.rstrip('.')}"
            checks.append(Check("sandbox", False, about, finding.cure))
    return [*checks, Check("sandbox", False, "no isolation level works", "Programs then need --unsafe.")]


async def _engine(name: str) -> Check:
    if not shutil.which(name):
        return Check(name, False, "not installed", "Needed to run programs in containers, for nothing else.")
    process = await asyncio.create_subprocess_exec(
        *(name, "version", "--format", VERSIONS[name]),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(ENGINE_TIMEOUT):
            output, errors = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        output, errors = b"", b"no answer"
    version = output.decode(errors="replace").strip()
    if process.returncode == 0 and version:
        return Check(name, True, f"{version}, runs programs in containers")
    reason = errors.decode(errors="replace").strip().splitlines() or ["no answer"]
    return Check(name, False, f"installed, but: {reason[-1].rstrip('.')}", f"Start its service ({name} info).")


def _languages() -> Iterator[Check]:
    from proctor.core.errors import MissingToolchainError
    from proctor.sandbox.languages import LANGUAGES
    from proctor.sandbox.toolchain import locate

    present, missing = [], []
    for language in LANGUAGES:
        fix = f"Debian: apt-get install {language.packages}" if language.packages else f"See {language.site}"
        try:
            locate(language)
            present.append(language.name)
            locate(language, libraries=True)
        except MissingToolchainError as error:
            what = "runs, but without" if language.name in present else "needs"
            missing.append(Check(language.name, False, f"{what} {error.tool}, which {error.fault}", fix))
    yield Check("languages", True, f"{len(present)} of {len(LANGUAGES)}: {', '.join(present)}")
    yield from missing
