"""What takes long is tested by `make test-long`, and in part by `make test`."""

from __future__ import annotations

import os

import pytest

LONG = bool(os.environ.get("PROCTOR_LONG_TESTS"))
only_long = pytest.mark.skipif(not LONG, reason="takes long: make test-long")
