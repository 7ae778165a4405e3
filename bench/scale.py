"""Throughput of runs against the limits of the server and the machine.

python bench/scale.py api       requests per second at a server with 50 ms latency, 100 at once
python bench/scale.py embedded  tokens per second of the embedded model, 64 prompts
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp

from process import print_status

if TYPE_CHECKING:
    from proctor.core.types import Output

HERE = Path(__file__).resolve().parent
REQUESTS, CONCURRENCY, LATENCY = 2_000, 100, 0.05
API_TARGET = 0.9  # of CONCURRENCY / LATENCY
REPEAT = 5
PROMPTS, TOKENS = 64, 32
WORDS = "the red square is left of a blue circle and above one green triangle near to some yellow star"
EMBEDDED_TARGET = 1.2  # times one by one
EMBEDDED_REPEAT = 3


def measure_api() -> dict[str, object]:
    """Requests per second by sockets, aiohttp, the client, and whole runs with samples, scores and store."""
    best = CONCURRENCY / LATENCY
    rates: dict[str, list[float]] = {"sockets": [], "aiohttp": [], "gateway": [], "evaluate": []}
    with slow_server() as url:
        for _ in range(REPEAT):
            rates["sockets"].append(REQUESTS / asyncio.run(ask_sockets(url)))
            rates["aiohttp"].append(REQUESTS / asyncio.run(ask_aiohttp(url)))
            rates["gateway"].append(REQUESTS / asyncio.run(ask_gateway(url)))
            with tempfile.TemporaryDirectory() as folder:
                rates["evaluate"].append(REQUESTS / run_task(url, folder))
    result: dict[str, object] = {"requests": REQUESTS, "concurrency": CONCURRENCY, "latency": LATENCY, "best": best}
    for name, measured in rates.items():
        rate = statistics.median(measured)
        met = "met" if rate >= API_TARGET * best else "MISSED"
        print_status(
            f"api, {name}: {rate:,.0f} requests/s, {rate / best:.1%} of {best:,.0f} (target {API_TARGET:.0%}: {met})"
        )
        result[name] = {"requests_per_second": rate, "share": rate / best, "all": measured}
    return result


@contextmanager
def slow_server() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, str(HERE / "slow_server.py")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


async def time_requests(ask: Callable[[], Coroutine[Any, Any, object]], at_once: int) -> float:
    """Seconds for all requests, connections included."""
    left = REQUESTS

    async def work() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await ask()

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(at_once)))
    return time.perf_counter() - started


async def ask_sockets(url: str) -> float:
    """A minimal client: the limit of the server and of opening connections."""
    loop = asyncio.get_running_loop()
    address = urlsplit(url)
    question = f"POST {address.path}/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{{}}".encode()

    class SocketClient(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            self.answered.set_result(None)  # a short response is one chunk

        async def ask(self) -> None:
            self.answered: asyncio.Future[None] = loop.create_future()
            self.transport.write(question)
            await self.answered

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport = transport

    idle: list[SocketClient] = []

    async def ask() -> None:
        if idle:
            asking = idle.pop()
        else:
            _, asking = await loop.create_connection(SocketClient, address.hostname or "", address.port or 0)
        await asking.ask()
        idle.append(asking)

    seconds = await time_requests(ask, CONCURRENCY)
    for asking in idle:
        asking.transport.close()
    return seconds


async def ask_aiohttp(url: str) -> float:
    """The client library alone: the limit of aiohttp."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask() -> None:
            async with session.post(f"{url}/chat/completions", data=b"{}") as response:
                await response.read()

        return await time_requests(ask, CONCURRENCY)


async def ask_gateway(url: str) -> float:
    from proctor.core.config import build_config
    from proctor.core.types import Sample
    from proctor.models import open_model
    from proctor.models.base import Request, Sampling

    options = {"task": "t", "model": "openai/m", "base_url": url, "concurrency": CONCURRENCY}
    model = open_model(build_config(options))
    await model.prepare(lambda: ())
    request = Request("What is 21 + 21?", Sampling(max_tokens=8), 0, Sample("s", 0, "?"))
    seconds = await time_requests(lambda: model.generate(request), 2 * CONCURRENCY)
    await model.close()
    return seconds


def run_task(url: str, folder: str) -> float:
    """The seconds of the run: from its first request to its last stored record."""
    import proctor

    task = f"{HERE / 'trivial.py'}:Doubling"
    report = proctor.evaluate(task, "openai/m", base_url=url, concurrency=CONCURRENCY, limit=REQUESTS, store=folder)
    assert (report.run.n, report.run.errors) == (REQUESTS, 0)
    return report.run.seconds


def measure_embedded() -> dict[str, object]:
    """Tokens per second one by one, with all cores or one, and at the default concurrency."""
    ways: dict[str, dict[str, object]] = {
        "one by one, all cores": {"concurrency": 1},
        "one by one, one core": {"concurrency": 1},
        "at once": {},
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    answers = []
    for _ in range(EMBEDDED_REPEAT):
        for name, options in ways.items():
            with one_core() if "one core" in name else nullcontext():
                seconds, outputs = asyncio.run(ask_embedded(options))
            rates[name].append(sum(output.usage.output_tokens for output in outputs) / seconds)
            answers.append([output.text for output in outputs])
    assert all(texts == answers[0] for texts in answers)
    result: dict[str, object] = {"prompts": PROMPTS, "tokens": TOKENS}
    medians = {name: statistics.median(measured) for name, measured in rates.items()}
    ratio = medians["at once"] / max(rate for name, rate in medians.items() if name != "at once")
    for name, rate in medians.items():
        print_status(f"embedded, {name}: {rate:.1f} tokens/s")
        result[name] = {"tokens_per_second": rate, "all": rates[name]}
    met = "met" if ratio >= EMBEDDED_TARGET else "MISSED"
    print_status(
        f"embedded: {ratio:.2f} times the better of one by one (target {EMBEDDED_TARGET}: {met}); all answers equal"
    )
    return result | {"ratio": ratio}


@contextmanager
def one_core() -> Iterator[None]:
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        del os.environ["OMP_NUM_THREADS"]


async def ask_embedded(options: dict[str, object]) -> tuple[float, list[Output]]:
    """Seconds for all prompts, after loading the weights, and the outputs."""
    from proctor.core.config import build_config
    from proctor.core.types import Sample
    from proctor.models import open_model
    from proctor.models.base import Request, Sampling

    draw = random.Random(1)
    prompts = [
        " ".join(draw.choices(WORDS.split(), k=draw.randint(20, 120))) + ". Say it otherwise." for _ in range(PROMPTS)
    ]
    model = open_model(build_config({"task": "t", "model": "smollm2"} | options))
    await model.prepare(list)
    started = time.perf_counter()
    outputs = await asyncio.gather(
        *(model.generate(Request(text, Sampling(max_tokens=TOKENS), 0, Sample("s", 0, text))) for text in prompts)
    )
    seconds = time.perf_counter() - started
    await model.close()
    return seconds, outputs


MEASURES: dict[str, Callable[[], dict[str, object]]] = {"api": measure_api, "embedded": measure_embedded}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measures", nargs="*", choices=[*MEASURES, []], help="which (default: all)")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "scale.json", help="where the figures go")
    args = parser.parse_args()
    results = json.loads(args.out.read_text()) if args.out.exists() else {}
    for name in args.measures or MEASURES:
        results[name] = {"date": date.today().isoformat(), **MEASURES[name]()}
    args.out.write_text(json.dumps(results, indent=2) + "\n")
    print_status(f"written to {args.out}")


if __name__ == "__main__":
    main()
