"""What programs printed, for metrics that look at it."""

from __future__ import annotations

import msgspec

from proctor.code.execution import Trial, trial_of
from proctor.sandbox import Program, Verdict

KEPT = 2_048  # characters, the last ones: they are stored with the score


def with_stdout(program: Program, verdict: Verdict) -> Trial:
    return msgspec.structs.replace(trial_of(program, verdict), reading=verdict.stdout[-KEPT:])
