"""`proctor VERB …`: calls the verb and turns errors into one sentence and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from proctor import __version__
from proctor.cli.output import print_message
from proctor.core.errors import ProctorError, UnknownNameError, UsageError, did_you_mean

# The summaries are here so that --help imports no verb.
VERBS = {
    "run": "run tasks and report the scores",
    "resume": "continue a run that was stopped or killed",
    "list": "list tasks, models or runs",
    "show": "show an example of a task, or the report of a run",
    "generate": "write the samples of a task to a file",
    "check": "verify a task without a model",
    "compare": "compare runs, with intervals and paired significance",
    "view": "show the results in a browser",
    "export": "write the records of a run to a file",
    "plot": "plot runs as an SVG or PNG file",
    "leaderboard": "rank the candidates of a store, task by task",
    "review": "star, comment or re-score a sample",
    "replay": "replay a logged episode and compare the results",
    "sandbox": "run untrusted programs in the sandbox",
    "serve": "serve one side of an agent evaluation",
    "play": "play a game yourself",
    "new": "write a working task or agent to start from, with its test",
    "doctor": "check what this machine can run, and how to install the rest",
}

EPILOG = """\
first steps:
  proctor list                                          tasks, models, runs
  proctor show shapes/existence                         a sample as the candidate sees it
  proctor run shapes/existence --model smollm2          a real run of the embedded model
  proctor run 'shapes/*' --model openai/NAME --base-url http://localhost:8000/v1

`proctor VERB --help` explains a verb. Exit codes: 0 done, 1 the run failed, 2 bad usage,
3 stopped by its budget.
"""


class Parser(argparse.ArgumentParser):
    """Raises a UsageError of one sentence instead of printing the usage."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def parse_args(self, args: Sequence[str] | None = None, namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        parsed, rest = self.parse_known_intermixed_args(args)
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
    _repair_streams()
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except ProctorError as error:
        print_message(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        print_message("stopped. `proctor list runs` shows the run; `proctor resume latest` continues it.")
        sys.stdout.flush()
        # Everything is stored; do not wait for the answer of an embedded model.
        os._exit(1)
    except BrokenPipeError:  # such as `proctor export … | head`
        _discard_stdout()
        return 0
    except OSError as error:
        _discard_stdout()
        print_message(f"{error}.")
        return 1
    except Exception as error:
        if os.environ.get("PROCTOR_TRACEBACK"):
            raise
        print_message(
            f"unexpected error in Proctor or in a task: {type(error).__name__}: {error}. "
            "PROCTOR_TRACEBACK=1 shows the traceback."
        )
        return 1


def _repair_streams() -> None:
    """Replaces closed streams; an ASCII terminal shows question marks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open as long as the process lives
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _discard_stdout() -> None:
    # Otherwise the interpreter fails at exit when it flushes the buffer.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _dispatch(arguments: list[str]) -> int:
    for argument in arguments:
        if not argument.isprintable() and any("\ud800" <= character <= "\udfff" for character in argument):
            raise UsageError(f"The argument {argument!r} is not valid UTF-8.")
    if arguments[:1] == ["help"] and len(arguments) > 1:
        arguments = [arguments[1], "--help"]
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
    verbs = "\n".join(f"  {verb:<11} {summary}" for verb, summary in VERBS.items())
    about = "Proctor is an evaluation harness for models and agents."
    return f"usage: proctor VERB …\n\n{about}\n\nverbs:\n{verbs}\n\n{EPILOG}"


def _dashed(argument: str) -> str:
    """--n_samples is --n-samples."""
    if not argument.startswith("--"):
        return argument
    flag, equals, value = argument.partition("=")
    return flag.replace("_", "-") + equals + value
