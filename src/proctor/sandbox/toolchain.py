"""Toolchains: locates the tools of a language, and what they need in the sandbox."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from glob import glob
from pathlib import Path

from msgspec import Struct

from proctor.core.errors import MissingToolchainError
from proctor.sandbox.languages import Language
from proctor.sandbox.layout import SYSTEM_FOLDERS

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NOT_PREPARED = "/tmp/.prepared"
"""The prepared folder if preparation failed: it does not exist."""

END_CLASS = "ProctorEnd"
"""On a JVM, the class that calls the main method of a source with tests; see `endings`."""


class BuildSteps(Struct, frozen=True):
    """The file and the commands of one program. Commands start with a full path or ``./``."""

    file: str
    compile: tuple[str, ...]
    run: tuple[str, ...]
    environment: Mapping[str, str]


class Toolchain(Struct, frozen=True):
    """A language's tools on this machine."""

    language: Language
    tools: Mapping[str, str]
    """Paths of the commands."""
    folders: tuple[str, ...]
    """Folders that must be visible in the sandbox besides those of the system."""
    path: str
    """PATH in the sandbox."""
    home: str

    def build_steps(
        self, source: str, memory_mib: int, prepared: str = NOT_PREPARED, extras: tuple[str, ...] = ()
    ) -> BuildSteps:
        """The steps for one source; ``extras`` are further compiler arguments."""
        language = self.language
        names = SourceNames.of(source) if "{" in language.file else SourceNames()
        file = language.file.replace("{public}", names.public)
        values = self._values(memory_mib, prepared) | {"{file}": file, "{main}": names.main}
        further = [word for text, words in language.compile_with.items() if text in source for word in words]
        return BuildSteps(
            file=file,
            compile=self._command((*language.compile, *further, *extras), values) if language.compile else (),
            run=self._command(language.run, values),
            environment={name: _fill(value, values) for name, value in language.environment.items()},
        )

    def preparation(self, script: str, memory_mib: int) -> BuildSteps:
        """The steps that run a script in the prepared folder."""
        values = self._values(memory_mib, prepared="/tmp")
        return BuildSteps(
            file="",
            compile=(),
            run=("/bin/sh", "-ec", _fill(script, values)),
            environment={name: _fill(value, values) for name, value in self.language.environment.items()},
        )

    def _values(self, memory_mib: int, prepared: str) -> dict[str, str]:
        return {"{heap}": str(memory_mib * 3 // 4), "{prepared}": prepared, "{home}": self.home}

    def _command(self, words: tuple[str, ...], values: Mapping[str, str]) -> tuple[str, ...]:
        return (self.tools.get(words[0], words[0]), *(_fill(word, values) for word in words[1:]))


class SourceNames(Struct, frozen=True):
    """The file name and main class of a Java or Scala source."""

    public: str = "Main"
    main: str = "Main"

    @classmethod
    def of(cls, source: str) -> SourceNames:
        depth, outermost, public, main, package = 0, "", "", "", ""
        for token in _JVM_TOKENS.finditer(source):
            if token["brace"]:
                depth += 1 if token["brace"] == "{" else -1
            elif token["package"]:
                package = package or token["package"] + "."
            elif token["name"] and depth == 0:
                outermost = token["name"]
                public = public or (outermost if token["public"] else "")
            elif token["main"] and depth <= 1:
                main = main or outermost
        main = END_CLASS if outermost == END_CLASS else main or public or outermost or "Main"
        return cls(public or main, package + main)


# Without backtracking: it runs outside the sandbox, on hostile sources.
_JVM_TOKENS = re.compile(
    r'"""(?s:.*?)(?:"""|\Z)|"(?:\\.|[^"\\\n])*+"?|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)'
    r"|(?P<brace>[{}])"
    r"|^[ \t]*package[ \t]+(?P<package>[\w.]+)"
    r"|(?:(?P<public>\bpublic\s++)(?:(?:abstract|final|sealed|strictfp)\s++)*+)?"
    r"\b(?:class|interface|enum|record|object)\s+(?P<name>\w+)"
    r"|(?P<main>\bvoid\s+main\s*\(|\bdef\s+main\s*\(|\bextends\s+App\b)",
    re.MULTILINE,
)


def _fill(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word


def locate(language: Language, libraries: bool = False) -> Toolchain:
    """Locates the tools of a language: those of the system, else those on the PATH.

    With ``libraries``, those that programs of benchmarks use must be installed, too.
    """
    tools: dict[str, str] = {}
    visible = [folder for pattern in language.folders for folder in sorted(glob(pattern))]
    for word in [*required_tools(language), *(language.libraries if libraries else ())]:
        path = _find(word)
        if path is None:
            raise MissingToolchainError(language.name, word, language.packages, language.site)
        if not (_is_system(path) and _is_system(path.resolve())):
            if (word,) == language.sysroot[:1]:
                path = _ask_sysroot(language) / "bin" / path.name
            visible += _install_folders(path)
            if not any(path.is_relative_to(folder) for folder in visible):
                path = path.resolve()
        tools[word] = str(path)
    first = Path(tools[required_tools(language)[0]])
    outside = [str(Path(tool).parent) for tool in tools.values() if not _is_system(Path(tool))]
    return Toolchain(
        language=language,
        tools=tools,
        folders=tuple(dict.fromkeys(visible)),
        path=":".join(dict.fromkeys([*outside, SYSTEM_PATH])),
        home=str(install_prefix(first.resolve())),
    )


def required_tools(language: Language) -> list[str]:
    """Tools that its programs need: names, or patterns of files."""
    words = [command[0] for command in (language.compile, language.run) if command]
    return list(dict.fromkeys(word for word in [*words, *language.tools] if not word.startswith("./")))


def install_prefix(tool: Path) -> Path:
    """The installation folder of a tool, given its real path."""
    return tool.parent.parent if tool.parent.name == "bin" else tool.parent


def _find(tool: str) -> Path | None:
    if tool.startswith("/"):
        return next(map(Path, sorted(glob(tool))), None)
    if tool == "python3":  # this Python, with its packages
        return Path(sys.executable)
    found = shutil.which(tool, path=SYSTEM_PATH) or shutil.which(tool)
    return Path(os.path.abspath(found)) if found else None


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in SYSTEM_FOLDERS)


def _ask_sysroot(language: Language) -> Path:
    """Asks a launcher, such as rustup's, for its tools; it may have none installed."""
    asked = subprocess.run(language.sysroot, capture_output=True, text=True, errors="replace", check=False)
    if asked.returncode or not asked.stdout.strip():
        fault = f"does not start ({(asked.stderr.strip() or 'no error message').splitlines()[0]})"
        raise MissingToolchainError(language.name, language.sysroot[0], language.packages, language.site, fault)
    return Path(asked.stdout.strip())


def _install_folders(tool: Path) -> list[str]:
    """The folders of a tool outside the system, but not a shared folder of the user."""
    if str(tool) == sys.executable:
        own = [sys.prefix, sys.base_prefix]
    else:
        home = Path.home()
        installed = install_prefix(tool.resolve())
        shared = installed in (home, home / ".local") or home.is_relative_to(installed)
        own = [str(tool.resolve() if shared else installed)]
    return [folder for folder in own if not _is_system(Path(folder))]
