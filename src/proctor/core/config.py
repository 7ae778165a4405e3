"""RunConfig: every option of a run, defined once; flags, a TOML file and the Python API build it."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from proctor.core.errors import UsageError, did_you_mean
from proctor.core.types import FimFamily, Modality, ShotSource

MAX_COUNT = 10**12  # an index must fit into the 64 bits of the store
Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Positive = Annotated[int, Meta(ge=1, le=MAX_COUNT)]
Price = Annotated[float, Meta(ge=0)]
PositiveFloat = Annotated[float, Meta(gt=0)]

# What an option affects:
# task       how samples are asked or scored; separates the rankings of a leaderboard
# samples    which samples run; their digest shows it
# candidate  how the candidate answers; a leaderboard shows it with the candidate
# identity   names task and candidate or where the model is served; reports show it elsewhere
# operation  no answer or score; it may change when a run is resumed
# location   a path on this machine, which is not stored with the run
Effect = Literal["task", "samples", "candidate", "identity", "operation", "location"]


def option(affects: Effect, description: str, **bounds: Any) -> Meta:
    return Meta(description=description, extra={"affects": affects}, **bounds)


class RunConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of one run. `build_config` creates it and checks the values."""

    task: Annotated[str, option("identity", "task name, or path/to/file.py:Class")]
    model: Annotated[
        str,
        option(
            "identity",
            "smollm2, gguf/PATH, hf/NAME, vllm/NAME, openai/NAME or scripted/NAME",
        ),
    ] = ""
    agent: Annotated[
        str,
        option(
            "identity",
            "module:Class, path/to/file.py:Class, http://HOST:PORT of a remote agent, human for "
            "yourself, or random in stepped environments",
        ),
    ] = ""
    settings: Annotated[dict[str, Any], option("identity", "settings of the task")] = {}
    data: Annotated[
        str | None,
        option(
            "samples",
            "file with the samples: .jsonl or .json, also .gz, or .parquet (default: the hub)",
        ),
    ] = None
    limit: Annotated[
        Positive | None,
        option("samples", "number of samples (default: the task's, which balances the answers)"),
    ] = None
    until_ci: Annotated[
        Annotated[float, Meta(gt=0, lt=0.5)] | None,
        option(
            "task",
            "run until the score is known to ± this (half the width of its 95 % interval), up to "
            "--limit samples; the interval accounts for the repeated looks",
        ),
    ] = None
    limit_start: Annotated[Count, option("samples", "index of the first sample")] = 0
    seed: Annotated[int, option("samples", "seed of samples and sampling")] = 0
    few_shot: Annotated[int, option("task", "number of few-shot examples before the question", ge=0, le=1_000)] = 0
    shots: Annotated[
        ShotSource,
        option("task", "few-shot examples use the canvas of the question, or others"),
    ] = "same"
    modality: Annotated[Modality, option("task", "show a canvas as text, as an image, or as both")] = "text"
    epochs: Annotated[Positive, option("candidate", "how often each sample runs, each with a record")] = 1
    samples: Annotated[int, option("candidate", "completions per sample, judged together", ge=1, le=10_000)] = 1
    k: Annotated[
        list[Annotated[int, Meta(ge=1, le=10_000)]],
        option(
            "operation",
            "k of pass@k and pass^k in the report, up to the number of completions (default: the task's)",
        ),
    ] = []
    temperature: Annotated[float, option("candidate", "0 is greedy", ge=0)] = 0.0
    top_p: Annotated[Annotated[float, Meta(gt=0, le=1)] | None, option("candidate", "nucleus sampling")] = None
    top_k: Annotated[Count | None, option("candidate", "sample from the k most likely tokens; 0 means all")] = None
    max_tokens: Annotated[
        Positive | None,
        option(
            "candidate",
            "maximum tokens per completion (default: the task's; for chat models on servers and "
            "for vllm/ at least 8192, since they may reason first)",
        ),
    ] = None
    max_length: Annotated[
        Positive | None,
        option(
            "candidate",
            "maximum tokens of prompt and completion together, if they can be counted",
        ),
    ] = None
    stop: Annotated[list[str], option("candidate", "stop strings, besides the task's")] = []
    prefix: Annotated[
        str,
        option("candidate", "text before every code prompt, such as a file name in a comment"),
    ] = ""
    instruction_tokens: Annotated[
        str | None,
        option(
            "candidate",
            "USER,END,ASSISTANT: the tokens around the turns of an instruct model, with --api completions",
        ),
    ] = None
    fim: Annotated[
        FimFamily | None,
        option("candidate", "tokens for filling in the middle (default: by the model's name)"),
    ] = None
    postprocess: Annotated[
        bool, option("task", "judge the extracted code of an output instead of the whole output")
    ] = True
    generations: Annotated[
        str | None,
        option(
            "candidate",
            "generations file to judge; the model only names the candidate and is not asked",
        ),
    ] = None
    partial_generations: Annotated[
        str | None,
        option(
            "candidate",
            "generations file for some of the problems; the model is asked for the others",
        ),
    ] = None
    batch_size: Annotated[
        Positive | None,
        option(
            "operation",
            "completions that a local model generates at once (default: for hf/ 512 slots on a "
            "GPU, else 16; for vllm/ 256)",
        ),
    ] = None
    devices: Annotated[Positive, option("operation", "number of GPUs, each with a copy of a local model (hf/)")] = 1
    device_map: Annotated[
        Literal["auto", "balanced", "sequential"] | None,
        option(
            "operation",
            "how to spread one copy of a local model over all GPUs, if it does not fit on one (hf/)",
        ),
    ] = None
    max_memory_per_gpu: Annotated[
        str | None,
        option(
            "operation",
            "GPU memory for a local model, such as 20GiB, or auto; the rest is offloaded (hf/)",
        ),
    ] = None
    precision: Annotated[
        Literal["fp32", "fp16", "bf16"] | None,
        option("candidate", "number format of a local model (default: as stored)"),
    ] = None
    load_in_8bit: Annotated[bool, option("candidate", "quantize a local model to 8 bits")] = False
    load_in_4bit: Annotated[bool, option("candidate", "quantize a local model to 4 bits")] = False
    revision: Annotated[str | None, option("candidate", "branch, tag or commit of a model on the hub")] = None
    trust_remote_code: Annotated[bool, option("candidate", "run code that comes with a model")] = False
    peft_model: Annotated[str | None, option("candidate", "adapter for a local model: its name or folder")] = None
    modeltype: Annotated[Literal["causal", "seq2seq"], option("candidate", "architecture of a local model")] = "causal"
    base_url: Annotated[str | None, option("identity", "URL of an OpenAI-compatible server, ending in /v1")] = None
    api: Annotated[
        Literal["chat", "completions"] | None,
        option(
            "identity",
            "endpoint to use (default: chat, if a local model has a template for it)",
        ),
    ] = None
    api_key_env: Annotated[str, option("operation", "environment variable that holds the API key")] = "OPENAI_API_KEY"
    price_input: Annotated[Price | None, option("identity", "price of a million input tokens")] = None
    price_output: Annotated[Price | None, option("identity", "price of a million output tokens")] = None
    concurrency: Annotated[
        Annotated[int, Meta(ge=1, le=4_096)] | None,
        option(
            "operation",
            "maximum concurrent requests (default: adapts to the server, from 16 up to 256; 16 "
            "for a model without a server)",
        ),
    ] = None
    max_cost: Annotated[
        PositiveFloat | None,
        option(
            "operation",
            "stop before the run, or all runs of the command together, cost more; needs a price",
        ),
    ] = None
    max_tokens_total: Annotated[
        Positive | None,
        option("operation", "stop before prompts and completions use more tokens than this"),
    ] = None
    time_limit: Annotated[
        PositiveFloat | None,
        option("operation", "stop after this time: seconds, or 90s, 30m, 2h"),
    ] = None
    engine: Annotated[
        Literal["local", "ray"],
        option("operation", "run programs and local models on this machine, or on a Ray cluster"),
    ] = "local"
    ray_address: Annotated[
        str | None,
        option(
            "operation",
            "HOST:PORT of a running Ray cluster, or auto (default: start one for the run)",
        ),
    ] = None
    model_cpus: Annotated[
        Positive | None,
        option("operation", "CPUs for each copy of a local model on a Ray cluster without GPUs"),
    ] = None
    display: Annotated[
        str,
        option(
            "task",
            "display for windows: virtual, virtual:WIDTHxHEIGHT, :0 for your own, or none",
        ),
    ] = "virtual"
    film: Annotated[bool, option("operation", "record a video of each episode")] = True
    owamcap: Annotated[
        bool,
        option(
            "operation",
            "also record keyboard, mouse, windows and frames of each episode in episode.mcap",
        ),
    ] = False
    parallel: Annotated[int, option("operation", "number of concurrent episodes of agents", ge=1, le=1_024)] = 1
    isolate_agent: Annotated[
        bool,
        option("task", "isolate the agent's process, at the strongest level of this machine"),
    ] = False
    agent_network: Annotated[bool, option("task", "let an isolated agent use the network")] = False
    agent_gpu: Annotated[bool, option("task", "let an isolated agent use the GPUs")] = False
    agent_files: Annotated[
        list[str],
        option("task", "file or folder that an isolated agent may read, besides its own file"),
    ] = []
    agent_env: Annotated[list[str], option("task", "name of an environment variable for an isolated agent")] = []
    agent_frames: Annotated[
        Literal["png", "jpeg", "raw"],
        option("task", "image format of the frames for a remote agent"),
    ] = "png"
    timeout: Annotated[float, option("operation", "timeout of a request to a server, in seconds", gt=0)] = 600.0
    retries: Annotated[Count, option("operation", "retries after a transient model error")] = 5
    max_errors: Annotated[
        Positive | None,
        option(
            "operation",
            "stop at this many failed samples (default: at 20, if they are over 10 % of all)",
        ),
    ] = None
    generation_only: Annotated[bool, option("operation", "ask now, and judge in a later resume")] = False
    allow_code_execution: Annotated[
        bool, option("operation", "allow programs that a model writes to run in the sandbox")
    ] = False
    program_timeout: Annotated[
        PositiveFloat | None,
        option("task", "timeout of a program in seconds (default: the task's)"),
    ] = None
    sandbox: Annotated[
        Literal["local", "docker", "podman"],
        option("operation", "isolate programs by the local sandbox, or in containers"),
    ] = "local"
    workers: Annotated[Positive | None, option("operation", "concurrent programs (default: one per core)")] = None
    unsafe: Annotated[bool, option("operation", "run programs even if this machine cannot isolate them")] = False
    cache: Annotated[bool, option("operation", "reuse stored responses to identical requests")] = False
    group_by: Annotated[list[str], option("operation", "metadata keys to group the metrics by")] = []
    store: Annotated[
        str | None,
        option(
            "location",
            "folder or postgresql:// URL of the store (default: $PROCTOR_STORE or proctor-runs)",
        ),
    ] = None
    tags: Annotated[list[str], option("operation", "labels for finding the run again")] = []
    out: Annotated[str | None, option("location", "folder for a copy of report and records as files")] = None

    @property
    def candidate(self) -> str:
        """The model or the agent."""
        return self.model or self.agent


TIME_UNITS = {"s": 1, "m": 60, "h": 3600}
URL_PREFIXES = ("http://", "https://")  # of a remote agent
FIELDS = {field.name: field for field in msgspec.structs.fields(RunConfig)}


def find_meta(name: str) -> Meta:
    """The description and effect of an option."""
    metas: tuple[Meta, ...] = FIELDS[name].type.__metadata__
    return next(meta for meta in metas if meta.description)


def options_affecting(*effects: Effect) -> frozenset[str]:
    return frozenset(name for name in FIELDS if (find_meta(name).extra or {})["affects"] in effects)


OPERATIONAL = options_affecting("operation", "location")
PATH_OPTIONS = options_affecting("location")


def build_config(options: Mapping[str, Any]) -> RunConfig:
    """Creates a RunConfig; raises a UsageError that names an unknown key or an invalid value."""
    options = {key: os.fspath(value) if isinstance(value, os.PathLike) else value for key, value in options.items()}
    for key in options:
        if key not in FIELDS:
            raise UsageError(f"Unknown option {key!r}{did_you_mean(key, FIELDS)} Options: {', '.join(FIELDS)}.")
    if isinstance(options.get("time_limit"), str):
        options["time_limit"] = _parse_duration(options["time_limit"])
    if options.get("generations") and not options.get("model") and not options.get("agent"):
        options["model"] = f"scripted/generations:{options['generations']}"
    if not options.get("task"):
        raise UsageError("No task given: a run needs a task, and a model or an agent.")
    if bool(options.get("model")) == bool(options.get("agent")):
        given = "Both a model and an agent" if options.get("model") else "No model and no agent"
        raise UsageError(f"{given} given: a run needs one of them.")
    for key, value in options.items():
        try:
            msgspec.convert(value, FIELDS[key].type, strict=False)
        except msgspec.ValidationError as error:
            expected = str(error).split(" - at ")[0].split(", got ")[0].replace("`", "").replace(" | null", "")
            raise UsageError(f"{key}: {expected[0].lower()}{expected[1:]}, got {value!r}.") from None
        if isinstance(value, float | str) and _is_infinite(value):
            raise UsageError(f"{key}: expected a finite number, got {value!r}.")
        if key in PATH_OPTIONS and value == "":
            raise UsageError(f"{key}: expected the name of a folder, got an empty text.")
    config = msgspec.convert(options, RunConfig, strict=False)
    for key in ("ray_address", "model_cpus"):
        if config.engine != "ray" and getattr(config, key) is not None:
            raise UsageError(f"{key}: applies only to a Ray cluster: add --engine ray.")
    for key in ("device_map", "max_memory_per_gpu"):
        if getattr(config, key) is not None and config.devices > 1:
            raise UsageError(f"{key}: spreads one copy of a model over all GPUs: remove --devices.")
        if getattr(config, key) is not None and config.engine == "ray":
            raise UsageError(f"{key}: on a Ray cluster each copy of a model has one GPU: remove it.")
    if config.generations is not None and config.partial_generations is not None:
        raise UsageError("generations, partial_generations: give only one of them.")
    if config.agent and (config.generations is not None or config.partial_generations is not None):
        raise UsageError("generations, partial_generations: need a model, not an agent.")
    _check_agent(config)
    if config.base_url is not None:
        _check_base_url(config.base_url)
    if config.max_cost is not None and config.price_input is None and config.price_output is None:
        raise UsageError("max_cost: needs a price: give --price-input and --price-output, per million tokens.")
    if config.agent and (config.max_cost is not None or config.max_tokens_total is not None):
        raise UsageError("max_cost, max_tokens_total: an agent does not report its usage: use time_limit.")
    if config.until_ci is not None and config.generation_only:
        raise UsageError("until_ci: needs scores: remove --generation-only.")
    if config.instruction_tokens is not None:
        _check_instruction_tokens(config.instruction_tokens, config.api)
    return config


def _check_agent(config: RunConfig) -> None:
    if config.isolate_agent and not config.agent:
        raise UsageError("isolate_agent: applies only to agents: remove it.")
    if config.isolate_agent and config.agent.startswith(URL_PREFIXES):
        raise UsageError("isolate_agent: does not apply to a remote agent: remove it.")
    for key in ("agent_network", "agent_gpu", "agent_files", "agent_env"):
        if getattr(config, key) and not config.isolate_agent:
            raise UsageError(f"{key}: applies only to an isolated agent: add --isolate-agent.")


def user_path(text: str) -> Path:
    """Expands ~ in a path."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{text!r} is not a valid path: {error}") from None


def _parse_duration(text: str) -> float:
    """Converts 90s, 30m or 2h to seconds."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in TIME_UNITS else (text, "s")
    try:
        return float(number) * TIME_UNITS[unit]
    except ValueError:
        raise UsageError(f"time_limit: expected seconds, or a time such as 90s, 30m or 2h, got {text!r}.") from None


def _is_infinite(value: float | str) -> bool:
    try:
        return not math.isfinite(float(value))
    except ValueError:
        return False


def _check_base_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(f"base_url: expected http://HOST[:PORT]/v1 or https://…, got {url!r}.")
    if parts.username or parts.password or parts.query or parts.fragment:
        # The run stores the URL, which must not contain a secret.
        raise UsageError("base_url: expected only host, port and path; api_key_env names the variable with the key.")


def _check_instruction_tokens(tokens: str, api: str | None) -> None:
    if tokens.count(",") != 2:
        raise UsageError(f"instruction_tokens: expected three texts, USER,END,ASSISTANT, got {tokens!r}.")
    if api == "chat":
        raise UsageError("instruction_tokens: the chat API has its own template: use --api completions.")


def load_toml(path: str | Path) -> dict[str, Any]:
    """Reads options from a TOML file; for the command line also `tasks = [...]` and `[sweep]`."""
    try:
        options = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"Cannot read the configuration {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from None
    known = (*FIELDS, "tasks", "sweep")
    for key in options:
        if key not in known:
            raise UsageError(f"{path}: unknown key {key!r}{did_you_mean(key, known)} Keys: {', '.join(known)}.")
    if not isinstance(options.get("settings", {}), dict):
        raise UsageError(f"{path}: settings must be a table: write [settings] and a line for each.")
    if not isinstance(options.get("task", ""), str):
        raise UsageError(f"{path}: task must be one name; for several write tasks = [...].")
    tasks = options.get("tasks", [])
    if not isinstance(tasks, list) or not all(isinstance(task, str) for task in tasks):
        raise UsageError(f'{path}: tasks must be a list of names: tasks = ["shapes/*"].')
    return options


def to_stored(config: RunConfig) -> dict[str, Any]:
    """The configuration that is stored with a run: without paths on this machine."""
    options: dict[str, Any] = msgspec.to_builtins(config)
    return {key: value for key, value in options.items() if key not in PATH_OPTIONS}


def changed_options(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The options that could change a result and differ between two stored configurations."""
    # Options that are newer than a run get their defaults.
    old, new = (to_stored(build_config({k: v for k, v in c.items() if k in FIELDS})) for c in (old, new))
    return sorted(key for key in old if key not in OPERATIONAL and old[key] != new[key])
