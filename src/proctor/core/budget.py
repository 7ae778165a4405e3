"""What may be used up: cost, tokens and time, shared by all the runs of one command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

from proctor.core.errors import OutOfBudgetError
from proctor.core.types import Usage

GRACE = 30.0  # seconds that what is under way may take after the time is up
ROUNDING = 1e-9  # of sums of prices


class Budget:
    """Lets a request begin only if the most that it may use still fits beside all that is used and under way."""

    def __init__(self, cost: float | None = None, tokens: int | None = None, seconds: float | None = None) -> None:
        self._limits = {"cost": cost, "tokens": tokens, "seconds": seconds}
        self._used: dict[str, float] = {"cost": 0.0, "tokens": 0, "seconds": 0.0}
        self._reserved: dict[str, float] = {"cost": 0.0, "tokens": 0}
        self._under_way = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._started = monotonic()
        self._spent = ""  # which limit ended it
        self._refused = 0.0  # the most that the first request beyond it might have used

    @property
    def counts_tokens(self) -> bool:
        """Whether it needs to know what an answer used."""
        return self._limits["cost"] is not None or self._limits["tokens"] is not None

    @property
    def ended(self) -> bool:
        """Whether nothing new may begin any more."""
        seconds = self._limits["seconds"]
        if not self._spent and seconds is not None and self._used_seconds() >= seconds:
            self._spent = "seconds"
        return bool(self._spent)

    @property
    def reason(self) -> str:
        """Which limit was reached and how far, once it has ended."""
        if not self._spent:
            return ""
        used, limit = self._account()[self._spent].values()
        match self._spent:
            case "cost":
                refused = f"the next request might exceed it, by costing up to {self._refused:.4f} (see --max-tokens)"
                return f"cost limit: {used:.4f} of {limit:g} used, and {refused}"
            case "tokens":
                refused = f"the next request might exceed it, by using up to {self._refused:,} (see --max-tokens)"
                return f"token limit: {used:,} of {limit:,} used, and {refused}"
        return f"time limit: {used:.0f} s of {limit:g} s used"

    def deadline(self) -> asyncio.Timeout:
        """A context that calls all work off when the time is up and the grace has passed."""
        seconds = self._limits["seconds"]
        return asyncio.timeout(None if seconds is None else max(0.0, seconds - self._used_seconds()) + GRACE)

    def count_before(self, usage: Usage, seconds: float, account: dict[str, dict[str, Any]]) -> None:
        """What a run has used in earlier sittings: by its records, and by its account, where more was counted."""
        self.use(usage)
        for what in ("cost", "tokens"):
            self._used[what] = max(self._used[what], account.get(what, {}).get("used", 0))
        self._used["seconds"] += seconds

    def use(self, usage: Usage) -> None:
        for what, amount in _amounts(usage).items():
            self._used[what] += amount

    def refuse_if_ended(self) -> None:
        if self.ended:
            raise OutOfBudgetError(self.reason)

    @asynccontextmanager
    async def reserved(self, most: Callable[[], Usage]) -> AsyncIterator[None]:
        """Room for one request while it is under way. Waits if others must first turn out to have used less.

        By what others used, the most that this one may use can turn out otherwise, too.
        """
        while (lacking := self._lacking(amounts := _amounts(most()))) and self._under_way and not self.ended:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        if lacking and not self._spent:
            self._spent, self._refused = lacking, amounts[lacking]
        self.refuse_if_ended()
        self._reserve(amounts, 1)
        try:
            yield
        finally:
            self._reserve(amounts, -1)
            for turn in self._waiting:
                if not turn.done():
                    turn.set_result(None)
            self._waiting.clear()

    def account(self) -> dict[str, Any]:
        """Of each limit that was set, how much was used, for the provenance of a run."""
        used = {name: entry for name, entry in self._account().items() if entry["limit"] is not None}
        return {"budget": used} if used else {}

    def _account(self) -> dict[str, dict[str, Any]]:
        used = self._used | {"seconds": round(self._used_seconds(), 3)}
        return {name: {"used": used[name], "limit": limit} for name, limit in self._limits.items()}

    def _used_seconds(self) -> float:
        return self._used["seconds"] + monotonic() - self._started

    def _lacking(self, amounts: dict[str, float]) -> str:
        """What this would take too much of."""
        for what, amount in amounts.items():
            limit = self._limits[what]
            if limit is not None and self._used[what] + self._reserved[what] + amount > limit + ROUNDING:
                return what
        return ""

    def _reserve(self, amounts: dict[str, float], sign: int) -> None:
        self._under_way += sign
        for what, amount in amounts.items():
            self._reserved[what] += sign * amount


def _amounts(usage: Usage) -> dict[str, float]:
    return {"cost": usage.cost or 0.0, "tokens": usage.input_tokens + usage.output_tokens}
