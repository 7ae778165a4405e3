"""Joins code of a benchmark and of a model into one source file that compiles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal

from msgspec import Struct

# Comments and literals, in which braces and names mean nothing. A quote by itself may be a lifetime of Rust's.
_OPAQUE = re.compile(
    r'"""(?s:.*?)(?:"""|\Z)|"(?:\\.|[^"\\\n])*+"?|`[^`]*+`?|\'(?:\\[^\n\']{1,8}|[^\'\\\n])\'|//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)'
)
_BRACE = re.compile(r"[{}]")
_SIGN = re.compile(r"[(){};]")
# No text takes long: a name is looked at so many times, and a signature has so many characters.
_MOST_OCCURRENCES = 100
_LONGEST_SIGNATURE = 2000
# Lines that stand at the top of a file, before anything is defined.
_HEAD = re.compile(r"(?:#!|#lang\b|#include\b|<\?php|import\b|using\b|use\b)[^\n]*")
_HASKELL_MAIN = re.compile(r"^main\b.*", re.MULTILINE | re.DOTALL)
_HASKELL_MODULE = re.compile(r"^module\b.{0,1000}?\bwhere\b", re.MULTILINE | re.DOTALL)
_GO_PACKAGE = re.compile(r"^package[ \t]+(\w+)[^\n]*\n?", re.MULTILINE)
_GO_IMPORT = re.compile(r'^import[ \t]*(?:\(([^)]{0,1000})\)|((?:[\w.]+[ \t]+)?"[^"\n]+"))[^\n]*\n?', re.MULTILINE)
_GO_SPEC = re.compile(r'(?:([\w.]+)[ \t]+)?"([^"\n]+)"')

# The crates that every row of HumanEvalPack imports, and a sign that one is used.
_CRATES = {
    "use rand::Rng;": r"\brand::|\bgen_range\b",
    "use regex::Regex;": r"\bRegex\b",
    "use md5;": r"\bmd5::",
}


class Definition(Struct, frozen=True):
    """The positions of a function or class with a body in braces."""

    start: int
    opening: int
    closing: int | None
    """None when the source ends before its brace."""


def opaque_blanked(source: str) -> str:
    """The source with comments and literals blanked out, at the same positions."""
    return _OPAQUE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)


def closing_brace(source: str, depth: int = 1) -> int | None:
    """The position of the brace that closes a block opened before the source."""
    for brace in _BRACE.finditer(opaque_blanked(source)):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return None


def find_definition(source: str, name: str, kind: Literal["function", "class"] = "function") -> Definition | None:
    """The first definition of a function or class of this name, in a language with braces."""
    clear = opaque_blanked(source)
    named = re.escape(name)
    if kind == "function":  # or a variable of JavaScript's that is one
        pattern = rf"\b{named}\s*(?:=\s*(?:async\s+)?(?:function\b\s*\w*\s*)?|[<[][^(){{}};]{{0,300}})?(?=\()"
    else:
        pattern = rf"\b(?:class|object)\s+{named}\b"
    for found in islice(re.finditer(pattern, clear), _MOST_OCCURRENCES):
        opening = _opening_after(clear, found.end())
        if opening is None:
            continue
        end = closing_brace(source[opening + 1 :])
        return Definition(_start_before(clear, found.start()), opening, None if end is None else opening + 1 + end)
    return None


def _start_before(clear: str, position: int) -> int:
    """Where the definition of the name at this position starts, on its line or above."""
    line = clear.rfind("\n", 0, position) + 1
    if line and not clear[line:position].strip():
        line = clear.rfind("\n", 0, line - 1) + 1
    return max(line, *(clear.rfind(end_of_statement, 0, position) + 1 for end_of_statement in "{};"))


def _opening_after(clear: str, position: int) -> int | None:
    """The opening brace of a body; None after a call or a declaration."""
    depth = 0
    for found in _SIGN.finditer(clear, position, position + _LONGEST_SIGNATURE):
        if found[0] in "()":
            depth += 1 if found[0] == "(" else -1
            if depth < 0:
                return None
        elif depth == 0:
            return found.start() if found[0] == "{" else None
    return None


def without(source: str, name: str, kind: Literal["function", "class"] = "function") -> str:
    """The source without the first definition of a function or class."""
    found = find_definition(source, name, kind)
    if found is None:
        return source
    return source[: found.start] + ("" if found.closing is None else source[found.closing + 1 :])


def unclosed(source: str, name: str) -> str:
    """The source up to the last line of a function, which stays open; what is defined after it comes before it."""
    found = find_definition(source, name)
    if found is None or found.closing is None:
        return source
    rest = source[found.closing + 1 :]
    end = closing_brace(rest)  # of a class around it
    further = rest if end is None else rest[:end]
    return f"{source[: found.start]}{further.rstrip()}\n{source[found.start : found.closing].rstrip()}"


def with_head(source: str, prompt: str) -> str:
    """The source with the imports and the like at the top of the prompt, unless it has them itself."""
    own = " ".join(_head_lines(source.splitlines()))
    missing = [line for line in _top_of(prompt) if _subject(line) not in own]
    return "\n".join([*missing, source])


def within_class(source: str, name: str, prompt: str) -> str:
    """The source inside the class that the prompt opens around its function, unless it has one itself."""
    found = find_definition(source, name)
    before = opaque_blanked(source)[: found.start if found else 0]
    if found is None or before.count("{") > before.count("}"):
        return source
    opened = re.search(r"^[^\n]*\{", opaque_blanked(prompt), re.MULTILINE)
    if opened is None:
        return source
    lines = source.splitlines()
    head = list(_head_lines(lines))
    body = [line for line in lines if line not in head]
    return "\n".join([*head, opened[0], *body])


def with_helpers(source: str, given: str, name: str) -> str:
    """The source with the functions that were given before the one to write, instead of its own with these names.

    The tests may use them too: a program must not decide what they do.
    """
    begun = find_definition(given, name)
    before = given[: begun.start] if begun else ""
    helpers = _helpers(before)
    missing = [helper for helper in helpers if not _defined(source, helper)]
    for helper, definition in helpers.items():
        own = _defined(source, helper)
        if own is not None and own.closing is not None:
            source = source[: own.start] + ("" if missing else definition) + source[own.closing + 1 :]
    # In a class they cannot stand before the source.
    return f"{before}\n{source}" if missing and not _depth(before, len(before)) else source


def _helpers(before: str) -> dict[str, str]:
    """The functions in it, by name; not what merely looks like one inside their bodies."""
    found = {}
    for word in dict.fromkeys(re.findall(r"\w+", opaque_blanked(before))):
        definition = find_definition(before, word) if word != "main" else None
        if definition and definition.closing and _depth(before, definition.start) == _depth(before, len(before)):
            found[word] = before[definition.start : definition.closing + 1]
    return found


def _defined(source: str, name: str) -> Definition | None:
    found = find_definition(source, name)
    return found if found and _depth(source, found.start) <= 1 else None


def _depth(source: str, position: int) -> int:
    clear = opaque_blanked(source)[:position]
    return clear.count("{") - clear.count("}")


def _top_of(prompt: str) -> Iterator[str]:
    for line in prompt.splitlines():
        if _HEAD.fullmatch(line):
            yield line
        elif line.strip():
            return


def _head_lines(lines: Iterable[str]) -> Iterator[str]:
    return (line for line in lines if _HEAD.fullmatch(line))


def _subject(line: str) -> str:
    """What a line at the top names: a header, a module, a language."""
    return str(re.findall(r"[\w.*/+]+", line)[-1])


def shell_unclosed(source: str, name: str) -> str:
    """The same as `unclosed` for a shell's function, which ends with a brace that stands alone."""
    begun = re.search(rf"^(?:function[ \t]+)?{re.escape(name)}\b[^\n]*\{{", source, re.MULTILINE)
    end = source.find("\n}", begun.end()) if begun else -1
    if begun is None or end < 0:
        return source
    rest = source[end + 2 :]
    further = rest if re.search(r"^(?:function[ \t]+\w+|\w+[ \t]*\(\))", rest, re.MULTILINE) else ""
    return f"{source[: begun.start()]}{further.strip()}\n{source[begun.start() : end]}"


def ada_unclosed(source: str, name: str, prompt: str) -> str:
    """The same for Ada, whose function stands in the body of a package."""
    if "package body" not in source.lower():
        package, _, _ = prompt.rpartition("function")
        source = package + source
    end = re.search(rf"^[ \t]*end[ \t]+{re.escape(name)}[ \t]*;", source, re.MULTILINE | re.IGNORECASE)
    return source[: end.start()].rstrip() if end else source


def haskell_without_main(source: str) -> str:
    """Without the program around the functions: the tests are the program."""
    return _HASKELL_MAIN.sub("", _HASKELL_MODULE.sub("", source))


def without_unused_crates(source: str) -> str:
    """A source of Rust without the crates that it imports, as all rows of HumanEvalPack do, but does not use."""
    for line, sign in _CRATES.items():
        if not re.search(sign, source.replace(line, "")):
            source = source.replace(line, "")
    return source


def go_source(parts: Iterable[str], offered: Iterable[str] = ()) -> str:
    """One file of Go from parts that may each have a package and imports.

    An import that nothing uses is an error in Go, so those are left out. Offered packages are imported where used.
    """
    whole = "\n".join(parts)
    package = _GO_PACKAGE.search(whole)
    specs = [spec for block in _GO_IMPORT.finditer(whole) for spec in _GO_SPEC.findall(block[1] or block[2])]
    body = _GO_IMPORT.sub("", _GO_PACKAGE.sub("", whole))
    clear = opaque_blanked(body)
    imports: dict[str, str] = {}
    for alias, path in [*specs, *(("", path) for path in offered)]:
        name = alias or _go_name(path)
        if alias in ("_", ".") or re.search(rf"\b{re.escape(name)}\.", clear):
            imports.setdefault(name if alias not in ("_", ".") else path, f'{alias} "{path}"'.strip())
    block = "".join(f"\t{spec}\n" for spec in imports.values())
    return f"package {package[1] if package else 'main'}\n\nimport (\n{block})\n\n{body}"


def _go_name(path: str) -> str:
    *before, last = path.split("/")
    return before[-1] if before and re.fullmatch(r"v\d+", last) else last
