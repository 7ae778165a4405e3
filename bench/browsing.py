"""The results page in Chromium, measured by the browser's clock.

Each page opens in a fresh profile, so that nothing is cached. First paint is the browser's
first contentful paint; rows count from the frame after the table has drawn them.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from proctor.core.runner import sample_digest
from proctor.core.types import Output, Record, Run, Sample, Score, Usage
from proctor.metrics.statistics import score_mean
from proctor.store import open_store
from proctor.store.store import Store
from proctor.viewer.assets import page_files

SAMPLES, MANY, RUNS = 50_000, 100_000, 1_000
REPEAT = 7
LONG = "20260101-000000-50000a"
LONGER = "20260101-000000-100000"

# Resolves after the frame in which the table has new rows.
DRAWN = """(begin) => new Promise((resolve) => {
  const started = performance.now();
  begin?.();
  const look = () => {
    const table = document.querySelector(".rows .row:not(.empty)");
    const status = document.querySelector(".found, .summary")?.textContent ?? "";
    if (table && status && status !== window.statusBefore && !document.querySelector(".busy")) {
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - started)));
    } else requestAnimationFrame(look);
  };
  look();
})"""
# Recorded inside the page, because a query from outside takes longer than the measured time.
WATCH = f"addEventListener('DOMContentLoaded', () => ({DRAWN})().then(() => {{ window.rowsAt = performance.now(); }}))"
ROWS = "new Promise((resolve) => { const look = () => rowsAt ? resolve(rowsAt) : setTimeout(look, 20); look(); })"
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
SEARCH_DELAY = 120  # milliseconds, which the page waits after a key


def write_samples(store: Store, name: str, samples: int) -> None:
    config = {"settings": {}, "seed": 0, "model": "bench/model"}
    run = Run(name, "bench/questions", "1", "bench/model", config, {}, 1e9, "running", total=samples)
    store.save(run)
    for start in range(0, samples, 5_000):
        store.write(run, [_record(index) for index in range(start, start + 5_000)])
    values = [float(index % 5 > 1) for index in range(samples)]
    metrics = {"accuracy": score_mean(values)}
    store.save(Run(name, run.task, "1", run.candidate, config, {}, 1e9, "done", n=samples, metrics=metrics))


def _record(index: int) -> tuple[Record, bytes]:
    words = f"What is the answer to question {index}? " + "Think of it step by step. " * 20
    sample = Sample(f"q{index}", index, words, "42", metadata={"size": 3 + 2 * (index % 3)})
    right = index % 5 > 1
    output = Output("The answer is 42, as can be seen. " * 10, Usage(200, 80), seconds=1.5)
    return Record(sample, 0, (output,), Score(float(right), answer="42" if right else "41")), sample_digest(sample)


def write_runs(store: Store) -> None:
    metrics = {"accuracy": score_mean([1.0, 0.0, 1.0])}
    for number in range(RUNS):
        config = {"settings": {"shapes": number % 9}, "seed": number, "model": f"model-{number % 17}"}
        run_id = f"20251231-000000-{number:06x}"
        task, candidate = f"bench/task-{number % 11}", f"model-{number % 17}"
        store.save(Run(run_id, task, "1", candidate, config, {}, 1e9 + number, "done", n=3, metrics=metrics))


@contextmanager
def serving(folder: str) -> Iterator[str]:
    command = [sys.executable, "-m", "proctor", "view", "--store", folder, "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def browse() -> Iterator[tuple[str, str, str, float]]:
    """Measure, unit, target, figure."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as long, tempfile.TemporaryDirectory() as many, sync_playwright() as playwright:
        store = open_store(long)
        write_samples(store, LONG, SAMPLES)
        write_samples(store, LONGER, MANY)
        store.close()
        store = open_store(many)
        write_runs(store)
        store.close()
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        with serving(long) as url:
            opened = [_opened(browser, f"{url}#/run/{LONG}") for _ in range(REPEAT)]
            yield f"open a run of {SAMPLES:,} samples: first paint", "s", "≤ 0.3", _median(opened, 0)
            yield f"open a run of {SAMPLES:,} samples: its rows", "s", "", _median(opened, 1)
            yield from _filtered(browser, f"{url}#/run/{LONG}")
            yield from _scrolled(browser, f"{url}#/run/{LONGER}")
        with serving(many) as url:
            opened = [_opened(browser, url) for _ in range(REPEAT)]
            yield f"list {RUNS:,} runs: first paint", "s", "≤ 0.3", _median(opened, 0)
            yield f"list {RUNS:,} runs: its rows", "s", "≤ 0.3", _median(opened, 1)
        browser.close()
    yield "weight of the page, not compressed", "KB", "≤ 300", sum(len(c) for _, c in page_files().values()) / 1000


def _median(pairs: list[tuple[float, float]], index: int) -> float:
    return statistics.median(pair[index] for pair in pairs) / 1000


def _opened(browser: Any, url: str) -> tuple[float, float]:
    """Milliseconds from the start of the navigation to the first paint and to the rows."""
    page = browser.new_page()
    page.add_init_script(f"window.rowsAt = 0; {WATCH}")
    page.goto(url)
    rows = page.evaluate(ROWS)
    first = page.evaluate(FIRST_PAINT)
    page.close()
    return first, rows


def _filtered(browser: Any, url: str) -> Iterator[tuple[str, str, str, float]]:
    page = browser.new_page()
    page.goto(url)
    page.evaluate(f"({DRAWN})()")
    before = "window.statusBefore = document.querySelector('.found').textContent"
    clicks: dict[str, str] = {name: _click(name) for name in ("failed", "passed")}
    took = []
    for number in range(2 * REPEAT):
        page.evaluate(before)
        took.append(page.evaluate(f"({DRAWN})({clicks['failed' if number % 2 else 'passed']})"))
    yield f"filter {SAMPLES:,} samples by outcome", "s", "≤ 0.2", statistics.median(took) / 1000
    page.evaluate(_click("all"))
    for what, words in (("text", "question 4"), ("metadata", "size:5 question 1")):
        took = []
        for number in range(REPEAT):
            page.evaluate(before)
            typed = f"{words}{'9' * (number % 2)}{number}"  # a new search with another number of matches
            search = "document.querySelector('[data-search]')"
            typing = f"() => {{ {search}.value = '{typed}'; {search}.dispatchEvent(new Event('input')); }}"
            took.append(page.evaluate(f"({DRAWN})({typing})") - SEARCH_DELAY)
        yield f"search {SAMPLES:,} samples by {what}", "s", "≤ 0.2", statistics.median(took) / 1000
    page.close()


def _click(words: str) -> str:
    return f"() => [...document.querySelectorAll('.chip')].find((c) => c.textContent.includes('{words}')).click()"


def _scrolled(browser: Any, url: str) -> Iterator[tuple[str, str, str, float]]:
    """Frame times while scrolling through 100,000 rows by 300 pixels a frame."""
    page = browser.new_page()
    page.goto(url)
    page.evaluate(f"({DRAWN})()")
    frames = page.evaluate(
        """() => new Promise((resolve) => {
            const times = [];
            let last = performance.now();
            const step = (now) => {
              times.push(now - last);
              last = now;
              scrollBy(0, 300);
              if (times.length < 240) requestAnimationFrame(step);
              else resolve(times.slice(5));
            };
            requestAnimationFrame(step);
        })"""
    )
    page.close()
    yield f"scroll through {MANY:,} rows: frames a second", "", "", 1000 / statistics.mean(frames)
    yield f"scroll through {MANY:,} rows: 95th percentile of a frame", "ms", "", statistics.quantiles(frames, n=20)[-1]
