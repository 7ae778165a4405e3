"""Where a completion ends: at the first stop word after the prompt, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.code.stopwords import STOP_WORDS, cut, cut_generation
from proctor.sandbox.languages import LANGUAGES

# Few letters, so that stop words occur, overlap and begin inside one another.
texts = st.text(alphabet="ab\n", max_size=20)
words = st.lists(st.text(alphabet="ab\n", max_size=3), max_size=4)


@given(texts, words)
def test_cut_at_the_earliest_place(text: str, stop_words: list[str]) -> None:
    kept = cut(text, stop_words)
    assert text.startswith(kept)
    sharp = [word for word in stop_words if word]
    assert not any(word in kept for word in sharp)
    # Nothing was cut for nothing: where it ends, the text ends or a stop word begins.
    assert kept == text or any(text.startswith(word, len(kept)) for word in sharp)


@given(texts, words)
def test_cut_once_and_in_whatever_order(text: str, stop_words: list[str]) -> None:
    kept = cut(text, stop_words)
    assert cut(kept, stop_words) == kept
    assert cut(text, reversed(stop_words)) == kept


@given(texts, texts, words, texts)
def test_never_inside_the_prompt_nor_inside_the_suffix(
    prompt: str, completion: str, stop_words: list[str], suffix: str
) -> None:
    kept = cut_generation(prompt + completion + suffix, prompt, stop_words, suffix)
    assert kept == prompt + cut(completion, stop_words) + suffix


def test_a_stop_word_across_the_end_of_the_prompt_is_none() -> None:
    assert cut_generation("# f\ndef f(): pass\ndef g", "# f\n", ["\ndef"]) == "# f\ndef f(): pass"


@pytest.mark.parametrize("suffix", ["", "x"])
def test_a_generation_without_its_prompt_is_a_completion(suffix: str) -> None:
    assert cut_generation("return 1\n\nclass Next:", "def f():\n", ["\nclass"], suffix) == "return 1\n"


def test_prompt_and_suffix_do_not_share_text() -> None:
    assert cut_generation("ab\na", "ab\n", ["\n"], "\na") == "ab"  # too short to hold both: a completion by itself


def test_no_words_no_cut() -> None:
    assert cut("all of it\n\n", []) == cut("all of it\n\n", [""]) == "all of it\n\n"


@pytest.mark.parametrize("language", STOP_WORDS)
def test_the_words_of_a_language(language: str) -> None:
    assert language in {known.name for known in LANGUAGES}
    stop_words = STOP_WORDS[language]
    assert len(set(stop_words)) == len(stop_words)
    # They begin a line, at its very start, and never close what the answer has opened.
    assert all(word.startswith("\n") and word.strip() == word[1:] for word in stop_words)
    assert not any(set(word) & set("})]") for word in stop_words)


ANSWERS = {
    "python": "    total = 0\n    for n in numbers:\n        if n > 0:\n            total += n\n    return total\n",
    "javascript": "  let total = 0;\n  for (const n of numbers) {\n    total += n; // add\n  }\n  return total;\n}\n",
    "java": "        int total = 0;\n        for (int n : numbers) {\n            total += n;\n        }\n\n"
    "        return total;\n    }\n}\n",
    "cpp": "    int total = 0;\n    for (int n : numbers) {\n        total += n;\n    }\n\n    return total;\n}\n",
    "go": "    total := 0\n    for _, n := range numbers {\n        total += n\n    }\n    return total\n}\n",
    "rust": "    let mut total = 0;\n    for n in numbers {\n        total += n;\n    }\n    total\n}\n",
    "bash": '    local total=0\n    for n in "$@"; do\n        total=$((total + n))\n    done\n    echo $total\n}\n',
}  # fmt: skip


@pytest.mark.parametrize("language", ANSWERS)
def test_an_answer_is_left_whole_and_the_next_thing_is_not(language: str) -> None:
    answer = ANSWERS[language]
    assert cut(answer, STOP_WORDS[language]) == answer
    for word in STOP_WORDS[language]:
        assert cut(answer + word + " whatever", STOP_WORDS[language]) == answer


def test_the_words_that_guides_name() -> None:
    named = {
        "python": ["\nclass", "\ndef", "\n#"],
        "javascript": ["\nfunction", "\nconst", "\nlet", "\n//"],
        "java": ["\npublic", "\nprivate", "\nclass", "\n//"],
    }
    for language, stop_words in named.items():
        assert set(stop_words) <= set(STOP_WORDS[language])
