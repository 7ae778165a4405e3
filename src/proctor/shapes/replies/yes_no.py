"""What a reply to a question for Yes or No says about what was asked, without the words Yes and No.

`tell` reads one sentence, and returns an answer only where the sentence is about the very thing; `state` is its looser
form, for the last sentence of a reply; `whole` looks at a reply in which no sentence answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from proctor.shapes.replies.between import between_about
from proctor.shapes.replies.claims import claim_about
from proctor.shapes.replies.comparisons import comparison_about
from proctor.shapes.replies.polar import YES_NO
from proctor.shapes.replies.presence import presence_about
from proctor.shapes.replies.reader import Kind
from proctor.shapes.replies.statements import Attributes, attributes

Whole = Callable[[Sequence[str]], str | None]
ABOUT = (between_about, presence_about, comparison_about, claim_about)


def yes_no_about(question: str) -> Kind:
    kind = next(filter(None, (about(question) for about in ABOUT)), YES_NO)
    asked = attributes(question.partition("?")[0])
    kind = replace(kind, whole=partial(_whole, kind.whole))
    return replace(kind, is_asked=partial(_asks_for, asked)) if asked else kind


_CERTAINLY = re.compile(
    r"\W*(?:absolutely|definitely|exactly|precisely|undoubtedly|without (?:a |any )?doubt|for sure)\W*", re.I
)
_BEGINS = re.compile(
    r"\b(?:let me|let's|i will|i'll|here's|here (?:is|are)|happy|help|i'd|first|step|can you|"
    r"could you)\b",
    re.I,
)


def _whole(whole: Whole, sentences: Sequence[str]) -> str | None:
    return whole(sentences) or say_certainly(sentences)


def say_certainly(sentences: Sequence[str]) -> str | None:
    certain = (
        sentences
        and any(map(_CERTAINLY.fullmatch, (sentences[0], sentences[-1])))
        and not _BEGINS.search(" ".join(sentences))
    )
    return "Yes" if certain else None


def _asks_for(asked: Attributes, sentence: str) -> bool:
    """Whether a question within a reply may be the one that was asked."""
    return (attributes(sentence) or asked) == asked
