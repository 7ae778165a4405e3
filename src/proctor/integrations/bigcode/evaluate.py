"""`load` of Hugging Face's package "evaluate": the metrics that task files use are ours, others are theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from proctor.core.errors import UsageError
from proctor.integrations.bigcode import apps_metric, code_eval
from proctor.metrics import bleu, rouge, text


def load(path: str, *args: Any, **kwargs: Any) -> Any:
    """The metric of this name."""
    return EvaluateMetric(path, METRICS[path]) if path in METRICS else _theirs(path, *args, **kwargs)


def _theirs(path: str, *args: Any, **kwargs: Any) -> Any:
    try:
        theirs: Callable[..., Any] = import_module("evaluate").load
    except ImportError:
        raise UsageError(
            f"The metric {path!r} needs the package evaluate: pip install evaluate. Without it there are "
            f"{', '.join(METRICS)}."
        ) from None
    return theirs(path, *args, **kwargs)


class EvaluateMetric:
    """Takes predictions and references at once, or some after the others."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self._function = function
        self._predictions: list[Any] = []
        self._references: list[Any] = []

    def add(self, *, prediction: Any = None, reference: Any = None) -> None:
        self.add_batch(predictions=[prediction], references=[reference])

    def add_batch(self, *, predictions: Sequence[Any] = (), references: Sequence[Any] = ()) -> None:
        self._predictions += predictions
        self._references += references

    def compute(
        self, *, predictions: Sequence[Any] | None = None, references: Sequence[Any] | None = None, **options: Any
    ) -> Any:
        self.add_batch(predictions=predictions or [], references=references or [])
        predictions, self._predictions = self._predictions, []
        references, self._references = self._references, []
        return self._function(predictions=predictions, references=references, **options)


def _octopack(
    predictions: Sequence[Sequence[str]], references: Sequence[str], language: str = "python", **options: Any
) -> Any:
    """HumanEvalPack's: Go and Rust have test functions, which their tools run."""
    names = {"go": "go-test", "rust": "rust-test"}
    return code_eval.compute_code_eval(predictions, references, language=names.get(language, language), **options)


def _exact_match(predictions: Sequence[Any], references: Sequence[Any], **options: Any) -> dict[str, float]:
    return text.exact_match([str(one) for one in predictions], [str(one) for one in references], **options)


def _rouge(*, use_stemmer: bool = False, **options: Any) -> Any:
    return _theirs("rouge").compute(use_stemmer=True, **options) if use_stemmer else rouge.rouge(**options)


METRICS: dict[str, Callable[..., Any]] = {
    "bleu": bleu.bleu,
    "code_eval": code_eval.compute_code_eval,
    "codeparrot/apps_metric": apps_metric.compute_apps_metric,
    "exact_match": _exact_match,
    "Muennighoff/code_eval_octopack": _octopack,
    "rouge": _rouge,
    "sacrebleu": text.corpus_bleu,
}
