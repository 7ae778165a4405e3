"""What EvalPlus and BigCodeBench share: how a script is asked for, and how it is sanitized: read out of an output.

The rule is theirs: the longest run of lines that is Python; of it the imports, and what the entry point needs of the
definitions. Some things are kept here that are lost there, because right programs need them: functions and classes with
decorators, definitions inside of `try` and `if`, functions on one line, and code that is one line.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from itertools import accumulate

from proctor.code import reply
from proctor.core.reasoning import strip_reasoning

INSTRUCTION = (
    "Please provide a self-contained Python script that solves the following problem in a markdown code block:"
)
END_TOKENS = ("<|endoftext|>", "<|endofmask|>", "</s>", "\nif __name__", "\ndef main(", "\nprint(")
NEW_STATEMENTS = ("\ndef ", "\nclass ", "\nimport ", "\nfrom ", "\nassert ")

_MOST_PARSED = 1_000_000  # characters in all, for one output: a text may be so made that every part of it is tried


def sanitize(text: str, entry_point: str, *, only_returning: bool = False) -> str:
    """The script in a text. `only_returning`: a function that returns nothing was only begun, and is left out."""
    code = longest_code(text.strip())
    tree = _parsed(code)
    if tree is None:
        return code
    imports, definitions = _parts(tree.body, entry_point, only_returning)
    needed = _reachable(entry_point, definitions)
    kept = [*imports, *(part for names, part in definitions if names & needed)]
    return "\n".join(_source(code, part) for part in kept) or code


def read_script(text: str, begun: str, entry_point: str, *, only_returning: bool = False) -> str:
    """The script in a reply; a mere function body is joined with the prompt."""
    answer = strip_reasoning(text)
    script = sanitize(answer, entry_point, only_returning=only_returning)
    if not answer.strip() or reply.defines(script, entry_point):
        return script
    whole = reply.program(f"{begun.rstrip()}\n", text, entry_point, "python")
    return sanitize(whole, entry_point, only_returning=only_returning)


def longest_code(text: str) -> str:
    """The lines in a row that are Python and of which most are not blank; the first, where several are as long."""
    lines = text.split("\n")
    filled = [0, *accumulate(bool(line.strip()) for line in lines)]
    most, found = 0, slice(0, 1)
    left = _MOST_PARSED
    for start in range(len(lines)):
        if filled[-1] - filled[start] <= most or left <= 0:
            break
        end = _without_blanks(lines, len(lines)) if lines[start].strip() else start
        while end > start and filled[end] - filled[start] > most and left > 0:
            wrong = _first_wrong_line("\n".join(lines[start:end]))
            left -= sum(map(len, lines[start : end if wrong is None else start + wrong + 1])) + 1
            if wrong is None:
                most, found = filled[end] - filled[start], slice(start, end)
            else:
                end = _without_blanks(lines, min(end - 1, start + wrong))
    return "\n".join(lines[found])


def _without_blanks(lines: list[str], end: int) -> int:
    while end and not lines[end - 1].strip():
        end -= 1
    return end


def _first_wrong_line(source: str) -> int | None:
    """How many lines precede the one at which every text that begins so is wrong; None where all is right."""
    try:
        _parse(source)
    except SyntaxError as error:
        # Elsewhere the parser stops at the wrong line. Here it says where something is missing, or counts from the
        # beginning of a string.
        if error.lineno is None or str(error.msg).startswith(("expected", "f-string")):
            return source.count("\n")
        return max(0, error.lineno - 1)
    except (ValueError, RecursionError, MemoryError):
        return source.count("\n")
    return None


def _parse(source: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the code, which is not ours
        return ast.parse(source)


def _parsed(source: str) -> ast.Module | None:
    try:
        return _parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


Definitions = list[tuple[set[str], ast.stmt]]


def _parts(
    statements: Iterable[ast.stmt], entry_point: str, only_returning: bool
) -> tuple[list[ast.stmt], Definitions]:
    """The imports and the definitions among the statements; of several for one name, the first."""
    imports: list[ast.stmt] = []
    definitions: Definitions = []
    known: set[str] = set()
    for statement in statements:
        if _only_imports(statement):
            imports.append(statement)
            continue
        names = set(_defined(statement))
        begun = only_returning and isinstance(statement, _FUNCTIONS) and not _returns(statement)
        tries_out = isinstance(statement, _ASSIGNMENTS) and entry_point in _words(statement)
        if names and not begun and not tries_out and not names <= known:
            definitions.append((names, statement))
            known |= names
    return imports, definitions


_IMPORTS = (ast.Import, ast.ImportFrom)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign)
_BLOCKS = (ast.Try, ast.If)


def _only_imports(statement: ast.stmt) -> bool:
    """An import, also where it may fail or depends on something."""
    if isinstance(statement, _BLOCKS):
        parts = list(_within(statement))
        plain = all(isinstance(part, (*_IMPORTS, ast.Assign, ast.Pass)) for part in parts)
        return plain and any(isinstance(part, _IMPORTS) for part in parts)
    return isinstance(statement, _IMPORTS)


def _within(block: ast.stmt) -> Iterator[ast.stmt]:
    """The statements of a block, whatever it depends on which of them are run."""
    for part in ast.iter_child_nodes(block):
        inside = part.body if isinstance(part, ast.ExceptHandler) else [part]
        for statement in inside:
            if isinstance(statement, _BLOCKS):
                yield from _within(statement)
            elif isinstance(statement, ast.stmt):
                yield statement


def _defined(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            yield name
        case ast.Assign(targets=targets):
            yield from (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))
        case ast.AnnAssign(target=ast.Name(name)):
            yield name
        case ast.Try() | ast.If() if "__name__" not in _words(statement):
            parts = list(_within(statement))
            if all(isinstance(part, (*_FUNCTIONS, *_ASSIGNMENTS, ast.ClassDef, ast.Pass, *_IMPORTS)) for part in parts):
                yield from (name for part in parts for name in _defined(part))


def _returns(function: ast.stmt) -> bool:
    return any(isinstance(node, ast.Return) for node in ast.walk(function))


def _words(statement: ast.stmt) -> set[str]:
    """Every name in it, also of attributes and arguments."""
    found: set[str] = set()
    for node in ast.walk(statement):
        match node:
            case ast.Name(name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found.add(name)
    return found


def _reachable(entry_point: str, definitions: Definitions) -> set[str]:
    needed, waiting = {entry_point}, [entry_point]
    while waiting:
        name = waiting.pop()
        for names, part in definitions:
            if name in names:
                further = (_words(part) | names) - needed
                needed |= further
                waiting += further
    return needed


def _source(code: str, statement: ast.stmt) -> str:
    decorators = "".join(f"@{ast.get_source_segment(code, one)}\n" for one in getattr(statement, "decorator_list", ()))
    return decorators + (ast.get_source_segment(code, statement) or "")
