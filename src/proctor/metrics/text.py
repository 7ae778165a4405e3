"""Text similarity: exact match, edit distance and sacreBLEU."""

from __future__ import annotations

import re
import string
from collections import defaultdict
from collections.abc import Sequence
from typing import TypedDict

from proctor.core.extras import import_extra
from proctor.metrics.pairs import pair_up


class SacreBleuScore(TypedDict):
    score: float
    counts: list[int]
    totals: list[int]
    precisions: list[float]
    bp: float
    sys_len: int
    ref_len: int


def exact_match(
    predictions: Sequence[str],
    references: Sequence[str],
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    ignore_numbers: bool = False,
    regexes_to_ignore: Sequence[str] | None = None,
) -> dict[str, float]:
    """The share of predictions that equal their references, as Hugging Face's "exact_match".

    Matches of the expressions are removed first, then what the other options ignore.
    """
    ignored = string.punctuation * ignore_punctuation + string.digits * ignore_numbers
    ignored_characters = str.maketrans("", "", ignored)

    def normalize(text: str) -> str:
        for expression in regexes_to_ignore or ():
            text = re.sub(expression, "", text)
        return (text.lower() if ignore_case else text).translate(ignored_characters)

    matches = [
        normalize(prediction) == normalize(reference) for prediction, reference in pair_up(predictions, references)
    ]
    return {"exact_match": sum(matches) / len(matches)}


def edit_similarity(prediction: str, reference: str) -> float:
    """1 minus Levenshtein's distance as a share of the longer text: 1 for equal texts."""
    longer = max(len(prediction), len(reference))
    return 1 - edit_distance(prediction, reference) / longer if longer else 1.0


def edit_distance(a: str, b: str) -> int:
    """Levenshtein's distance: the minimal number of insertions, deletions and substitutions.

    Hyyrö's variant (2003) of Myers's bit-vector algorithm: each character of `b` updates a whole
    column of the distance matrix, whose neighbouring cells differ by -1, 0 or 1, as two bit sets.
    """
    if not a:
        return len(b)
    positions: defaultdict[str, int] = defaultdict(int)
    for position, character in enumerate(a):
        positions[character] |= 1 << position
    column = (1 << len(a)) - 1
    last = 1 << (len(a) - 1)

    distance = len(a)
    rises, falls = column, 0  # where the distance is one more or one less than in the row above
    for character in b:
        equal = positions.get(character, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal | falls
        right_rises = falls | (column & ~(diagonal | rises))
        right_falls = rises & diagonal
        distance += bool(right_rises & last) - bool(right_falls & last)
        right_rises = (right_rises << 1 | 1) & column
        right_falls = right_falls << 1 & column
        rises = right_falls | (column & ~(diagonal | right_rises))
        falls = right_rises & diagonal
    return distance


def corpus_bleu(
    predictions: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    smooth_method: str = "exp",
    smooth_value: float | None = None,
    force: bool = False,
    lowercase: bool = False,
    tokenize: str | None = None,
    use_effective_order: bool = False,
) -> SacreBleuScore:
    """sacreBLEU from 0 to 100, with the names of Hugging Face's "sacrebleu"; 13a tokens by default."""
    sacrebleu = import_extra("sacrebleu", "corpus_bleu()", "sacrebleu")

    candidates, expected = zip(*pair_up(predictions, references), strict=True)
    several = [[reference] if isinstance(reference, str) else reference for reference in expected]
    if len(set(map(len, several))) > 1:
        raise ValueError("sacreBLEU needs the same number of references for every prediction")
    score = sacrebleu.corpus_bleu(
        candidates,
        list(zip(*several, strict=True)),
        smooth_method=smooth_method,
        smooth_value=smooth_value,
        force=force,
        lowercase=lowercase,
        tokenize=tokenize or "13a",
        use_effective_order=use_effective_order,
    )
    return {
        "score": score.score,
        "counts": score.counts,
        "totals": score.totals,
        "precisions": score.precisions,
        "bp": score.bp,
        "sys_len": score.sys_len,
        "ref_len": score.ref_len,
    }
