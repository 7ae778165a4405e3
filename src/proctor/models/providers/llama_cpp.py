"""A GGUF model run in this process by llama.cpp: `smollm2` and `gguf/PATH`."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import secrets
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from proctor.core.errors import ModelError, UsageError
from proctor.core.extras import import_extra
from proctor.core.machine import available_mib, cores, resident_mib
from proctor.core.types import Output, Sample
from proctor.models.base import Model, Request, as_messages, as_text, read_completion
from proctor.models.providers.smollm2 import SHA256, fetch_smollm2, file_sha256

logger = logging.getLogger(__name__)

SMALL_MIB = 1_024  # models up to this size run nearly as fast on one core as on several
MAX_COPIES = 16


class LlamaCppModel(Model):
    """Answers one request per copy of the model at a time.

    Batching would be slower on a CPU, and would sum in another order: an answer would depend on
    the other requests.
    """

    in_process = True
    no_images_reason = "embedded models read text only"

    def __init__(self, name: str, api: str, path: Path | None = None, concurrency: int | None = None) -> None:
        self.name = name
        self._api = api
        self._path = path  # None: the weights of smollm2
        self._concurrency = concurrency  # None: as many copies as the machine has room for
        self._identity = {"model": name}
        self._cores_each = 1  # for each copy
        self._idle: queue.SimpleQueue[ModelCopy] = queue.SimpleQueue()
        self._can_load_more = True  # until loading a copy fails
        # A thread per copy: llama.cpp computes without the GIL.
        self._threads: ThreadPoolExecutor | None = None

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        if self._threads is None:
            self._threads = await asyncio.to_thread(self._load)

    def identity(self) -> dict[str, str]:
        return self._identity

    async def generate(self, request: Request) -> Output:
        if self._threads is None:
            raise RuntimeError("prepare() comes before generate()")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._answer, request)

    async def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._idle = queue.SimpleQueue()  # releases the memory and the ports of idle copies

    def _load(self) -> ThreadPoolExecutor:
        import_runtime()
        path = self._path or fetch_smollm2()
        if not path.is_file():
            raise UsageError(f"No model file {path}: gguf/PATH takes the path of a GGUF file.")
        sha256 = file_sha256(path)
        if self._path is None and sha256 != SHA256:
            raise UsageError(f"{path} is damaged (SHA-256 {sha256}): delete it, and it is downloaded again.")
        self._path = path
        self._idle.put(self._load_first(path))
        self._identity = {
            "model": self.name,
            "api": self._api,
            "sha256": sha256,
            "runtime": f"xllamacpp {version('xllamacpp')}, plain attention",
        }
        return ThreadPoolExecutor(self.slots, thread_name_prefix="embedded-model")

    def _load_first(self, path: Path) -> ModelCopy:
        """Load one copy per core of a small model, as far as memory allows; one of a large model."""
        small = path.stat().st_size <= SMALL_MIB * 2**20
        copies = min(_available_cores(), self._concurrency or MAX_COPIES, MAX_COPIES) if small else 1
        before = resident_mib()
        copy = self._load_one(path, copies)
        weight = max(1, resident_mib() - before)  # includes the KV cache of the full context
        max_copies = 1 + available_mib() // 2 // weight
        if max_copies >= copies:
            return copy
        del copy  # frees its memory first
        return self._load_one(path, max_copies)

    def _load_one(self, path: Path, copies: int) -> ModelCopy:
        """Load the first of so many copies, with its share of the cores."""
        self.slots, self._cores_each = copies, max(1, _available_cores() // copies)
        return ModelCopy(path, self._cores_each, self._api)

    def _answer(self, request: Request) -> Output:
        idle, copy = self._idle, self._acquire_copy()
        try:
            return copy.answer(request)
        except (ValueError, RuntimeError) as error:
            raise ModelError(f"{self.name}: {error}") from None
        finally:
            idle.put(copy)

    def _acquire_copy(self) -> ModelCopy:
        """An idle copy, or a new one; there are never more copies than threads."""
        assert self._path is not None
        with suppress(queue.Empty):
            return self._idle.get_nowait()
        if self._can_load_more:
            try:
                return ModelCopy(self._path, self._cores_each, self._api)
            except (UsageError, MemoryError):  # too little memory, since the first copy was loaded
                self._can_load_more = False
                logger.warning("%s: another copy of the model could not be loaded", self.name)
        return self._idle.get()


class ModelCopy:
    """The model in memory. It answers one request at a time and keeps no state between them."""

    def __init__(self, path: Path, threads: int, api: str) -> None:
        self._api = api
        runtime = import_runtime()
        params = runtime.CommonParams()
        params.model.path = str(path)
        params.n_ctx = 0  # the context length of the training
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        # Flash attention sums in an order that depends on the number of threads.
        params.flash_attn_type = runtime.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.warmup = False
        params.verbosity = -1
        params.ui = False
        params.cache_ram_mib = 0
        # The runtime opens a port on loopback that is not used here: a key locks it.
        params.api_keys = [secrets.token_hex(16)]
        try:
            self._server = runtime.Server(params)
        except RuntimeError:
            raise UsageError(f"{path} could not be loaded: is it a GGUF file that llama.cpp can run?") from None

    def answer(self, request: Request) -> Output:
        started = time.perf_counter()
        sampling = request.sampling
        body: dict[str, Any] = {
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            # Explicit, because the runtime's defaults would truncate the distribution.
            "top_p": sampling.top_p or 1.0,
            "top_k": sampling.top_k or 0,
            "min_p": 0.0,
            "stop": list(sampling.stop),
            "seed": sampling.seed % 2**32,
            "cache_prompt": False,
        }
        if sampling.max_length is not None:
            remaining = self._remaining_tokens(request, sampling.max_length)
            body["max_tokens"] = min(sampling.max_tokens, remaining)
        return read_completion(self._reply(request, body), time.perf_counter() - started)

    def _remaining_tokens(self, request: Request, max_length: int) -> int:
        """The tokens that the prompt leaves for a completion; a request for one token counts it."""
        counted = read_completion(self._reply(request, {"max_tokens": 1, "temperature": 0.0}), 0.0)
        length = counted.usage.input_tokens
        if length >= max_length:
            raise ModelError(
                f"the prompt has {length} tokens and max_length is {max_length}: no tokens are left for an answer"
            )
        return max_length - length

    def _reply(self, request: Request, body: dict[str, Any]) -> Any:
        if self._api == "chat":
            reply = self._server.handle_chat_completions(body | {"messages": as_messages(request.prompt)})
        else:
            reply = self._server.handle_completions(body | {"prompt": as_text(request.prompt)})
        if "error" in reply:
            raise RuntimeError(reply["error"].get("message", reply["error"]))
        return reply


def _available_cores() -> int:
    """The number of cores, or OMP_NUM_THREADS, which schedulers such as Ray set."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return int(limit) if limit.isdecimal() and int(limit) else cores()


def import_runtime() -> Any:
    # Set before the import. Waiting threads that spin make busy cores up to 20 times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    return import_extra("xllamacpp", "The embedded model", "embedded")
