"""Observations: fingerprint, serialization and text."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

import msgspec
import numpy as np

FINGERPRINT = 32  # characters: half of SHA-256 tells frames apart
LISTED = 64  # numbers that are listed; a larger array is shown as an image
COLUMNS = 24  # of an image in characters
DIGITS = 4  # of a number in text

_ARRAY, _TUPLE = 1, 2  # kinds of data that msgpack does not have
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_COLOURED = re.compile(r"\x1b\[([\d;]+)m(.*?)\x1b\[0m", re.DOTALL)
_ESCAPE = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")


def fingerprint(observation: Any) -> str:
    if type(observation) is np.ndarray and not observation.dtype.hasobject:
        try:
            return sha256(observation).hexdigest()[:FINGERPRINT]  # type: ignore[arg-type]
        except ValueError:  # not in one piece
            pass
    return sha256(pack(observation)).hexdigest()[:FINGERPRINT]


def pack(observation: Any) -> bytes:
    """Serializes an observation; arrays and tuples keep their types."""
    return msgspec.msgpack.encode(_packable(observation))


def unpack(data: bytes) -> Any:
    return msgspec.msgpack.decode(data, ext_hook=_unpacked)


def _packable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return _packable(value.tolist())
        head = (value.dtype.str, value.shape, np.ascontiguousarray(value).tobytes())
        return msgspec.msgpack.Ext(_ARRAY, msgspec.msgpack.encode(head))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(key): _packable(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return msgspec.msgpack.Ext(_TUPLE, msgspec.msgpack.encode([_packable(part) for part in value]))
    return [_packable(part) for part in value] if isinstance(value, list) else value


def _unpacked(kind: int, data: memoryview) -> Any:
    if kind == _TUPLE:
        return tuple(unpack(bytes(data)))
    dtype, shape, content = msgspec.msgpack.decode(bytes(data), type=tuple[str, tuple[int, ...], bytes])
    return np.frombuffer(content, dtype).reshape(shape).copy()


def in_words(observation: Any) -> str:
    """Describes an observation for a language model."""
    if isinstance(observation, dict):
        return "\n".join(f"{key}: {in_words(value)}" for key, value in observation.items())
    if isinstance(observation, tuple | list):
        return ", ".join(in_words(part) for part in observation)
    if isinstance(observation, np.ndarray):
        if observation.size <= LISTED:
            return _listed(observation)
        return _picture(observation)
    if isinstance(observation, np.generic):
        observation = observation.item()
    return f"{observation:.{DIGITS}g}" if isinstance(observation, float) else str(observation)


def without_escapes(text: str) -> str:
    """What a terminal would show, in plain characters: what was coloured is marked by the name of its colour."""
    return _ESCAPE.sub("", _COLOURED.sub(_named, text))


def _named(match: re.Match[str]) -> str:
    colours = [int(code) for code in match[1].split(";") if code and 30 <= int(code) <= 47]
    return f"<{_COLOURS[colours[0] % 10]}:{match[2]}>" if colours and colours[0] % 10 < 8 else match[2]


def _listed(array: np.ndarray[Any, Any]) -> str:
    if array.ndim > 1:
        return "\n".join(_listed(row) for row in array)
    return "[" + ", ".join(in_words(number) for number in array.reshape(-1)) + "]"


def _picture(array: np.ndarray[Any, Any]) -> str:
    """Shows the brightness of an image as coarse digits, or the shape and range of another array."""
    about = f"array of shape {array.shape}, from {in_words(array.min())} to {in_words(array.max())}"
    if array.ndim == 3 and array.shape[2] in (1, 3, 4):
        array = array[:, :, :3].mean(axis=2)
    if array.ndim != 2 or array.dtype.kind not in "uif":
        return about
    step = max(1, -(-array.shape[1] // COLUMNS))
    rows, columns = (size // step * step for size in array.shape)
    if not rows or not columns:
        return about
    coarse = array[:rows, :columns].reshape(rows // step, step, columns // step, step).mean(axis=(1, 3))
    low, high = float(coarse.min()), float(coarse.max())
    digits = np.zeros(coarse.shape, int) if low == high else ((coarse - low) / (high - low) * 9).round().astype(int)
    return f"{about}; its brightness, from 0 to 9:\n" + "\n".join("".join(map(str, row)) for row in digits)
