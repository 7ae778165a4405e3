"""The answers of a task of your own, where they are a closed set."""

from __future__ import annotations

import re
from functools import lru_cache

from proctor.shapes.replies.markup import plain_sentences
from proctor.shapes.replies.reader import CACHED, Kind, Mention, Mentions, definite


@lru_cache(maxsize=64)
def choice_of(choices: tuple[str, ...]) -> Kind:
    spelled = {" ".join(plain_sentences(choice.casefold())): choice for choice in choices}
    if len(spelled) < len(set(choices)) or "" in spelled:
        raise ValueError(f"choices that cannot be told apart in a text: {', '.join(choices)}")
    longest_first = sorted(spelled, key=len, reverse=True)
    words = "|".join(r"\s+".join(map(re.escape, key.split())) for key in longest_first if len(key) > 1)
    # A single letter is an answer where it stands alone: "A." and "(A)", but not "A square".
    letters = "".join(re.escape(spelled[key]) for key in longest_first if len(key) == 1)
    pattern = re.compile(
        rf"(?<!\w)(?:(?i:{words or '(?!)'})|[{letters or chr(0)}](?=\W*$|\s*[^\w\s]|\s+(?:because|since|as|is|and|"
        rf"or|it is)\b))(?!\w)"
    )

    @lru_cache(maxsize=CACHED)
    def find(passage: str) -> Mentions:
        found = ((m.start(), m.end(), " ".join(m[0].casefold().split())) for m in pattern.finditer(passage))
        return definite(passage, (Mention(start, end, spelled[key]) for start, end, key in found))

    return Kind(find, polar="no" in spelled)
