"""Which languages the tests of `make test` use, and what is skipped where the tools of a language are missing."""

from __future__ import annotations

import pytest

from proctor.core.errors import MissingToolchainError
from proctor.sandbox.languages import find_language
from proctor.sandbox.toolchain import locate

# Interpreters that every machine has, and one compiler. The others belong to `make test-all`.
PLAIN = frozenset({"python", "bash", "perl", "c"})


def marks(language: str) -> list[pytest.MarkDecorator]:
    """Marks for a parameter."""
    return [] if language in PLAIN else [pytest.mark.slow]


def needs_language(name: str, libraries: bool = False) -> None:
    """Skips where the tools are missing; with `libraries` also where those of benchmarks are."""
    try:
        locate(find_language(name), libraries=libraries)
    except MissingToolchainError as missing:
        pytest.skip(str(missing))
