"""Copies in-place changes of arguments from the program to the tests."""

from __future__ import annotations

import collections
import operator
from typing import Any

from proctor.sandbox.inside.plain import ITERATORS


def update_in_place(old: Any, new: Any) -> None:
    """Gives an argument of the tests the value that it has in the program.

    Items of a list may have been changed or replaced, which looks the same; so a nested
    list is a new one afterwards. Items of a tuple stay the same objects.
    """
    if type(new) in ITERATORS and type(old) in ITERATORS:
        while operator.length_hint(old) > operator.length_hint(new):
            next(old)
    elif not isinstance(old, type(new)):
        return
    elif isinstance(old, tuple):
        for old_item, new_item in zip(old, new, strict=False):
            update_in_place(old_item, new_item)
    elif isinstance(old, list | bytearray):
        old[:] = new
    elif isinstance(old, dict):
        old.clear()
        for key, value in new.items():
            old[key] = value
    elif isinstance(old, set):
        old.clear()
        old.update(new)
    elif isinstance(old, collections.deque):
        old.clear()
        old.extend(new)
    elif type(new).__module__ == "numpy" and old.shape == new.shape and old.flags.writeable:
        old[...] = new
