"""Messages on stderr and JSON on stdout, for all verbs."""

from __future__ import annotations

import sys
from typing import Any


def print_message(text: str) -> None:
    """Prints the text as one line on stderr."""
    print(f"proctor: {' '.join(text.split())}", file=sys.stderr)


def print_json(value: Any) -> None:
    import msgspec  # lazy: --help does without it

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
