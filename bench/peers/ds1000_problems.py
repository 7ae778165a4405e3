"""What the BigCode harness downloads for DS-1000, in small: problems that are dicts and can be tested.

`problems.jsonl` in the data folder has rows of the form of xlangai/DS-1000.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Problem(dict[str, Any]):
    def test(self, code: str) -> bool:
        space: dict[str, Any] = {}
        try:
            exec(self["code_context"], space)
            space["test_execution"](code)
            if "test_string" in space:
                space["test_string"](code)
        except BaseException:
            return False
        return True


class DS1000Dataset:
    def __init__(self, folder: Path, mode: str = "Completion") -> None:
        self.data: dict[str, list[Problem]] = {}
        for line in (Path(folder) / "problems.jsonl").read_text().splitlines():
            row = json.loads(line)
            if mode == "Insertion":
                row["prompt"] = row["prompt"] + "[insert]\n</code>\nEND SOLUTION\n"
            self.data.setdefault(row["metadata"]["library"], []).append(Problem(row))
