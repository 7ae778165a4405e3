"""Prepare what EvalPlus judges with: `FILE` is a file of HumanEval's problems with their solutions, once each.

EvalPlus compares outputs for given inputs, from a data set that it downloads. The inputs of its base tests are those of
HumanEval's own tests, so they are recorded here while the tests run; the outputs come from the solutions, by the
function with which EvalPlus itself computes them. Both go to a file beside FILE. Printed are the
problems whose solutions EvalPlus finds wrong all the same.
"""

# mypy: ignore-errors
# The harness is not a development dependency, so its types cannot be checked.

import copy
import json
import pickle
import sys
from pathlib import Path

from evalplus.eval import PASS, untrusted_check
from evalplus.gen.util import trusted_exec

from judge_command import PREPARED

ROOT_TOLERANCE = 1e-4  # HumanEval's own, for the one problem where EvalPlus takes any root it is given


def record_inputs(row: dict) -> list[tuple]:
    namespace = {}
    exec(f"{row['prompt']}{row['completion']}\n{row['test']}", namespace)
    solution, inputs = namespace[row["entry_point"]], []

    def candidate(*arguments: object) -> object:
        inputs.append(copy.deepcopy(arguments))
        return solution(*arguments)

    namespace["check"](candidate)
    return inputs


def prepare(row: dict) -> dict:
    """The arguments of `untrusted_check` that depend on the problem."""
    source, inputs = row["prompt"] + row["completion"], record_inputs(row)
    outputs, seconds = trusted_exec(source, inputs, row["entry_point"], record_time=True)
    return {
        "inputs": inputs,
        "entry_point": row["entry_point"],
        "expected": outputs,
        "atol": ROOT_TOLERANCE if row["entry_point"] == "find_zero" else 0,
        "ref_time": seconds,
    }


def main() -> None:
    file = Path(sys.argv[1])
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    prepared = {row["task_id"]: prepare(row) for row in rows}
    (file.parent / PREPARED).write_bytes(pickle.dumps(prepared))
    # EvalPlus 0.3.1 does not count the inputs of `find_zero` as done and so finds its every solution wrong.
    misjudged = [
        row["task_id"]
        for row in rows
        if untrusted_check("humaneval", row["prompt"] + row["completion"], **prepared[row["task_id"]])[0] != PASS
    ]
    print(json.dumps({"misjudged": misjudged}))


if __name__ == "__main__":
    main()
