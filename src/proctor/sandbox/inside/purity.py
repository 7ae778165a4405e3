"""Whether a piece of trusted code can leave anything behind in the process that runs it.

Tests that only compute share one process with the next ones; all others get a process of their own. The question is
answered from the compiled code, and on the safe side.
"""

from __future__ import annotations

from collections.abc import Set
from itertools import pairwise
from opcode import opmap
from types import CodeType

_CHANGES = bytes(opmap[name] for name in ("STORE_ATTR", "DELETE_ATTR"))
_IMPORT = opmap["IMPORT_NAME"]
# Modules without a state that anybody could change by calling them. `random` is seeded anew before each exam.
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
    """Every name that is looked up, also inside functions (and attributes, which does no harm)."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= names(constant)
    return found


def sets_attribute(code: CodeType, among: Set[str]) -> bool:
    """Whether an attribute of one of these names is given a value, as those of a module are."""
    import dis  # large, and needed by the examiner alone

    steps = dis.get_instructions(code) if not among.isdisjoint(code.co_names) else ()
    if any(step.opname == "STORE_ATTR" and step.argval in among for step in steps):
        return True
    return any(sets_attribute(constant, among) for constant in code.co_consts if isinstance(constant, CodeType))


def stored(code: CodeType) -> set[str]:
    """Global names that the code gives a value itself."""
    import dis  # large, and needed by the examiner alone

    found = {step.argval for step in dis.get_instructions(code) if step.opname in ("STORE_NAME", "STORE_GLOBAL")}
    return found.union(*(stored(constant) for constant in code.co_consts if isinstance(constant, CodeType)))


def owners(code: CodeType, among: Set[str]) -> set[str]:
    """Those global names whose attributes are looked up, as those of a module are."""
    import dis  # large, and needed by the examiner alone

    steps = dis.get_instructions(code) if not among.isdisjoint(code.co_names) else ()
    found = {
        name.argval
        for name, then in pairwise(step for step in steps if step.opname != "EXTENDED_ARG")
        if name.opname in ("LOAD_NAME", "LOAD_GLOBAL") and then.opname in ("LOAD_ATTR", "LOAD_METHOD")
    }
    found &= among
    return found.union(*(owners(constant, among) for constant in code.co_consts if isinstance(constant, CodeType)))


def _imports(code: CodeType) -> set[str]:
    if _IMPORT not in code.co_code[::2]:
        return set()
    import dis  # large, and needed by the examiner alone

    return {step.argval.partition(".")[0] for step in dis.get_instructions(code) if step.opname == "IMPORT_NAME"}
