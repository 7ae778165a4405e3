"""Opens the newest run of a store as `proctor show latest` does, and reads all its records."""

import json
import sys
import time

from proctor.analysis.report import Report
from proctor.store import open_store

started = time.perf_counter()
store = open_store(sys.argv[1], mode="read")
run = store.run("latest")
shown = str(Report(run, store.url))
header_seconds = time.perf_counter() - started

started = time.perf_counter()
records = list(store.records(run))
full_seconds = time.perf_counter() - started

assert "accuracy" in shown
assert len(records) == run.n
print(json.dumps({"header_seconds": header_seconds, "full_seconds": full_seconds}))
