"""Serve one side of an agent evaluation: an agent, an evaluator, or a player. A player is an agent for
runs on other machines (`proctor run … --agent http://HOST:PORT`): it receives frames and returns actions.

Agent and evaluator may be on different machines: --allow-host names the hosts that each may call, and
both share a token (--token or $PROCTOR_TOKEN). One user on one machine needs neither."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from proctor.agents.constants import TIMEOUTS
from proctor.cli.options import ISOLATION_OPTIONS, add_isolation_flags
from proctor.core.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from proctor.agents.runtime.hosting.isolation import Isolation
    from proctor.agents.runtime.hosting.recipe import Recipe
    from proctor.agents.runtime.limits import EpisodeLimits

LIMITS = {
    "--startup-timeout": ("startup_timeout", f"seconds for the constructor (default: {TIMEOUTS.CREATION:g})"),
    "--setup-timeout": (
        "setup_timeout",
        f"seconds for _setup_environment (default: {TIMEOUTS.SETUP:g})",
    ),
    "--scoring-timeout": ("scoring_timeout", f"seconds for _score_task (default: {TIMEOUTS.SCORING:g})"),
    "--memory": ("memory", "GiB for it and its child processes (default: 80 %% of the machine's)"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("side", choices=("agent", "evaluator", "player"), help="which side")
    parser.add_argument("path", metavar="MODULE:CLASS", help="the class, in a module or in path/to/file.py:Class")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument(
        "--port", type=int, default=None, metavar="N", help="port (default: 8000, of an evaluator 8001; 0: a free one)"
    )
    parser.add_argument("--token", default=None, help="token of callers (default: $PROCTOR_TOKEN, or the user's token)")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="HOST",
        help="host that may register as the other side",
    )
    for option, (_, text) in LIMITS.items():
        parser.add_argument(option, type=float, default=None, metavar="X", help=text)
    add_isolation_flags(parser)


def call(args: argparse.Namespace) -> int:
    try:
        from proctor.agents.agent import Agent
        from proctor.agents.evaluator import Evaluator
        from proctor.agents.server.server import new_server
    except ModuleNotFoundError:
        raise MissingExtraError("proctor serve", "agents") from None
    from proctor.agents.runtime.hosting.recipe import parse_recipe

    isolation = _isolation(args)
    recipe = parse_recipe(args.path, args.side)
    cls = recipe.load()
    if args.side == "player":
        return _serve_player(args, recipe)
    kind = {"agent": Agent, "evaluator": Evaluator}[args.side]
    if not (isinstance(cls, type) and issubclass(cls, kind)):
        raise UsageError(f"{args.path} is not a class that extends proctor.agents.{kind.__name__}.")
    port = kind.default_port if args.port is None else args.port
    limits = _limits(args)
    new_server(args.side, recipe, args.host, port, args.token, args.allow_host, limits, isolation=isolation).run()
    return 0


def _isolation(args: argparse.Namespace) -> Isolation | None:
    """What an agent is held by, with the options of the same names that `proctor run` has."""
    given = {name: getattr(args, name) for name in ISOLATION_OPTIONS if getattr(args, name, None)}
    if not given:
        return None
    if args.side != "agent":
        raise UsageError(f"--isolate-agent and what goes with it are for an agent, and not for this {args.side}.")
    if not given.pop("isolate_agent", False):
        named = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{named}: an agent that is not isolated has it anyway: say --isolate-agent, too.")
    from proctor.agents.runtime.hosting.isolation import make_isolation, variables_of

    variables = variables_of(given.pop("agent_env", []))
    allowed = {name.removeprefix("agent_"): value for name, value in given.items()}
    return make_isolation(window=bool(os.environ.get("DISPLAY")), variables=variables, **allowed)


def _limits(args: argparse.Namespace) -> EpisodeLimits:
    import msgspec

    from proctor.agents.runtime.limits import EpisodeLimits

    given = {name: value for name, _ in LIMITS.values() if (value := getattr(args, name)) is not None}
    try:
        return msgspec.convert(given, EpisodeLimits)
    except msgspec.ValidationError as error:
        raise UsageError(f"Invalid limit: {error}.") from None


def _serve_player(args: argparse.Namespace, recipe: Recipe) -> int:
    from proctor.agents.constants import NETWORK
    from proctor.agents.envs.agents import is_playable
    from proctor.agents.server.server import new_server

    if not is_playable(recipe.load()):
        raise UsageError(f"{args.path} is not a player: it needs a method act, like proctor.agents.RemoteAgent.")
    if args.allow_host:
        raise UsageError("--allow-host: a player calls no host: remove it.")
    port = NETWORK.AGENT_PORT if args.port is None else args.port
    new_server(args.side, recipe, args.host, port, args.token, limits=_limits(args)).run()
    return 0
