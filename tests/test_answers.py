import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.shapes.answers import (
    parse_colour,
    parse_direction,
    parse_entailment,
    parse_integer,
    parse_shape,
    parse_yes_no,
)
from proctor.shapes.canvas import LARGE

PARSERS = (parse_yes_no, parse_entailment, parse_integer, parse_direction, parse_colour, parse_shape)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Yes", "Yes"),
        ("no.", "No"),
        ("**No**", "No"),
        ("Answer: Yes.", "Yes"),
        ("YES, there is a red square.", "Yes"),
        ("No, there is not; yes would be wrong.", "No"),
        ("There is no such shape.", "No"),
        ("Let me look. Yes would need a red one, no means none.\nAnswer: No", "No"),
        ("I do not know.", None),
        ("No idea.", None),
        ("No way to tell.", None),
        ("No idea, but I say yes.", "Yes"),
        ("Yes/No", None),
        ("Yes and No.", None),
        ("Yes. No.", None),
        ("Yes. There is a large one, but no small one.", "Yes"),
        ("Yes, there is no red square.", "Yes"),
        ("No\nWait.\nYes", None),
        ("It could be yes or no.", None),
        ("Nothing known. Yesterday, maybe.", None),
        ("", None),
        ("<think>yes? no?</think>No", "No"),
        ("<think>it must be yes", None),
    ],
)
def test_yes_no(text: str, answer: str | None) -> None:
    assert parse_yes_no(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Yes", "Yes"),
        ("no.", "No"),
        ("**Cannot be determined**", "Cannot be determined"),
        ("It can’t be definitively determined from the lines.", "Cannot be determined"),
        ("cannot tell", "Cannot be determined"),
        ("There is no way to know.", "Cannot be determined"),
        ("Not enough information.", "Cannot be determined"),
        ("Unknown", "Cannot be determined"),
        ("Cannot be determined. Yes and no are both possible.", "Cannot be determined"),
        ("Yes, there is no doubt.", "Yes"),
        ("Yes, it is. The rest is unknown.", "Yes"),
        ("The first line says no such thing.\n\nAnswer: Cannot be determined", "Cannot be determined"),
        ("It is to the left of it, so the answer is yes.", "Yes"),
        ("<think>yes? no?</think>Cannot be determined.", "Cannot be determined"),
        ("No, it cannot be determined.", None),
        ("It could be yes, or it cannot be determined.", None),
        ("I do not know.", None),
        ("Nothing, yesterday.", None),
        ("", None),
    ],
)
def test_entailment(text: str, answer: str | None) -> None:
    assert parse_entailment(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("3", "3"),
        ("3\nLet me look again.\n4", None),
        ("3\nLet me look again.\n3", "3"),
        ("There are 10.", "10"),
        ("three", "3"),
        ("Twenty-three shapes.", "23"),
        ("There are no large green triangles.", "0"),
        ("None.", "0"),
        ("1,024", "1024"),
        ("3.0", "3"),
        ("2.5", None),
        ("I count 2 small and 3 large ones.", None),
        ("I count 2 small and 3 large ones. The answer is 5.", "5"),
        ("2 small, 3 large\n\n5", "5"),
        ("I do not know.", None),
        ("someone", None),
        ("", None),
    ],
)
def test_integer(text: str, answer: str | None) -> None:
    assert parse_integer(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Below", "Below"),
        ("Below.", "Below"),
        ("below below below", "Below"),
        ("Below Right", "Below Right"),
        ("right and below", "Below Right"),
        ("It is to the upper left of the circle.", "Above Left"),
        ("bottom-right", "Below Right"),
        ("northeast", "Above Right"),
        ("It is left, not right.", None),
        ("Left or right? The answer is Left.", "Left"),
        ("That is bright.", None),
        ("I do not know.", None),
        ("", None),
    ],
)
def test_direction(text: str, answer: str | None) -> None:
    assert parse_direction(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("small red square", "small red square"),
        ("The large, yellow circle.", "large yellow circle"),
        ("It is the Small Blue Triangle!", "small blue triangle"),
        ("the small red square or the large blue circle", None),
        ("Not the small red square.\nAnswer: large blue circle", "large blue circle"),
        ("red square", None),
        ("", None),
    ],
)
def test_shape(text: str, answer: str | None) -> None:
    assert parse_shape(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("red", "red"),
        ("Blue.", "blue"),
        ("**Purple**", "purple"),
        ("The small square there is green now.", "green"),
        ("It was red, then blue.\nAnswer: green", "green"),
        ("It was red and turned blue, so the answer is blue.", "blue"),
        ("red or blue", None),
        ("It was bored.", None),
        ("I do not know.", None),
        ("", None),
    ],
)
def test_colour(text: str, answer: str | None) -> None:
    assert parse_colour(text) == answer


@pytest.mark.parametrize("colour", LARGE.colours)
def test_every_colour_is_read_back(colour: str) -> None:
    assert parse_colour(f"It is {colour}.") == colour


@given(st.text())
def test_no_text_breaks_a_parser(text: str) -> None:
    for parse in PARSERS:
        assert parse(text) is None or isinstance(parse(text), str)


@given(st.integers(0, 99), st.sampled_from(["{}", "{}.", "There are {}.", "Answer: {}", "**{}**", "{} shapes"]))
def test_every_count_is_read_back(number: int, sentence: str) -> None:
    assert parse_integer(sentence.format(number)) == str(number)
