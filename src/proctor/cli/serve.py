"""Serve one side of an agent evaluation: an agent that plays, or an evaluator that judges.

The two sides may be on different machines: each is told which hosts it may call (--allow-host), and all share a token
(--token or $PROCTOR_TOKEN). On one machine, for one user, neither is needed."""

from __future__ import annotations

import argparse

from proctor.errors import MissingExtraError, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("side", choices=("agent", "evaluator"), help="which side")
    parser.add_argument("place", metavar="MODULE:CLASS", help="the class, in a module or in path/to/file.py:Class")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument(
        "--port", type=int, default=None, metavar="N", help="port (default: 8000 or 8001; 0: a free one)"
    )
    parser.add_argument(
        "--token", default=None, help="what callers must know (default: $PROCTOR_TOKEN, or the user's own)"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="HOST",
        help="a host that may be registered as the other side",
    )


def call(args: argparse.Namespace) -> int:
    try:
        from proctor.agents.agent import Agent
        from proctor.agents.evaluator import Evaluator
        from proctor.agents.servers.server import new_server
    except ModuleNotFoundError:
        raise MissingExtraError("proctor serve", "agents") from None
    from proctor.agents.hosting.recipe import parse_recipe

    kind = {"agent": Agent, "evaluator": Evaluator}[args.side]
    recipe = parse_recipe(args.place, args.side)
    found = recipe.found()
    if not (isinstance(found, type) and issubclass(found, kind)):
        raise UsageError(
            f"{args.place} is no {kind.__name__}: it must be a class that extends proctor.agents.{kind.__name__}."
        )
    port = kind.default_port if args.port is None else args.port
    new_server(args.side, recipe, args.host, port, args.token, args.allow_host).run()
    return 0
