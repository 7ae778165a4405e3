"""Replies of models that play in a window are read as a person would read them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.key_replies import REPLIES
from proctor.agents.desktop.vk import VK
from proctor.agents.vision.key_reply import read_strokes
from proctor.agents.vision.key_tokens import HOLD, LONGEST_HOLD, MOST_STROKES, SHORTEST_HOLD, Stroke

KEYS = [VK.LEFT, VK.RIGHT, VK.UP, VK.DOWN, VK.SPACE, VK.RETURN, VK.ESCAPE, VK.TAB, VK.F5, VK.KEY_A, VK.KEY_W, VK.KEY_7]
NAMES = {key: key.name.removeprefix("KEY_") for key in KEYS}
strokes = st.builds(
    Stroke,
    st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True).map(lambda keys: tuple(map(int, keys))),
    st.sampled_from([HOLD, 0.01, 0.02, 0.25, 0.5, 1.5, 5.0]),
)
waits = st.builds(Stroke, st.just(()), st.sampled_from([0.2, 0.5, 1.5]))


@pytest.mark.parametrize(("reply", "keys"), REPLIES, ids=[reply[:40] for reply, _ in REPLIES])
def test_reply_presses_what_a_person_would_press(reply: str, keys: str | None) -> None:
    found = read_strokes(reply)
    assert (None if found is None else " ".join(stroke.text for stroke in found)) == keys


@settings(max_examples=60)
@given(st.lists(st.one_of(strokes, waits), min_size=1, max_size=MOST_STROKES), st.integers(0, 7), st.booleans())
def test_answer_in_the_format_that_was_asked_for_is_read_back(told: list[Stroke], dress: int, lower: bool) -> None:
    text = " ".join(stroke.text for stroke in told)
    text = text.lower() if lower else text
    dressed = [
        text,
        f"**{text}**",
        f"```\n{text}\n```",
        f"<think>I press UP.</think>\n{text}",
        f"The wall comes closer.\n{text}",
        f"Answer: {text}",
        json.dumps({"keys": [stroke.text for stroke in told]}),
        text.replace(" ", ", "),
    ][dress]
    assert read_strokes(dressed) == told


@pytest.mark.slow
@given(st.text(max_size=300))
def test_any_text_is_read_within_the_limits(text: str) -> None:
    for stroke in read_strokes(text) or []:
        assert SHORTEST_HOLD <= stroke.seconds <= LONGEST_HOLD
        assert VK.F10 not in stroke.keys


WORDS = """press LEFT right don't if the key 0.5 for seconds wait + , . : CTRL a then or { } [ ] "keys" none
    ** ` <answer> </answer> I twice""".split()  # noqa: SIM905 - a list of words


@settings(max_examples=50)
@given(st.lists(st.sampled_from([*WORDS, "\n"]), max_size=40).map(" ".join))
def test_any_words_are_read_within_the_limits(text: str) -> None:
    found = read_strokes(text)
    assert found is None or len(found) <= MOST_STROKES
    for stroke in found or []:
        assert SHORTEST_HOLD <= stroke.seconds <= LONGEST_HOLD


def test_long_replies_are_read_at_once() -> None:
    for text in (
        "a " * 20_000,
        "LEFT:" * 20_000,
        "[" * 20_000,
        "'" * 20_000,
        "press " * 20_000 + "LEFT",
        "don't " * 20_000,
    ):
        read_strokes(text)
