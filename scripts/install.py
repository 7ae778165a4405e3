"""Installs packages with uv from the indexes that pip uses: install.py ARGUMENT…

uv takes a tenth of pip's time but does not read pip's settings: this script passes on
indexes, wheel folders and certificates.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

SECTIONS = ("global", "install", ":env:")


def read_pip_settings() -> dict[str, str]:
    """Settings by key. Later sections override earlier ones, as in `pip install`."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    if listed.returncode:
        print(f"pip's settings are not used: {listed.stderr.strip()}", file=sys.stderr)
    settings: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listed.stdout.splitlines():
        name, equals, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if equals and section in settings:
            settings[section][key] = ast.literal_eval(value)
    return settings["global"] | settings["install"] | settings[":env:"]


def translate_settings(pip: dict[str, str]) -> dict[str, str]:
    """The environment variables of uv that correspond to pip's settings."""
    names = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS",
             "cert": "SSL_CERT_FILE", "trusted-host": "UV_INSECURE_HOST", "proxy": "ALL_PROXY"}  # fmt: skip
    separators = {"find-links": ","}
    variables = {names[key]: separators.get(key, " ").join(value.split()) for key, value in pip.items() if key in names}
    if pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        variables["UV_NO_INDEX"] = "1"
    return variables


def main(arguments: list[str]) -> int:
    # Like pip: search all indexes for a version, and trust the certificates of the system.
    settings = {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_SYSTEM_CERTS": "1",
        "UV_NATIVE_TLS": "1",
        "UV_NO_PROGRESS": "1",
    }
    if not os.access(os.path.expanduser("~"), os.W_OK):  # pip disables its cache there, too
        settings["UV_NO_CACHE"] = "1"
    settings |= translate_settings(read_pip_settings())
    uv = str(Path(sys.executable).with_name("uv"))
    command = [uv, "pip", "install", "--quiet", "--no-config", "--python", sys.executable, *arguments]
    return subprocess.run(command, env=settings | os.environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
