"""Checks of a task that need no model: its samples are reproducible and its scores are right."""

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

DEFAULT_SAMPLES = 100  # of a task that generates its samples
_ALL_SAMPLES = "all"
_GOLD_CLAIM = "the right answer gets full marks"
_BLANK_CLAIM = "a blank answer gets none"


def check_task(
    name: str, settings: dict[str, Any], n: int | None = None, seed: int = 0, data: str | None = None
) -> list[Finding]:
    """Checks n samples; by default 100 of a task that generates them, or the whole data set."""
    check = _TaskCheck(name, settings, n, seed, data)
    claims: dict[str, Callable[[], Iterator[str]]] = {
        "samples can be made, and their ids are unique": check.faults_of_ids,
        "a sample depends on seed and index alone": check.faults_of_slices,
        "another process makes the same samples": check.faults_of_processes,
        "another seed makes other samples": check.faults_of_seeds,
        "samples survive storing": check.faults_of_storing,
        _GOLD_CLAIM: check.faults_of_gold,
        "so it does with --api completions": check.faults_of_completions,
        _BLANK_CLAIM: check.faults_of_blank,
        "an independent solver, where there is one, agrees": check.faults_of_proofs,
        "images, where it has any, show the same": check.faults_of_images,
    }
    findings = []
    for claim, faults in claims.items():
        try:
            fault = next(faults(), "")
        except UsageError:
            raise
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
        findings.append(Finding(claim, fault, check.details.pop(claim, "")))
        if fault and not check.samples:
            return findings  # the other checks need samples
    try:
        return [*findings, *check.task.findings(check.config(seed=seed))]
    except UsageError:
        raise
    except Exception as error:
        return [*findings, Finding("the samples as a whole can be checked", f"{type(error).__name__}: {error}")]


def probe_task(name: str, settings: dict[str, Any], n: int, seed: int = 0, data: str | None = None) -> list[Probe]:
    """The accuracy of guessers that see only a part of each sample."""
    task = create_task(registry.load_task_class(name), name, settings, data=data)
    config = build_config({"task": name, "model": "scripted/oracle", "settings": settings, "seed": seed, "limit": n})
    return list(task.probes(config))


class _TaskCheck:
    """The checks of one task; each `faults_of` method yields the faults that it finds."""

    def __init__(self, name: str, settings: dict[str, Any], n: int | None, seed: int, data: str | None) -> None:
        self.name, self.settings, self.seed, self.data = name, settings, seed, data
        self.task: Task = create_task(registry.load_task_class(name), name, settings, data=data)
        self.n = DEFAULT_SAMPLES if n is None and not self.task.fixed else n
        self.samples: list[Sample] = []
        self.details: dict[str, str] = {}

    def make(self, **options: Any) -> list[Sample]:
        task = create_task(type(self.task), self.name, self.settings, data=self.data)
        config = build_config(
            {"task": self.name, "model": "scripted/oracle", "seed": self.seed, "limit": self.n} | options
        )
        return list(take_samples(task, config))

    def make_images(self) -> list[Sample]:
        """The same samples with images, if the task can draw them."""
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
        # Another hash seed exposes any order that comes from a set or from hash().
        name = registry.portable_name(self.name, type(self.task))
        command = [sys.executable, "-m", "proctor.analysis.check", name, str(self.n or _ALL_SAMPLES), str(self.seed)]
        settings = msgspec.json.encode(self.settings).decode()
        process = subprocess.run(
            [*command, settings, *([self.data] if self.data else [])],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONHASHSEED": "4242"},
        )
        if process.returncode != 0:
            yield f"the other process failed: {process.stderr.strip().splitlines()[-1:]}"
        elif process.stdout.strip() != _fingerprint([*self.samples, *self.make_images()]):
            yield "the samples of another process differ"

    def faults_of_seeds(self) -> Iterator[str]:
        if self.task.fixed:
            return
        prompts = [sample.input for sample in self.samples]
        if [sample.input for sample in self.make(seed=self.seed + 1)] == prompts:
            yield (
                f"seeds {self.seed} and {self.seed + 1} give the same samples (a fixed data set sets `fixed = True`)"
            )

    def faults_of_storing(self) -> Iterator[str]:
        for sample in self.samples:
            if msgspec.json.decode(msgspec.json.encode(sample), type=Sample) != sample:
                yield f"sample {sample.id} reads back differently: use only values that JSON can hold"

    def faults_of_gold(self) -> Iterator[str]:
        samples = self._samples_with_target()
        values = self._scores(samples, [self.task.gold(sample) for sample in samples])
        self.details[_GOLD_CLAIM] = f"{values.count(1)} of {len(values)}"
        yield from self._below_full_marks(samples, values)

    def faults_of_completions(self) -> Iterator[str]:
        # Samples whose answer is extracted the same way for both APIs were judged before.
        extracted = zip(
            self._samples_with_target(),
            self._extracted("chat"),
            self._extracted("completions"),
            strict=True,
        )
        others = [sample for sample, chat, completion in extracted if chat != completion]
        golds = [self.task.gold(sample) for sample in others]
        values = self._scores(others, golds, api="completions") if others else []
        yield from self._below_full_marks(others, values)

    def _samples_with_target(self) -> list[Sample]:
        return [sample for sample in self.samples if sample.target is not None]

    def _below_full_marks(self, samples: list[Sample], values: list[float | None]) -> Iterator[str]:
        for sample, value in zip(samples, values, strict=True):
            if value != 1:
                yield f"sample {sample.id}: the right answer {self.task.gold(sample)!r} scores {value}"

    def faults_of_blank(self) -> Iterator[str]:
        values = self._scores(self.samples, [""] * len(self.samples))
        self.details[_BLANK_CLAIM] = f"{sum(1 for value in values if value)} of {len(values)}"
        for sample, value in zip(self.samples, values, strict=True):
            if value:
                yield f"sample {sample.id}: an empty answer scores {value}"

    def faults_of_proofs(self) -> Iterator[str]:
        return self._disproofs(self.samples)

    def faults_of_images(self) -> Iterator[str]:
        targets = {sample.id: sample.target for sample in self.samples}
        samples = self.make_images()
        for sample in samples:
            if targets.get(sample.id) != sample.target:
                yield f"sample {sample.id}: the right answer changes when the sample is an image"
        yield from self._disproofs(samples)

    def _disproofs(self, samples: list[Sample]) -> Iterator[str]:
        for sample in samples:
            for fault in self.task.proofs(sample):
                yield f"sample {sample.id}: {fault}"

    def _extracted(self, api: str) -> list[str]:
        """The part of each right answer that the task would judge."""

        async def extract() -> list[str]:
            async with open_task(self.task, self.config(api=api, generation_only=True)):
                return [
                    self.task.generation(sample, Output(self.task.gold(sample)))
                    for sample in self._samples_with_target()
                ]

        return asyncio.run(extract())

    def _scores(self, samples: list[Sample], texts: list[str], **options: Any) -> list[float | None]:
        """The score of each text, judged concurrently as in a run."""

        async def judge() -> list[float | None]:
            async with open_task(self.task, self.config(**options)):
                pairs = zip(samples, texts, strict=True)
                scores = await asyncio.gather(*(self.task.judge(sample, (Output(text),)) for sample, text in pairs))
            return [score.value for score in scores]

        return asyncio.run(judge())

    def config(self, **options: Any) -> RunConfig:
        # No model is called, so that any fill-in-the-middle tokens will do.
        defaults = {"model": "scripted/oracle", "api": "chat", "fim": "starcoder"}
        return build_config({"task": self.name, "settings": self.settings, **defaults, **options})


def _fingerprint(samples: list[Sample]) -> str:
    return hashlib.sha256(b"".join(sample_digest(sample) for sample in samples)).hexdigest()


def main(name: str, n: str, seed: str, settings: str, data: str | None = None) -> None:
    """Entry point of the second process."""
    check = _TaskCheck(name, msgspec.json.decode(settings), None if n == _ALL_SAMPLES else int(n), int(seed), data)
    print(_fingerprint([*check.make(), *check.make_images()]))


if __name__ == "__main__":
    main(*sys.argv[1:])
