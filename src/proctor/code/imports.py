"""What the rows of a benchmark import, and whether it is there where programs run.

A crate, package, header or module that a row's prompt, tests or reference need is part of the benchmark's environment:
where it is missing, no program can be judged, and none has failed. What only a program imports is the program's own
affair. Whether something is there is found out by a program that does nothing but import it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from proctor.core.errors import UnknownNameError
from proctor.sandbox import Program
from proctor.sandbox.languages import find_language

# A docstring's line may begin with "from", so what looks like an import is one only as a whole.
_AS = r"[\w.]++(?:[ \t]++as[ \t]++\w++)?"
_PYTHON = (
    r"^[ \t]*+(?:from[ \t]++(?P<name>\w++)[\w.]*+[ \t]++import\b"
    rf"|import[ \t]++(?P<several>{_AS}(?:[ \t]*+,[ \t]*+{_AS})*+)[ \t]*+(?:#|;|$))"
)
_PARSED = 20_000  # characters: some tests have megabytes of data
_JVM_PROBE = "class Main { public static void main(String[] words) {} }"


class MissingLibraryError(Exception):
    """A program cannot be judged: what its benchmark needs is not there. The program is not to blame."""


class Syntax(Struct, frozen=True, kw_only=True):
    """How a language imports."""

    pattern: str
    """Finds one import, with the group `name`, or `several` names separated by commas or blanks.

    Prompts are full of prose, in comments and docstrings. What is found there by mistake would excuse a wrong program.
    """
    block: str = r"\A[\s\S]*\Z"
    """Imports stand only in what this matches."""
    probe: str
    """A program that imports «name» and does nothing else."""
    usual: str = ""
    """Matches names that come with every toolchain."""
    own: str = ""
    """Finds what a source defines itself and can import from itself, as the group `name`."""
    use: str = ""
    """Finds «name» in use, where a source need not import it."""
    packages: Mapping[str, str] = {}
    """What to install, by the name that is imported."""
    language: str = ""
    """The one to try an import in, if it is another."""


_PYTHON_SYNTAX = Syntax(
    pattern=_PYTHON, probe="import importlib.util as util\nassert util.find_spec('«name»') is not None\n"
)
_INCLUDE = Syntax(
    pattern=r"^[ \t]*#[ \t]*include[ \t]*<(?P<name>[^>\n]+)>",
    probe="#include <«name»>\nint main() { return 0; }\n",
    packages={"boost/any.hpp": "libboost-dev (Debian)", "openssl/md5.h": "libssl-dev (Debian)"},
)
_NODE = Syntax(
    pattern=r"""\brequire\([ \t]*['"](?P<name>[^'"\s./][^'"\s]*)['"]"""
    r"""|^[ \t]*(?:import|export)\b[^'"\n]*['"](?P<several>[^'"\s./][^'"\s]*)['"]""",
    probe='require("«name»");\n',
    usual=r"node:",
    packages={"js-md5": "js-md5 (npm install --global)"},
    language="javascript",
)
_RUST = Syntax(
    pattern=r"^[ \t]*(?:pub[ \t]+)?(?:use|extern[ \t]+crate)[ \t]+(?:::)?(?P<name>[a-z]\w*)[ \t]*(?:::|;|as\b)",
    probe="extern crate «name»;\nfn main() {}\n",
    usual=r"(?:std|core|alloc|crate|self|super)$",
    own=r"\bmod[ \t]+(?P<name>\w+)",
    use=r"^[ \t]*(?:pub[ \t]+)?(?:use|extern[ \t]+crate)[ \t]+(?:::)?«name»\b|(?<![\w:])(?:::)?«name»::",
)
_CRATES = {
    "rand": "the crate rand 0.4 (cargo vendor, into /usr/local/share/cargo/registry)",
    "regex": "cargo and librust-regex-dev (Debian)",
    "md5": "cargo and librust-md5-dev (Debian)",
}
_GO = Syntax(
    block=r"^import[ \t]*(?:\([^)]{0,4000}\)|[^\n]*)",
    pattern=r'"(?P<name>[\w-]+\.[\w.-]+/[^"\n]+)"',
    probe='package main_test\n\nimport (\n\t"testing"\n\n\t_ "«name»"\n)\n\nfunc TestNothing(t *testing.T) {}\n',
    packages={"github.com/stretchr/testify/assert": "golang-github-stretchr-testify-dev (Debian)"},
    language="go-test",
)

SYNTAX = {
    "ada": Syntax(
        pattern=r"(?i)^[ \t]*with[ \t]++(?P<several>[\w., \t]+);",
        probe="with «name»;\n\nprocedure Main is\nbegin\n   null;\nend Main;\n",
        own=r"(?i)^[ \t]*(?:package|procedure|function)[ \t]+(?:body[ \t]+)?(?P<name>\w+)",
    ),
    "c": _INCLUDE,
    "clojure": Syntax(pattern=r"\[(?P<name>[a-z][\w.-]*)[ \t]+:(?:as|refer)\b", probe="(require '«name»)\n"),
    "cpp": _INCLUDE,
    "csharp": Syntax(
        pattern=r"^[ \t]*using[ \t]+(?:static[ \t]+)?(?P<name>[\w.]+)[ \t]*;",
        probe="using «name»;\n\nclass Nothing { static void Main() {} }\n",
    ),
    "d": Syntax(pattern=r"^[ \t]*import[ \t]+(?P<name>[\w.]+)", probe="import «name»;\n\nvoid main() {}\n"),
    "dart": Syntax(
        pattern=r"^[ \t]*import[ \t]+['\"](?P<name>[^'\"\n]+)['\"]", probe="import '«name»';\n\nvoid main() {}\n"
    ),
    "elixir": Syntax(
        pattern=r"^[ \t]*(?:use|import|alias|require)[ \t]+(?P<name>[A-Z][\w.]*)",
        probe="Code.ensure_loaded!(«name»)\n",
        own=r"^[ \t]*defmodule[ \t]+(?P<name>[\w.]+)",
    ),
    "go": _GO,
    "go-test": _GO,
    "haskell": Syntax(
        pattern=r"^import[ \t]+(?:qualified[ \t]+)?(?P<name>[A-Z][\w.]*)",
        probe="import «name»\n\nmain :: IO ()\nmain = pure ()\n",
    ),
    "java": Syntax(
        pattern=r"^[ \t]*import[ \t]+(?P<name>(?:static[ \t]+)?[\w.]+(?:\.\*)?)[ \t]*;",
        probe=f"import «name»;\n\n{_JVM_PROBE}\n",
        usual=r"(?:static[ \t]+)?java\.",
        packages={"org.javatuples.*": "libjavatuples-java (Debian)"},
    ),
    "javascript": _NODE,
    "julia": Syntax(
        pattern=r"^[ \t]*(?:using|import)[ \t]+(?P<several>[A-Z]\w*(?:[ \t]*,[ \t]*[A-Z]\w*)*)[ \t]*(?:$|:|\.)",
        probe="using «name»\n",
    ),
    "kotlin": Syntax(
        pattern=r"^[ \t]*import[ \t]+(?P<name>[\w.]+(?:\.\*)?)",
        probe="import «name»\n\nfun main() {}\n",
        usual=r"(?:java|kotlin)\.",
    ),
    "lua": Syntax(
        pattern=r"""\brequire[ \t]*\(?[ \t]*['"](?P<name>[\w.-]+)['"]""",
        probe='require("«name»")\n',
        packages={"luaunit": "lua-unit (Debian)"},
    ),
    "ocaml": Syntax(
        pattern=r"^[ \t]*open[ \t]+(?P<name>[A-Z]\w*)",
        probe="open «name»\n",
        own=r"\bmodule[ \t]+(?P<name>[A-Z]\w*)",
    ),
    "perl": Syntax(
        pattern=r"^[ \t]*(?:use|require)[ \t]+(?P<name>[A-Z]\w*(?:::\w+)*)[ \t]*(?:;|\(|qw\b|['\"\d])",
        probe="use «name» ();\n",
        own=r"^[ \t]*package[ \t]+(?P<name>[\w:]+)",
        packages={"Test::Deep": "libtest-deep-perl (Debian)"},
    ),
    "php": Syntax(
        pattern=r"\b(?P<name>mb|gmp)_\w+[ \t]*\(",
        probe="<?php exit(count(preg_grep('/^«name»_/', get_defined_functions()['internal'])) ? 0 : 1);\n",
        packages={"mb": "php-mbstring (Debian)", "gmp": "php-gmp (Debian)"},
    ),
    "python": _PYTHON_SYNTAX,
    "r": Syntax(
        pattern=r"""^[ \t]*(?:suppress\w+\()?(?:library|require)\([ \t]*['"]?(?P<name>[A-Za-z][\w.]*)['"]?[ \t]*\)""",
        probe="library(«name»)\n",
    ),
    "racket": Syntax(pattern=r"\(require[ \t]+(?P<several>[\w/ \t-]+)", probe="#lang racket/base\n(require «name»)\n"),
    "ruby": Syntax(pattern=r"""^[ \t]*require[ \t]*\(?[ \t]*['"](?P<name>[\w/-]+)['"]""", probe='require "«name»"\n'),
    "rust": _RUST,
    "rust-test": Syntax(
        pattern=_RUST.pattern,
        probe="extern crate «name»;\n\n#[test]\nfn nothing() {}\n",
        usual=_RUST.usual,
        own=_RUST.own,
        use=_RUST.use,
        packages=_CRATES,
    ),
    "scala": Syntax(
        pattern=r"^[ \t]*import[ \t]+(?P<name>[\w.]+)",
        probe="import «name»\n\nobject Main { def main(words: Array[String]): Unit = {} }\n",
        usual=r"(?:java|scala)\.",
    ),
    "swift": Syntax(pattern=r"^[ \t]*import[ \t]+(?P<name>\w+)", probe="import «name»\n"),
    "typescript": _NODE,
}


def imported(language: str, *sources: str) -> set[str]:
    """What is imported anywhere in these texts, also in code that is a string in other code; without what they define
    themselves, and what comes with every toolchain."""
    syntax = _syntax(language)
    if syntax is None:
        return set()
    if syntax is _PYTHON_SYNTAX:
        return {name for source in sources for name in _python_packages(source)}
    names = {name for source in sources for name in _names_in(source, syntax)}
    own = {found["name"] for source in sources for found in _matches(syntax.own, source)} if syntax.own else set()
    return {name for name in names - own if not (syntax.usual and re.match(syntax.usual, name))}


def used(language: str, names: Iterable[str], *sources: str) -> set[str]:
    """Those of the names that the sources need."""
    syntax = _syntax(language)
    if syntax is None or not syntax.use:
        return set(names) & imported(language, *sources)
    whole = "\n".join(sources)
    return {name for name in names if re.search(syntax.use.replace("«name»", re.escape(name)), whole, re.MULTILINE)}


def probe(language: str, name: str) -> Program:
    """A program that passes where the name can be imported."""
    syntax = _syntax(language)
    assert syntax is not None
    return Program(source=syntax.probe.replace("«name»", name), language=syntax.language or language)


def missing(language: str, names: Iterable[str], packages: Mapping[str, str] = {}) -> MissingLibraryError:
    """What to say where they are not there; ``packages`` are known to the caller."""
    syntax = _syntax(language)
    known = {**(syntax.packages if syntax else {}), **packages}
    absent = sorted(names)
    return MissingLibraryError(
        f"{' and '.join(absent)} cannot be imported where programs run: install "
        f"{', '.join(dict.fromkeys(known.get(name, name) for name in absent))} there"
    )


def _syntax(language: str) -> Syntax | None:
    try:
        return SYNTAX.get(find_language(language).name)
    except UnknownNameError:
        return None


def _names_in(source: str, syntax: Syntax) -> Iterator[str]:
    for block in _matches(syntax.block, source):
        for found in _matches(syntax.pattern, block[0]):
            groups = found.groupdict()
            yield from re.split(r"[,\s]+", groups["several"].strip()) if groups.get("several") else [groups["name"]]


def _matches(pattern: str, source: str) -> Iterator[re.Match[str]]:
    return re.finditer(pattern, source, re.MULTILINE)


def _python_packages(source: str) -> Iterator[str]:
    """The packages alone, which bring their modules along."""
    try:
        tree = ast.parse(source if len(source) <= _PARSED else "(")  # which is no Python
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        for found in _matches(_PYTHON, source):
            several = found["several"].split(",") if found["several"] else [found["name"]]
            yield from (name.split()[0].partition(".")[0] for name in several)
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
