"""RunConfig: every option of a run, defined once; flags, a TOML file and the Python API meet here."""

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

MOST = 10**12  # far more than can be asked; an index must fit into the store's 64 bits
Count = Annotated[int, Meta(ge=0, le=MOST)]
Positive = Annotated[int, Meta(ge=1, le=MOST)]


class RunConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run: what is asked, of whom, and how. Build it with `build_config`, which checks the values."""

    task: Annotated[str, Meta(description="task name, or path/to/file.py:Class")]
    model: Annotated[str, Meta(description="smollm2, gguf/PATH, hf/NAME, vllm/NAME, openai/NAME or scripted/NAME")] = ""
    agent: Annotated[
        str,
        Meta(
            description="module:Class, path/to/file.py:Class, http://HOST:PORT of one on another machine, human for "
            "yourself, or random in stepped environments"
        ),
    ] = ""
    settings: Annotated[dict[str, Any], Meta(description="settings of the task")] = {}
    data: Annotated[
        str | None,
        Meta(description="file with the problems: .jsonl or .json, also .gz, or .parquet (default: the hub)"),
    ] = None
    limit: Annotated[
        Positive | None,
        Meta(description="how many samples (default: the task's own number, which balances the answers)"),
    ] = None
    until_ci: Annotated[
        Annotated[float, Meta(gt=0, lt=0.5)] | None,
        Meta(
            description="ask until the score is known to ± this (half the width of its 95 % interval), up to --limit "
            "samples; the interval allows for it"
        ),
    ] = None
    limit_start: Annotated[Count, Meta(description="index of the first sample")] = 0
    seed: Annotated[int, Meta(description="seed of samples and sampling")] = 0
    few_shot: Annotated[int, Meta(ge=0, le=1_000, description="worked examples shown before the question")] = 0
    shots: Annotated[
        ShotSource, Meta(description="worked examples are about the same canvas as the question, or about others")
    ] = "same"
    modality: Annotated[Modality, Meta(description="how a canvas is shown: in words, as a picture, or as both")] = (
        "text"
    )
    epochs: Annotated[Positive, Meta(description="how often each sample is asked, as a record of its own")] = 1
    samples: Annotated[int, Meta(ge=1, le=10_000, description="completions per sample, judged together")] = 1
    k: Annotated[
        list[Annotated[int, Meta(ge=1, le=10_000)]],
        Meta(description="which pass@k and pass^k are reported, as far as the completions go (default: the task's)"),
    ] = []
    temperature: Annotated[float, Meta(ge=0, description="0 is greedy")] = 0.0
    top_p: Annotated[Annotated[float, Meta(gt=0, le=1)] | None, Meta(description="nucleus sampling")] = None
    top_k: Annotated[Count | None, Meta(description="sample among the k likeliest tokens; 0 is among all")] = None
    max_tokens: Annotated[
        Positive | None,
        Meta(
            description="most tokens per completion (default: the task's; of chat models on servers and of vllm/ "
            "at least 8192, since they may reason first)"
        ),
    ] = None
    max_length: Annotated[
        Positive | None, Meta(description="most tokens of prompt and completion together, where they can be counted")
    ] = None
    stop: Annotated[list[str], Meta(description="stop strings, besides the task's own")] = []
    prefix: Annotated[str, Meta(description="text put before every code prompt, such as a file name in a comment")] = ""
    instruction_tokens: Annotated[
        str | None,
        Meta(description="USER,END,ASSISTANT: what an instruct model's text is made of, with --api completions"),
    ] = None
    fim: Annotated[
        FimFamily | None, Meta(description="tokens for filling in the middle (default: by the model's name)")
    ] = None
    postprocess: Annotated[bool, Meta(description="judge what a code task makes of an output, not the output")] = True
    generations: Annotated[
        str | None, Meta(description="file of generations to judge; the model is not asked, but named as the candidate")
    ] = None
    partial_generations: Annotated[
        str | None, Meta(description="file of generations of some of the problems; the model is asked for the others")
    ] = None
    batch_size: Annotated[
        Positive | None,
        Meta(
            description="completions that a local model makes at once (default: of hf/ 512 in slots on a GPU, else 16; "
            "of vllm/ 256)"
        ),
    ] = None
    devices: Annotated[Positive, Meta(description="GPUs that have a copy of a local model each (hf/)")] = 1
    device_map: Annotated[
        Literal["auto", "balanced", "sequential"] | None,
        Meta(description="spread one copy of a local model over all GPUs, and how: for one that none can hold (hf/)"),
    ] = None
    max_memory_per_gpu: Annotated[
        str | None,
        Meta(
            description="memory of each GPU that a local model may take, as in 20GiB, or auto; what does not fit lies "
            "elsewhere (hf/)"
        ),
    ] = None
    precision: Annotated[
        Literal["fp32", "fp16", "bf16"] | None, Meta(description="numbers of a local model (default: as stored)")
    ] = None
    load_in_8bit: Annotated[bool, Meta(description="quantize a local model to 8 bits")] = False
    load_in_4bit: Annotated[bool, Meta(description="quantize a local model to 4 bits")] = False
    revision: Annotated[str | None, Meta(description="branch, tag or commit of a model on the hub")] = None
    trust_remote_code: Annotated[bool, Meta(description="run code that comes with a model")] = False
    peft_model: Annotated[str | None, Meta(description="adapter to put on a local model: its name or folder")] = None
    modeltype: Annotated[Literal["causal", "seq2seq"], Meta(description="architecture of a local model")] = "causal"
    base_url: Annotated[str | None, Meta(description="address of an OpenAI-compatible server, ending in /v1")] = None
    api: Annotated[
        Literal["chat", "completions"] | None,
        Meta(description="which endpoint answers (default: chat, if a local model has a template for it)"),
    ] = None
    api_key_env: Annotated[str, Meta(description="environment variable that holds the API key")] = "OPENAI_API_KEY"
    price_input: Annotated[Annotated[float, Meta(ge=0)] | None, Meta(description="price of a million input tokens")] = (
        None
    )
    price_output: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="price of a million output tokens")
    ] = None
    concurrency: Annotated[
        Annotated[int, Meta(ge=1, le=4_096)] | None,
        Meta(
            description="most requests in flight at once (default: as many as a server takes, found out from 16 on "
            "up to 256; 16 for a model without a server)"
        ),
    ] = None
    max_cost: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="stop before the run, or all runs of the command together, cost more; needs a price"),
    ] = None
    max_tokens_total: Annotated[
        Positive | None, Meta(description="stop before more tokens are used, of prompts and completions together")
    ] = None
    time_limit: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="stop after so long: seconds, or 90s, 30m, 2h")
    ] = None
    engine: Annotated[
        Literal["local", "ray"], Meta(description="who runs programs and local models: this machine, or a Ray cluster")
    ] = "local"
    ray_address: Annotated[
        str | None,
        Meta(description="HOST:PORT of a running Ray cluster, or auto (default: one is started for the run)"),
    ] = None
    model_cpus: Annotated[
        Positive | None, Meta(description="CPUs of each copy of a local model on a Ray cluster without GPUs")
    ] = None
    display: Annotated[
        str, Meta(description="where windows are shown: virtual, virtual:WIDTHxHEIGHT, :0 for your own, or none")
    ] = "virtual"
    film: Annotated[bool, Meta(description="record each episode")] = True
    owamcap: Annotated[
        bool, Meta(description="record keyboard, mouse, windows and frames of each episode in episode.mcap, too")
    ] = False
    parallel: Annotated[int, Meta(ge=1, le=1_024, description="episodes played at once, by agents")] = 1
    isolate_agent: Annotated[
        bool,
        Meta(description="put the agent's process behind the sandbox's walls, at the strongest level of this machine"),
    ] = False
    agent_network: Annotated[bool, Meta(description="an isolated agent may use the network")] = False
    agent_gpu: Annotated[bool, Meta(description="an isolated agent may use the graphics cards")] = False
    agent_files: Annotated[
        list[str], Meta(description="file or folder that an isolated agent may read, besides its own file")
    ] = []
    agent_env: Annotated[
        list[str], Meta(description="environment variable that an isolated agent is given, by its name")
    ] = []
    agent_frames: Annotated[
        Literal["png", "jpeg", "raw"], Meta(description="how a window is sent to an agent on another machine")
    ] = "png"
    timeout: Annotated[float, Meta(gt=0, description="seconds a request to a server may take")] = 600.0
    retries: Annotated[Count, Meta(description="further tries after a transient model error")] = 5
    max_errors: Annotated[
        Positive | None,
        Meta(description="stop at this many failed samples (default: at 20 failures making over 10 % of all)"),
    ] = None
    generation_only: Annotated[bool, Meta(description="ask, and leave the judging to a later resume")] = False
    allow_code_execution: Annotated[
        bool, Meta(description="let the programs that a model writes run, in the sandbox")
    ] = False
    program_timeout: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="seconds that a program may take (default: the task's)")
    ] = None
    sandbox: Annotated[
        Literal["local", "docker", "podman"], Meta(description="what contains the programs of tasks that run any")
    ] = "local"
    workers: Annotated[Positive | None, Meta(description="programs run at once (default: one per core)")] = None
    unsafe: Annotated[bool, Meta(description="run programs even where this machine cannot contain them")] = False
    cache: Annotated[bool, Meta(description="reuse stored responses to identical requests")] = False
    group_by: Annotated[list[str], Meta(description="metadata keys to break the metrics down by")] = []
    store: Annotated[
        str | None,
        Meta(description="folder or postgresql:// address of the store (default: $PROCTOR_STORE or proctor-runs)"),
    ] = None
    tags: Annotated[list[str], Meta(description="words by which runs are found again in the store")] = []
    out: Annotated[str | None, Meta(description="folder for a copy of report and records as files")] = None

    @property
    def candidate(self) -> str:
        """Whoever sits the exam."""
        return self.model or self.agent


# What may differ when a run is resumed, because it cannot change an answer or a score.
OPERATIONAL = frozenset(
    {
        "concurrency",
        "engine",
        "ray_address",
        "model_cpus",
        "parallel",
        "film",
        "owamcap",
        "timeout",
        "retries",
        "max_errors",
        "max_cost",
        "max_tokens_total",
        "time_limit",
        "batch_size",
        "devices",
        "device_map",
        "max_memory_per_gpu",
        "generation_only",
        "allow_code_execution",
        "sandbox",
        "workers",
        "unsafe",
        "cache",
        "k",
        "group_by",
        "store",
        "tags",
        "out",
        "api_key_env",
    }
)
UNITS = {"s": 1, "m": 60, "h": 3600}
REMOTE = ("http://", "https://")  # how the address of an agent on another machine begins
PATH_OPTIONS = frozenset({"store", "out"})
FIELDS = {field.name: field for field in msgspec.structs.fields(RunConfig)}


def build_config(options: Mapping[str, Any]) -> RunConfig:
    """The one door to a RunConfig: unknown keys and impossible values are named."""
    options = {key: os.fspath(value) if isinstance(value, os.PathLike) else value for key, value in options.items()}
    for key in options:
        if key not in FIELDS:
            raise UsageError(f"Unknown option {key!r}{did_you_mean(key, FIELDS)} Options: {', '.join(FIELDS)}.")
    if isinstance(options.get("time_limit"), str):
        options["time_limit"] = _seconds(options["time_limit"])
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
            raise UsageError(f"{key}: expected the name of a folder, got nothing.")
    config = msgspec.convert(options, RunConfig, strict=False)
    for key in ("ray_address", "model_cpus"):
        if config.engine != "ray" and getattr(config, key) is not None:
            raise UsageError(f"{key}: only a Ray cluster needs it: say --engine ray.")
    for key in ("device_map", "max_memory_per_gpu"):
        if getattr(config, key) is not None and config.devices > 1:
            raise UsageError(f"{key}: it spreads one copy of a model over all GPUs: leave out --devices.")
        if getattr(config, key) is not None and config.engine == "ray":
            raise UsageError(f"{key}: on a Ray cluster each copy of a model has one GPU: leave it out.")
    if config.generations is not None and config.partial_generations is not None:
        raise UsageError("generations, partial_generations: with the one nothing is asked, with the other the rest is.")
    if config.agent and (config.generations is not None or config.partial_generations is not None):
        raise UsageError("generations, partial_generations: they are a model's; an agent has none.")
    _check_agent(config)
    if config.base_url is not None:
        _check_base_url(config.base_url)
    if config.max_cost is not None and config.price_input is None and config.price_output is None:
        raise UsageError("max_cost: no price is known: give --price-input and --price-output, for a million tokens.")
    if config.agent and (config.max_cost is not None or config.max_tokens_total is not None):
        raise UsageError("max_cost, max_tokens_total: what an agent uses cannot be seen; time_limit can be kept.")
    if config.until_ci is not None and config.generation_only:
        raise UsageError("until_ci: without judging no score gets known; leave out --generation-only.")
    if config.instruction_tokens is not None:
        _check_instruction_tokens(config.instruction_tokens, config.api)
    return config


def _check_agent(config: RunConfig) -> None:
    if config.isolate_agent and not config.agent:
        raise UsageError("isolate_agent: a model runs elsewhere and has nothing here: leave it out.")
    if config.isolate_agent and config.agent.startswith(REMOTE):
        raise UsageError("isolate_agent: an agent on another machine has nothing here: leave it out.")
    for key in ("agent_network", "agent_gpu", "agent_files", "agent_env"):
        if getattr(config, key) and not config.isolate_agent:
            raise UsageError(f"{key}: an agent that is not isolated has it anyway: say --isolate-agent, too.")


def user_path(text: str) -> Path:
    """A path as a user writes it, perhaps with ~."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{text!r} names no place: {error}") from None


def _seconds(text: str) -> float:
    """Seconds from 90s, 30m or 2h."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        return float(number) * UNITS[unit]
    except ValueError:
        raise UsageError(f"time_limit: expected seconds, or a time like 90s, 30m or 2h, got {text!r}.") from None


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
        # The address is stored with the run; a secret in it would be too.
        raise UsageError("base_url: nothing but host, port and path; the key comes from the environment (api_key_env).")


def _check_instruction_tokens(tokens: str, api: str | None) -> None:
    if tokens.count(",") != 2:
        raise UsageError(f"instruction_tokens: expected three texts, USER,END,ASSISTANT, got {tokens!r}.")
    if api == "chat":
        raise UsageError("instruction_tokens: a model that chats has a template of its own: say --api completions.")


def load_toml(path: str | Path) -> dict[str, Any]:
    """Options from a TOML file. For the command line there may be `tasks = [...]` beside `task`, and a `[sweep]`."""
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
        raise UsageError(f"{path}: settings are a table: write [settings] and a line for each.")
    if not isinstance(options.get("task", ""), str):
        raise UsageError(f"{path}: task is the name of one; several are tasks = [...].")
    tasks = options.get("tasks", [])
    if not isinstance(tasks, list) or not all(isinstance(task, str) for task in tasks):
        raise UsageError(f'{path}: tasks are a list of names: tasks = ["shapes/*"].')
    return options


def stored_form(config: RunConfig) -> dict[str, Any]:
    """The configuration as it is kept with a run: without places, which mean nothing elsewhere."""
    built: dict[str, Any] = msgspec.to_builtins(config)
    return {key: value for key, value in built.items() if key not in PATH_OPTIONS}


def changed_keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Which options differ between two stored configurations, of those that could change a result."""
    # An option that is newer than the old run had its default then.
    old, new = (stored_form(build_config({k: v for k, v in c.items() if k in FIELDS})) for c in (old, new))
    return sorted(key for key in old if key not in OPERATIONAL and old[key] != new[key])
