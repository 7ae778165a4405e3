"""Generates reasoning-gym items and prints their number per CPU second: `reasoning_gym_items.py N NAME …`."""

from __future__ import annotations

import json
import sys
import time

import reasoning_gym


def rate(name: str, n: int) -> float:
    dataset = reasoning_gym.create_dataset(name, size=n, seed=0)
    dataset[0]  # what it prepares once is not counted
    started = time.process_time()
    for index in range(n):
        dataset[index]
    return n / (time.process_time() - started)


if __name__ == "__main__":
    print(json.dumps({name: rate(name, int(sys.argv[1])) for name in sys.argv[2:]}))
