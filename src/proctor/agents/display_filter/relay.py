"""Stands between an isolated agent and its display, and lets through what the rules allow.

Run as a program of its own under a guardian, with the standard library alone: a descriptor that listens, the number of
the display, and a file for what was refused. Answers of the server are passed on as they come.
"""

from __future__ import annotations

import array
import os
import select
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from proctor.agents.display_filter.rules import (
    EXTENSIONS,
    LENGTHENS,
    LONGEST,
    NO_OPERATION,
    REFUSED,
    STOP,
    TAKES_DESCRIPTOR,
    Client,
    Decision,
    Rules,
)

SOCKET = "/tmp/.X11-unix/X{}"
MOST_CONNECTIONS = 64  # a server has room for 256, and others need some
MOST_WAITING = 1 << 20  # bytes that one side has not taken yet: until it does, the other is not heard
MOST_NOTES = 1_000  # lines about what was refused
AT_ONCE = 1 << 16
MOST_DESCRIPTORS = 8
ANCILLARY = socket.CMSG_SPACE(4 * MOST_DESCRIPTORS)
SETUP = struct.Struct("<BxHHHH2x")
LITTLE = ord("l")
COOKIE_NAME = b"MIT-MAGIC-COOKIE-1"
_LOCAL, _WILD = 256, 65535  # families of an Xauthority file


class BadClientError(Exception):
    """The client violates the protocol."""


class RelaySocket:
    """A socket with its unsent bytes."""

    def __init__(self, line: socket.socket) -> None:
        line.setblocking(False)
        self.line = line
        self.waiting = bytearray()
        self.descriptors: list[int] = []  # that go with the next bytes

    def send(self, data: bytes | bytearray) -> None:
        if not self.waiting:
            sent = self._send_now(data)
            if sent == len(data):
                return
            data = data[sent:]
        self.waiting += data

    def flush(self) -> None:
        if self.waiting:
            del self.waiting[: self._send_now(self.waiting)]

    def _send_now(self, data: bytes | bytearray) -> int:
        try:
            if not self.descriptors:
                return self.line.send(data)
            attached = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", self.descriptors))]
            sent = self.line.sendmsg([data], attached)
        except BlockingIOError:
            return 0
        self.forget_descriptors()
        return sent

    def forget_descriptors(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []

    def close(self) -> None:
        self.forget_descriptors()
        self.line.close()


class ClientConnection:
    """A connection of the agent, and its counterpart to the server."""

    def __init__(
        self, agent: socket.socket, server: socket.socket, rules: Rules, client: Client, cookie: bytes
    ) -> None:
        self.agent, self.server = RelaySocket(agent), RelaySocket(server)
        self.refused: list[str] = []
        self._rules, self._client, self._cookie = rules, client, cookie
        self._begun = False  # the agent has said who it is
        self._answer: bytearray | None = bytearray()  # of the server to that, as far as it is of interest
        self._heard = bytearray()
        self._attached: list[int] = []
        self._skipped = 0  # bytes that are left of a request that was refused
        self._long = False  # it may send long requests

    def from_server(self) -> None:
        data = self.server.line.recv(AT_ONCE)  # no request that is let through is answered with a descriptor
        if not data:
            raise ConnectionError
        if self._answer is not None:
            self._answer += data[:20]
            if len(self._answer) >= 20:
                self._client.base, self._client.mask = struct.unpack_from("<II", self._answer, 12)
                self._answer = None
        self.agent.send(data)

    def from_agent(self) -> None:
        data, ancillary, _, _ = self.agent.line.recvmsg(AT_ONCE, ANCILLARY)
        if not data:
            raise ConnectionError
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self._attached += array.array("i", content[: len(content) - len(content) % 4])
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
        """Forwards the set-up request with our cookie."""
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
        """Handles the next request; None if it is incomplete."""
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
        if verdict is Decision.REFUSE:
            return self._refuse(size)
        del heard[:size]
        if verdict is Decision.IGNORE:
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
    """The event loop, with few system calls per message: every action of the agent passes here twice."""

    def __init__(self, listening: socket.socket, number: str, notes: str) -> None:
        self._listening, self._path = listening, SOCKET.format(number)
        self._cookie = cookie_of(number)
        self._notes = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._noted = 0
        self._poll = select.epoll()
        self._lines: dict[int, tuple[ClientConnection, bool]] = {}  # by descriptor; whether it is the agent's side
        self._wanted: dict[int, int] = {}  # what is waited for, of lines that are not just read
        self._about = ask_server(self._path, self._cookie)
        self._rules = Rules(self._about.extensions)

    def run(self) -> None:
        own = self._listening.fileno()
        self._poll.register(own, select.EPOLLIN)
        while True:
            for descriptor, mask in self._poll.poll():
                if descriptor == own:
                    self._accept()
                elif descriptor in self._lines:  # and not closed meanwhile
                    self._serve(*self._lines[descriptor], mask)

    def _accept(self) -> None:
        try:
            agent, _ = self._listening.accept()
        except OSError:  # the client is gone already
            return
        server = socket.socket(socket.AF_UNIX)
        try:
            if len(self._lines) >= 2 * MOST_CONNECTIONS:
                raise ConnectionError
            server.connect(self._path)
        except OSError:
            agent.close()
            server.close()
            return
        client = Client(self._about.root, self._about.stop_keys)
        connection = ClientConnection(agent, server, self._rules, client, self._cookie)
        for line, is_agent in ((agent, True), (server, False)):
            self._lines[line.fileno()] = connection, is_agent
            self._poll.register(line.fileno(), select.EPOLLIN)

    def _serve(self, connection: ClientConnection, from_agent: bool, mask: int) -> None:
        agent, server = connection.agent, connection.server
        try:
            if mask & select.EPOLLOUT:
                (agent if from_agent else server).flush()
            if mask & ~select.EPOLLOUT:
                (connection.from_agent if from_agent else connection.from_server)()
        except BlockingIOError:
            pass
        except Exception:  # closes this client only
            self._close(connection)
            return
        if connection.refused:
            self._note(connection.refused)
            connection.refused = []
        if agent.waiting or server.waiting or self._wanted:
            self._await(agent, server)
            self._await(server, agent)

    def _await(self, side: RelaySocket, other: RelaySocket) -> None:
        """Reads from a side only while the other accepts its data."""
        wanted = select.EPOLLIN if len(other.waiting) < MOST_WAITING else 0
        wanted |= select.EPOLLOUT if side.waiting else 0
        descriptor = side.line.fileno()
        if self._wanted.get(descriptor, select.EPOLLIN) == wanted:
            return
        self._poll.modify(descriptor, wanted)
        if wanted == select.EPOLLIN:
            del self._wanted[descriptor]
        else:
            self._wanted[descriptor] = wanted

    def _close(self, connection: ClientConnection) -> None:
        for side in (connection.agent, connection.server):
            descriptor = side.line.fileno()
            del self._lines[descriptor]
            self._wanted.pop(descriptor, None)
            self._poll.unregister(descriptor)
        connection.close()

    def _note(self, names: list[str]) -> None:
        names = names[: MOST_NOTES - self._noted]
        self._noted += len(names)
        with suppress(OSError):
            os.write(self._notes, "".join(f"{name}\n" for name in names).encode())


class ServerInfo(NamedTuple):
    """Properties of a server that the rules need."""

    extensions: dict[int, str]  # by their numbers
    root: int
    stop_keys: frozenset[int]


def ask_server(path: str, cookie: bytes) -> ServerInfo:
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
        return ServerInfo(numbers, root, _stop_keys(line, body[26], body[27]))


def _stop_keys(line: socket.socket, first: int, last: int) -> frozenset[int]:
    line.sendall(struct.pack("<BxHBBxx", 101, 2, first, last - first + 1))
    head = _read(line, 32)
    mapping = struct.iter_unpack("<I", _read(line, 4 * int.from_bytes(head[4:8], "little")))
    return frozenset(first + place // head[1] for place, (keysym,) in enumerate(mapping) if keysym == STOP)


def _read(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = line.recv(size - len(data))
        if not part:
            raise ConnectionError("the display is gone")
        data += part
    return data


def cookie_of(number: str) -> bytes:
    """The cookie from the file $XAUTHORITY; empty if the display needs none."""
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
