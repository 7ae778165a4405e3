"""The base class of code tasks, compatible with existing task files."""

from __future__ import annotations

import asyncio
import inspect
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, ClassVar, Self

import msgspec
from msgspec import Struct

from proctor.code import foreign, reply, results, scores
from proctor.code.environment import BenchmarkEnvironment, helpers_in
from proctor.code.execution import ForbiddenRunner, Runner, SandboxRunner, Trial, run_programs, trial_of
from proctor.code.forms import Continuation, Form, Infilling, end_tokens, form_of, present
from proctor.code.prompt_language import canonical_language, is_declared, is_prose, known_language, language_in
from proctor.code.rows import GivenRows, Rows, load_dataset
from proctor.code.scoring.mixin import READING_METHODS, ScoringMixin
from proctor.code.settings import constructor_settings, struct_of
from proctor.code.stopwords import cut, cut_generation
from proctor.code.wrong_tests import defined_in, program_with_control, with_wrong_expectations
from proctor.core import task as core
from proctor.core.config import RunConfig
from proctor.core.errors import MissingDataError, TaskError, UsageError
from proctor.core.reasoning import strip_reasoning
from proctor.core.types import Message, Output, Prompt, Record, Sample, Score
from proctor.metrics.passing import PassAtK, mean_pass_at_k
from proctor.metrics.summary import Tally
from proctor.models.base import Request
from proctor.models.providers.generations import LOADED
from proctor.sandbox import Limits, Program
from proctor.sandbox.endings import may_exit
from proctor.sandbox.languages import find_language

_FUNCTION = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)


class Task(ScoringMixin, core.Task):
    """A code benchmark: turns rows into prompts, and scores generations.

    A task defines `get_prompt` and `get_reference`. If it runs programs, `program` makes
    them; if it does not, or has its own metrics, it defines `process_results`. The arguments
    of its constructor, all with defaults, are its settings.
    """

    DATASET_PATH: str | None = None
    DATASET_NAME: str | None = None
    SPLIT: str = "test"
    NEEDED: ClassVar[tuple[str, ...]] = ()  # keys that every row must have
    language: str = "python"
    timeout: float = 3.0  # seconds for a program
    memory_mib: int = 1024
    ks: tuple[int, ...] = (1, 10, 100)
    full_marks: float = 1.0  # what process_results returns for a perfect answer

    fixed = True
    metric = "pass@1"
    max_tokens = 512

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "Settings" not in vars(cls) and "__init__" in vars(cls):
            defaults = constructor_settings(cls)
            cls.Settings, cls._taken_by_constructor = struct_of(defaults), tuple(defaults)

    def __init__(self, stop_words: Sequence[str] | None = None, requires_execution: bool = False) -> None:
        self.stop_words = list(stop_words or [])
        self.requires_execution = requires_execution

    # The methods that existing task files define and call.

    @property
    def dataset(self) -> Any:
        """All splits by name, loaded on first access."""
        if not hasattr(self, "_dataset"):
            try:
                with self._given.offered():
                    self._dataset = load_dataset(self.DATASET_PATH, self.DATASET_NAME)
            except MissingDataError:
                if self.ask_for_dataset is None:
                    raise
                self._dataset = self.ask_for_dataset()
        return self._dataset

    @dataset.setter
    def dataset(self, dataset: Any) -> None:
        self._dataset = dataset

    def get_dataset(self) -> Any:
        """The rows of the task."""
        return self.dataset[self.SPLIT]

    def fewshot_examples(self) -> Any:
        """Worked examples, for tasks that show some."""
        return []

    @abstractmethod
    def get_prompt(self, doc: Any) -> str | dict[str, str]:
        """A text to continue, {"prefix", "suffix"} of an infilling, or {"instruction", "context"}."""

    @abstractmethod
    def get_reference(self, doc: Any) -> Any:
        """The tests, or the reference text."""

    def postprocess_generation(self, generation: str, idx: int) -> str:
        """Prompt and completion, truncated at the end of the answer; texts without the prompt."""
        if not generation.strip():
            return ""
        form = self._form(idx)
        suffix = form.suffix if isinstance(form, Infilling) else ""
        answer = cut_generation(generation, form.begun, self.stop_words or (), suffix)
        if not self.requires_execution:  # the reference has no prompt
            return answer.removeprefix(form.begun).removesuffix(suffix)
        if not isinstance(form, Continuation) or self.language != "python":
            return answer
        if not answer.startswith(form.text):
            return answer
        return reply.joined(form.text, answer[len(form.text) :])

    check_fn: Callable[[str], bool] | None = None
    """Whether a partial completion is finished, where stop words do not suffice."""
    max_length_multiplier: float | None = None
    """Maximum length of prompt plus completion, in lengths of the prompt."""

    @staticmethod
    def _stop_at_stop_token(decoded_string: str, stop_tokens: Sequence[str]) -> str:
        return cut(decoded_string, stop_tokens)

    def process_results(self, generations: list[list[str]], references: list[Any]) -> dict[str, float]:
        """The metrics of all generations: one list per reference."""
        if not self.requires_execution:
            raise TypeError(f"{type(self).__name__} must define process_results, or require execution.")
        rows = self.rows()
        programs = [
            [self.program(rows[index], generation) for generation in of_one] for index, of_one in enumerate(generations)
        ]
        trials = iter(run_programs([program for of_one in programs for program in of_one], self.limits()))
        passed = []
        for doc, of_one in zip(rows, programs, strict=False):
            judged = [(program, next(trials)) for program in of_one]
            self._environment.check(partial(self.promised_code, doc), judged)
            passed.append([trial.passed for _, trial in judged])
        return mean_pass_at_k([(len(of_one), sum(of_one)) for of_one in passed], self.ks)

    # Methods of tasks that run programs.

    def program(self, doc: Any, generation: str) -> Program:
        """The program of a generation. Python tests call it; other sources end with their tests."""
        reference = str(self.get_reference(doc))
        if self.language != "python":
            return program_with_control(
                "{}\n{}".format,
                generation,
                reference,
                self.wrong_tests(doc),
                self.language,
                reference=self.right_generation(doc),
                ends_with_tests=not may_exit(find_language(self.language), reference),
            )
        form = form_of(self.get_prompt(doc))
        prelude = form.text if isinstance(form, Continuation) else ""
        return Program(source=generation, tests=reference, entry_point=self.entry_point(doc), prelude=prelude)

    def wrong_tests(self, doc: Any) -> str:
        """The reference with wrong expectations, except in Python; '' if none can be made."""
        tests, form = str(self.get_reference(doc)), form_of(self.get_prompt(doc))
        begun = defined_in(form.text, tests) if isinstance(form, Continuation) else set()
        names = [self.entry_point(doc), *begun]
        known = self._is_builtin() or self.right_generation(doc) is not None
        return with_wrong_expectations(tests, self.language, names, of_known_make=known)

    def right_generation(self, doc: Any) -> str | None:
        """The generation of the reference solution, if there is one."""
        solution, form = self.solution(doc), form_of(self.get_prompt(doc))
        return form.with_completion(solution) if isinstance(solution, str) else None

    def promised_code(self, doc: Any) -> list[str]:
        """The benchmark's own code: if a library that it imports is missing, the sample is an error."""
        texts = *msgspec.structs.astuple(form_of(self.get_prompt(doc))), self.get_reference(doc), self.solution(doc)
        return [text for text in texts if isinstance(text, str)]

    def limits(self) -> Limits:
        return Limits(seconds=self._config.program_timeout or self.timeout, memory_mib=self.memory_mib)

    def entry_point(self, doc: Any) -> str:
        """The function that the tests call: as in the row, or the last one of the prompt."""
        if named := str(_field(doc, "entry_point") or ""):
            return named
        form = form_of(self.get_prompt(doc))
        begun = _FUNCTION.findall(form.text) if isinstance(form, Continuation) else []
        return str(begun[-1]) if begun and self.language == "python" else ""

    def solution(self, doc: Any) -> str | None:
        """The reference solution, if the row has one."""
        solution: str | None
        if "get_solution" in inspect.signature(self.get_reference).parameters:
            solution = self.get_reference(doc, get_solution=True)  # type: ignore[call-arg]
        else:
            solution = _field(doc, "canonical_solution")
        form = form_of(self.get_prompt(doc))
        if isinstance(form, Continuation) and isinstance(solution, str):
            return solution.removeprefix(form.text)
        return solution

    def language_of(self, doc: Any) -> str:
        """The programming language of a row; '' if neither the task nor the row names it."""
        runs = self.requires_execution and not self._counts_itself()  # programs in the task's language
        if runs or self._is_builtin() or is_declared("language", self, Task):
            return canonical_language(self.language)
        return known_language(_field(doc, "language")) or known_language(self.DATASET_NAME)

    def chat_prompt(self, doc: Any) -> str | None:
        """The question to a chat model, if the prompt is not code to complete."""
        return None

    def read_chat(self, doc: Any, form: Form, text: str, index: int) -> str:
        """Reads the generation from the reply of a chat model."""
        overridden = type(self).postprocess_generation is not Task.postprocess_generation
        if isinstance(form, Infilling):
            completion = reply.middle(form.prefix, form.suffix, text)
        elif not self.requires_execution:
            completion = reply.code_in(text)
        elif overridden:
            completion = reply.completion(form.begun, text, self.entry_point(doc))
        else:
            return reply.program(form.begun, text, self.entry_point(doc), self.language)
        if not overridden and not self.requires_execution:
            return completion
        generation = form.with_completion(completion)
        if not overridden:
            return generation
        done = self._postprocessed(form, generation, completion, index)
        if completion.strip() and done.strip() in ("", form.begun.strip()):
            answer = strip_reasoning(text)  # the task expects the fence around the code
            return self._postprocessed(form, form.with_completion(answer), answer, index)
        return done

    # The methods of the core's Task.

    _config: RunConfig = RunConfig(task="", model="")
    _given: GivenRows = GivenRows(None)
    _taken_by_constructor: ClassVar[tuple[str, ...]] = ()

    @property
    def executes(self) -> bool:  # type: ignore[override]
        return self.requires_execution

    @classmethod
    def build(cls, settings: Struct, data: str | None) -> Self:
        task_class = foreign.with_stubs(cls)
        task = task_class.__new__(task_class)
        task._given, task.settings = GivenRows(data), settings  # before the constructor, which may load rows
        with task._given.offered():
            task.__init__(**{name: getattr(settings, name) for name in cls._taken_by_constructor})  # type: ignore[misc]
        return task

    def rows(self) -> Rows:
        if not hasattr(self, "_rows"):
            with self._given.offered():
                rows = self.get_dataset()
            if self._given.file is not None and not self._given.was_loaded:
                raise MissingDataError(f"{self.name} brings its own rows: leave out --data.")
            self._rows: Rows = rows if hasattr(rows, "__getitem__") else list(rows)
            # Some tasks call it for every generation; it must not load the rows again.
            self.get_dataset = lambda: self._rows  # type: ignore[method-assign]
            for index in range(len(self._rows)) if self.NEEDED else ():
                for key in self.NEEDED:
                    if key not in self._rows[index]:
                        raise MissingDataError(
                            f"{self.name}: row {index} has no {key!r}; there is: {', '.join(self._rows[index])}."
                        )
        return self._rows

    def count(self, config: RunConfig) -> int:
        if config.few_shot:
            raise UsageError(f"{self.name} has fixed prompts: leave out --few-shot.")
        if config.modeltype == "seq2seq" and hasattr(self, "get_prompt_encoder"):
            raise UsageError(
                f"{self.name} has a text for the encoder and another for the decoder (get_prompt_encoder), which no "
                "model of --modeltype seq2seq can be given here: leave get_prompt_encoder out, or use another model."
            )
        number = len(self.rows())
        if config.limit_start >= number:
            raise MissingDataError(
                f"{self.name} has {number} samples: --limit-start must be below {number}, not {config.limit_start}."
            )
        rest = number - config.limit_start
        return rest if config.limit is None else min(rest, config.limit)

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        for index in range(config.limit_start, config.limit_start + self.count(config)):
            yield self._sample(index, config)

    def _sample(self, index: int, config: RunConfig) -> Sample:
        doc = self.rows()[index]
        try:
            with self._given.offered():
                metadata = {**self.describe(doc), "reference": self.get_reference(doc)}
                return Sample(
                    self.identify(doc, index),
                    index,
                    self._prompt(doc, config),
                    self.solution(doc),
                    metadata=metadata,
                    cluster=self.cluster_of(doc),
                )
        except KeyError as error:
            if not isinstance(doc, Mapping) or error.args[0] in doc:
                raise
            raise TaskError(
                f"{self.name}: row {index} has no {error}, which the task needs; there is: {', '.join(doc)}."
            ) from error

    def _prompt(self, doc: Any, config: RunConfig) -> Prompt:
        asked = self.chat_prompt(doc) if config.api != "completions" else None
        if asked is not None:
            return (Message("user", config.prefix + asked),)
        form = form_of(self.get_prompt(doc))
        language = self.language_of(doc) or language_in(form.begun)
        begins_code = self._is_builtin() or not is_prose(form.begun)
        return present(form, config, language, wrapped=self.requires_execution and begins_code)

    def _is_builtin(self) -> bool:
        """Whether the task is part of Proctor, where prose prompts have a `chat_prompt`."""
        return type(self).__module__.startswith("proctor.")

    def identify(self, doc: Any, index: int) -> str:
        values = (_field(doc, key) for key in ("task_id", "id", "name"))
        return str(next((value for value in values if value is not None), index))

    def describe(self, doc: Any) -> dict[str, Any]:
        """Metadata of a sample, by which metrics can be grouped."""
        language = self.language_of(doc) if self.requires_execution else ""
        return {"language": language} if language else {}

    def cluster_of(self, doc: Any) -> str:
        """The cluster of related samples, such as variants of one problem; '' if none."""
        return ""

    @cached_property
    def _environment(self) -> BenchmarkEnvironment:
        return BenchmarkEnvironment()

    async def open(self, config: RunConfig) -> None:
        self._config = config
        self.ks = tuple(config.k) or self.ks

    def stop_strings(self, config: RunConfig) -> tuple[str, ...]:
        # A chat model replies with a whole file, in which these may occur.
        return (*((self.stop_words or ()) if config.api == "completions" else ()), *config.stop)

    def request(self, sample: Sample, number: int, config: RunConfig) -> Request:
        """Adds the end tokens of the model, which depend on the form of the prompt."""
        request = super().request(sample, number, config)
        ends = end_tokens(self._form(sample.index), config) if config.api == "completions" else ()
        if not ends:
            return request
        stop = tuple(dict.fromkeys((*request.sampling.stop, *ends)))
        return msgspec.structs.replace(request, sampling=msgspec.structs.replace(request.sampling, stop=stop))

    def json_lines(self, config: RunConfig, part: range) -> Iterator[bytes]:
        part_config = msgspec.structs.replace(config, limit_start=config.limit_start + part.start, limit=len(part))
        for sample in core.take_samples(self, part_config) if part else ():
            prompt = self.get_prompt(self.rows()[sample.index])
            row = {
                "id": sample.id,
                "index": sample.index,
                "prompt": prompt,
                "solution": sample.target,
                **sample.metadata,
            }
            yield msgspec.json.encode(row) + b"\n"

    def generation(self, sample: Sample, output: Output) -> str:
        """The generation of an output: what is judged, and written to a generations file."""
        if output.finish == LOADED:
            return output.text
        if not self._config.postprocess:
            completes = self._config.api == "completions"
            return self._form(sample.index).with_completion(output.text) if completes else output.text
        if self.uses_worker(*READING_METHODS):
            return self.scoring().read(sample, [output])[0]
        doc = self.rows()[sample.index]
        with self._given.offered():
            form = self._form(sample.index)
            if self._config.api != "completions":
                return self.read_chat(doc, form, output.text, sample.index)
            completion = self._truncate(sample, cut(output.text, end_tokens(form, self._config)))
            return self._postprocessed(form, form.with_completion(completion), completion, sample.index)

    def generations(self, record: Record) -> list[str]:
        """The generations as they were judged; reads them from outputs otherwise."""
        answer = record.score.answer if record.score is not None else None
        if isinstance(answer, dict):
            return list(answer["generations"])
        if isinstance(answer, list):
            return [trial["generation"] for trial in answer]
        if self.uses_worker(*READING_METHODS) and record.outputs:
            return self.scoring().read(record.sample, record.outputs)
        return super().generations(record)

    def _truncate(self, sample: Sample, completion: str) -> str:
        """The completion up to the point where the task would have stopped it."""
        if self.max_length_multiplier and isinstance(sample.input, str):
            completion = completion[: max(0, int(len(sample.input) * (self.max_length_multiplier - 1)))]
        if self.check_fn is None:
            return completion
        return next((begun for begun in accumulate(completion) if self._is_finished(begun)), completion)

    def _is_finished(self, completion: str) -> bool:
        return self.check_fn is not None and bool(self.check_fn(completion))

    async def judge(self, sample: Sample, outputs: Sequence[Output]) -> Score:
        if self._counts_itself():
            return await self._judge_by_results(sample, outputs)
        generations = await self._read(sample, outputs)
        cut_off = [scores.is_cut_off(*one) for one in zip(outputs, generations, strict=True)]
        different = list(dict.fromkeys(generations))
        trials = dict(zip(different, await self.run_trials(sample, different), strict=True))
        return scores.score_of_trials([(generation, trials[generation]) for generation in generations], cut_off)

    async def run_trials(self, sample: Sample, generations: list[str]) -> list[Trial]:
        """Judges each generation in the sandbox of the run."""
        programs = list((await self._programs(sample, generations)).values())
        verdicts = await asyncio.gather(*(self.sandbox.judge(program, self.limits()) for program in programs))
        trials = [trial_of(program, verdict) for program, verdict in zip(programs, verdicts, strict=True)]
        judged = list(zip(programs, trials, strict=True))
        await self._environment.check_in(self.sandbox, partial(self.promised_code, self.rows()[sample.index]), judged)
        return trials

    def tally(self) -> Tally:
        return results.Results(self) if self._counts_itself() else PassAtK(self.ks)

    def _counts_itself(self) -> bool:
        return type(self).process_results is not Task.process_results

    def count_results(
        self,
        indices: Sequence[int],
        generations: Sequence[Sequence[str]],
        references: Sequence[Any],
        runner: Runner,
        *,
        final: bool = False,
    ) -> dict[str, float]:
        """The metrics of these samples by `process_results`. `final`: all samples of the run."""
        if self.uses_worker("process_results"):
            return self.scoring().count(indices, generations, references, runner, final=final)
        return results.count_results(self, indices, generations, references, runner)

    async def _read(self, sample: Sample, outputs: Sequence[Output]) -> list[str]:
        if self.uses_worker(*READING_METHODS):
            return await self.scoring().in_thread(self.scoring().read, sample, outputs)
        return [self.generation(sample, output) for output in outputs]

    async def _programs(self, sample: Sample, generations: list[str]) -> dict[str, Program]:
        if self.uses_worker("program"):
            programs = await self.scoring().in_thread(self.scoring().programs, sample.index, generations)
            return dict(zip(generations, programs, strict=True))
        doc = self.rows()[sample.index]
        return {generation: self.program(doc, generation) for generation in generations}

    async def _judge_by_results(self, sample: Sample, outputs: Sequence[Output]) -> Score:
        runner = self._runner(self.rows()[sample.index]) if self.requires_execution else ForbiddenRunner(self.name)
        in_worker = self.uses_worker("process_results")
        if in_worker:
            generations, metrics = await self.scoring().in_thread(self.scoring().score, sample, outputs, runner)
            if not self.uses_worker(*READING_METHODS) or all(output.finish == LOADED for output in outputs):
                generations = [self.generation(sample, output) for output in outputs]  # not those of the worker
        else:
            generations = await self._read(sample, outputs)
            metrics = await results.count_single(self, sample.index, generations, runner)
        trials = runner.trials if isinstance(runner, SandboxRunner) else []
        if isinstance(metrics, dict):
            score = scores.score_of_metrics(metrics, generations, trials, self.full_marks)
        elif self.requires_execution:
            raise metrics
        else:
            score = scores.uncounted(metrics, generations)
        if in_worker and self.requires_execution and not trials:
            score = scores.tested_by_task(score)
        cut_off = [scores.is_cut_off(*one) for one in zip(outputs, generations, strict=True)]
        return scores.mark_cut_off(score, generations, cut_off)

    def _runner(self, doc: Any) -> SandboxRunner:
        form = form_of(self.get_prompt(doc))
        check = partial(self._environment.check_in, self.sandbox, partial(self.promised_code, doc))
        return SandboxRunner(self.sandbox, self._config.program_timeout, helpers_in(form.begun), check)

    def _form(self, index: int) -> Form:
        return form_of(self.get_prompt(self.rows()[index]))

    def _postprocessed(self, form: Form, generation: str, completion: str, index: int) -> str:
        """Postprocesses by the task's code, which may not handle empty texts or the prompt."""
        try:
            done = self._run_postprocessing(generation, index)
        except Exception:
            if completion.strip():
                raise
            return ""
        cut_short = len(done) < len(form.begun) and form.begun.startswith(done) and generation.startswith(form.begun)
        if not cut_short or not completion.strip() or not (done or self.requires_execution):
            return done
        # It was truncated within the prompt, which only programs need: try without it.
        try:
            again = self._run_postprocessing(completion, index)
        except Exception:
            return done
        return form.with_completion(again) if again and self.requires_execution else again or done

    def _run_postprocessing(self, generation: str, index: int) -> str:
        done: Any = self.postprocess_generation(generation, index)
        if done is None:  # no answer
            return ""
        if not isinstance(done, str):
            raise TypeError(f"postprocess_generation must return a str, not {type(done).__name__}")
        return done


def _field(doc: Any, key: str) -> Any:
    return doc.get(key) if isinstance(doc, Mapping) else None
