"""What a chat model's reply stands for, however it is wrapped, indented, repeated or cut off."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proctor.code import reply
from proctor.code.reply import blocks, code_in, completion, defines, joined, middle, program

# Fences.

lines = st.text(alphabet="ab (){}=#'\"\t:.,", max_size=12)
codes = st.lists(lines, min_size=1, max_size=6).map("\n".join)
prose = st.text(alphabet="abc ,.\n", max_size=30)
fences = st.sampled_from(["```", "````", "~~~", "~~~~~"])
tags = st.sampled_from(["", "python", " python", "py title=x", "c++", "{.python}"])


@given(st.lists(st.tuples(prose, fences, tags, codes), max_size=3), prose)
def test_blocks_are_what_stands_between_fences(parts: list[tuple[str, str, str, str]], end: str) -> None:
    text = "".join(f"{before}\n{fence}{tag}\n{code}\n{fence}\n" for before, fence, tag, code in parts) + end
    expected = [code for *_, code in parts]
    assert blocks(text) == expected
    assert blocks(text.replace("\n", "\r\n")) == expected


@given(prose, fences, tags, codes)
def test_a_block_that_was_cut_off_counts(before: str, fence: str, tag: str, code: str) -> None:
    assert blocks(f"{before}\n{fence}{tag}\n{code}") == [code]


@given(codes, st.sampled_from(["  ", "    ", "\t", "   "]), fences)
def test_a_block_in_a_list_loses_the_indentation_of_the_list_alone(code: str, indent: str, fence: str) -> None:
    shown = "\n".join(indent + line for line in [f"{fence}python", *code.split("\n"), fence])
    assert blocks(f"1. First:\n\n{shown}\n2. Then") == [code]


@given(codes)
def test_a_reply_is_not_read_twice(code: str) -> None:
    assume("\n" in code or code.strip())
    assert code_in(f"Here you are:\n```\n{code}\n```\nAnything else?") == code


FENCED = [
    ("```python\nx = 1\n```", ["x = 1"]),
    ("```\n```", [""]),
    ("no fence", []),
    # The fence behind or before other text.
    ("Sure: ```python\nx = 1\n```\nIt is one.", ["x = 1"]),
    ("The answer:```\nx = 1\n```", ["x = 1"]),
    ("```python\nx = 1```\nIt is one.\n```python\ny = 2\n```", ["x = 1", "y = 2"]),
    ("We put it between ``` and ```, as usual.\nWell, ```", []),
    ("Inline ```x = 1``` is no block.", []),
    # A longer fence, or the other sign, may hold a fence.
    ("````md\n```python\nx\n```\n````", ["```python\nx\n```"]),
    ("~~~\n```\nx\n~~~", ["```\nx"]),
    ("```\nx\n````", ["x"]),
    # The fence in a docstring is further in than a fence that closes.
    ("```python\n'''a\n    ```\n    f()\n    ```\n'''\n```", ["'''a\n    ```\n    f()\n    ```\n'''"]),
    ("```python\nx = '```'\ny = 2\n```", ["x = '```'\ny = 2"]),
    # Where no other comes, it closes.
    ("    ```python\n    x = 1\n        ```\nDone.", ["x = 1"]),
    ("- ok\n\n   ```python\n       return 1\n   ```", ["    return 1"]),
    ("```python\n    return 1\n```", ["    return 1"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FENCED)
def test_fences(text: str, expected: list[str]) -> None:
    assert blocks(text) == expected


def test_a_long_line_takes_no_longer_than_it_is() -> None:
    text = "```python\n" + "x " * 200_000 + "\n" + "f(" * 50_000
    assert len(blocks(text)) == 1
    assert not defines(text, "f")


CHOSEN = [
    # The block that defines what is asked for, not the longer one that uses it.
    ("```\ndef f(x): return x\n```\nUse it:\n```\nfor i in range(10):\n    print(f(i))\n```", "def f(x): return x"),
    ("```\nprint(f(1), f(2), f(3), f(4))\n```\n```\nf = abs\n```", "f = abs"),
    ("```\n# Test the function f thoroughly\nassert f(1) == 1\n```\n```\ndef f(x): ...\n```", "def f(x): ..."),
    ("```bash\npip install numpy pandas scipy\n```\n```python\ndef f(): pass\n```", "def f(): pass"),
    # Of several, the last that is a program; the one that ends the thoughts of the model, not the one in them.
    ("```\ndef f(): pass\n```\n```\ndef f():\n    return 1\n```", "def f():\n    return 1"),
    ("Draft:\n```\ndef f():\n    return 'a'\n```\nThat is wrong. Final:\n```\ndef f(): 1\n```", "def f(): 1"),
    ("```\ndef f(): return 1\n```\nIn short:\n```\ndef f(): …\n```", "def f(): return 1"),
    ("```c\nint f() { return 0; }\n```\nNo:\n```c\nint f() { return 1; }\n```", "int f() { return 1; }"),
    # With the imports and helpers that it needs, but not with examples, drafts or what it has itself.
    ("```\nimport m\n```\n```\ndef f(): return m.x\n```", "import m\n\n\ndef f(): return m.x"),
    ("```\nfrom m import *\n```\n```\ndef f(): return x\n```", "from m import *\n\n\ndef f(): return x"),
    ("```\nM: int = 10**9\nN = 1\n```\n```\ndef f(): return M\n```", "M: int = 10 ** 9\nN = 1\n\n\ndef f(): return M"),
    (
        "```\nimport m\n```\n```\n@m.x\ndef g(): 1\n```\n```\ndef f(): g()\n```",
        "import m\n\n\n@m.x\ndef g():\n    1\n\n\ndef f(): g()",
    ),
    ("```\ndef g(): 0\n```\n```\ndef g(): 1\ndef f(): g()\n```", "def g(): 1\ndef f(): g()"),
    ("```\n@cache\ndef g(): 0\n```\n```\ndef f(): 1\n```", "def f(): 1"),
    ("```\ng = f(1)\n```\n```\ndef f(x): g = x; return g\n```", "def f(x): g = x; return g"),
    ("```\ndef f(): 0\ndef g(): 0\n```\n```\ndef f(): g()\n```", "def g():\n    0\n\n\ndef f(): g()"),
    ("```\ndef g(): 0\nprint(g())\n```\n```\ndef f(): g()\n```", "def f(): g()"),
    ("<think>\n```\ndef f(): return 'long draft'\n```\n</think>\n```\ndef f(): pass\n```", "def f(): pass"),
    ("Hm, ```\ndef f(): return 'long draft'\n```\n</think>\n```\ndef f(): pass\n```", "def f(): pass"),
    ("<thinking>hm</thinking>    return 1", "return 1"),
    ("<think>never ends ```\ndef f(): pass\n```", ""),
    # Without a block, everything; without the marks of an inline one.
    ("    return 1\n", "    return 1\n"),
    ("x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
    ("`x.sort()`", "x.sort()"),
    ("```x.sort()```\n", "x.sort()"),
    ("`a` or `b`", "`a` or `b`"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code"), CHOSEN)
def test_the_code_of_a_reply(text: str, code: str) -> None:
    assert code_in(text, "f") == code


DEFINITIONS = [
    "def f(x):",
    "    async def f(self):",
    "class f:",
    "f = lambda x: x",
    "f: Callable[[int], int] = abs",
    "export default async function f(x) {",
    "const f = (x) => x;",
    "func f(x int) int {",
    "func (s *Stack) f() {",
    "pub fn f<T>(x: T) -> T {",
    "fun <T> f(x: T): T =",
    "suspend fun String.f() {",
    "int f(int x) {",
    "int f(int x)\n{",
    "public static Map<String, List<Integer>> f(List<Integer> xs) throws IOException {",
    "std::vector<int> Solution::f(std::vector<int>& xs) const {",
    "char *f(const char *s) {",
    "public int f(int x) => x;",
    "unsigned long long f(\n    int a,\n    int b)\n{",
    "f() {",
    "function f() {",
    "local function f(x)",
    "local f = function(x)",
    "f <- function(x) {",
    "f :: Int -> Int",
    "f x y = x + y",
    "f(x) = x^2",
    "let rec f x =",
    "sub f {",
    "(define (f x)",
    "(defn f [x]",
    "def self.f(x)",
    "  f(x) {",
]

USES = [
    "print(f(1))",
    "f(1)\nprint({1: 2})",
    "x = f(1)",
    "return f(1)",
    "    return f(n - 1) + f(n - 2);\n}",
    "if f(1) == 2 {",
    "if f(x) {",
    "while f(x) {",
    "for y in f(x) {",
    "assert f(1) == {1}",
    "assert f(x)[0] == {}",
    "int y = f(3);",
    "f(1) == 2",
    "# the function f is tested here",
    "// function f(x) {",
    "def fg(x):",
    "def g(f):",
    "int main() { return f(1); }",
    "std::cout << f(1);",
    "self.assertEqual(f(1), 2)",
]


@pytest.mark.parametrize("code", DEFINITIONS)
def test_definitions(code: str) -> None:
    assert defines(code, "f")
    assert defines(f"import x\n\n{code}\n  1\n", "f")


@pytest.mark.parametrize("code", USES)
def test_a_use_defines_nothing(code: str) -> None:
    assert not defines(code, "f")


# Replies to a begun Python function, whose helper and import are the prompt's alone.

PROMPT = """import math


def half(x):
    return x / 2


def area(r):
    '''Half of the area of a circle.

    >>> area(0)
    0.0
    '''
"""
BODY = "    square = r * r\n    return half(math.pi * square)\n"
WHOLE = f"def area(r):\n{BODY}"
SIGNED = 'def area(r: float) -> float:\n    """Other words."""\n' + BODY
HELPED = (
    "from math import pi\n\ndef twice(x):\n    return 2 * x\n\n" + "def area(r):\n    return twice(pi * r * r) / 4\n"
)
PREPARED = "def area(r):\n    return twice(math.pi * r * r) / 4\n\n\ndef twice(x):\n    return 2 * x\n"
CACHED = (
    "def area(r):\n    @functools.cache\n    def square(x):\n        calls.append(x)\n        return x * x\n"
    "    calls = []\n    found = [square(r) for _ in range(3)]\n"
    "    assert calls == [r]\n    return half(math.pi * found[-1])\n"
)

USE = "for radius in range(1000):\n    print(area(radius), area(-radius))\n"
DRAFT = f"def area(r):\n    return 'a longer draft than the answer, which is wrong'  # {'x' * 99}\n"

REPLIES = {
    "prompt and body": PROMPT + BODY,
    "in a block": f"```python\n{PROMPT}{BODY}```",
    "with prose": f"Sure!\n\n```python\n{PROMPT}{BODY}```\n\nThis multiplies. For example, `area(1)`.",
    "tildes": f"~~~py\n{PROMPT}{BODY}~~~",
    "cut off after the end": f"```python\n{PROMPT}{BODY}",
    "Windows": f"Sure!\n```python\n{PROMPT}{BODY}```\n".replace("\n", "\r\n"),
    "the body alone": BODY,
    "the body in a block": f"```python\n{BODY}```",
    "the body, not indented": "square = r * r\nreturn half(math.pi * square)",
    "the body, its first line not indented": BODY.strip(),
    "the body with two spaces": BODY.replace("    ", "  "),
    "the body with a tab": BODY.replace("    ", "\t"),
    "the function": f"```python\n{WHOLE}```",
    "the function with two spaces": f"```python\n{WHOLE.replace('    ', '  ')}```",
    "the function with tabs": f"```python\n{WHOLE.replace('    ', chr(9))}```",
    "the function on one line": "```python\ndef area(r): return half(math.pi * r * r)\n```",
    "the function in a list": "1. Do it\n\n" + "".join(f"   {x}\n" for x in f"```python\n{WHOLE}```".split("\n")),
    "another signature and docstring": f"```python\n{SIGNED}```",
    "helpers before": f"```python\n{HELPED}```",
    "a helper after": f"```python\n{PREPARED}```",
    "a decorated helper inside": f"```python\nimport functools\n\n{CACHED}```",
    "a decorated function": f"```python\nimport functools\n\n\n@functools.cache\n{WHOLE}```",
    "its own import": f"```python\nfrom math import pi\n\n{WHOLE.replace('math.pi', 'pi')}```",
    "everything imported": f"```python\nfrom math import *\n\n{WHOLE.replace('math.pi', 'pi')}```",
    "from the future": f"```python\nfrom __future__ import annotations\n\n{WHOLE}```",
    "an escape that Python warns of": f"```python\nDIGIT = '\\d'\n\n{WHOLE}```",
    "a use after": f"```python\n{WHOLE}\n\nprint(area(2))\n```",
    "two blocks": f"```python\n{WHOLE}```\nExample:\n```python\n{USE}```",
    "a draft before": f"Draft:\n```python\n{DRAFT}```\nThat is wrong. Final:\n```python\n{WHOLE}```",
    "imports and helpers in blocks of their own": "```python\nfrom math import pi\n```\nA helper:\n```python\n"
    "def twice(x):\n    return 2 * x\n```\n```python\ndef area(r):\n    return twice(pi * r * r) / 4\n```",
    "thoughts": f"<think>Should it be:\n```python\n{DRAFT}```\n?</think>\n```python\n{WHOLE}```",
    "the end of thoughts": f"Should it be:\n```python\n{DRAFT}```\n?</think>\n```python\n{WHOLE}```",
    "a lambda": "```python\narea = lambda r: half(math.pi * r * r)\n```",
    "a docstring with a fence": f"```\ndef area(r):\n    '''So:\n    ```\n    area(1)\n    ```\n    '''\n{BODY}```",
}  # fmt: skip

NOT_AS_COMPLETION = {
    "from the future",  # may only begin a file
    "everything imported",  # may not stand in a function
    "a lambda",
}


def half_area(code: str) -> float:
    """Of a circle of radius 2, by code that was written here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names: dict[str, Any] = {"print": lambda *_: None}
        exec(code, names)
    return float(names["area"](2))


@pytest.mark.parametrize("kind", REPLIES)
def test_a_reply_becomes_a_program(kind: str) -> None:
    found = program(PROMPT, REPLIES[kind], "area", "python")
    assert half_area(found) == pytest.approx(2 * math.pi)
    assert "def half" in found  # the prompt's helper


@pytest.mark.parametrize("kind", [kind for kind in REPLIES if kind not in NOT_AS_COMPLETION])
def test_a_reply_becomes_a_completion(kind: str) -> None:
    assert half_area(PROMPT + completion(PROMPT, REPLIES[kind], "area")) == pytest.approx(2 * math.pi)


@pytest.mark.parametrize("kind", [kind for kind in REPLIES if kind not in NOT_AS_COMPLETION | {"a helper after"}])
def test_a_completion_stands_before_the_usual_stop_words(kind: str) -> None:
    """Tasks that cut what they get keep what the function needs."""
    from proctor.code.stopwords import STOP_WORDS, cut

    found = cut(completion(PROMPT, REPLIES[kind], "area"), STOP_WORDS["python"])
    assert half_area(PROMPT + found) == pytest.approx(2 * math.pi)


@pytest.mark.parametrize("text", ["", "\n\n", "```python\n```", "<think>Hm.</think>", "<think>Hm"])
def test_no_answer_is_the_prompt_and_nothing_more(text: str) -> None:
    assert program(PROMPT, text, "area", "python") == PROMPT
    assert not completion(PROMPT, text, "area").strip()


PROMPTS = {
    "no docstring": "def f(x):\n",
    "no line end": "def f(x):",
    "a comment": "def f(x):\n    # twice\n",
    "types": "from typing import List\n\ndef f(x: List[int]) -> List[int]:\n    '''Twice.'''\n",
    "on two lines": "def f(\n    x,\n):\n",
}


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS)
@pytest.mark.parametrize(
    "text",
    [
        "    y = x\n    return y * 2",
        "y = x\nreturn y * 2",
        "def f(x):\n    y = x\n    return y * 2",
        "```\nimport os\ndef f(x):\n    y = x\n    return y * 2\n```",
    ],
)
def test_other_prompts(prompt: str, text: str) -> None:
    for found in (program(prompt, text, "f", "python"), prompt + completion(prompt, text, "f")):
        names: dict[str, Any] = {}
        exec(found, names)
        assert names["f"]([1]) == [1, 1]


def test_a_method_is_begun_and_the_class_is_given() -> None:
    prompt = "import math\n\nclass Circle:\n    def area(self, r):\n"
    found = program(
        prompt, "```\nclass Circle:\n    def area(self, r):\n        return math.pi * r\n```", "Circle", "python"
    )
    names: dict[str, Any] = {}
    exec(found, names)
    assert names["Circle"]().area(1) == math.pi


def test_a_statement_that_changes_its_argument_belongs_to_the_function() -> None:
    """Nothing but its place says so: it would be right outside too."""
    prompt = 'def f(xs):\n    """Sort in place."""\n'
    names: dict[str, Any] = {}
    exec(program(prompt, "```\nxs.sort()\n```", "f", "python"), names)
    items = [2, 1]
    names["f"](items)
    assert items == [1, 2]


def test_a_script_is_continued_where_it_ends() -> None:
    prompt = "def one():\n    return 1\n\n# Now call it.\n"
    assert program(prompt, "```\nx = one()\n```", "", "python") == f"{prompt}x = one()\n"


def test_a_wrong_program_is_judged_as_it_is() -> None:
    broken = "```python\ndef f(x):\n    return (\n```"
    assert program("import os\n\ndef f(x):\n", broken, "f", "python").endswith("def f(x):\n    return (\n")
    assert completion("import os\n\ndef f(x):\n", broken, "f").startswith("def f(x):\n    return (")


@given(st.text(max_size=200), st.text(max_size=60), st.sampled_from(["", "f", "area"]))
def test_nothing_that_a_model_says_is_too_strange(text: str, prompt: str, entry_point: str) -> None:
    for language in ("python", "cpp"):
        program(prompt, text, entry_point, language)
    completion(prompt, text, entry_point)
    middle(prompt, prompt, text)


@pytest.mark.parametrize("text", ["(" * 5000, "\x00", "def f():\n    '\ud800'", "x = " + "-" * 100_000 + "1"])
def test_code_that_no_compiler_takes(text: str) -> None:
    assert text.strip() in program("def f():\n", text, "f", "python")
    assert completion("def f():\n", text, "f")


# Other languages.

CPP = "#include <vector>\nusing namespace std;\n\n// Twice.\nint f(int x) {\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    return 2 * x;\n}", f"{CPP}    return 2 * x;\n}}"),
        (f"```cpp\n{CPP}    return 2 * x;\n}}\n```", f"{CPP}    return 2 * x;\n}}"),
        ("    return x ? 2 + f(x - 1) : 0;\n}", f"{CPP}    return x ? 2 + f(x - 1) : 0;\n}}"),
        (
            "```cpp\n#include <vector>\nint f(int y) {\n    return 2 * y;\n}\n```",
            "using namespace std;\n#include <vector>\nint f(int y) {\n    return 2 * y;\n}",
        ),
        ("", CPP),
    ],
)
def test_a_program_in_cpp(text: str, expected: str) -> None:
    assert program(CPP, text, "f", "cpp") == expected


def test_imports_are_not_repeated_where_that_is_an_error() -> None:
    prompt = 'package main\n\nimport "math"\n\nfunc F(x float64) float64 {\n'
    whole = "func F(x float64) float64 {\n    return x * 2\n}"
    assert program(prompt, f"```go\n{whole}\n```", "F", "go") == whole


def test_php_begins_with_its_tag() -> None:
    prompt = "<?php\nfunction f($x) {\n"
    assert program(prompt, "function f($x) { return 1; }", "f", "php") == "<?php\nfunction f($x) { return 1; }"


# A missing middle.


@pytest.mark.parametrize(
    ("prefix", "suffix", "text", "expected"),
    [
        ("x = ", " + 1\n", "```python\ny\n```", "y"),
        ("x = ", " + 1\n", "`y`", "y"),
        ("def f(x):\n    return ", "\n", "```python\n    return x * 2\n```", "x * 2"),
        ("def f(x):\n    return ", "\n", "return x * 2", "x * 2"),
        ("def f(x):\n    return ", "\n", "def f(x):\n    return x * 2\n", "x * 2"),
        ("a = 1\n", "c = 3\n", "```\nb = 2\n```", "b = 2\n"),
        ("a = 1\n", "\nc = 3\n", "```\nb = 2\n```", "b = 2"),
        ("a = 1\n", "", "```\nb = 2\n```", "b = 2"),
        ("a = 1\n", "c = 3\n", "```\na = 1\nb = 2\nc = 3\n```", "b = 2\n"),
        ("if x:\n    ", "\n", "```\n    a()\n    b()\n```", "a()\n    b()"),
        ("if x:\n    ", "\n", "```\na()\nb()\n```", "a()\n    b()"),
        ("if x:\n    ", "\n", "a()\n    b()", "a()\n    b()"),
        ("if x:\n    ", "\n", "a()\n\n    b()", "a()\n\n    b()"),
        ("x = ", "\n", "", ""),
        ("a = 1\n", "c = 3\n", "", ""),
    ],
)
def test_a_middle_fits_in_its_gap(prefix: str, suffix: str, text: str, expected: str) -> None:
    assert middle(prefix, suffix, text) == expected


@given(codes, codes, codes)
def test_a_middle_comes_out_of_the_whole(prefix: str, hole: str, suffix: str) -> None:
    assume(len(prefix.strip()) > 3 and len(suffix.strip()) > 3 and hole.strip() == hole and hole)
    prefix, suffix = f"{prefix.strip()}\n", f"\n{suffix.strip()}\n"
    assert middle(prefix, suffix, f"```\n{prefix}{hole}{suffix}```") == hole


def test_titles() -> None:
    assert reply.title("javascript") == "JavaScript"


BEGUN = 'import math\n\n\ndef add(a, b):\n    """Adds."""'
WHOLE = 'def add(a, b):\n    """Adds."""\n    return a + b'
EXAMPLE = "Q: one\n\n# solution:\n\ndef solution():\n    return 1\n\n\nQ: two of them\n\n# solution:\n\n"


@pytest.mark.parametrize(
    ("prompt", "code", "rest"),
    [
        (BEGUN, WHOLE, "\n    return a + b\n"),
        (f"Write a function.\n\n{BEGUN}", WHOLE, "\n    return a + b\n"),
        (f"Write a function.\n\n{BEGUN}", "    return a + b", "\n    return a + b\n"),
        ('"""\nAdd.\nassert add(1, 2) == 3\n"""\n', WHOLE, f"{WHOLE}\n"),
        (EXAMPLE, "def solution():\n    return 2", "def solution():\n    return 2\n"),
        ("# wrong\ndef add(a, b):\n    return 0\n# right\ndef", WHOLE, f"{WHOLE.removeprefix('def')}\n"),
        ("QUESTION: what?\nANSWER:\n", "print(1)", "print(1)\n"),
        # A heading after the function ends it: the answer is a whole one.
        (f"Do it:\n{BEGUN}\n\n### Response:", WHOLE, f"{WHOLE}\n"),
        (f"{BEGUN.replace('    ', chr(9))}\n\n### Response:", WHOLE, f"\n{WHOLE}\n"),
        ("# Adds.\ndef add(a, b)\n", "def add(a, b)\n  a + b\nend", "\n  a + b\nend\n"),  # Ruby
        ("-- Adds.\nlocal function add(a, b)\n", "local function add(a, b)\n  return a\nend", "\n  return a\nend\n"),
        ("// Adds.\nfunction add(a, b) {\n", "function add(a, b) {\n  return a + b;\n}", "\n  return a + b;\n}\n"),
    ],
)
def test_a_completion_goes_on_where_the_prompt_ends(prompt: str, code: str, rest: str) -> None:
    """Whatever stands before it, and also where the prompt begins no function, or only half a line."""
    assert completion(prompt, f"Sure:\n```\n{code}\n```", "add") == rest


def test_prose_is_no_part_of_a_program() -> None:
    assert joined("Write a function add.\n", WHOLE) == WHOLE
    assert joined("import math\n", WHOLE) == f"import math\n{WHOLE}"
    assert joined("def add(a, b):\n", "    return a +") == "def add(a, b):\n    return a +"
    assert program("Write a function add.\n", f"```python\nimport math\n{WHOLE}\n```", "", "python").startswith(
        "import"
    )
