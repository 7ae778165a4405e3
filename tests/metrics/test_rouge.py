import pytest

from proctor.metrics.rouge import rouge


def one(name: str, prediction: str, reference: str) -> float:
    scores = rouge([prediction], [reference], [name], use_aggregator=False)[name]
    assert isinstance(scores, list)
    return scores[0]


def test_equal_texts_and_texts_without_anything_in_common() -> None:
    found = rouge(["Hello there", "general kenobi"], ["hello, there!", "General Kenobi"])
    assert found == dict.fromkeys(("rouge1", "rouge2", "rougeL", "rougeLsum"), 1.0)
    assert rouge(["a", ""], ["b", ""]) == dict.fromkeys(("rouge1", "rouge2", "rougeL", "rougeLsum"), 0.0)


def test_by_hand() -> None:
    """Lin's own example: three words of four in common; in order, three of the first and two of the second."""
    reference, first, second = "police killed the gunman", "police kill the gunman", "the gunman kill police"
    assert one("rouge1", first, reference) == one("rouge1", second, reference) == 3 / 4
    assert one("rouge2", first, reference) == one("rouge2", second, reference) == 1 / 3
    assert one("rougeL", first, reference) == 3 / 4
    assert one("rougeL", second, reference) == 2 / 4


def test_a_word_counts_as_often_as_both_have_it() -> None:
    assert one("rouge1", "the the the", "the cat") == 2 * 1 / (3 + 2)


def test_sentences_are_lines() -> None:
    """Lin's example of the union: w1 w2 of one line and w1 w3 w5 of the other are four words of the reference."""
    prediction, reference = "w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5"
    assert one("rougeLsum", prediction, reference) == 2 * 4 / (10 + 5)


# Computed with rouge-score 0.1.2.
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rouge1", 0.761904761904762),
        ("rouge2", 0.3157894736842105),
        ("rougeL", 0.28571428571428564),
        ("rougeLsum", 0.761904761904762),
    ],
)
def test_as_rouge_score_has_it(name: str, value: float) -> None:
    prediction = "Returns the sum of a list.\nAll numbers are counted."
    reference = "All numbers of the list are added.\nIt returns the sum."
    assert one(name, prediction, reference) == pytest.approx(value, abs=1e-15)


def test_the_best_of_several_references_counts() -> None:
    assert rouge(["a b"], [["c d", "a b"]], ["rouge1"]) == {"rouge1": 1}


def test_unknown_kinds() -> None:
    with pytest.raises(ValueError, match="unknown ROUGE type 'rouge0'"):
        rouge(["a"], ["a"], ["rouge0"])
