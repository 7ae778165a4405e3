"""Write the records of a run as JSON lines, a JSON array, CSV or a Parquet table.

For tools of other harnesses, into a folder: lm-eval writes results_TIME.json and
samples_TASK_TIME.jsonl like lm-evaluation-harness; bigcode writes generations, references and
evaluation_results.json like the BigCode harness."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from proctor.analysis.report import Report
from proctor.cli.options import add_store_flag
from proctor.core.config import user_path
from proctor.core.errors import UsageError
from proctor.core.types import Record, Run
from proctor.store import open_store
from proctor.store.export import FORMATS
from proctor.store.parquet import write_parquet
from proctor.store.store import Store

PARQUET = "parquet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="run id, its prefix, or `latest`")
    parser.add_argument(
        "--format", choices=(*FORMATS, PARQUET, *FOLDERS), help="default: by the extension of the file, else jsonl"
    )
    parser.add_argument("--out", metavar="FILE|DIR", help="output (default: standard output)")
    parser.add_argument("--reviewed", action="store_true", help="use the scores of reviews")
    add_store_flag(parser)


def call(args: argparse.Namespace) -> int:
    extension = Path(args.out).suffix.lstrip(".") if args.out else ""
    extensions = (*FORMATS, PARQUET)
    if extension and not args.format and extension not in extensions:
        raise UsageError(
            f"No format for files that end in .{extension}: use .{', .'.join(extensions)}, or give --format."
        )
    chosen = args.format or extension or "jsonl"
    if args.out is None and chosen not in FORMATS:
        target = "a folder, --out DIR" if chosen in FOLDERS else "a file, --out FILE.parquet"
        raise UsageError(f"{chosen} needs {target}; standard output takes {', '.join(FORMATS)}.")
    if args.reviewed and chosen in FOLDERS:
        raise UsageError(f"{chosen} contains the original metrics of the run: remove --reviewed.")
    store = open_store(getattr(args, "store", None), mode="read")
    try:
        run = store.run(args.run)
        if chosen in FOLDERS:
            for path in FOLDERS[chosen](store, run, user_path(args.out)):
                print(f"wrote {path}", file=sys.stderr)
        else:
            _write(run, store.records(run, reviewed=args.reviewed), chosen, args.out)
    finally:
        store.close()
    return 0


def _write(run: Run, records: Iterator[Record], chosen: str, out: str | None) -> None:
    if out is None:
        sys.stdout.buffer.writelines(FORMATS[chosen](records))
        sys.stdout.buffer.flush()
        return
    try:
        with user_path(out).open("wb") as file:
            if chosen == PARQUET:
                write_parquet(run, records, file)
            else:
                file.writelines(FORMATS[chosen](records))
    except OSError as error:
        raise UsageError(f"Cannot write {out}: {error.strerror}.") from None


def _lm_eval(store: Store, run: Run, folder: Path) -> list[Path]:
    from proctor.formats.harness_results import save_results

    return save_results(run, store.records(run), folder)


def _bigcode(store: Store, run: Run, folder: Path) -> list[Path]:
    from proctor.formats import code_files

    report = Report(run, store.url)
    name = code_files.RunNames([run.task]).name(run.task, {})
    generations, references = (folder / f"{what}_{name}.json" for what in ("generations", "references"))
    results = folder / "evaluation_results.json"
    code_files.save_generations(report, generations)
    code_files.save_references(report, references)
    code_files.save_metrics({name: report}, results)
    return [generations, references, results]


FOLDERS: dict[str, Callable[[Store, Run, Path], list[Path]]] = {"lm-eval": _lm_eval, "bigcode": _bigcode}
