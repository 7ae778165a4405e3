"""Classifies bugs of Python programs by the changes of their fixes."""

from __future__ import annotations

import ast
import re

from proctor.code import reply

_OPERATORS = {ast.cmpop: "comparison", ast.operator: "operator", ast.unaryop: "operator", ast.boolop: "condition"}
_NAMES = {ast.Name: "variable", ast.Attribute: "attribute", ast.Constant: "constant", ast.arg: "variable"}
_PARTS = {
    ast.BoolOp: "condition",
    ast.Compare: "condition",
    ast.IfExp: "condition",
    ast.BinOp: "arithmetic",
    ast.UnaryOp: "arithmetic",
    ast.Call: "call",
}


def bug_class(buggy: str, mended: str) -> str:
    """Such as `wrong operator`, `missing condition` or `swapped arguments`; `other` where it cannot be told."""
    old, new = (reply.parsed(_without_docstring(program)) for program in (buggy, mended))
    if old is None or new is None:
        return "other"
    return _difference(old, new) or "other"


def _without_docstring(program: str) -> str:
    return re.sub(r'"""(?s:.*?)"""|\'\'\'(?s:.*?)\'\'\'', "", program)


def _difference(old: ast.AST, new: ast.AST) -> str:
    """The kind of the smallest part in which they differ; '' where they do not."""
    if ast.dump(old) == ast.dump(new):
        return ""
    if type(old) is not type(new):
        return _replacement(old, new)
    differing: list[tuple[ast.AST, ast.AST]] = []
    for (_, before), (_, after) in zip(ast.iter_fields(old), ast.iter_fields(new), strict=True):
        pairs = list(zip(_nodes(before), _nodes(after), strict=False))
        if len(_nodes(before)) != len(_nodes(after)):
            return _other_length(old, len(_nodes(before)) < len(_nodes(after)))
        differing += [pair for pair in pairs if ast.dump(pair[0]) != ast.dump(pair[1])]
    if not differing:  # a name, a number
        return f"wrong {_kind(old, _NAMES) or 'expression'}"
    if len(differing) > 1 and sorted(ast.dump(one) for one, _ in differing) == sorted(
        ast.dump(other) for _, other in differing
    ):
        return "swapped arguments" if isinstance(old, ast.Call) else "swapped parts"
    return _difference(*differing[0]) if len(differing) == 1 else f"wrong {_kind(old, _PARTS) or 'expression'}"


def _nodes(value: object) -> list[ast.AST]:
    values = value if isinstance(value, list) else [value]
    return [one for one in values if isinstance(one, ast.AST)]


def _other_length(node: ast.AST, missing: bool) -> str:
    what = "statement" if isinstance(node, ast.mod | ast.stmt) else "condition" if isinstance(node, ast.BoolOp) else ""
    return f"{'missing' if missing else 'needless'} {what or 'expression'}"


def _replacement(old: ast.AST, new: ast.AST) -> str:
    """Something of another kind stands there: around it, within it, or instead of it."""
    for base, name in _OPERATORS.items():
        if isinstance(old, base) and isinstance(new, base):
            return f"wrong {name}"
    if isinstance(old, ast.Constant) and isinstance(old.value, bool):
        return "missing condition"  # there was none: it was always so
    if _holds(new, old):
        return f"missing {_kind(new, _PARTS) or 'expression'}"
    if _holds(old, new):
        return f"needless {_kind(old, _PARTS) or 'expression'}"
    if {_kind(old, _PARTS), _kind(new, _PARTS)} & {"condition"}:
        return "wrong condition"
    return "wrong statement" if isinstance(old, ast.stmt) else "wrong expression"


def _holds(whole: ast.AST, part: ast.AST) -> bool:
    dumped = ast.dump(part)
    return any(ast.dump(node) == dumped for node in ast.walk(whole) if node is not whole)


def _kind(node: ast.AST, kinds: dict[type[ast.AST], str]) -> str:
    return next((name for base, name in kinds.items() if isinstance(node, base)), "")
