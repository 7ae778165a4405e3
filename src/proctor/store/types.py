"""Types of the store's queries and their results."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

RecordKey = tuple[int, int]  # index of the sample, epoch


class RecordFilter(Struct, frozen=True):
    """Selects the records of a run that meet all given conditions."""

    outcome: str = ""  # pass (the full score), fail (less), or the name of an outcome: error, unparsed, timeout …
    text: str = ""  # in id, prompt, outputs, reasons and errors, case-insensitive
    metadata: dict[str, str] = {}  # key -> value as text
    starred: bool = False
    commented: bool = False


class RecordSummary(Struct, frozen=True):
    """A record as a line of a list."""

    sample: int
    sample_id: str
    epoch: int
    outcome: str
    value: float | None
    answer: str  # its beginning
    cluster: str
    starred: bool
    comments: int
    seconds: float
    tokens: int


class Neighbours(Struct, frozen=True):
    """The position of a record among the matches of a filter, which it need not match itself."""

    position: int  # the number of matches before it
    before: RecordKey | None
    after: RecordKey | None


class RecordColumns(Struct, frozen=True):
    """All records of a run as columns of equal length, in the order of the samples."""

    sample: tuple[int, ...] = ()
    sample_id: tuple[str, ...] = ()
    epoch: tuple[int, ...] = ()
    outcome: tuple[str, ...] = ()
    value: tuple[float | None, ...] = ()  # None without a score
    digest: tuple[bytes, ...] = ()  # of the sample
    cluster: tuple[str, ...] = ()


class Review(Struct, frozen=True):
    """A person's star, comment or score on a record; each author's newest of a kind counts."""

    run: str
    sample: int
    epoch: int
    author: str
    kind: Literal["star", "comment", "score"]
    body: bool | float | str  # a star: set or not; a comment: its text, empty to delete; a score: its value
    created: float = 0.0  # seconds since 1970; set by the store

    def __post_init__(self) -> None:
        if self.kind == "score" and type(self.body) is int:
            force_setattr(self, "body", float(self.body))
        if not isinstance(self.body, {"star": bool, "comment": str, "score": float}[self.kind]):
            raise ValueError(f"a {self.kind} cannot be {self.body!r}")
        if self.kind == "score" and not 0 <= float(self.body) <= 1:
            raise ValueError(f"a score lies between 0 and 1, not {self.body!r}")
        if not self.author.strip():
            raise ValueError("a review needs an author")
