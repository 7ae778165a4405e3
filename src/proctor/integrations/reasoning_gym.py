"""The data sets of reasoning-gym as tasks: its questions, settings, prompt and scorers."""

from __future__ import annotations

import io
import random
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from functools import cache, lru_cache
from importlib.metadata import version
from types import ModuleType
from typing import Any, ClassVar, cast

import msgspec

from proctor.core.config import RunConfig
from proctor.core.errors import TaskError, UsageError
from proctor.core.extras import import_extra
from proctor.core.reasoning import strip_reasoning
from proctor.core.task import CUT_OFF, Task
from proctor.core.types import LENGTH, TRUNCATED, Message, Output, Prompt, Sample, Score
from proctor.integrations.expressions import only_calculates, only_lists, parse_expression
from proctor.integrations.settings import settings_class

FAMILY = "reasoning-gym"
REVISION = 2  # of this adapter; incremented when scores may change

SIZE = 10_000  # samples of a data set; no sample depends on it
SIZES = {"acre": 500}  # generates all samples together
DEFAULT_LIMIT = 100
CACHE_SIZE = 1_024  # items cached until they are judged; others are generated again
EXAMPLES = 2**30  # added to the seed for few-shot examples: reasoning-gym adds the index
TRIES = 50  # items tried for a few-shot example with another question

LEFT_OUT = {
    "codeio": "some of its samples follow the clock, and cannot be made again",
    "composite": "it is a mixture of other data sets; name those",
    "game_of_life_halting": "its scorer gives full marks to any text",
}
HASH_ORDERED = frozenset(
    {
        "intermediate_integration",
        "isomorphic_strings",
        "knight_swap",
        "polynomial_multiplication",
        "ransom_note",
        "word_ladder",
    }
)

# Scorers that evaluate the answer: with eval, or with sympy, which accepts more than Python.
EVALUATED = frozenset({"binary_matrix", "n_queens", "spiral_matrix", "string_insertion"})
PARSED = frozenset(
    {"countdown", "intermediate_integration", "polynomial_multiplication", "puzzle24", "simple_integration"}
)

# Items with many right answers have none, but usually an example.
EXAMPLE_KEYS = ("example_answer", "example_correct_answer", "possible_answer")


class DataSetTask(Task):
    """A data set of reasoning-gym; `task_class` creates a subclass for each."""

    data_set: ClassVar[str]
    metric = "score"  # many scorers give partial credit
    max_tokens = 4_096  # the prompt asks for step-by-step thinking

    def __init__(self) -> None:
        self._size = SIZES.get(self.data_set, SIZE)
        self._items = cache(self._create)
        self._item = lru_cache(maxsize=CACHE_SIZE)(self._draw)

    def count(self, config: RunConfig) -> int:
        return max(0, min(config.limit or DEFAULT_LIMIT, self._size - config.limit_start))

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        if config.seed < 0:
            raise UsageError(f"{self.name}: expected a seed >= 0, got {config.seed}.")
        for index in range(config.limit_start, config.limit_start + self.count(config)):
            item = self._item(config.seed, index)
            yield Sample(
                id=f"{config.seed}-{index}",
                index=index,
                input=self._prompt(item, self._examples(config, index, item)),
                target=right_answer(item),
                seed=config.seed,
                metadata=plain_facts(item),
            )

    def score_text(self, sample: Sample, text: str) -> Score:
        answer = read_answer(text)
        if answer is None:
            return Score(0, "unparsed")
        if self._would_run(answer):
            return Score(0, "unparsed", answer, "not passed to the scorer, which would execute it")
        item = self._item(sample.seed, sample.index)
        if item["question"] != sample.input[-1].content:  # type: ignore[union-attr]
            raise TaskError(f"{self.name} cannot generate sample {sample.id} again, so it cannot be judged.")
        try:
            with contained(sample.seed + sample.index):
                value = self._items(sample.seed).score_answer(answer, item)
        except Exception as error:  # unparsed scores 0; an error would not count
            return Score(0, "unparsed", answer, f"{type(error).__name__}: {error}")
        return Score(float(value), answer=answer)

    def score_output(self, sample: Sample, output: Output) -> Score:
        score = super().score_output(sample, output)
        # Without tags the whole text is the answer, unless it is truncated.
        if output.finish != LENGTH or score.value == 1 or library().utils.extract_answer(output.text) is not None:
            return score
        return Score(0, TRUNCATED, score.answer, CUT_OFF, truncated=1)

    def gold(self, sample: Sample) -> str:
        return tagged(sample.target)

    def _would_run(self, answer: str) -> bool:
        if self.data_set in EVALUATED:
            expression = parse_expression(answer)
            return expression is not None and not only_lists(expression)  # eval refuses other texts
        if self.data_set in PARSED:
            expression = parse_expression(answer)
            return expression is None or not only_calculates(expression)  # sympy may parse other texts
        return False

    def _prompt(self, item: dict[str, Any], examples: list[dict[str, Any]]) -> Prompt:
        turns = [Message("system", library().utils.SYSTEM_PROMPTS["default"])]
        for example in examples:
            turns += [Message("user", example["question"]), Message("assistant", tagged(right_answer(example)))]
        return (*turns, Message("user", item["question"]))

    def _examples(self, config: RunConfig, index: int, item: dict[str, Any]) -> list[dict[str, Any]]:
        """Few-shot examples: items of another seed, with different questions."""
        examples: dict[str, dict[str, Any]] = {}
        first = index * config.few_shot
        for number in range(first, first + config.few_shot + TRIES):
            if len(examples) == config.few_shot:
                break
            example = self._item(config.seed + EXAMPLES, number % self._size)
            if example["question"] != item["question"] and right_answer(example) is not None:
                examples[example["question"]] = example
        if len(examples) < config.few_shot:
            raise TaskError(f"{self.name}, item {index}: cannot find {config.few_shot} different few-shot examples.")
        return list(examples.values())

    def _draw(self, seed: int, index: int) -> dict[str, Any]:
        items = self._items(seed)
        with contained(seed + index):
            item: dict[str, Any] = items[index]
        return item

    def _create(self, seed: int) -> Any:
        settings = msgspec.structs.asdict(self.settings)
        try:
            with contained(seed):
                return library().create_dataset(self.data_set, seed=seed, size=self._size, **settings)
        except Exception as error:
            raise UsageError(f"{self.name} refuses its settings: {type(error).__name__}: {error}.") from error


def read_answer(text: str) -> str | None:
    """The text within the last pair of answer tags; without tags, the whole text."""
    answer: str | None = library().utils.extract_answer(text)
    return strip_reasoning(text) or None if answer is None else answer


def tagged(answer: str | None) -> str:
    return f"<answer>{answer}</answer>"


def right_answer(item: dict[str, Any]) -> str | None:
    """The answer of the item, or its example of an answer."""
    examples = (item["metadata"].get(key) for key in EXAMPLE_KEYS)
    answer = next((answer for answer in (item["answer"], *examples) if answer is not None), None)
    return answer if isinstance(answer, str | None) else msgspec.json.encode(answer).decode()


def plain_facts(item: dict[str, Any]) -> dict[str, Any]:
    """The metadata of the item that are strings or numbers, to group by."""
    return {
        key: value
        for key, value in item["metadata"].items()
        if type(value) in (bool, int, str) and not key.startswith("source_")
    }


@contextmanager
def contained(seed: int) -> Iterator[None]:
    """Seeds global generators and restores them; hides output and warnings."""
    import numpy

    states = random.getstate(), numpy.random.get_state()
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    try:
        with redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(states[0])
        numpy.random.set_state(states[1])


@cache
def library() -> ModuleType:
    # Takes over a second to import, so only on demand.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_extra("reasoning_gym.utils", f"{FAMILY}/NAME", FAMILY)
        return cast(ModuleType, import_extra("reasoning_gym", f"{FAMILY}/NAME", FAMILY))


@cache
def task_class(name: str) -> type[DataSetTask]:
    data_set, configuration = library().factory.DATASETS[name]
    category = data_set.__module__.split(".")[1]
    members = {
        "__module__": __name__,
        "data_set": name,
        "version": f"{version(FAMILY)}-{REVISION}",
        "summary": f"{category} (reasoning-gym)",
        "Settings": settings_class(configuration, without=("size", "seed")),  # every run has those
    }
    return type(data_set.__name__, (DataSetTask,), members)


class DataSets(Mapping[str, type[DataSetTask]]):
    """All data sets by name. Looking up an excluded one raises the reason."""

    def __getitem__(self, name: str) -> type[DataSetTask]:
        known = library().factory.DATASETS
        if name in known and (reason := reason_against(name)):
            raise UsageError(f"{FAMILY}/{name} is left out: {reason}.")
        if name not in known:
            raise KeyError(name)
        return task_class(name)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(name for name in library().factory.DATASETS if not reason_against(name)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def reason_against(name: str) -> str:
    if name in HASH_ORDERED and sys.flags.hash_randomization:
        return "its samples follow Python's hash order, another in each process; set PYTHONHASHSEED=0 to have it"
    return LEFT_OUT.get(name, "")


DATA_SETS = DataSets()
