from pathlib import Path
from typing import get_args

import msgspec
import pytest

from proctor.core.config import (
    FIELDS,
    Effect,
    RunConfig,
    build_config,
    changed_options,
    find_meta,
    load_toml,
    options_affecting,
)
from proctor.core.errors import UsageError

BASE = {"task": "shapes/existence", "model": "scripted/oracle"}


def test_text_values_are_converted() -> None:
    config = build_config(BASE | {"limit": "20", "temperature": "0.7", "stop": ["\n"]})
    assert (config.limit, config.temperature, config.stop) == (20, 0.7, ["\n"])


def test_config_is_frozen() -> None:
    with pytest.raises(AttributeError):
        build_config(BASE).seed = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"limit": -3}, "limit: expected int >= 1, got -3"),
        ({"limit": 0}, "limit: expected int >= 1, got 0"),
        ({"limit_start": "-1"}, "limit_start: expected int >= 0"),
        ({"limit": "many"}, "limit: "),
        ({"temperature": -1}, "temperature: expected float >= 0"),
        ({"top_p": 1.5}, "top_p: expected float <= 1"),
        ({"concurrency": 0}, "concurrency: expected int >= 1"),
        ({"timeout": 0}, "timeout: expected float > 0"),
        ({"max_errors": 0}, "max_errors: expected int >= 1"),
        ({"temprature": 1}, "did you mean temperature?"),
        ({"api": "chats"}, "api: "),
        ({"base_url": "localhost:8000"}, "base_url: expected http://"),
        ({"base_url": "http://me:secret@host/v1"}, "expected only host, port and path"),
        ({"task": ""}, "No task given"),
    ],
)
def test_bad_values_are_named(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        build_config(BASE | options)
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_toml_file_gives_options(tmp_path: Path) -> None:
    path = tmp_path / "exam.toml"
    path.write_text('task = "shapes/existence"\nlimit = 5\n[settings]\nshapes = 4\n')
    assert load_toml(path) == {"task": "shapes/existence", "limit": 5, "settings": {"shapes": 4}}


@pytest.mark.parametrize(
    ("content", "said"),
    [("limt = 3", "unknown key 'limt'; did you mean limit?"), ("limit = = 3", "not valid TOML"), (b"\xff", "TOML")],
)
def test_bad_toml_is_named(tmp_path: Path, content: str | bytes, said: str) -> None:
    path = tmp_path / "exam.toml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UsageError, match=r"exam\.toml") as caught:
        load_toml(path)
    assert said in str(caught.value)


def test_missing_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load_toml(tmp_path / "none.toml")


def test_changed_options_ignore_operational_ones() -> None:
    old = msgspec.to_builtins(build_config(BASE))
    new = msgspec.to_builtins(build_config(BASE | {"seed": 1, "concurrency": 2, "temperature": 1, "timeout": 5}))
    assert changed_options(old, new) == ["seed", "temperature"]


def test_every_field_has_a_description_and_an_effect() -> None:
    assert {effect for name in FIELDS if (effect := (find_meta(name).extra or {})["affects"])} == set(get_args(Effect))
    assert options_affecting(*get_args(Effect)) == set(FIELDS)
    schema = msgspec.json.schema(RunConfig)["$defs"]["RunConfig"]["properties"]
    assert [name for name, field in schema.items() if not field.get("description")] == []
