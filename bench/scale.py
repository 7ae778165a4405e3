"""Speed at scale: how near a run comes to what the machine or the server could give at best.

python bench/scale.py api       requests per second at a server with 50 ms latency, 100 at once
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import aiohttp

from process import say

HERE = Path(__file__).resolve().parent
REQUESTS, CONCURRENCY, LATENCY = 2_000, 100, 0.05
API_TARGET = 0.9  # of CONCURRENCY / LATENCY
REPEAT = 5


def measure_api() -> dict[str, object]:
    """By aiohttp alone, by the gateway, and by whole exams: with what makes, judges and stores every sample."""
    best = CONCURRENCY / LATENCY
    rates: dict[str, list[float]] = {"aiohttp": [], "gateway": [], "evaluate": []}
    with slow_server() as url:
        for _ in range(REPEAT):
            rates["aiohttp"].append(REQUESTS / asyncio.run(ask_aiohttp(url)))
            rates["gateway"].append(REQUESTS / asyncio.run(ask_gateway(url)))
            with tempfile.TemporaryDirectory() as folder:
                rates["evaluate"].append(REQUESTS / run_exam(url, folder))
    result: dict[str, object] = {"requests": REQUESTS, "concurrency": CONCURRENCY, "latency": LATENCY, "best": best}
    for name, measured in rates.items():
        rate = statistics.median(measured)
        met = "met" if rate >= API_TARGET * best else "MISSED"
        say(f"api, {name}: {rate:,.0f} requests/s, {rate / best:.1%} of {best:,.0f} (target {API_TARGET:.0%}: {met})")
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


async def ask_aiohttp(url: str) -> float:
    """The client library with nothing of ours: what is lost here is lost to all who use it."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask() -> None:
            async with session.post(f"{url}/chat/completions", data=b"{}") as response:
                await response.read()

        return await time_requests(ask, CONCURRENCY)


async def ask_gateway(url: str) -> float:
    from proctor.config import build_config
    from proctor.models import open_model
    from proctor.models.model import Request, Sampling
    from proctor.types import Sample

    options = {"task": "t", "model": "openai/m", "base_url": url, "concurrency": CONCURRENCY}
    model = open_model(build_config(options))
    await model.prepare(lambda: ())
    request = Request("What is 21 + 21?", Sampling(max_tokens=8), 0, Sample("s", 0, "?"))
    seconds = await time_requests(lambda: model.generate(request), 2 * CONCURRENCY)
    await model.close()
    return seconds


def run_exam(url: str, folder: str) -> float:
    """Seconds that the run itself says it took: from its first request to the last record in the store."""
    import proctor

    exam = f"{HERE / 'trivial.py'}:Doubling"
    report = proctor.evaluate(exam, "openai/m", base_url=url, concurrency=CONCURRENCY, limit=REQUESTS, store=folder)
    assert (report.run.n, report.run.errors) == (REQUESTS, 0)
    return report.run.seconds


MEASURES: dict[str, Callable[[], dict[str, object]]] = {"api": measure_api}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measures", nargs="*", choices=[*MEASURES, []], help="which (default: all)")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "scale.json", help="where the figures go")
    args = parser.parse_args()
    results = json.loads(args.out.read_text()) if args.out.exists() else {}
    for name in args.measures or MEASURES:
        results[name] = {"date": date.today().isoformat(), **MEASURES[name]()}
    args.out.write_text(json.dumps(results, indent=2) + "\n")
    say(f"written to {args.out}")


if __name__ == "__main__":
    main()
