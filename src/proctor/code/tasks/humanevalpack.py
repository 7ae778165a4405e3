"""HumanEvalPack: HumanEval in six languages, three ways: fixing a bug, explaining a function, and writing it.

OctoPack: Instruction Tuning Code Large Language Models, https://arxiv.org/abs/2308.07124

Descriptions are made by one exam (`humanevalexplaindescribe-…`, saved with --save-generations) and judged by another:
`humanevalexplainsynthesize-… --load-data-path FILE` asks for programs from the descriptions alone.

In Rust the rows import three crates; those that a solution does not use are left out. Where one that it uses is missing
(Debian has regex and md5, but rand only in a later version), or JavaScript's js-md5, the sample is an error.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from proctor.code import reply, sources
from proctor.code.forms import Form, fenced
from proctor.code.patches import (
    apply_character_patch,
    apply_diff,
    first_hunks,
    has_hunk,
    make_character_patch,
    make_diff,
)
from proctor.code.rows import Row
from proctor.code.stopwords import cut
from proctor.code.task import Task
from proctor.core.config import user_path
from proctor.core.errors import MissingDataError, UsageError
from proctor.core.reasoning import strip_reasoning
from proctor.models.providers.generations import read_generations
from proctor.sandbox import Program

# How the benchmark calls a language, the language, and how the sandbox calls it.
LANGUAGES = {
    "python": ("python", "python"),
    "cpp": ("cpp", "cpp"),
    "go": ("go", "go-test"),
    "java": ("java", "java"),
    "js": ("javascript", "javascript"),
    "rust": ("rust", "rust-test"),
}
_ENDINGS = {"python": "py", "cpp": "cpp", "go": "go", "java": "java", "javascript": "js", "rust": "rs"}
# What models were trained to be asked with. A question is the instruction and what it is about.
_ALPACA = (
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{question}\n\n### Response:"
)
_DEEPSEEK = (
    "You are an AI programming assistant, utilizing the Deepseek Coder model, developed by Deepseek Company, and you "
    "only answer questions related to computer science. For politically sensitive questions, security and privacy "
    "issues, and other non-computer science questions, you will refuse to answer"
)
_PROMPTS = {
    "instruct": "{question}\n\n{base}",
    "octocoder": "Question: {question}\n\nAnswer:\n{base}",
    "octogeex": "Question: {stripped}\n\nAnswer:\n{base}",
    "starchat": "<|system|>\n<|end|>\n<|user|>\n{question}<|end|>\n<|assistant|>\n{base}",
    "starcodercommit": "<commit_before><commit_msg>{question}<commit_after>{base}",
    "instructcodet5p": f"{_ALPACA}{{base}}",
    "wizardcoder": f"{_ALPACA}\n{{base}}",
    "codellama": "[INST] {stripped} [/INST] {base}",
    "codellama-70b": "Source: user\n\n {stripped} Source: assistant\nDestination: user \n\n{base}",
    "deepseek": f"{_DEEPSEEK}\n### Instruction:\n{{stripped}}\n### Response:\n{{base}}",
    "aurora-m": "### Instruction:\n{question}\n### Response:\n{base}",
    "codegemma": "<start_of_turn>user\n{question}<end_of_turn>\n<start_of_turn>model\n{base}",
    "zephyr": "<|user|>\n{question}</s>\n<|assistant|>\n{base}",
    **dict.fromkeys(("tulu", "gritlm"), "<|user|>\n{question}\n<|assistant|>\n{base}"),
    **dict.fromkeys(
        ("yi", "starchat2", "codeqwen"), "<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n{base}"
    ),
}
_CHANGES = {
    "starcodercommit": "<commit_before>{given}<commit_msg>{instruction}<commit_after>{base}",
    "file": "<file_name>\n{name}.{ending}\n<commit_before>\n{given}\n<commit_msg>\n{instruction}<commit_after>\n{base}",
    "issue": (
        "<issue_start>username_0: {instruction}\n\n```{given}```\nUpvotes: 100"
        "<issue_comment>username_1: Sure, here is the fixed code.\n\n```{base}"
    ),
    "diff": "<commit_before>{given}<commit_msg>{instruction}<commit_after>",
    "diff-carper": "<NME> {name}.{ending}\n<BEF> {given}\n<MSG> {instruction}\n<DFF>",
}
_COMMIT_TOKENS = ["<commit_before>", "<commit_msg>", "<commit_after>"]
_END_TOKENS = {
    "starchat": ["<|end|>"],
    "starcodercommit": _COMMIT_TOKENS,
    "file": _COMMIT_TOKENS,
    "issue": ["```"],
    "codegemma": ["<end_of_turn>"],
    "zephyr": ["</s>"],
    **{name: ["<|user|>"] for name in ("tulu", "gritlm")},
    **{name: ["<|im_end|>"] for name in ("yi", "starchat2", "codeqwen")},
}
# Where the answer is a patch: how it ends, which is not where a function does.
_PATCHES = {
    "diff": _COMMIT_TOKENS,
    "diff-carper": ["<NME>", "<BEF>", "<MSG>", "<DFF>", "\\ No newline at end of file"],
}
_STOP_WORDS = {
    "python": ["\nclass", "\ndef", "\n#", "\n@", "\nprint", "\nif", "\nassert"],
    "go": ["\nfunc", "\n//"],
}
_PYTHON_IMPORTS = """\
import collections, copy, datetime, functools, hashlib, heapq, itertools, math, re, statistics, string, sys
from collections import *
from typing import *
"""
_NUMPY = "import numpy\nimport numpy as np\n"
_CPP_INCLUDES = "#include <bits/stdc++.h>\nusing namespace std;\n"
_BOOST = "#include <boost/any.hpp>\n"
# What the benchmark's own image has, beyond what rows import.
_IN_ITS_IMAGE = {"python": _NUMPY, "cpp": _BOOST, "javascript": "require('js-md5')"}
_WITH_IMPORTS = ("prompt", "declaration", "canonical_solution", "import", "test_setup", "test")
_GO_PACKAGES = ("bytes", "crypto/md5", "fmt", "math", "math/rand", "regexp", "sort", "strconv", "strings", "time")


class HumanEvalPack(Task):
    DATASET_PATH = "bigcode/humanevalpack"
    version = "2"
    NEEDED = (
        *("task_id", "prompt", "declaration", "canonical_solution", "buggy_solution", "entry_point"),
        *("test_setup", "test", "docstring", "instruction"),
    )
    runs_as: str
    max_tokens = 1024
    prompts: ClassVar[Mapping[str, str]] = _PROMPTS

    def __init__(self, prompt: str = "instruct", timeout: float = 10.0) -> None:
        if prompt not in self.prompts:
            raise UsageError(f"prompt: {prompt!r} is not one of {', '.join(self.prompts)}.")
        usual = [*_STOP_WORDS.get(self.language, ()), *_END_TOKENS.get(prompt, ())]
        super().__init__(stop_words=[*_PATCHES.get(prompt, usual), "<|endoftext|>"], requires_execution=True)
        self.prompt = prompt
        self.timeout = timeout

    # What the five kinds say of a problem.

    @abstractmethod
    def instruct(self, doc: Any) -> str:
        """What to do."""

    def given(self, doc: Any) -> str:
        """The code or text that it is to be done with."""
        return ""

    def base(self, doc: Any) -> str:
        """The code with which the answer begins: the declaration, without what would give the problem away."""
        main = "fn main(){}\n" if self.language == "rust" else ""
        return main + str(doc["declaration"])

    def get_prompt(self, doc: Any) -> str:
        instruction, given = self.instruct(doc), self.given(doc)
        parts = [given, instruction] if self.prompt == "instruct" else [instruction, given]
        question = "\n".join(filter(None, parts))
        return (
            self.prompts[self.prompt]
            .format(
                question=question,
                stripped=question.strip(),
                instruction=instruction,
                given=given,
                base=self.base(doc),
                name=doc["entry_point"],
                ending=_ENDINGS[self.language],
            )
            .strip()
        )

    def chat_prompt(self, doc: Any) -> str:
        given, base = self.given(doc).strip(), self.base(doc).strip()
        parts = [self.instruct(doc)]
        parts += [fenced(given, self.language)] if given else []
        parts += ["Begin with this code:", fenced(base, self.language)] if base else []
        return "\n\n".join(parts)

    def get_reference(self, doc: Any) -> str:
        return str(doc["test"])

    def solution(self, doc: Any) -> str:
        stripped = self.base(doc)[len(self.base(doc).rstrip()) :]
        return f"{stripped}{doc['canonical_solution']}"

    def promised_code(self, doc: Any) -> list[str]:
        rows = (str(doc[field]) for field in _WITH_IMPORTS if doc.get(field))
        return [*rows, _IN_ITS_IMAGE.get(self.language, "")]

    # From answers to programs.

    def postprocess_generation(self, generation: str, idx: int) -> str:
        """The function as a whole: its given beginning, and the completion up to the function's end."""
        doc = self.rows()[idx]
        completion = cut(generation.removeprefix(self.get_prompt(doc)), self.stop_words)
        return self.base(doc).rstrip() + self._up_to_the_end(completion.rstrip())

    def _up_to_the_end(self, completion: str) -> str:
        if self.language == "python":
            return re.split(r"\n(?=\S)", completion)[0]
        end = sources.closing_brace(completion, depth=2 if self.language == "java" else 1)
        return completion if end is None else completion[: end + 1]

    def _postprocessed(self, form: Form, generation: str, completion: str, index: int) -> str:
        # Where a bug is to be fixed the prompt begins as the answer may: that is no sign of a wrong cut.
        return self.postprocess_generation(generation, index)

    def read_chat(self, doc: Any, form: Form, text: str, index: int) -> str:
        name, base = doc["entry_point"], self.base(doc)
        source = reply.program(base, text, name, self.language)
        if self.language == "python":
            return source
        if self.language == "java":
            wrapped = sources.within_class(source, name, base)
            source = source if wrapped == source else f"{wrapped}\n}}\n"
        return sources.with_helpers(source, base, name)

    def program(self, doc: Any, generation: str) -> Program:
        if self.language == "python":
            imports = _PYTHON_IMPORTS + (_NUMPY if re.search(r"\b(?:np|numpy)\b", generation) else "")
            return Program(
                source=f"{imports}\n{generation}",
                tests=self.get_reference(doc),
                entry_point=self.entry_point(doc),
                prelude=f"{imports}\n{doc['prompt']}",
            )
        tests = self.get_reference(doc)
        wrong = self.wrong_tests(doc)
        return Program(
            source=self._source(doc, generation, tests),
            language=self.runs_as,
            ends_with_tests=True,
            control=self._source(doc, generation, wrong) if wrong else "",
        )

    def _source(self, doc: Any, generation: str, tests: str) -> str:
        match self.language:
            case "cpp":
                whole = f"{sources.without(generation, 'main')}\n{tests}"
                return _CPP_INCLUDES + (_BOOST if "boost::" in whole else "") + whole
            case "go":
                return sources.go_source([doc["test_setup"], generation, tests], _GO_PACKAGES)
            case "java":
                alone = sources.without(generation, "Main", "class").replace("public class Solution", "class Solution")
                return sources.with_head(f"{alone}\n{tests}", doc["prompt"])
            case "rust":
                return _rust_source(generation, doc["declaration"], tests)
            case _:
                return f"{generation}\n{tests}"


def _rust_source(generation: str, declaration: str, tests: str) -> str:
    uses = "" if re.search(r"^use\b", generation, re.MULTILINE) else declaration[: declaration.rfind("fn ")]
    return sources.without_unused_crates(f"{uses.removesuffix('pub ')}\n{generation}\n{tests}")


class Fix(HumanEvalPack):
    """The answer is the function without its bug, or, in two of the prompt forms, a patch for it."""

    prompts: ClassVar[Mapping[str, str]] = {**_PROMPTS, **_CHANGES}
    group_by = ("bug_type",)

    def __init__(self, prompt: str = "instruct", timeout: float = 10.0) -> None:
        super().__init__(prompt, timeout)
        if prompt == "diff":
            make_character_patch("", "")  # before anything is asked: it needs a package

    def instruct(self, doc: Any) -> str:
        return f"Fix bugs in {doc['entry_point']}."

    def buggy(self, doc: Any) -> str:
        return f"{self.base(doc)}{doc['buggy_solution']}"

    def describe(self, doc: Any) -> dict[str, Any]:
        return {**super().describe(doc), "bug_type": doc.get("bug_type")}

    def solution(self, doc: Any) -> str:
        fixed = f"{self.base(doc)}{doc['canonical_solution']}"
        match self.prompt:
            case "diff":
                return make_character_patch(self.buggy(doc), fixed)
            case "diff-carper":
                return f" {make_diff(self.buggy(doc), fixed)}"
            case _:
                return super().solution(doc)

    def postprocess_generation(self, generation: str, idx: int) -> str:
        if self.prompt not in _PATCHES:
            return super().postprocess_generation(generation, idx)
        completion = cut(generation.removeprefix(self.get_prompt(self.rows()[idx])), self.stop_words)
        return first_hunks(completion) if self.prompt == "diff-carper" else completion.strip()

    def program(self, doc: Any, generation: str) -> Program:
        if self.prompt in _PATCHES and has_hunk(generation):  # in a chat, the function itself was asked for
            patch = apply_diff if self.prompt == "diff-carper" else apply_character_patch
            generation = patch(self.buggy(doc), generation)
        return super().program(doc, generation)


class FixTests(Fix):
    """The tests are shown: they say what is right."""

    summary = "finds the bug in a function, given its tests (164 problems)"

    def given(self, doc: Any) -> str:
        return f"{self.buggy(doc)}\n{doc['test']}"


class FixDocs(Fix):
    """The description is shown instead of the tests."""

    summary = "finds the bug in a function, given its description (164 problems)"

    def base(self, doc: Any) -> str:
        return str(doc["prompt"])

    def given(self, doc: Any) -> str:
        return self.buggy(doc)


class Synthesize(HumanEvalPack):
    summary = "writes a function from an instruction (164 problems)"
    prompts: ClassVar[Mapping[str, str]] = {**_PROMPTS, "continue": "{base}"}

    def base(self, doc: Any) -> str:
        return str(doc["prompt"])

    def instruct(self, doc: Any) -> str:
        return str(doc["instruction"]).strip()


class ExplainDescribe(HumanEvalPack):
    """Counts only whether there is a description: what it is worth is seen when a program is made from it."""

    summary = "describes a function in no more characters than its docstring has (164 problems)"
    metric = "described"

    def __init__(self, prompt: str = "instruct") -> None:
        super().__init__(prompt)
        self.requires_execution = False
        self.stop_words = [*_END_TOKENS.get(prompt, ()), "<|endoftext|>"]

    def instruct(self, doc: Any) -> str:
        length = len(doc["docstring"])
        return f"Provide a concise natural language description of the code using at most {length} characters."

    def given(self, doc: Any) -> str:
        return f"{super().base(doc)}{doc['canonical_solution']}"

    def base(self, doc: Any) -> str:
        return ""

    def get_reference(self, doc: Any) -> str:
        return str(doc["docstring"])

    def solution(self, doc: Any) -> str:
        return str(doc["docstring"])

    def postprocess_generation(self, generation: str, idx: int) -> str:
        """As long as the docstring at most, and without lines of the code, which would give it away."""
        doc = self.rows()[idx]
        text = generation.removeprefix(self.get_prompt(doc)).strip()[: len(doc["docstring"])]
        description = cut(text, self.stop_words).rstrip()
        for line in doc["canonical_solution"].splitlines():
            if len(line.strip()) > 20:
                description = description.replace(line.strip(), "")
        return description

    def read_chat(self, doc: Any, form: Form, text: str, index: int) -> str:
        return self.postprocess_generation(strip_reasoning(text), index)

    def process_results(self, generations: list[list[str]], references: list[Any]) -> dict[str, float]:
        texts = [text for of_one in generations for text in of_one]
        return {"described": sum(bool(text.strip()) for text in texts) / len(texts)}


class ExplainSynthesize(HumanEvalPack):
    """Each description of a problem is a problem of its own."""

    summary = "writes a function from a description that another run made (--load-data-path)"

    def __init__(self, prompt: str = "instruct", timeout: float = 10.0, load_data_path: str = "") -> None:
        super().__init__(prompt, timeout)
        self.load_data_path = load_data_path

    def get_dataset(self) -> Any:
        if not self.load_data_path:
            raise MissingDataError(
                f"{self.name} needs descriptions: make them with {self.name.replace('synthesize', 'describe')} and "
                "--save-generations, then say --load-data-path FILE."
            )
        descriptions = read_generations(user_path(self.load_data_path))
        problems = super().get_dataset()
        if max(descriptions, default=0) >= len(problems):
            raise UsageError(
                f"{self.load_data_path} describes {max(descriptions) + 1} problems; there are {len(problems)}."
            )
        rows: list[Row] = []
        for index, texts in descriptions.items():
            rows += [{**problems[index], "description": text, "candidate": n} for n, text in enumerate(texts)]
        return rows

    def instruct(self, doc: Any) -> str:
        return f"Write functional code in {reply.title(self.language)} according to the description."

    def given(self, doc: Any) -> str:
        return str(doc["description"])

    def identify(self, doc: Any, index: int) -> str:
        return f"{doc['task_id']}/{doc['candidate']}"


_KINDS: dict[str, type[HumanEvalPack]] = {
    "humanevalfixtests": FixTests,
    "humanevalfixdocs": FixDocs,
    "humanevalexplaindescribe": ExplainDescribe,
    "humanevalexplainsynthesize": ExplainSynthesize,
    "humanevalsynthesize": Synthesize,
}


def create_all_tasks() -> dict[str, type[HumanEvalPack]]:
    return {f"{kind}-{name}": create_task(kind, name) for kind in _KINDS for name in LANGUAGES}


def create_task(kind: str, name: str) -> type[HumanEvalPack]:
    parent = _KINDS[kind]
    language, runs_as = LANGUAGES[name]
    members: dict[str, Any] = {
        "__doc__": parent.__doc__,
        "__module__": __name__,
        "summary": f"{reply.title(language)}: {parent.summary}",
        "DATASET_NAME": name,
        "language": language,
        "runs_as": runs_as,
    }
    return cast("type[HumanEvalPack]", type(f"{parent.__name__}_{name}", (parent,), members))
