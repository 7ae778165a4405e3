"""The flags and files of the BigCode evaluation harness, so that its command lines work with `proctor run`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.analysis.report import Report
from proctor.core import registry
from proctor.core.config import RunConfig, user_path
from proctor.core.errors import UsageError
from proctor.formats import code_files
from proctor.formats.code_files import RunNames

# Accepted, and said to be of no use here: with the name of their value, if they take one.
_NEEDLESS = {
    "--left-padding": ("", "prompts that are decoded together are aligned at their ends, whatever the tokenizer says"),
    "--use-auth-token": ("", "the hub is asked with the token of `hf auth login`, or $HF_TOKEN"),
    "--save-every-k-tasks": ("N", "everything is stored as it comes"),
}
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("as in the BigCode harness")
    group.add_argument(
        *("--tasks", "--task"),
        dest="task_list",
        action="append",
        default=[],
        metavar="A,B",
        help="the same as naming them one by one",
    )
    group.add_argument(
        "--do-sample",
        nargs="?",
        const="true",
        metavar="BOOL",
        help="False is --temperature 0; True, where they are not given, --temperature 0.2 --top-p 0.95",
    )
    group.add_argument("--prompt", metavar="NAME", help="the same as --set prompt=NAME, for tasks that have it")
    group.add_argument("--load-data-path", metavar="FILE", help="the same as --set load_data_path=FILE")
    group.add_argument("--check-references", action="store_true", help="judge the right answers instead of a model's")
    group.add_argument(
        *("--load-generations-path", "--generations"),
        dest="generations",
        default=argparse.SUPPRESS,
        metavar="FILE",
        help="judge these generations instead of asking; --model names who made them",
    )
    group.add_argument(
        *("--load-generations-intermediate-paths", "--partial-generations"),
        dest="intermediate_paths",
        nargs="*",
        default=[],
        metavar="FILE",
        help="take what these have, a file for each task, and ask the model for the problems that are missing",
    )
    group.add_argument("--eos", metavar="TOKEN", help="the same as --stop TOKEN: the end of a text")
    group.add_argument(
        "--postprocess",
        action="store_const",
        const=False,
        default=argparse.SUPPRESS,
        help="judge outputs as they are: as there, the flag switches the task's post-processing off",
    )
    group.add_argument(
        "--max-memory-per-gpu",
        default=argparse.SUPPRESS,
        metavar="SIZE",
        help="most memory of each GPU for a model of hf/, as in 20GiB; auto is --device-map auto",
    )
    for flag, (metavar, why) in _NEEDLESS.items():
        kind: dict[str, Any] = {"metavar": metavar} if metavar else {"action": "store_true"}
        group.add_argument(flag, help=f"not needed: {why}", **kind)
    add_file_arguments(parser)


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("files, named after each task: generations_humaneval.json")
    for what in ("generations", "references"):
        group.add_argument(f"--save-{what}", action="store_true", help=f"write {what}_TASK.json")
        group.add_argument(f"--save-{what}-path", metavar="FILE", help="write them to FILE, with the task in its name")
    group.add_argument("--metric-output-path", metavar="FILE", help="write the metrics of all tasks as JSON")


def named_tasks(args: argparse.Namespace) -> list[str]:
    return [name.strip() for names in args.task_list for name in names.split(",") if name.strip()]


def add_options(args: argparse.Namespace, options: dict[str, Any]) -> None:
    """What these flags mean, as options of a run."""
    if args.check_references and options.get("generations") is not None:
        raise UsageError(
            "--check-references judges the right answers, --load-generations-path those in a file: say one."
        )
    if args.do_sample is not None:
        if _read_bool(args.do_sample):
            options.setdefault("temperature", 0.2)
            options.setdefault("top_p", 0.95)
        else:
            options["temperature"] = 0.0
    if args.check_references:
        options["model"] = "scripted/oracle"
        options.pop("postprocess", None)  # they are never post-processed there, and are outputs here
    if args.eos is not None:
        options["stop"] = [*options.get("stop", []), args.eos]
    if path := options.get("generations"):
        from proctor.models.providers.generations import count_generations

        options.setdefault("model", f"scripted/generations:{path}")
        options.setdefault("samples", count_generations(user_path(str(path))))
    _note_what_changes_nothing(args, options)


def _note_what_changes_nothing(args: argparse.Namespace, options: dict[str, Any]) -> None:
    for flag, (_, why) in _NEEDLESS.items():
        if getattr(args, flag[2:].replace("-", "_")):
            _note(f"{flag} changes nothing: {why}.")
    if options.get("postprocess") is False:
        _note("--postprocess switches post-processing off, as in the BigCode harness: outputs are judged as they are.")
    family = str(options.get("model", "")).partition("/")[0]
    if options.get("max_memory_per_gpu") is not None and family in ("smollm2", "gguf", "openai", "scripted", "vllm"):
        _note(f"--max-memory-per-gpu changes nothing: it is for models of hf/, not for {options['model']}.")


def options_of(args: argparse.Namespace, options: dict[str, Any], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The options of each task: what is meant for constructors is given to those that take it."""
    given = {key: getattr(args, key) for key in ("prompt", "load_data_path") if getattr(args, key) is not None}
    taken = {name: _settings_of(name) & given.keys() for name in names}
    for key in given:
        if lacking := [name for name in names if key not in taken[name]]:
            _note(f"--{key.replace('_', '-')} is left out of {', '.join(lacking)}: there is no such setting.")
    found = {
        name: {**options, "settings": options.get("settings", {}) | {key: given[key] for key in taken[name]}}
        for name in names
    }
    paths = args.intermediate_paths
    if paths and len(paths) != len(names):
        raise UsageError(
            f"--load-generations-intermediate-paths: {len(names)} tasks need {len(names)} files, got {len(paths)}."
        )
    for name, path in zip(names, paths, strict=False):
        found[name]["partial_generations"] = path
    return found


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def _settings_of(task: str) -> set[str]:
    return {field.name for field in msgspec.structs.fields(registry.load_task_class(task).Settings)}


def name_files(args: argparse.Namespace, runs: Sequence[RunConfig], swept: str = "") -> RunNames:
    """What the files of these runs will be called. Two that would be one are refused before anything is run."""
    names = RunNames([config.task for config in runs], swept)
    ours = [names.name(config.task, config.settings) for config in runs]
    paths = [path for name in ours for path in _paths(args, name).values()]
    if args.metric_output_path is not None:
        if twice := [name for name, number in Counter(ours).items() if number > 1]:
            raise UsageError(f"Two of these runs would be {twice[0]} in {args.metric_output_path}: start one of them.")
        paths.append(Path(args.metric_output_path))
    if twice := [str(path) for path, number in Counter(paths).items() if number > 1]:
        raise UsageError(f"Two files would be written to {twice[0]}: give them other names, or start one run of them.")
    return names


def write_files(args: argparse.Namespace, reports: Sequence[Report], names: RunNames) -> None:
    named = {names.name(report.run.task, report.run.config["settings"]): report for report in reports}
    if args.metric_output_path is not None:  # first: it is what took longest to find out, and needs no task
        _save(code_files.save_metrics, named, Path(args.metric_output_path))
    for name, report in named.items():
        for what, path in _paths(args, name).items():
            _save(code_files.save_generations if what == "generations" else code_files.save_references, report, path)


def _paths(args: argparse.Namespace, name: str) -> dict[str, Path]:
    """Where the generations and the references of a run go, if they are wanted."""
    given = {what: getattr(args, f"save_{what}_path") for what in ("generations", "references")}
    return {
        what: code_files.task_path(template or f"{what}.json", name)
        for what, template in given.items()
        if template is not None or getattr(args, f"save_{what}")
    }


def _save(save: Callable[[Any, Path], None], what: Any, path: Path) -> None:
    save(what, path)
    print(f"wrote {path}", file=sys.stderr)


def _read_bool(text: str) -> bool:
    if text.lower() not in (*_TRUE, *_FALSE):
        raise UsageError(f"--do-sample: expected True or False, got {text!r}.")
    return text.lower() in _TRUE
