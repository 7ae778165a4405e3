from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import proctor
from conftest import FailingRun, ModelServer, Serve, TaskFile, right_sum
from proctor import RunConfig, Sample, Score, Task
from proctor.core import registry
from proctor.core.errors import TaskError, TooManyErrorsError, UsageError
from proctor.core.task import average_scores
from proctor.shapes.tasks.existence import ExistenceTask
from proctor.store import open_store

Crowd = Callable[[int], ModelServer]


def test_oracle_scores_1_and_blank_0(adding: str) -> None:
    assert proctor.evaluate(adding, "scripted/oracle").metrics["accuracy"].value == 1
    report = proctor.evaluate(adding, "scripted/blank")
    assert report.metrics["accuracy"].value == 0
    assert report.run.outcomes == {"wrong": 10}


def test_limit_and_limit_start_select_samples(adding: str) -> None:
    report = proctor.evaluate(adding, "scripted/oracle", limit=3, limit_start=4)
    assert [record.sample.id for record in report.records()] == ["add-4", "add-5", "add-6"]


def test_each_epoch_has_a_record(adding: str) -> None:
    report = proctor.evaluate(adding, "scripted/oracle", limit=3, epochs=2)
    assert [(r.sample.index, r.epoch) for r in report.records()] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert report.run.n == report.run.total == 6
    assert report.metrics["accuracy"].n == 3


def test_completions_are_judged_together(adding: str, serve: Serve) -> None:
    server = serve(lambda body, number: right_sum(body, number) if body["seed"] % 2 else "wrong")
    report = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=5, samples=4, temperature=1)
    records = list(report.records())
    assert all(len(record.outputs) == 4 for record in records)
    for record in records:
        texts = [output.text for output in record.outputs]
        assert record.score is not None
        assert record.score.value == texts.count(record.sample.target) / 4
    seeds = [body["seed"] for body in server.requests]
    assert len(set(seeds)) == 20, "every completion has a seed of its own"


def test_report_groups_metrics(adding: str) -> None:
    report = proctor.evaluate(adding, "scripted/oracle", group_by=["odd"])
    assert report.run.groups["odd"]["1"]["accuracy"].n == 5


def test_failed_sample_is_a_record_and_not_a_wrong_answer(task_file: TaskFile) -> None:
    path = task_file(
        """
        from adding import *

        class Fragile(Adding):
            async def ask(self, sample, epoch, model, config, done):
                if sample.index == 2:
                    raise KeyError("no such thing")
                async for output in super().ask(sample, epoch, model, config, done):
                    yield output

            def score_text(self, sample, text):
                if sample.index == 4:
                    raise ZeroDivisionError("cannot judge this")
                if sample.index == 5:
                    return Score(2.0)
                return super().score_text(sample, text)
        """
    )
    report = proctor.evaluate(f"{path}:Fragile", "scripted/oracle")
    errors = {r.sample.index: r.error for r in report.records() if r.error}
    assert {index: (e.kind, e.type) for index, e in errors.items()} == {
        2: ("ask", "KeyError"),
        4: ("judge", "ZeroDivisionError"),
        5: ("judge", "ValueError"),
    }
    assert "cannot judge this" in errors[4].message
    assert "score_text" in errors[4].where
    assert (report.run.n, report.run.errors) == (7, 3)
    assert report.metrics["accuracy"].value == 1
    assert report.metrics["accuracy"].n == 7


@pytest.mark.parametrize(
    ("returned", "type_", "said"),
    [
        ("0.5", "TypeError", "must return a Score, not 0.5"),
        ("None", "TypeError", "must return a Score, not None"),
        ("Score(1.0, 'correct', object())", "TypeError", "Encoding objects of type object"),
        ("Score(1.0, outcome=3)", "ValidationError", "Expected `str`, got `int`"),
        ("Score(float('nan'))", "ValueError", "between 0 and 1"),
        ("sys.exit(3)", "SystemExit", "3"),
    ],
)
def test_invalid_score_is_an_error_of_its_sample(task_file: TaskFile, returned: str, type_: str, said: str) -> None:
    path = task_file(
        f"""
        import sys
        from adding import *

        class Odd(Adding):
            def score_text(self, sample, text):
                return {returned} if sample.index == 1 else super().score_text(sample, text)
        """
    )
    report = proctor.evaluate(f"{path}:Odd", "scripted/oracle", limit=3)
    records = list(report.records())
    assert [record.outcome for record in records] == ["correct", "error", "correct"]
    error = records[1].error
    assert error is not None
    assert error.type == type_
    assert said in error.message
    assert records[1].outputs[0].text == "2"


@pytest.mark.parametrize(
    ("yielded", "said"),
    [
        ("'a question'", "is not a Sample"),
        ("Sample(5, 0, '?')", "Expected `str`, got `int`"),
        ("Sample('a', 0, '?', target=object())", "Encoding objects of type object"),
        ("Sample('a', -1, '?')", "has index -1 after -1"),
        ("Sample('a', 0, '?'); yield Sample('b', 0, '?')", "sample b has index 0 after 0"),
        ("sys.exit(3)", "SystemExit: 3"),
    ],
)
def test_invalid_sample_stops_the_run(task_file: TaskFile, yielded: str, said: str) -> None:
    path = task_file(
        f"""
        import sys
        from adding import *

        class Odd(Adding):
            def samples(self, config):
                yield {yielded}
        """
    )
    with pytest.raises(TaskError) as caught:
        proctor.evaluate(f"{path}:Odd", "scripted/blank", limit=3)
    assert said in str(caught.value)
    assert all(record.outcome == "wrong" for record in open_store().records(open_store().run("latest")))


def test_error_in_tally_fails_the_run(task_file: TaskFile) -> None:
    path = task_file(
        """
        from adding import *

        class Odd(Adding):
            def tally(self):
                raise LookupError("no metric today")
        """
    )
    with pytest.raises(TaskError, match=r"failed to sum up run .*: LookupError: no metric today"):
        proctor.evaluate(f"{path}:Odd", "scripted/oracle", limit=3)
    store = open_store()
    run = store.run("latest")
    assert len(list(store.records(run))) == 3
    assert (run.status, run.metrics) == ("failed", {})


def test_cancelled_future_of_a_task_is_an_error_of_its_sample(task_file: TaskFile) -> None:
    path = task_file(
        """
        import asyncio
        from adding import *

        class Odd(Adding):
            async def judge(self, sample, outputs):
                if sample.index % 3 == 0:
                    raise asyncio.CancelledError
                return await super().judge(sample, outputs)
        """
    )
    report = proctor.evaluate(f"{path}:Odd", "scripted/oracle", limit=10, concurrency=1)
    assert (report.run.n, report.run.errors) == (6, 4)


@pytest.mark.parametrize("raised", ["ValueError('\\ud800')", "Broken()"])
def test_error_with_unstorable_text_is_stored(task_file: TaskFile, raised: str) -> None:
    path = task_file(
        f"""
        from adding import *

        class Broken(Exception):
            def __str__(self):
                raise RuntimeError("no text")

        class Odd(Adding):
            def score_text(self, sample, text):
                if sample.index == 1:
                    raise {raised}
                return super().score_text(sample, text)
        """
    )
    report = proctor.evaluate(f"{path}:Odd", "scripted/oracle", limit=3)
    assert (report.run.n, report.run.errors) == (2, 1)


def test_limit_holds_for_a_task_that_ignores_it() -> None:
    class Stubborn(Endless):
        def score_text(self, sample: Sample, text: str) -> Score:
            return Score(1)

    for model in ("scripted/oracle", "scripted/majority"):
        assert proctor.evaluate(Stubborn, model, limit=7).run.n == 7


def test_judging_holds_no_request_slot(task_file: TaskFile, serve: Serve) -> None:
    """The next requests start while all samples wait in judge()."""
    path = task_file(
        """
        import asyncio
        from adding import *

        class Slow(Adding):
            async def open(self, config):
                self.judging, self.together = 0, asyncio.Event()

            async def judge(self, sample, outputs):
                self.judging += 1
                if self.judging == 4:
                    self.together.set()
                await self.together.wait()
                return await super().judge(sample, outputs)
        """
    )
    server = serve(right_sum)
    assert proctor.evaluate(f"{path}:Slow", "openai/m", base_url=server.url, limit=4, concurrency=2).run.n == 4


def test_task_is_closed_after_every_run(task_file: TaskFile) -> None:
    path = task_file(
        """
        from pathlib import Path
        from adding import *

        class Careful(Adding):
            async def open(self, config):
                Path("opened").touch()

            async def close(self):
                Path("closed").touch()

            def samples(self, config):
                yield 1
        """
    )
    with pytest.raises(TaskError):
        proctor.evaluate(f"{path}:Careful", "scripted/oracle")
    assert Path("opened").exists()
    assert Path("closed").exists()


def test_failed_completion_cancels_the_others(adding: str, serve: Serve) -> None:
    from aiohttp import web

    async def reply(body: dict[str, Any], number: int) -> Any:
        if number == 0:
            return web.json_response({"error": {"message": "no"}}, status=400)
        if body["messages"][-1]["content"].startswith("0+"):  # the server never answers them
            await server.gate.wait()
        return right_sum(body, number)

    server = serve(reply)
    options: dict[str, Any] = {"base_url": server.url, "limit": 2, "samples": 8, "concurrency": 8, "temperature": 1}
    report = proctor.evaluate(adding, "openai/m", **options)
    assert (report.run.n, report.run.errors) == (1, 1)


def test_average_has_no_value_if_one_score_has_none() -> None:
    scores = [Score(1), Score(None, "sandbox error", why="no room"), Score(0)]
    assert average_scores(scores) == Score(None, "sandbox error", [None, None, None], "no room")
    assert average_scores([Score(1), Score(0)]).value == 0.5


def test_outcome_follows_from_the_value_and_two_are_reserved() -> None:
    assert [Score(v).outcome for v in (1, 0, 0.5, None)] == ["correct", "wrong", "partly", "unscored"]
    for name in ("error", "answered"):
        with pytest.raises(ValueError, match="reserved"):
            Score(1, name)


def test_registered_class_keeps_its_name() -> None:
    assert proctor.evaluate(ExistenceTask, "scripted/oracle", limit=2).run.task == "shapes/existence"


def test_evaluate_refuses_a_wildcard() -> None:
    with pytest.raises(UsageError, match=rf"matches {len(registry.expand('shapes/*'))} tasks"):
        proctor.evaluate("shapes/*", "scripted/oracle")


def test_report_survives_a_change_of_folder(adding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = proctor.evaluate(adding, "scripted/oracle", store=Path("here"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert len(list(report.records())) == 10


def test_evaluate_refuses_other_objects() -> None:
    for thing in (Task, int, Endless()):
        with pytest.raises(UsageError, match=r"not a task|not complete"):
            proctor.evaluate(thing, "scripted/oracle")  # type: ignore[arg-type]


def test_output_is_kept_after_a_scoring_error(task_file: TaskFile, failing_run: FailingRun) -> None:
    path = task_file(
        """
        from adding import *

        class Unjudged(Adding):
            def score_text(self, sample, text):
                raise RuntimeError("judge is ill")
        """
    )
    _, (record,) = failing_run(f"{path}:Unjudged", "scripted/oracle", limit=1)
    assert record.outputs[0].text == "0"
    assert record.error is not None
    assert record.error.kind == "judge"


class Endless(Task):
    """Yields samples without end, and counts them."""

    made = 0

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        index = 0
        while True:
            type(self).made += 1
            yield Sample(str(index), index, "?", target="x")
            index += 1

    def score_text(self, sample: Sample, text: str) -> Score:
        raise RuntimeError("always")


def test_samples_are_lazy_and_too_many_errors_stop_the_run() -> None:
    Endless.made = 0
    with pytest.raises(TooManyErrorsError, match="20 failed samples of 20; the last: RuntimeError: always"):
        proctor.evaluate(Endless, "scripted/oracle", concurrency=4)
    assert Endless.made <= 28
    (run,) = open_store().runs()
    assert run.status == "failed"
    assert 20 <= run.errors < 28, "the other workers may have been in the middle of theirs"
    assert "20 failed samples" in run.reason


def test_max_errors_stops_the_run() -> None:
    with pytest.raises(TooManyErrorsError, match="after 3 failed"):
        proctor.evaluate(Endless, "scripted/oracle", max_errors=3, concurrency=1)


def test_few_errors_do_not_stop_a_long_run(task_file: TaskFile) -> None:
    path = task_file(
        """
        from adding import *

        class Rarely(Adding):
            def score_text(self, sample, text):
                if sample.index % 20 == 19:
                    raise RuntimeError("now and then")
                return super().score_text(sample, text)
        """
    )
    report = proctor.evaluate(f"{path}:Rarely", "scripted/oracle", limit=1000)
    assert (report.run.n, report.run.errors) == (950, 50)


def test_error_in_samples_stops_the_run(task_file: TaskFile) -> None:
    path = task_file(
        """
        from adding import *

        class Broken(Adding):
            def samples(self, config):
                yield from super().samples(config)
                raise LookupError("row 10 is gone")
        """
    )
    with pytest.raises(TaskError, match="failed to make the sample after index 9: LookupError: row 10 is gone"):
        proctor.evaluate(f"{path}:Broken", "scripted/oracle")
    store = open_store()
    (run,) = store.runs()
    assert len(list(store.records(run))) == 10, "what was done before is kept"


@pytest.fixture
def crowd(serve: Serve) -> Crowd:
    """A server that answers only when this many requests are in flight."""

    def start(size: int) -> ModelServer:
        async def reply(body: dict[str, Any], number: int) -> Any:
            if server.in_flight == size:
                server.gate.set()
            await server.gate.wait()
            return right_sum(body, number)

        server = serve(reply)
        return server

    return start


def test_concurrency_is_the_limit_and_is_used(adding: str, crowd: Crowd) -> None:
    server = crowd(7)
    proctor.evaluate(adding, "openai/m", base_url=server.url, limit=40, concurrency=7)
    assert server.most_in_flight == 7


def test_concurrency_counts_requests_not_samples(adding: str, crowd: Crowd) -> None:
    server = crowd(6)
    proctor.evaluate(adding, "openai/m", base_url=server.url, limit=10, samples=5, concurrency=6, temperature=1)
    assert server.most_in_flight == 6
    assert len(server.requests) == 50


def test_evaluate_works_inside_a_running_loop(adding: str) -> None:
    async def notebook() -> proctor.Report:
        return proctor.evaluate(adding, "scripted/oracle")

    assert asyncio.run(notebook()).metrics["accuracy"].value == 1


def test_settings_are_checked_and_stored_in_full(tmp_path: Path) -> None:
    report = proctor.evaluate("shapes/existence", "scripted/oracle", limit=2)
    assert report.run.config["settings"] == {"shapes": 7, "description": "coordinates"}
    with pytest.raises(UsageError, match="no setting 'shape'; did you mean shapes"):
        proctor.evaluate("shapes/existence", "scripted/oracle", settings={"shape": 3})
    with pytest.raises(UsageError, match="setting shapes: expected int >= 2"):
        proctor.evaluate("shapes/existence", "scripted/oracle", settings={"shapes": 1})


def test_evaluate_accepts_a_class(adding: str) -> None:
    report = proctor.evaluate(registry.load_task_class(adding), "scripted/oracle")
    assert report.run.task == adding


def test_evaluate_needs_a_task() -> None:
    with pytest.raises(UsageError, match="Unknown task 'shapes/nothing'"):
        proctor.evaluate("shapes/nothing", "scripted/oracle")
    with pytest.raises(UsageError, match="Unknown model 'gpt'"):
        proctor.evaluate("shapes/existence", "gpt")
    assert open_store().runs() == []


def test_run_that_fails_before_its_first_sample_is_failed() -> None:
    class Refusing(Task):
        def samples(self, config: RunConfig) -> Iterator[Sample]:
            yield Sample("one", 0, "?", "!")

        def score_text(self, sample: Sample, text: str) -> Score:
            return Score(1.0)

        async def open(self, config: RunConfig) -> None:
            raise UsageError("there is no window")

    with pytest.raises(UsageError, match="there is no window"):
        proctor.evaluate(Refusing, "scripted/oracle")
    with closing(open_store()) as store:
        (run,) = store.runs()
        assert (store.status(run), run.reason) == ("failed", "there is no window")
