"""A model server that knows HumanEval by heart and takes its time: started by code_family.py as a process of its own.

Prints its port. `/v1/stats` says how many requests were in its hands on average, from the first to the last.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time

from aiohttp import web

from proctor.code import get_task


class Server:
    def __init__(self, latency: float) -> None:
        rows = get_task("humaneval").rows()
        self._solutions = {row["prompt"].strip(): row["prompt"] + row["canonical_solution"] for row in rows}
        self._latency = latency
        self._numbers = itertools.count()
        self.forget()

    def forget(self) -> None:
        self._in_hand, self._most, self._held, self._first, self._last = 0, 0, 0.0, 0.0, 0.0

    def _count(self, change: int) -> None:
        now = time.monotonic()
        self._first = self._first or now
        self._held += self._in_hand * (now - (self._last or now))
        self._in_hand += change
        self._most = max(self._most, self._in_hand)
        self._last = now

    async def answer(self, request: web.Request) -> web.Response:
        prompt = (await request.json())["messages"][0]["content"]
        self._count(+1)
        await asyncio.sleep(self._latency)
        self._count(-1)
        begun = prompt.partition("```python\n")[2].removesuffix("\n```")
        # No two answers are the same, so that each has to be run.
        text = f"```python\n{self._solutions[begun]}\n# {next(self._numbers)}\n```"
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})

    async def stats(self, request: web.Request) -> web.Response:
        seconds = self._last - self._first
        told = {"most": self._most, "mean": self._held / seconds if seconds else 0.0, "seconds": seconds}
        self.forget()
        return web.json_response(told)


async def serve(latency: float) -> None:
    server = Server(latency)
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
