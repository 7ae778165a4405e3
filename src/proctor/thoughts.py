"""The thinking aloud of a model, which is no part of its answer."""

from __future__ import annotations

import re

_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_BEGUN_IN_THE_PROMPT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_APPENDED = "answer"


def without_thoughts(text: str) -> str:
    """The text without what stands between <think> and </think>, or after a <think> that never ends.

    Where a chat template begins the thought, only its end is in the text.
    """
    return _BEGUN_IN_THE_PROMPT.sub("", _THOUGHT.sub("", text)).strip()


def reasoning_is_open(text: str) -> bool:
    """Whether the text ends inside a reasoning block that was never closed."""
    # Whatever is appended to such a block is removed with it.
    return not without_thoughts(f"{text}\n{_APPENDED}").endswith(_APPENDED)
