import os
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from proctor.core.random import Stream, mix, name_key


def test_draws_are_pinned() -> None:
    """Every data set depends on these numbers: they must never change."""
    assert mix(0) == 16294208416658607535  # the first output of splitmix64 seeded with 0, as published
    assert mix(1, 2, 3) == mix(1, 2, 3) != mix(3, 2, 1)
    stream = Stream(7)
    assert [stream.below(1000) for _ in range(6)] == [721, 649, 549, 604, 348, 182]
    assert name_key("shapes/existence") == 13804739650368117600


def test_name_key_does_not_depend_on_the_hash_seed() -> None:
    code = "from proctor.core.random import name_key; print(name_key('shapes/existence'))"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert seen == {f"{name_key('shapes/existence')}\n".encode()}


@given(st.integers(1, 1000), st.integers(min_value=0))
def test_below_stays_below(n: int, seed: int) -> None:
    stream = Stream(seed)
    assert all(0 <= stream.below(n) < n for _ in range(20))


@given(st.lists(st.integers(), max_size=30), st.integers())
def test_shuffled_is_a_permutation(items: list[int], seed: int) -> None:
    assert sorted(Stream(seed).shuffled(items)) == sorted(items)


def test_draws_are_uniform_over_keys_and_slots() -> None:
    by_slot = Stream(1)
    for draws in ([by_slot.below(10) for _ in range(20_000)], [Stream(1, i).below(10) for i in range(20_000)]):
        assert stats.chisquare(list(Counter(draws).values())).pvalue > 1e-4


@given(st.integers(1, 20), st.integers(0, 2**20 - 1), st.integers())
def test_the_first_that_fits_is_any_of_those_that_do(n: int, fitting: int, seed: int) -> None:
    fits = [i for i in range(n) if fitting >> i & 1]
    if fits:
        assert Stream(seed).first(range(n), fits.__contains__) in fits
    else:
        with pytest.raises(LookupError):
            Stream(seed).first(range(n), fits.__contains__)


def test_all_that_fit_are_equally_likely_to_be_first() -> None:
    drawn = Counter(Stream(seed).first("abcdef", "bcf".__contains__) for seed in range(3000))
    assert set(drawn) == set("bcf")
    assert stats.chisquare(list(drawn.values())).pvalue > 1e-4
