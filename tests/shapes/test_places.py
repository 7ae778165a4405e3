"""Positions and groups of shapes in words, as people say them; and replies that are read once."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_shapes import samples

from helpers.shapes_settings import text_of
from proctor.shapes import typed
from proctor.shapes.canvas import LARGE
from proctor.shapes.patterns import PATTERNS, all_values, name_values, with_article, words_of_values
from proctor.shapes.places import SIDES, name_place, read_place
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS


@given(
    st.integers(2, 48).flatmap(lambda n: st.tuples(st.integers(0, n - 1), st.just(n))), st.sampled_from(sorted(SIDES))
)
def test_a_position_in_words_is_read_back(place: tuple[int, int], axis: str) -> None:
    index, length = place
    side, number = read_place(name_place(index, length, axis))
    low, high = SIDES[axis]
    assert (side, number) in {(low, index), (high, length - 1 - index)}
    assert number <= (length - 1) / 2


def test_positions_are_said_as_people_say_them() -> None:
    assert [name_place(i, 5, "x") for i in range(5)] == [
        "leftmost",
        "second from the left",
        "third from the left",
        "second from the right",
        "rightmost",
    ]
    assert [name_place(i, 4, "y") for i in range(4)] == ["lowest", "second lowest", "second highest", "highest"]


def test_what_is_no_position_is_not_read() -> None:
    with pytest.raises(ValueError, match="not a position"):
        read_place("somewhere")


@pytest.mark.parametrize(
    ("pattern", "values", "one", "many"),
    [
        (("size", "colour"), ("small", "red"), "a small red shape", "small red shapes"),
        (("colour",), ("orange",), "an orange shape", "orange shapes"),
        (("size",), ("large",), "a large shape", "large shapes"),
        (("form",), ("circle",), "a circle", "circles"),
        (("size", "colour", "form"), ("large", "green", "triangle"), "a large green triangle", "large green triangles"),
    ],
)
def test_adjectives_come_before_the_noun(
    pattern: tuple[str, ...], values: tuple[str, ...], one: str, many: str
) -> None:
    assert with_article(name_values(pattern, values)) == one
    assert name_values(pattern, values, plural=True) == many


def test_every_name_is_read_back() -> None:
    for pattern, plural in product(PATTERNS, (False, True)):
        for values in all_values(LARGE, pattern):
            assert words_of_values(name_values(pattern, values, plural=plural)) == set(values)


@pytest.mark.parametrize("name", sorted(REGISTERED_TASKS))
def test_questions_speak_of_highest_and_lowest_and_put_no_attribute_behind(name: str) -> None:
    for sample in samples(60, name):
        question = sample.metadata["question"]
        assert question in text_of(sample)
        assert "from the top" not in question
        assert "from the bottom" not in question
        assert "shape that" not in question
        assert "shapes that" not in question


def test_a_short_reply_is_parsed_once_and_a_long_one_each_time() -> None:
    parsed: list[str] = []

    def parse(text: str, question: str) -> str | None:
        parsed.append(text)
        return text[:1] or None

    long = "a" * (typed.SHORT + 1)
    read = [typed.parse_once(parse, text, f"question {i}") for i, text in enumerate(("b", "", long, "b", "", long))]
    assert read == ["b", None, "a"] * 2
    assert parsed == ["b", "", long, long]
