"""What every verb prints alike: a sentence on stderr, JSON on stdout."""

from __future__ import annotations

import sys
from typing import Any


def print_message(text: str) -> None:
    """One line on stderr, whatever an error message brought along."""
    print(f"proctor: {' '.join(text.split())}", file=sys.stderr)


def print_json(value: Any) -> None:
    import msgspec  # not before it is needed: the help comes without

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
