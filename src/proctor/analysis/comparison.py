"""Comparison of runs of one task: differences with intervals, p-values, and the samples that flipped."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from proctor.analysis.pairing import SAMPLE_OPTIONS, Pairs, RunSamples, SampleScore, describe_differences, pair_samples
from proctor.analysis.report import Report, truncation_notice
from proctor.core.config import changed_options
from proctor.core.errors import UsageError
from proctor.core.types import Metric, Run
from proctor.metrics.paired import (
    ALPHA,
    POWER,
    Difference,
    compare_pairs,
    detectable_difference,
    holm,
    least_spread,
    pairs_needed,
    samples_needed,
)
from proctor.metrics.statistics import score_mean
from proctor.metrics.summary import natural_key
from proctor.store import open_store
from proctor.store.store import Store

DEFAULT_METRIC_NAME = "score"  # of the mean, if no metric of the run equals it


class Competitor(Struct, frozen=True):
    """One of the compared runs."""

    run: str
    name: str  # the candidate, with the options that differ if several runs have the same
    candidate: str
    status: str
    score: Metric  # over all of its scored samples


class Flip(Struct, frozen=True):
    """A sample that one run scored higher than the other."""

    sample: int
    sample_id: str
    first: float
    second: float


class Contrast(Struct, frozen=True):
    """A run against the baseline, over the samples with a score in both."""

    competitor: Competitor
    first: float | None  # the mean of the baseline
    second: float | None
    difference: Difference
    p: float | None  # corrected for the number of comparisons
    verdict: Literal["better", "worse", "unclear"]
    conclusion: str
    detectable: float | None  # the difference that this many pairs would show with 80 % power
    needed: int | None  # pairs to detect the difference `detect`
    unscored: tuple[int, int]  # shared samples without a score in the baseline, in this run
    alone: tuple[int, int]  # samples that only the baseline has, that only this run has
    gained: tuple[Flip, ...]
    lost: tuple[Flip, ...]
    groups: dict[str, dict[str, Difference]]  # metadata key -> its value -> the difference there


class Comparison(Struct, frozen=True):
    """Prints as a table with a sentence for each run; the first run is the baseline."""

    task: str
    version: str
    metric: str
    baseline: Competitor
    contrasts: tuple[Contrast, ...]
    notes: tuple[str, ...]
    detect: float | None = None  # the difference to plan for
    needed: int | None = None  # samples in each of two runs to detect it; set if there is one run

    def to_dict(self, flips: bool = True) -> dict[str, Any]:
        """The object that `--json` prints, with or without the samples that flipped."""
        built: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        if not flips:
            for contrast in built["contrasts"]:
                del contrast["gained"], contrast["lost"]
        return built

    def __str__(self) -> str:
        lines = [f"{self.task} (version {self.version}) · {self.metric}", *_align(self._rows(), 2)]
        for contrast in self.contrasts:
            lines += _group_lines(contrast)
        methods = dict.fromkeys((c.difference.interval, c.difference.test) for c in self.contrasts if c.difference.test)
        lines += [f"  interval: {interval}; test: {test}" for interval, test in methods]
        lines += [f"  note: {note}" for note in self.notes]
        lines += ["", *self.conclusions]
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def conclusions(self) -> list[str]:
        """The result in sentences."""
        sentences = [contrast.conclusion for contrast in self.contrasts]
        if len(self.contrasts) > 1:
            sentences.append(
                f"Together: p is corrected for {len(self.contrasts)} comparisons (Holm): the chance that any run is "
                "called better or worse without being so is 5 %. Each interval holds by itself."
            )
        if self.detect is None:
            return sentences
        goal = f"A difference of {_points(self.detect)}, with {POWER:.0%} power".replace("%", " %")
        for contrast in self.contrasts:
            if contrast.needed is not None:
                against = f", against {contrast.competitor.name}" if len(self.contrasts) > 1 else ""
                sentences.append(
                    f"{goal}{against}: takes {contrast.needed:,} pairs that disagree as much as these "
                    f"{contrast.difference.n:,}."
                )
        if self.needed is not None:
            sentences.append(f"{goal}: takes {self.needed:,} samples in each of two runs over different samples.")
        return sentences

    def flips(self) -> str:
        """The samples that flipped, as text."""
        lines = []
        for contrast in self.contrasts:
            for word, flips in (("better", contrast.gained), ("worse", contrast.lost)):
                lines.append(f"{contrast.competitor.name}: {word} on {len(flips):,} samples")
                lines += [f"  {flip.sample_id}  {flip.first:.3g} → {flip.second:.3g}" for flip in flips]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        cells = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        caption = html.escape(f"{self.task} (version {self.version}) · {self.metric}")
        text = "".join(f"<p>{html.escape(line)}</p>" for line in [*self.notes, *self.conclusions])
        return f"<table><caption>{caption}</caption><tr>{cells}</tr>{body}</table>{text}"

    def _rows(self) -> list[list[str]]:
        base = self.baseline
        rows = [["run", "candidate", self.metric, "difference", "95 % interval", "p", "better", "worse", "pairs"]]
        rows.append([base.run, base.name, _score(base.score.value), "baseline", "", "", "", "", ""])
        for contrast in self.contrasts:
            d = contrast.difference
            rows.append(
                [
                    contrast.competitor.run,
                    contrast.competitor.name,
                    _score(contrast.second),
                    "" if d.value is None else _signed(d.value),
                    _interval(d),
                    "" if contrast.p is None else _p(contrast.p).removeprefix("= "),
                    f"{d.gained:,}",
                    f"{d.lost:,}",
                    f"{d.n:,}",
                ]
            )
        return rows


def compare(
    *runs: str | Report,
    store: str | None = None,
    shared: bool = False,
    by_id: bool = False,
    detect: float | None = None,
    group_by: Sequence[str] = (),
) -> Comparison:
    """Compares runs, given as ids or reports, as `proctor compare` does."""
    stores = [run.store for run in runs if isinstance(run, Report)]
    opened = open_store(store or next(iter(stores), None), mode="read")
    try:
        stored = [opened.run(run.run.id if isinstance(run, Report) else run) for run in runs]
        return compare_runs(opened, stored, shared=shared, by_id=by_id, detect=detect, group_by=group_by)
    finally:
        opened.close()


def compare_runs(
    store: Store,
    runs: Sequence[Run],
    *,
    shared: bool = False,
    by_id: bool = False,
    detect: float | None = None,
    group_by: Sequence[str] = (),
) -> Comparison:
    """Compares every other run with the first."""
    _check_arguments(runs, detect)
    answers = [RunSamples(store, run) for run in runs]
    competitors = [_competitor(samples, name) for samples, name in zip(answers, _names(runs), strict=True)]
    first, *others = answers
    paired = [pair_samples(first, other, shared=shared, by_id=by_id) for other in others]
    keys = list(dict.fromkeys([*first.run.groups, *group_by]))
    metadata = {key: store.metadata(first.run, key) for key in keys} if others else {}
    differences = [_difference(pairs.first, pairs.second) for pairs in paired]
    adjusted = iter(holm([difference.p for difference in differences if difference.p is not None]))
    corrected = [None if difference.p is None else next(adjusted) for difference in differences]
    contrasts = [
        _contrast(competitors[0], competitor, pairs, difference, p, len(others), detect, metadata)
        for competitor, pairs, difference, p in zip(competitors[1:], paired, differences, corrected, strict=True)
    ]
    return Comparison(
        task=first.run.task,
        version=first.run.version,
        metric=_metric_name(first.run, competitors[0].score),
        baseline=competitors[0],
        contrasts=tuple(contrasts),
        notes=tuple(_notes(answers, competitors, paired)),
        detect=detect,
        needed=None if others or detect is None else _samples_needed(detect, first),
    )


def _check_arguments(runs: Sequence[Run], detect: float | None) -> None:
    if detect is not None and not 0 < detect <= 1:
        raise UsageError(f"--detect is a difference between 0 and 1 (0.02 is two points), not {detect:g}.")
    if not runs or (len(runs) == 1 and detect is None):
        raise UsageError("A comparison takes two runs or more, or one run and --detect.")
    ids = [run.id for run in runs]
    if twice := next((run for run in ids if ids.count(run) > 1), None):
        raise UsageError(f"{twice} is named twice: name different runs.")


def _samples_needed(detect: float, answers: RunSamples) -> int:
    if len(answers.scored) < 2:
        raise UsageError(
            f"{answers.run.id} has {len(answers.scored)} scored samples: an estimate of their spread takes two."
        )
    try:
        return samples_needed(detect, answers.scored)
    except ValueError as error:
        raise UsageError(
            f"No run can differ this much from {answers.run.id}: {error}. Use a smaller --detect."
        ) from None


def _competitor(answers: RunSamples, name: str) -> Competitor:
    run, scored = answers.run, [sample for sample in answers.samples if sample.value is not None]
    score = score_mean(
        [sample.value for sample in scored if sample.value is not None], clusters=[s.cluster for s in scored]
    )
    return Competitor(run.id, name, run.candidate, answers.status, score)


def _names(runs: Sequence[Run]) -> list[str]:
    """The candidates; if one has several runs, with the options that differ or with the ids."""
    names = [run.candidate for run in runs]
    if len(set(names)) < len(names):
        keys = sorted(
            {key for run in runs[1:] for key in changed_options(runs[0].config, run.config)} - {"model", "agent"}
        )
        differing = [", ".join(f"{key} {run.config.get(key)}" for key in keys) for run in runs]
        names = [f"{name} ({options})" if options else name for name, options in zip(names, differing, strict=True)]
    return names if len(set(names)) == len(names) else [f"{run.candidate} ({run.id})" for run in runs]


def _difference(first: Sequence[SampleScore], second: Sequence[SampleScore]) -> Difference:
    return compare_pairs(
        [sample.value or 0.0 for sample in first],
        [sample.value or 0.0 for sample in second],
        # A run older than the task's clusters has none.
        [a.cluster or b.cluster for a, b in zip(first, second, strict=True)],
    )


def _contrast(
    baseline: Competitor,
    competitor: Competitor,
    pairs: Pairs,
    difference: Difference,
    p: float | None,
    comparisons: int,
    detect: float | None,
    metadata: dict[str, dict[int, str]],
) -> Contrast:
    verdict = _verdict(difference, p)
    least = None
    needed = None
    if difference.units > 1:
        least = detectable_difference(difference.n, difference.spread, whole=difference.whole, design=difference.design)
        if detect is not None:
            spread = least_spread(detect, difference.spread, difference.whole)
            needed = pairs_needed(detect, spread, design=difference.design)
    both = list(zip(pairs.first, pairs.second, strict=True))
    flips = [
        Flip(a.sample, a.sample_id, a.value, b.value)
        for a, b in both
        if a.value is not None and b.value is not None and a.value != b.value
    ]
    n = difference.n
    return Contrast(
        competitor=competitor,
        first=math.fsum(a.value or 0.0 for a, _ in both) / n if n else None,
        second=math.fsum(b.value or 0.0 for _, b in both) / n if n else None,
        difference=difference,
        p=p,
        verdict=verdict,
        conclusion=_conclusion(baseline.name, competitor.name, difference, p, verdict, comparisons, least),
        detectable=least,
        needed=needed,
        unscored=pairs.unscored,
        alone=pairs.alone,
        gained=tuple(flip for flip in flips if flip.second > flip.first),
        lost=tuple(flip for flip in flips if flip.second < flip.first),
        groups={key: _grouped(both, values) for key, values in metadata.items() if values},
    )


def _verdict(difference: Difference, p: float | None) -> Literal["better", "worse", "unclear"]:
    """Better or worse only if the test and the interval agree on it."""
    if p is None or difference.low is None or difference.high is None or p >= ALPHA:
        return "unclear"
    return "better" if difference.low > 0 else "worse" if difference.high < 0 else "unclear"


def _grouped(both: Iterable[tuple[SampleScore, SampleScore]], values: dict[int, str]) -> dict[str, Difference]:
    groups: dict[str, list[tuple[SampleScore, SampleScore]]] = {}
    for pair in both:
        if pair[0].sample in values:
            groups.setdefault(values[pair[0].sample], []).append(pair)
    return {
        value: _difference([a for a, _ in groups[value]], [b for _, b in groups[value]])
        for value in sorted(groups, key=natural_key)
    }


def _metric_name(run: Run, score: Metric) -> str:
    if score.value is None:
        return DEFAULT_METRIC_NAME
    for name, metric in run.metrics.items():
        if metric.value is not None and abs(metric.value - score.value) < 1e-9:
            return name
    return DEFAULT_METRIC_NAME


def _with_faults(first: Run, second: Run) -> list[str]:
    """What the scores are where the faults of an agent are failures."""
    name = first.ranking_metric
    found = [run.metrics[name].value for run in (first, second) if name in run.metrics and name != run.main_metric]
    values = [value for value in found if value is not None]
    if len(values) < 2:
        return []
    return [f"{name}, where an agent's faults count as failures, is {values[0]:.3f} and {values[1]:.3f}."]


def _notes(answers: Sequence[RunSamples], competitors: Sequence[Competitor], paired: Sequence[Pairs]) -> list[str]:
    notes = [
        f"{one.run} is not complete ({one.status}): its result may change."
        for one in competitors
        if one.status != "done"
    ]
    notes += [
        f"{one.run.id} stopped when the interval of its score was narrow enough (until_ci): the interval and p of a "
        "difference assume a number of samples that was fixed beforehand."
        for one in answers
        if len(answers) > 1 and one.run.config.get("until_ci") is not None
    ]
    cut_off = {one.run.id: truncation_notice(one.run) for one in answers}
    notes += [f"{run}: {notice}" for run, notice in cut_off.items() if notice]
    for other, competitor, pairs in zip(answers[1:], competitors[1:], paired, strict=True):
        if any(pairs.alone):
            notes.append(
                f"only shared samples are compared: {pairs.alone[0]:,} of the baseline and {pairs.alone[1]:,} of "
                f"{competitor.name} are left out."
            )
        if any(pairs.unscored):
            notes.append(
                f"samples without a score are left out, not counted as wrong: {pairs.unscored[0]:,} of the baseline, "
                f"{pairs.unscored[1]:,} of {competitor.name}."
            )
            notes += _with_faults(answers[0].run, other.run)
        if pairs.different_prompts:
            why = describe_differences(answers[0].run, other.run, SAMPLE_OPTIONS)
            notes.append(
                f"{pairs.different_prompts:,} samples had another prompt in {competitor.name}"
                f"{f' ({why})' if why else ''}: they are paired by their ids."
            )
    return notes


def _conclusion(
    first: str,
    second: str,
    difference: Difference,
    p: float | None,
    verdict: str,
    comparisons: int,
    least: float | None,
) -> str:
    d, n = difference, f"n = {difference.n:,} pairs"
    if d.units < d.n:
        n += f" in {d.units:,} clusters"
    if d.value is None or d.low is None or d.high is None or p is None:
        return f"Whether {first} and {second} differ is unknown: {n}."
    corrected = f", corrected for {comparisons} comparisons" if comparisons > 1 else ""
    low, high, by = d.low, d.high, d.value
    if verdict == "worse":
        low, high, by = -d.high, -d.low, -d.value
    figures = f"95 % interval {_number(low)} – {_number(high)}, p {_p(p)}{corrected}, {n}"
    if verdict != "unclear":
        return f"{second} is {verdict} than {first} by {_points(by)} ({figures})."
    text = f"No significant difference between {first} and {second}: {_points(by)} ({figures})."
    if (d.low > 0 or d.high < 0) or p < ALPHA:
        text += " Interval and test narrowly disagree: a difference is significant if both show it."
    if least is not None:
        text += f" With this disagreement, this many pairs would show a difference of {_points(least)} with 80 % power."
    return text


def _points(value: float) -> str:
    return f"{_number(value)} points"


def _number(value: float) -> str:
    """A difference of scores in points: 0.01 is one point."""
    text = f"{100 * value:.1f}" if abs(value) >= 0.001 or value == 0 else f"{100 * value:.2g}"
    return text.replace("-", "−")


def _signed(value: float) -> str:
    text = _number(value)
    return f"+{text}" if value > 0 else text


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.1 else f"= {p:.2f}"


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _align(rows: Sequence[Sequence[str]], words: int) -> list[str]:
    """Lines of a table without its empty columns; the first `words` columns are left-aligned."""
    filled = [(i, column) for i, column in enumerate(zip(*rows, strict=True)) if any(column[1:])]
    columns = []
    for i, column in filled:
        width = max(map(len, column))
        columns.append([cell.ljust(width) if i < words else cell.rjust(width) for cell in column])
    return ["  ".join(["", *cells]).rstrip() for cells in zip(*columns, strict=True)]


def _group_lines(contrast: Contrast) -> list[str]:
    lines = []
    for key, groups in contrast.groups.items():
        if len(groups) < 2:
            continue  # one group has the difference of the whole
        rows = [[f"{contrast.competitor.name}, by {key}", "difference", "95 % interval", "pairs"]]
        for value, d in groups.items():
            rows.append([f"  {value}", "" if d.value is None else _signed(d.value), _interval(d), f"{d.n:,}"])
        lines += _align(rows, 1)
    return lines


def _interval(difference: Difference) -> str:
    low, high = difference.low, difference.high
    return "" if low is None or high is None else f"{_signed(low)} – {_signed(high)}"
