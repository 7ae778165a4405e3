"""A model in vLLM's engine in this process: `vllm/NAME_OR_PATH`."""

from __future__ import annotations

import inspect
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from proctor.core.config import RunConfig
from proctor.core.errors import MissingExtraError, ModelError, TransientModelError, UsageError
from proctor.core.extras import import_extra
from proctor.core.machine import available_mib
from proctor.core.reasoning import reasoning_is_open
from proctor.core.types import Output, Sample, Usage
from proctor.models.base import REASONING_TOKENS, Model, Request, as_messages, as_text

MAX_SLOTS = 4_096  # the maximum of --concurrency
PRECISIONS = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", None: "auto"}
DEFAULT_BATCH_SIZE = 256  # sequences at once
CPU_CACHE_BYTES = 4 << 30  # maximum size of the KV cache on a CPU; VLLM_CPU_KVCACHE_SPACE overrides it
# Defaults: no telemetry, logs on standard error, an hour to load the model.
ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_ENGINE_READY_TIMEOUT_S": "3600",
}
REASONING_TAG = "<think>"  # some chat templates start an answer with it
UNSUPPORTED_OPTIONS = ("load_in_8bit", "load_in_4bit", "peft_model", "device_map")  # of hf/


class VllmModel(Model):
    """Passes each request to vLLM, which batches them itself."""

    in_process = True
    batches_requests = True
    no_images_reason = "vllm/ models take text only"

    def __init__(self, name: str, config: RunConfig) -> None:
        self.name = f"vllm/{name}"
        self._batch_size = config.batch_size or DEFAULT_BATCH_SIZE
        self.slots = min(2 * self._batch_size, MAX_SLOTS)
        for option in UNSUPPORTED_OPTIONS:
            if getattr(config, option):
                raise UsageError(f"{option} does not apply to vllm/: use hf/{name}.")
        if config.modeltype != "causal":
            raise UsageError(f"modeltype: vllm/ runs causal models only: use hf/{name}.")
        self._source, self._config = name, config
        self._identity = {"model": self.name}
        self._numbers = count()
        self._engine: Any = None
        self._tokenizer: Any = None
        self._vllm: Any = None
        self._sockets = ""  # the folder of the engine's sockets, which vLLM does not delete

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        if self._engine is not None:
            return
        self._vllm = vllm = import_vllm(self._source)
        config = self._config
        arguments = vllm.AsyncEngineArgs(
            model=self._source,
            revision=config.revision,
            trust_remote_code=config.trust_remote_code,
            dtype=PRECISIONS[config.precision],
            max_num_seqs=self._batch_size,
            disable_log_stats=True,
            **_platform_arguments(),
        )
        self._sockets = os.environ["VLLM_RPC_BASE_PATH"] = tempfile.mkdtemp(prefix="proctor-")
        try:
            self._engine = vllm.AsyncLLMEngine.from_engine_args(arguments)
        except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: the engine process failed
            raise UsageError(f"{self.name} could not be loaded: {error}") from None
        tokenizer = self._engine.get_tokenizer()
        # Awaitable in some versions of vLLM.
        self._tokenizer = await tokenizer if inspect.isawaitable(tokenizer) else tokenizer
        if not self._tokenizer.chat_template:
            self.default_api = "completions"
        self._identity = {
            "model": self.name,
            "revision": config.revision or "",
            "precision": config.precision or "",
            "api": config.api or self.default_api,
            "runtime": f"vllm {vllm.__version__}",
        }
        if self._chat:
            self.reasoning_tokens = REASONING_TOKENS

    def identity(self) -> dict[str, str]:
        return self._identity

    async def generate(self, request: Request) -> Output:
        started = time.perf_counter()
        prompt = self._in_template(request) if self._chat else as_text(request.prompt)
        # A chat template contains its special tokens.
        tokens: list[int] = self._tokenizer(prompt, add_special_tokens=not self._chat)["input_ids"]
        parameters = self._parameters(request, len(tokens))
        last = None
        try:
            async for output in self._engine.generate(
                {"prompt_token_ids": tokens}, parameters, str(next(self._numbers))
            ):
                last = output  # cumulative
        except ValueError as error:  # an invalid request, for example a prompt that is too long
            raise ModelError(f"{self.name}: {error}") from None
        if last is None or last.outputs[0].finish_reason not in ("stop", "length"):
            raise TransientModelError(f"{self.name} aborted its answer")
        completion = last.outputs[0]
        usage = Usage(len(tokens), len(completion.token_ids))
        text = completion.text
        if self._chat and prompt.rstrip().endswith(REASONING_TAG) and reasoning_is_open(REASONING_TAG + text):
            text = REASONING_TAG + text  # without the tag, the reasoning would count as the answer
        return Output(text, usage, completion.finish_reason, time.perf_counter() - started)

    async def close(self) -> None:
        if self._engine is not None:
            self._engine.shutdown()
            self._engine = None  # its destructor must run before the interpreter exits
        if self._sockets:
            shutil.rmtree(self._sockets, ignore_errors=True)

    @property
    def _chat(self) -> bool:
        return self._identity["api"] == "chat"

    def _in_template(self, request: Request) -> str:
        messages = as_messages(request.prompt)
        has_prefix = messages[-1]["role"] == "assistant"  # the completion continues this answer
        try:
            text: str = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=not has_prefix, continue_final_message=has_prefix
            )
        except Exception as error:  # a template is a program and may raise anything
            raise ModelError(f"the chat template does not take this prompt: {error}") from None
        return text

    def _parameters(self, request: Request, prompt_length: int) -> Any:
        sampling = request.sampling
        max_tokens = sampling.max_tokens
        if sampling.max_length is not None:
            max_tokens = min(max_tokens, sampling.max_length - prompt_length)
        if max_tokens < 1:
            raise ModelError(
                f"the prompt has {prompt_length} tokens and max_length is {sampling.max_length}: "
                "no tokens are left for an answer"
            )
        return self._vllm.SamplingParams(
            max_tokens=max_tokens,
            temperature=sampling.temperature,
            # Explicit, because a model's own defaults would truncate the distribution.
            top_p=sampling.top_p or 1.0,
            top_k=sampling.top_k or -1,
            min_p=0.0,
            stop=list(sampling.stop),
            seed=sampling.seed,
        )


def _platform_arguments() -> dict[str, Any]:
    """Engine arguments for a CPU, where vLLM would otherwise reserve 92 % of the memory and
    compile for minutes."""
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        return {}
    return {"kv_cache_memory_bytes": min(CPU_CACHE_BYTES, available_mib() * 2**20 // 2), "enforce_eager": True}


def import_vllm(name: str) -> Any:
    for variable, value in ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
    try:
        return import_extra("vllm", f"vllm/{name}", "vllm")
    except MissingExtraError as error:
        raise UsageError(
            f"{error} – or use a server: `vllm serve {name}`, then "
            f"--model openai/{name} --base-url http://localhost:8000/v1."
        ) from None
