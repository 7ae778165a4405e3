"""The fixture that fails tests with leaks."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from helpers import leaks
from helpers.leaks import Snapshot

SLEEPER = "import sys; sys.stdin.read()"


@contextmanager
def child() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-c", SLEEPER], stdin=subprocess.PIPE)
    yield f"child process {process.pid} "
    process.communicate()


@contextmanager
def orphan() -> Iterator[str]:
    """A process without parent is found by the name of the test in its environment."""
    start = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', sys.argv[1]]).pid)"
    with subprocess.Popen(
        [sys.executable, "-c", start, SLEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        yield f"process {parent.stdout.readline().strip()} "


@contextmanager
def thread() -> Iterator[str]:
    end = threading.Event()
    started = threading.Thread(target=end.wait, name="waits")
    started.start()
    yield "thread waits"
    end.set()
    started.join()


@contextmanager
def listening_socket() -> Iterator[str]:
    with closing(socket.create_server(("127.0.0.1", 0))):
        yield "descriptor of socket:"


@contextmanager
def open_file() -> Iterator[str]:
    with Path("left.txt").open("w"):
        yield "left.txt"


@pytest.mark.parametrize("leave", [child, orphan, thread, listening_socket, open_file])
def test_leaks_are_named(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, leave: Callable[[], AbstractContextManager[str]]
) -> None:
    before = Snapshot()
    with leave() as named, monkeypatch.context() as patch:
        patch.setattr(leaks, "DEADLINE", 0.0)
        found = before.new_since(request.node.nodeid)
        assert any(named in line for line in found), found
    assert before.new_since(request.node.nodeid) == []


def test_foreign_processes_are_no_leaks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Snapshot()
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/test_other.py::test_other (call)")
    with orphan() as named:
        assert not any(named in line for line in before._find(request.node.nodeid))
