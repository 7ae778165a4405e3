"""Where the tests and what they read lie."""

from pathlib import Path

HELPERS = Path(__file__).parent
TESTS = HELPERS.parent
DATA = TESTS / "data"
CHECKOUT = HELPERS.parents[1].resolve()
