"""Runs scoring functions that run a model's text: python -m helpers.scoring_driver LEVEL BACKEND WAYS. Prints JSON.

Every problem is scored in another way of running Python that somebody else wrote; what all of them are given tries to
get out, and notes what it could do.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import textwrap
from pathlib import Path
from unittest import mock

import proctor
from helpers.sandbox_driver import find_level, find_strays
from helpers.scoring_texts import RARE_WAYS
from proctor.code.scoring import pool
from proctor.sandbox import detection
from proctor.sandbox.inside import kernel

# Each is the body of a function that is given `text`, and `file` with the same in it.
WAYS = {
    "exec": "exec(text, {})",
    "eval": "eval(compile(text, 'x', 'exec'), {})",
    "builtins.exec": "import builtins; getattr(builtins, 'ex' + 'ec')(text, {})",
    "code": "import code; code.InteractiveInterpreter().runsource(text, 'x', 'exec')",
    "timeit": "import timeit; timeit.timeit(text, number=1)",
    "doctest": (
        "import doctest; doctest.run_docstring_examples('>>> exec(text)', {'text': text}, optionflags=doctest.ELLIPSIS)"
    ),
    "importlib of a file": (
        "from importlib import util; spec = util.spec_from_file_location('written', file); "
        "spec.loader.exec_module(util.module_from_spec(spec))"
    ),
    "import of a module just written": (
        "import importlib, sys; sys.path.insert(0, os.path.dirname(file)); importlib.import_module('written')"
    ),
    "runpy": "import runpy; runpy.run_path(file)",
    "cProfile": "import cProfile; cProfile.Profile().runctx(text, space := {}, space)",
    "bdb": "import bdb; bdb.Bdb().run(text, {})",
    "trace": "import trace; trace.Trace(count=0, trace=0).runctx(text, space := {}, space)",
    "unittest": "import sys, unittest; sys.path.insert(0, os.path.dirname(file)); "
    "unittest.defaultTestLoader.loadTestsFromName('written')",
    "pickle": "import pickle; pickle.loads(pickle.dumps(Reduced(text)))",
    "marshal": (
        "import marshal, types\ncode = marshal.loads(marshal.dumps(compile(text, 'x', 'exec')))\n"
        "types.FunctionType(code, {})()"
    ),
    "site": "import site; os.mkdir('d'); Path('d/x.pth').write_text(f'import runpy; runpy.run_path({file!r})'); "
    "site.addsitedir('d')",
    "thread": (
        "import threading; thread = threading.Thread(target=exec, args=(text, {})); thread.start(); thread.join()"
    ),
    "thread pool": "from multiprocessing.pool import ThreadPool; ThreadPool(1).apply(exec, (text, {}))",
    "executor": (
        "from concurrent.futures import ThreadPoolExecutor; ThreadPoolExecutor(1).submit(exec, text, {}).result()"
    ),
    "subprocess.run": "subprocess.run(['python3', '-IS', file], check=True)",
    "subprocess in a shell": "subprocess.check_output(f'python -IS {file}', shell=True)",
    "subprocess.Popen": (
        "subprocess.Popen([sys.executable, '-IS', '-'], stdin=subprocess.PIPE).communicate(text.encode())"
    ),
    "os.system": "os.system(f'python3 -IS {file}')",
    "posix.system": "import posix; posix.system(f'python3 -IS {file}')",
    "os.popen": "os.popen(f'python3 -IS {file}').read()",
    "os.posix_spawn": ("os.waitpid(os.posix_spawn(sys.executable, [sys.executable, '-IS', file], os.environ), 0)"),
    "os.spawnv": "os.spawnv(os.P_WAIT, sys.executable, [sys.executable, '-IS', file])",
    "os.fork and os.execv": (
        "pid = os.fork()\nif pid == 0: os.execv(sys.executable, [sys.executable, '-IS', file])\nos.waitpid(pid, 0)"
    ),
    "asyncio": "import asyncio; asyncio.run(started(file))",
    "multiprocessing, forked": (
        "import multiprocessing; process = multiprocessing.get_context('fork').Process(target=exec, args=(text, {})); "
        "process.start(); process.join()"
    ),
    "multiprocessing, spawned": (
        "import multiprocessing; process = multiprocessing.get_context('spawn').Process(target=exec, args=(text, {})); "
        "process.start(); process.join()"
    ),
    "process pool": (
        "from concurrent.futures import ProcessPoolExecutor\n"
        "with ProcessPoolExecutor(1) as pool: pool.submit(exec, text, {}).result()"
    ),
    "the C library": "import ctypes; ctypes.CDLL(None).system(f'python3 -IS {file}'.encode())",
    "Python's own library": "import ctypes; ctypes.pythonapi.PyRun_SimpleString(text.encode())",
}

TASK = """
import json, os, subprocess, sys
from pathlib import Path
from bigcode_eval.base import Task

class Reduced:
    def __init__(self, text):
        self.text = text

    def __reduce__(self):
        return exec, (self.text, {})

async def started(file):
    import asyncio
    await (await asyncio.create_subprocess_exec(sys.executable, '-IS', file)).wait()

class Ways(Task):
    def __init__(self):
        super().__init__(stop_words=[], requires_execution=True)

    def get_dataset(self):
        return self.dataset["test"]

    def get_prompt(self, doc):
        return "#"

    def get_reference(self, doc):
        return doc["way"]

    def process_results(self, generations, references):
        all_found = []
        for number, (texts, way) in enumerate(zip(generations, references)):
            folder = Path(os.environ["TMPDIR"], str(number))
            folder.mkdir()
            os.chdir(folder)
            file = str(folder / "written.py")
            Path(file).write_text(texts[0])
            findings = Path(os.environ["TMPDIR"], "findings.json")
            findings.unlink(missing_ok=True)
            sys.modules.pop("written", None)
            way_of[way](texts[0], file)
            all_found.append(json.loads(findings.read_text()) if findings.exists() else {"ran": False})
        keys = dict.fromkeys(key for found in all_found for key in found)
        return {key: sum(found.get(key, False) for found in all_found) / len(all_found) for key in keys}

way_of = {}
"""

TEXT = """
import json, os, socket

found = {"ran": True}

def attempt(name, function, *args):
    try:
        found[name] = bool(function(*args))
    except BaseException:
        found[name] = False

attempt("wrote outside", lambda: open(OUTSIDE + "/escaped", "w").close() is None)
attempt("read outside", lambda: open(OUTSIDE + "/secret").read())
attempt("read the home folder", lambda: open(HOME + "/secret").read())
attempt("connected", lambda: socket.create_connection(("127.0.0.1", PORT), 2))
attempt("has the environment", lambda: "PROCTOR_SECRET" in os.environ)
attempt("changed the task", lambda: open(TASK, "a").write(" "))
attempt("reached the harness", lambda: HARNESS > 300 and os.kill(HARNESS, 9) is None)
attempt("read the shadow file", lambda: open("/etc/shadow").read())
with open(os.environ["TMPDIR"] + "/findings.json", "w") as file:
    json.dump(found, file)
"""


def write_task(folder: Path, known: dict[str, str]) -> str:
    path = folder / "tasks" / "ways.py"
    path.parent.mkdir()
    ways = "".join(
        f"\ndef way_{number}(text, file):\n{textwrap.indent(body, '    ')}\n\nway_of[{name!r}] = way_{number}\n"
        for number, (name, body) in enumerate(known.items())
    )
    path.write_text(TASK + ways)
    return str(path)


def hold(folder: Path, ways: dict[str, str]) -> dict[str, object]:
    """A run with a problem for each way; and what came of it."""
    outside, home = folder / "outside", folder / "home"
    for place in (outside, home):
        place.mkdir()
        (place / "secret").write_text("secret")
    task = write_task(folder, ways)
    rows, generations = folder / "rows.jsonl", folder / "generations.json"
    rows.write_text("\n".join(json.dumps({"task_id": way, "way": way}) for way in ways))
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        known = {
            "OUTSIDE": str(outside),
            "HOME": str(home),
            "PORT": server.getsockname()[1],
            "TASK": task,
            "HARNESS": os.getpid(),
        }
        text = "".join(f"{name} = {value!r}\n" for name, value in known.items()) + TEXT
        generations.write_text(json.dumps([[text]] * len(ways)))
        os.environ |= {"PROCTOR_SECRET": "secret", "HOME": str(home)}
        report = proctor.evaluate(
            f"{task}:Ways",
            f"scripted/generations:{generations}",
            data=str(rows),
            store=str(folder / "store"),
            allow_code_execution=True,
            workers=2,
        )
        try:
            server.accept()
            connected = True
        except BlockingIOError:
            connected = False
    records = list(report.records())
    return {
        "level": report.run.provenance["sandbox"],
        "errors": {r.sample.id: f"{r.error.type}: {r.error.message}" for r in records if r.error},
        "not run": [r.sample.id for r in records if r.score and r.score.value != 1],
        "got out": [
            f"{r.sample.id}: {name}"
            for r in records
            if r.score
            for name, value in r.score.answer["metrics"].items()
            if value and name != "ran"
        ],
        "testing": sorted({r.score.answer.get("testing", "") for r in records if r.score}),
        "together": {name: metric.value for name, metric in report.metrics.items() if metric.value},
        "connected": connected,
        "left outside": sorted(place.name for place in outside.iterdir()),
        "held": len(records),
    }


def main(name: str, backend: str, ways: str = "usual") -> None:
    kernel.adopt_orphans()  # whatever gets away comes to us
    level = find_level(name, backend)
    if level is None:
        print(json.dumps({"missing": True}))
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(pool, "levels", return_value=[level]),
        mock.patch.object(detection, "levels", return_value=[level]),
    ):
        Path(folder).chmod(0o755)
        result = hold(Path(folder), RARE_WAYS if ways == "rare" else WAYS)
    print(json.dumps({**result, "strays": find_strays()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
