"""Sources put together: definitions found, closed and unclosed; imports and helpers neither lost nor doubled."""

from __future__ import annotations

import pytest

from proctor.code import sources

CPP = """#include <vector>

long twice(long x);  // twice(x) { is no definition
long f(long x) {
    const char *s = "}";
    char c = '}'; /* } */
    if (x > f(1)) { return twice(x); }
    return f(2);
}

long twice(long x) {
    return 2 * x;
}
"""


def test_braces_in_literals_and_comments_close_nothing() -> None:
    found = sources.find_definition(CPP, "f")
    assert found is not None
    assert found.closing is not None
    assert CPP[found.start : found.closing + 1].splitlines()[0] == "long f(long x) {"
    assert CPP[: found.closing + 1].endswith("return f(2);\n}")


@pytest.mark.parametrize(
    ("source", "name", "first_line"),
    [
        ("if (f(x)) { g(); }\nint f(int x) {\n}", "f", "int f(int x) {"),
        ("int f(int x);\nint\nf(int x) {\n}", "f", "int"),
        (
            "fn f<'a, T: Ord>(x: &'a [T]) -> T where T: Copy {\n}",
            "f",
            "fn f<'a, T: Ord>(x: &'a [T]) -> T where T: Copy {",
        ),
        ("def f(x : List[Long]) : Either[Long, Unit] = {\n}", "f", "def f(x : List[Long]) : Either[Long, Unit] = {"),
        ("const f = (x) => {\n}", "f", "const f = (x) => {"),
        ("let f = async function (x) {\n}", "f", "let f = async function (x) {"),
        ("func g() {} func f(x: (Int, Int)) -> [(Int, Int)] {\n}", "f", " func f(x: (Int, Int)) -> [(Int, Int)] {"),
    ],
)
def test_definitions_are_told_from_calls_and_declarations(source: str, name: str, first_line: str) -> None:
    found = sources.find_definition(source, name)
    assert found is not None
    assert source[found.start :].splitlines()[0] == first_line


@pytest.mark.parametrize("source", ["", "f(1);", "int f(int x);", "// f(x) {\n", "return f(x) }", "f f f("])
def test_what_is_no_definition(source: str) -> None:
    assert sources.find_definition(source, "f") is None


def test_an_unfinished_definition_has_no_closing_brace() -> None:
    found = sources.find_definition("int f() {\n  if (x) {\n  }\n", "f")
    assert found is not None
    assert found.closing is None


def test_what_comes_after_an_unclosed_function_comes_before_it() -> None:
    assert sources.unclosed(CPP, "f").endswith("return f(2);")
    assert sources.unclosed(CPP, "f").index("return 2 * x;\n}") < sources.unclosed(CPP, "f").index("long f(")
    in_class = "class A {\n  int f() {\n    return g();\n  }\n  int g() { return 1; }\n}\nclass B {}\n"
    assert " ".join(sources.unclosed(in_class, "f").split()) == "class A { int g() { return 1; } int f() { return g();"
    assert sources.unclosed("int f() {\n", "f") == "int f() {\n"


def test_a_class_or_function_is_taken_out() -> None:
    java = "class Solution {\n  int f() { return 1; }\n}\npublic class Main {\n  void main() { new Main(); }\n}\n"
    assert sources.without(java, "Main", "class").strip() == java[: java.index("public")].strip()
    assert "void main" not in sources.without(java, "main")
    assert sources.without(java, "other") == java


def test_heads_are_given_only_where_they_are_missing() -> None:
    prompt = "import java.util.*;\nimport java.lang.*;\n\nclass A {\n    int f() {\n"
    assert sources.with_head("class A {}", prompt) == "import java.util.*;\nimport java.lang.*;\nclass A {}"
    has_one = "import java.util.*;\nclass A {}"
    assert sources.with_head(has_one, prompt) == f"import java.lang.*;\n{has_one}"
    rust = "use std::collections::{HashMap, HashSet};\nfn f() {}"
    assert sources.with_head(rust, "use std::collections::HashMap;\n\nfn f() {\n") == rust
    assert sources.with_head("<?php\nf();", "<?php\n// doc\n") == "<?php\nf();"


def test_a_lonely_method_gets_its_class() -> None:
    prompt = "import a.*;\nclass Problem {\n    // {\n    static int f() {\n"
    lonely = "import b.*;\nstatic int g() { return 1; }\nstatic int f() { return g(); }"
    wrapped = sources.within_class(lonely, "f", prompt)
    assert wrapped.splitlines()[:2] == ["import b.*;", "class Problem {"]
    assert sources.within_class(wrapped, "f", prompt) == wrapped


HELPER = "fn helper(x: i32) -> i32 {\n    if (x > 0) { x } else { 0 }\n}"


def test_helpers_are_the_given_ones() -> None:
    given = f"fn main(){{}}\nuse a::b;\n{HELPER}\n\nfn f(x: i32) -> i32{{\n"
    assert sources.with_helpers("fn f() {}", given, "f") == f"fn main(){{}}\nuse a::b;\n{HELPER}\n\n\nfn f() {{}}"
    own = "fn helper(x: i32) -> i32 { 0 }\nfn f() { if (a) { b } }"
    assert sources.with_helpers(own, given, "f") == f"{HELPER}\nfn f() {{ if (a) {{ b }} }}"
    assert sources.with_helpers("fn f() {}", "fn main(){}\nfn f() -> i32{\n", "f") == "fn f() {}"


def test_in_a_class_only_helpers_that_are_there_become_the_given_ones() -> None:
    given = "class S {\n    int helper(int x) { return x; }\n    int f(int x) {\n"
    own = "class S {\n    int helper(int x) { return 0; }\n    int f(int x) { return helper(x); }\n}\n"
    assert sources.with_helpers(own, given, "f") == own.replace("return 0;", "return x;")
    alone = "class S {\n    int f(int x) { return x; }\n}\n"
    assert sources.with_helpers(alone, given, "f") == alone


def test_go_imports_what_is_used_once_and_nothing_else() -> None:
    parts = [
        'package main\n\nimport (\n    "testing"\n    "github.com/stretchr/testify/assert"\n)\n',
        'package other\n\nimport "os"\nimport m "math"\nimport (\n\t"strings"\n\tr "math/rand/v2"\n\t_ "embed"\n)\n'
        'func F() string {\n    // os.Exit\n    return strings.Repeat("os.Args", int(m.Abs(r.Float64())))\n}\n',
        "func TestF(t *testing.T) {\n    assert := assert.New(t)\n    assert.Equal(sort.IsSorted, F())\n}\n",
    ]
    source = sources.go_source(parts, ["sort", "time", "math"])
    assert source.count("package ") == 1
    assert source.startswith("package main\n")
    block = source[source.index("import (") : source.index(")\n")]
    assert [line.strip() for line in block.splitlines()[1:]] == [
        '"testing"',
        '"github.com/stretchr/testify/assert"',
        'm "math"',
        '"strings"',
        'r "math/rand/v2"',
        '_ "embed"',
        '"sort"',
    ]


def test_ada_is_read_with_and_without_its_package() -> None:
    signature = "function F (X : Integer) return Integer"
    prompt = f"package P is\n   {signature};\nend P;\n\npackage body P is\n   {signature}"
    function = f"{signature} is\nbegin\n   return X;\nend F;"
    expected = f"package body P is\n   {signature} is\nbegin\n   return X;"
    assert sources.ada_unclosed(function, "F", prompt).endswith(expected)
    whole = prompt[: prompt.rindex("function")] + function + "\nend P;\n"
    assert sources.ada_unclosed(whole, "F", prompt).endswith(expected)
