"""A trivial task for core.py, with any number of samples."""

from __future__ import annotations

from collections.abc import Iterator

from proctor import RunConfig, Sample, Score, Task


class Doubling(Task):
    """For a scripted model that answers immediately, like the peers' task."""

    fixed = True

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        for i in range(config.limit_start, config.limit_start + self.count(config)):
            question = f"What is {i} + {i}? Answer with the number only."
            yield Sample(id=str(i), index=i, input=question, target=str(2 * i))

    def count(self, config: RunConfig) -> int:
        return config.limit or 10_000

    def score_text(self, sample: Sample, text: str) -> Score:
        right = text.strip() == sample.target
        return Score(float(right), "correct" if right else "wrong", text)
