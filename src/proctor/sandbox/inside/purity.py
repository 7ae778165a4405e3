"""Whether trusted code is pure: leaves nothing behind in the process that runs it.

Pure tests share a process with later ones; others run in a fork. The bytecode decides, and
in doubt the code is not pure.
"""

from __future__ import annotations

from collections.abc import Set
from itertools import pairwise
from opcode import opmap
from types import CodeType

_CHANGES = bytes(opmap[name] for name in ("STORE_ATTR", "DELETE_ATTR"))
_IMPORT = opmap["IMPORT_NAME"]
# Modules whose functions change no state. `random` is seeded before each run.
STATELESS = frozenset({
    "bisect", "cmath", "collections", "copy", "fractions", "functools", "hashlib", "heapq", "itertools", "json", "math",
    "numbers", "operator", "random", "re", "statistics", "string", "typing",
})  # fmt: skip
_POWERFUL = frozenset({
    "breakpoint", "compile", "delattr", "eval", "exec", "exit", "globals", "input", "open", "quit", "setattr", "vars",
})  # fmt: skip


def is_pure(code: CodeType) -> bool:
    if any(change in code.co_code[::2] for change in _CHANGES):
        return False
    if any(name in _POWERFUL or (name.startswith("__") and name != "__name__") for name in code.co_names):
        return False
    if not _imports(code) <= STATELESS:
        return False
    return all(is_pure(constant) for constant in code.co_consts if isinstance(constant, CodeType))


def names(code: CodeType) -> set[str]:
    """All names that are looked up, also in functions; attributes included."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= names(constant)
    return found


def sets_attribute(code: CodeType, attributes: Set[str]) -> bool:
    """Whether the code sets an attribute with one of these names."""
    import dis  # large; only the test runner needs it

    steps = dis.get_instructions(code) if not attributes.isdisjoint(code.co_names) else ()
    if any(step.opname == "STORE_ATTR" and step.argval in attributes for step in steps):
        return True
    return any(sets_attribute(constant, attributes) for constant in code.co_consts if isinstance(constant, CodeType))


def stored(code: CodeType) -> set[str]:
    """Global names that the code assigns."""
    import dis  # large; only the test runner needs it

    found = {step.argval for step in dis.get_instructions(code) if step.opname in ("STORE_NAME", "STORE_GLOBAL")}
    return found.union(*(stored(constant) for constant in code.co_consts if isinstance(constant, CodeType)))


def owners(code: CodeType, candidates: Set[str]) -> set[str]:
    """The global names among `candidates` whose attributes the code reads."""
    import dis  # large; only the test runner needs it

    steps = dis.get_instructions(code) if not candidates.isdisjoint(code.co_names) else ()
    names = {
        name.argval
        for name, then in pairwise(step for step in steps if step.opname != "EXTENDED_ARG")
        if name.opname in ("LOAD_NAME", "LOAD_GLOBAL") and then.opname in ("LOAD_ATTR", "LOAD_METHOD")
    }
    names &= candidates
    return names.union(*(owners(constant, candidates) for constant in code.co_consts if isinstance(constant, CodeType)))


def _imports(code: CodeType) -> set[str]:
    if _IMPORT not in code.co_code[::2]:
        return set()
    import dis  # large; only the test runner needs it

    return {step.argval.partition(".")[0] for step in dis.get_instructions(code) if step.opname == "IMPORT_NAME"}
