"""BLEU of CodeXGLUE's code-to-text: of single sentences, smoothed, as means over all of them times 100."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from proctor.metrics.bleu import overlap, smoothed_bleu, words

Texts = dict[str, list[str]]


def splitPuncts(line: str) -> str:  # noqa: N802
    """Words and signs, apart from each other."""
    return " ".join(re.findall(r"\w+|[^\s\w]", line))


def computeMaps(predictions: Iterable[str], goldfile: str) -> tuple[Texts, Texts]:  # noqa: N802
    """References and predictions by their number, from lines of number, tab and text."""
    predicted = {number: [_essence(text)] for number, text in map(_numbered, predictions)}
    gold: Texts = {}
    for number, text in map(_numbered, Path(goldfile).read_text().splitlines()):
        if number in predicted:
            gold.setdefault(number, []).append(_essence(text))
    return gold, predicted


def bleuFromMaps(m1: Mapping[str, Sequence[str]], m2: Mapping[str, Sequence[str]]) -> list[float]:  # noqa: N802
    """Of references and predictions: smoothed BLEU, and the precisions of 1 to 4 words in a row."""
    scores = [bleu(references, m2[number][0]) for number, references in m1.items() if number in m2]
    return [100 * fmean(column) for column in zip(*scores, strict=True)]


def bleu(refs: Sequence[str], candidate: str) -> list[float]:
    found = overlap(candidate, refs, tokenizer=words)
    precisions = [s / p if p else 0.0 for s, p in zip(found.shared, found.possible, strict=True)]
    return [smoothed_bleu(candidate, refs), *precisions]


def _numbered(row: str) -> tuple[str, str]:
    number, _, text = row.strip().partition("\t")
    return number, text.partition("\t")[0]


def _essence(text: str) -> str:
    return splitPuncts(text.strip().lower())
