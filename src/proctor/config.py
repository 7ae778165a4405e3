"""RunConfig: every option of a run, defined once; flags, a TOML file and the Python API meet here."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from proctor.errors import UsageError, did_you_mean

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]


class RunConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run: what is asked, of whom, and how. Build it with `build_config`, which checks the values."""

    task: Annotated[str, Meta(description="task name, or path/to/file.py:Class")]
    model: Annotated[str, Meta(description="smollm2, gguf/PATH, openai/NAME or scripted/NAME")]
    settings: Annotated[dict[str, Any], Meta(description="settings of the task")] = {}
    limit: Annotated[Positive | None, Meta(description="how many samples (default: the task's own number)")] = None
    limit_start: Annotated[Count, Meta(description="index of the first sample")] = 0
    seed: Annotated[int, Meta(description="seed of samples and sampling")] = 0
    few_shot: Annotated[Count, Meta(description="worked examples shown before the question")] = 0
    epochs: Annotated[Positive, Meta(description="how often each sample is asked, as a record of its own")] = 1
    samples: Annotated[Positive, Meta(description="completions per sample, judged together")] = 1
    temperature: Annotated[float, Meta(ge=0, description="0 is greedy")] = 0.0
    top_p: Annotated[Annotated[float, Meta(gt=0, le=1)] | None, Meta(description="nucleus sampling")] = None
    top_k: Annotated[Positive | None, Meta(description="sample among the k likeliest tokens")] = None
    max_tokens: Annotated[Positive | None, Meta(description="most tokens per completion (default: the task's)")] = None
    stop: Annotated[list[str], Meta(description="stop strings, besides the task's own")] = []
    base_url: Annotated[str | None, Meta(description="address of an OpenAI-compatible server, ending in /v1")] = None
    api: Annotated[Literal["chat", "completions"], Meta(description="which endpoint answers")] = "chat"
    api_key_env: Annotated[str, Meta(description="environment variable that holds the API key")] = "OPENAI_API_KEY"
    price_input: Annotated[Annotated[float, Meta(ge=0)] | None, Meta(description="price of a million input tokens")] = (
        None
    )
    price_output: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="price of a million output tokens")
    ] = None
    concurrency: Annotated[Positive, Meta(description="requests in flight at once")] = 16
    timeout: Annotated[float, Meta(gt=0, description="seconds a request may take")] = 120.0
    retries: Annotated[Count, Meta(description="further tries after a transient model error")] = 5
    max_errors: Annotated[
        Positive | None,
        Meta(description="stop at this many failed samples (default: at 20 failures making over 10 % of all)"),
    ] = None
    cache: Annotated[bool, Meta(description="reuse stored responses to identical requests")] = False
    group_by: Annotated[list[str], Meta(description="metadata keys to break the metrics down by")] = []
    store: Annotated[str | None, Meta(description="folder of the store (default: $PROCTOR_STORE or proctor-runs)")] = (
        None
    )
    out: Annotated[str | None, Meta(description="folder for a copy of report and records as files")] = None


# What may differ when a run is resumed, because it cannot change an answer or a score.
OPERATIONAL = frozenset(
    {"concurrency", "timeout", "retries", "max_errors", "cache", "group_by", "store", "out", "api_key_env"}
)
FIELDS = {field.name: field for field in msgspec.structs.fields(RunConfig)}


def build_config(options: Mapping[str, Any]) -> RunConfig:
    """The one door to a RunConfig: unknown keys and impossible values are named."""
    for key in options:
        if key not in FIELDS:
            raise UsageError(f"Unknown option {key!r}{did_you_mean(key, FIELDS)} Options: {', '.join(FIELDS)}.")
    for key in ("task", "model"):
        if not options.get(key):
            raise UsageError(f"No {key} given: a run needs a task and a model.")
    for key, value in options.items():
        try:
            msgspec.convert(value, FIELDS[key].type, strict=False)
        except msgspec.ValidationError as error:
            problem = str(error).split(" - at ")[0].replace("`", "")
            raise UsageError(f"{key}: {problem[0].lower()}{problem[1:]}, got {value!r}.") from None
    config = msgspec.convert(dict(options), RunConfig, strict=False)
    if config.base_url is not None:
        _check_base_url(config.base_url)
    return config


def _check_base_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"base_url: expected http://HOST[:PORT]/v1 or https://…, got {url!r}.")
    if parts.username or parts.password:
        # The address is stored with the run; a secret in it would be too.
        raise UsageError("base_url: leave user and password out; the key comes from the environment (api_key_env).")


def load_toml(path: str | Path) -> dict[str, Any]:
    """Options from a TOML file. `tasks = [...]` is allowed beside `task` for the command line."""
    try:
        options = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"Cannot read the configuration {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from None
    for key in options:
        if key not in FIELDS and key != "tasks":
            raise UsageError(f"{path}: unknown key {key!r}{did_you_mean(key, FIELDS)} Keys: {', '.join(FIELDS)}.")
    return options


def changed_keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Which options differ between two stored configurations, of those that could change a result."""
    return sorted(k for k in old.keys() | new.keys() if k not in OPERATIONAL and old.get(k) != new.get(k))
