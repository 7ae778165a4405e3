"""A model run in this process by vLLM's own engine: `vllm/NAME_OR_PATH`."""

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

MAX_SLOTS = 4_096  # as many as --concurrency may ask for
PRECISIONS = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", None: "auto"}
DEFAULT_BATCH_SIZE = 256  # sequences at once
CPU_CACHE_BYTES = 4 << 30  # most memory for keys and values on a CPU; VLLM_CPU_KVCACHE_SPACE overrides it
# Unless the user has set them: no telemetry, no log among the results on standard output, an hour to load the model.
ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_ENGINE_READY_TIMEOUT_S": "3600",
}
REASONING_TAG = "<think>"  # with which some chat templates begin an answer
UNSUPPORTED_OPTIONS = ("load_in_8bit", "load_in_4bit", "peft_model", "device_map")  # what hf/ can and this cannot


class VllmModel(Model):
    """vLLM puts requests into batches itself: each is handed over as it comes."""

    in_process = True
    batches_requests = True
    no_images_reason = "a model of vllm/ is given text only"

    def __init__(self, name: str, config: RunConfig) -> None:
        self.name = f"vllm/{name}"
        self._batch_size = config.batch_size or DEFAULT_BATCH_SIZE
        self.slots = min(2 * self._batch_size, MAX_SLOTS)
        for option in UNSUPPORTED_OPTIONS:
            if getattr(config, option):
                raise UsageError(f"{option}: vllm/ runs models as they are stored: use hf/{name} for this.")
        if config.modeltype != "causal":
            raise UsageError(f"modeltype: vllm/ runs causal models only: use hf/{name} for this one.")
        self._source, self._config = name, config
        self._identity = {"model": self.name}
        self._numbers = count()
        self._engine: Any = None
        self._tokenizer: Any = None
        self._vllm: Any = None
        self._sockets = ""  # the folder of the engine's sockets, which vLLM leaves where they are

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
        except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: the engine's own process has failed
            raise UsageError(f"{self.name} could not be loaded: {error}") from None
        tokenizer = self._engine.get_tokenizer()
        self._tokenizer = await tokenizer if inspect.isawaitable(tokenizer) else tokenizer  # it depends on the version
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
        # A template has all the special tokens that belong there.
        tokens: list[int] = self._tokenizer(prompt, add_special_tokens=not self._chat)["input_ids"]
        parameters = self._parameters(request, len(tokens))
        last = None
        try:
            async for output in self._engine.generate(
                {"prompt_token_ids": tokens}, parameters, str(next(self._numbers))
            ):
                last = output  # each holds all that came before
        except ValueError as error:  # what it does not take: a prompt that is too long, for example
            raise ModelError(f"{self.name}: {error}") from None
        if last is None or last.outputs[0].finish_reason not in ("stop", "length"):
            raise TransientModelError(f"{self.name} gave up in the middle of its answer")
        made = last.outputs[0]
        usage = Usage(len(tokens), len(made.token_ids))
        text = made.text
        if self._chat and prompt.rstrip().endswith(REASONING_TAG) and reasoning_is_open(REASONING_TAG + text):
            text = REASONING_TAG + text  # without it, what the template began would be taken for an answer
        return Output(text, usage, made.finish_reason, time.perf_counter() - started)

    async def close(self) -> None:
        if self._engine is not None:
            self._engine.shutdown()
            self._engine = None  # collected now, while what its destructor needs is there
        if self._sockets:
            shutil.rmtree(self._sockets, ignore_errors=True)

    @property
    def _chat(self) -> bool:
        return self._identity["api"] == "chat"

    def _in_template(self, request: Request) -> str:
        messages = as_messages(request.prompt)
        begun = messages[-1]["role"] == "assistant"  # its answer has been begun, and is gone on with
        try:
            text: str = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=not begun, continue_final_message=begun
            )
        except Exception as error:  # a template is a program, which says in its own way what it does not take
            raise ModelError(f"the chat template does not take this prompt: {error}") from None
        return text

    def _parameters(self, request: Request, used: int) -> Any:
        sampling = request.sampling
        room = sampling.max_tokens
        if sampling.max_length is not None:
            room = min(room, sampling.max_length - used)
        if room < 1:
            raise ModelError(f"the prompt has {used} tokens: no room is left of {sampling.max_length}")
        return self._vllm.SamplingParams(
            max_tokens=room,
            temperature=sampling.temperature,
            # Said in full: a model's own defaults would cut the distribution.
            top_p=sampling.top_p or 1.0,
            top_k=sampling.top_k or -1,
            min_p=0.0,
            stop=list(sampling.stop),
            seed=sampling.seed,
        )


def _platform_arguments() -> dict[str, Any]:
    """Engine arguments without which vLLM does not start on an ordinary CPU.

    It would ask for 92 % of the machine's memory, which other programs use too, and compile for minutes.
    """
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
