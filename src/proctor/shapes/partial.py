"""Partial solving: what a part of a sample must tell of the answer, by the nature of the task.

By task and probe, how often the probe is right at the default settings; None where it beats chance at other settings
only. docs/shapes.md says why, and has the figures of other settings.
"""

from __future__ import annotations

from collections.abc import Mapping

PARTIAL_SOLVING: Mapping[str, Mapping[str, float | None]] = {
    "CoordinateTask": {"one rank": 0.237},
    "MoveTrackingTask": {"one line": 0.191, "two lines": 0.195, "one rank": 0.31},
    "MultiHopTask": {"last mention": None, "bag of words": None, "one line": None, "two lines": 0.726},
    "NearestTask": {"two lines": None, "one rank": 0.248},
    "OddOneOutTask": {"one line": None, "two lines": None},
    "RecolourTrackingTask": {"last mention": None, "one line": None, "two lines": None},
    "ShuffleTrackingTask": {
        "description only": None,
        "any mention": None,
        "last mention": None,
        "bag of words": None,
        "one line": None,
        "two lines": None,
    },
    "SuperlativeTask": {"one line": None, "two lines": None},
    "UndeterminedTask": {"any mention": None, "last mention": None, "one line": None},
}
