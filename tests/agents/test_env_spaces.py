"""Actions and observations of stepped environments, and the small environment `catch`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from proctor.agents.envs import observations, spaces
from proctor.agents.envs.catch import Catch, Catcher


@given(st.integers(1, 30), st.integers(-5, 5), st.data())
def test_every_choice_can_be_said_by_name_and_by_number(n: int, start: int, data: st.DataObject) -> None:
    names = tuple(f"do {chr(97 + i)}" for i in range(n)) if data.draw(st.booleans()) else ()
    space = spaces.Choice(n, start, names)
    for number, word in enumerate(space.words(), start):
        assert space.read(word) == space.read(f" {word.upper()}.\n") == space.read(str(number)) == number
        assert space.take(number) == space.take(np.int64(number)) == space.take(np.array(number)) == number
    for wrong in ("", "left or right", f"{start + n}", f"{start - 1}", "1.5", "١", "do a, because"):
        if wrong not in names:
            assert space.read(wrong) is None


@given(st.text())
def test_no_answer_is_taken_for_what_it_is_not(text: str) -> None:
    for space in (
        spaces.Choice(3, 0, ("left", "stay", "right")),
        spaces.Choices((2, 3), (2,), "int64"),
        spaces.Numbers((-1.0, 0.0), (1.0, 2.0), (2,), "float32"),
    ):
        read = space.read(text)
        if read is not None:
            space.take(read)


@pytest.mark.parametrize("wrong", ["left", 1.5, None, [1, 2], object(), float("nan"), float("inf"), 10**30, "1"])
def test_what_is_no_action_is_refused(wrong: Any) -> None:
    numbers = spaces.Numbers((0.0,) * 3, (1.0,) * 3, (3,), "float32")
    for space in (spaces.Choice(3), spaces.Choices((2, 2, 2), (3,), "int8"), numbers):
        with pytest.raises(spaces.IllegalActionError):
            space.take(wrong)


def test_numbers_stay_within_their_bounds() -> None:
    bound = float(np.float32(0.7))  # a little less than 0.7
    space = spaces.Numbers((-bound, -math.inf), (bound, math.inf), (2,), "float32")
    for right in ([0.7, 0], [-0.7, 1e30], [0, -1e30]):
        assert space.take(right).tolist() == np.array(right, "float32").tolist()
    for wrong in ([0.7001, 0], [-99.0, 0]):
        with pytest.raises(spaces.IllegalActionError, match="out of the range"):
            space.take(wrong)


values = st.recursive(
    st.one_of(
        st.integers(-(2**63), 2**63 - 1),
        st.text(),
        st.booleans(),
        st.floats(allow_nan=False),
        arrays.arrays(st.sampled_from(["u1", "i8", "f4", "?"]), arrays.array_shapes(max_dims=3, max_side=5)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(), inner, max_size=3),
        st.tuples(inner, inner),
    ),
    max_leaves=8,
)


@given(values)
def test_an_observation_survives_the_wire(value: Any) -> None:
    assert same(observations.unpack(observations.pack(value)), value)
    assert observations.fingerprint(value) == observations.fingerprint(value)
    assert isinstance(observations.in_words(value), str)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return one == other and type(one) is type(other)


def test_a_picture_in_words_is_short() -> None:
    picture = np.zeros((210, 160, 3), np.uint8)
    picture[100:110, 70:80] = 255
    text = observations.in_words(picture)
    assert len(text) < 1_000
    assert "9" in text


def test_colours_of_a_terminal_are_named() -> None:
    assert observations.without_escapes("a\x1b[41mF\x1b[0mb\x1b[34;1mR\x1b[0m\x1b[2K") == "a<red:F>b<blue:R>"


# Catch by itself


@given(st.integers(2, 9), st.integers(0, 5), st.integers(1, 4), st.integers(0, 2**31))
def test_catch_can_always_be_won(width: int, more: int, things: int, seed: int) -> None:
    env = Catch(width, width + more, things)
    observation, _ = env.reset(seed=seed)
    total, over = 0.0, False
    info: dict[str, Any] = {}
    while not over:
        assert env.text(observation).count("\n") == env.height - 1
        observation, reward, over, truncated, info = env.step(Catcher().act(observation))
        assert not truncated
        total += reward
    assert total == things
    assert info == {"is_success": True}
