"""Run untrusted programs in the sandbox and print the verdicts.

With --tests, a file of Python tests calls the functions of a Python program. Without them a file is a
whole program, in any supported language: it passes if its exit status is 0.

Exits with 0 if every program passes, else with 1."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from proctor.cli.options import SANDBOX_OPTIONS, add_program_flags
from proctor.cli.output import print_json
from proctor.core import machine
from proctor.core.config import RunConfig, build_config
from proctor.core.errors import UsageError
from proctor.sandbox.containers import IMAGE
from proctor.sandbox.languages import LANGUAGES, Language, find_language
from proctor.sandbox.program import Limits, Program
from proctor.sandbox.verdict import Mode, Verdict

TESTING_MODES = {
    Mode.SPLIT: "split: the tests ran in a separate process",
    Mode.IN_PROCESS: "in-process: the tests ran in the process of the program, which could fake a pass",
    Mode.NONE: "none: the exit status decided",
}

MAX_LIMIT = 10**9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    defaults = Limits()
    parser.add_argument("files", nargs="+", metavar="FILE", help="the programs")
    parser.add_argument("--tests", metavar="FILE", help="Python tests that call the program")
    parser.add_argument(
        "--entry-point",
        default="",
        metavar="NAME",
        help="function that the tests call; needed only if a built-in has the same name",
    )
    parser.add_argument("--language", metavar="NAME", help="language of the programs (default: by file extension)")
    parser.add_argument("--stdin", metavar="FILE", help="standard input of the programs")
    limits = parser.add_argument_group("limits, for each program")
    for flag, unit, kind, default, about in (
        ("--seconds", "X", float, defaults.seconds, "seconds of running time, without waiting for a CPU"),
        ("--memory", "MIB", int, defaults.memory_mib, "MiB of memory"),
        ("--output", "KIB", int, defaults.output_kib, "KiB of output"),
        ("--processes", "N", int, defaults.processes, "processes and threads at once"),
    ):
        limits.add_argument(
            flag, type=_positive(kind), default=default, metavar=unit, help=f"{about} (default: {default:g})"
        )
    add_program_flags(parser)
    parser.add_argument("--image", default=IMAGE, help=f"image for docker or podman (default: {IMAGE})")
    parser.add_argument("--json", action="store_true", help="print as JSON")


def call(args: argparse.Namespace) -> int:
    config = _config(args)
    programs = [_program(args, file, in_container=config.sandbox != "local") for file in args.files]
    limits = Limits(seconds=args.seconds, memory_mib=args.memory, output_kib=args.output, processes=args.processes)
    return asyncio.run(_judge(args, config, programs, limits))


def _config(args: argparse.Namespace) -> RunConfig:
    """The options that this verb shares with runs. The required task and model are unused."""
    flags = {name: value for name, value in vars(args).items() if name in SANDBOX_OPTIONS}
    return build_config({"task": "none", "model": "none", **flags})


async def _judge(args: argparse.Namespace, config: RunConfig, programs: list[Program], limits: Limits) -> int:
    from proctor.sandbox import open_sandbox

    verdicts = []
    passed = True
    workers = min(len(programs), config.workers or machine.cores())
    engine = "" if config.sandbox == "local" else config.sandbox
    opening = open_sandbox(workers=workers, unsafe=config.unsafe, engine=engine, image=args.image)
    async with await opening as sandbox:
        judging = [asyncio.create_task(sandbox.judge(program, limits)) for program in programs]
        try:
            for file, program, task in zip(args.files, programs, judging, strict=True):
                verdict = await task
                passed &= verdict.passed
                if args.json:
                    verdicts.append({"file": file, "language": program.language, **msgspec.to_builtins(verdict)})
                else:
                    print("\n".join(_lines(file, verdict)), flush=True)
        finally:
            for task in judging:
                task.cancel()
            await asyncio.gather(*judging, return_exceptions=True)
    if args.json:
        print_json({"programs": verdicts})
    return 0 if passed else 1


def _program(args: argparse.Namespace, file: str, in_container: bool) -> Program:
    from proctor.sandbox.toolchain import locate

    language = find_language(args.language) if args.language else _language_of(file)
    if not in_container:
        locate(language)  # fails before anything runs
    if args.tests and language.name != "python":
        raise UsageError(
            f"--tests are Python and cannot call {file} ({language.name}): put the tests into the program."
        )
    return Program(
        source=_read(file),
        language=language.name,
        tests=_read(args.tests) if args.tests else "",
        entry_point=args.entry_point,
        stdin=_read(args.stdin) if args.stdin else "",
    )


def _language_of(file: str) -> Language:
    """By the longest matching suffix: main_test.go is a Go test."""
    suffixes = {language.file.removeprefix("main"): language for language in reversed(LANGUAGES)}
    suffixes |= {f".{alias}": language for language in LANGUAGES for alias in (language.name, *language.aliases)}
    matches = [suffix for suffix in suffixes if Path(file).name.lower().endswith(suffix)]
    if not matches:
        raise UsageError(f"The name {file} does not show its language: give --language NAME.")
    return suffixes[max(matches, key=len)]


def _read(file: str) -> str:
    try:
        return Path(file).read_bytes().decode()
    except OSError as error:
        raise UsageError(f"Cannot read {file}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8 text.") from None


def _lines(file: str, verdict: Verdict) -> Iterator[str]:
    yield f"{file}: {verdict.outcome}"
    for name, value in (
        ("why", verdict.detail),
        ("tests", TESTING_MODES[verdict.testing]),
        ("level", verdict.level),
        (
            "used",
            f"{verdict.wall_seconds:.3f} s, {verdict.cpu_seconds:.3f} s of CPU, {verdict.memory_mib:.0f} MiB",
        ),
        ("stdout", verdict.stdout),
        ("stderr", verdict.stderr),
    ):
        first, *others = _visible(value).rstrip("\n").split("\n")
        if value:
            yield f"  {name:<7} {first}"
            yield from (f"{'':<9} {line}" for line in others)


def _visible(text: str) -> str:
    """Escapes control characters, so that the output cannot control the terminal."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1] for character in text
    )


def _positive(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = kind(text)
        if not 0 < value < MAX_LIMIT:
            raise argparse.ArgumentTypeError(f"expected a number above 0 and below {MAX_LIMIT:,}, got {text}")
        return value

    read.__name__ = kind.__name__
    return read
