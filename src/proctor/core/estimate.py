"""An upper estimate of the cost of a run, from the prompts of its first samples."""

from __future__ import annotations

from itertools import islice
from statistics import fmean

from proctor.core.config import RunConfig
from proctor.core.task import Task, take_samples
from proctor.core.types import Usage
from proctor.models.base import estimate_tokens
from proctor.models.client import price

SAMPLED = 50  # prompts that are read
OPEN_ENDED = 1_000  # samples that the estimate is for, if their number is unknown


def describe_estimate(task: Task, config: RunConfig, total: int | None, done: int) -> str:
    """One line, or '' without a price. `done` of the `total` records are stored already."""
    if config.price_input is None and config.price_output is None:
        return ""
    if type(task).ask is not Task.ask:
        return f"estimate: none, since {task.name} decides during the run how often it asks"
    samples = islice(take_samples(task, config), SAMPLED)
    try:
        requests = [task.request(sample, 0, config) for sample in samples]
    except Exception:  # the run will record the error of the sample
        requests = []
    if not requests:
        return "estimate: none, since no request could be built"
    remaining = OPEN_ENDED if total is None else total - done
    completions = remaining * config.samples
    max_tokens = fmean(request.sampling.max_tokens for request in requests)
    usage = Usage(
        round(completions * fmean(estimate_tokens(request.prompt) for request in requests)),
        round(completions * max_tokens),
    )
    cost = price(usage, config.price_input, config.price_output).cost or 0.0
    each = "" if total is not None else "for every "
    text = (
        f"estimate: {each}{remaining:,} samples with about {usage.input_tokens:,} tokens of prompts and at most "
        f"{usage.output_tokens:,} of completions (--max-tokens {max_tokens:.0f} each): at most about {cost:.4f}"
    )
    if config.max_cost is not None and total is not None and cost > config.max_cost:
        text += f", more than the limit of {config.max_cost:g}, at which the run stops"
    return text
