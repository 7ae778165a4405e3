"""What can be asked of a store besides whole records, and what it answers."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

RecordKey = tuple[int, int]  # index of the sample, epoch


class RecordFilter(Struct, frozen=True):
    """Which records of a run: those of which all that is given is true."""

    outcome: str = ""  # pass (the full score), fail (less), or the name of an outcome: error, unparsed, timeout …
    text: str = ""  # in id, prompt, answers, reasons and errors, whatever the case
    metadata: dict[str, str] = {}  # key -> value as text
    starred: bool = False
    commented: bool = False


class RecordSummary(Struct, frozen=True):
    """A record in brief."""

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
    """Where a record stands among the wanted ones. One that is not wanted has neighbours all the same."""

    position: int  # how many of the wanted ones come before it
    before: RecordKey | None
    after: RecordKey | None


class RecordColumns(Struct, frozen=True):
    """All records of a run as columns of equal length, in the order of the exam."""

    sample: tuple[int, ...] = ()
    sample_id: tuple[str, ...] = ()
    epoch: tuple[int, ...] = ()
    outcome: tuple[str, ...] = ()
    value: tuple[float | None, ...] = ()  # None where nothing could be scored
    digest: tuple[bytes, ...] = ()  # of what was asked
    cluster: tuple[str, ...] = ()


class Review(Struct, frozen=True):
    """What a person says of a record. Of one author's reviews of a kind, the newest counts."""

    run: str
    sample: int
    epoch: int
    author: str
    kind: Literal["star", "comment", "score"]
    body: bool | float | str  # of a star: whether it is one; of a comment: its text, or none; of a score: the value
    created: float = 0.0  # seconds since 1970; given by the store

    def __post_init__(self) -> None:
        if self.kind == "score" and type(self.body) is int:
            force_setattr(self, "body", float(self.body))
        if not isinstance(self.body, {"star": bool, "comment": str, "score": float}[self.kind]):
            raise ValueError(f"a {self.kind} cannot be {self.body!r}")
        if self.kind == "score" and not 0 <= float(self.body) <= 1:
            raise ValueError(f"a score lies between 0 and 1, not {self.body!r}")
        if not self.author.strip():
            raise ValueError("a review needs an author")
