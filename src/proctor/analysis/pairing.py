"""Pairing of the samples of two runs, and refusal of runs that cannot be compared."""

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

# Options that change scores but not samples.
SCORING_OPTIONS = ("program_timeout",)
# Options that change the samples or their prompts. The digests show that they differ; these say why.
SAMPLE_OPTIONS = (
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


class SampleScore(Struct, frozen=True, gc=False):
    """The score of a sample: the mean over its epochs."""

    sample: int
    sample_id: str
    digest: bytes
    cluster: str
    value: float | None  # None if no epoch has a score


class Pairs(Struct, frozen=True):
    """The shared samples with a score in both runs, in the order of the task."""

    first: list[SampleScore]
    second: list[SampleScore]
    unscored: tuple[int, int]  # shared samples without a score in the first run, in the second
    alone: tuple[int, int]  # samples that only the first run has, that only the second has
    different_prompts: int


class RunSamples:
    """All samples of a run."""

    def __init__(self, store: Store, run: Run) -> None:
        self.run = run
        self.status = store.status(run)
        self.samples = _samples(store.columns(run))

    @property
    def scored(self) -> list[float]:
        return [sample.value for sample in self.samples if sample.value is not None]

    def keyed(self, by_id: bool) -> dict[Hashable, SampleScore]:
        """By digest, which covers prompt and id, or by index and id."""
        if by_id:
            return {(sample.sample, sample.sample_id): sample for sample in self.samples}
        return {sample.digest: sample for sample in self.samples}


def pair_samples(first: RunSamples, second: RunSamples, *, shared: bool = False, by_id: bool = False) -> Pairs:
    """Pairs the samples of two runs, and refuses runs that cannot be compared.

    With `shared`, samples that only one run has are left out. With `by_id`, samples are
    paired even if their prompts differ (few-shot, modality …).
    """
    _check_same_task(first.run, second.run)
    ours, theirs = first.keyed(by_id), second.keyed(by_id)
    common = [key for key in ours if key in theirs]
    alone = (len(ours) - len(common), len(theirs) - len(common))
    if not common or (any(alone) and not shared):
        raise NotComparableError(_describe_mismatch(first, second, len(common), shared, by_id))
    both = [(ours[key], theirs[key]) for key in common]
    scored = [(a, b) for a, b in both if a.value is not None and b.value is not None]
    return Pairs(
        first=[a for a, _ in scored],
        second=[b for _, b in scored],
        unscored=(sum(a.value is None for a, _ in both), sum(b.value is None for _, b in both)),
        alone=alone,
        different_prompts=sum(a.digest != b.digest for a, b in both),
    )


def describe_differences(first: Run, second: Run, keys: Sequence[str]) -> str:
    """The differences in these options, as text."""
    # An option that is newer than a run counts with its default.
    pairs = ((key, *(run.config.get(key, FIELDS[key].default) for run in (first, second))) for key in keys)
    return ", ".join(f"{key} {_text_of(one)} and {_text_of(other)}" for key, one, other in pairs if one != other)


def _samples(values: RecordColumns) -> list[SampleScore]:
    rows = zip(values.sample, values.sample_id, values.digest, values.cluster, values.value, strict=True)
    if not any(values.epoch):
        return [SampleScore(*row) for row in rows]
    fields: dict[int, tuple[str, bytes, str]] = {}
    scores: dict[int, list[float]] = {}
    for sample, sample_id, digest, cluster, value in rows:
        fields[sample] = (sample_id, digest, cluster)
        epochs = scores.setdefault(sample, [])
        if value is not None:
            epochs.append(value)
    return [
        SampleScore(sample, *rest, sum(scores[sample]) / len(scores[sample]) if scores[sample] else None)
        for sample, rest in fields.items()
    ]


def _check_same_task(first: Run, second: Run) -> None:
    both = f"{first.id} and {second.id} cannot be compared"
    if first.task != second.task:
        raise NotComparableError(f"{both}: they are different tasks, {first.task} and {second.task}.")
    if first.version != second.version:
        raise NotComparableError(
            f"{both}: samples or scores of {first.task} changed between version {first.version} and version "
            f"{second.version}. Run the older one again."
        )
    if is_task_file(first.task) and first.provenance.get("task_source") != second.provenance.get("task_source"):
        raise NotComparableError(f"{both}: the file of {first.task} changed between them. Run the older one again.")
    ours, theirs = first.config.get("settings", {}), second.config.get("settings", {})
    changed = [key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)]
    differences = [f"{key} {_text_of(ours.get(key))} and {_text_of(theirs.get(key))}" for key in sorted(changed)]
    if scoring := describe_differences(first, second, SCORING_OPTIONS):
        differences.append(scoring)
    if differences:
        raise NotComparableError(f"{both}: the settings differ, {', '.join(differences)}.")


def _describe_mismatch(first: RunSamples, second: RunSamples, common: int, shared: bool, by_id: bool) -> str:
    one, other = first.run, second.run
    text = (
        f"{one.id} and {other.id} do not have the same samples: they share {common:,} of {len(first.samples):,} and "
        f"{len(second.samples):,}"
    )
    if why := describe_differences(one, other, SAMPLE_OPTIONS):
        text += f" ({why})"
    text += "."
    for answers in (first, second):
        if answers.status != "done":
            text += f" {answers.run.id} is not complete: {answers.status}."
    same_ids = 0 if by_id else len(first.keyed(True).keys() & second.keyed(True).keys())
    if common and not shared:
        text += " To compare only those: --shared."
    if same_ids > common:
        text += f" {same_ids:,} have the same id but different prompts; to pair them by id: --by-id."
    return text


def _text_of(value: Any) -> str:
    return "default" if value is None else str(value)
