"""Write a working task file to start from, with its test."""

from __future__ import annotations

import argparse
import keyword
from pathlib import Path

from proctor.cli.templates import TEMPLATES
from proctor.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=tuple(TEMPLATES), help="what to make")
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
            raise UsageError(f"{path} exists already: nothing was written.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, part in files.items():
            text = TEMPLATES[args.kind][part]
            path.write_text(text.replace("MODULE", module).replace("CLASS", class_name), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot write to {folder}: {error.strerror}.") from None
    task = f"{folder / f'{module}.py'}:{class_name}"
    print(f"Wrote {' and '.join(map(str, files))}. Next:")
    print(f"  proctor show {task}")
    print(f"  proctor check {task}")
    leave = " --allow-code-execution" if args.kind == "code" else ""
    print(f"  proctor run {task} --model scripted/oracle{leave}")
    print(f"  pytest {folder / f'test_{module}.py'}")
    return 0
