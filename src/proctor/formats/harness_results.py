"""Results of a run in the format of lm-evaluation-harness: a JSON of metrics, and JSON lines of samples."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from proctor import __version__
from proctor.core.errors import StoreWriteError
from proctor.core.types import Metric, Prompt, Record, Run
from proctor.formats.code_files import RunNames

FILTER = "none"  # the task extracts the answers itself


def save_results(run: Run, records: Iterable[Record], folder: Path) -> list[Path]:
    """Writes FOLDER/MODEL/results_TIME.json and samples_TASK_TIME.jsonl, the names of the harness.

    Its format has no samples without a score, so these are left out. Epochs become repeats.
    """
    task = _task_name(run)
    time = datetime.fromtimestamp(run.created).isoformat().replace(":", "-")
    target = folder / _model_file_name(run.candidate)
    samples, results = target / f"samples_{task}_{time}.jsonl", target / f"results_{time}.json"
    digest = hashlib.sha256()
    written = 0
    try:
        target.mkdir(parents=True, exist_ok=True)
        with samples.open("wb") as file:
            for line in _samples(run, records):
                digest.update("".join(line[key] for key in ("doc_hash", "prompt_hash", "target_hash")).encode())
                file.write(msgspec.json.encode(line) + b"\n")
                written += 1
        content = msgspec.json.encode(_results(run, written, digest.hexdigest()))
        results.write_bytes(msgspec.json.format(content, indent=2))
    except OSError as error:
        raise StoreWriteError(f"Cannot write to {target}: {error.strerror}. The run is safe in the store.") from None
    return [results, samples]


def _task_name(run: Run) -> str:
    """The task's name in file names and as a key."""
    return re.sub(r"\W", "_", RunNames([run.task]).name(run.task, {}))


def _model_file_name(candidate: str) -> str:
    return re.sub(r"[\"<>:/|\\?*\[\]]+", "__", candidate).strip(". ") or "model"


def _results(run: Run, samples: int, digest: str) -> dict[str, Any]:
    task, config = _task_name(run), run.config
    values: dict[str, Any] = {"name": task, "alias": run.task, "sample_len": samples}
    for name, metric in run.metrics.items():
        values[f"{_key(name)},{FILTER}"] = metric.value if metric.value is not None else "N/A"
        values[f"{_key(name)}_stderr,{FILTER}"] = metric.stderr if metric.stderr is not None else "N/A"
    better = {_key(name): _higher_is_better(metric) for name, metric in run.metrics.items()}
    total = run.total // config.get("epochs", 1) if run.total else samples
    return {
        "results": {task: values},
        "group_subtasks": {},
        "configs": {task: _task_config(run, better)},
        "versions": {task: float(run.version) if re.fullmatch(r"\d+(\.\d+)?", run.version) else run.version},
        "n-shot": {task: config.get("few_shot", 0)},
        "higher_is_better": {task: better},
        "n-samples": {task: {"original": total, "effective": samples}},
        "config": _model_config(run),
        "git_hash": (run.provenance.get("git") or {}).get("commit"),
        "date": run.created,
        "pretty_env_info": _environment(run),
        "transformers_version": run.provenance.get("versions", {}).get("transformers", "N/A"),
        "lm_eval_version": f"proctor {run.provenance.get('versions', {}).get('proctor', __version__)}",
        "upper_git_hash": None,
        "task_hashes": {task: digest},
        "model_source": _source(run),
        "model_name": run.candidate,
        "model_name_sanitized": _model_file_name(run.candidate),
        "system_instruction": None,
        "system_instruction_sha": None,
        "fewshot_as_multiturn": False,
        "chat_template": None,
        "chat_template_sha": None,
        "total_evaluation_time_seconds": str(run.seconds),
    }


def _key(metric: str) -> str:
    """The metric's name without commas, which separate the filter."""
    return metric.replace(",", ";")


def _higher_is_better(metric: Metric) -> bool | None:
    if metric.method == "quantile":  # of delays
        return False
    return None if metric.method == "count" else True


def _task_config(run: Run, better: dict[str, bool | None]) -> dict[str, Any]:
    config = run.config
    return {
        "task": _task_name(run),
        "task_alias": run.task,
        "output_type": "generate_until",
        "metric_list": [
            {"metric": name, "aggregation": "mean", "higher_is_better": direction} for name, direction in better.items()
        ],
        "repeats": config.get("samples", 1) * config.get("epochs", 1),
        "num_fewshot": config.get("few_shot", 0),
        "generation_kwargs": _sampling(run),
        "should_decontaminate": False,
        "metadata": {"version": run.version, "settings": config.get("settings", {}), "run": run.id},
    }


def _model_config(run: Run) -> dict[str, Any]:
    config = run.config
    seed = config.get("seed", 0)
    named = {"model": run.candidate} | {key: config[key] for key in ("base_url", "revision") if config.get(key)}
    return {
        "model": _source(run),
        "model_args": named,
        "batch_size": config.get("batch_size"),
        "batch_sizes": [],
        "device": None,
        "use_cache": None,
        "limit": config.get("limit"),
        "bootstrap_iters": 0,
        "gen_kwargs": _sampling(run),
        "random_seed": seed,
        "numpy_seed": seed,
        "torch_seed": seed,
        "fewshot_seed": seed,
    }


def _sampling(run: Run) -> dict[str, Any]:
    config = run.config
    temperature = config.get("temperature", 0.0)
    names = {"top_p": "top_p", "top_k": "top_k", "max_tokens": "max_gen_toks"}
    given = {theirs: config[ours] for ours, theirs in names.items() if config.get(ours) is not None}
    return {"until": config.get("stop", []), "do_sample": temperature > 0, "temperature": temperature, **given}


def _source(run: Run) -> str:
    """The provider: the part before the model's name."""
    kind, _, name = run.candidate.partition("/")
    return kind if name else run.candidate


def _environment(run: Run) -> str:
    entries = {**run.provenance.get("versions", {}), **run.provenance.get("machine", {})}
    return "\n".join(f"{name}: {value}" for name, value in entries.items())


def _samples(run: Run, records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    for _, group in groupby(records, key=lambda record: record.sample.index):
        scored = [record for record in group if record.score is not None and record.score.value is not None]
        if scored:
            yield _sample(run, scored)


def _sample(run: Run, records: Sequence[Record]) -> dict[str, Any]:
    sample = records[0].sample
    doc = {"id": sample.id, "choices": sample.choices, **sample.metadata}
    prompt, target = _prompt(sample.input), _as_text(sample.target)
    answers = [_as_text(record.score.answer) for record in records if record.score is not None]
    values = [record.score.value for record in records if record.score is not None and record.score.value is not None]
    metric = _key(run.main_metric or "score")
    return {
        "doc_id": sample.index,
        "doc": doc,
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": _sampling(run)}},
        "resps": [[output.text for record in records for output in record.outputs]],
        "filtered_resps": [answers[0] if len(answers) == 1 else msgspec.json.encode(answers).decode()],
        "filter": FILTER,
        "metrics": [metric],
        "doc_hash": _hash(json.dumps(doc, indent=2, ensure_ascii=False, default=str)),
        "prompt_hash": _hash(prompt),
        "target_hash": _hash(target),
        metric: fmean(values),
    }


def _prompt(prompt: Prompt) -> str:
    """The prompt as text: a conversation becomes JSON, without images."""
    if isinstance(prompt, str):
        return prompt
    return msgspec.json.encode([{"role": message.role, "content": message.text} for message in prompt]).decode()


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
