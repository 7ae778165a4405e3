"""Run Inspect on an exam that costs nothing to answer, and reopen the log it leaves."""

# mypy: ignore-errors
# The harness is not among our development dependencies, so its types cannot be checked.

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Literal

import inspect_ai
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


def run(count: int, log_dir: Path, log_format: Literal["json", "eval"]) -> dict[str, float]:
    samples = [
        Sample(id=i, input=f"What is {i} + {i}? Answer with the number only.", target=str(2 * i)) for i in range(count)
    ]
    task = inspect_ai.Task(name="trivial", dataset=MemoryDataset(samples), scorer=match(location="exact"))

    start = time.perf_counter()
    [log] = inspect_ai.eval(
        task,
        model="instant/zero",
        log_dir=str(log_dir),
        # Chosen for speed. max_samples keeps its default: 1, 8 and 32 took the same time, as nothing waits.
        log_format=log_format,
        # A JSON log is rewritten whole at every flush, so flush once; the default suits an eval log.
        log_buffer=count if log_format == "json" else None,
        log_realtime=False,  # no database of events for live viewing: the greatest saving
        log_header_only=True,  # the caller wants the metrics, not every record back in memory
        display="none",
        score_display=False,
        ctl_server=False,
    )
    seconds = time.perf_counter() - start

    if log.status != "success" or log.results is None:
        raise SystemExit(f"the evaluation ended with status {log.status}")
    return {
        "samples": count,
        "seconds": seconds,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,  # Linux counts in KiB
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", help="take the exam")
    run_parser.add_argument("count", type=int, metavar="N", help="number of samples")
    run_parser.add_argument("dir", type=Path, metavar="DIR", help="folder for the log")
    # json is the quicker to write and to read; eval, Inspect's own default, takes a fifth of the disk.
    run_parser.add_argument("--log-format", choices=["json", "eval"], default="json")
    reopen_parser = commands.add_parser("reopen", help="read the newest log back")
    reopen_parser.add_argument("dir", type=Path, metavar="DIR", help="folder given to run")
    args = parser.parse_args()

    figures = run(args.count, args.dir, args.log_format) if args.command == "run" else reopen(args.dir)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
