"""DS-1000: a thousand questions about seven libraries for data science, each answered by a few lines of Python.

DS-1000: A Natural and Reliable Benchmark for Data Science Code Generation, https://arxiv.org/abs/2211.11501

A row's tests put the answer into a program of their own and run it, in one process with them. So a pass can be faked
here, and the records say `in-process`. The hub's rows have prompts to go on with. For insertion, rows of the original
format, with [insert] in the prompt, are taken as they are; from others, the end is made of the lines that the tests
put after the answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from proctor.code import reply
from proctor.code.forms import Form, Infilling, fenced
from proctor.code.libraries import LibraryTask
from proctor.code.stopwords import cut
from proctor.code.task import Task
from proctor.core.errors import MissingDataError
from proctor.sandbox import Program

SUBJECTS = ("Numpy", "Pandas", "Scipy", "Matplotlib", "Sklearn", "Tensorflow", "Pytorch")
_ALL = "All"
_WITHOUT_INSERTION = "Matplotlib"
_HOLE = "[insert]"
_FRAME = re.compile(r"^exec_context\s*=\s*r?(\"\"\"|''')(.*?)\1", re.MULTILINE | re.DOTALL)
_OPEN_FUNCTION = re.compile(r"^[ \t]*def[ \t]+(\w+)[^\n]*:[ \t]*\n?\Z", re.MULTILINE)


class DS1000(LibraryTask):
    DATASET_PATH = "xlangai/DS-1000"
    NEEDED = ("prompt", "reference_code", "code_context", "metadata")
    # What the benchmark's own environment has. Whatever else a program imports is its own mistake.
    LIBRARIES: ClassVar[Mapping[str, str]] = {
        **{
            name: name
            for name in (
                "gensim", "matplotlib", "numpy", "pandas", "scipy", "seaborn", "statsmodels", "tensorflow", "torch",
                "tqdm", "xgboost",
            )
        },
        "PIL": "pillow",
        "pandas_datareader": "pandas-datareader",
        "sklearn": "scikit-learn",
    }  # fmt: skip
    group_by = ("library",)
    memory_mib = 4096
    subject: str = _ALL
    inserts: bool = False

    def __init__(self, timeout: float = 60.0) -> None:
        super().__init__(stop_words=["</code>", "# SOLUTION END", "\nEND SOLUTION"], requires_execution=True)
        self.timeout = timeout

    def get_dataset(self) -> Any:
        rows = [row for row in super().get_dataset() if self._covers(row["metadata"]["library"])]
        if not rows:
            raise MissingDataError(f"There are no problems about {self.subject} in the data.")
        return rows

    def _covers(self, library: str) -> bool:
        if self.subject != _ALL:
            return library == self.subject
        return not (self.inserts and library == _WITHOUT_INSERTION)

    def get_prompt(self, doc: Any) -> dict[str, str]:
        prompt = doc["prompt"]
        if not self.inserts or doc["metadata"]["library"] == _WITHOUT_INSERTION:
            return {"instruction": prompt.removesuffix("\n"), "context": ""}
        if _HOLE in prompt:
            prefix, _, suffix = prompt.partition(_HOLE)
        else:
            prefix, suffix = prompt, f"</code>\nEND SOLUTION\n<code>\n{_frame(doc)[1].strip()}\n</code>"
        return {"prefix": f"{prefix.strip()}\n", "suffix": f"\n{suffix.strip()}\n"}

    def chat_prompt(self, doc: Any) -> str:
        before, after = _frame(doc)
        place = fenced(f"{before.strip()}\n{_HOLE}\n{after.strip()}", "python")
        question = doc["prompt"].replace(_HOLE, "").rstrip()
        return (
            f"{question}\n\nThe code runs in this program, in the place of {_HOLE}:\n\n{place}\n\n"
            "Reply with the code for this place alone, in one code block."
        )

    def get_reference(self, doc: Any) -> str:
        return str(doc["reference_code"])

    def solution(self, doc: Any) -> str:
        return str(doc["reference_code"])

    def identify(self, doc: Any, index: int) -> str:
        return str(doc["metadata"]["problem_id"])

    def describe(self, doc: Any) -> dict[str, Any]:
        told = {key: doc["metadata"].get(key, "") for key in ("library", "perturbation_type")}
        return {**super().describe(doc), **told}

    def cluster_of(self, doc: Any) -> str:
        """A question, and others that were made of it by changing its words or what it asks for."""
        about = doc["metadata"]
        origin = about.get("perturbation_origin_id")
        return "" if origin is None else f"{about['library']}/{origin}"

    def postprocess_generation(self, generation: str, idx: int) -> str:
        """The answer alone."""
        form = self._form(idx)
        if isinstance(form, Infilling):
            generation = generation.removeprefix(form.prefix).removesuffix(form.suffix)
        return cut(generation, self.stop_words).rstrip()

    def read_chat(self, doc: Any, form: Form, text: str, index: int) -> str:
        before, _ = _frame(doc)
        if begun := _OPEN_FUNCTION.search(before):
            return reply.completion(before, text, begun[1]).rstrip()
        return reply.code_in(text).strip("\n").rstrip()

    def program(self, doc: Any, generation: str) -> Program:
        context = doc["code_context"]
        self.require(context, generation)
        checks = [name for name in ("test_execution", "test_string") if f"def {name}(" in context]
        return Program(source=context, tests="\n".join(f"{name}({generation!r})" for name in checks), beside=True)


def create_all_tasks() -> dict[str, type[Task]]:
    return {
        f"ds1000-{subject.lower()}-{'insertion' if inserts else 'completion'}": type(
            f"DS1000{subject}",
            (DS1000,),
            {"subject": subject, "inserts": inserts, "summary": _summary(subject)},
        )
        for subject in (_ALL, *SUBJECTS)
        for inserts in (False, True)
    }


def _summary(subject: str) -> str:
    about = "seven data science libraries" if subject == _ALL else subject
    return f"answers questions about {about} by some lines of Python"


def _frame(doc: Any) -> tuple[str, str]:
    """The program of the tests, before and after the answer."""
    found = _FRAME.search(doc["code_context"])
    before, hole, after = found[2].partition(_HOLE) if found else ("", "", "")
    if not hole:
        raise ValueError(f"problem {doc['metadata']['problem_id']}: its tests have no place for an answer")
    return before, after
