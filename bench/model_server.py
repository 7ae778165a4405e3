"""A model server that returns HumanEval's solutions after a fixed latency, for code_family.py.

Prints its port. `/v1/stats` returns the average number of requests in progress.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time

from aiohttp import web

from proctor.code import get_task


class SolutionServer:
    def __init__(self, latency: float) -> None:
        rows = get_task("humaneval").rows()
        self._solutions = {row["prompt"].strip(): row["prompt"] + row["canonical_solution"] for row in rows}
        self._latency = latency
        self._numbers = itertools.count()
        self.reset()

    def reset(self) -> None:
        self._active, self._most, self._held, self._first, self._last = 0, 0, 0.0, 0.0, 0.0

    def _count(self, change: int) -> None:
        now = time.monotonic()
        self._first = self._first or now
        self._held += self._active * (now - (self._last or now))
        self._active += change
        self._most = max(self._most, self._active)
        self._last = now

    async def answer(self, request: web.Request) -> web.Response:
        prompt = (await request.json())["messages"][0]["content"]
        self._count(+1)
        await asyncio.sleep(self._latency)
        self._count(-1)
        problem = prompt.partition("```python\n")[2].removesuffix("\n```")
        # Outputs differ, so that each is executed.
        text = f"```python\n{self._solutions[problem]}\n# {next(self._numbers)}\n```"
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})

    async def stats(self, request: web.Request) -> web.Response:
        seconds = self._last - self._first
        stats = {"most": self._most, "mean": self._held / seconds if seconds else 0.0, "seconds": seconds}
        self.reset()
        return web.json_response(stats)


async def serve(latency: float) -> None:
    server = SolutionServer(latency)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", server.answer)
    app.router.add_get("/v1/stats", server.stats)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
