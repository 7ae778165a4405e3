"""The cookie of a display: only who can read its Xauthority file may open it."""

from __future__ import annotations

import os
import secrets
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "XAUTHORITY"
COOKIE = b"MIT-MAGIC-COOKIE-1"
LENGTH = 16  # bytes of a cookie
LOCAL, WILD = 256, 0xFFFF  # families of addresses: this host by its name, and any
_opening = threading.Lock()


class Authority:
    """A cookie in two files that only this user can read: one for the server, one for its clients.

    The server's is in place before its number is known. A client's library looks for an entry with the name of the
    host or, in a sandbox where the host has another name, for one that fits any.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """In the folder they are not left where nobody looks, should this process be killed."""
        parent = folder.resolve() if folder is not None else None
        self._folder = tempfile.TemporaryDirectory(prefix="proctor-display-", dir=parent)
        self._cookie = secrets.token_bytes(LENGTH)
        self.server_file = self._write("server", _entry(WILD, b"", b"", self._cookie))
        self.file = Path(self._folder.name) / "Xauthority"

    def name_display(self, number: str) -> None:
        host, display = socket.gethostname().encode(), number.encode()
        self._write(
            self.file.name, _entry(LOCAL, host, display, self._cookie) + _entry(WILD, b"", display, self._cookie)
        )

    def _write(self, name: str, content: bytes) -> Path:
        path = Path(self._folder.name) / name
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(content)
        return path

    def close(self) -> None:
        self._folder.cleanup()


def _entry(family: int, address: bytes, display: bytes, cookie: bytes) -> bytes:
    fields = (address, display, COOKIE, cookie)
    return struct.pack(">H", family) + b"".join(struct.pack(">H", len(field)) + field for field in fields)


@contextmanager
def authority_of(file: Path | None) -> Iterator[None]:
    """While a display is opened. Xlib and XCB read the name of the file from the environment, and nowhere else.

    None leaves it as it is: a process that plays or judges on one display has it in its environment.
    """
    if file is None:
        yield
        return
    with _opening:
        before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = str(file)
        try:
            yield
        finally:
            if before is None:
                del os.environ[VARIABLE]
            else:
                os.environ[VARIABLE] = before


def user_authority() -> str | None:
    """The file that a program of this user finds without being told: also to be found from another home folder."""
    named = os.environ.get(VARIABLE) or os.path.expanduser("~/.Xauthority")
    return named if os.path.exists(named) else None
