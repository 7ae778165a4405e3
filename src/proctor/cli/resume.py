"""Go on with a run that was stopped, killed, or had failed samples.

Samples that were scored are kept; unfinished and failed ones are asked again. Options that could
change a result must be what they were."""

from __future__ import annotations

import argparse

from proctor.cli.options import add_config_flags, add_output_flags, given_options
from proctor.cli.progress import open_display
from proctor.cli.run import print_json
from proctor.evaluation import resume


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="id of the run, the start of it, or `latest`")
    add_config_flags(parser)
    add_output_flags(parser)


def call(args: argparse.Namespace) -> int:
    with open_display(args.quiet) as display:
        report = resume(args.run, given_options(args), display)
    if args.json:
        print_json([report])
    else:
        print(report)
    return 0
