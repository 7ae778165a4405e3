"""PAL: word problems answered by writing a program that computes the number, on GSM8K and GSM-hard.

PAL: Program-aided Language Models, https://arxiv.org/abs/2211.10435
Training Verifiers to Solve Math Word Problems, https://arxiv.org/abs/2110.14168
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, ClassVar

import msgspec

from proctor.code import reply
from proctor.code.execution import Trial, run_programs, trial_of
from proctor.code.forms import Form
from proctor.code.shots import OWN, HarnessShots, own_examples
from proctor.code.stopwords import cut
from proctor.code.task import Task
from proctor.sandbox import Program, Verdict

TOLERANCE = 1e-3
_FUNCTION = "solution"


class GSM8K(HarnessShots):
    """The answer is what `solution()` of the generated program returns. With votes, the commonest answer is taken."""

    version = "2"
    summary = "word problems answered by a Python program (GSM8K, 1319 problems)"
    DATASET_PATH: str | None = "gsm8k"
    DATASET_NAME: str | None = "main"
    NEEDED: ClassVar[tuple[str, ...]] = ("question", "answer")
    metric = "accuracy"
    majority_voting: bool = False
    SHOTS = "few_shot_examples/gsm8k_few_shot_prompts.json"

    def __init__(self, timeout: float = 3.0, shots: int = 8, prompts: str = "") -> None:
        """`prompts`: a checkout or the installed package of the BigCode harness."""
        super().__init__(stop_words=["\n\n\n", "\nQ:"], requires_execution=True)
        self.timeout = timeout
        self.shots = shots
        self.prompts = prompts

    def get_prompt(self, doc: Any) -> str:
        worked = [
            f'{_asked(question)}def {_FUNCTION}():\n    """{question}"""\n{lines}\n\n\n\n\n\n'
            for question, lines in self._shown_examples()
        ]
        return "".join(worked) + _asked(self.question(doc))

    def postprocess_generation(self, generation: str, idx: int) -> str:
        """The program alone: the examples before it are none."""
        return cut(generation.removeprefix(self._form(idx).begun), self.stop_words).strip()

    def read_chat(self, doc: Any, form: Form, text: str, index: int) -> str:
        return reply.program("", text, _FUNCTION, self.language)

    def chat_prompt(self, doc: Any) -> str:
        worked = [
            f"Question: {question}\n\n```python\ndef {_FUNCTION}():\n{lines}\n```\n\n"
            for question, lines in self._shown_examples()
        ]
        return (
            f"Answer the last question by a Python function {_FUNCTION}() that computes and returns the number. "
            f"Reply with the function in one code block.\n\n{''.join(worked)}Question: {self.question(doc)}"
        )

    def _shown_examples(self) -> list[tuple[str, str]]:
        examples = self.fewshot_examples()
        return list(zip(examples["questions"], examples["solutions"], strict=False))[: self.shots]

    def question(self, doc: Any) -> str:
        return str(doc["question"])

    def get_reference(self, doc: Any) -> float:
        """The number after the reasoning."""
        return number(doc["answer"].rpartition("####")[2])

    def entry_point(self, doc: Any) -> str:
        return _FUNCTION

    def solution(self, doc: Any) -> str:
        return f"def {_FUNCTION}():\n    return {self.get_reference(doc)!r}\n"

    def process_results(self, generations: list[list[str]], references: list[Any]) -> dict[str, float]:
        programs = [_program(generation) for of_one in generations for generation in of_one]
        trials = iter(run_programs(programs, self.limits(), _answered))
        answers = [[next(trials).reading for _ in of_one] for of_one in generations]
        right = [self._mark(of_one, target) for of_one, target in zip(answers, references, strict=True)]
        failed = sum(all(answer is None for answer in of_one) for of_one in answers)
        return {"accuracy": sum(right) / len(right), "num_failed_execution": failed}

    def _mark(self, answers: list[float | None], target: float) -> float:
        if self.majority_voting:
            answers = [vote(answers)]
        return sum(same_number(answer, target) for answer in answers) / len(answers)


class GSMHard(GSM8K):
    """The same questions with numbers that nobody can work out in the head."""

    summary = "word problems with large numbers answered by a Python program (GSM-hard, 1319 problems)"
    DATASET_PATH = "reasoning-machines/gsm-hard"
    DATASET_NAME = None
    SPLIT = "train"
    NEEDED = ("input", "target")

    def question(self, doc: Any) -> str:
        return str(doc["input"])

    def get_reference(self, doc: Any) -> float:
        return float(doc["target"])

    def solution(self, doc: Any) -> str:
        return str(doc.get("code") or super().solution(doc))


class _OwnShots(GSM8K):
    """With worked problems of our own."""

    def __init__(self, timeout: float = 3.0, shots: int = 8) -> None:
        super().__init__(timeout, shots)

    def fewshot_examples(self) -> Any:
        return own_examples("gsm8k")


_PROBLEMS: dict[str, type[GSM8K]] = {"gsm8k": GSM8K, "gsmhard": GSMHard}


def create_all_tasks() -> dict[str, type[Task]]:
    return {
        f"pal-{name}-{way}{ending}": create_task(base, way == "majority_voting", own=bool(ending))
        for name, base in _PROBLEMS.items()
        for way in ("greedy", "majority_voting")
        for ending in ("", OWN)
    }


def create_task(base: type[GSM8K], majority_voting: bool, *, own: bool) -> type[Task]:
    parents = (_OwnShots, base) if own else (base,)
    summary = f"{base.summary}; after examples of our own" if own else base.summary
    return type(base.__name__, parents, {"majority_voting": majority_voting, "summary": summary})


def number(text: str) -> float:
    return float(text.replace(",", ""))


def same_number(answer: float | None, target: float) -> bool:
    """Within a thousandth, or as near as floating-point numbers of this size can come."""
    return answer is not None and abs(answer - target) < max(TOLERANCE, 4 * math.ulp(target))


def vote(answers: list[float | None]) -> float | None:
    """The commonest answer, and of several the one that came first. Programs that failed have no vote."""
    votes = Counter(round(answer, 3) for answer in answers if answer is not None)
    return votes.most_common(1)[0][0] if votes else None


def _asked(question: str) -> str:
    return f"Q: {question}\n\n# solution in Python:\n\n\n"


def _program(generation: str) -> Program:
    return Program(source=f"{generation}\n\nprint({_FUNCTION}())\n")


def _answered(program: Program, verdict: Verdict) -> Trial:
    """The last line that was printed is the answer; whatever came before it was the program's own."""
    trial = trial_of(program, verdict)
    last = verdict.stdout.strip().rpartition("\n")[2]
    try:
        answer = number(last) if trial.passed else None
    except ValueError:
        answer = None
    finite = answer is not None and math.isfinite(answer)
    return msgspec.structs.replace(trial, reading=answer if finite else None)
