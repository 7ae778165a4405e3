"""The messages between harness and supervisor: jobs in, reports with attachments out."""

from __future__ import annotations

import os
import struct
from typing import Any

JOB = struct.Struct("<dd4QQ")  # seconds, wall seconds, memory, output, disk, processes; length of the job itself
LARGEST_MESSAGE = 1 << 16
MOST_DESCRIPTORS = 4


def attached(message: dict[str, Any], descriptors: list[int]) -> bytes:
    """The contents of the files sent with a message: output of a program or compiler."""
    if "stdout" in message:  # only as much as the limit allows
        sizes = [size for size in (message["stdout"], message["stderr"]) if size]
    else:
        sizes = [os.fstat(descriptor).st_size for descriptor in descriptors]
    return b"".join(os.pread(file, size, 0) for file, size in zip(descriptors, sizes, strict=True))


# A container cannot pass descriptors, so attachments follow the message in its frame.

FRAME = struct.Struct("<IQ")  # lengths of message and attachments
_CHUNK = 1 << 20


def send_frame(descriptor: int, message: bytes, content: bytes = b"") -> None:
    data = memoryview(FRAME.pack(len(message), len(content)) + message + content)
    while data:
        data = data[os.write(descriptor, data) :]


def receive_frame(descriptor: int) -> tuple[bytes, bytes]:
    lengths = FRAME.unpack(_receive(descriptor, FRAME.size))
    message, content = (_receive(descriptor, length) for length in lengths)
    return message, content


def _receive(descriptor: int, length: int) -> bytes:
    parts = []
    while length > 0:
        parts.append(os.read(descriptor, min(length, _CHUNK)))
        if not parts[-1]:
            raise EOFError("the connection was closed")
        length -= len(parts[-1])
    return b"".join(parts)
