"""BLEU, how many short runs of words two texts share: over a corpus, and smoothed for single sentences."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypedDict

from proctor.metrics.pairs import pair_up

MAX_ORDER = 4

Tokens = Sequence[str]
Tokenizer = Callable[[str], Tokens]


class BleuScore(TypedDict):
    bleu: float
    precisions: list[float]
    brevity_penalty: float
    length_ratio: float
    translation_length: int
    reference_length: int


class Overlap(NamedTuple):
    """What one prediction has in common with its references; BLEU is made of sums of these."""

    shared: tuple[int, ...]  # runs of 1, 2, … tokens that occur in a reference too
    possible: tuple[int, ...]  # all runs of 1, 2, … tokens
    length: int
    reference_length: int  # of the shortest reference


def bleu(
    predictions: Sequence[str],
    references: Sequence[str | Sequence[str]],
    max_order: int = MAX_ORDER,
    smooth: bool = False,
    tokenizer: Tokenizer | None = None,
) -> BleuScore:
    """Papineni et al. 2002, equal to Hugging Face's metric "bleu". References are one or several per prediction."""
    pairs = pair_up(predictions, references)
    return bleu_of((overlap(prediction, expected, max_order, tokenizer) for prediction, expected in pairs), smooth)


def overlap(
    prediction: str,
    references: str | Sequence[str],
    max_order: int = MAX_ORDER,
    tokenizer: Tokenizer | None = None,
) -> Overlap:
    """The part of BLEU that needs the texts, once per prediction; `bleu_of` may then be asked for many selections."""
    if isinstance(references, str):
        references = [references]
    if not references:
        raise ValueError("a prediction needs at least one reference")
    tokenize = tokenizer or tokens_13a
    return _overlap(tokenize(prediction), [tokenize(reference) for reference in references], max_order)


def bleu_of(overlaps: Iterable[Overlap], smooth: bool = False) -> BleuScore:
    """BLEU of a corpus, from the overlaps of its predictions.

    Smoothing adds one to the counts of every order. Lin and Och (2004) leave out single tokens, but the figures that
    people compare with have them. Where either side has no token at all, the score is 0.
    """
    overlaps = list(overlaps)
    if not overlaps:
        raise ValueError("BLEU of no predictions is not defined")
    shared = map(sum, zip(*(one.shared for one in overlaps), strict=True))
    possible = map(sum, zip(*(one.possible for one in overlaps), strict=True))
    length = sum(one.length for one in overlaps)
    reference_length = sum(one.reference_length for one in overlaps)

    extra = 1 if smooth else 0
    precisions = [(s + extra) / (p + extra) if p + extra > 0 else 0.0 for s, p in zip(shared, possible, strict=True)]
    weight = 1 / len(precisions)
    mean_precision = math.exp(sum(weight * math.log(p) for p in precisions)) if min(precisions) > 0 else 0.0
    if length and reference_length:
        length_ratio = length / reference_length
        brevity_penalty = 1.0 if length_ratio > 1 else math.exp(1 - 1 / length_ratio)
    else:
        length_ratio = brevity_penalty = 0.0
    return {
        "bleu": mean_precision * brevity_penalty,
        "precisions": precisions,
        "brevity_penalty": brevity_penalty,
        "length_ratio": length_ratio,
        "translation_length": length,
        "reference_length": reference_length,
    }


def smoothed_bleu(prediction: str, references: str | Sequence[str]) -> float:
    """BLEU of one sentence, in [0, 1], as CodeXGLUE measures summaries of code.

    Orders above one are smoothed as by Lin and Och (2004), and so are the lengths in the brevity penalty: a
    prediction without tokens is not undefined, it only is too short.
    """
    shared, possible, length, reference_length = overlap(prediction, references, tokenizer=words)
    if length and not shared[0]:
        return 0.0
    smoothed = [(s + 1) / (p + 1) for s, p in zip(shared[1:], possible[1:], strict=True)]
    precisions = [shared[0] / possible[0] if length else 1.0, *smoothed]
    log_precision = sum(math.log(p) for p in precisions) / MAX_ORDER
    return math.exp(log_precision + min(0.0, 1 - (reference_length + 1) / (length + 1)))


def _overlap(prediction: Tokens, references: Sequence[Tokens], max_order: int) -> Overlap:
    if max_order < 1:
        raise ValueError(f"BLEU counts runs of at least one token: max_order is {max_order}")
    shared = []
    for order in range(1, max_order + 1):
        # A run counts as often as in the one reference that has it most often.
        allowed: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            allowed |= _runs(reference, order)
        shared.append((_runs(prediction, order) & allowed).total())
    possible = (max(0, len(prediction) - order + 1) for order in range(1, max_order + 1))
    return Overlap(tuple(shared), tuple(possible), len(prediction), min(map(len, references)))


def _runs(tokens: Tokens, order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


# The rules of NIST's mteval-v13a, which are applied one after the other. They are kept to the letter, since a
# consequence of their order is part of the figures: in "..5" the first full stop stands alone, the second does not.
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_SPACING = (
    (re.compile(r"""([!"#$%&()*+/:;<=>?@[\\\]^_`{|}~])"""), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),  # not between digits: 3.14 and 1,000 are one token
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


def tokens_13a(text: str) -> list[str]:
    """Words, numbers and signs, as mteval-v13a tells them apart."""
    # A hyphen at the end of a line joins the halves of a word.
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, sign in _ENTITIES:
        text = text.replace(entity, sign)
    text = f" {text} "
    for pattern, replacement in _SPACING:
        text = pattern.sub(replacement, text)
    return text.split()


def words(text: str) -> list[str]:
    """Runs of letters and digits, and every other sign by itself; case does not count."""
    return re.findall(r"[^\W_]+|\S", text.lower())
