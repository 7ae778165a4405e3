"""A PostgreSQL server in a temporary folder, which listens only on a Unix socket there."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

from helpers import leaks

PASSWORD = "open sesame/@:%"  # with all characters that a URL must escape
ESCAPED_PASSWORD = "open%20sesame%2F%40%3A%25"


def find_programs() -> Path | None:
    """The folder of initdb and postgres; Debian has one per version outside of PATH."""
    if initdb := shutil.which("initdb"):
        return Path(initdb).parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), default=None)


class PostgresServer:
    def __init__(self, programs: Path) -> None:
        self.programs = programs
        self._numbers = itertools.count(1)
        self._folder = Path(tempfile.mkdtemp(prefix="proctor-pg-"))  # short, because socket paths are limited
        self._as_user: dict[str, Any] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            # Not as nobody: other tests run programs as nobody that kill all processes they can.
            known = {entry.pw_name: entry for entry in pwd.getpwall()}
            user = known.get("postgres") or known["nobody"]
            os.chown(self._folder, user.pw_uid, user.pw_gid)
            self._as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self._folder.chmod(0o755)
        password = self._folder / "password"
        password.write_text(PASSWORD)
        subprocess.run(
            [programs / "initdb", "-D", self._folder / "data", "-U", "team", "-A", "scram-sha-256", "--no-sync",
             "-E", "UTF8", "--locale", "C", f"--pwfile={password}"],
            check=True, capture_output=True, cwd=self._folder, **self._as_user,
        )  # fmt: skip
        self.start()

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            start = log.tell()
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL",
                 self.programs / "postgres", "-D", self._folder / "data", "-k", self._folder, "-h", "", "-F",
                 "-c", "max_connections=60", "-c", "autovacuum=off", "-c", "jit=off"],
                stderr=log, cwd=self._folder, env={"PATH": os.defpath, "LC_ALL": "C"}, **self._as_user,
            )  # fmt: skip
        leaks.of_the_session.add(str(self.process.pid))
        while b"ready to accept connections" not in (output := (self._folder / "log").read_bytes()[start:]):
            assert self.process.poll() is None, output.decode()
            time.sleep(0.01)

    def kill(self) -> None:
        """Quit immediately, without closing connections."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(300)

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self._folder)

    def url(self, database: str, password: str = ESCAPED_PASSWORD) -> str:
        return f"postgresql://team:{password}@/{database}?host={self._folder}"

    def create_database(self) -> str:
        """The URL of a new, empty database."""
        if self.process.poll() is not None:  # pdeathsig kills it with the thread that started it
            self.start()
        name = f"runs{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def execute(self, sql: str, database: str = "postgres") -> list[Any]:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []
