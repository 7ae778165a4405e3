"""Show a sample of a task as the candidate sees it, or the report of a stored run."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.cli.options import add_modality_flag, add_shots_flag, add_store_flag, add_task_flags, parse_settings
from proctor.cli.output import print_json

if TYPE_CHECKING:
    from proctor.core.types import Sample

RUN_ID = re.compile(r"latest|\d[\d-]*[0-9a-f]*")  # no task starts with a digit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="TASK|RUN", help="task name, run id, or `latest` for the newest run")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--index", type=int, default=0, help="index of the sample")
    parser.add_argument("--few-shot", type=int, default=0, help="number of few-shot examples before the question")
    add_shots_flag(parser)
    parser.add_argument("--records", action="store_true", help="with a run: also list the outcome of each sample")
    parser.add_argument("--reviewed", action="store_true", help="with a run: use the scores of reviews")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    add_modality_flag(parser)
    parser.add_argument("--images", metavar="DIR", help="folder for the images of the sample")
    add_task_flags(parser)
    add_store_flag(parser)


def call(args: argparse.Namespace) -> int:
    return _show_run(args) if RUN_ID.fullmatch(args.name) else _show_task(args)


def _show_run(args: argparse.Namespace) -> int:
    from proctor.analysis.report import Report
    from proctor.store import open_store

    store = open_store(getattr(args, "store", None), mode="read")
    try:
        run = store.run(args.name)
        status = store.status(run)
        if status != "done":
            done = ", ".join(f"{outcome} {n}" for outcome, n in sorted(store.counts(run).items()))
            hint = "" if status == "running" else f" Continue: proctor resume {run.id}"
            print(f"{run.id}: {status}, so far {done or 'nothing'}.{hint}", file=sys.stderr)
    finally:
        store.close()
    report = Report(run, store.url)
    if args.reviewed:
        report = report.reviewed()
    if args.json:
        print_json({"runs": [report.to_dict()]})
        return 0
    print(report)
    for record in report.records() if args.records else ():
        why = record.error.message if record.error else record.score.why if record.score else ""
        last = next((line for line in reversed(why.splitlines()) if line.strip()), "")
        print(f"  {record.sample.id:<14} {record.outcome:<12} {last[:100]}".rstrip())
    return 0


def _show_task(args: argparse.Namespace) -> int:
    import msgspec

    from proctor.core import registry
    from proctor.core.config import build_config
    from proctor.core.errors import UsageError
    from proctor.core.task import create_task, take_samples

    name = registry.expand_one(args.name)
    config = build_config(
        {
            "task": name,
            "model": "scripted/oracle",
            "seed": args.seed,
            "limit": 1,
            "limit_start": args.index,
            "few_shot": args.few_shot,
            "shots": getattr(args, "shots", "same"),
            "modality": getattr(args, "modality", "text"),
            "settings": parse_settings(getattr(args, "settings", [])),
            "data": getattr(args, "data", None),
        }
    )
    task = create_task(registry.load_task_class(name), name, config.settings, config.modality, config.data)
    sample = next(take_samples(task, config), None)
    if sample is None:
        raise UsageError(f"{name} has no sample with index {args.index}.")
    paths = _write_images(sample, args.images) if args.images else []
    if args.json:
        print_json(sample)
        return 0
    print(f"{name} (version {task.version}): {task.summary}")
    for key, value in msgspec.to_builtins(task.settings).items():
        print(f"  --set {key}={value if isinstance(value, str) else msgspec.json.encode(value).decode()}")
    print(f"\n--- sample {sample.id}, as the candidate sees it ---")
    print("\n".join(_lines(sample, iter(paths))))
    print(f"--- gold answer: {task.gold(sample)} ---")
    return 0


def _write_images(sample: Sample, folder: str) -> list[Path]:
    from proctor.core.errors import UsageError

    images = [] if isinstance(sample.input, str) else [image for message in sample.input for image in message.images]
    if not images:
        raise UsageError("There is no image to write: --images needs --modality image or both.")
    paths = []
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for number, image in enumerate(images, 1):
            paths.append(Path(folder) / f"sample{sample.index}-{number}.{image.media_type.rpartition('/')[2]}")
            paths[-1].write_bytes(image.data)
    except OSError as error:
        raise UsageError(f"Cannot write to {folder}: {error.strerror}.") from None
    return paths


def _lines(sample: Sample, paths: Iterator[Path]) -> Iterator[str]:
    from proctor.core.types import Text

    if isinstance(sample.input, str):
        yield sample.input
        return
    for message in sample.input:
        yield f"[{message.role}]"
        for part in (Text(message.content),) if isinstance(message.content, str) else message.content:
            if isinstance(part, Text):
                yield part.text
            else:
                where = next(paths, "--images DIR writes it to a file")
                yield f"[image, {part.media_type}, {len(part.data):,} bytes: {where}]"
