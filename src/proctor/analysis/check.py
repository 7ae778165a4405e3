"""Proves a task right without a model: what must hold of every exam before anyone is examined by it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from proctor.core import registry
from proctor.core.config import RunConfig, build_config
from proctor.core.errors import UsageError
from proctor.core.runner import sample_digest
from proctor.core.task import Task, create_task, open_task, take_samples
from proctor.core.types import Finding, Output, Probe, Sample

CHECKED = 100  # samples of a task that can make any number of them
_ALL = "all"
_GOLD = "the right answer gets full marks"
_BLANK = "a blank answer gets none"


def check_task(
    name: str, settings: dict[str, Any], n: int | None = None, seed: int = 0, data: str | None = None
) -> list[Finding]:
    """Looks at n samples; unless it is said, at some hundred, or at all there are in a given data set."""
    subject = _Subject(name, settings, n, seed, data)
    claims: dict[str, Callable[[], Iterator[str]]] = {
        "samples can be made, and their ids are unique": subject.faults_of_ids,
        "a sample depends on seed and index alone": subject.faults_of_slices,
        "another process makes the same samples": subject.faults_of_processes,
        "another seed makes other samples": subject.faults_of_seeds,
        "samples survive storing": subject.faults_of_storing,
        _GOLD: subject.faults_of_gold,
        "so it does with --api completions": subject.faults_of_completions,
        _BLANK: subject.faults_of_blank,
        "an independent solver, where there is one, agrees": subject.faults_of_proofs,
        "pictures, where it has any, show the same": subject.faults_of_pictures,
    }
    findings = []
    for claim, faults in claims.items():
        try:
            fault = next(faults(), "")
        except UsageError:
            raise
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
        findings.append(Finding(claim, fault, subject.seen.pop(claim, "")))
        if fault and not subject.samples:
            return findings  # nothing else can be said of a task that makes no samples
    try:
        return [*findings, *subject.task.findings(subject.config(seed=seed))]
    except UsageError:
        raise
    except Exception as error:
        return [*findings, Finding("the samples as a whole can be looked at", f"{type(error).__name__}: {error}")]


def probe_task(name: str, settings: dict[str, Any], n: int, seed: int = 0, data: str | None = None) -> list[Probe]:
    """What guessers that see too little of the samples make of them."""
    task = create_task(registry.load_task_class(name), name, settings, data=data)
    config = build_config({"task": name, "model": "scripted/oracle", "settings": settings, "seed": seed, "limit": n})
    return list(task.probes(config))


class _Subject:
    """The task under examination; each method yields the faults it finds."""

    def __init__(self, name: str, settings: dict[str, Any], n: int | None, seed: int, data: str | None) -> None:
        self.name, self.settings, self.seed, self.data = name, settings, seed, data
        self.task: Task = create_task(registry.load_task_class(name), name, settings, data=data)
        self.n = CHECKED if n is None and not self.task.fixed else n
        self.samples: list[Sample] = []
        self.seen: dict[str, str] = {}

    def make(self, **options: Any) -> list[Sample]:
        task = create_task(type(self.task), self.name, self.settings, data=self.data)
        config = build_config(
            {"task": self.name, "model": "scripted/oracle", "seed": self.seed, "limit": self.n} | options
        )
        return list(take_samples(task, config))

    def make_pictures(self) -> list[Sample]:
        """The samples in every other way that the task can show them."""
        if not self.task.has_pictures():
            return []
        return [sample for modality in ("image", "both") for sample in self.make(modality=modality)]

    def faults_of_ids(self) -> Iterator[str]:
        self.samples = self.make()
        if not self.samples:
            yield "the task makes no samples"
        seen: set[str] = set()
        for position, sample in enumerate(self.samples):
            if sample.id in seen:
                yield f"the id {sample.id} comes twice"
            if sample.index != position:
                yield f"sample {sample.id} has index {sample.index} at position {position}"
            seen.add(sample.id)

    def faults_of_slices(self) -> Iterator[str]:
        if self.make() != self.samples:
            yield "making the samples a second time gives others"
        middle = len(self.samples) // 2
        if self.make(limit_start=middle, limit=len(self.samples) - middle) != self.samples[middle:]:
            yield f"samples from index {middle} on differ when the run starts there"

    def faults_of_processes(self) -> Iterator[str]:
        # The other hash seed shows up any order that comes from a set or from hash().
        name = registry.portable_name(self.name, type(self.task))
        command = [sys.executable, "-m", "proctor.analysis.check", name, str(self.n or _ALL), str(self.seed)]
        settings = msgspec.json.encode(self.settings).decode()
        done = subprocess.run(
            [*command, settings, *([self.data] if self.data else [])],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONHASHSEED": "4242"},
        )
        if done.returncode != 0:
            yield f"the other process failed: {done.stderr.strip().splitlines()[-1:]}"
        elif done.stdout.strip() != _fingerprint([*self.samples, *self.make_pictures()]):
            yield "the samples of another process differ"

    def faults_of_seeds(self) -> Iterator[str]:
        # A fixed data set is the same under every seed, and says so.
        if not self.task.fixed and [s.input for s in self.make(seed=self.seed + 1)] == [s.input for s in self.samples]:
            yield f"seeds {self.seed} and {self.seed + 1} give the same samples (a fixed data set sets `fixed = True`)"

    def faults_of_storing(self) -> Iterator[str]:
        for sample in self.samples:
            if msgspec.json.decode(msgspec.json.encode(sample), type=Sample) != sample:
                yield f"sample {sample.id} reads back as something else: keep to what JSON can hold"

    def faults_of_gold(self) -> Iterator[str]:
        known = self._known()
        values = self._values_of(known, [self.task.gold(sample) for sample in known])
        self.seen[_GOLD] = f"{values.count(1)} of {len(values)}"
        yield from self._unfair(known, values)

    def faults_of_completions(self) -> Iterator[str]:
        # Only what is read in another way there is judged once more.
        read = zip(self._known(), self._readings("chat"), self._readings("completions"), strict=True)
        others = [sample for sample, in_chat, completed in read if in_chat != completed]
        golds = [self.task.gold(sample) for sample in others]
        yield from self._unfair(others, self._values_of(others, golds, api="completions") if others else [])

    def _known(self) -> list[Sample]:
        return [sample for sample in self.samples if sample.target is not None]

    def _unfair(self, samples: list[Sample], values: list[float | None]) -> Iterator[str]:
        for sample, value in zip(samples, values, strict=True):
            if value != 1:
                yield f"sample {sample.id}: the right answer {self.task.gold(sample)!r} scores {value}"

    def faults_of_blank(self) -> Iterator[str]:
        values = self._values_of(self.samples, [""] * len(self.samples))
        self.seen[_BLANK] = f"{sum(1 for value in values if value)} of {len(values)}"
        for sample, value in zip(self.samples, values, strict=True):
            if value:
                yield f"sample {sample.id}: an empty answer scores {value}"

    def faults_of_proofs(self) -> Iterator[str]:
        return self._disproofs(self.samples)

    def faults_of_pictures(self) -> Iterator[str]:
        keys = {sample.id: sample.target for sample in self.samples}
        shown = self.make_pictures()
        for sample in shown:
            if keys.get(sample.id) != sample.target:
                yield f"sample {sample.id}: the right answer is another one when it is shown as a picture"
        yield from self._disproofs(shown)

    def _disproofs(self, samples: list[Sample]) -> Iterator[str]:
        for sample in samples:
            for fault in self.task.proofs(sample):
                yield f"sample {sample.id}: {fault}"

    def _readings(self, api: str) -> list[str]:
        """What would be judged of each right answer."""

        async def read() -> list[str]:
            async with open_task(self.task, self.config(api=api, generation_only=True)):
                return [self.task.generation(sample, Output(self.task.gold(sample))) for sample in self._known()]

        return asyncio.run(read())

    def _values_of(self, samples: list[Sample], texts: list[str], **options: Any) -> list[float | None]:
        """What each sample's text is worth; judged side by side, as in a run."""

        async def judge() -> list[float | None]:
            async with open_task(self.task, self.config(**options)):
                pairs = zip(samples, texts, strict=True)
                scores = await asyncio.gather(*(self.task.judge(sample, (Output(text),)) for sample, text in pairs))
            return [score.value for score in scores]

        return asyncio.run(judge())

    def config(self, **options: Any) -> RunConfig:
        # Some tokens for filling in are as good as others: nobody is asked.
        usual = {"model": "scripted/oracle", "api": "chat", "fim": "starcoder"}
        return build_config({"task": self.name, "settings": self.settings, **usual, **options})


def _fingerprint(samples: list[Sample]) -> str:
    return hashlib.sha256(b"".join(sample_digest(sample) for sample in samples)).hexdigest()


def main(name: str, n: str, seed: str, settings: str, data: str | None = None) -> None:
    """Entry of the second process."""
    subject = _Subject(name, msgspec.json.decode(settings), None if n == _ALL else int(n), int(seed), data)
    print(_fingerprint([*subject.make(), *subject.make_pictures()]))


if __name__ == "__main__":
    main(*sys.argv[1:])
