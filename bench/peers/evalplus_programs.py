"""Judges programs with EvalPlus, as its `evaluate` does with base tests: a process pool, one process each."""

# mypy: ignore-errors
# The harness is not a development dependency, so its types cannot be checked.

import pickle
from concurrent.futures import ProcessPoolExecutor

from evalplus.eval import PASS, untrusted_check

from judge_command import Job, Judgement, run_command


def judge(job: Job) -> Judgement:
    prepared = pickle.loads(job.prepared.read_bytes())
    with ProcessPoolExecutor(max_workers=job.workers) as executor:
        futures = [
            executor.submit(
                untrusted_check,
                "humaneval",
                row["prompt"] + row["completion"],
                **prepared[row["task_id"]],
                fast_check=True,  # stops at the first failure, as by default
                min_time_limit=job.seconds,  # the default is 1 second; here all have the same limit
            )
            for row in job.rows
        ]
        return Judgement([future.result()[0] == PASS for future in futures], {})


if __name__ == "__main__":
    run_command(judge, command="evalplus.evaluate")
