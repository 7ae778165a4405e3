"""Writes docs/reference.md from the code, so that it says what the program does."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

from proctor.cli.main import VERBS, Parser
from proctor.models import NAMES

TARGET = Path(__file__).resolve().parents[1] / "docs" / "reference.md"

HEAD = """\
# Reference

Made from the code by `python scripts/reference.py`; a test fails when it is out of date.

Every option of `proctor run` is also a key of a TOML file (`proctor run --config exam.toml`, with underscores
for dashes, task settings in a table `[settings]`, several tasks as `tasks = [...]`, a sweep as
`sweep = {shapes = [3, 5]}`) and a keyword of `proctor.evaluate(task, model, ...)` or
`proctor.sweep(task, model, setting, values, ...)`.

## Models

| name | what |
|---|---|
"""


def reference() -> str:
    os.environ["COLUMNS"] = "110"  # argparse folds its help to the width of the terminal
    models = "".join(f"| `{name}` | {about} |\n" for name, about in NAMES.items())
    parts = [HEAD, models, "\n## Verbs\n"]
    for verb, summary in VERBS.items():
        module = import_module(f"proctor.cli.{verb}")
        parser = Parser(prog=f"proctor {verb}", description=module.__doc__ or "")
        module.add_arguments(parser)
        parts.append(f"\n### proctor {verb}: {summary}\n\n```text\n{parser.format_help()}```\n")
    return "".join(parts)


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
    print(f"wrote {TARGET}", file=sys.stderr)
