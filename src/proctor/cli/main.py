"""`proctor VERB …`: finds the verb, calls it, and turns errors into one sentence and an exit code."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from proctor import __version__
from proctor.errors import ProctorError, UnknownNameError, UsageError, did_you_mean

# Summaries stand here so that the help needs no verb's module.
VERBS = {
    "run": "run exams and report the scores",
    "resume": "go on with a run that was stopped or killed",
    "list": "list tasks, models or runs",
    "show": "show an example of a task, or the report of a run",
    "check": "prove a task right without a model",
    "export": "write the records of a run to a file",
    "new": "write a working task file to start from, with its test",
    "doctor": "say what this machine can do, and how to get the rest",
}

EPILOG = """\
first steps:
  proctor list                                          what there is
  proctor show shapes/existence                         what a candidate will see
  proctor run shapes/existence --model smollm2          a real exam with the embedded model
  proctor run 'shapes/*' --model openai/NAME --base-url http://localhost:8000/v1

`proctor VERB --help` explains a verb. Exit codes: 0 done, 1 the run failed, 2 bad usage.
"""


class Parser(argparse.ArgumentParser):
    """Raises instead of printing the usage: an error is one sentence."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def parse_args(self, args: Sequence[str] | None = None, namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        parsed, rest = self.parse_known_args(args)
        if rest:
            flags = [flag for action in self._actions for flag in action.option_strings]
            raise UsageError(
                f"{self.prog} does not know {rest[0]!r}{did_you_mean(rest[0].split('=')[0], flags)} "
                f"Try: {self.prog} --help"
            )
        return parsed

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[0].upper()}{message[1:]}. Try: {self.prog} --help")


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    # A terminated run is closed like one stopped by Ctrl-C: records flushed, status stored.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _dispatch(arguments)
    except ProctorError as error:
        print(f"proctor: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(
            "proctor: stopped. `proctor list runs` shows the run; `proctor resume latest` goes on.",
            file=sys.stderr,
        )
        return 1
    except BrokenPipeError:  # the reader has seen enough, as in `proctor export … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_help())
        return 0
    if arguments[0] in ("-V", "--version"):
        print(f"proctor {__version__}")
        return 0
    verb, rest = arguments[0], [_dashed(argument) for argument in arguments[1:]]
    if verb not in VERBS:
        raise UnknownNameError("verb", verb, VERBS, f"Verbs: {', '.join(VERBS)}.")
    module = import_module(f"proctor.cli.{verb}")
    parser = Parser(prog=f"proctor {verb}", description=module.__doc__ or "")
    module.add_arguments(parser)
    return int(module.call(parser.parse_args(rest)))


def _help() -> str:
    verbs = "\n".join(f"  {verb:<9} {summary}" for verb, summary in VERBS.items())
    return f"usage: proctor VERB …\n\nOne exam room for models and agents.\n\nverbs:\n{verbs}\n\n{EPILOG}"


def _dashed(argument: str) -> str:
    """--n_samples is --n-samples."""
    if not argument.startswith("--"):
        return argument
    flag, equals, value = argument.partition("=")
    return flag.replace("_", "-") + equals + value
