"""Outputs that end by length before an answer: token limits, their outcome, and a notice."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

import proctor
from conftest import Command, FailingRun, Serve, TaskFile, right_sum
from proctor.analysis.report import Report, truncation_notice
from proctor.core.errors import ModelError, TooManyErrorsError, UsageError
from proctor.core.evaluation import resume
from proctor.core.reasoning import reasoning_is_open
from proctor.core.task import mark_truncated
from proctor.core.types import Output, Run, Sample, Score
from proctor.models.base import REASONING_TOKENS, Request, Sampling
from proctor.models.providers.openai import OpenAIModel
from proctor.store import open_store

THINKING = "<think>The first line names a small red square, so the answer may be"


def reply(text: Any, finish: Any = "length", *, chat: bool = True, tokens: int = 7, **message: Any) -> Any:
    """One choice as servers of OpenAI's formats send it."""
    content = {"message": {"role": "assistant", "content": text, **message}} if chat else {"text": text}
    usage = {"prompt_tokens": 10, "completion_tokens": tokens}
    return web.json_response({"choices": [{"index": 0, "finish_reason": finish, **content}], "usage": usage})


def outcomes(serve: Serve, task: str, text: str | None, finish: Any = "length", **options: Any) -> dict[str, int]:
    chat = options.get("api") != "completions"
    message = options.pop("message", {})
    server = serve(lambda body, number: reply(text, finish, chat=chat, **message))
    return proctor.evaluate(task, "openai/m", base_url=server.url, limit=1, **options).run.outcomes


# -- how many tokens a completion gets ------------------------------------------------------------


def test_chat_server_gets_tokens_for_reasoning(serve: Serve) -> None:
    server = serve(lambda body, number: "Yes")
    run = proctor.evaluate("shapes/existence", "openai/m", base_url=server.url, limit=1).run
    assert server.requests[0]["max_tokens"] == REASONING_TOKENS == 8_192
    assert (run.config["max_tokens"], run.config["api"]) == (8_192, "chat")


def test_completions_endpoint_keeps_the_tasks_max_tokens(serve: Serve) -> None:
    server = serve(lambda body, number: "Yes")
    run = proctor.evaluate("shapes/existence", "openai/m", base_url=server.url, limit=1, api="completions").run
    assert server.requests[0]["max_tokens"] == run.config["max_tokens"] == 32


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_max_tokens_option_overrides_defaults(adding: str, serve: Serve, api: str) -> None:
    server = serve(right_sum)
    run = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1, api=api, max_tokens=5).run
    assert server.requests[0]["max_tokens"] == run.config["max_tokens"] == 5
    longer = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1, api=api, max_length=100).run
    assert server.requests[1]["max_tokens"] == 100
    assert longer.config["max_tokens"] is None, "prompt and completion together are limited, not the completion"


@pytest.mark.parametrize(("own", "expected"), [(1_024, 8_192), (20_000, 20_000)])
def test_larger_max_tokens_of_a_task_is_kept(task_file: TaskFile, serve: Serve, own: int, expected: int) -> None:
    path = task_file(f"from adding import *\nclass Long(Adding):\n    max_tokens = {own}\n")
    server = serve(right_sum)
    proctor.evaluate(f"{path}:Long", "openai/m", base_url=server.url, limit=1)
    assert server.requests[0]["max_tokens"] == expected


@pytest.mark.parametrize(("api", "expected"), [("chat", 8_192), ("completions", 512)])
def test_code_tasks_get_tokens_for_reasoning(serve: Serve, api: str, expected: int) -> None:
    server = serve(lambda body, number: "pass")
    options: dict[str, Any] = {"base_url": server.url, "limit": 1, "api": api, "generation_only": True}
    proctor.evaluate("code/parity", "openai/m", **options)
    assert server.requests[0]["max_tokens"] == expected


@pytest.mark.parametrize("model", ["scripted/oracle", "scripted/random"])
def test_models_without_chat_keep_the_tasks_max_tokens(model: str) -> None:
    assert proctor.evaluate("shapes/existence", model, limit=2).run.config["max_tokens"] == 32


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({"max_model_len": 4_096}, 2_048),
        ({"context_length": 8_192}, 4_096),
        ({"context_window": 131_072}, 8_192),
        ({"max_model_len": "4096"}, 8_192),
        ({"max_model_len": 0}, 8_192),
    ],
)
def test_prompt_gets_half_of_a_small_context(adding: str, serve: Serve, about: dict[str, Any], expected: int) -> None:
    server = serve(right_sum)
    server.about = about
    proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1)
    assert server.requests[0]["max_tokens"] == expected


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "'max_tokens' is too large: 8192. This model has a context of 4096 tokens and 108 are taken."),
        (400, "This model's maximum context length is 4096 tokens. However, you requested 8300 tokens."),
        (400, "Invalid max_tokens value, the valid range of max_tokens is [1, 4096]"),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048."),
        (400, "Requested token count exceeds what the model has. You requested a total of 8300 tokens."),
    ],
)
def test_refused_max_tokens_names_the_flag(
    adding: str, serve: Serve, failing_run: FailingRun, status: int, message: str
) -> None:
    server = serve(lambda body, number: web.json_response({"error": {"message": message}}, status=status))
    said, _ = failing_run(adding, "openai/m", base_url=server.url, limit=1)
    assert message in said
    assert "had --max-tokens 8192: lower it" in said


def test_other_refusals_do_not_mention_tokens(adding: str, serve: Serve, failing_run: FailingRun) -> None:
    server = serve(lambda body, number: web.json_response({"error": {"message": "no images here"}}, status=400))
    assert "--max-tokens" not in failing_run(adding, "openai/m", base_url=server.url, limit=1)[0]


# -- what counts as cut off -----------------------------------------------------------------------


@pytest.mark.parametrize("api", ["chat", "completions"])
@pytest.mark.parametrize("text", ["", "  \n", THINKING, f"{THINKING} Yes", "Let me look at the list of"])
def test_output_that_ends_by_length_before_an_answer_is_truncated(serve: Serve, api: str, text: str) -> None:
    assert outcomes(serve, "shapes/existence", text, api=api) == {"truncated": 1}
    if not text.endswith("Yes"):
        assert outcomes(serve, "shapes/existence", text, "stop", api=api) == {"unparsed": 1}


@pytest.mark.parametrize(("finish", "expected"), [("length", "truncated"), ("stop", "unparsed")])
def test_a_task_that_marks_by_containment_sees_that_none_of_its_answers_is_there(
    task_file: TaskFile, serve: Serve, finish: str, expected: str
) -> None:
    path = task_file(
        "from proctor.shapes import Task\nclass Which(Task):\n    answers = ('Left', 'Right')\n"
        "    def generate_questions(self, shapes, selected_answer=None):\n        return [('Which?', 'Left')]\n"
    )
    assert outcomes(serve, f"{path}:Which", "Let me look at the list of", finish) == {expected: 1}
    assert outcomes(serve, f"{path}:Which", "The Right one, or the", finish) == {"wrong": 1}
    assert outcomes(serve, f"{path}:Which", "The Left one, or the", finish) == {"correct": 1}


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_field_is_not_an_answer(serve: Serve, key: str) -> None:
    message = {"message": {key: "The square is there, so Yes"}}
    assert outcomes(serve, "shapes/existence", None, **message) == {"truncated": 1}


def test_reasoning_parts_are_not_an_answer(serve: Serve) -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "The square is there, so Yes"}]}
    server = serve(lambda body, number: reply([thinking, *[{"type": "text", "text": "No"}] * (number % 2)]))
    report = proctor.evaluate("shapes/existence", "openai/m", base_url=server.url, limit=2, concurrency=1)
    assert report.run.outcomes["truncated"] == 1
    assert [record.outputs[0].text for record in report.records()] == ["", "No"]


def test_text_that_ends_at_a_stop_string_is_not_truncated(
    adding: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenAI accepts four stop strings; Proctor applies the fifth to the output."""
    server = serve(lambda body, number: reply("0;1"))
    monkeypatch.setattr("proctor.models.providers.openai.OPENAI_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    (record,) = proctor.evaluate(adding, "openai/m", limit=1, stop=["a", "b", "c", "d", ";"]).records()
    assert (record.outputs[0].text, record.outputs[0].finish) == ("0", "stop")


def test_answer_before_the_cut_is_scored(serve: Serve) -> None:
    server = serve(lambda body, number: reply(["Yes. There is one near the", f"{THINKING}</think>No."][number % 2]))
    run = proctor.evaluate("shapes/existence", "openai/m", base_url=server.url, limit=20, concurrency=1).run
    assert sum(run.outcomes.values()) == 20
    assert run.outcomes.keys() == {"correct", "wrong"}
    assert (run.outputs, run.truncated) == (20, 0)


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
def test_all_finish_reasons_for_length_are_known(serve: Serve, finish: str) -> None:
    assert outcomes(serve, "shapes/existence", "", finish) == {"truncated": 1}


@pytest.mark.parametrize("finish", ["stop", None])
def test_length_is_inferred_from_the_token_count(serve: Serve, finish: str | None) -> None:
    assert outcomes(serve, "shapes/existence", THINKING, finish, max_tokens=7) == {"truncated": 1}
    assert outcomes(serve, "shapes/existence", THINKING, finish, max_tokens=8) == {"unparsed": 1}


def responses(details: dict[str, Any] | None, status: str) -> Any:
    part = {"type": "message", "content": [{"type": "output_text", "text": "The first"}]}
    usage = {"input_tokens": 3, "output_tokens": 5}
    body = {"status": status, "incomplete_details": details, "output": [part], "usage": usage}
    return lambda *_: web.json_response(body)


def ask_responses(serve: Serve, details: dict[str, Any] | None, status: str) -> Output:
    async def ask() -> Output:
        model = OpenAIModel("m", serve(responses(details, status)).url, "responses", 60, "NO_KEY")
        assert model.reasoning_tokens == REASONING_TOKENS
        await model.prepare(lambda: ())
        try:
            return await model.generate(Request("?", Sampling(16), 0, Sample("s", 0, "?")))
        finally:
            await model.close()

    return asyncio.run(ask())


def test_incomplete_response_ended_by_length(serve: Serve) -> None:
    assert ask_responses(serve, {"reason": "max_output_tokens"}, "incomplete").finish == "length"
    assert ask_responses(serve, None, "completed").finish == "stop"
    with pytest.raises(ModelError, match="content filter"):
        ask_responses(serve, {"reason": "content_filter"}, "incomplete")


OWN = """
from adding import *

class Judging(Adding):
    async def judge(self, sample, outputs):
        return Score(0, "unparsed")

class Unscored(Adding):
    async def judge(self, sample, outputs):
        return Score(None)

class Containing(Adding):
    def score_text(self, sample, text):
        return Score(float(sample.target in text))
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Judging", "The sum of", "truncated"),
        ("Unscored", "", "unscored"),
        ("Containing", "The sum of", "wrong"),  # the task parsed an answer
        ("Containing", "", "truncated"),
        ("Containing", f"{THINKING}</think>", "truncated"),
        ("Containing", "<think>It is 0 or", "truncated"),  # the target is 0, which only the reasoning mentions
        ("Containing", "It is 0, since", "correct"),
    ],
)
def test_user_tasks_mark_truncated_outputs(
    task_file: TaskFile, serve: Serve, name: str, text: str, expected: str
) -> None:
    path = task_file(OWN)
    assert outcomes(serve, f"{path}:{name}", text) == {expected: 1}


def test_truncation_is_counted_per_completion(serve: Serve) -> None:
    texts = ["Yes", THINKING, "No", ""]
    server = serve(lambda body, number: reply(texts[number % 4]))
    options: dict[str, Any] = {"base_url": server.url, "limit": 3, "samples": 4, "temperature": 1, "concurrency": 1}
    run = proctor.evaluate("shapes/existence", "openai/m", **options).run
    assert run.outcomes == {"partly": 3}
    assert (run.outputs, run.truncated) == (12, 6)
    assert run.metrics["accuracy"].value == 0.25


@given(st.text(alphabet="<think>/ab\n ", max_size=60))
def test_reasoning_is_open_from_its_first_tag_to_its_last(text: str) -> None:
    assert not reasoning_is_open(f"{text}</think>")
    assert reasoning_is_open(f"{text}</think><think>and")
    if "<think" not in text:
        assert not reasoning_is_open(text)


@given(
    st.sampled_from(["length", "stop", "loaded"]),
    st.sampled_from([Score(1), Score(0), Score(0.5), Score(None), Score(0, "unparsed"), Score(None, "unparsed")]),
    st.sampled_from(["", " \n", "text", THINKING, f"{THINKING}</think>"]),
    st.integers(1, 3),
)
def test_mark_truncated_keeps_points_and_complete_outputs(finish: str, score: Score, text: str, number: int) -> None:
    marked = mark_truncated(score, [Output(text, finish=finish)] * number)
    assert marked.value == score.value
    assert (marked.outcome == "truncated") == (marked.truncated > 0)
    if finish != "length" or score.value or (score.outcome == "wrong" and text == "text"):
        assert marked == score
    if finish == "length" and score.outcome == "unparsed":
        assert marked.truncated == number


# -- programs -------------------------------------------------------------------------------------


PROGRAMS = """
from proctor.code import Task

class Doubling(Task):
    def __init__(self):
        super().__init__(stop_words=["\\ndef "], requires_execution=True)

    def get_dataset(self):
        return [{"prompt": "def double(x):\\n", "test": "assert double(3) == 6", "entry_point": "double"}]

    def get_prompt(self, doc):
        return doc["prompt"]

    def get_reference(self, doc):
        return doc["test"]
"""


@pytest.mark.parametrize(
    ("text", "api", "expected"),
    [
        (f"{THINKING} ```python\ndef double(x):\n    return 3 * x\n```", "chat", "truncated"),
        ("```python\ndef double(x):\n    result = [x for", "chat", "truncated"),
        ("", "chat", "truncated"),
        ("```python\ndef double(x):\n    return 3 * x\n```\nIt works because", "chat", "failed"),
        ("```python\ndef double(x):\n    return 2 * x\n```\nIt works because", "chat", "passed"),
        ("    result = [x for", "completions", "truncated"),
        ("    return 3 * x\ndef other(y):\n    return y +", "completions", "failed"),
        ("    return 2 * x\n    # and so on", "completions", "passed"),
    ],
)
def test_program_cut_off_by_length_is_truncated(
    task_file: TaskFile, serve: Serve, contained: str, text: str, api: str, expected: str
) -> None:
    path = task_file(PROGRAMS)
    server = serve(lambda body, number: reply(text, chat=api == "chat"))
    report = proctor.evaluate(
        f"{path}:Doubling", "openai/m", base_url=server.url, api=api, allow_code_execution=True, workers=1
    )
    assert report.run.outcomes == {expected: 1}
    assert report.run.truncated == (expected == "truncated")
    assert report.metrics["pass@1"].value == (expected == "passed")


# -- recorded, resumed, replayed ------------------------------------------------------------------


def test_replay_keeps_the_finish_reason(serve: Serve, proctor: Command) -> None:
    server = serve(lambda body, number: reply(THINKING if number % 2 else "Yes"))
    flags = ["--model", "openai/m", "--base-url", server.url, "--limit", "4", "--concurrency", "1"]
    assert proctor("run", "shapes/existence", *flags).returncode == 0
    assert proctor("export", "latest", "--out", "records.jsonl").returncode == 0
    done = proctor("run", "shapes/existence", "--model", "scripted/replay:records.jsonl", "--limit", "4", "--json")
    (run,) = json.loads(done.stdout)["runs"]
    assert run["outcomes"]["truncated"] == run["truncated"] == 2


def store_an_old_run(adding: str, url: str) -> Run:
    """A run from a version that did not store max_tokens."""
    run = proctor.evaluate(adding, "openai/m", base_url=url, limit=2, max_tokens=64).run
    store = open_store()
    old = msgspec.structs.replace(run, config=run.config | {"max_tokens": None, "limit": 4}, total=4)
    store.save(old)
    store.close()
    return old


def test_old_run_resumes_with_its_max_tokens(adding: str, serve: Serve) -> None:
    server = serve(right_sum)
    old = store_an_old_run(adding, server.url)
    report = resume(old.id, {})
    assert report.run.n == 4
    assert [body["max_tokens"] for body in server.requests] == [64] * 4
    assert report.run.config["max_tokens"] == 64


def test_resume_refuses_changed_max_tokens_of_an_old_run(adding: str, serve: Serve) -> None:
    server = serve(right_sum)
    old = store_an_old_run(adding, server.url)
    with pytest.raises(UsageError, match="max_tokens 64 → 8192"):
        resume(old.id, {"max_tokens": 8_192})
    assert len(server.requests) == 2


def test_resume_keeps_max_tokens_after_a_server_change(
    adding: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    ill = threading.Event()
    ill.set()

    def answer(body: dict[str, Any], number: int) -> Any:
        return web.json_response({}, status=400) if ill.is_set() and number > 1 else right_sum(body, number)

    server = serve(answer)
    with pytest.raises(TooManyErrorsError):
        proctor.evaluate(adding, "openai/m", base_url=server.url, limit=4, max_errors=1, concurrency=1)
    ill.clear()
    monkeypatch.setattr("proctor.models.providers.openai.REASONING_TOKENS", 100)
    report = resume("latest", {})
    assert (report.run.n, report.run.config["max_tokens"]) == (4, 8_192)
    assert {body["max_tokens"] for body in server.requests} == {8_192}


# -- the notice -----------------------------------------------------------------------------------


def cut_off_at_first(number_of_them: int) -> Any:
    return lambda body, number: reply(THINKING) if number < number_of_them else "Yes"


@pytest.mark.parametrize(("truncated", "said"), [(0, False), (1, False), (2, True)])
def test_report_ends_with_the_truncation_notice(serve: Serve, proctor: Command, truncated: int, said: bool) -> None:
    server = serve(cut_off_at_first(truncated))
    flags = ["--model", "openai/m", "--base-url", server.url, "--limit", "100", "--concurrency", "1"]
    done = proctor("run", "shapes/existence", *flags)
    assert done.returncode == 0
    notice = "2.0 % of the outputs (2 of 100) ended by length before an answer: raise --max-tokens (it was 8192)."
    assert (notice in done.stdout.splitlines()[-1]) == said
    assert ("ended by length" in done.stdout) == said
    assert (f"{truncated} truncated" in done.stderr.splitlines()[-1]) == (truncated > 0)

    shown = proctor("show", "latest")
    assert ("CUT OFF" in shown.stdout.splitlines()[-1]) == said
    (run,) = json.loads(proctor("show", "latest", "--json").stdout)["runs"]
    assert (run["outputs"], run["truncated"]) == (100, truncated)
    assert run["outcomes"].get("truncated", 0) == truncated


def test_json_run_prints_the_truncation_notice_on_stderr(serve: Serve, proctor: Command) -> None:
    server = serve(cut_off_at_first(5))
    flags = ["--model", "openai/m", "--base-url", server.url, "--limit", "10", "--concurrency", "1", "--json"]
    done = proctor("run", "shapes/existence", *flags, "--max-tokens", "100")
    assert json.loads(done.stdout)["runs"][0]["truncated"] == 5
    assert done.stderr.splitlines()[-1] == (
        "note: 50.0 % of the outputs (5 of 10) ended by length before an answer: raise --max-tokens (it was 100)."
    )
    assert "ended by length" not in proctor("run", "shapes/existence", *flags, "--quiet").stderr


def make_run(outputs: int, truncated: int, **config: Any) -> Run:
    return Run("1", "t", "1", "m", {"settings": {}, **config}, {}, 0.0, outputs=outputs, truncated=truncated)


@given(st.integers(1, 10_000), st.data())
def test_truncation_notice_starts_above_one_percent(hundreds: int, data: st.DataObject) -> None:
    truncated = data.draw(st.integers(0, 3 * hundreds))
    assert bool(truncation_notice(make_run(100 * hundreds, truncated))) == (truncated > hundreds)


def test_truncation_notice_names_the_used_option() -> None:
    assert truncation_notice(make_run(0, 0)) == ""
    assert "--max-length (it was 50)" in truncation_notice(make_run(9, 9, max_tokens=None, max_length=50))
    assert "--max-tokens (it was 40)" in truncation_notice(make_run(9, 9, max_tokens=40, max_length=50))
    assert truncation_notice(make_run(9, 9)).endswith("raise --max-tokens.")
    assert "ended by length" in Report(make_run(9, 9), "store")._repr_html_()


def test_comparison_notes_truncation_of_each_run(serve: Serve, proctor: Command) -> None:
    server = serve(cut_off_at_first(10))
    for limit in ("4", "20"):
        flags = ["--model", "openai/m", "--base-url", server.url, "--limit", limit, "--concurrency", "1"]
        assert proctor("run", "shapes/existence", *flags).returncode == 0
    runs = [run.id for run in open_store().runs()]
    said = proctor("compare", *runs, "--shared").stdout
    assert "note: " + runs[-1] + ": 100.0 % of the outputs (4 of 4) ended by length" in said


def test_leaderboard_shows_only_given_max_tokens(serve: Serve, proctor: Command) -> None:
    server = serve(lambda body, number: "Yes")
    flags = ["--base-url", server.url, "--limit", "4"]
    assert proctor("run", "shapes/existence", "--model", "openai/m", *flags).returncode == 0
    assert proctor("run", "shapes/existence", "--model", "openai/n", "--max-tokens", "50", *flags).returncode == 0
    (board,) = json.loads(proctor("leaderboard", "--json").stdout)["boards"]
    assert {entry["candidate"]: entry["options"] for entry in board["entries"]} == {
        "openai/m": {},
        "openai/n": {"max_tokens": 50},
    }
