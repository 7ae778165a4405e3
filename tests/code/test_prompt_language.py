"""What a prompt is written in: which language, or plain words; and what a chat model is told of it."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

import proctor
from helpers.bigcode_tasks import FUNCTIONS, ROWS, write_rows, write_task
from proctor.code.prompt_language import canonical_language, is_prose, known_language, language_in

PROSE = [
    "Write a Python function add(x) that adds 0 to x.\n\nOnly the function:\n",
    "Below is an instruction.\n\n### Instruction:\nCreate a script:\ndef f(x):\n\t'''doc'''\n\n### Response:",
    "Q: A baker bakes 6 trays. How many?\n\n# solution in Python:\n\n\n",
    "\nQUESTION:\nYou are given a string s.\n\nUse Standard Input format\n\nANSWER:\n",
    "def f(x):\n    return 1\nFix bugs in f.\n\ndef f(x):",
    "Question: Fix bugs in f.\ndef f(x):\n    return\n\nAnswer:\ndef f(x):",
    "[INST] fn f() {} [/INST] fn f() {",
    "<|user|>\na rust function<|end|>\n<|assistant|>",
    "<commit_before>def f(x):\n    return 1<commit_msg>Fix f<commit_after>",
    "请写一个函数来计算两个数的和\n",
    "Implement quicksort in Go.",
    "Schreibe eine Funktion, die zwei Zahlen addiert.\n",
    "Complete the code below.\n```python\ndef f(x):\n```\n",
    "Translate this program from Java to Python:\nclass A {}\n",
    "I want a function in C that reverses a string\n",
]

CODE = {
    "rust": "/// Add the two numbers that you are given.\nfn add(x: i64) -> i64 {\n",
    "cpp": "/* Adds the\nnumbers that you give. */\nunsigned long long int add(long a, long b) {\n",
    "java": 'import java.util.*;\n\nclass A {\n    // It is the sum.\n    final String A = "the name that you are";\n',
    "lua": "-- Add the numbers that you are given\nlocal function f(x)\n",
    "r": "# The sum that you want\nf <- function(x) {\n",
    "racket": "#lang racket\n;; the sum of the numbers that\n(define (f x)\n",
    "php": "<?php\n// the sum of the numbers\nfunction f($x) {\n",
    "perl": "=pod\nThe sum that you want is here.\n=cut\nsub f {\n    my ($x) = @_;\n",
    "ruby": "=begin\nThe numbers that are given.\n=end\ndef f(x)\n",
    "typescript": "export default async function f(x: number): Promise<number> {\n",
    "ocaml": "(** The sum that you want. *)\nlet rec f x y z =\n",
    "haskell": "{- The sum that you want. -}\nf :: Int -> Int -> Int\nf a b c d =",
    "elixir": "defmodule HumanEval do\n  def f(x) do\n",
    "clojure": '(defn f\n  "the sum of the numbers that you are given."\n  [x]\n',
    "ada": "procedure Main is\n   function F (X : Integer) return Integer is\n",
    "swift": "import Foundation\n/// the sum that you want\nfunc f(x: Int) -> Int {\n",
    "csharp": "using System;\nclass A {\n    public static long F(long x) {\n",
    "bash": "#!/bin/bash\n# the numbers that are\nf() {\n",
    "julia": '"""the sum that you are given\nfunction f(x)\n"""\nfunction f(x::Int)::Int \n',
    "scala": "object A {\n    // the sum\n    def f(x : Long) : Long = {\n",
}
PYTHON = [
    'from typing import List\n\ndef f(x: List[int]) -> int:\n    """ The sum that you want. """\n',
    '"""\nWrite a function that adds the numbers.\nassert f(1) == 2\n"""\n',
    "#!/usr/bin/python3\n# A buggy implementation\ndef f(b):\n    return 1\n# Fixed bugs\ndef",
    "class Foo(Bar):\n    def f(self):\n        ",
    "import math\n\nfor i in range(3):",
]


@pytest.mark.parametrize("prompt", PROSE)
def test_sentences_and_marks_of_turns_are_prose(prompt: str) -> None:
    assert is_prose(prompt)


@pytest.mark.parametrize("prompt", [*CODE.values(), *PYTHON])
def test_sentences_in_comments_and_strings_are_code(prompt: str) -> None:
    assert not is_prose(prompt)


def test_python_gives_itself_away() -> None:
    assert [language_in(prompt) for prompt in PYTHON] == ["python"] * len(PYTHON)
    assert [language for language, prompt in CODE.items() if language_in(prompt)] == []
    assert language_in(" \n") == ""


def test_a_language_has_one_name() -> None:
    assert [known_language(name) for name in ("humaneval-rs", "js", "mbpp-d", "Rust", "go_test.go", "C++")] == [
        *("rust", "javascript", "d", "rust", "go", "cpp")
    ]
    assert [known_language(name) for name in ("da_en", "main", None, "func_name", "")] == [""] * 5
    assert [canonical_language(name) for name in ("rs", "zig", "rust-test")] == ["rust", "zig", "rust"]


# Task files: the harness says `self.language = "rs"`, or names its data set after the language, or says nothing.

FILE = """
    from bigcode_eval.base import Task

    class Exam(Task):
        DATASET_NAME = {dataset!r}

        def __init__(self):
            super().__init__(stop_words=["\\n}}"], requires_execution=True)
            {extra}

        def get_dataset(self):
            return self.dataset["test"]

        def get_prompt(self, doc):
            return doc["prompt"]

        def get_reference(self, doc):
            return doc["test"]

        def postprocess_generation(self, generation, idx):
            return generation

        def process_results(self, generations, references):
            return {{"right": float(all("{{" in text for texts in generations for text in texts))}}
"""
RUST = [{"task_id": "r/0", "prompt": "// Adds.\nfn add(x: i64) -> i64 {\n", "test": "", "canonical_solution": "x\n}"}]


def asked(dataset: str | None, extra: str, rows: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    task = write_task(textwrap.dedent(FILE).format(dataset=dataset, extra=extra))
    options: dict[str, Any] = {"data": write_rows(rows), "generation_only": True, "api": "chat"}
    record = next(iter(proctor.evaluate(f"{task}:Exam", "scripted/blank", **options).records()))
    shown = record.sample.input
    return shown if isinstance(shown, str) else str(shown[0].text), record.sample.metadata


@pytest.mark.parametrize(
    ("dataset", "extra", "row"),
    [("humaneval-rs", "pass", {}), (None, 'self.language = "rs"', {}), (None, "pass", {"language": "rs"})],
)
def test_a_task_file_in_another_language(dataset: str | None, extra: str, row: dict[str, Any]) -> None:
    shown, metadata = asked(dataset, extra, [RUST[0] | row])
    assert shown.startswith("Complete the following Rust code. Reply")
    assert shown.endswith("```rust\n// Adds.\nfn add(x: i64) -> i64 {\n```")
    assert metadata["language"] == "rust"


def test_a_task_file_that_does_not_say_its_language() -> None:
    shown, metadata = asked(None, "pass", RUST)
    assert shown.startswith("Complete the following code. Reply")
    assert "```\n// Adds." in shown
    assert "language" not in metadata
    shown, _ = asked(None, "pass", ROWS)
    assert shown.startswith("Complete the following Python code. Reply")


@pytest.mark.parametrize("prompt", PROSE)
def test_prose_is_asked_as_it_is(prompt: str) -> None:
    shown, _ = asked(None, "pass", [RUST[0] | {"prompt": prompt}])
    assert shown == prompt


# As in the harness's task for WizardCoder: an instruction with a function in it, and a reply that is read by the file.

INSTRUCTED = """
    from bigcode_eval.base import Task
    from bigcode_eval.tasks.custom_metrics.code_eval import compute_code_eval

    class Instructed(Task):
        def __init__(self):
            super().__init__(stop_words=[], requires_execution=True)

        def get_dataset(self):
            return self.dataset["test"]

        def get_prompt(self, doc):
            code = doc["prompt"].replace("    ", "\\t")
            return f"This is an instruction.\\n\\n### Instruction:\\nCreate a script:\\n{code}\\n\\n### Response:"

        def get_reference(self, doc):
            return doc["test"]

        def postprocess_generation(self, generation, idx):
            return self.read(generation.split("### Response:")[-1].replace("\\t", "    "))

        def read(self, text):
            return text.partition("```python")[2].partition("```")[0] if "```python" in text else text

        def process_results(self, generations, references):
            return compute_code_eval(references=references, predictions=generations)[0]

    class Fenced(Instructed):
        def read(self, text):
            return text.partition("```python\\n")[2].partition("```")[0]
"""


@pytest.mark.parametrize("name", ["Instructed", "Fenced"])
@pytest.mark.parametrize("api", ["chat", pytest.param("completions", marks=pytest.mark.slow)])
def test_a_fenced_function_stays_whole(name: str, api: str) -> None:
    texts = [f"Here it is:\n```python\n{function}```\nThat is all." for function in FUNCTIONS]
    said = [{"id": row["task_id"], "outputs": [{"text": text}]} for row, text in zip(ROWS, texts, strict=True)]
    model = f"scripted/replay:{write_rows(said, 'said.jsonl')}"
    options: dict[str, Any] = {"data": write_rows(), "api": api, "allow_code_execution": True, "workers": 1}
    report = proctor.evaluate(f"{write_task(INSTRUCTED)}:{name}", model, **options)
    assert report.metrics["pass@1"].value == 1
