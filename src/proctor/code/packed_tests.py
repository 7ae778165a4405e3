"""Reads test cases of LiveCodeBench: JSON, or pickled, compressed JSON in base64.

Unpickling runs code, so only opcodes that make strings, lists and dicts are allowed.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import pickle
import pickletools
import zlib
from typing import Any

import msgspec
from msgspec import Struct

from proctor.core.errors import MissingDataError

_LARGEST = 1 << 30  # bytes, against decompression bombs
_ALLOWED_OPCODES = frozenset({
    "PROTO", "FRAME", "STOP", "MARK", "MEMOIZE", "BINPUT", "BINGET", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE",
    "BINUNICODE8", "EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_DICT", "SETITEM", "SETITEMS",
})  # fmt: skip


class PackedTest(Struct, frozen=True):
    """One test: stdin and stdout, or arguments and result of a function in JSON."""

    input: str
    output: str


def cases_of(packed: Any) -> list[PackedTest]:
    """The test cases in a column of a row."""
    if isinstance(packed, str):
        try:
            packed = json.loads(packed or "[]")
        except ValueError:
            packed = _unpacked(packed)
    if isinstance(packed, str):
        packed = json.loads(packed)
    try:
        return msgspec.convert(packed, list[PackedTest])
    except msgspec.ValidationError as error:
        raise MissingDataError(f"These are not test cases of LiveCodeBench: {error}.") from None


def _unpacked(text: str) -> Any:
    try:
        stream = zlib.decompressobj()
        content = stream.decompress(base64.b64decode(text, validate=True), _LARGEST)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise MissingDataError(f"Test cases are neither JSON nor compressed: {error}.") from None
    if stream.unconsumed_tail:
        raise MissingDataError(f"Test cases are larger than {_LARGEST >> 20} MiB.")
    return load_plain_pickle(content)


def load_plain_pickle(content: bytes) -> Any:
    """Unpickles strings, lists and dicts."""
    try:
        used = {opcode.name for opcode, _, _ in pickletools.genops(content)}
        if used <= _ALLOWED_OPCODES:
            return _PlainUnpickler(io.BytesIO(content)).load()
    except (ValueError, pickle.UnpicklingError, EOFError, IndexError, TypeError, KeyError) as error:
        raise MissingDataError(f"Test cases cannot be read: {error}.") from None
    forbidden = ", ".join(sorted(used - _ALLOWED_OPCODES))
    raise MissingDataError(f"Test cases have pickle opcodes that are not allowed: {forbidden}.")


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is not a str, list or dict")
