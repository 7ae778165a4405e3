"""Models by name: embedded, transformers, vLLM, OpenAI-compatible and scripted."""

from __future__ import annotations

from difflib import get_close_matches

from proctor.core.budget import Budget
from proctor.core.config import RunConfig, user_path
from proctor.core.errors import UnknownNameError
from proctor.models.base import Model
from proctor.models.client import ModelClient

NAMES = {
    "smollm2": "embedded SmolLM2-135M-Instruct, runs on any CPU (extra: embedded)",
    "gguf/PATH": "any GGUF file, run in process by llama.cpp (extra: embedded)",
    "hf/NAME": "a folder or a model on the hub, run in process by transformers (extra: hf); hf/ may be left out",
    "vllm/NAME": "a folder or a model on the hub, run in process by vLLM (extra: vllm)",
    "openai/NAME": "any OpenAI-compatible server; --base-url, key in $OPENAI_API_KEY",
    "scripted/oracle": "answers with the target: the upper bound",
    "scripted/blank": "answers with empty text: the lower bound",
    "scripted/random": "guesses among the possible answers: chance level",
    "scripted/majority": "answers with the most common target",
    "scripted/replay:FILE": "repeats the outputs of exported records",
    "scripted/generations:FILE": "repeats generations of another harness: a JSON list of lists of programs",
}

PROVIDERS = tuple(dict.fromkeys(name.partition("/")[0] for name in NAMES if "/" in name))
TYPO_SIMILARITY = 0.8  # a prefix this similar to a provider is a typo, not an owner on the hub


def open_model(config: RunConfig, budget: Budget | None = None, inputs_known: bool = False) -> ModelClient:
    """``inputs_known``: requests contain only inputs of the samples passed to `prepare`."""
    model = _open(config, inputs_known)
    if config.engine == "ray" and model.in_process:
        from proctor.models.providers.ray import ClusterModel

        model = ClusterModel(model, config, _open)
    if config.partial_generations is not None:
        from proctor.models.providers.generations import PartialGenerations

        path = user_path(config.partial_generations)
        model = PartialGenerations(model, path, config.limit_start, config.samples * config.epochs)
    cache = None
    if config.cache and not config.model.startswith("scripted/"):
        from proctor.models.cache import ResponseCache
        from proctor.models.providers.smollm2 import cache_dir

        cache = ResponseCache(cache_dir() / "responses.db")
    return ModelClient(model, config, cache, budget)


def _open(config: RunConfig, inputs_known: bool = False) -> Model:
    # A provider is imported only when it is used.
    family, _, rest = config.model.partition("/")
    if config.generations is not None:
        from proctor.models.providers.generations import GenerationsModel

        return GenerationsModel(user_path(config.generations), config.task, config.model)
    if config.model == "smollm2" or (family == "gguf" and rest):
        from proctor.models.providers.llama_cpp import LlamaCppModel

        return LlamaCppModel(config.model, config.api or "chat", user_path(rest) if rest else None, config.concurrency)
    if family == "vllm" and rest:
        from proctor.models.providers.vllm import VllmModel

        return VllmModel(rest, config)
    if family == "openai" and rest:
        from proctor.models.providers.openai import OpenAIModel

        return OpenAIModel(rest, config.base_url, config.api or "chat", config.timeout, config.api_key_env)
    if family == "scripted" and rest:
        from proctor.models.scripted import open_scripted

        return open_scripted(rest, config.task)
    if rest and (family == "hf" or not get_close_matches(family, PROVIDERS, 1, TYPO_SIMILARITY)):
        from proctor.models.providers.transformers import TransformersModel

        return TransformersModel(rest if family == "hf" else config.model, config, inputs_known)
    raise UnknownNameError("model", config.model, NAMES, f"Models: {', '.join(NAMES)}.")
