"""ROUGE (Lin 2004): overlap of two texts by n-grams and by longest common subsequences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean

from proctor.metrics.pairs import pair_up

Words = list[str]
Tokenizer = Callable[[str], Words]


def rouge(
    predictions: Sequence[str],
    references: Sequence[str | Sequence[str]],
    rouge_types: Sequence[str] | None = None,
    use_aggregator: bool = True,
    tokenizer: Tokenizer | None = None,
) -> dict[str, float] | dict[str, list[float]]:
    """F-measures with the names of Hugging Face's metric "rouge"; the best of several references.

    Hugging Face reports bootstrap medians, which vary slightly; these are means.
    """
    pairs = pair_up(predictions, references)
    scores = {
        name: [
            max(_score(name, prediction, reference, tokenizer or words) for reference in _as_references(expected))
            for prediction, expected in pairs
        ]
        for name in rouge_types or ("rouge1", "rouge2", "rougeL", "rougeLsum")
    }
    return {name: fmean(of_all) for name, of_all in scores.items()} if use_aggregator else scores


def words(text: str) -> Words:
    """Lowercase words of letters and digits; other characters are dropped."""
    return re.findall(r"[a-z0-9]+", text.lower())


def _as_references(references: str | Sequence[str]) -> Sequence[str]:
    return [references] if isinstance(references, str) else references


def _score(name: str, prediction: str, reference: str, tokenize: Tokenizer) -> float:
    if name == "rougeLsum":
        return _by_sentences(_sentences(prediction, tokenize), _sentences(reference, tokenize))
    measure = _lcs_measure if name == "rougeL" else partial(_ngram_measure, length=_ngram_length(name))
    return measure(tokenize(prediction), tokenize(reference))


def _ngram_length(name: str) -> int:
    if not re.fullmatch(r"rouge[1-9]", name):
        raise ValueError(f"unknown ROUGE type {name!r}: expected rouge1, rouge2 …, rougeL or rougeLsum")
    return int(name[-1])


def _ngram_measure(prediction: Words, reference: Words, length: int) -> float:
    predicted, expected = _count_ngrams(prediction, length), _count_ngrams(reference, length)
    return _f_measure((predicted & expected).total(), predicted.total(), expected.total())


def _count_ngrams(words: Words, length: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[i:] for i in range(length)), strict=False))


def _lcs_measure(prediction: Words, reference: Words) -> float:
    return _f_measure(len(_common_positions(reference, prediction)), len(prediction), len(reference))


def _by_sentences(prediction: list[Words], reference: list[Words]) -> float:
    """The union of each reference sentence's common subsequences with all predicted sentences;
    each word of the prediction counts once."""
    unused = Counter(word for sentence in prediction for word in sentence)
    lengths = sum(map(len, prediction)), sum(map(len, reference))
    shared = 0
    for sentence in reference:
        positions = set().union(*(_common_positions(sentence, other) for other in prediction))
        for word in (sentence[position] for position in sorted(positions)):
            if unused[word] > 0:
                unused[word] -= 1
                shared += 1
    return _f_measure(shared, *lengths)


def _sentences(text: str, tokenize: Tokenizer) -> list[Words]:
    return [tokenize(line) for line in text.split("\n") if line]


def _common_positions(one: Words, other: Words) -> list[int]:
    """Positions in the first text of its longest common subsequence with the other."""
    lengths = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, word in enumerate(one, 1):
        for j, another in enumerate(other, 1):
            lengths[i][j] = lengths[i - 1][j - 1] + 1 if word == another else max(lengths[i - 1][j], lengths[i][j - 1])
    positions = []
    i, j = len(one), len(other)
    while i and j:
        if one[i - 1] == other[j - 1]:
            positions.append(i - 1)
            i, j = i - 1, j - 1
        elif lengths[i][j - 1] > lengths[i - 1][j]:
            j -= 1
        else:
            i -= 1
    return positions


def _f_measure(shared: int, predicted: int, expected: int) -> float:
    return 2 * shared / (predicted + expected) if shared else 0.0
