"""Write a working task or agent to start from, with its test."""

from __future__ import annotations

import argparse
import keyword
from pathlib import Path

from proctor.cli.templates import TEMPLATES
from proctor.core.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=tuple(TEMPLATES), help="what to write")
    parser.add_argument("name", metavar="NAME", help="its name, such as capitals")
    parser.add_argument("--out", metavar="DIR", default=".", help="folder to write to (default: here)")


def call(args: argparse.Namespace) -> int:
    module = args.name.replace("-", "_").lower()
    if not module.isidentifier() or keyword.iskeyword(module):
        raise UsageError(f"{args.name!r} cannot be the name of a Python file: use letters, digits and underscores.")
    class_name = "".join(word.capitalize() for word in module.split("_"))
    folder = Path(args.out)
    files = {folder / f"{module}.py": "task", folder / f"test_{module}.py": "test"}
    for path in files:
        if path.exists():
            raise UsageError(f"{path} exists already: no file was written.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, part in files.items():
            text = TEMPLATES[args.kind][part]
            path.write_text(text.replace("MODULE", module).replace("CLASS", class_name), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot write to {folder}: {error.strerror}.") from None
    task = f"{folder / f'{module}.py'}:{class_name}"
    print(f"Wrote {' and '.join(map(str, files))}. Next:")
    for command in _next_steps(args.kind, task):
        print(f"  proctor {command}")
    print(f"  pytest {folder / f'test_{module}.py'}")
    return 0


def _next_steps(kind: str, path: str) -> list[str]:
    if kind == "agent":
        return [f"run agents/hexagon --agent {path} --episodes 3 --set timeout=20"]
    flag = " --allow-code-execution" if kind == "code" else ""
    return [f"show {path}", f"check {path}", f"run {path} --model scripted/oracle{flag}"]
