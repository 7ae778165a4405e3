"""The harness's `utils`, as far as task files use them."""

from __future__ import annotations


def remove_after_return(code: str) -> str:
    """The first function in the code: its first line, and those that are indented or empty after it."""
    lines = code.split("\n")
    begin = next((number for number, line in enumerate(lines) if line), len(lines))
    for number, line in enumerate(lines[begin + 1 :], begin + 1):
        if line[:1].strip():
            return "\n".join(lines[:number]) + "\n"
    return code
