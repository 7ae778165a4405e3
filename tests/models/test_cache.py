"""The cache of responses."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor.core.errors import StoreError
from proctor.core.types import Message, Output, Sample, Usage
from proctor.models.base import Request, Sampling
from proctor.models.cache import ResponseCache

IDENTITY = {"model": "openai/m", "server": "http://a/v1", "api": "chat", "described": ""}
REQUEST = Request("prompt", Sampling(max_tokens=5, temperature=0.5, seed=1), 0, Sample("s", 0, "prompt"))
OUTPUT = Output("answer", Usage(3, 1), seconds=2.0)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ResponseCache]:
    with closing(ResponseCache(tmp_path / "responses.db")) as cache:
        yield cache


def replaced(**changes: Any) -> Request:
    return msgspec.structs.replace(REQUEST, **changes)


def sampling(**changes: Any) -> Request:
    return replaced(sampling=msgspec.structs.replace(REQUEST.sampling, **changes))


def test_cache_answers_equal_request(cache: ResponseCache) -> None:
    cache.put(IDENTITY, REQUEST, OUTPUT)
    remembered = cache.get(IDENTITY, REQUEST)
    assert remembered is not None
    assert (remembered.text, remembered.usage, remembered.cached, remembered.seconds) == (
        "answer",
        Usage(3, 1),
        True,
        0,
    )


@pytest.mark.parametrize("field", IDENTITY)
def test_cache_misses_other_model_server_or_endpoint(cache: ResponseCache, field: str) -> None:
    cache.put(IDENTITY, REQUEST, OUTPUT)
    assert cache.get(IDENTITY | {field: "other"}, REQUEST) is None
    assert cache.get(IDENTITY | {"sha256": "new"}, REQUEST) is None


def test_cache_key_contains_every_sampling_setting(cache: ResponseCache) -> None:
    cache.put(IDENTITY, REQUEST, OUTPUT)
    others = {"max_tokens": 6, "temperature": 0.6, "top_p": 0.9, "top_k": 4, "max_length": 9, "stop": ("x",), "seed": 2}
    assert set(others) == {field.name for field in msgspec.structs.fields(Sampling)}, "a new setting needs a case here"
    for field, value in others.items():
        assert cache.get(IDENTITY, sampling(**{field: value})) is None, field


@pytest.mark.parametrize(
    "request_",
    [
        replaced(prompt="prompt "),
        replaced(number=1),
        replaced(prompt=(Message("user", "prompt"),)),
        replaced(schema={"type": "object"}),
    ],
)
def test_cache_key_contains_prompt_number_and_schema(cache: ResponseCache, request_: Request) -> None:
    cache.put(IDENTITY, REQUEST, OUTPUT)
    assert cache.get(IDENTITY, request_) is None


def test_cache_ignores_colliding_key(cache: ResponseCache, tmp_path: Path) -> None:
    """Even if two questions had one hash, the stored question is compared in full."""
    cache.put(IDENTITY, REQUEST, OUTPUT)
    db = sqlite3.connect(tmp_path / "responses.db")
    db.execute("UPDATE responses SET request = ?", (b"another question",))
    db.commit()
    db.close()
    assert cache.get(IDENTITY, REQUEST) is None


def test_unusable_cache_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="Run without --cache"):
        ResponseCache(tmp_path / "file" / "responses.db")
    (tmp_path / "other.db").write_text("not a database, but long enough to be read as one " * 100)
    with pytest.raises(StoreError, match="Run without --cache"):
        ResponseCache(tmp_path / "other.db")


def test_failing_cache_loses_no_answer(cache: ResponseCache, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    db = sqlite3.connect(tmp_path / "responses.db")
    db.execute("DROP TABLE responses")
    db.close()
    for _ in range(2):
        cache.put(IDENTITY, REQUEST, OUTPUT)
        assert cache.get(IDENTITY, REQUEST) is None
    assert len(caplog.records) == 1, "said once"
