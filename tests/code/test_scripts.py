"""How EvalPlus and BigCodeBench read a script out of an output."""

from __future__ import annotations

import ast
import random

import pytest

from proctor.code.scripts import longest_code, read_script, sanitize

REPLY = '''Here it is:

```python
import os
from functools import lru_cache

try:
    import json as j
except ImportError:
    j = None

LIMIT = 3
UNUSED = 4


@lru_cache
def helper(x):
    return x + LIMIT


def unused():
    return UNUSED


def f(x):
    """Such a fence ``` is no end."""
    return helper(x)


result = f(3)
print(result)
if __name__ == "__main__":
    print(f(1))
```

It adds three.
'''


def brute_force(text: str) -> str:
    """As both projects do it: every run of lines is tried. (They leave out single lines.)"""
    lines = text.split("\n")
    most, found = 0, (0, 0)
    for i in range(len(lines)):
        for j in range(i, len(lines)):
            try:
                ast.parse("\n".join(lines[i : j + 1]))
            except (SyntaxError, ValueError):
                continue
            filled = sum(1 for line in lines[i : j + 1] if line.strip())
            if filled > most:
                most, found = filled, (i, j)
    return "\n".join(lines[found[0] : found[1] + 1])


def test_imports_and_what_the_entry_point_needs_are_kept() -> None:
    found = sanitize(REPLY, "f")
    space: dict[str, object] = {}
    exec(compile(found, "found", "exec"), space)
    assert {"os", "j", "LIMIT", "helper", "f"} <= space.keys()
    assert space.keys().isdisjoint({"UNUSED", "unused", "result"})
    assert found.startswith("import os\nfrom functools import lru_cache\ntry:\n    import json as j")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("def f(x): return x", "def f(x): return x"),
        ("x = 1; y = 2\ndef f(): return x", "x = 1\ndef f(): return x"),
        ("def f(x):\n    return 1\n\ndef f(x):\n    return 2", "def f(x):\n    return 1"),  # the first of a name
        ("a, b = 1, 2\nc = 3\nclass f:\n    d = a", "a, b = 1, 2\nclass f:\n    d = a"),
        (
            "if True:\n    def g(): return 1\ndef f(): return g()",
            "if True:\n    def g(): return 1\ndef f(): return g()",
        ),
        ("async def g(): return 1\nf: object = g", "async def g(): return 1\nf: object = g"),
        ("print('nothing is defined')\nprint('here')", "print('nothing is defined')\nprint('here')"),
        ("Prose that is no code,\nand a second line", "Prose that is no code,"),
        ("Yes:\n```python\ndef f(): return 1\n```", "def f(): return 1"),
        ("", ""),
    ],
)
def test_what_is_kept_of_a_text(text: str, kept: str) -> None:
    assert sanitize(text, "f") == kept


def test_a_function_that_was_only_begun_gives_way_to_one_that_returns() -> None:
    text = 'def f(x):\n    """Half."""\n\ndef f(x):\n    return x / 2'
    assert sanitize(text, "f", only_returning=True) == "def f(x):\n    return x / 2"
    assert sanitize(text, "f") == 'def f(x):\n    """Half."""'


def test_a_body_alone_stands_where_the_function_was_begun() -> None:
    begun = "import math\n\n\ndef f(x):"
    for text in ("    return math.sqrt(x)\n", "It is:\n```python\nreturn math.sqrt(x)\n```\n"):
        space: dict[str, object] = {}
        exec(compile(read_script(text, begun, "f"), "found", "exec"), space)
        assert space["f"](9) == 3  # type: ignore[operator]
    assert read_script("<think>def f(x): return 0</think>\ndef f(x): return 1", begun, "f") == "def f(x): return 1"
    assert read_script("", begun, "f") == ""


PIECES = [
    "def f(x):", "    return x", "    if x:", "        y = (1,", "        2)", "```python", "```", "", "x = 1", "'''",
    "Some prose, really.", "class A:", "    pass", "try:", "except ValueError:", "    '''doc'''", "print('a'", ")",
    "@wraps", "\tz = 2", "f'{x y}'", "else:", "# why", "x = [", "]", 'print("unclosed)', "lambda: 0", "0x",
    "for i in x: pass", "return 1", "\\", "async def g():", "match x:", "    case 1:",
]  # fmt: skip


def test_the_longest_code_is_that_of_the_search_through_all_lines() -> None:
    random.seed(20)
    for _ in range(150):
        text = "\n".join(random.choices(PIECES, k=random.randint(1, 12)))
        assert longest_code(text).strip("\n") == brute_force(text).strip("\n"), text


def test_a_text_made_to_take_long_is_given_up() -> None:
    longest_code("\n".join(["x = (" for _ in range(3000)] + ["if x:"] * 3000))
