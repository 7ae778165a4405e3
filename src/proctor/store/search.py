"""Search: the searchable text and metadata of a record, and the SQL conditions of a filter."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from proctor.core.types import Record
from proctor.store.types import RecordFilter

SEPARATOR = "\x1f"  # before and after each pair of metadata
NUMBER = re.compile(r"-?\d{1,300}(\.\d{1,300})?([eE][-+]?\d{1,3})?", re.ASCII)


def search_row(run_id: str, record: Record) -> tuple[str, int, int, str, str]:
    """The row of a record in the table `searched`."""
    metadata = SEPARATOR.join([_pair(key, value) for key, value in record.sample.metadata.items()])
    return (run_id, record.sample.index, record.epoch, search_text(record), f"{SEPARATOR}{metadata}{SEPARATOR}")


def search_text(record: Record) -> str:
    """Id, prompt, outputs, and the reason of the score or the error."""
    sample, score, error = record.sample, record.score, record.error
    prompt = [sample.input] if isinstance(sample.input, str) else [message.text for message in sample.input]
    parts = [sample.id, *prompt, *(output.text for output in record.outputs)]
    if score is not None:
        parts += [as_text(score.answer), score.why]
    if error is not None:
        parts += [error.type, error.message]
    return fold_text("\n".join(parts))


def fold_text(text: str) -> str:
    """Fold case, and drop NUL characters, which databases reject in text."""
    return text.casefold().replace("\0", "")


def metadata_terms(key: str, value: str) -> list[str]:
    """The terms that match a metadata value: a number has several spellings."""
    forms = [value]
    if NUMBER.fullmatch(value) and math.isfinite(number := float(value)):
        forms += [as_text(number), str(int(number))] if number.is_integer() else [as_text(number)]
    return [f"{SEPARATOR}{_pair(key, form)}{SEPARATOR}" for form in dict.fromkeys(forms)]


def conditions_on_words(record_filter: RecordFilter) -> tuple[list[str], list[str]]:
    """Conditions on the table `searched`."""
    conditions, values = [], []
    if record_filter.text:
        conditions.append("{find}(words, ?) > 0")
        values.append(fold_text(record_filter.text))
    for key, value in record_filter.metadata.items():
        pairs = metadata_terms(key, value)
        conditions.append(f"({' OR '.join(['{find}(metadata, ?) > 0'] * len(pairs))})")
        values += pairs
    return conditions, values


def conditions_on_outcome(outcome: str) -> tuple[list[str], list[str]]:
    """Conditions on the table `records`."""
    match outcome:
        case "":
            return [], []
        case "pass":
            return ["(value >= 1 OR outcome = ?)"], [outcome]
        case "fail":
            return ["(value < 1 OR outcome = ?)"], [outcome]
        case _:
            return ["outcome = ?"], [outcome]


def metadata_key(key: str) -> str:
    """The term that matches any value of a metadata key."""
    return f"{SEPARATOR}{_pair(key, '')}"


def value_after(key: str, metadata: str) -> str:
    """The value that follows a key in searchable metadata."""
    return metadata.partition(key)[2].partition(SEPARATOR)[0]


def _pair(key: str, value: Any) -> str:
    return f"{key}={as_text(value)}".replace("\0", "").replace(SEPARATOR, "")


def as_text(value: Any) -> str:
    """Text as it is, None as empty text, other values as JSON."""
    if isinstance(value, str):
        return value
    if type(value) is int:  # equals its JSON, but is faster
        return str(value)
    return "" if value is None else msgspec.json.encode(value).decode()
