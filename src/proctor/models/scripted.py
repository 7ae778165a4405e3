"""Scripted models: baselines and bounds of a task's scores, without a real model."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from proctor.core.errors import ModelError, UnknownNameError, UsageError
from proctor.core.random import mix, name_key
from proctor.core.types import Output, Sample
from proctor.models.base import Model, Request


class Oracle(Model):
    """Answers with the target."""

    name = "scripted/oracle"

    async def generate(self, request: Request) -> Output:
        if request.sample.target is None:
            raise ModelError(f"sample {request.sample.id} has no target")
        return Output(text=str(request.sample.target))


class Blank(Model):
    """Answers with empty text."""

    name = "scripted/blank"

    async def generate(self, request: Request) -> Output:
        return Output(text="")


class Random(Model):
    """Guesses among the possible answers: chance level."""

    name = "scripted/random"

    async def generate(self, request: Request) -> Output:
        choices = request.sample.choices
        if not choices:
            raise ModelError("scripted/random needs a closed set of answers; this sample has none")
        draw = mix(name_key(self.name), request.sampling.seed, request.sample.index, request.number)
        return Output(text=choices[draw % len(choices)])


class Majority(Model):
    """Answers with the most common target: the best constant answer."""

    name = "scripted/majority"

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        counts = Counter(str(sample.target) for sample in samples())
        # Ties are broken alphabetically, so that every process picks the same.
        self._answer = min(counts, key=lambda answer: (-counts[answer], answer), default="")

    async def generate(self, request: Request) -> Output:
        return Output(text=self._answer)


class ReplayModel(Model):
    """Repeats the outputs of exported records (`proctor export RUN`), by sample id and number."""

    def __init__(self, path: Path) -> None:
        self.name = f"scripted/replay:{path}"
        self._outputs: dict[tuple[str, int], Output] = {}
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UsageError(f"Cannot read the replay file {path}: {error.strerror}.") from None
        self._sha256 = hashlib.sha256(content).hexdigest()
        for number, line in enumerate(content.splitlines(), 1):
            try:
                row = msgspec.json.decode(line, type=_ReplayRow)
            except msgspec.DecodeError as error:
                raise UsageError(f"{path}, line {number}: not a record of `proctor export`: {error}.") from None
            first = row.epoch * len(row.outputs)
            for i, output in enumerate(row.outputs):
                self._outputs[row.id, first + i] = Output(output.text, finish=output.finish)

    def identity(self) -> dict[str, str]:
        return {"model": self.name, "sha256": self._sha256}

    async def generate(self, request: Request) -> Output:
        output = self._outputs.get((request.sample.id, request.number))
        if output is None:
            raise ModelError(f"the replay file has no output {request.number} for sample {request.sample.id}")
        return output


class _ReplayRow(msgspec.Struct):
    id: str
    outputs: list[Output]
    epoch: int = 0


SCRIPTED: dict[str, type[Model]] = {"oracle": Oracle, "blank": Blank, "random": Random, "majority": Majority}


def open_scripted(name: str, task: str) -> Model:
    if name.startswith("generations:"):
        from proctor.models.providers.generations import GenerationsModel

        return GenerationsModel(Path(name.removeprefix("generations:")), task)
    if name.startswith("replay:"):
        return ReplayModel(Path(name.removeprefix("replay:")))
    if name not in SCRIPTED:
        known = [f"scripted/{known}" for known in (*SCRIPTED, "replay:FILE", "generations:FILE")]
        raise UnknownNameError("model", f"scripted/{name}", known, f"Scripted: {', '.join(known)}.")
    return SCRIPTED[name]()
