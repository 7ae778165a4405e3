"""Continue a run that was stopped or killed, or that has failed samples.

Scored samples are kept; unfinished and failed ones run again. Options that could change a result
must not change."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext, redirect_stdout

from proctor.cli.options import add_config_flags, add_output_flags, given_options
from proctor.cli.progress import open_display
from proctor.cli.run import exit_code, print_report, print_reports
from proctor.core.evaluation import resume
from proctor.formats.code_files import RunNames
from proctor.integrations.bigcode import flags as bigcode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="run id, its prefix, or `latest`")
    add_config_flags(parser)
    bigcode.add_file_arguments(parser)
    add_output_flags(parser)


def call(args: argparse.Namespace) -> int:
    options = given_options(args)
    for key in ("tasks", "sweep"):  # a file for several runs; the stored run has its own task
        options.pop(key, None)
    with redirect_stdout(sys.stderr) if args.json else nullcontext(), open_display(args.quiet) as display:
        report = resume(args.run, options, display)
    bigcode.write_files(args, [report], RunNames([report.run.task]))
    print_report(report, args)
    if args.json:
        print_reports([report])
    return exit_code(report)
