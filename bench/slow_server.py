"""A model server that takes 50 ms for every answer, however many ask at once: `python slow_server.py` prints its port.

Written on asyncio's protocols alone, so that the client is what is measured and not the server.
"""

from __future__ import annotations

import asyncio

LATENCY = 0.05
BODY = (
    b'{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"42"}}],'
    b'"usage":{"prompt_tokens":20,"completion_tokens":2}}'
)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end].lower()
            length = 0
            for line in head.split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line[15:])
            if len(self._received) < end + 4 + length:
                return
            self._received = self._received[end + 4 + length :]
            if head.startswith(b"post"):
                asyncio.get_running_loop().call_later(LATENCY, self._send, ANSWER)
            else:
                self._send(NOT_FOUND)

    def _send(self, answer: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(answer)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
