"""The filter before the display of an isolated agent: what passes, what is refused, and clients that mean harm."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from proctor.agents.desktop.display import VirtualDisplay
from proctor.agents.display_filter.display import FilteredDisplay
from proctor.agents.display_filter.relay import LITTLE, MOST_CONNECTIONS, SETUP, cookie_of
from proctor.agents.display_filter.rules import EXTENSIONS, Client, Decision, Rules

MIT_SHM, XTEST, BIG_REQUESTS = 130, 131, 132
NUMBERS = {MIT_SHM: "MIT-SHM", XTEST: "XTEST", BIG_REQUESTS: "BIG-REQUESTS"}
ROOT, WINDOW, OWN = 0x100, 0x200001, 0x400005
ERROR = 0


def request(major: int, minor: int = 0, *words: int, tail: bytes = b"") -> bytearray:
    body = struct.pack(f"<{len(words)}I", *words) + tail
    return bytearray(struct.pack("<BBH", major, minor, 1 + len(body) // 4) + body)


REQUESTS: dict[str, tuple[bytearray, Decision]] = {
    "CreateWindow": (request(1, 24, OWN, ROOT, 0, 0, 0, 0, 0), Decision.REFUSE),
    "MapWindow": (request(8, 0, WINDOW), Decision.REFUSE),
    "DestroyWindow": (request(4, 0, WINDOW), Decision.REFUSE),
    "KillClient": (request(113, 0, WINDOW), Decision.REFUSE),
    "ChangeProperty": (request(18, 0, WINDOW, 1, 1, 8, 0), Decision.REFUSE),
    "PutImage": (request(72, 2, WINDOW, OWN, 0, 0, 0), Decision.REFUSE),
    "GrabKeyboard": (request(31, 0, ROOT, 0, 0), Decision.REFUSE),
    "GrabServer": (request(36), Decision.IGNORE),
    "GetImage": (request(73, 2, WINDOW, 0, 0, 0), Decision.PASS),
    "SetInputFocus": (request(42, 0, WINDOW, 0), Decision.PASS),
    "to listen to a window": (request(2, 0, WINDOW, 0x800, 1 << 17), Decision.PASS),
    "to decide for its children": (request(2, 0, WINDOW, 0x800, 1 << 20), Decision.REFUSE),
    "a background": (request(2, 0, WINDOW, 0x2, 0), Decision.REFUSE),
    "a background and listening": (request(2, 0, WINDOW, 0x802, 0, 1 << 17), Decision.REFUSE),
    "to raise": (request(12, 0, WINDOW, 0x40, 0), Decision.PASS),
    "to move": (request(12, 0, WINDOW, 0x3, 0, 0), Decision.REFUSE),
    "to raise and move": (request(12, 0, WINDOW, 0x43, 0, 0, 0), Decision.REFUSE),
    "a message to the manager": (request(25, 0, ROOT, 3 << 19, tail=b"\x21" + bytes(31)), Decision.PASS),
    "a message to a window": (request(25, 0, WINDOW, 3 << 19, tail=b"\x21" + bytes(31)), Decision.REFUSE),
    "a key by message": (request(25, 0, ROOT, 3 << 19, tail=b"\x02" + bytes(31)), Decision.REFUSE),
    "a key by XTEST": (request(XTEST, 2, 2, 0, 0), Decision.PASS),
    "the stop key": (request(XTEST, 2, 0x4C02, 0, 0), Decision.REFUSE),
    "a key of another device": (request(XTEST, 2, 0x4C43, 0, 0), Decision.REFUSE),
    "a button of its number": (request(XTEST, 2, 0x4C04, 0, 0), Decision.PASS),
    "a key elsewhere": (request(100, 1, 0x018D, 0x61, 0x61), Decision.PASS),
    "the stop key elsewhere": (request(100, 1, 0x018D, 0xFFC7, 0), Decision.REFUSE),
    "to be deaf to grabs": (request(XTEST, 3, 1), Decision.REFUSE),
    "a segment of its own": (request(MIT_SHM, 6, OWN, 0), Decision.PASS),
    "a segment of another": (request(MIT_SHM, 2, WINDOW), Decision.REFUSE),
    "a segment of System V": (request(MIT_SHM, 1, OWN, 7, 0), Decision.REFUSE),
    "a picture into its own": (request(MIT_SHM, 4, WINDOW, 0, 0, 0, 0, OWN, 0), Decision.PASS),
    "a picture into another's": (request(MIT_SHM, 4, WINDOW, 0, 0, 0, 0, WINDOW, 0), Decision.REFUSE),
    "an unknown extension": (request(200, 0), Decision.REFUSE),
    "too short to say which": (request(2), Decision.REFUSE),
}


@pytest.mark.parametrize("what", REQUESTS)
def test_requests(what: str) -> None:
    client = Client(ROOT, {0x4C})
    client.base, client.mask = 0x400000, 0x1FFFFF
    asked, verdict = REQUESTS[what]
    assert Rules(NUMBERS).judge(bytearray(asked), client) is verdict


def test_property_is_read_and_not_deleted() -> None:
    asked = request(20, 1, WINDOW, 1, 0, 0, 100)
    assert Rules(NUMBERS).judge(asked, Client(ROOT)) is Decision.PASS
    assert asked == request(20, 0, WINDOW, 1, 0, 0, 100)


def test_cookie_is_the_one_of_the_display(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(family: int, *parts: bytes) -> bytes:
        return struct.pack(">H", family) + b"".join(struct.pack(">H", len(part)) + part for part in parts)

    name = b"MIT-MAGIC-COOKIE-1"
    (tmp_path / "authority").write_bytes(
        entry(256, b"host", b"1", name, b"of one") + entry(256, b"host", b"2", name, b"of two")
    )
    assert cookie_of("2") == b""
    monkeypatch.setenv("XAUTHORITY", str(tmp_path / "authority"))
    assert cookie_of("2") == b"of two"
    assert cookie_of("3") == b""
    (tmp_path / "authority").write_bytes(b"\x01\x00\xff")
    assert cookie_of("2") == b""


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilteredDisplay]:
    folder = tmp_path_factory.mktemp("filter")
    display = VirtualDisplay(log=folder / "display.log")
    display.start()
    environment = display.environment
    try:
        found = FilteredDisplay(display.name, folder / "filter.log", environment)
        yield found
        found.close()
    finally:
        display.close()


@pytest.fixture
def connect(filtered: FilteredDisplay) -> Iterator[Callable[[], socket.socket]]:
    opened: list[socket.socket] = []

    def one() -> socket.socket:
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(60)
        line.connect(str(filtered.socket))
        opened.append(line)
        return line

    yield one
    for line in opened:
        line.close()


def read(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = line.recv(size - len(data))
        if not part:
            raise ConnectionError
        data += part
    return data


def begun(line: socket.socket) -> socket.socket:
    line.sendall(SETUP.pack(LITTLE, 11, 0, 0, 0))
    head = read(line, 8)
    assert head[0] == 1
    read(line, 4 * int.from_bytes(head[6:8], "little"))
    return line


def is_cut_off(line: socket.socket) -> bool:
    """After whatever was on its way."""
    try:
        while line.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def answers(line: socket.socket) -> bool:
    """Whether a question after all that was sent is answered."""
    line.sendall(request(43))  # GetInputFocus
    while (reply := read(line, 32))[0] == ERROR:
        pass
    return reply[0] == 1


def test_refused_request_is_an_error_in_its_turn(
    filtered: FilteredDisplay, connect: Callable[[], socket.socket]
) -> None:
    line = begun(connect())
    line.sendall(request(1, 24, OWN, ROOT, 0, 0, 0, 0, 0) + request(43))
    error, reply = read(line, 32), read(line, 32)
    assert (error[0], int.from_bytes(error[2:4], "little")) == (ERROR, 1)
    assert (reply[0], int.from_bytes(reply[2:4], "little")) == (1, 2)
    assert filtered.refused() == "CreateWindow 1"
    assert filtered.refused() == ""


def test_requests_in_pieces(connect: Callable[[], socket.socket]) -> None:
    line = connect()
    for byte in SETUP.pack(LITTLE, 11, 0, 0, 0):
        line.sendall(bytes([byte]))
    head = read(line, 8)
    read(line, 4 * int.from_bytes(head[6:8], "little"))
    for byte in bytes(request(36) + request(72, 2, WINDOW, OWN, 0, 0, 0)):
        line.sendall(bytes([byte]))
    assert answers(line)


def test_long_request_is_skipped_whole(connect: Callable[[], socket.socket]) -> None:
    line = begun(connect())
    line.sendall(struct.pack("<BBH", 72, 0, 0xFFFF) + bytes(4 * 0xFFFF - 4))
    assert answers(line)


@pytest.mark.parametrize(
    "harm", [b"B" + bytes(11), b"l" + bytes(11) + bytes(64), b"\0" * 12], ids=["big-endian", "no length", "nothing"]
)
def test_client_that_speaks_otherwise_is_cut_off(connect: Callable[[], socket.socket], harm: bytes) -> None:
    line = connect()
    line.sendall(harm)
    assert is_cut_off(line)
    assert answers(begun(connect()))


def test_descriptors_that_nobody_wants_cut_a_client_off(connect: Callable[[], socket.socket]) -> None:
    line = begun(connect())
    with open(os.devnull) as file, suppress(OSError):
        for _ in range(20):
            socket.send_fds(line, [bytes(request(127))], [file.fileno()] * 4)
    assert is_cut_off(line)
    assert answers(begun(connect()))


def test_client_that_does_not_listen_stops_nobody_else(connect: Callable[[], socket.socket]) -> None:
    deaf = begun(connect())
    deaf.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            deaf.send(bytes(request(99)) * 1_000)  # ListExtensions: an answer of hundreds of bytes each
    assert answers(begun(connect()))


def test_connections_are_few(connect: Callable[[], socket.socket]) -> None:
    lines = [connect() for _ in range(MOST_CONNECTIONS)]
    for line in lines:
        begun(line)
    assert is_cut_off(connect())
    for line in lines:
        line.close()
    while True:  # until it has seen that they are gone
        with suppress(ConnectionError):
            if answers(begun(connect())):
                return


def test_rules_name_only_extensions_that_are_harmless() -> None:
    assert not {"Composite", "DOUBLE-BUFFER", "GLX", "DRI3", "Present", "XFree86-VidModeExtension"} & set(EXTENSIONS)
