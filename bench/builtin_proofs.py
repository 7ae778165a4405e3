"""Every built-in code task with four answers: the reference, a blank, a constant, a nearly right one.

The rows are those of tests/data/code_rows, invented in the format of each benchmark; their
wrong answers are in tests/helpers/wrong_answers.py. All are completions, judged as in a run.
"""

from __future__ import annotations

import fnmatch
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "code")]

from test_benchmark_languages import MULTIPLE_ROWS, PACK_ROWS  # noqa: E402
from test_code_conformance import rows_of, settings_of  # noqa: E402

import proctor  # noqa: E402
from helpers import wrong_answers  # noqa: E402
from proctor.code import TASK_REGISTRY  # noqa: E402
from proctor.core.config import build_config  # noqa: E402
from proctor.core.errors import ProctorError  # noqa: E402
from proctor.core.task import create_task, take_samples  # noqa: E402
from proctor.core.types import Record, Sample  # noqa: E402

MULTIPLE, PACK = MULTIPLE_ROWS, PACK_ROWS
KINDS = ("reference", "blank", "constant", "nearly right")
_MOST = 20  # samples of a task that has more
_PACK = ("humanevalfix", "humanevalexplain", "humanevalsynthesize")
_NEARLY = re.compile(r">(?= (?:\$?[Ll]imit|\$2|% limit|number limit))")  # in the rows of MultiPL-E
Row = dict[str, Any]


@dataclass
class Proof:
    """The results of one task."""

    name: str
    seen: dict[str, str] = field(default_factory=dict)
    """By the kind of answer: `2 of 2` as it must be."""
    note: str = ""


def verdict(seen: str) -> str:
    """Yes if all results are as expected, else their number."""
    right, _, number = seen.partition(" of ")
    return "yes" if number and right == number != "0" else f"**{seen}**" if seen else "–"


def task_names(pattern: str) -> list[str]:
    return fnmatch.filter(TASK_REGISTRY, pattern)


def prove_all(names: Sequence[str], folder: Path) -> Iterator[Proof]:
    for name in names:
        yield _prove(name, folder)


def _prove(name: str, folder: Path) -> Proof:
    proof = Proof(name)
    try:
        _judge_all(proof, _prepare_task(name, folder))
    except ProctorError as error:
        proof.note = str(error)
    return proof


@dataclass(frozen=True)
class PreparedTask:
    """A task with its rows, and a folder for the files of its run."""

    name: str
    folder: Path
    settings: dict[str, Any]
    data: str | None
    samples: Sequence[Sample]
    wrong: Mapping[str, str]
    """Answers to the first sample."""


def _prepare_task(name: str, folder: Path) -> PreparedTask:
    rows = _rows(name)
    data = folder / "rows.jsonl" if rows is not None else None
    if data is not None and rows is not None:
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = settings_of(name) | _descriptions(name, folder)
    task = create_task(TASK_REGISTRY[name], f"code/{name}", settings, data=str(data) if data else None)
    config = build_config(
        {"task": f"code/{name}", "model": "m", "api": "completions", "fim": "starcoder", "limit": _MOST}
    )
    samples = list(take_samples(task, config))
    return PreparedTask(name, folder, settings, str(data) if data else None, samples, _wrong(name, rows, samples))


def _judge_all(proof: Proof, given: PreparedTask) -> None:
    """Judges all answers in one run if possible, else one after another."""
    golds = [str(sample.target) for sample in given.samples]
    first = {given.samples[0].id: ["", *given.wrong.values()]}
    answers = {sample.id: [gold] for sample, gold in zip(given.samples, golds, strict=True)}
    together = {one: texts + first.get(one, [""] * (1 + len(given.wrong))) for one, texts in answers.items()}
    records = _run(given, together)
    verdicts = [record.score.answer for record in records if record.score is not None]
    if all(isinstance(of_one, list) for of_one in verdicts):
        passed = [[bool(one["passed"]) for one in of_one] for of_one in verdicts]
        proof.seen["reference"] = _share([of_one[0] for of_one in passed])
        proof.seen["blank"] = _share([not of_one[1] for of_one in passed])
        for number, kind in enumerate(given.wrong, 2):
            proof.seen[kind] = _share([not passed[0][number]])
        return
    executes = bool(getattr(TASK_REGISTRY[given.name](), "requires_execution", True))
    most = 0.0 if executes else 0.999  # a comparison may be partly right
    proof.seen["reference"] = _share([_value(record) == 1 for record in _run(given, answers)])
    proof.seen["blank"] = _share([_value(record) == 0 for record in _run(given, {one: [""] for one in answers})])
    for kind, answer in given.wrong.items():
        judged = _run(given, {given.samples[0].id: [answer]}, limit=1)
        proof.seen[kind] = _share([_value(record) <= most for record in judged])


def _run(given: PreparedTask, answers: Mapping[str, Sequence[str]], limit: int = _MOST) -> list[Record]:
    replay = given.folder / "replay.jsonl"
    lines = [json.dumps({"id": one, "outputs": [{"text": text} for text in texts]}) for one, texts in answers.items()]
    replay.write_text("\n".join(lines))
    report = proctor.evaluate(
        f"code/{given.name}",
        f"scripted/replay:{replay}",
        api="completions",
        fim="starcoder",
        data=given.data,
        settings=given.settings,
        limit=limit,
        samples=len(next(iter(answers.values()))),
        allow_code_execution=True,
        workers=1,
        store=str(given.folder / "runs"),
    )
    records = list(report.records())
    if report.run.errors:
        raise ProctorError(next(record.error.message for record in records if record.error))
    return sorted(records, key=lambda record: record.sample.index)


def _descriptions(name: str, folder: Path) -> dict[str, Any]:
    """What humanevalexplainsynthesize is asked, for rows in other languages than Python."""
    if not name.startswith("humanevalexplainsynthesize-") or name.endswith("-python"):
        return {}
    file = folder / "descriptions.json"
    file.write_text(json.dumps([["Return the largest difference between neighbours."]]))
    return {"load_data_path": str(file)}


def _value(record: Record) -> float:
    return float(record.score.value or 0) if record.score is not None else 0.0


def _share(held: Sequence[bool]) -> str:
    return f"{sum(held)} of {len(held)}"


def _rows(name: str) -> list[Row] | None:
    """None if the task includes its problems."""
    language = name.rpartition("-")[2]
    if name.startswith("multiple-"):
        return [MULTIPLE_ROWS[language]] if language in MULTIPLE_ROWS else None
    if name.startswith(_PACK) and language != "python":
        return [PACK_ROWS[language]]
    file = rows_of("humanevalpack-python" if name.startswith(_PACK) else name)
    rows = _read(Path(file)) if file else None
    if rows is not None and name.startswith("apps-"):
        return [row | {"difficulty": name.removeprefix("apps-")} for row in rows[:1]]
    return rows


def _read(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def _wrong(name: str, rows: Sequence[Row] | None, samples: Sequence[Sample]) -> Mapping[str, str]:
    """A wrong answer to the first sample."""
    target = str(samples[0].target)
    language = name.rpartition("-")[2]
    if name.startswith("multiple-") and rows and language in wrong_answers.MULTIPLE:
        begun = target[: len(target) - len(target.lstrip("\n"))]
        constant = begun + wrong_answers.MULTIPLE[language]["constant"]
        return {"constant": constant, "nearly right": _NEARLY.sub(">=", target)}
    if name.startswith("humanevalexplaindescribe-"):
        return {}  # not judged: humanevalexplainsynthesize asks what is answered here
    if name.startswith("ds1000-"):
        return wrong_answers.DS1000[name.split("-")[1]]
    if name.startswith(_PACK) and rows:
        constant = f"\n{wrong_answers.PACK[language]['constant']}"
        return {"constant": constant, "nearly right": f"\n{rows[0]['buggy_solution']}"}
    if name.startswith("starter"):
        constant = wrong_answers.STARTER["python" if name == "starter" else language]
        return {"constant": constant, "nearly right": _starter(samples[0])}
    kinds = [kind for kind in wrong_answers.PYTHON if f"{name}-".startswith(f"{kind}-")]
    if kinds:
        return wrong_answers.PYTHON[max(kinds, key=len)]
    words = target.split(" ")
    return {"constant": "the", "nearly right": " ".join(words[:-1]) or "the"}


def _starter(sample: Sample) -> str:
    rows = _read(HERE.parent / "src/proctor/code/tasks/starter.jsonl")
    wrong: list[str] = next(row["wrong"] for row in rows if row["task_id"] == sample.id)
    return wrong[0]
