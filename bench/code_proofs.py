"""The proofs of the code family, as the tables in docs/code.md.

    python bench/code_proofs.py                       both tables, printed (about half an hour)
    python bench/code_proofs.py --only builtin        the built-in tasks
    python bench/code_proofs.py --only files --bigcode PATH
                                                      the task files of a checkout of the BigCode harness;
                                                      without a path those of its fork on PyPI
    python bench/code_proofs.py --only builtin --tasks 'multiple-*'
                                                      again for some; the others keep their last results
    python bench/code_proofs.py --write               puts the tables into docs/code.md

A missing compiler or library is named beside the task.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import bigcode_proofs
import builtin_proofs
from bigcode_proofs import FileProof
from builtin_proofs import KINDS, Proof
from process import HERE, print_status

RESULTS = HERE / "results" / "code_proofs.json"
DOCS = HERE.parent / "docs" / "code.md"
_LONGEST_NOTE = 160


def prove_builtin(pattern: str, folder: Path, stored: dict[str, Any]) -> list[Proof]:
    """All proofs; those that match the pattern are run again."""
    names = builtin_proofs.task_names(pattern)
    _keep(builtin_proofs.prove_all(names, folder), len(names), stored)
    return [Proof(**stored[name]) for name in builtin_proofs.task_names("*") if name in stored]


def prove_files(checkout: Path | None, pattern: str, folder: Path, stored: dict[str, Any]) -> list[FileProof]:
    root = bigcode_proofs.prepare(checkout, folder)
    files = bigcode_proofs.task_files(root, pattern)
    _keep(bigcode_proofs.prove_all(root, files, folder), len(files), stored)
    return [FileProof(**stored[file.stem]) for file in bigcode_proofs.task_files(root) if file.stem in stored]


def _keep(proofs: Iterable[Proof | FileProof], number: int, stored: dict[str, Any]) -> None:
    for count, proof in enumerate(proofs, 1):
        stored[proof.name] = asdict(proof)
        print_status(f"{count} of {number}: {proof}")


def builtin_table(proofs: Sequence[Proof]) -> str:
    """One line for all tasks of a family with the same outcome, with their number."""
    lines = [
        "| tasks | reference passes | blank fails | constant fails | nearly right fails | |",
        "|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, ...], list[Proof]] = {}
    for proof in proofs:
        whole = tuple(builtin_proofs.verdict(proof.seen.get(kind, "")) for kind in KINDS)
        groups.setdefault((_family(proof.name), *whole, _short(proof.note)), []).append(proof)
    for (family, *rest), members in groups.items():
        names = f"`{members[0].name}`" if len(members) == 1 else f"`{family}…` ({len(members)})"
        lines.append(f"| {' | '.join([names, *rest])} |")
    return "\n".join(lines)


def _family(task: str) -> str:
    for prefix in ("multiple-mbpp-", "multiple-", "perturbed-humaneval-", "ds1000-", "starter-", "apps-", "pal-"):
        if task.startswith(prefix):
            return prefix
    head, dash, _ = task.partition("-")
    return head + dash


def files_table(proofs: Sequence[FileProof]) -> str:
    lines = [f"| file | classes | {' | '.join(bigcode_proofs.COLUMNS)} | |", f"|---|---|{'---|' * 5}"]
    for proof in proofs:
        held = [str(proof.held[column]) if proof.tried else "–" for column in bigcode_proofs.COLUMNS]
        notes = "; ".join(dict.fromkeys(map(_short, proof.notes)))
        lines.append(f"| `{proof.name}.py` | {proof.tried or '–'} | {' | '.join(held)} | {notes} |")
    return "\n".join(lines)


def _short(note: str) -> str:
    cause = note.rpartition("the last: ")[2].partition(" When the cause is mended")[0].partition("Error: ")
    one_line = " ".join((cause[2] or cause[0]).split()).replace("|", "\\|").rstrip(".")
    return one_line if len(one_line) <= _LONGEST_NOTE else f"{one_line[:_LONGEST_NOTE]} …"


def write(part: str, table: str) -> None:
    """Replaces the part of the document between its marks."""
    text = DOCS.read_text()
    begin, end = f"<!-- {part}: bench/code_proofs.py -->", f"<!-- end of {part} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    assert pattern.search(text), f"{DOCS} has no marks for {part}"
    DOCS.write_text(pattern.sub(lambda _: f"{begin}\n{table}\n{end}", text))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=["builtin", "files"], help="one of the two tables")
    parser.add_argument("--bigcode", type=Path, metavar="PATH", help="a checkout of the BigCode harness")
    parser.add_argument("--tasks", default="*", metavar="PATTERN", help="some of the tasks, or of the files")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/code.md")
    args = parser.parse_args()
    results: dict[str, dict[str, Any]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if args.only != "files":
                proofs = prove_builtin(args.tasks, folder, results.setdefault("builtin", {}))
                _show("builtin", builtin_table(proofs), args.write)
            if args.only != "builtin":
                files = prove_files(args.bigcode, args.tasks, folder, results.setdefault("files", {}))
                _show("files", files_table(files), args.write)
    finally:  # keep results from before a failure
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def _show(part: str, table: str, written: bool) -> None:
    print(f"{table}\n", flush=True)
    if written:
        write(part, table)


if __name__ == "__main__":
    main()
