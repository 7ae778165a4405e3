"""Messages over a pipe: four bytes of length, then the body."""

from __future__ import annotations

import os
import struct

_LENGTH = struct.Struct("<I")
LARGEST = 1 << 30  # bytes of a message to a program
_FIRST = 1 << 12  # most messages are short; a large buffer costs every program memory
_CHUNK = 1 << 18


class BrokenMessageError(Exception):
    """The other side closed the pipe, or sent a message that is too long."""


def send(descriptor: int, body: bytes) -> None:
    message = _LENGTH.pack(len(body)) + body
    sent = os.write(descriptor, message)
    while sent < len(message):
        sent += os.write(descriptor, message[sent : sent + _CHUNK])


def receive(descriptor: int, most: int) -> bytes:
    """One message of at most `most` bytes. Drops what follows: the other side must wait."""
    data = os.read(descriptor, _FIRST)
    while len(data) < 4:
        data += _more(descriptor)
    (length,) = _LENGTH.unpack_from(data)
    if length > most:
        raise BrokenMessageError(f"the message has {length} bytes, at most {most} are allowed")
    if len(data) < length + 4:
        parts = [data]
        missing = length + 4 - len(data)
        while missing > 0:
            parts.append(_more(descriptor))
            missing -= len(parts[-1])
        data = b"".join(parts)
    return data[4 : length + 4]


def _more(descriptor: int) -> bytes:
    data = os.read(descriptor, _CHUNK)
    if not data:
        raise BrokenMessageError("the pipe was closed")
    return data
