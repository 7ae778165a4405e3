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

SMALL_MIB = 1_024  # weights of a model that one core computes nearly as fast as several do together
MAX_COPIES = 16


class LlamaCppModel(Model):
    """Answers as many requests at once as it has copies of the model.

    To compute several in one batch would be slower, and adds numbers in another order: an answer would depend on
    what else is asked.
    """

    in_process = True
    no_images_reason = "embedded models read text only"

    def __init__(self, name: str, api: str, path: Path | None = None, at_once: int | None = None) -> None:
        self.name = name
        self._api = api
        self._path = path  # None: the weights of smollm2, fetched when they are first needed
        self._at_once = at_once  # None: as many as the machine can do
        self._identity = {"model": name}
        self._cores = 1  # for each copy
        self._idle: queue.SimpleQueue[ModelCopy] = queue.SimpleQueue()
        self._may_grow = True  # further copies can be loaded, as far as is known
        # A thread for each copy: the event loop goes on while llama.cpp computes outside the GIL.
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
            self._idle = queue.SimpleQueue()  # copies that are not at work free their memory and their port now

    def _load(self) -> ThreadPoolExecutor:
        import_runtime()
        path = self._path or fetch_smollm2()
        if not path.is_file():
            raise UsageError(f"No model file {path}: gguf/PATH takes the path of a GGUF file.")
        sha256 = file_sha256(path)
        if self._path is None and sha256 != SHA256:
            raise UsageError(f"{path} is damaged (SHA-256 {sha256}): delete it, and it will be fetched again.")
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
        """A core for each copy of a small model, as far as there is memory; all of them for that of a large one."""
        small = path.stat().st_size <= SMALL_MIB * 2**20
        wanted = min(_cores(), self._at_once or MAX_COPIES, MAX_COPIES) if small else 1
        before = resident_mib()
        copy = self._load_one(path, wanted)
        weight = max(1, resident_mib() - before)  # with room for all the context that the model was trained for
        room = 1 + available_mib() // 2 // weight
        if room >= wanted:
            return copy
        del copy  # before the next is loaded
        return self._load_one(path, room)

    def _load_one(self, path: Path, copies: int) -> ModelCopy:
        """One of so many."""
        self.slots, self._cores = copies, max(1, _cores() // copies)
        return ModelCopy(path, self._cores, self._api)

    def _answer(self, request: Request) -> Output:
        idle, copy = self._idle, self._take()
        try:
            return copy.answer(request)
        except (ValueError, RuntimeError) as error:
            raise ModelError(f"{self.name}: {error}") from None
        finally:
            idle.put(copy)

    def _take(self) -> ModelCopy:
        """A copy that nobody asks, else a new one: there are no more of them than threads."""
        assert self._path is not None
        with suppress(queue.Empty):
            return self._idle.get_nowait()
        if self._may_grow:
            try:
                return ModelCopy(self._path, self._cores, self._api)
            except (UsageError, MemoryError):  # the first could be loaded
                self._may_grow = False
                logger.warning("%s: another copy of the model could not be loaded", self.name)
        return self._idle.get()


class ModelCopy:
    """The model in memory. It answers one request at a time, with no memory of the last."""

    def __init__(self, path: Path, threads: int, api: str) -> None:
        self._api = api
        runtime = import_runtime()
        params = runtime.CommonParams()
        params.model.path = str(path)
        params.n_ctx = 0  # as long as the model was trained for
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        # The fast kind adds up the parts of a long text in another order for another number of threads.
        params.flash_attn_type = runtime.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.warmup = False
        params.verbosity = -1
        params.ui = False
        params.cache_ram_mib = 0
        # The runtime opens a port on loopback that nobody is meant to use: a key keeps others out.
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
            # Said in full: the runtime's own defaults would cut the distribution.
            "top_p": sampling.top_p or 1.0,
            "top_k": sampling.top_k or 0,
            "min_p": 0.0,
            "stop": list(sampling.stop),
            "seed": sampling.seed % 2**32,
            "cache_prompt": False,
        }
        if sampling.max_length is not None:
            body["max_tokens"] = min(sampling.max_tokens, self._room(request, sampling.max_length))
        return read_completion(self._reply(request, body), time.perf_counter() - started)

    def _room(self, request: Request, length: int) -> int:
        """How many tokens the prompt leaves of this length. It is counted by having it read."""
        read = read_completion(self._reply(request, {"max_tokens": 1, "temperature": 0.0}), 0.0)
        if read.usage.input_tokens >= length:
            raise ModelError(f"the prompt has {read.usage.input_tokens} tokens: no room is left of {length}")
        return length - read.usage.input_tokens

    def _reply(self, request: Request, body: dict[str, Any]) -> Any:
        if self._api == "chat":
            reply = self._server.handle_chat_completions(body | {"messages": as_messages(request.prompt)})
        else:
            reply = self._server.handle_completions(body | {"prompt": as_text(request.prompt)})
        if "error" in reply:
            raise RuntimeError(reply["error"].get("message", reply["error"]))
        return reply


def _cores() -> int:
    """As many as there are, unless somebody who shares them out has said how many."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    return int(said) if said.isdecimal() and int(said) else cores()


def import_runtime() -> Any:
    # Read when the library is loaded: waiting threads that spin can make busy cores 20 times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    return import_extra("xllamacpp", "The embedded model", "embedded")
