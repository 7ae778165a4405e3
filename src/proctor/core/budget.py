"""Limits on cost, tokens and time, shared by all runs of one command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

from proctor.core.errors import BudgetExhaustedError
from proctor.core.types import Usage

GRACE_SECONDS = 30.0  # for requests in flight when the time is up
TOLERANCE = 1e-9  # for rounding errors in sums of prices


class Budget:
    """Admits a request only if its maximum fits beside what is used and reserved."""

    def __init__(self, cost: float | None = None, tokens: int | None = None, seconds: float | None = None) -> None:
        self._limits = {"cost": cost, "tokens": tokens, "seconds": seconds}
        self._used: dict[str, float] = {"cost": 0.0, "tokens": 0, "seconds": 0.0}
        self._reserved: dict[str, float] = {"cost": 0.0, "tokens": 0}
        self._in_flight = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._started = monotonic()
        self._exhausted = ""  # the limit that was reached
        self._refused = 0.0  # the maximum of the first request that did not fit

    @property
    def counts_tokens(self) -> bool:
        """Whether it needs the usage of each answer."""
        return self._limits["cost"] is not None or self._limits["tokens"] is not None

    @property
    def exhausted(self) -> bool:
        """Whether a limit is reached; then no request may start."""
        seconds = self._limits["seconds"]
        if not self._exhausted and seconds is not None and self._used_seconds() >= seconds:
            self._exhausted = "seconds"
        return bool(self._exhausted)

    @property
    def reason(self) -> str:
        """The limit that was reached, and the amounts."""
        if not self._exhausted:
            return ""
        used, limit = self._account()[self._exhausted].values()
        match self._exhausted:
            case "cost":
                refused = f"the next request might exceed it, by costing up to {self._refused:.4f} (see --max-tokens)"
                return f"cost limit: {used:.4f} of {limit:g} used, and {refused}"
            case "tokens":
                refused = f"the next request might exceed it, by using up to {self._refused:,} (see --max-tokens)"
                return f"token limit: {used:,} of {limit:,} used, and {refused}"
        return f"time limit: {used:.0f} s of {limit:g} s used"

    def deadline(self) -> asyncio.Timeout:
        """A context that cancels all work GRACE_SECONDS after the time is up."""
        seconds = self._limits["seconds"]
        return asyncio.timeout(None if seconds is None else max(0.0, seconds - self._used_seconds()) + GRACE_SECONDS)

    def add_earlier(self, usage: Usage, seconds: float, account: dict[str, dict[str, Any]]) -> None:
        """Adds what earlier sessions of the run used: the larger of records and account."""
        self.use(usage)
        for name in ("cost", "tokens"):
            self._used[name] = max(self._used[name], account.get(name, {}).get("used", 0))
        self._used["seconds"] += seconds

    def use(self, usage: Usage) -> None:
        for name, amount in _amounts(usage).items():
            self._used[name] += amount

    def raise_if_exhausted(self) -> None:
        if self.exhausted:
            raise BudgetExhaustedError(self.reason)

    @asynccontextmanager
    async def reserve(self, maximum: Callable[[], Usage]) -> AsyncIterator[None]:
        """Reserves the maximum of one request while it is in flight. Waits while requests in
        flight may still return a part of their reservations.

        `maximum` is called again after each wait, since it may depend on earlier answers.
        """
        while (
            (exceeded := self._exceeded_by(amounts := _amounts(maximum()))) and self._in_flight and not self.exhausted
        ):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        if exceeded and not self._exhausted:
            self._exhausted, self._refused = exceeded, amounts[exceeded]
        self.raise_if_exhausted()
        self._change_reserved(amounts, 1)
        try:
            yield
        finally:
            self._change_reserved(amounts, -1)
            for turn in self._waiting:
                if not turn.done():
                    turn.set_result(None)
            self._waiting.clear()

    def account(self) -> dict[str, Any]:
        """Used amount and limit of each limit that is set, for the provenance of a run."""
        used = {name: entry for name, entry in self._account().items() if entry["limit"] is not None}
        return {"budget": used} if used else {}

    def _account(self) -> dict[str, dict[str, Any]]:
        used = self._used | {"seconds": round(self._used_seconds(), 3)}
        return {name: {"used": used[name], "limit": limit} for name, limit in self._limits.items()}

    def _used_seconds(self) -> float:
        return self._used["seconds"] + monotonic() - self._started

    def _exceeded_by(self, amounts: dict[str, float]) -> str:
        """The name of the first limit that these amounts would exceed."""
        for name, amount in amounts.items():
            limit = self._limits[name]
            total = self._used[name] + self._reserved[name] + amount
            if limit is not None and total > limit + TOLERANCE:
                return name
        return ""

    def _change_reserved(self, amounts: dict[str, float], sign: int) -> None:
        self._in_flight += sign
        for name, amount in amounts.items():
            self._reserved[name] += sign * amount


def _amounts(usage: Usage) -> dict[str, float]:
    return {"cost": usage.cost or 0.0, "tokens": usage.input_tokens + usage.output_tokens}
