"""MultiPL-E: the problems of HumanEval and MBPP, translated with their tests into two dozen languages.

A Scalable and Extensible Approach to Benchmarking NL2Code for 18 Programming Languages,
https://arxiv.org/abs/2208.08227
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, cast

from proctor.code import reply, sources
from proctor.code.forms import Form
from proctor.code.rows import load_dataset
from proctor.code.task import Task
from proctor.code.wrong_tests import program_with_control
from proctor.sandbox import Program

# How the benchmark calls a language, and the sandbox.
LANGUAGES = {
    "adb": "ada",
    "clj": "clojure",
    "cpp": "cpp",
    "cs": "csharp",
    "d": "d",
    "dart": "dart",
    "elixir": "elixir",
    "go": "go-test",
    "hs": "haskell",
    "java": "java",
    "jl": "julia",
    "js": "javascript",
    "lua": "lua",
    "ml": "ocaml",
    "php": "php",
    "pl": "perl",
    "py": "python",
    "r": "r",
    "rb": "ruby",
    "rkt": "racket",
    "rs": "rust",
    "scala": "scala",
    "sh": "bash",
    "swift": "swift",
    "ts": "typescript",
}
_SOURCES = {"HumanEval": ("humaneval", LANGUAGES), "MBPP": ("mbpp", LANGUAGES.keys() - {"dart", "py"})}
# The BigCode harness takes the data set from this revision, with Python among its languages.
_WITH_PYTHON = "8a4cb75204eb3d5855a81778db6b95bfc80c9136"
_IN_A_CLASS = ("csharp", "java", "scala")
# After these the rest of a file is no program any more, and the tests would not be run.
_ENDS_OF_FILE = re.compile(r"^__(?:END|DATA)__\s*$.*", re.MULTILINE | re.DOTALL)


def create_all_tasks() -> dict[str, type[MultiPLE]]:
    """`multiple-rs` is HumanEval in Rust, `multiple-mbpp-rs` is MBPP."""
    tasks = {}
    for title, (source, endings) in _SOURCES.items():
        for ending in sorted(endings):
            name = f"multiple-{ending}" if source == "humaneval" else f"multiple-{source}-{ending}"
            tasks[name] = create_task(title, source, ending)
    return tasks


def create_task(title: str, source: str, ending: str) -> type[MultiPLE]:
    language = LANGUAGES[ending].removesuffix("-test")
    members: dict[str, Any] = {
        "__doc__": f"{title} in {reply.title(language)}.",
        "__module__": __name__,
        "summary": f"{title} in {reply.title(language)}: writes the body of a function, judged by translated tests",
        "DATASET_NAME": f"{source}-{ending}",
        "language": language,
        "runs_as": LANGUAGES[ending],
    }
    return cast("type[MultiPLE]", type(f"MultiPLE_{source}_{ending}", (MultiPLE,), members))


class MultiPLE(Task):
    """The rows have prompts, tests and the texts that end a completion, but no solutions."""

    DATASET_PATH = "nuprl/MultiPL-E"
    version = "2"
    NEEDED = ("name", "prompt", "tests", "stop_tokens")
    runs_as: str
    max_tokens = 1024

    def __init__(self, timeout: float = 15.0, revision: str = "main") -> None:
        super().__init__(requires_execution=True)
        self.timeout = timeout
        self.revision = revision

    def get_dataset(self) -> Any:
        revision = _WITH_PYTHON if self.language == "python" and self.revision == "main" else self.revision
        rows = load_dataset(self.DATASET_PATH, self.DATASET_NAME, split=self.SPLIT, revision=revision)
        self.stop_words = [*rows[0]["stop_tokens"], "<file_sep>"]  # the latter begins another file for StarCoder 2
        return rows

    def get_prompt(self, doc: Any) -> str:
        return str(doc["prompt"]).strip()

    def get_reference(self, doc: Any) -> str:
        return str(doc["tests"])

    def entry_point(self, doc: Any) -> str:
        """The problem's name in the spelling of the language: is_prime, isPrime, IsPrime, Is_Prime."""
        wanted = _essence(re.sub(r"^[A-Za-z]+_\d+_", "", doc["name"]))
        spellings = [word for word in re.findall(r"\w+", doc["prompt"]) if _essence(word) == wanted]
        return str(spellings[-1]) if spellings else ""

    def solution(self, doc: Any) -> str | None:
        """None of the benchmark's; rows of one's own may have a `canonical_solution`."""
        stripped = doc["prompt"][len(doc["prompt"].rstrip()) :]
        return f"{stripped}{doc['canonical_solution']}" if "canonical_solution" in doc else None

    def promised_code(self, doc: Any) -> list[str]:
        """PHP's modules have no import; the benchmark's own image has this one."""
        return [*super().promised_code(doc), *(["mb_strlen();"] if self.language == "php" else [])]

    def program(self, doc: Any, generation: str) -> Program:
        tests = self.get_reference(doc)
        if self.language == "python":
            return Program(source=generation, tests=tests, entry_point=self.entry_point(doc), prelude=doc["prompt"])
        wrong, right = self.wrong_tests(doc), self.right_generation(doc)
        return program_with_control(partial(self._source, doc), generation, tests, wrong, self.runs_as, reference=right)

    def _source(self, doc: Any, generation: str, tests: str) -> str:
        if self.language == "go":
            imports = re.split(r"\n(?://|func )", doc["prompt"])[0]
            return sources.go_source([imports, generation, tests])
        if self.language == "php" and generation.rfind("?>") > generation.rfind("<?php"):
            return f"{generation}\n<?php\n{tests}"
        if self.language in ("perl", "ruby"):
            return f"{_ENDS_OF_FILE.sub('', generation)}\n{tests}"
        return f"{generation}\n{tests}"

    def read_chat(self, doc: Any, form: Form, text: str, index: int) -> str:
        """A chat model writes whole functions, or files; the tests go on where the prompt's function is still open."""
        name, prompt = self.entry_point(doc), str(doc["prompt"])
        source = reply.program(prompt, text, name, self.language)
        if self.language == "python":
            return source
        if self.language == "haskell":
            return sources.haskell_without_main(source)
        if self.language == "ada":
            return sources.ada_unclosed(source, name, prompt)
        if self.language in _IN_A_CLASS:
            source = sources.within_class(source, name, prompt)
        source = sources.with_head(source, prompt)
        tests = self.get_reference(doc)
        for main in re.findall(r"\b([Mm]ain)\s*\(", tests):
            source = sources.without(source, main)
        if not tests.lstrip().startswith("}"):
            return source
        unclosed = sources.shell_unclosed if self.language == "bash" else sources.unclosed
        return unclosed(source, name)


def _essence(name: str) -> str:
    return name.replace("_", "").lower()
