"""Which samples of two runs belong together, and whether the runs can be compared at all."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from msgspec import Struct

from proctor.core.config import FIELDS
from proctor.core.errors import NotComparableError
from proctor.core.loading import is_task_file
from proctor.core.types import Run
from proctor.store.store import Store
from proctor.store.types import RecordColumns

# What decides how a score comes about, though the samples may be the same.
MARKING = ("program_timeout",)
# What decides which samples there are, and how they are asked. Their digests tell; these say why.
ASKING = (
    "data",
    "limit",
    "limit_start",
    "seed",
    "few_shot",
    "shots",
    "modality",
    "api",
    "prefix",
    "instruction_tokens",
    "fim",
)


class Answered(Struct, frozen=True, gc=False):
    """A sample of a run, with the mean of its epochs."""

    sample: int
    sample_id: str
    digest: bytes
    cluster: str
    value: float | None  # None where nothing could be scored


class Pairs(Struct, frozen=True):
    """The samples that two runs share and both have scored, in the order of the exam."""

    first: list[Answered]
    second: list[Answered]
    unscored: tuple[int, int]  # shared samples that the first has not scored, and that the second has not
    alone: tuple[int, int]  # samples that only the first has, and that only the second has
    asked_differently: int


class RunSamples:
    """All samples of a run."""

    def __init__(self, store: Store, run: Run) -> None:
        self.run = run
        self.status = store.status(run)
        self.samples = _samples(store.columns(run))

    @property
    def scored(self) -> list[float]:
        return [sample.value for sample in self.samples if sample.value is not None]

    def keyed(self, by_id: bool) -> dict[Hashable, Answered]:
        """By what was asked, which includes the id; or by the id alone, and the place in the exam."""
        if by_id:
            return {(sample.sample, sample.sample_id): sample for sample in self.samples}
        return {sample.digest: sample for sample in self.samples}


def pair(first: RunSamples, second: RunSamples, *, shared: bool = False, by_id: bool = False) -> Pairs:
    """Refuses with a reason what would compare different things.

    With `shared`, samples that only one run has are left out. With `by_id`, samples that were asked in different ways
    (few-shot, modality …) are paired all the same.
    """
    _refuse_other_exams(first.run, second.run)
    ours, theirs = first.keyed(by_id), second.keyed(by_id)
    common = [key for key in ours if key in theirs]
    alone = (len(ours) - len(common), len(theirs) - len(common))
    if not common or (any(alone) and not shared):
        raise NotComparableError(_other_samples(first, second, len(common), shared, by_id))
    both = [(ours[key], theirs[key]) for key in common]
    scored = [(a, b) for a, b in both if a.value is not None and b.value is not None]
    return Pairs(
        first=[a for a, _ in scored],
        second=[b for _, b in scored],
        unscored=(sum(a.value is None for a, _ in both), sum(b.value is None for _, b in both)),
        alone=alone,
        asked_differently=sum(a.digest != b.digest for a, b in both),
    )


def differing(first: Run, second: Run, keys: Sequence[str]) -> str:
    """Which of these options are not the same, in words."""
    # An option that is newer than a run had its default then.
    pairs = ((key, *(run.config.get(key, FIELDS[key].default) for run in (first, second))) for key in keys)
    return ", ".join(f"{key} {_said(one)} and {_said(other)}" for key, one, other in pairs if one != other)


def _samples(values: RecordColumns) -> list[Answered]:
    rows = zip(values.sample, values.sample_id, values.digest, values.cluster, values.value, strict=True)
    if not any(values.epoch):
        return [Answered(*row) for row in rows]
    found: dict[int, tuple[str, bytes, str]] = {}
    scores: dict[int, list[float]] = {}
    for sample, sample_id, digest, cluster, value in rows:
        found[sample] = (sample_id, digest, cluster)
        of_one = scores.setdefault(sample, [])
        if value is not None:
            of_one.append(value)
    return [
        Answered(sample, *rest, sum(scores[sample]) / len(scores[sample]) if scores[sample] else None)
        for sample, rest in found.items()
    ]


def _refuse_other_exams(first: Run, second: Run) -> None:
    both = f"{first.id} and {second.id} cannot be compared"
    if first.task != second.task:
        raise NotComparableError(f"{both}: they are different exams, {first.task} and {second.task}.")
    if first.version != second.version:
        raise NotComparableError(
            f"{both}: between version {first.version} and version {second.version} of {first.task} its samples or its "
            "scores changed. Run the older one again."
        )
    if is_task_file(first.task) and first.provenance.get("task_source") != second.provenance.get("task_source"):
        raise NotComparableError(f"{both}: the file of {first.task} changed in between. Run the older one again.")
    ours, theirs = first.config.get("settings", {}), second.config.get("settings", {})
    changed = [key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)]
    what = [f"{key} {_said(ours.get(key))} and {_said(theirs.get(key))}" for key in sorted(changed)]
    what += [marking] if (marking := differing(first, second, MARKING)) else []
    if what:
        raise NotComparableError(f"{both}: the exam had other settings, {', '.join(what)}.")


def _other_samples(first: RunSamples, second: RunSamples, common: int, shared: bool, by_id: bool) -> str:
    one, other = first.run, second.run
    said = (
        f"{one.id} and {other.id} do not have the same samples: they share {common:,} of {len(first.samples):,} and "
        f"{len(second.samples):,}"
    )
    if why := differing(one, other, ASKING):
        said += f" ({why})"
    said += "."
    for answers in (first, second):
        if answers.status != "done":
            said += f" {answers.run.id} is not complete: {answers.status}."
    same_ids = 0 if by_id else len(first.keyed(True).keys() & second.keyed(True).keys())
    if common and not shared:
        said += " To compare those alone: --shared."
    if same_ids > common:
        said += f" {same_ids:,} have the same id, but were asked differently; to pair them all the same: --by-id."
    return said


def _said(value: Any) -> str:
    return "default" if value is None else str(value)
