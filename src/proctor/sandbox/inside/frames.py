"""What passes between the harness and a zygote: jobs one way, messages with what is attached to them the other."""

from __future__ import annotations

import os
import struct
from typing import Any

JOB = struct.Struct("<dd4QQ")  # seconds, wall seconds, memory, output, disk, processes; length of the job itself
LARGEST_MESSAGE = 1 << 16
MOST_DESCRIPTORS = 4


def attached(message: dict[str, Any], descriptors: list[int]) -> bytes:
    """The contents of the files that came with a message: what a program wrote, or what a compiler made."""
    if "stdout" in message:  # these files are as large as they may become; so much of them was written
        sizes = [size for size in (message["stdout"], message["stderr"]) if size]
    else:
        sizes = [os.fstat(descriptor).st_size for descriptor in descriptors]
    return b"".join(os.pread(file, size, 0) for file, size in zip(descriptors, sizes, strict=True))
