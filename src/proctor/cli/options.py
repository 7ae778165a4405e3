"""Command line flags, generated from the fields of RunConfig."""

from __future__ import annotations

import argparse
import types
from collections.abc import Collection
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT

from proctor.core.config import FIELDS, find_meta, load_toml
from proctor.core.errors import UsageError

ALIASES = {
    "samples": ("-n", "--n-samples"),
    "model": ("-m",),
    "limit": ("-l", "--episodes"),
    "tags": ("--tag",),
    "max_length": ("--max-length-generation",),
}
SANDBOX_OPTIONS = ("sandbox", "workers", "unsafe")
ISOLATION_OPTIONS = ("isolate_agent", "agent_network", "agent_gpu", "agent_files", "agent_env")
GROUPS = {
    "task": (
        "model",
        "agent",
        "settings",
        "data",
        "limit",
        "until_ci",
        "limit_start",
        "seed",
        "few_shot",
        "shots",
        "modality",
        "epochs",
        "samples",
        "k",
        "group_by",
    ),
    "sampling": ("temperature", "top_p", "top_k", "max_tokens", "max_length", "stop"),
    "code prompts": ("prefix", "instruction_tokens", "fim"),
    "model server": ("base_url", "api", "api_key_env", "price_input", "price_output", "cache"),
    "budget": ("max_cost", "max_tokens_total", "time_limit"),
    "local model": (
        "batch_size",
        "devices",
        "device_map",
        "precision",
        "load_in_8bit",
        "load_in_4bit",
        "revision",
        "trust_remote_code",
        "peft_model",
        "modeltype",
    ),
    "cluster": ("engine", "ray_address", "model_cpus"),
    "agents": (
        "parallel",
        "display",
        "film",
        "owamcap",
        *ISOLATION_OPTIONS,
        "agent_frames",
    ),
    "running": ("concurrency", "timeout", "retries", "max_errors", "generation_only"),
    "programs": ("allow_code_execution", "program_timeout", *SANDBOX_OPTIONS),
    "results": ("store", "tags", "out"),
}


def add_config_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help="TOML file with any of these options; flags override it")
    for title, names in GROUPS.items():
        group = parser.add_argument_group(title)
        for name in names:
            _add_flag(group, name)


def add_store_flag(parser: argparse.ArgumentParser) -> None:
    _add_flag(parser, "store")


def add_task_flags(parser: argparse.ArgumentParser) -> None:
    """The options that configure a task."""
    _add_flag(parser, "settings")
    _add_flag(parser, "data")


def add_modality_flag(parser: argparse.ArgumentParser) -> None:
    _add_flag(parser, "modality")


def add_shots_flag(parser: argparse.ArgumentParser) -> None:
    _add_flag(parser, "shots")


def add_program_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("programs")
    for name in SANDBOX_OPTIONS:
        _add_flag(group, name)


def add_isolation_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("untrusted agent")
    for name in ISOLATION_OPTIONS:
        _add_flag(group, name)


def add_output_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print only the report on stdout, as JSON")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")


def add_sweep_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sweep",
        action="append",
        default=argparse.SUPPRESS,
        metavar="KEY=V1,V2,…",
        help="run at each of these values of a setting, and plot the metric over them",
    )


def add_window_flags(parser: argparse.ArgumentParser) -> None:
    """Flags for the main settings of agents/window."""
    group = parser.add_argument_group("a program with a window, for agents/window")
    group.add_argument("--command", metavar="COMMAND", help="command that starts the program; same as --set command=…")
    group.add_argument("--window", metavar="TITLE", help="part of the window title; same as --set window=…")


def given_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options from flags and TOML file, without defaults."""
    options = load_toml(args.config) if args.config else {}
    flags = {name: value for name, value in vars(args).items() if name in FIELDS}
    if "sweep" in args:
        flags["sweep"] = parse_sweep(args.sweep)
        for key in flags["sweep"]:
            options.get("settings", {}).pop(key, None)  # the flag overrides the file
    if "settings" in flags:
        flags["settings"] = options.get("settings", {}) | parse_settings(flags["settings"])
    window = {key: value for key in ("command", "window") if (value := getattr(args, key, None)) is not None}
    if window:
        flags["settings"] = flags.get("settings", options.get("settings", {})) | window
    return options | flags


def parse_settings(pairs: Collection[str]) -> dict[str, Any]:
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"--set expects key=value, got {pair!r}.")
        settings[key] = _read_value(value)
    return settings


def parse_sweep(pairs: Collection[str]) -> dict[str, list[Any]]:
    """The swept setting, in the form of the TOML table."""
    pair, *others = pairs
    if others:
        raise UsageError(f"--sweep takes one setting, got {len(pairs)}: use one command for each.")
    key, _, values = pair.partition("=")
    parts = [part.strip() for part in values.split(",")]
    if not key or not all(parts):
        raise UsageError(f"--sweep expects key=value,value,… as in shapes=3,5,7, got {pair!r}.")
    return {key: [_read_value(part) for part in parts]}


def _read_value(text: str) -> Any:
    """Parses JSON, such as a number, true or a list; returns other text unchanged."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _add_flag(parser: Any, name: str) -> None:
    field = FIELDS[name]
    kind, description = _kind(field.type), find_meta(name).description or ""
    if field.default != "" and not any(field.default is value for value in (None, NODEFAULT, False)):
        description += f" (default: {field.default})"
    # No default: a flag that is not given must not override the file.
    common: dict[str, Any] = {
        "dest": name,
        "default": argparse.SUPPRESS,
        "help": description.replace("%", "%%"),
    }
    flags = [f"--{name.replace('_', '-')}", *ALIASES.get(name, ())]
    if name == "settings":
        parser.add_argument("--set", action="append", metavar="KEY=VALUE", **common)
    elif kind is bool:
        parser.add_argument(*flags, action=argparse.BooleanOptionalAction, **common)
    elif get_origin(kind) is list and _kind(get_args(kind)[0]) is int:
        parser.add_argument(*flags, type=_integers, metavar="N,N,…", **common)
    elif get_origin(kind) is list:
        parser.add_argument(*flags, action="append", metavar="TEXT", **common)
    elif get_origin(kind) is Literal:
        parser.add_argument(*flags, choices=get_args(kind), **common)
    else:
        metavar = {int: "N", float: "X"}.get(kind, name.upper())
        parser.add_argument(*flags, metavar=metavar, **common)


def _integers(text: str) -> list[int]:
    """1,5,10"""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected whole numbers such as 1,5,10, got {text!r}") from None


def _kind(annotation: Any) -> Any:
    """Unwraps Annotated and `| None`."""
    if get_origin(annotation) is Annotated:
        return _kind(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return _kind(next(a for a in get_args(annotation) if a is not type(None)))
    return annotation
