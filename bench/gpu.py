"""How fast a local model generates on a GPU: our slots beside `generate`, one prompt at a time, in this one process.

    PYTHONPATH=src python bench/gpu.py                  the model and the workloads below, in bf16
    PYTHONPATH=src python bench/gpu.py --quick          a smaller share of the baseline

A model of Llama's kind with 1.26 billion random weights; 164 prompts of random tokens, about as long as those of
HumanEval, 20 samples of each, temperature 0.2, top_p 0.95. W1: 256 new tokens for every sample. W2: between 20 and 256
tokens, 90 on average. The baseline is `generate(num_return_sequences=20)`, measured with a few of the prompts, spread
evenly: it goes through them one by one, so a few say as much as all. Figures are useful tokens per second, prefill
included; a first run, in which graphs are recorded and memory is found, is shown apart.

The roofline of a step is the time for its products (their arithmetic, or reading the weights, whichever takes longer)
and for reading all keys and values once, at rates measured here.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import torch
import transformers

from proctor.core.types import Sample
from proctor.models.base import Request, Sampling
from proctor.models.inference.completion import CONTEXT, Completion
from proctor.models.inference.job import Job
from proctor.models.inference.prompt import TokenizedPrompt
from proctor.models.inference.slots import SlotEngine
from proctor.models.inference.stepper import Stepper

PROMPTS, SAMPLES, LONGEST = 164, 20, 256
TEMPERATURE, TOP_P = 0.2, 0.95
STOP = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")
SHAPE = {
    "vocab_size": 49_152,
    "hidden_size": 2_048,
    "intermediate_size": 5_504,
    "num_hidden_layers": 24,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}
SMALL = {
    "vocab_size": 1_024,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
}


def make_model(shape: dict[str, int], dtype: torch.dtype, device: str) -> Any:
    config = transformers.LlamaConfig(
        **shape, max_position_embeddings=4_096, bos_token_id=None, eos_token_id=None, pad_token_id=0
    )
    torch.manual_seed(1)
    with torch.device(device):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype).eval()


def make_tokenizer(size: int) -> Any:
    """Of invented words, for what the host has to do with tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    random = Random(3)
    words = dict.fromkeys(pre_tokenizers.ByteLevel.alphabet())
    while len(words) < size:
        words["".join(random.choices("Ġetaoinshrdlu()_:.Ċ", k=random.randint(2, 8)))] = None
    tokenizer = Tokenizer(models.BPE({word: number for number, word in enumerate(words)}, []))
    tokenizer.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def make_prompts(vocabulary: int) -> list[tuple[int, ...]]:
    """Random tokens, 128 on average; the lengths are spread as those of HumanEval's prompts are."""
    random = Random(1)
    lengths = [min(max(round(random.lognormvariate(4.74, 0.47)), 30), 400) for _ in range(PROMPTS)]
    return [tuple(random.randrange(vocabulary) for _ in range(length)) for length in lengths]


def varied_lengths() -> list[list[int]]:
    random = Random(2)
    return [[min(max(round(random.gauss(90, 37)), 20), LONGEST) for _ in range(SAMPLES)] for _ in range(PROMPTS)]


class Slots:
    def __init__(self, model: Any, tokenizer: Any, prompts: list[tuple[int, ...]], slots: int) -> None:
        self.prompts = prompts
        self._tokenizer = tokenizer
        self.stepper = Stepper(model, slots)
        self.engine = SlotEngine("bench", self.stepper, self._begin, slots)

    def _begin(self, request: Request) -> Completion:
        prompt = self.prompts[int(str(request.prompt))]
        limit = request.sampling.max_tokens
        return Completion(
            TokenizedPrompt(prompt), request.sampling, limit, frozenset(), self._tokenizer, prompt[-CONTEXT:]
        )

    def run(self, lengths: list[list[int]], **settings: Any) -> tuple[float, list[list[int]]]:
        """Seconds, and the tokens of every completion."""
        jobs = []
        for number, each in enumerate(lengths):
            for copy, length in enumerate(each):
                sampling = Sampling(length, seed=SAMPLES * number + copy, **settings)
                jobs.append(Job(Request(str(number), sampling, copy, Sample("s", 0, ""))))
        torch.cuda.synchronize()
        start = time.perf_counter()
        self.engine.submit(jobs)
        for job in jobs:
            job.future.result()
        return time.perf_counter() - start, [job.completion.tokens for job in jobs]

    def close(self) -> None:
        self.engine.close()


def generate(model: Any, prompts: list[tuple[int, ...]], lengths: list[list[int]]) -> float:
    """Useful tokens per second, a prompt at a time."""
    tokens, start = 0, time.perf_counter()
    for prompt, each in zip(prompts, lengths, strict=True):
        model.generate(
            torch.tensor([prompt], device=model.device),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long, device=model.device),
            do_sample=True,
            temperature=TEMPERATURE,
            top_p=TOP_P,
            top_k=0,
            num_return_sequences=SAMPLES,
            max_new_tokens=max(each),
            pad_token_id=0,
        )
        tokens += sum(each)
    torch.cuda.synchronize()
    return tokens / (time.perf_counter() - start)


def seconds(work: Callable[[], Any], times: int = 10) -> float:
    """The median of several, by the device's clock."""
    found = []
    for _ in range(times + 2):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        end.synchronize()
        found.append(start.elapsed_time(end) / 1e3)
    return float(statistics.median(found[2:]))


def measure_ceilings() -> tuple[float, float]:
    """Bytes and operations of a second: a large copy, a large product."""
    source = torch.randint(255, (2**32,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    bandwidth = 2 * source.numel() / seconds(lambda: target.copy_(source))
    side = 8_192
    left, right = (torch.randn(side, side, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    return bandwidth, 2 * side**3 / seconds(lambda: left @ right)


def roofline(model: Any, prompts: list[tuple[int, ...]], lengths: list[list[int]], slots: int) -> float:
    """Tokens per second if nothing cost anything but what cannot be left out."""
    bandwidth, rate = measure_ceilings()
    weights = sum(p.numel() for p in model.parameters()) - model.get_input_embeddings().weight.numel()
    config = model.config
    bytes_each = 2 * 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim  # a token
    tokens = sum(map(sum, lengths))
    seen = sum(length * (len(p) + length / 2) for p, each in zip(prompts, lengths, strict=True) for length in each)
    products = max(2 * weights / bandwidth, 2 * weights * slots / rate)
    reading = slots * bytes_each * seen / tokens / bandwidth
    print(
        f"ceilings: {bandwidth / 1e12:.2f} TB/s, {rate / 1e12:.0f} TFLOP/s; a step of {slots} rows: products "
        f"{1e3 * products:.2f} ms, keys and values {1e3 * reading:.2f} ms"
    )
    return float(slots / (products + reading))


def check() -> dict[str, Any]:
    """With 32 bits: the tokens of `generate`, and of one completion the same in every company."""
    model = make_model(SMALL, torch.float32, "cuda")
    prompts = [prompt[: 3 + 5 * i % 90] for i, prompt in enumerate(make_prompts(SMALL["vocab_size"])[:24])]
    lengths = [[8 + 3 * i] * 2 for i in range(len(prompts))]
    theirs = [
        model.generate(torch.tensor([prompt], device="cuda"), do_sample=False, max_new_tokens=each[0], pad_token_id=0)[
            0, len(prompt) :
        ].tolist()
        for prompt, each in zip(prompts, lengths, strict=True)
    ]
    tokenizer = make_tokenizer(SMALL["vocab_size"])
    sampled = []
    for slots in (48, 16, 3):
        ours = Slots(model, tokenizer, prompts, slots)
        greedy = ours.run(lengths)[1]
        sampled.append(ours.run(lengths, temperature=1.0, top_p=0.9, top_k=300)[1])
        ours.close()
        model.set_attn_implementation("sdpa")
    wrong = sum(ours != expected for ours, expected in zip(greedy[::2], theirs, strict=True))
    differing = sum(len({tuple(each) for each in same}) > 1 for same in zip(*sampled, strict=True))
    return {"greedy completions unlike generate's": wrong, "samples that differ by slots": differing, "of": 48}


def profile(ours: Slots, steps: int) -> str:
    lengths = [[steps] * SAMPLES for _ in range(PROMPTS // 6)]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        ours.run(lengths, temperature=TEMPERATURE, top_p=TOP_P)
    averages = profiler.key_averages()
    return str(averages.table(sort_by="self_device_time_total", row_limit=24, max_name_column_width=70))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three prompts for the baseline instead of eight")
    parser.add_argument("--slots", type=int, nargs="*", default=[512, 1_024])
    parser.add_argument("--profile", action="store_true", help="also show what the device spends its time with")
    parser.add_argument("--out", type=Path, help="a file for the figures, as JSON")
    options = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    figures: dict[str, Any] = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{torch.cuda.get_device_name()}, {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "check": check(),
    }
    print(figures, flush=True)
    model = make_model(SHAPE, torch.bfloat16, "cuda")
    print(f"{sum(p.numel() for p in model.parameters()) / 1e9:.2f} B weights", flush=True)
    prompts, tokenizer = make_prompts(SHAPE["vocab_size"]), make_tokenizer(SHAPE["vocab_size"])
    print(f"prompts: {statistics.mean(map(len, prompts)):.0f} tokens on average", flush=True)
    workloads = {"W1": [[LONGEST] * SAMPLES for _ in prompts], "W2": varied_lengths()}
    print(f"W2: {statistics.mean(map(statistics.mean, workloads['W2'])):.1f} tokens on average", flush=True)

    chosen = list(range(PROMPTS))[:: PROMPTS // (3 if options.quick else 8)]
    with torch.inference_mode():
        generate(model, prompts[:1], [[8] * SAMPLES])
        baseline = {
            name: generate(model, [prompts[i] for i in chosen], [lengths[i] for i in chosen])
            for name, lengths in workloads.items()
        }
    figures["generate"] = baseline | {"prompts": len(chosen)}
    print(f"generate, {len(chosen)} of the prompts: {baseline}", flush=True)

    for slots in options.slots:
        torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        ours = Slots(model, tokenizer, prompts, slots)
        ready = time.perf_counter() - start
        sampling = {"temperature": TEMPERATURE, "top_p": TOP_P}
        row: dict[str, Any] = {"seconds to try the model": round(ready, 1)}
        runs: list[tuple[str, str, dict[str, Any] | None]] = [
            ("first run, W2", "W2", {}),
            ("W2", "W2", {}),
            ("W1", "W1", {}),
            ("W1, greedy", "W1", None),
        ]
        runs += [("W1, five stop strings", "W1", {"stop": STOP})]
        for title, name, extra in runs:
            taken, tokens = ours.run(workloads[name], **({} if extra is None else sampling | extra))
            made = sum(map(len, tokens))
            row[title] = {"tokens": made, "seconds": round(taken, 2), "tokens/s": round(made / taken)}
            row[title] |= {"times": round(made / taken / baseline[name], 1)}
            print(slots, title, row[title], flush=True)
        row["GiB"] = round(torch.cuda.max_memory_allocated() / 2**30, 1)
        size = max(ours.stepper.graph_sizes())
        row["roofline"] = {name: round(roofline(model, prompts, lengths, size)) for name, lengths in workloads.items()}
        row["share"] = {name: round(row[name]["tokens/s"] / row["roofline"][name], 2) for name in workloads}
        print(slots, {key: row[key] for key in ("seconds to try the model", "GiB", "roofline", "share")}, flush=True)
        if options.profile:
            print(profile(ours, 24), flush=True)
        ours.close()
        model.set_attn_implementation("sdpa")
        figures[f"{slots} slots"] = row
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
