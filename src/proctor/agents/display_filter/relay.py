"""Stands between an isolated agent and its display, and lets through what the rules allow.

Run as a program of its own under a guardian, with the standard library alone: a descriptor that listens, the number of
the display, and a file for what was refused. Answers of the server are passed on as they come.
"""

from __future__ import annotations

import array
import os
import selectors
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path

from proctor.agents.display_filter.rules import (
    EXTENSIONS,
    LENGTHENS,
    LONGEST,
    NO_OPERATION,
    REFUSED,
    TAKES_DESCRIPTOR,
    Client,
    Rules,
    Verdict,
)

SOCKET = "/tmp/.X11-unix/X{}"
MOST_CONNECTIONS = 64  # a server has room for 256, and others need some
MOST_WAITING = 1 << 20  # bytes that one side has not taken yet: until it does, the other is not heard
MOST_NOTES = 1_000  # lines about what was refused
AT_ONCE = 1 << 16
MOST_DESCRIPTORS = 8
SETUP = struct.Struct("<BxHHHH2x")
LITTLE = ord("l")
COOKIE_NAME = b"MIT-MAGIC-COOKIE-1"
_LOCAL, _WILD = 256, 65535  # families of an Xauthority file


class BadClientError(Exception):
    """It does not speak the protocol."""


class Side:
    """One socket, with what it has not taken yet."""

    def __init__(self, line: socket.socket) -> None:
        line.setblocking(False)
        self.line = line
        self.waiting = bytearray()
        self.descriptors: list[int] = []  # that go with the next bytes

    def send(self, data: bytes | bytearray) -> None:
        if not self.waiting:
            data = data[self._send_now(data) :]
        self.waiting += data

    def flush(self) -> None:
        if self.waiting:
            del self.waiting[: self._send_now(self.waiting)]

    def _send_now(self, data: bytes | bytearray) -> int:
        attached = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", self.descriptors))]
        try:
            sent = self.line.sendmsg([data], attached if self.descriptors else [])
        except BlockingIOError:
            return 0
        self._forget_descriptors()
        return sent

    def receive(self) -> tuple[bytes, list[int]]:
        data, descriptors, _, _ = socket.recv_fds(self.line, AT_ONCE, MOST_DESCRIPTORS)
        return data, list(descriptors)

    def _forget_descriptors(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []

    def close(self) -> None:
        self._forget_descriptors()
        self.line.close()


class Connection:
    """An agent's connection, and ours to the server in its name."""

    def __init__(self, agent: socket.socket, server: socket.socket, rules: Rules, root: int, cookie: bytes) -> None:
        self.agent, self.server = Side(agent), Side(server)
        self.refused: list[str] = []
        self._rules, self._cookie = rules, cookie
        self._client = Client(root)
        self._begun = False  # the agent has said who it is
        self._answer: bytearray | None = bytearray()  # of the server to that, as far as it is of interest
        self._heard = bytearray()
        self._attached: list[int] = []
        self._skipped = 0  # bytes that are left of a request that was refused
        self._long = False  # it may send long requests

    def from_server(self) -> None:
        data, descriptors = self.server.receive()
        if not data:
            raise ConnectionError
        if self._answer is not None:
            self._answer += data[:20]
            if len(self._answer) >= 20:
                self._client.base, self._client.mask = struct.unpack_from("<II", self._answer, 12)
                self._answer = None
        self.agent.descriptors += descriptors
        self.agent.send(data)

    def from_agent(self) -> None:
        data, descriptors = self.agent.receive()
        if not data:
            raise ConnectionError
        self._attached += descriptors
        self._heard += data
        if not self._begun:
            self._begin()
        if self._begun:
            allowed = bytearray()
            while (part := self._next()) is not None:
                allowed += part
            if allowed:
                self.server.send(allowed)
        if len(self._attached) > MOST_DESCRIPTORS:
            raise BadClientError

    def _begin(self) -> None:
        """Its first words, with our cookie in place of any of its own."""
        if len(self._heard) < SETUP.size:
            return
        order, major, minor, name, cookie = SETUP.unpack_from(self._heard)
        if order != LITTLE:
            raise BadClientError
        size = SETUP.size + _padded(name) + _padded(cookie)
        if len(self._heard) < size:
            return
        del self._heard[:size]
        ours = COOKIE_NAME if self._cookie else b""
        head = SETUP.pack(order, major, minor, len(ours), len(self._cookie))
        self.server.send(head + _filled(ours) + _filled(self._cookie))
        self._begun = True

    def _next(self) -> bytes | bytearray | None:
        """What becomes of the next request; None if it is not there yet."""
        if self._skipped:
            gone = min(self._skipped, len(self._heard))
            del self._heard[:gone]
            self._skipped -= gone
            if self._skipped:
                return None
        heard = self._heard
        if len(heard) < 4:
            return None
        size = 4 * int.from_bytes(heard[2:4], "little")
        if size == 0 and self._long:
            if len(heard) < 8:
                return None
            return self._refuse(4 * int.from_bytes(heard[4:8], "little"))  # none that is allowed is so long
        if size == 0:
            raise BadClientError
        if size > LONGEST:
            return self._refuse(size)
        if len(heard) < size:
            return None
        request = heard[:size]
        verdict = self._rules.judge(request, self._client)
        if verdict is Verdict.REFUSE:
            return self._refuse(size)
        del heard[:size]
        if verdict is Verdict.IGNORE:
            return NO_OPERATION
        if self._rules.is_one_of(request, LENGTHENS):
            self._long = True
        elif self._rules.is_one_of(request, TAKES_DESCRIPTOR):
            if not self._attached:
                raise BadClientError
            self.server.descriptors.append(self._attached.pop(0))
        return request

    def _refuse(self, size: int) -> bytes:
        if size < 4:
            raise BadClientError
        self.refused.append(self._rules.name(self._heard[:4]))
        self._skipped = size
        return REFUSED

    def close(self) -> None:
        for descriptor in self._attached:
            os.close(descriptor)
        self._attached = []
        self.agent.close()
        self.server.close()


def _padded(size: int) -> int:
    return size + -size % 4


def _filled(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


class XFilter:
    def __init__(self, listening: socket.socket, number: str, notes: str) -> None:
        self._listening, self._path = listening, SOCKET.format(number)
        self._cookie = cookie_of(number)
        self._notes = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._noted = 0
        self._selector = selectors.DefaultSelector()
        self._connections: set[Connection] = set()
        numbers, self._root = ask_server(self._path, self._cookie)
        self._rules = Rules(numbers)

    def run(self) -> None:
        self._selector.register(self._listening, selectors.EVENT_READ)
        while True:
            for key, mask in self._selector.select():
                if key.data is None:
                    self._accept()
                    continue
                connection, from_agent = key.data
                if connection in self._connections:
                    self._serve(connection, from_agent, mask)

    def _accept(self) -> None:
        agent, _ = self._listening.accept()
        server = socket.socket(socket.AF_UNIX)
        try:
            if len(self._connections) >= MOST_CONNECTIONS:
                raise ConnectionError
            server.connect(self._path)
        except OSError:
            agent.close()
            server.close()
            return
        connection = Connection(agent, server, self._rules, self._root, self._cookie)
        self._connections.add(connection)
        self._selector.register(agent, selectors.EVENT_READ, (connection, True))
        self._selector.register(server, selectors.EVENT_READ, (connection, False))

    def _serve(self, connection: Connection, from_agent: bool, mask: int) -> None:
        try:
            if mask & selectors.EVENT_WRITE:
                (connection.agent if from_agent else connection.server).flush()
            if mask & selectors.EVENT_READ:
                if from_agent:
                    connection.from_agent()
                else:
                    connection.from_server()
            if connection.refused:
                self._note(connection.refused)
                connection.refused = []
            self._await(connection)
        except BlockingIOError:
            return
        except (OSError, BadClientError):
            self._close(connection)

    def _await(self, connection: Connection) -> None:
        """Each side is heard while the other takes what it said."""
        for side, other, is_agent in (
            (connection.agent, connection.server, True),
            (connection.server, connection.agent, False),
        ):
            wanted = selectors.EVENT_READ if len(other.waiting) < MOST_WAITING else 0
            wanted |= selectors.EVENT_WRITE if side.waiting else 0
            key = self._selector.get_map().get(side.line)
            if key is not None and key.events == wanted:
                continue
            if key is not None:
                self._selector.unregister(side.line)
            if wanted:
                self._selector.register(side.line, wanted, (connection, is_agent))

    def _close(self, connection: Connection) -> None:
        self._connections.discard(connection)
        for side in (connection.agent, connection.server):
            with suppress(KeyError, ValueError):
                self._selector.unregister(side.line)
        connection.close()

    def _note(self, names: list[str]) -> None:
        names = names[: MOST_NOTES - self._noted]
        self._noted += len(names)
        with suppress(OSError):
            os.write(self._notes, "".join(f"{name}\n" for name in names).encode())


def ask_server(path: str, cookie: bytes) -> tuple[dict[int, str], int]:
    """The numbers of the extensions that the rules know, and of the root window."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        name = COOKIE_NAME if cookie else b""
        line.sendall(SETUP.pack(LITTLE, 11, 0, len(name), len(cookie)) + _filled(name) + _filled(cookie))
        head = _read(line, 8)
        body = _read(line, 4 * int.from_bytes(head[6:8], "little"))
        if head[0] != 1:
            raise ConnectionError("the display does not let us in")
        vendor, formats = int.from_bytes(body[16:18], "little"), body[21]
        root = int.from_bytes(body[32 + _padded(vendor) + 8 * formats :][:4], "little")
        numbers = {}
        for extension in EXTENSIONS:
            asked = extension.encode()
            line.sendall(struct.pack("<BxHHxx", 98, 2 + _padded(len(asked)) // 4, len(asked)) + _filled(asked))
            answer = _read(line, 32)
            if answer[8]:
                numbers[answer[9]] = extension
        return numbers, root


def _read(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = line.recv(size - len(data))
        if not part:
            raise ConnectionError("the display is gone")
        data += part
    return data


def cookie_of(number: str) -> bytes:
    """From the file that $XAUTHORITY names; empty where the display asks for none."""
    name = os.environ.get("XAUTHORITY", "")
    if not name:
        return b""
    try:
        data = Path(name).read_bytes()
    except OSError:
        return b""
    at = 0
    while at + 2 <= len(data):
        family, at = int.from_bytes(data[at : at + 2], "big"), at + 2
        parts = []
        for _ in range(4):  # address, number, name, cookie
            size = int.from_bytes(data[at : at + 2], "big")
            parts.append(data[at + 2 : at + 2 + size])
            at += 2 + size
        if family in (_LOCAL, _WILD) and parts[1] in (b"", number.encode()) and parts[2] == COOKIE_NAME:
            return parts[3]
    return b""


def main() -> None:
    descriptor, number, notes, ready = sys.argv[1:]
    listening = socket.socket(fileno=int(descriptor))
    x_filter = XFilter(listening, number, notes)
    os.write(int(ready), b"ready")
    os.close(int(ready))
    x_filter.run()


if __name__ == "__main__":
    main()
