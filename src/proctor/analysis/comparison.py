"""Runs of one exam side by side: which is better, by how much, how sure that is, and which samples made it so."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from proctor.analysis.pairing import ASKING, Answered, Pairs, RunSamples, differing, pair
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

SCORE = "score"  # what the mean is called where no metric of the run is this mean


class Competitor(Struct, frozen=True):
    """A run that is compared."""

    run: str
    name: str  # the candidate, and what tells it from the others
    candidate: str
    status: str
    score: Metric  # over all samples that it has scored


class Flip(Struct, frozen=True):
    """A sample that one run scored higher than the other."""

    sample: int
    sample_id: str
    first: float
    second: float


class Contrast(Struct, frozen=True):
    """A run against the baseline, over the samples that both have scored."""

    competitor: Competitor
    first: float | None  # the mean of the baseline
    second: float | None
    difference: Difference
    p: float | None  # corrected for the number of comparisons
    verdict: Literal["better", "worse", "unclear"]
    conclusion: str
    detectable: float | None  # the difference that so many pairs, of which so many disagree, would show
    needed: int | None  # pairs for the difference that was asked for
    unscored: tuple[int, int]  # shared samples that the baseline has not scored, and that this one has not
    alone: tuple[int, int]  # samples that only the baseline has, and that only this one has
    gained: tuple[Flip, ...]
    lost: tuple[Flip, ...]
    groups: dict[str, dict[str, Difference]]  # metadata key -> its value -> the difference there


class Comparison(Struct, frozen=True):
    """Prints as a table with a sentence for each run; the first one is the baseline."""

    task: str
    version: str
    metric: str
    baseline: Competitor
    contrasts: tuple[Contrast, ...]
    notes: tuple[str, ...]
    detect: float | None = None  # a difference that was asked for
    needed: int | None = None  # samples of a second run over other samples, to see it; where there is one run only

    def to_dict(self, flips: bool = True) -> dict[str, Any]:
        """The shape that `--json` prints: with every sample that flipped, or without."""
        built: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        if not flips:
            for contrast in built["contrasts"]:
                del contrast["gained"], contrast["lost"]
        return built

    def __str__(self) -> str:
        lines = [f"{self.task} (version {self.version}) · {self.metric}", *_aligned(self._rows(), 2)]
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
        """In plain sentences what came out."""
        said = [contrast.conclusion for contrast in self.contrasts]
        if len(self.contrasts) > 1:
            said.append(
                f"Together: p is corrected for {len(self.contrasts)} comparisons (Holm): the chance that any run is "
                "called better or worse without being so is 5 %. Each interval holds by itself."
            )
        if self.detect is None:
            return said
        wanted = f"A difference of {_points(self.detect)}, with {POWER:.0%} power".replace("%", " %")
        for contrast in self.contrasts:
            if contrast.needed is not None:
                place = f", against {contrast.competitor.name}" if len(self.contrasts) > 1 else ""
                said.append(
                    f"{wanted}{place}: takes {contrast.needed:,} pairs that disagree as much as these "
                    f"{contrast.difference.n:,}."
                )
        if self.needed is not None:
            said.append(f"{wanted}: takes {self.needed:,} samples in each of two runs over different samples.")
        return said

    def flips(self) -> str:
        """Every sample that flipped, as text."""
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
        said = "".join(f"<p>{html.escape(line)}</p>" for line in [*self.notes, *self.conclusions])
        return f"<table><caption>{caption}</caption><tr>{cells}</tr>{body}</table>{said}"

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
    """Compares runs of a store, which are named by their ids, or by reports: the same as `proctor compare`."""
    places = [run.store for run in runs if isinstance(run, Report)]
    opened = open_store(store or next(iter(places), None), mode="read")
    try:
        found = [opened.run(run.run.id if isinstance(run, Report) else run) for run in runs]
        return compare_runs(opened, found, shared=shared, by_id=by_id, detect=detect, group_by=group_by)
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
    """The first run is the baseline of all others."""
    _check(runs, detect)
    answers = [RunSamples(store, run) for run in runs]
    competitors = [_competitor(one, name) for one, name in zip(answers, _names(runs), strict=True)]
    first, *others = answers
    paired = [pair(first, other, shared=shared, by_id=by_id) for other in others]
    keys = list(dict.fromkeys([*first.run.groups, *group_by]))
    metadata = {key: store.metadata(first.run, key) for key in keys} if others else {}
    differences = [_difference(pairs.first, pairs.second) for pairs in paired]
    told = iter(holm([difference.p for difference in differences if difference.p is not None]))
    corrected = [None if difference.p is None else next(told) for difference in differences]
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


def _check(runs: Sequence[Run], detect: float | None) -> None:
    if detect is not None and not 0 < detect <= 1:
        raise UsageError(f"A difference to detect lies between 0 and 1 (0.02 is two points), not at {detect:g}.")
    if not runs or (len(runs) == 1 and detect is None):
        raise UsageError("A comparison takes two runs or more; or one, and --detect.")
    ids = [run.id for run in runs]
    if twice := next((run for run in ids if ids.count(run) > 1), None):
        raise UsageError(f"{twice} is named twice: a run does not differ from itself.")


def _samples_needed(detect: float, answers: RunSamples) -> int:
    if len(answers.scored) < 2:
        raise UsageError(
            f"{answers.run.id} has {len(answers.scored)} scored samples: it takes two to tell their spread."
        )
    try:
        return samples_needed(detect, answers.scored)
    except ValueError as error:
        raise UsageError(
            f"No run can differ so much from {answers.run.id}: {error}. Name a smaller --detect."
        ) from None


def _competitor(answers: RunSamples, name: str) -> Competitor:
    run, scored = answers.run, [sample for sample in answers.samples if sample.value is not None]
    score = score_mean(
        [sample.value for sample in scored if sample.value is not None], clusters=[s.cluster for s in scored]
    )
    return Competitor(run.id, name, run.candidate, answers.status, score)


def _names(runs: Sequence[Run]) -> list[str]:
    """Candidates; where one has several runs, with the options that differ, or with ids where those do not tell."""
    names = [run.candidate for run in runs]
    if len(set(names)) < len(names):
        keys = sorted(
            {key for run in runs[1:] for key in changed_options(runs[0].config, run.config)} - {"model", "agent"}
        )
        told = [", ".join(f"{key} {run.config.get(key)}" for key in keys) for run in runs]
        names = [f"{name} ({options})" if options else name for name, options in zip(names, told, strict=True)]
    return names if len(set(names)) == len(names) else [f"{run.candidate} ({run.id})" for run in runs]


def _difference(first: Sequence[Answered], second: Sequence[Answered]) -> Difference:
    return compare_pairs(
        [sample.value or 0.0 for sample in first],
        [sample.value or 0.0 for sample in second],
        # A run of a time when the task named no clusters has none.
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
    visible = None
    needed = None
    if difference.units > 1:
        visible = detectable_difference(
            difference.n, difference.spread, whole=difference.whole, design=difference.design
        )
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
        conclusion=_conclusion(baseline.name, competitor.name, difference, p, verdict, comparisons, visible),
        detectable=visible,
        needed=needed,
        unscored=pairs.unscored,
        alone=pairs.alone,
        gained=tuple(flip for flip in flips if flip.second > flip.first),
        lost=tuple(flip for flip in flips if flip.second < flip.first),
        groups={key: _grouped(both, values) for key, values in metadata.items() if values},
    )


def _verdict(difference: Difference, p: float | None) -> Literal["better", "worse", "unclear"]:
    """A difference is claimed only if the test and the interval both see it."""
    if p is None or difference.low is None or difference.high is None or p >= ALPHA:
        return "unclear"
    return "better" if difference.low > 0 else "worse" if difference.high < 0 else "unclear"


def _grouped(both: Iterable[tuple[Answered, Answered]], values: dict[int, str]) -> dict[str, Difference]:
    groups: dict[str, list[tuple[Answered, Answered]]] = {}
    for one in both:
        if one[0].sample in values:
            groups.setdefault(values[one[0].sample], []).append(one)
    return {
        value: _difference([a for a, _ in groups[value]], [b for _, b in groups[value]])
        for value in sorted(groups, key=natural_key)
    }


def _metric_name(run: Run, score: Metric) -> str:
    if score.value is None:
        return SCORE
    same = (name for name, metric in run.metrics.items() if metric.value is not None)
    return next((name for name in same if abs((run.metrics[name].value or 0.0) - score.value) < 1e-9), SCORE)


def _notes(answers: Sequence[RunSamples], competitors: Sequence[Competitor], paired: Sequence[Pairs]) -> list[str]:
    notes = [
        f"{one.run} is not complete ({one.status}): it may still change." for one in competitors if one.status != "done"
    ]
    notes += [
        f"{one.run.id} stopped when its own score was known well enough (until_ci): the interval and p of a difference "
        "are for a number of samples that was fixed beforehand, and do not allow for it."
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
        if pairs.asked_differently:
            why = differing(answers[0].run, other.run, ASKING)
            notes.append(
                f"{pairs.asked_differently:,} samples were asked differently in {competitor.name}"
                f"{f' ({why})' if why else ''}: they are paired by their ids."
            )
    return notes


# -- in words -------------------------------------------------------------------------------------


def _conclusion(
    first: str,
    second: str,
    difference: Difference,
    p: float | None,
    verdict: str,
    comparisons: int,
    visible: float | None,
) -> str:
    d, n = difference, f"n = {difference.n:,} pairs"
    if d.units < d.n:
        n += f" in {d.units:,} clusters"
    if d.value is None or d.low is None or d.high is None or p is None:
        return f"Whether {first} and {second} differ cannot be told: {n}."
    corrected = f", corrected for {comparisons} comparisons" if comparisons > 1 else ""
    low, high, by = d.low, d.high, d.value
    if verdict == "worse":
        low, high, by = -d.high, -d.low, -d.value
    figures = f"95 % interval {_number(low)} – {_number(high)}, p {_p(p)}{corrected}, {n}"
    if verdict != "unclear":
        return f"{second} is {verdict} than {first} by {_points(by)} ({figures})."
    said = f"No difference between {first} and {second} can be told: {_points(by)} ({figures})."
    if (d.low > 0 or d.high < 0) or p < ALPHA:
        said += " Interval and test do not agree, narrowly: only what both see is called a difference."
    if visible is not None:
        said += f" With this disagreement, so many pairs would show a difference of {_points(visible)} with 80 % power."
    return said


def _points(value: float) -> str:
    return f"{_number(value)} points"


def _number(value: float) -> str:
    """A score's difference in points, of which there are a hundred."""
    text = f"{100 * value:.1f}" if abs(value) >= 0.001 or value == 0 else f"{100 * value:.2g}"
    return text.replace("-", "−")


def _signed(value: float) -> str:
    text = _number(value)
    return f"+{text}" if value > 0 else text


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.1 else f"= {p:.2f}"


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _aligned(rows: Sequence[Sequence[str]], words: int) -> list[str]:
    """A table; the first columns are words, and columns without anything are left out."""
    shown = [(place, column) for place, column in enumerate(zip(*rows, strict=True)) if any(column[1:])]
    columns = []
    for place, column in shown:
        width = max(map(len, column))
        columns.append([cell.ljust(width) if place < words else cell.rjust(width) for cell in column])
    return ["  ".join(["", *cells]).rstrip() for cells in zip(*columns, strict=True)]


def _group_lines(contrast: Contrast) -> list[str]:
    lines = []
    for key, groups in contrast.groups.items():
        if len(groups) < 2:
            continue  # the difference there is that of the whole
        rows = [[f"{contrast.competitor.name}, by {key}", "difference", "95 % interval", "pairs"]]
        for value, d in groups.items():
            rows.append([f"  {value}", "" if d.value is None else _signed(d.value), _interval(d), f"{d.n:,}"])
        lines += _aligned(rows, 1)
    return lines


def _interval(difference: Difference) -> str:
    low, high = difference.low, difference.high
    return "" if low is None or high is None else f"{_signed(low)} – {_signed(high)}"
