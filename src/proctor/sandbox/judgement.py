"""Computes the verdict on a program from the reports of its job."""

from __future__ import annotations

import signal
from typing import Any

import msgspec
from msgspec import Struct

from proctor.sandbox.endings import EndMark
from proctor.sandbox.languages import Language
from proctor.sandbox.program import Limits
from proctor.sandbox.verdict import Mode, Outcome, Verdict

_TAIL = 2000


class ProcessExit(Struct, frozen=True):
    """The supervisor's report on a program."""

    stopped: str
    """The limit for which it killed the program; '' if the test runner finished."""
    status: int | None
    """The exit status, negative for a signal; None if the supervisor killed it."""
    wall: float
    cpu: float
    memory: int
    stdout: int
    stderr: int


class Exchange(Struct, frozen=True):
    """The result of one job."""

    report: dict[str, Any] | None
    """The test runner's report."""
    end: ProcessExit
    stdout: str
    stderr: str
    product: bytes = b""
    """The files that a compiler made, if the job collects them."""


def verdict_of(
    exchange: Exchange, limits: Limits, level: str, language: Language, testing: Mode, compiling: bool = False
) -> Verdict:
    report = exchange.report or {}
    end = exchange.end
    outcome, detail = _outcome(exchange, report, limits, testing, language)
    if compiling:
        detail = f"While compiling: {detail}"
    return Verdict(
        outcome=outcome,
        detail=detail,
        testing=testing,
        level=level,
        stdout=exchange.stdout,
        stderr=exchange.stderr,
        cpu_seconds=end.cpu,
        wall_seconds=end.wall,
        memory_mib=end.memory / 1024,
    )


def check_end(verdict: Verdict, language: Language, source: str, end_mark: EndMark) -> Verdict:
    """Turns a pass into an early exit if the tests of the source did not reach their end."""
    reached = end_mark.was_reached(language, source, verdict.stdout, verdict.stderr)
    outputs = {name: end_mark.removed(getattr(verdict, name)) for name in ("stdout", "stderr")}
    if reached or not verdict.passed:
        return msgspec.structs.replace(verdict, **outputs)
    detail = "The program exited with status 0 before its tests reached their end."
    return msgspec.structs.replace(verdict, outcome=Outcome.EXITED, detail=detail, **outputs)


def check_control(verdict: Verdict, control: Verdict) -> Verdict:
    """Turns a pass into a failure if the control passes, too."""
    if control.outcome is Outcome.ERROR:
        return control
    if not control.passed:
        return verdict
    detail = "The program also passes tests that expect wrong answers, so the pass does not count."
    return msgspec.structs.replace(verdict, outcome=Outcome.FAILED, detail=detail)


def _outcome(
    exchange: Exchange, report: dict[str, Any], limits: Limits, testing: Mode, language: Language
) -> tuple[Outcome, str]:
    end = exchange.end
    outcome = report.get("outcome", "")
    if outcome == Outcome.ERROR:
        return Outcome.ERROR, report["detail"]
    if end.stopped == "output" or max(end.stdout, end.stderr) > limits.output_kib << 10:
        return Outcome.OUTPUT, f"More than {limits.output_kib} KiB of output."
    match end.stopped:
        case "timeout":
            return Outcome.TIMEOUT, f"More than {limits.seconds:g} seconds of its own time."
        case "wall":
            return Outcome.TIMEOUT, f"More than {limits.ceiling:g} seconds on the wall clock."
        case "memory":
            return Outcome.MEMORY, f"More than {limits.memory_mib} MiB of memory in all its processes."
        case "test runner":
            return Outcome.CRASHED, "The test runner exited while it tested this program."
    if outcome == "ended":
        return _outcome_of_status(exchange, report["detail"], limits, testing, language)
    return Outcome(outcome), report["detail"]


def _outcome_of_status(
    exchange: Exchange, detail: str, limits: Limits, testing: Mode, language: Language
) -> tuple[Outcome, str]:
    status = exchange.end.status
    tail = exchange.stderr[-_TAIL:].strip()
    if status is None:
        return Outcome.FAILED, detail
    if status != 0 and any(sign in exchange.stderr for sign in language.memory_signs):
        return Outcome.MEMORY, tail
    if status == -signal.SIGKILL and exchange.end.cpu >= limits.seconds:  # before the supervisor noticed
        return Outcome.TIMEOUT, "The kernel's limit on CPU time."
    if status < 0:
        return Outcome.CRASHED, "\n".join(filter(None, [tail, f"Killed by {_signal_name(-status)}."]))
    if testing is not Mode.NONE:
        return Outcome.EXITED, f"The program exited with status {status} before the tests finished."
    if status == 0 and any(sign in exchange.stderr for sign in language.failure_signs):
        return Outcome.FAILED, tail
    if status == 0:
        return Outcome.PASSED, ""
    return Outcome.FAILED, "\n".join(filter(None, [tail, f"Exit status {status}."]))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
