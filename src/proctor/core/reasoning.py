"""The reasoning of a model, which is no part of its answer."""

from __future__ import annotations

import re

_NAME = r"(?:\w+:)?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad)"
_OPEN = rf"[<\[◁]{_NAME}[>\]▷]|<\|(?:begin_of_thought|start_thinking)\|>"
_CLOSE = rf"[<\[◁]/{_NAME}[>\]▷]|<\|(?:end_of_thought|end_thinking)\|>"
_THOUGHT = re.compile(rf"(?:{_OPEN}).*?(?:{_CLOSE}|\Z)", re.DOTALL | re.IGNORECASE)
# Where a chat template begins the reasoning, only its end is in the text. A channel ends it without a tag.
_BEGUN_IN_THE_PROMPT = re.compile(rf"\A.*(?:{_CLOSE}|<\|channel\|>final<\|message\|>)", re.DOTALL | re.IGNORECASE)
_APPENDED = "answer"


def strip_reasoning(text: str) -> str:
    """The text without what stands between <think> and </think>, or after a <think> that never ends.

    The same goes for the other names that models give to it, such as <reasoning> and [THINK].
    """
    return _BEGUN_IN_THE_PROMPT.sub("", _THOUGHT.sub("", text)).strip()


def reasoning_is_open(text: str) -> bool:
    """Whether the text ends inside a reasoning block that was never closed."""
    # Whatever is appended to such a block is removed with it.
    return not strip_reasoning(f"{text}\n{_APPENDED}").endswith(_APPENDED)
