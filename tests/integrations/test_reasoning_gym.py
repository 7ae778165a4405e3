"""Exams of reasoning-gym, with the real package."""

import inspect
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Command, Serve
from helpers.known import known
from helpers.paths import CHECKOUT
from proctor import evaluate
from proctor.analysis.check import check_task
from proctor.cli.main import main
from proctor.core import registry
from proctor.core.config import build_config
from proctor.core.errors import MissingExtraError, TooManyErrorsError, UsageError
from proctor.core.evaluation import resume
from proctor.core.task import create_task, take_samples
from proctor.core.types import Message, Output, Sample
from proctor.integrations.expressions import only_calculates, only_lists, parse_expression

try:
    from proctor.integrations import reasoning_gym as adapter

    theirs = adapter.library()
except MissingExtraError as error:
    pytest.skip(f"{error} (make test-all installs it)", allow_module_level=True)

# The package needs a C compiler, so `make test` does not install it.
pytestmark = pytest.mark.slow

ROOT = CHECKOUT
NAMES = registry.expand("reasoning-gym/*")


def make(name: str, **settings: Any) -> adapter.DataSetTask:
    return create_task(adapter.task_class(name), f"reasoning-gym/{name}", settings)


def samples_of(task: adapter.DataSetTask, **options: Any) -> list[Sample]:
    return list(take_samples(task, build_config({"task": task.name, "model": "scripted/oracle", **options})))


def messages_of(sample: Sample) -> list[Message]:
    messages = [message for message in sample.input if isinstance(message, Message)]
    assert len(messages) == len(sample.input)
    return messages


@pytest.mark.parametrize("name", ["chain_sum", "list_functions"])
def test_check(name: str) -> None:
    faults = [f for f in check_task(f"reasoning-gym/{name}", {}, n=20) if not f.holds]
    assert faults == []


@pytest.mark.parametrize("name", ["ab", "acre", "bf", "graph_color", "list_functions", "rubiks_cube", "word_sorting"])
def test_a_sample_follows_from_seed_and_index_whatever_was_made_before(name: str) -> None:
    task, other = make(name), make(name)
    samples = samples_of(task, seed=3, limit=15)
    assert samples_of(other, seed=3, limit=5, limit_start=10) == samples[10:]
    assert [sample.input for sample in samples_of(task, seed=1003, limit=15)] != [sample.input for sample in samples]
    for sample in reversed(samples):
        assert other.score_text(sample, task.gold(sample)).value == 1
        assert other.score_text(sample, " ").outcome == "unparsed"


def test_the_items_of_a_seed_are_those_of_reasoning_gym() -> None:
    items = theirs.create_dataset("chain_sum", seed=42, size=5)
    samples = samples_of(make("chain_sum"), seed=42, limit=5)
    assert [messages_of(sample)[-1].text for sample in samples] == [item["question"] for item in items]
    assert [sample.target for sample in samples] == [item["answer"] for item in items]


def test_a_data_set_ends() -> None:
    assert len(samples_of(make("acre"), limit_start=490, limit=100)) == 10
    assert samples_of(make("acre"), limit_start=500) == []


def test_the_scorer_is_that_of_the_data_set() -> None:
    task = make("countdown", min_numbers=3, max_numbers=3, operators=["+"])
    (sample,) = samples_of(task, limit=1)
    turned = " + ".join(reversed(re.findall(r"\d+", sample.target)))
    assert turned != sample.target
    assert task.score_text(sample, f"Let me see. <answer>{turned}</answer>").value == 1
    part = task.score_text(sample, "<answer>1 + 1</answer>")
    assert (part.value, part.outcome, part.answer) == (0.05, "partly", "1 + 1")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>7</answer>", "7"),
        ("<think>3?</think> <answer>4</answer> no: <answer>\n5\n</answer>", "5"),
        ("<answer></answer>", ""),
        ("7", "7"),
        ("1 2\n3 4\n", "1 2\n3 4"),
        ("<think>it is 3</think>\n7", "7"),
        ("<think>it is 3", None),
        (" \n", None),
        ("", None),
    ],
)
def test_reading_the_answer(text: str, answer: str | None) -> None:
    assert adapter.read_answer(text) == answer


def test_nothing_can_be_the_right_answer_but_saying_nothing_is_not() -> None:
    task = make("ab")
    empty = next(sample for sample in samples_of(task, limit=100) if sample.target == "")
    assert task.score_text(empty, "<answer></answer>").value == 1
    assert task.score_text(empty, "").outcome == "unparsed"


@settings(max_examples=30)
@given(st.text())
@pytest.mark.parametrize("name", ["boxnet", "complex_arithmetic", "game_of_life", "n_queens", "prime_factorization"])
def test_no_text_breaks_a_scorer(name: str, text: str) -> None:
    task = make(name)
    (sample,) = samples_of(task, limit=1)
    score = task.score_text(sample, f"<answer>{text}</answer>")
    assert 0 <= known(score.value) <= 1


def test_what_a_scorer_fails_on_is_unparsed_and_says_why() -> None:
    task = make("prime_factorization")
    (sample,) = samples_of(task, limit=1)
    score = task.score_text(sample, "no idea")
    assert (score.value, score.outcome) == (0, "unparsed")
    assert score.why.startswith("ValueError: ")


@pytest.mark.parametrize(
    ("text", "finish", "truncated"),
    [
        ("First, 12 plus", "length", True),
        ("First, 12 plus", "stop", False),  # what was said is the answer
        ("<answer>-1</answer> since", "length", False),
        ("<think>First, <answer>12", "length", True),
    ],
)
def test_a_text_without_tags_that_was_cut_off_is_truncated(text: str, finish: str, truncated: bool) -> None:
    task = make("chain_sum")
    (sample,) = samples_of(task, limit=1)
    score = task.score_output(sample, Output(text, finish=finish))
    assert (score.outcome == "truncated", score.truncated) == (truncated, truncated)
    assert score.value == 0 or not truncated


# -- answers that are evaluated ---------------------------------------------------------------


def test_every_scorer_that_evaluates_the_answer_is_known() -> None:
    evaluating = {
        name
        for name, (data_set, _) in theirs.factory.DATASETS.items()
        if re.search(r"\b(eval|exec|parse_expr|sympify)\(answer\b", inspect.getsource(sys.modules[data_set.__module__]))
    }
    assert evaluating == adapter.EVALUATED | adapter.PARSED


@pytest.mark.parametrize("name", sorted(adapter.EVALUATED | adapter.PARSED))
def test_no_answer_is_run_as_a_program(name: str, tmp_path: Path) -> None:
    program = f"__import__('os').mkdir({str(tmp_path / 'made')!r})"
    task = make(name)
    (sample,) = samples_of(task, limit=1)
    for answer in (program, f"[{program}][0]", f"sin({program!r})", f"({program})!", f"lambda {program}: 1"):
        assert task.score_text(sample, answer).value == 0
        assert not (tmp_path / "made").exists(), answer
    task._items(0).score_answer(program, task._item(0, 0))
    assert (tmp_path / "made").exists(), "the danger is real"


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "sin('x')",
        "'x'",
        "['x']",
        "x.y",
        "(x)(y)",
        "9**9**9",
        "9**(9**9 + x)",
        "9**101",
        "(((9**9)**9)**9)**9",
        "2**1e999",
        "x!",
    ],
)
def test_what_sympy_does_not_get(text: str) -> None:
    expression = parse_expression(text)
    assert expression is None or not only_calculates(expression)


@pytest.mark.parametrize("text", ["10*(8 - 5) - 6", "-4*(-2*x - 8)**(3/2)/3 + C", "x**2*exp(3*x)/2", "E**(-123*x**2)"])
def test_what_sympy_gets(text: str) -> None:
    assert only_calculates(known(parse_expression(text)))


@pytest.mark.parametrize(("text", "harmless"), [("[['Q', '_'], [-1, x]]", True), ("f'{x}'", False), ("[f(x)]", False)])
def test_what_eval_gets(text: str, harmless: bool) -> None:
    assert only_lists(known(parse_expression(text))) is harmless


# -- settings ---------------------------------------------------------------------------------


def test_settings_reach_the_data_set() -> None:
    for sample in samples_of(make("chain_sum", min_terms="3", max_terms=3), limit=10):
        assert sample.metadata["num_terms"] == 3
        assert len(re.findall(r" [+-] ", messages_of(sample)[-1].text)) == 2


@pytest.mark.parametrize(
    ("data_set", "given", "said"),
    [
        (
            "chain_sum",
            {"min_term": 3},
            "no setting 'min_term'; did you mean min_terms? Settings: min_terms, max_terms,",
        ),
        ("chain_sum", {"size": 3}, "no setting 'size'"),
        ("chain_sum", {"min_terms": "few"}, "setting min_terms: expected int, got 'few'"),
        ("chain_sum", {"min_terms": 9}, "reasoning-gym/chain_sum: settings: max_terms must be >= min_terms."),
        ("word_sorting", {"transformation": "upside"}, "setting transformation: invalid enum value 'upside'"),
        ("spell_backward", {"data_file": "none.txt"}, "refuses its settings: FileNotFoundError"),
    ],
)
def test_bad_settings_are_one_sentence(
    capsys: pytest.CaptureFixture[str], data_set: str, given: dict[str, Any], said: str
) -> None:
    pairs = [argument for key, value in given.items() for argument in ("--set", f"{key}={value}")]
    assert main(["run", f"reasoning-gym/{data_set}", "--model", "scripted/oracle", "--quiet", *pairs]) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert (out, len(err.splitlines())) == ("", 1)


@pytest.mark.parametrize("name", sorted(theirs.factory.DATASETS.keys() - adapter.LEFT_OUT))
def test_settings_are_the_same_when_they_come_back_from_the_store(name: str) -> None:
    stored: dict[str, Any] = {}
    for _ in range(2):
        before, stored = stored, msgspec.json.decode(msgspec.json.encode(make(name, **stored).settings))
    assert stored == before


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(UsageError, match="expected a seed >= 0, got -1"):
        samples_of(make("chain_sum"), seed=-1)


# -- names ------------------------------------------------------------------------------------


def test_every_data_set_is_there_or_left_out_with_a_reason() -> None:
    assert len(NAMES) > 90
    for name in theirs.factory.DATASETS:
        full = f"reasoning-gym/{name}"
        if full not in NAMES:
            with pytest.raises(UsageError, match=f"{full} is left out: "):
                registry.expand(full)


def test_a_name_with_a_slip() -> None:
    with pytest.raises(UsageError, match="did you mean reasoning-gym/chain_sum"):
        registry.expand("reasoning-gym/chainsum")


def test_own_wildcards_stay_among_themselves() -> None:
    assert not any(name.startswith("reasoning-gym/") for name in registry.expand("*"))


def test_hash_order_can_be_fixed(proctor_process: Command) -> None:
    first, second = (
        proctor_process("show", "reasoning-gym/ransom_note", "--json", PYTHONHASHSEED="0").stdout for _ in range(2)
    )
    assert first == second
    assert json.loads(first)["id"] == "0-0"


def test_listing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "tasks", "reasoning-gym/*sum"]) == 0
    listed = capsys.readouterr().out
    assert re.findall(r"^  (\S+)", listed, re.MULTILINE) == [
        "reasoning-gym/chain_sum",
        "reasoning-gym/decimal_chain_sum",
    ]


# -- whole runs -------------------------------------------------------------------------------


def test_the_whole_path_with_the_scripted_candidates() -> None:
    cls = registry.load_task_class("reasoning-gym/word_sorting")
    report = evaluate(cls, "scripted/oracle", limit=5)
    assert report.run.task == "reasoning-gym/word_sorting"
    assert report.metrics["score"].value == 1
    assert report.run.version.startswith(report.run.provenance["versions"]["reasoning-gym"])
    assert evaluate(cls, "scripted/blank", limit=5).run.outcomes == {"unparsed": 5}


def test_a_run_goes_on_in_another_process_and_can_be_marked_again(serve: Serve, proctor_process: Command) -> None:
    """countdown has settings that JSON does not keep as they are, and a scorer that needs the whole item."""
    down = True

    def reply(body: dict[str, Any], number: int) -> Any:
        if down and number % 2:
            return web.Response(status=500)
        return "<answer>1 + 1</answer>"

    server = serve(reply)
    options: dict[str, Any] = {"base_url": server.url, "limit": 6, "retries": 0, "concurrency": 1, "max_errors": 3}
    with pytest.raises(TooManyErrorsError) as stopped:
        evaluate("reasoning-gym/countdown", "openai/m", **options)
    run = known(stopped.value.run)
    assert (run.n, run.errors) == (3, 3)
    down = False
    done = proctor_process("resume", run.id, "--json")
    assert done.returncode == 0, done.stderr
    (finished,) = json.loads(done.stdout)["runs"]
    assert (finished["n"], finished["errors"], finished["outcomes"]) == (6, 0, {"partly": 6})
    assert resume(run.id, {}).metrics["score"].value == pytest.approx(0.05)

    assert main(["export", run.id, "--out", "records.jsonl"]) == 0
    again = evaluate("reasoning-gym/countdown", "scripted/replay:records.jsonl", limit=6)
    assert again.run.outcomes == {"partly": 6}


def test_worked_examples_ask_something_else() -> None:
    task = make("tower_of_hanoi", max_disks=3)
    for sample in samples_of(task, limit=5, few_shot=3):
        messages = messages_of(sample)
        roles = [message.role for message in messages]
        assert roles == ["system", *["user", "assistant"] * 3, "user"]
        asked = [message.text for message in messages if message.role == "user"]
        assert len(set(asked)) == 4
        assert messages[2].text.startswith("<answer>")


def test_nothing_is_noticed_outside(capfd: pytest.CaptureFixture[str]) -> None:
    """bf prints, list_functions and pool_matrix draw from the generators of the process."""
    random.seed(1)
    numpy.random.seed(1)
    expected = random.random(), numpy.random.random()
    random.seed(1)
    numpy.random.seed(1)
    for name in ("bf", "list_functions", "pool_matrix"):
        samples_of(make(name), limit=3)
    assert (random.random(), numpy.random.random()) == expected
    assert capfd.readouterr() == ("", "")


# -- the guide --------------------------------------------------------------------------------


def test_the_commands_of_the_guide_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "reasoning-gym.md").read_text()
    commands = re.findall(r"^proctor (.+)$", text, re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        words = command.replace("smollm2", "scripted/oracle").replace("'", "").split()
        assert main(words) == 0, f"proctor {command}\n{capsys.readouterr()}"


def test_the_guide_names_what_is_left_out_and_what_is_evaluated() -> None:
    text = (ROOT / "docs" / "reasoning-gym.md").read_text()
    table, rest = text.split("## What is left out")[1].split("## What to know")
    assert set(re.findall(r"`(\w+)`", table)) == {*adapter.LEFT_OUT, *adapter.HASH_ORDERED}
    assert all(f"`{name}`" in rest for name in adapter.EVALUATED | adapter.PARSED)


def test_what_is_too_deep_to_be_parsed_is_not_handed_on() -> None:
    """Where the parser gives up, an evaluator that starts with more of the stack may not."""
    for depth in (100, 10_000, 300_000):
        parsed = parse_expression("[open('x', 'w').fileno()" + "+1" * depth + "]")
        assert parsed is not None
        assert not only_lists(parsed)
        assert not only_calculates(parsed)
