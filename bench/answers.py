"""Answer extraction: agreement with people, and CPU time.

    python bench/answers.py             the corpus of the tests; --misses lists disagreements

For each kind of answer: the replies, the accuracy on those with an answer, the number of
wrong extractions, and the CPU time of one. Then the longest time for a reply of 100 kB.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

from process import HERE
from proctor.shapes import answers

REPLIES = HERE.parent / "tests" / "data" / "replies"
PARSERS: dict[str, Callable[..., str | None]] = {
    "yes_no": answers.parse_yes_no,
    "entailment": answers.parse_entailment,
    "number": answers.parse_integer,
    "direction": answers.parse_direction,
    "colour": answers.parse_colour,
    "shape": answers.parse_shape,
}
LONG = 100_000


def read_corpus(kind: str) -> tuple[dict[str, float], list[str]]:
    rows = [json.loads(line) for line in (REPLIES / f"{kind}.jsonl").read_text().splitlines()]
    started = time.process_time()
    read = [PARSERS[kind](row["reply"], row.get("question", "")) for row in rows]
    spent = time.process_time() - started
    pairs = [(row["answer"], answer) for row, answer in zip(rows, read, strict=True)]
    correct = [answer == given for answer, given in pairs if answer is not None]
    figures = {
        "replies": len(rows),
        "a person can tell": len(correct),
        "read as a person does": sum(correct) / len(correct),
        "given otherwise": sum(given is not None and given != answer for answer, given in pairs),
        "µs": 1e6 * spent / len(rows),
    }
    misses = [
        f"{kind}: {row['reply']!r}: {row['answer']}, read as {answer}"
        for row, answer in zip(rows, read, strict=True)
        if row["answer"] != answer
    ]
    return figures, misses


def measure_long_reply() -> float:
    """The longest time of all kinds, for a long reasoning with an answer at its end."""
    step = "Let me look at the small red square at (3, 4): it is not left of the 2 large blue circles, so no. Wait. "
    text = step * (LONG // len(step)) + "Answer: Yes"
    seconds = []
    for parse in PARSERS.values():
        started = time.process_time()
        parse(text)
        seconds.append(time.process_time() - started)
    return max(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--misses", action="store_true", help="list the disagreements")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    arguments = parser.parse_args()
    figures, misses = {}, []
    for kind in PARSERS:
        figures[kind], missed = read_corpus(kind)
        misses += missed
    print("| answers | replies | a person can tell | read as a person does | given otherwise | µs for one |")
    print("|---|---|---|---|---|---|")
    for kind, row in figures.items():
        cells = f"{row['a person can tell']} | {row['read as a person does']:.1%} | {row['given otherwise']}"
        print(f"| {kind} | {row['replies']} | {cells} | {row['µs']:.0f} |")
    seconds = measure_long_reply()
    print(f"\na reply of {LONG // 1000} kB: {seconds:.2f} s")
    if arguments.misses:
        print("\n".join(misses))
    arguments.out.mkdir(parents=True, exist_ok=True)
    result = {"python": platform.python_version(), "kinds": figures, f"seconds for {LONG} characters": seconds}
    (arguments.out / "answers.json").write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
