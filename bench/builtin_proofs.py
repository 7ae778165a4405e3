"""Every built-in code task, held against four answers: the reference, nothing, a constant, one that is nearly right.

The rows are those of tests/code_rows, invented ones of the form that each benchmark has; the wrong answers to them are
in tests/wrong_answers.py. All are completions, judged as in a run.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "tests"
sys.path.insert(0, str(TESTS))

import wrong_answers  # noqa: E402

import proctor  # noqa: E402
from proctor.code import TASK_REGISTRY  # noqa: E402
from proctor.errors import ProctorError  # noqa: E402
from proctor.types import Record  # noqa: E402
from test_code_conformance import SETTINGS, rows_of  # noqa: E402
from test_code_languages import MULTIPLE_ROWS, PACK_ROWS  # noqa: E402

KINDS = ("reference", "blank", "constant", "nearly right")
_PACK = ("humanevalfix", "humanevalexplain", "humanevalsynthesize")
_NEARLY = re.compile(r">(?= (?:\$?[Ll]imit|\$2|% limit|number limit))")  # in the rows of MultiPL-E
Row = dict[str, Any]


@dataclass
class Proof:
    """What was seen of one task."""

    task: str
    seen: dict[str, str] = field(default_factory=dict)
    """By the kind of answer: `2 of 2` as it must be."""
    note: str = ""


def verdict(seen: str) -> str:
    """Yes where all were as they must be; else how many."""
    right, _, number = seen.partition(" of ")
    return "yes" if number and right == number != "0" else f"**{seen}**" if seen else "–"


def prove_all(names: Sequence[str], folder: Path) -> Iterator[Proof]:
    for name in names:
        yield _prove(name, folder)


def _prove(name: str, folder: Path) -> Proof:
    proof = Proof(name)
    rows = _rows(name)
    executes = True
    try:
        records = _judged(name, "scripted/oracle", rows, folder)
        executes = bool(getattr(TASK_REGISTRY[name](), "requires_execution", True))
        proof.seen["reference"] = _share([_value(record) == 1 for record in records])
        blanks = _judged(name, "scripted/blank", rows, folder)
        proof.seen["blank"] = _share([not _value(record) for record in blanks])
        first = _first_rows(name, rows)
        answered = records if first is rows else _judged(name, "scripted/oracle", first, folder)
        for kind, answer in _wrong(name, first, answered).items():
            replay = folder / "replay.jsonl"
            replay.write_text(json.dumps({"id": answered[0].sample.id, "outputs": [{"text": answer}]}))
            judged = _judged(name, f"scripted/replay:{replay}", first, folder, limit=1)
            fails = [_value(record) == 0 if executes else _value(record) < 1 for record in judged]
            proof.seen[kind] = _share(fails)
    except ProctorError as error:
        proof.note = str(error)
    return proof


def _judged(name: str, model: str, rows: Sequence[Row] | None, folder: Path, limit: int | None = None) -> list[Record]:
    data = None
    if rows is not None:
        data = folder / "rows.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = proctor.evaluate(
        f"code/{name}",
        model,
        api="completions",
        fim="starcoder",
        data=str(data) if data else None,
        settings=SETTINGS.get(name, {}) | _descriptions(name, folder),
        limit=limit or (None if data else 20),
        allow_code_execution=True,
        workers=1,
        store=str(folder / "runs"),
    )
    records = list(report.records())
    if report.run.errors:
        raise ProctorError(next(record.error.message for record in records if record.error))
    return records


def _descriptions(name: str, folder: Path) -> dict[str, Any]:
    """What humanevalexplainsynthesize is asked, for rows in other languages than Python."""
    if not name.startswith("humanevalexplainsynthesize-") or name in SETTINGS:
        return {}
    file = folder / "descriptions.json"
    file.write_text(json.dumps([["Return the largest difference between neighbours."]]))
    return {"load_data_path": str(file)}


def _value(record: Record) -> float:
    return float(record.score.value or 0) if record.score is not None else 0.0


def _share(held: Sequence[bool]) -> str:
    return f"{sum(held)} of {len(held)}"


def _rows(name: str) -> list[Row] | None:
    """None where the task has its problems with it."""
    language = name.rpartition("-")[2]
    if name.startswith("multiple-"):
        return [MULTIPLE_ROWS[language]] if language in MULTIPLE_ROWS else None
    if name.startswith(_PACK) and language != "python":
        return [PACK_ROWS[language]]
    file = rows_of(name)
    rows = _read(Path(file)) if file else None
    if rows is not None and name.startswith("apps-"):
        return [row | {"difficulty": name.removeprefix("apps-")} for row in rows[:1]]
    return rows


def _read(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def _first_rows(name: str, rows: list[Row] | None) -> list[Row] | None:
    """The rows to which there are wrong answers."""
    return rows[:1] if rows is not None and not name.startswith("ds1000-") else rows


def _wrong(name: str, rows: Sequence[Row] | None, records: Sequence[Record]) -> Mapping[str, str]:
    """To the first sample."""
    target = str(records[0].sample.target)
    language = name.rpartition("-")[2]
    if name.startswith("multiple-") and rows:
        begun = target[: len(target) - len(target.lstrip("\n"))]
        constant = begun + wrong_answers.MULTIPLE[language]["constant"]
        return {"constant": constant, "nearly right": _NEARLY.sub(">=", target)}
    if name.startswith(_PACK) and "describe" not in name and rows:
        constant = f"\n{wrong_answers.PACK[language]['constant']}"
        return {"constant": constant, "nearly right": f"\n{rows[0]['buggy_solution']}"}
    if name.startswith("starter"):
        constant = wrong_answers.STARTER["python" if name == "starter" else language]
        return {"constant": constant, "nearly right": _starter(records[0])}
    kinds = [kind for kind in wrong_answers.PYTHON if f"{name}-".startswith(f"{kind}-")]
    if kinds:
        return wrong_answers.PYTHON[max(kinds, key=len)]
    words = target.split(" ")
    return {"constant": "the", "nearly right": " ".join(words[:-1]) or "the"}


def _starter(record: Record) -> str:
    rows = _read(HERE.parent / "src/proctor/code/tasks/starter.jsonl")
    wrong: list[str] = next(row["wrong"] for row in rows if row["task_id"] == record.sample.id)
    return wrong[0]
