import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.metrics.bleu import bleu, bleu_of, overlap, smoothed_bleu, tokens_13a

texts = st.text(alphabet="ab c.,-_5&;<\n'é日", max_size=40)


@pytest.mark.parametrize(
    ("references", "reference_length"),
    [
        ([["hello there general kenobi", "hello there !"], ["foo bar foobar"]], 6),
        ([["hello there general kenobi", "hello there!"], ["foo bar foobar"]], 6),
        ([["hello there general kenobi"], ["foo bar foobar"]], 7),
        (["hello there general kenobi", "foo bar foobar"], 7),
    ],
)
def test_bleu_as_in_the_documentation_of_evaluate(references: list[Any], reference_length: int) -> None:
    assert bleu(["hello there general kenobi", "foo bar foobar"], references) == {
        "bleu": 1.0,
        "precisions": [1.0, 1.0, 1.0, 1.0],
        "brevity_penalty": 1.0,
        "length_ratio": 7 / reference_length,
        "translation_length": 7,
        "reference_length": reference_length,
    }


def test_clipped_precision_as_in_the_paper() -> None:
    """Papineni et al. (2002), section 2.1: two of seven."""
    references = [["the cat is on the mat", "there is a cat on the mat"]]
    assert bleu(["the the the the the the the"], references)["precisions"] == [2 / 7, 0, 0, 0]


# Computed with a transcript of the scripts that evaluate.load("bleu") fetches, outside of that package.
COMPUTED = [
    (
        ["x = 3.14", "print('hi, there')"],
        ["x = 3.141", 'print("hi, there")'],
        (0.0, [0.6666666666666666, 0.2857142857142857, 0.0, 0.0], 0.8007374029168082, 0.8181818181818182, 9, 11),
        (0.25895221586156947, [0.7, 0.375, 0.16666666666666666, 0.25], 0.8007374029168082, 0.8181818181818182, 9, 11),
    ),
    (
        ["Return the sum of a and b."],
        [["Returns the sum of a and b.", "Sum of a, b"]],
        (0.8408964152537145, [0.875, 0.8571428571428571, 0.8333333333333334, 0.8], 1.0, 1.6, 8, 5),
        (0.8633400213704505, [0.8888888888888888, 0.875, 0.8571428571428571, 0.8333333333333334], 1.0, 1.6, 8, 5),
    ),
    (
        ["if a < b:\n    return a", ""],
        [["if a &lt; b:\n    return b"], ["pass"]],
        (0.7013967267997694, [0.8571428571428571, 0.8333333333333334, 0.8, 0.75], 0.8668778997501817, 0.875, 7, 8),
        (0.7289545183625967, [0.875, 0.8571428571428571, 0.8333333333333334, 0.8], 0.8668778997501817, 0.875, 7, 8),
    ),
    (
        ["naïve café – 日本 語 costs ..5 or 1,000-2,000 €"],
        ["naïve cafe – 日本 costs ..5 or 1,000-2,000 €, no more"],
        (
            0.536978781616934,
            [0.8461538461538461, 0.6666666666666666, 0.5454545454545454, 0.5],
            0.8574039191604413, 0.8666666666666667, 13, 15,
        ),
        (
            0.5651873019421646,
            [0.8571428571428571, 0.6923076923076923, 0.5833333333333334, 0.5454545454545454],
            0.8574039191604413, 0.8666666666666667, 13, 15,
        ),
    ),
    (
        ["short"],
        ["a far longer sentence than that, un-\nbroken"],
        (0.0, [0.0, 0.0, 0.0, 0.0], 0.0009118819655545162, 0.125, 1, 8),
        (0.0007667982759693039, [0.5, 1.0, 1.0, 1.0], 0.0009118819655545162, 0.125, 1, 8),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("predictions", "references", "plain", "smoothed"), COMPUTED)
def test_bleu_equals_evaluate(
    predictions: list[str], references: list[Any], plain: tuple[Any, ...], smoothed: tuple[Any, ...]
) -> None:
    assert bleu(predictions, references) == named(*plain)
    assert bleu(predictions, references, smooth=True) == named(*smoothed)


def named(
    score: float, precisions: list[float], brevity_penalty: float, length_ratio: float, length: int, reference: int
) -> dict[str, Any]:
    return {
        "bleu": pytest.approx(score, abs=1e-15),
        "precisions": precisions,
        "brevity_penalty": pytest.approx(brevity_penalty, abs=1e-15),
        "length_ratio": length_ratio,
        "translation_length": length,
        "reference_length": reference,
    }


def test_fewer_orders() -> None:
    score = bleu(["Return the sum of a and b."], ["Returns the sum of a and b."], max_order=2)
    assert score["bleu"] == pytest.approx(math.sqrt(7 / 8 * 6 / 7))
    assert len(score["precisions"]) == 2


@pytest.mark.parametrize(("prediction", "reference"), [("", "test"), ("hello", "\f"), ("", "")])
def test_bleu_without_tokens_is_0(prediction: str, reference: str) -> None:
    for smooth in (False, True):
        score = bleu([prediction], [reference], smooth=smooth)
        assert (score["bleu"], score["brevity_penalty"], score["length_ratio"]) == (0, 0, 0)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=5), st.booleans())
def test_overlaps_can_be_summed_later(pairs: list[tuple[str, str]], smooth: bool) -> None:
    predictions, references = zip(*pairs, strict=True)
    score = bleu(predictions, references, smooth=smooth)
    assert bleu_of([overlap(*pair) for pair in pairs], smooth) == score
    assert 0 <= score["bleu"] <= 1


@given(texts)
def test_equal_texts_score_1(text: str) -> None:
    assert bleu([text], [[text, "something else"]])["bleu"] == (1 if len(tokens_13a(text)) >= 4 else 0)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Don't panic!", "Don't panic !"),
        ("f(x)[0] == {y: 'z'}", "f ( x ) [ 0 ] = = { y : 'z' }"),
        ("snake_case", "snake _ case"),
        ("3.14, 1,000 and .5", "3.14 , 1,000 and . 5"),
        ("end.", "end ."),
        ("e.g. 5.a a.5", "e . g . 5 . a a . 5"),
        ("..5 and 5..", ". .5 and 5 . ."),
        ("1-2 a-b -3", "1 - 2 a-b -3"),
        ("&quot;&amp;&lt;&gt;&amp;lt;", '" & < > <'),
        ("<skipped>x", "x"),
        ("hyphen-\nated\nlines", "hyphenated lines"),
        ("\u3000日本、語\xa0é\f", "日本、語 é"),
        ("٣.٤", "٣ . ٤"),  # only 0 to 9 are digits
        (" \n\t", ""),
    ],
)
def test_tokens_are_those_of_mteval(text: str, tokens: str) -> None:
    assert " ".join(tokens_13a(text)) == tokens


@pytest.mark.parametrize(
    ("predictions", "references", "max_order", "message"),
    [
        (["a"], ["a", "b"], 4, "1 predictions, but references for 2"),
        ([], [], 4, "no predictions"),
        (["a"], [[]], 4, "at least one reference"),
        (["a"], ["a"], 0, "max_order"),
    ],
)
def test_unequal_lists_are_refused(predictions: list[str], references: list[Any], max_order: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bleu(predictions, references, max_order)


def test_bleu_without_predictions_is_refused() -> None:
    with pytest.raises(ValueError, match="no predictions"):
        bleu_of([])


def test_smoothed_bleu_as_in_the_documentation_of_code_x_glue() -> None:
    """The evaluator's own example, in which every word stands for another one."""
    pairs = [
        ("ba da fa ga", "ka la ma fa na pa ra"),
        ("sa la ta va la ta za", "be la za de fe la ge ke le me ne pe re se le te ve ze bi di"),
        ("fi gi la ki li mi ni pi .", "me ri le si ti la vi - zi bo"),
        ("do la fo go go .", "ko la lo mo re la no po . ro so to la vo zo bu du fu la vo ."),
        ("gu da ku lu .", "mu la nu za pu + ru + ."),
    ]
    mean = math.fsum(smoothed_bleu(*pair) for pair in pairs) / len(pairs)
    assert 100 * mean == pytest.approx(9.554726113590661, abs=1e-13)


@pytest.mark.parametrize(
    ("prediction", "reference", "value"),
    # Computed with a transcript of CodeXGLUE's evaluator, which gives the documented figure above.
    [
        ("Return the sum.", "Returns the sum of two numbers.", 0.2744058180470132),
        ("Get foo_bar's value (int) — or None", "get the FOO_BAR value: an int, or none", 0.2314354244247761),
        ("café über 日本", "CAFÉ ÜBER 日本 語", 0.7788007830714049),
        ("x", "y", 1.2213386697554703e-77),
        ("", "three words here", 0.049787068367863944),
        ("", "", 1.0),
    ],
)
def test_smoothed_bleu_equals_code_x_glue(prediction: str, reference: str, value: float) -> None:
    assert smoothed_bleu(prediction, reference) == pytest.approx(value, abs=1e-15)


def test_smoothed_bleu_by_hand() -> None:
    assert smoothed_bleu("a b c d", "a b c e") == pytest.approx((3 / 4 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert smoothed_bleu("a b", "a b c d") == pytest.approx(math.exp(1 - 5 / 3))


@given(texts, texts)
def test_smoothed_bleu_is_a_score(prediction: str, reference: str) -> None:
    assert 0 <= smoothed_bleu(prediction, reference) <= 1
    assert smoothed_bleu(prediction, prediction.upper().lower()) == 1
