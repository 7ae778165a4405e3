"""Runs lm-evaluation-harness on a trivial task, and reopens its files."""

# mypy: ignore-errors
# The harness is not a development dependency, so its types cannot be checked.

import json
import os
import time
from pathlib import Path

# Read when the libraries are imported, so they are set first.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TQDM_DISABLE"] = "1"

from command import run_command
from datasets import Dataset
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.api.task import ConfigurableTask
from lm_eval.evaluator import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

TASK = "trivial"


class InstantLM(LM):
    def generate_until(self, requests: list[Instance]) -> list[str]:
        return ["0"] * len(requests)

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        raise NotImplementedError


class TrivialTask(ConfigurableTask):
    def download(self, dataset_kwargs: dict[str, int] | None = None, **kwargs: object) -> None:
        assert dataset_kwargs is not None
        docs = [
            {"question": f"What is {i} + {i}? Answer with the number only.", "answer": str(2 * i)}
            for i in range(dataset_kwargs["count"])
        ]
        self.dataset = {"test": Dataset.from_list(docs)}


def run(count: int, log_dir: Path, fastest: bool) -> dict[str, float]:
    task = TrivialTask(
        config={
            "task": TASK,
            "dataset_kwargs": {"count": count},
            "test_split": "test",
            "output_type": "generate_until",
            "generation_kwargs": {"until": ["\n"]},
            # A template, as the harness's own tasks have it, is rendered for each sample; a column is looked up.
            "doc_to_text": "question" if fastest else "{{question}}",
            "doc_to_target": "answer" if fastest else "{{answer}}",
            "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
        }
    )
    # By default the thousands of tasks that ship with the harness are indexed first.
    task_manager = TaskManager(include_defaults=not fastest)

    start = time.perf_counter()
    tracker = EvaluationTracker(output_path=str(log_dir))
    # bootstrap_iters keeps its default: the standard error of a mean has a formula, so nothing is resampled.
    results = simple_evaluate(
        model=InstantLM(),
        tasks=[task],
        task_manager=task_manager,
        evaluation_tracker=tracker,
        log_samples=True,
    )
    # The command line writes the files in this way, after the evaluation.
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    tracker.save_results_samples(task_name=TASK, samples=samples[TASK])
    seconds = time.perf_counter() - start

    # The tracker only warns when it cannot write, and then the time would mean nothing.
    if not any(log_dir.rglob(f"samples_{TASK}_{tracker.date_id}.jsonl")):
        raise SystemExit("the samples were not written")
    return {
        "samples": count,
        "seconds": seconds,
        "accuracy": results["results"][TASK]["exact_match,none"],
    }


def reopen(log_dir: Path) -> dict[str, float]:
    # The harness names a folder after the model and dates the files, and has no reader of its own.
    newest_results = max(log_dir.rglob("results_*.json"), key=lambda path: path.name)
    newest_samples = max(log_dir.rglob(f"samples_{TASK}_*.jsonl"), key=lambda path: path.name)

    start = time.perf_counter()
    results = json.loads(newest_results.read_text(encoding="utf-8"))
    header_seconds = time.perf_counter() - start

    start = time.perf_counter()
    with newest_samples.open(encoding="utf-8") as lines:
        samples = [json.loads(line) for line in lines]
    full_seconds = time.perf_counter() - start
    assert len(samples) == results["n-samples"][TASK]["effective"]
    return {"header_seconds": header_seconds, "full_seconds": full_seconds}


if __name__ == "__main__":
    run_command(run, reopen)
