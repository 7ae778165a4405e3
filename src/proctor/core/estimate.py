"""What a run will cost at most, estimated from the prompts of its first samples."""

from __future__ import annotations

from itertools import islice
from statistics import fmean

from proctor.core.config import RunConfig
from proctor.core.task import Task, take_samples
from proctor.core.types import Usage
from proctor.models.base import estimate_tokens
from proctor.models.client import price

LOOKED_AT = 50  # samples
UNKNOWN = 1_000  # samples for which the cost is said where nobody knows how many there will be


def describe_estimate(task: Task, config: RunConfig, total: int | None, done: int) -> str:
    """One line, or nothing where no price is given. Of `total` records, so many are there already."""
    if config.price_input is None and config.price_output is None:
        return ""
    if type(task).ask is not Task.ask:
        return f"estimate: none, since {task.name} decides as it goes how often it asks"
    samples = islice(take_samples(task, config), LOOKED_AT)
    try:
        requests = [task.request(sample, 0, config) for sample in samples]
    except Exception:  # of a sample whose request cannot be made, the record will tell
        requests = []
    if not requests:
        return "estimate: none, since there are no requests to look at"
    left = UNKNOWN if total is None else total - done
    completions = left * config.samples
    each_at_most = fmean(request.sampling.max_tokens for request in requests)
    usage = Usage(
        round(completions * fmean(estimate_tokens(request.prompt) for request in requests)),
        round(completions * each_at_most),
    )
    cost = price(usage, config.price_input, config.price_output).cost or 0.0
    each = "" if total is not None else "for every "
    text = (
        f"estimate: {each}{left:,} samples with about {usage.input_tokens:,} tokens of prompts and at most "
        f"{usage.output_tokens:,} of completions (--max-tokens {each_at_most:.0f} each): at most about {cost:.4f}"
    )
    if config.max_cost is not None and total is not None and cost > config.max_cost:
        text += f", more than the limit of {config.max_cost:g}, at which the run stops if it comes to that"
    return text
