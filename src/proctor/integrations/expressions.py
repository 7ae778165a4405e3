"""Answers that a foreign scorer will evaluate as Python: which of them can do no harm.

A scorer that calls `eval`, or sympy, which calls it too, runs whatever the candidate wrote. What passes here names
things, lists them or calculates with them, and calls nothing but functions of mathematics. Texts are kept from
sympy, because its functions evaluate them in turn.
"""

from __future__ import annotations

import ast
import math

_CIRCULAR = ("acos", "acot", "acsc", "asec", "asin", "atan", "cos", "cot", "csc", "sec", "sin", "tan")
_HYPERBOLIC = ("acosh", "acoth", "asinh", "atanh", "cosh", "coth", "sinh", "tanh")
FUNCTIONS = frozenset(("Abs", "Integral", "Rational", "exp", "ln", "log", "sqrt", *_CIRCULAR, *_HYPERBOLIC))

# Powers of powers may take forever to compute.
LARGEST_EXPONENT = 100
NESTED_POWERS = 3


def parse_expression(text: str) -> ast.expr | None:
    """The text as a Python expression, or None if it is not one.

    One too deep for us to parse may not be too deep for whoever evaluates it: it comes back as a call, which no rule
    lets pass.
    """
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (RecursionError, MemoryError):
        return ast.Call(ast.Name("unknown"), [], [])
    except (SyntaxError, ValueError):
        return None


def only_lists(node: ast.expr) -> bool:
    """Numbers, texts and names, and lists of them."""
    match node:
        case ast.Constant() | ast.Name():
            return True
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return only_lists(operand)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return all(only_lists(item) for item in items)
    return False


def only_calculates(node: ast.expr, powers: int = NESTED_POWERS) -> bool:
    """Numbers and names, operators and functions."""
    match node:
        case ast.Constant(value=int() | float()) | ast.Name():
            return True
        case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=operand):
            return only_calculates(operand, powers)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), left=left, right=right):
            return only_calculates(left, powers) and only_calculates(right, powers)
        case ast.BinOp(op=ast.Pow(), left=base, right=exponent):
            inside = powers - 1
            parts_calculate = only_calculates(base, inside) and only_calculates(exponent, inside)
            return inside >= 0 and parts_calculate and _is_moderate(exponent)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return name in FUNCTIONS and all(only_calculates(argument, powers) for argument in arguments)
    return False


def _is_moderate(exponent: ast.expr) -> bool:
    """Holds a name, so that nothing is multiplied out, or comes to a small number; and no part is a large one."""
    nodes = list(ast.walk(exponent))
    if any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not _holds_a_name(node) for node in nodes):
        return False
    numbers = (node.value for node in nodes if isinstance(node, ast.Constant))
    product = math.prod(max(1, abs(number)) for number in numbers if isinstance(number, int | float))
    return _holds_a_name(exponent) or product <= LARGEST_EXPONENT


def _holds_a_name(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Name) for part in ast.walk(node))
