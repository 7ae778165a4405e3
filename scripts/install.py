"""Installs packages into the environment of this Python by uv, from where pip would take them: install.py ARGUMENT…

uv takes a tenth of pip's time, but does not read pip's settings: indexes, folders of wheels and certificates are handed
over.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

SECTIONS = ("global", "install", ":env:")


def read_pip_settings() -> dict[str, str]:
    """By key. Of the sections that `pip install` reads, the later wins."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    if listed.returncode:
        print(f"pip's settings are not used: {listed.stderr.strip()}", file=sys.stderr)
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listed.stdout.splitlines():
        name, equals, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if equals and section in found:
            found[section][key] = ast.literal_eval(value)
    return found["global"] | found["install"] | found[":env:"]


def translate_settings(pip: dict[str, str]) -> dict[str, str]:
    """Variables of uv that mean what pip's settings mean."""
    names = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS",
             "cert": "SSL_CERT_FILE", "trusted-host": "UV_INSECURE_HOST", "proxy": "ALL_PROXY"}  # fmt: skip
    separators = {"find-links": ","}
    found = {names[key]: separators.get(key, " ").join(value.split()) for key, value in pip.items() if key in names}
    if pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        found["UV_NO_INDEX"] = "1"
    return found


def main(arguments: list[str]) -> int:
    # Like pip, uv is to look for a version in all indexes, and to trust the certificates that the system trusts.
    settings = {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_SYSTEM_CERTS": "1",
        "UV_NATIVE_TLS": "1",
        "UV_NO_PROGRESS": "1",
    }
    if not os.access(os.path.expanduser("~"), os.W_OK):  # pip does without its cache there
        settings["UV_NO_CACHE"] = "1"
    settings |= translate_settings(read_pip_settings())
    uv = str(Path(sys.executable).with_name("uv"))
    command = [uv, "pip", "install", "--quiet", "--no-config", "--python", sys.executable, *arguments]
    return subprocess.run(command, env=settings | os.environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
