"""Removes the reasoning of a model from its output."""

from __future__ import annotations

import re

_NAME = r"(?:\w+:)?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad)"
_OPEN = rf"[<\[◁]{_NAME}[>\]▷]|<\|(?:begin_of_thought|start_thinking)\|>"
_CLOSE = rf"[<\[◁]/{_NAME}[>\]▷]|<\|(?:end_of_thought|end_thinking)\|>"
_BLOCK = re.compile(rf"(?:{_OPEN}).*?(?:{_CLOSE}|\Z)", re.DOTALL | re.IGNORECASE)
# If the chat template opens the reasoning, the output holds only its end. A channel ends
# it without a tag.
_OPENED_IN_PROMPT = re.compile(rf"\A.*(?:{_CLOSE}|<\|channel\|>final<\|message\|>)", re.DOTALL | re.IGNORECASE)
_PROBE = "answer"


def strip_reasoning(text: str) -> str:
    """Removes the text between <think> and </think>, or after a <think> that never ends.

    Other tags of models count, too, such as <reasoning> and [THINK].
    """
    return _OPENED_IN_PROMPT.sub("", _BLOCK.sub("", text)).strip()


def reasoning_is_open(text: str) -> bool:
    """Whether the text ends inside a reasoning block that was never closed."""
    # A text after an open block is removed with the block.
    return not strip_reasoning(f"{text}\n{_PROBE}").endswith(_PROBE)
