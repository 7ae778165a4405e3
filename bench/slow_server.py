"""A model server with a latency of 50 ms at any concurrency: `python slow_server.py` prints its port.

It uses plain sockets, so that the client is measured and not the server.
"""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from contextlib import suppress

LATENCY = 0.05
BODY = (
    b'{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"42"}}],'
    b'"usage":{"prompt_tokens":20,"completion_tokens":2}}'
)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
LENGTH = b"\r\ncontent-length:"


class SlowServer:
    def __init__(self) -> None:
        self._door = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._door.setblocking(False)
        self.port: int = self._door.getsockname()[1]
        self._received: dict[socket.socket, bytes] = {}
        self._due: deque[tuple[float, socket.socket]] = deque()  # equal latency: first in, first out

    def serve(self) -> None:
        while True:
            wait = max(0.0, self._due[0][0] - time.monotonic()) if self._due else None
            # epoll rounds to whole milliseconds, which would delay responses.
            ready, _, _ = select.select([self._door, *self._received], [], [], wait)
            for connection in ready:
                if connection is self._door:
                    self._accept()
                else:
                    self._read(connection)
            while self._due and self._due[0][0] <= time.monotonic():
                self._send(self._due.popleft()[1], ANSWER)

    def _accept(self) -> None:
        try:
            while True:
                connection, _ = self._door.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._received[connection] = b""
        except BlockingIOError:
            return

    def _read(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(65_536)
        except OSError:
            data = b""
        if not data:
            del self._received[connection]
            connection.close()
            return
        received = self._received[connection] + data
        while (end := received.find(b"\r\n\r\n")) >= 0:
            head = received[:end].lower()
            _, stated, rest = head.partition(LENGTH)
            whole = end + 4 + (int(rest.split(b"\r\n", 1)[0]) if stated else 0)
            if len(received) < whole:
                break
            received = received[whole:]
            if head.startswith(b"post"):
                self._due.append((time.monotonic() + LATENCY, connection))
            else:
                self._send(connection, NOT_FOUND)
        self._received[connection] = received

    def _send(self, connection: socket.socket, answer: bytes) -> None:
        if connection in self._received:  # not if the client disconnected
            with suppress(OSError):
                connection.sendall(answer)


if __name__ == "__main__":
    server = SlowServer()
    print(server.port, flush=True)
    server.serve()
