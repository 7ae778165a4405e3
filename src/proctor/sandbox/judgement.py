"""From what the processes of one job said and how they ended to a verdict."""

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
    """What the warden saw from outside."""

    stopped: str
    """Why it ended the program; '' when the examiner came to its end."""
    status: int | None
    """The program's exit status, negative for a signal; None where it was still alive and was ended."""
    wall: float
    cpu: float
    memory: int
    stdout: int
    stderr: int


class Exchange(Struct, frozen=True):
    """What one job brought back."""

    report: dict[str, Any] | None
    """The examiner's word."""
    end: ProcessExit
    stdout: str
    stderr: str
    product: bytes = b""
    """What a compiler made, if that was the job."""


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
    """Of a program that ends with its tests: exit status 0 is no pass where they did not come to their end."""
    reached = end_mark.was_reached(language, source, verdict.stdout, verdict.stderr)
    shown = {name: end_mark.removed(getattr(verdict, name)) for name in ("stdout", "stderr")}
    if reached or not verdict.passed:
        return msgspec.structs.replace(verdict, **shown)
    detail = "The program ended with exit status 0, but its tests did not run to their end."
    return msgspec.structs.replace(verdict, outcome=Outcome.EXITED, detail=detail, **shown)


def check_control(verdict: Verdict, control: Verdict) -> Verdict:
    """Of a program that has passed, after it was run again with tests that a right one fails."""
    if control.outcome is Outcome.ERROR:
        return control
    if not control.passed:
        return verdict
    detail = "The program also passes tests that expect other answers: its tests judge nothing."
    return msgspec.structs.replace(verdict, outcome=Outcome.FAILED, detail=detail)


def _outcome(
    exchange: Exchange, report: dict[str, Any], limits: Limits, testing: Mode, language: Language
) -> tuple[Outcome, str]:
    end = exchange.end
    said = report.get("outcome", "")
    if said == Outcome.ERROR:
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
            return Outcome.CRASHED, "The process that held the tests ended while it judged this program."
    if said == "ended":
        return _outcome_of_status(exchange, report["detail"], limits, testing, language)
    return Outcome(said), report["detail"]


def _outcome_of_status(
    exchange: Exchange, otherwise: str, limits: Limits, testing: Mode, language: Language
) -> tuple[Outcome, str]:
    status = exchange.end.status
    tail = exchange.stderr[-_TAIL:].strip()
    if status is None:
        return Outcome.FAILED, otherwise
    if status != 0 and any(sign in exchange.stderr for sign in language.memory_signs):
        return Outcome.MEMORY, tail
    if status == -signal.SIGKILL and exchange.end.cpu >= limits.seconds:  # the warden was too slow
        return Outcome.TIMEOUT, "The kernel's limit on processor time."
    if status < 0:
        return Outcome.CRASHED, "\n".join(filter(None, [tail, f"Killed by {_signal_name(-status)}."]))
    if testing is not Mode.NONE:
        return Outcome.EXITED, f"The program ended with exit status {status} before the tests were over."
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
