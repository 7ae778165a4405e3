"""`proctor VERB …`: finds the verb, calls it, and turns errors into one sentence and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from proctor import __version__
from proctor.cli.output import say
from proctor.core.errors import ProctorError, UnknownNameError, UsageError, did_you_mean

# Summaries stand here so that the help needs no verb's module.
VERBS = {
    "run": "run exams and report the scores",
    "resume": "go on with a run that was stopped or killed",
    "list": "list tasks, models or runs",
    "show": "show an example of a task, or the report of a run",
    "generate": "write the samples of a task to a file",
    "check": "prove a task right without a model",
    "compare": "say which of several runs is better, and how sure that is",
    "view": "show the results in a browser",
    "export": "write the records of a run to a file",
    "plot": "plot runs as an SVG or PNG file",
    "leaderboard": "rank the candidates of a store, exam by exam",
    "review": "star, comment or re-score a sample",
    "replay": "play a logged episode again, and say whether the environment did the same",
    "sandbox": "run programs that nobody has read, and say how they fared",
    "serve": "serve one side of an agent evaluation",
    "play": "play a game yourself",
    "new": "write a working task or agent to start from, with its test",
    "doctor": "say what this machine can do, and how to get the rest",
}

EPILOG = """\
first steps:
  proctor list                                          what there is
  proctor show shapes/existence                         what a candidate will see
  proctor run shapes/existence --model smollm2          a real exam with the embedded model
  proctor run 'shapes/*' --model openai/NAME --base-url http://localhost:8000/v1

`proctor VERB --help` explains a verb. Exit codes: 0 done, 1 the run failed, 2 bad usage,
3 stopped by its budget.
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
    _mend_streams()
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except ProctorError as error:
        say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        say("stopped. `proctor list runs` shows the run; `proctor resume latest` goes on.")
        sys.stdout.flush()
        # All is stored. An embedded model may be in the middle of an answer that nobody waits for any more.
        os._exit(1)
    except BrokenPipeError:  # the reader has seen enough, as in `proctor export … | head`
        _forget_stdout()
        return 0
    except OSError as error:
        _forget_stdout()
        say(f"{error}.")
        return 1
    except Exception as error:
        if os.environ.get("PROCTOR_TRACEBACK"):
            raise
        say(f"a fault of the program or of a task: {type(error).__name__}: {error}. PROCTOR_TRACEBACK=1 shows where.")
        return 1


def _mend_streams() -> None:
    """A terminal that knows only ASCII shows question marks; a closed stream swallows what it is given."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open as long as the process lives
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _forget_stdout() -> None:
    # What is left in the buffer can go nowhere; without this the interpreter complains of it at its end.
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
    return f"usage: proctor VERB …\n\nOne exam room for models and agents.\n\nverbs:\n{verbs}\n\n{EPILOG}"


def _dashed(argument: str) -> str:
    """--n_samples is --n-samples."""
    if not argument.startswith("--"):
        return argument
    flag, equals, value = argument.partition("=")
    return flag.replace("_", "-") + equals + value
