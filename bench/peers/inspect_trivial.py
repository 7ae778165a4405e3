"""Runs Inspect on a trivial task, and reopens its log."""

# mypy: ignore-errors
# The harness is not a development dependency, so its types cannot be checked.

import time
from pathlib import Path
from typing import Any

import inspect_ai
from command import run_command
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput, modelapi
from inspect_ai.scorer import match
from inspect_ai.tool import ToolChoice, ToolInfo


# Not mockllm: it counts tokens with tiktoken, which costs time and downloads its vocabulary.
@modelapi(name="instant")
class InstantModel(ModelAPI):
    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - the name is Inspect's
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        return ModelOutput.from_content(self.model_name, "0")


# Chosen for speed by trying. max_samples keeps its default: 1, 8 and 32 took the same time, as nothing waits.
FASTEST: dict[str, Any] = {
    "log_format": "json",  # quicker to write and to read than the default, at five times the disk
    "log_realtime": False,  # no database of events for live viewing: the greatest saving
    "log_header_only": True,  # the caller wants the metrics, not every record back in memory
    "score_display": False,
    "ctl_server": False,
}


def run(count: int, log_dir: Path, fastest: bool) -> dict[str, float]:
    samples = [
        Sample(id=i, input=f"What is {i} + {i}? Answer with the number only.", target=str(2 * i)) for i in range(count)
    ]
    task = inspect_ai.Task(name="trivial", dataset=MemoryDataset(samples), scorer=match(location="exact"))
    # A JSON log is rewritten whole at every flush, so it is flushed once.
    settings = FASTEST | {"log_buffer": count} if fastest else {}

    start = time.perf_counter()
    [log] = inspect_ai.eval(task, model="instant/zero", log_dir=str(log_dir), display="none", **settings)
    seconds = time.perf_counter() - start

    if log.status != "success" or log.results is None:
        raise SystemExit(f"the evaluation ended with status {log.status}")
    return {
        "samples": count,
        "seconds": seconds,
        "accuracy": log.results.scores[0].metrics["accuracy"].value,
    }


def reopen(log_dir: Path) -> dict[str, float]:
    newest = list_eval_logs(str(log_dir))[0]

    start = time.perf_counter()
    header = read_eval_log(newest, header_only=True)
    header_seconds = time.perf_counter() - start
    assert header.results is not None

    start = time.perf_counter()
    log = read_eval_log(newest)  # for all records at once, faster than read_eval_log_samples
    full_seconds = time.perf_counter() - start
    assert log.samples is not None
    assert len(log.samples) == header.results.total_samples
    return {"header_seconds": header_seconds, "full_seconds": full_seconds}


if __name__ == "__main__":
    run_command(run, reopen)
