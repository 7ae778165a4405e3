"""The contract of code tasks, as guides and existing task files know it, fulfilled on the core's."""

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
    """A code benchmark: rows in, prompts out, generations judged.

    A task gives `get_prompt` and `get_reference`. If it runs programs, `program` says which; if it does not, or counts
    in its own way, it gives `process_results`. The arguments of its constructor, all with defaults, are its settings.
    """

    DATASET_PATH: str | None = None
    DATASET_NAME: str | None = None
    SPLIT: str = "test"
    NEEDED: ClassVar[tuple[str, ...]] = ()  # keys that every row must have
    language: str = "python"
    timeout: float = 3.0  # seconds for a program
    memory_mib: int = 1024
    ks: tuple[int, ...] = (1, 10, 100)
    full_marks: float = 1.0  # what process_results gives for a perfect answer

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

    # What guides and existing task files know.

    @property
    def dataset(self) -> Any:
        """All splits by name, fetched when they are first needed."""
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
        """The rows that are examined."""
        return self.dataset[self.SPLIT]

    def fewshot_examples(self) -> Any:
        """Worked examples, for tasks that show some."""
        return []

    @abstractmethod
    def get_prompt(self, doc: Any) -> str | dict[str, str]:
        """A text to go on with, {"prefix", "suffix"} of a gap to fill, or {"instruction", "context"}."""

    @abstractmethod
    def get_reference(self, doc: Any) -> Any:
        """The tests, or the text to compare with."""

    def postprocess_generation(self, generation: str, idx: int) -> str:
        """Prompt and completion, cut where the answer ends; without a prompt that is no part of the answer."""
        if not generation.strip():
            return ""
        form = self._form(idx)
        suffix = form.suffix if isinstance(form, Infilling) else ""
        found = cut_generation(generation, form.begun, self.stop_words or (), suffix)
        if not self.requires_execution:  # nobody compares a prompt with anything
            return found.removeprefix(form.begun).removesuffix(suffix)
        if not isinstance(form, Continuation) or self.language != "python":
            return found
        return reply.joined(form.text, found[len(form.text) :]) if found.startswith(form.text) else found

    check_fn: Callable[[str], bool] | None = None
    """Says of a completion as far as it has come that it is finished, where stop words cannot."""
    max_length_multiplier: float | None = None
    """How long prompt and completion may be together, in lengths of the prompt."""

    @staticmethod
    def _stop_at_stop_token(decoded_string: str, stop_tokens: Sequence[str]) -> str:
        return cut(decoded_string, stop_tokens)

    def process_results(self, generations: list[list[str]], references: list[Any]) -> dict[str, float]:
        """The metrics of all generations: as many lists as there are references, problem by problem."""
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

    # What a program is, for tasks that run some.

    def program(self, doc: Any, generation: str) -> Program:
        """What is run to judge a generation. A Python solution is called by its tests, others end with them."""
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
        """Outside Python, the reference with expectations that no right program meets; '' where none can be made."""
        tests, form = str(self.get_reference(doc)), form_of(self.get_prompt(doc))
        begun = defined_in(form.text, tests) if isinstance(form, Continuation) else set()
        names = [self.entry_point(doc), *begun]
        known = self._is_ours() or self.right_generation(doc) is not None
        return with_wrong_expectations(tests, self.language, names, of_known_make=known)

    def right_generation(self, doc: Any) -> str | None:
        """What is judged of a right answer, where one is known."""
        solution, form = self.solution(doc), form_of(self.get_prompt(doc))
        return form.with_completion(solution) if isinstance(solution, str) else None

    def promised_code(self, doc: Any) -> list[str]:
        """Code of the benchmark's own: a library that it imports, and that is missing, excuses a program."""
        texts = *msgspec.structs.astuple(form_of(self.get_prompt(doc))), self.get_reference(doc), self.solution(doc)
        return [text for text in texts if isinstance(text, str)]

    def limits(self) -> Limits:
        return Limits(seconds=self._config.program_timeout or self.timeout, memory_mib=self.memory_mib)

    def entry_point(self, doc: Any) -> str:
        """The function that the tests call; by default what the row says, or the last one that the prompt begins."""
        if named := str(_field(doc, "entry_point") or ""):
            return named
        form = form_of(self.get_prompt(doc))
        begun = _FUNCTION.findall(form.text) if isinstance(form, Continuation) else []
        return str(begun[-1]) if begun and self.language == "python" else ""

    def solution(self, doc: Any) -> str | None:
        """A right answer to the prompt, where the row has one."""
        if "get_solution" in inspect.signature(self.get_reference).parameters:
            found = self.get_reference(doc, get_solution=True)  # type: ignore[call-arg]
        else:
            found = _field(doc, "canonical_solution")
        form = form_of(self.get_prompt(doc))
        return found.removeprefix(form.text) if isinstance(form, Continuation) and isinstance(found, str) else found

    def language_of(self, doc: Any) -> str:
        """The programming language of a problem; '' where neither the task nor its rows say it."""
        runs = self.requires_execution and not self._counts_itself()  # programs in its own language
        if runs or self._is_ours() or is_declared("language", self, Task):
            return canonical_language(self.language)
        return known_language(_field(doc, "language")) or known_language(self.DATASET_NAME)

    def chat_prompt(self, doc: Any) -> str | None:
        """What a chat model is asked, where the prompt is not code that it could be asked to complete."""
        return None

    def read_chat(self, doc: Any, form: Form, text: str, index: int) -> str:
        """The generation that a chat model's reply stands for."""
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
            said = strip_reasoning(text)  # nothing is left of the code: the task looks for the fence around it
            return self._postprocessed(form, form.with_completion(said), said, index)
        return done

    # The core's contract.

    _config: RunConfig = RunConfig(task="", model="")
    _given: GivenRows = GivenRows(None)
    _taken_by_constructor: ClassVar[tuple[str, ...]] = ()

    @property
    def executes(self) -> bool:  # type: ignore[override]
        return self.requires_execution

    @classmethod
    def build(cls, settings: Struct, data: str | None) -> Self:
        made_of = foreign.with_stubs(cls)
        task = made_of.__new__(made_of)
        task._given, task.settings = GivenRows(data), settings  # known to the constructor, which may load rows
        with task._given.offered():
            task.__init__(**{name: getattr(settings, name) for name in cls._taken_by_constructor})  # type: ignore[misc]
        return task

    def rows(self) -> Rows:
        if not hasattr(self, "_rows"):
            with self._given.offered():
                found = self.get_dataset()
            if self._given.file is not None and not self._given.asked_for:
                raise MissingDataError(f"{self.name} has its problems with it: it takes no --data.")
            self._rows: Rows = found if hasattr(found, "__getitem__") else list(found)
            # Some tasks ask for it with every generation: it is neither to be read again, nor from elsewhere.
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
            raise UsageError(f"{self.name} takes no --few-shot: its prompts are the benchmark's own.")
        if config.modeltype == "seq2seq" and hasattr(self, "get_prompt_encoder"):
            raise UsageError(
                f"{self.name} has a text for the encoder and another for the decoder (get_prompt_encoder), which no "
                "model of --modeltype seq2seq can be given here: leave get_prompt_encoder out, or use another model."
            )
        number = len(self.rows())
        if config.limit_start >= number:
            raise MissingDataError(
                f"{self.name} has {number} problems: there is none from number {config.limit_start} on."
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
                    self._shown(doc, config),
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

    def _shown(self, doc: Any, config: RunConfig) -> Prompt:
        asked = self.chat_prompt(doc) if config.api != "completions" else None
        if asked is not None:
            return (Message("user", config.prefix + asked),)
        form = form_of(self.get_prompt(doc))
        language = self.language_of(doc) or language_in(form.begun)
        begins_code = self._is_ours() or not is_prose(form.begun)
        return present(form, config, language, wrapped=self.requires_execution and begins_code)

    def _is_ours(self) -> bool:
        """Whether it is part of the package, where prompts that are no code have a `chat_prompt`."""
        return type(self).__module__.startswith("proctor.")

    def identify(self, doc: Any, index: int) -> str:
        found = (_field(doc, key) for key in ("task_id", "id", "name"))
        return str(next((value for value in found if value is not None), index))

    def describe(self, doc: Any) -> dict[str, Any]:
        """Metadata of a problem, by which the metrics can be broken down."""
        language = self.language_of(doc) if self.requires_execution else ""
        return {"language": language} if language else {}

    def cluster_of(self, doc: Any) -> str:
        """Names what a problem shares with others, such as the problem that they are variants of; '' if nothing."""
        return ""

    @cached_property
    def _environment(self) -> BenchmarkEnvironment:
        return BenchmarkEnvironment()

    async def open(self, config: RunConfig) -> None:
        self._config = config
        self.ks = tuple(config.k) or self.ks

    def stop_strings(self, config: RunConfig) -> tuple[str, ...]:
        # A chat model answers with a whole file, where these are no end.
        return (*((self.stop_words or ()) if config.api == "completions" else ()), *config.stop)

    def request(self, sample: Sample, number: int, config: RunConfig) -> Request:
        """Ends also where the model's own tokens say so, which is different from form to form."""
        request = super().request(sample, number, config)
        ends = end_tokens(self._form(sample.index), config) if config.api == "completions" else ()
        if not ends:
            return request
        stop = tuple(dict.fromkeys((*request.sampling.stop, *ends)))
        return msgspec.structs.replace(request, sampling=msgspec.structs.replace(request.sampling, stop=stop))

    def json_lines(self, config: RunConfig, part: range) -> Iterator[bytes]:
        wanted = msgspec.structs.replace(config, limit_start=config.limit_start + part.start, limit=len(part))
        for sample in core.take_samples(self, wanted) if part else ():
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
        """What is judged of an output, and what a file of generations holds."""
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
            completion = self._up_to_its_end(sample, cut(output.text, end_tokens(form, self._config)))
            return self._postprocessed(form, form.with_completion(completion), completion, sample.index)

    def generations(self, record: Record) -> list[str]:
        """As they were judged; only what was not is read again."""
        answer = record.score.answer if record.score is not None else None
        if isinstance(answer, dict):
            return list(answer["generations"])
        if isinstance(answer, list):
            return [trial["generation"] for trial in answer]
        if self.uses_worker(*READING_METHODS) and record.outputs:
            return self.scoring().read(record.sample, record.outputs)
        return super().generations(record)

    def _up_to_its_end(self, sample: Sample, completion: str) -> str:
        """As far as it would have come if the task had been asked all the while."""
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
        """How each generation fares, side by side in the sandbox of the run."""
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
        """The metrics of these problems alone, by `process_results`. `final`: it is about all problems of the run."""
        if self.uses_worker("process_results"):
            return self.scoring().count(indices, generations, references, runner, final=final)
        return results.count_results(self, indices, generations, references, runner)

    async def _read(self, sample: Sample, outputs: Sequence[Output]) -> list[str]:
        if self.uses_worker(*READING_METHODS):
            return await self.scoring().in_thread(self.scoring().read, sample, outputs)
        return [self.generation(sample, output) for output in outputs]

    async def _programs(self, sample: Sample, generations: list[str]) -> dict[str, Program]:
        if self.uses_worker("program"):
            made = await self.scoring().in_thread(self.scoring().programs, sample.index, generations)
            return dict(zip(generations, made, strict=True))
        doc = self.rows()[sample.index]
        return {generation: self.program(doc, generation) for generation in generations}

    async def _judge_by_results(self, sample: Sample, outputs: Sequence[Output]) -> Score:
        runner = self._live(self.rows()[sample.index]) if self.requires_execution else ForbiddenRunner(self.name)
        apart = self.uses_worker("process_results")
        if apart:
            generations, found = await self.scoring().in_thread(self.scoring().score, sample, outputs, runner)
            if not self.uses_worker(*READING_METHODS) or all(output.finish == LOADED for output in outputs):
                generations = [self.generation(sample, output) for output in outputs]  # whatever was said there
        else:
            generations = await self._read(sample, outputs)
            found = await results.count_single(self, sample.index, generations, runner)
        trials = runner.trials if isinstance(runner, SandboxRunner) else []
        if isinstance(found, dict):
            score = scores.score_of_metrics(found, generations, trials, self.full_marks)
        elif self.requires_execution:
            raise found
        else:
            score = scores.uncounted(found, generations)
        if apart and self.requires_execution and not trials:
            score = scores.tested_by_task(score)
        cut_off = [scores.is_cut_off(*one) for one in zip(outputs, generations, strict=True)]
        return scores.mark_cut_off(score, generations, cut_off)

    def _live(self, doc: Any) -> SandboxRunner:
        form = form_of(self.get_prompt(doc))
        excuse = partial(self._environment.check_in, self.sandbox, partial(self.promised_code, doc))
        return SandboxRunner(self.sandbox, self._config.program_timeout, helpers_in(form.begun), excuse)

    def _form(self, index: int) -> Form:
        return form_of(self.get_prompt(self.rows()[index]))

    def _postprocessed(self, form: Form, generation: str, completion: str, index: int) -> str:
        """By the task's own code, which may have been written without a thought of empty texts, or of its prompt."""
        try:
            done = self._run_postprocessing(generation, index)
        except Exception:
            if completion.strip():
                raise
            return ""
        cut_short = len(done) < len(form.begun) and form.begun.startswith(done) and generation.startswith(form.begun)
        if not cut_short or not completion.strip() or not (done or self.requires_execution):
            return done
        # It was cut inside the prompt, which only a program needs; unless that is what the completion says, too.
        try:
            again = self._run_postprocessing(completion, index)
        except Exception:
            return done
        return form.with_completion(again) if again and self.requires_execution else again or done

    def _run_postprocessing(self, generation: str, index: int) -> str:
        done: Any = self.postprocess_generation(generation, index)
        if done is None:  # it found no answer
            return ""
        if not isinstance(done, str):
            raise TypeError(f"postprocess_generation gives a text, not {type(done).__name__}")
        return done


def _field(doc: Any, key: str) -> Any:
    return doc.get(key) if isinstance(doc, Mapping) else None
