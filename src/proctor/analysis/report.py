"""Reports of runs: as text, as JSON, as a DataFrame, in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from proctor.analysis.reviews import Reviews, count_reviews
from proctor.core.extras import import_extra
from proctor.core.options import format_options, non_default_settings
from proctor.core.types import Metric, Record, Run
from proctor.metrics.precision import NO_INTERVAL
from proctor.store import open_store, store_location, store_url

MAX_GROUPS = 12  # of one key; the text lists more only with --group-by


class Report:
    """The result of one run. Prints as a table; `records()` reads the records from the store."""

    def __init__(self, run: Run, store: str, reviews: Reviews | None = None) -> None:
        self.run = run
        self.store = store_url(store)
        self.reviews = reviews  # set if the metrics include people's scores

    @property
    def metrics(self) -> dict[str, Metric]:
        return self.run.metrics

    def records(self) -> Iterator[Record]:
        store = open_store(self.store, mode="read")
        try:
            yield from store.records(self.run, reviewed=self.reviews is not None)
        finally:
            store.close()

    def reviewed(self) -> Report:
        """The same run with people's scores instead of the original ones; the metric is their mean."""
        store = open_store(self.store, mode="read")
        try:
            run, reviews = count_reviews(store, self.run)
        finally:
            store.close()
        return Report(run, self.store, reviews)

    def to_dict(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        run = self.run
        result: dict[str, Any] = {
            "id": run.id,
            "task": run.task,
            "version": run.version,
            "candidate": run.candidate,
            "status": run.status,
            "seed": run.config.get("seed"),
            "n": run.n,
            "errors": run.errors,
            "metrics": run.metrics,
            "groups": run.groups,
            "outcomes": run.outcomes,
            "outputs": run.outputs,
            "truncated": run.truncated,
            "usage": run.usage,
            "seconds": round(run.seconds, 3),
            "config": run.config,
            "provenance": run.provenance,
            "store": store_location(self.store),
        }
        if self.reviews is not None:
            result["reviews"] = self.reviews
        if run.reason:
            result["reason"] = run.reason
        for key in ("sandbox", "budget", "agent_held"):
            if key in run.provenance:
                result[key] = run.provenance[key]
        built: dict[str, Any] = msgspec.to_builtins(result)
        return built

    def to_pandas(self) -> Any:
        """One row per record."""
        pandas = import_extra("pandas", "Report.to_pandas()", "pandas")
        from proctor.store.export import flat_row

        return pandas.DataFrame(
            {**flat_row(record), **{f"metadata.{key}": value for key, value in record.sample.metadata.items()}}
            for record in self.records()
        )

    def __str__(self) -> str:
        run = self.run
        modality = run.config.get("modality", "text")
        shown = "" if modality == "text" else f", modality {modality}"
        title = f"{run.task} (version {run.version}{shown}) · {run.candidate} · {run.n:,} scored"
        if run.errors:
            title += f", {run.errors:,} failed"
        lines = [f"{title} · {run.seconds:.1f} s"]
        if run.status != "done":
            lines.append(f"  NOT COMPLETE: {run.status}{f' ({run.reason})' if run.reason else ''}")
        elif run.reason:
            lines.append(f"  ended          {run.reason}")
        if self.reviews is not None:
            lines.append(f"  REVIEWED       {self.reviews}")
        if settings := non_default_settings(run):
            lines.append(f"  settings       {format_options(settings)}")
        lines += [f"  {name:<14} {_format_metric(metric)}" for name, metric in run.metrics.items()]
        for key, groups in run.groups.items():
            if len(groups) > MAX_GROUPS and key not in run.config.get("group_by", ()):
                lines.append(f"  {key:<14} {len(groups)} groups: --group-by {key} lists them")
                continue
            width = max(map(len, groups))
            for value, metrics in groups.items():
                lines += [
                    f"    {key} = {value:<{width}}  {name:<10} {_format_metric(m)}" for name, m in metrics.items()
                ]
        if held := run.provenance.get("agent_held"):
            lines.append(f"  agent          {held}")
        if run.outcomes:
            lines.append("  outcomes       " + ", ".join(f"{name} {n}" for name, n in run.outcomes.items()))
        if run.usage.input_tokens or run.usage.output_tokens:
            cost = "" if run.usage.cost is None else f", cost {run.usage.cost:.4f}"
            lines.append(f"  tokens         {run.usage.input_tokens} in, {run.usage.output_tokens} out{cost}")
        if limit := run.provenance.get("concurrency"):
            pushed = f", pushed back {limit['pushbacks']} times" if limit["pushbacks"] else ""
            lines.append(f"  concurrency    {limit['settled']} of at most {limit['most']}{pushed}")
        lines.append(f"  run            {run.id} in {store_location(self.store, short=True)}")
        if notice := truncation_notice(run):
            lines.append(f"  CUT OFF        {notice}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A table of the metrics with a plot, for notebooks."""
        from proctor.analysis.plots.scores import plot_run_scores

        run = self.run
        rows = [[name, *metric_cells(metric), f"{metric.n:,}"] for name, metric in run.metrics.items()]
        caption = f"{run.task} · {run.candidate} · {run.id}" + ("" if run.status == "done" else f" · {run.status}")
        table = html_table(caption, ["metric", "value", "95 % interval", "n"], rows)
        if notice := truncation_notice(run):
            table += f"<p>{html.escape(notice)}</p>"
        return table + (plot_run_scores(run).draw(560).svg() if run.metrics else "")


def truncation_notice(run: Run) -> str:
    """A warning if more than 1 % of the outputs were truncated; else empty."""
    if 100 * run.truncated <= run.outputs:
        return ""
    flag, used = "--max-tokens", run.config.get("max_tokens")
    if used is None and run.config.get("max_length") is not None:
        flag, used = "--max-length", run.config["max_length"]
    share = f"{run.truncated / run.outputs:.1%}".replace("%", " %")
    was = "" if used is None else f" (it was {used})"
    return (
        f"{share} of the outputs ({run.truncated:,} of {run.outputs:,}) ended by length before an answer: "
        f"raise {flag}{was}."
    )


def metric_cells(metric: Metric) -> list[str]:
    """Value and interval of a metric, as two cells of a table."""
    value = "–" if metric.value is None else _format_value(metric.value, metric)
    return [value, "" if metric.low is None or metric.high is None else f"{metric.low:.3f} – {metric.high:.3f}"]


def html_table(caption: str, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table without colours, which fits a light and a dark page."""
    head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{html.escape(caption)}</caption><tr>{head}</tr>{body}</table>"


def _format_value(value: float, metric: Metric) -> str:
    return f"{value:,.0f}" if metric.method == "count" else f"{value:.3f}"


def _format_metric(metric: Metric) -> str:
    if metric.value is None:
        return "– (nothing scored)"
    text = _format_value(metric.value, metric)
    if metric.low is not None and metric.high is not None:
        stderr = "" if metric.stderr is None else f" ± {metric.stderr:.3f}"
        return f"{text}{stderr}   95 % interval {metric.low:.3f} – {metric.high:.3f} ({metric.method})"
    return f"{text}   ({metric.method})" if metric.method == NO_INTERVAL else text
