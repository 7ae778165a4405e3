"""The prompts of task classes of the BigCode harness, made by the classes themselves, with the harness's own imports.

Reads from standard input what is asked: a list of {"file", "variant", "rows", "options"}. Rows take the place of the
data set that a class loads from the hub. Writes for each {"prompts", "variants"} or {"error"}.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import sys
import warnings
from typing import Any

import datasets

USUAL = {"prompt": "prompt", "load_data_path": None}  # what the harness's command line gives
_rows: list[dict[str, Any]] = []


class Splits(dict[str, Any]):
    """Every split has all rows."""

    def __missing__(self, split: str) -> Any:
        return datasets.Dataset.from_list(_rows)


def load_dataset(*arguments: Any, split: str | None = None, **options: Any) -> Any:
    if not _rows:
        raise OSError("there are no rows of this data set here")
    return Splits()[split] if split else Splits()


def variants(module: Any) -> dict[str, Any]:
    """By the names under which Proctor finds them in the file."""
    made = dict(module.create_all_tasks()) if hasattr(module, "create_all_tasks") else {}
    base = importlib.import_module("bigcode_eval.base").Task
    for name, value in vars(module).items():
        own = inspect.isclass(value) and issubclass(value, base) and value.__module__ == module.__name__
        if own and not inspect.isabstract(value) and required_arguments(value) <= USUAL.keys():
            made.setdefault(name, value)
    return made


def required_arguments(made: Any) -> set[str]:
    """The arguments of a constructor that have no default."""
    arguments = inspect.signature(made).parameters.values()
    return {one.name for one in arguments if one.default is one.empty and one.kind is not one.VAR_KEYWORD}


def prompts(asked: dict[str, Any]) -> dict[str, Any]:
    _rows[:] = asked["rows"] or []
    module = importlib.import_module(f"bigcode_eval.tasks.{asked['file']}")
    known = variants(module)
    if not asked["variant"]:
        return {"variants": list(known), "prompts": []}
    made = known[asked["variant"]]
    task = made(**{name: USUAL[name] for name in required_arguments(made)} | asked["options"])
    return {"variants": list(known), "prompts": [task.get_prompt(doc) for doc in task.get_dataset()]}


def main() -> None:
    datasets.load_dataset = load_dataset
    warnings.simplefilter("ignore")
    for asked in json.load(sys.stdin):
        with contextlib.redirect_stdout(sys.stderr):  # some tasks talk
            try:
                answer = prompts(asked)
            except BaseException as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
