"""Whole messages over a pipe: four bytes of length, then the body."""

from __future__ import annotations

import os
import struct

_LENGTH = struct.Struct("<I")
LARGEST = 1 << 30  # that a program is sent
_FIRST = 1 << 12  # most messages are short, and a large buffer would cost every program fresh memory
_CHUNK = 1 << 18


class BrokenMessageError(Exception):
    """The other side hung up, or says more than it may."""


def send(descriptor: int, body: bytes) -> None:
    message = _LENGTH.pack(len(body)) + body
    sent = os.write(descriptor, message)
    while sent < len(message):
        sent += os.write(descriptor, message[sent : sent + _CHUNK])


def receive(descriptor: int, most: int) -> bytes:
    """One message of at most so many bytes. What follows it is dropped: the other side has to wait for an answer."""
    data = os.read(descriptor, _FIRST)
    while len(data) < 4:
        data += _more(descriptor)
    (length,) = _LENGTH.unpack_from(data)
    if length > most:
        raise BrokenMessageError(f"a message of {length} bytes")
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
        raise BrokenMessageError("hung up")
    return data
