"""What takes long is tested by `make test-long`, and in part by `make test`."""

from __future__ import annotations

import os

import pytest

LONG = bool(os.environ.get("PROCTOR_LONG_TESTS"))
only_long = pytest.mark.skipif(not LONG, reason="takes long: make test-long")

# Languages whose compilers take many seconds.
SLOW_TO_COMPILE = frozenset({"scala", "kotlin", "clojure", "csharp"})


def long_if(is_long: bool) -> tuple[pytest.MarkDecorator, ...]:
    """Marks for a parameter."""
    return (only_long,) if is_long else ()
