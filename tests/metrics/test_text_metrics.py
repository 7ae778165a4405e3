import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.errors import MissingExtraError
from proctor.metrics.bleu import bleu
from proctor.metrics.text import corpus_bleu, edit_distance, edit_similarity, exact_match

texts = st.text(alphabet="abcé😀 \n", max_size=80)


@pytest.mark.parametrize(
    ("options", "share"),
    [
        ({}, 0.25),
        ({"regexes_to_ignore": ["the ", "yell"], "ignore_case": True, "ignore_punctuation": True}, 0.5),
        ({"regexes_to_ignore": ["the ", "yell", "YELL"], "ignore_case": True, "ignore_punctuation": True}, 0.75),
        (
            {
                "regexes_to_ignore": ["the ", "yell", "YELL"],
                "ignore_case": True,
                "ignore_punctuation": True,
                "ignore_numbers": True,
            },
            1,
        ),
    ],
)
def test_exact_match_as_in_the_documentation_of_evaluate(options: dict[str, Any], share: float) -> None:
    references = ["the cat", "theater", "YELLING", "agent007"]
    predictions = ["cat?", "theater", "yelling", "agent"]
    assert exact_match(predictions, references, **options) == {"exact_match": share}


@pytest.mark.parametrize(
    ("prediction", "reference", "options", "equal"),
    [
        ("a ", "a", {}, False),
        ("", "", {}, True),
        ("?!", "", {"ignore_punctuation": True}, True),
        ("‽", "", {"ignore_punctuation": True}, False),  # ASCII's punctuation and digits alone
        ("٣", "", {"ignore_numbers": True}, False),
        ("STRASSE", "straße", {"ignore_case": True}, False),  # lower case, not case folding
        ("abab", "", {"regexes_to_ignore": ["ab", "^$"]}, True),
        ("A1", "a2", {"regexes_to_ignore": ["[A-Z]"], "ignore_numbers": True, "ignore_case": True}, False),
    ],
)
def test_what_exact_match_ignores(prediction: str, reference: str, options: dict[str, Any], equal: bool) -> None:
    assert exact_match([prediction], [reference], **options) == {"exact_match": equal}


@pytest.mark.parametrize(("predictions", "references"), [([], []), (["a"], []), ([], ["a"])])
def test_empty_lists_are_refused(predictions: list[str], references: list[str]) -> None:
    with pytest.raises(ValueError, match="predictions"):
        exact_match(predictions, references)


def plain_edit_distance(a: str, b: str) -> int:
    """The table of distances of all pairs of beginnings, row by row."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y)))
    return row[-1]


@given(texts, texts)
def test_edit_distance_equals_the_table(a: str, b: str) -> None:
    assert edit_distance(a, b) == plain_edit_distance(a, b)


@given(texts, st.integers(0, 80), st.sampled_from(["", "x", "xyz"]))
def test_edit_distance_of_near_texts(text: str, position: int, inserted: str) -> None:
    assert edit_distance(text[:position] + inserted + text[position:], text) == len(inserted)


@pytest.mark.parametrize(("a", "b", "distance"), [("kitten", "sitting", 3), ("saturday", "sunday", 3), ("", "abc", 3)])
def test_edit_distance_as_in_the_textbook(a: str, b: str, distance: int) -> None:
    assert edit_distance(a, b) == edit_distance(b, a) == distance
    assert edit_similarity(a, b) == 1 - distance / max(len(a), len(b))


@given(texts, texts)
def test_edit_similarity_is_a_score(a: str, b: str) -> None:
    assert 0 <= edit_similarity(a, b) <= 1
    assert (edit_similarity(a, b) == 1) == (a == b)


def test_edit_distance_of_long_texts() -> None:
    a, b = "ab" * 3000, "ba" * 3000
    assert edit_distance(a, b) == 2
    assert edit_similarity("a" * 5000, "b" * 5000) == 0


def test_corpus_bleu_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'proctor-eval\[sacrebleu\]'"):
        corpus_bleu(["a"], ["a"])


@pytest.fixture(scope="module")
def sacrebleu() -> Any:
    return pytest.importorskip("sacrebleu", reason="there is no sacrebleu: pip install 'proctor-eval[sacrebleu]'")


@pytest.mark.usefixtures("sacrebleu")
def test_corpus_bleu_as_in_the_documentation_of_evaluate() -> None:
    score = corpus_bleu(
        ["hello there general kenobi", "on our way to ankh morpork"],
        [["hello there general kenobi", "hello there !"], ["goodbye ankh morpork", "ankh morpork"]],
    )
    assert score == {
        "score": pytest.approx(39.76353643835252, abs=1e-12),
        "counts": [6, 4, 2, 1],
        "totals": [10, 8, 6, 4],
        "precisions": pytest.approx([60, 50, 100 / 3, 25]),
        "bp": 1.0,
        "sys_len": 10,
        "ref_len": 7,
    }


@pytest.mark.usefixtures("sacrebleu")
def test_the_options_of_corpus_bleu() -> None:
    predictions, references = ["Return THE sum of 3.14, b"], ["return the sum of 3.14 and b"]
    assert corpus_bleu(predictions, references)["score"] == pytest.approx(26.269098944241588, abs=1e-12)
    options: dict[str, Any] = {"lowercase": True, "smooth_method": "add-k", "smooth_value": 2, "tokenize": "intl"}
    assert corpus_bleu(predictions, references, **options)["score"] == pytest.approx(74.38301789874404, abs=1e-12)
    assert corpus_bleu(["a"], ["a"], use_effective_order=True)["score"] == pytest.approx(100)


@given(pairs=st.lists(st.tuples(texts, texts.filter(str.strip)), min_size=1, max_size=4))
def test_corpus_bleu_equals_the_package(sacrebleu: Any, pairs: list[tuple[str, str]]) -> None:
    predictions, references = zip(*pairs, strict=True)
    expected = sacrebleu.corpus_bleu(predictions, [references])
    assert corpus_bleu(predictions, references)["score"] == expected.score
    assert corpus_bleu(predictions, references, smooth_method="none")["score"] == pytest.approx(
        100 * bleu(predictions, references)["bleu"], abs=1e-9
    )


@pytest.mark.usefixtures("sacrebleu")
def test_corpus_bleu_needs_as_many_references_for_all() -> None:
    with pytest.raises(ValueError, match="same number of references"):
        corpus_bleu(["a", "b"], [["a", "b"], ["b"]])
