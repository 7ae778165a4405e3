"""Access control of the servers: tokens, and the addresses that may be registered."""

from __future__ import annotations

import ipaddress
import os
import secrets
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from platformdirs import user_state_path

from proctor.core.errors import UsageError

TOKEN_VARIABLE = "PROCTOR_TOKEN"
SHORTEST_TOKEN = 16


def new_token() -> str:
    return secrets.token_urlsafe(32)


def own_token(host: str, given: str | None = None) -> str:
    """The token that all sides of an evaluation share: as given, from the environment, or the user's own.

    The user's own lies in a file that nobody else can read, so that servers and clients in different processes of one
    user find each other without a word. It is for one machine: a server for others needs one that was chosen.
    """
    token = given or os.environ.get(TOKEN_VARIABLE, "")
    if token:
        if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
            raise UsageError(f"A token has at least {SHORTEST_TOKEN} printable ASCII characters, and no spaces.")
        return token
    if not is_loopback(host):
        raise UsageError(
            f"A server on {host} can be reached by others: choose a token for it, with --token or ${TOKEN_VARIABLE}."
        )
    return _token_of_user(user_state_path("proctor", appauthor=False) / "token")


def _token_of_user(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f"token.{secrets.token_hex(8)}")
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(new_token())
        with suppress(FileExistsError):
            os.link(fresh, path)  # atomic, and only if there is none yet
    finally:
        fresh.unlink(missing_ok=True)
    return path.read_text()


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_url(url: str, allowed_hosts: Collection[str]) -> str:
    """Returns the address of a server that may get our token: on this machine or an allowed host."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ValueError(f"{url!r} is not an address: {error}") from None
    if parts.scheme not in ("http", "https") or not host or parts.path not in ("", "/"):
        raise ValueError(f"{url!r} is not the address of a server: expected http://HOST:PORT")
    if parts.username or parts.password or parts.query or parts.fragment or port == 0:
        raise ValueError(f"{url!r}: expected http://HOST:PORT and nothing else")
    if not is_loopback(host) and host not in allowed_hosts:
        raise ValueError(f"{host} is not among the hosts that may be called; allow it with --allow-host {host}")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}"
