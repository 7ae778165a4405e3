"""BLEU: n-gram precision against references, of a corpus, and smoothed for single sentences."""

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
    """The n-gram counts of one prediction; BLEU is computed from their sums."""

    shared: tuple[int, ...]  # n-grams of 1, 2, … tokens that occur in a reference too
    possible: tuple[int, ...]  # all n-grams of 1, 2, … tokens
    length: int
    reference_length: int  # of the shortest reference


def bleu(
    predictions: Sequence[str],
    references: Sequence[str | Sequence[str]],
    max_order: int = MAX_ORDER,
    smooth: bool = False,
    tokenizer: Tokenizer | None = None,
) -> BleuScore:
    """Corpus BLEU (Papineni et al. 2002), equal to Hugging Face's metric "bleu".

    A prediction has one or several references.
    """
    pairs = pair_up(predictions, references)
    return bleu_of((overlap(prediction, expected, max_order, tokenizer) for prediction, expected in pairs), smooth)


def overlap(
    prediction: str,
    references: str | Sequence[str],
    max_order: int = MAX_ORDER,
    tokenizer: Tokenizer | None = None,
) -> Overlap:
    """The n-gram counts of one prediction, from which `bleu_of` computes BLEU of any selection."""
    if isinstance(references, str):
        references = [references]
    if not references:
        raise ValueError("a prediction needs at least one reference")
    tokenize = tokenizer or tokens_13a
    return _overlap(tokenize(prediction), [tokenize(reference) for reference in references], max_order)


def bleu_of(overlaps: Iterable[Overlap], smooth: bool = False) -> BleuScore:
    """BLEU of a corpus, from the overlaps of its predictions.

    Smoothing adds one to the counts of every order. Lin and Och (2004) exclude unigrams, but
    published scores include them. If either side has no tokens, the score is 0.
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

    Orders above one are smoothed as by Lin and Och (2004), and so are the lengths in the brevity
    penalty, so that the score of a prediction without tokens is defined.
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
        raise ValueError(f"max_order must be at least 1, not {max_order}")
    shared = []
    for order in range(1, max_order + 1):
        # Counts are clipped by the maximum over the references.
        allowed: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            allowed |= _ngrams(reference, order)
        shared.append((_ngrams(prediction, order) & allowed).total())
    possible = (max(0, len(prediction) - order + 1) for order in range(1, max_order + 1))
    return Overlap(tuple(shared), tuple(possible), len(prediction), min(map(len, references)))


def _ngrams(tokens: Tokens, order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


# The rules of NIST's mteval-v13a, applied in this order. The order affects scores: in "..5" the
# first full stop is split off, the second is not.
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_SPACING = (
    (re.compile(r"""([!"#$%&()*+/:;<=>?@[\\\]^_`{|}~])"""), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),  # not between digits: 3.14 and 1,000 are one token
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


def tokens_13a(text: str) -> list[str]:
    """Tokenize as mteval-v13a does."""
    # A hyphen at the end of a line joins two halves of a word.
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, sign in _ENTITIES:
        text = text.replace(entity, sign)
    text = f" {text} "
    for pattern, replacement in _SPACING:
        text = pattern.sub(replacement, text)
    return text.split()


def words(text: str) -> list[str]:
    """Lowercase words of letters and digits, and each other character by itself."""
    return re.findall(r"[^\W_]+|\S", text.lower())
