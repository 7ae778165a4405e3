"""A GGUF model run in this process by llama.cpp: `smollm2` and `gguf/PATH`."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

from proctor.errors import MissingExtraError, ModelError, UsageError
from proctor.machine import cores
from proctor.models.model import Model, Request, as_messages, as_text, read_completion
from proctor.models.weights import SHA256, fetch_smollm2, file_sha256
from proctor.types import Output, Sample


class Embedded(Model):
    """One request at a time, with no memory of the last, so that an answer depends on its request alone."""

    in_process = True
    blind = "embedded models read text only"

    def __init__(self, name: str, api: str, path: Path | None = None) -> None:
        self.name = name
        self._api = api
        self._path = path  # None: the weights of smollm2, fetched when they are first needed
        self._identity = {"model": name}
        self._server: Any = None
        # A thread of its own: the event loop goes on while llama.cpp computes outside the GIL.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedded-model")

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        if self._server is None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._load)

    def identity(self) -> dict[str, str]:
        return self._identity

    async def generate(self, request: Request) -> Output:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, request)

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _load(self) -> None:
        runtime = import_runtime()
        path = self._path or fetch_smollm2()
        if not path.is_file():
            raise UsageError(f"No model file {path}: gguf/PATH takes the path of a GGUF file.")
        params = runtime.CommonParams()
        params.model.path = str(path)
        params.n_ctx = 0  # as long as the model was trained for
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _threads()
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
        sha256 = file_sha256(path)
        if self._path is None and sha256 != SHA256:
            raise UsageError(f"{path} is damaged (SHA-256 {sha256}): delete it, and it will be fetched again.")
        self._identity = {
            "model": self.name,
            "api": self._api,
            "sha256": sha256,
            "runtime": f"xllamacpp {version('xllamacpp')}",
        }

    def _answer(self, request: Request) -> Output:
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
        try:
            if self._api == "chat":
                reply = self._server.handle_chat_completions(body | {"messages": as_messages(request.prompt)})
            else:
                reply = self._server.handle_completions(body | {"prompt": as_text(request.prompt)})
        except (ValueError, RuntimeError) as error:
            raise ModelError(f"{self.name}: {error}") from None
        if "error" in reply:
            raise ModelError(f"{self.name}: {reply['error'].get('message', reply['error'])}")
        return reply


def _threads() -> int:
    """As many as there are cores, unless somebody who shares them out has said how many."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    return int(said) if said.isdecimal() and int(said) else cores()


def import_runtime() -> Any:
    # Read when the library is loaded: waiting threads that spin can make busy cores 20 times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp
    except ImportError:
        raise MissingExtraError("The embedded model", "embedded") from None
    return xllamacpp
