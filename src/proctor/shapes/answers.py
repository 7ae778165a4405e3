"""Typed parsers: what a candidate's text says, or None when it says nothing definite."""

from __future__ import annotations

import re

_THOUGHT = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL)
_YES_NO = re.compile(r"\b(yes|no)\b", re.IGNORECASE)


def parse_yes_no(text: str) -> str | None:
    """Yes or No: the first word if it is one, else the only one of the two that occurs."""
    text = _THOUGHT.sub("", text)
    first = re.match(r"\W*(yes|no)\b", text, re.IGNORECASE)
    if first:
        return first[1].capitalize()
    found = {word.capitalize() for word in _YES_NO.findall(text)}
    return found.pop() if len(found) == 1 else None
