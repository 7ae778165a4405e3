"""Honest programs that use what Python and the system have: all of them pass, at every level.

Most are called by tests from a process apart; some run as scripts, and some beside tests that need their process.
"""

# ruff: noqa: E501

from __future__ import annotations

from typing import NamedTuple

from proctor.sandbox import Program


class Honest(NamedTuple):
    name: str
    program: Program
    needs: str = ""
    """What the level `confined` does not have."""


CALLS = "assert f(1) == 2\nassert f(2) == 3\n"
ONE_MORE = "import multiprocessing\ndef one_more(x):\n    return x + 1\n"
POOL = ONE_MORE + "def f(x):\n    with {} as pool:\n        return pool.map(one_more, [x])[0]\n"
GUARDED = ONE_MORE + "if __name__ == '__main__':\n    with {} as pool:\n        assert pool.map(one_more, [1]) == [2]\n"


def called(name: str, source: str, tests: str = CALLS, needs: str = "") -> Honest:
    return Honest(name, Program(source=source, tests=tests), needs)


def script(name: str, source: str) -> Honest:
    return Honest(f"{name}, as a script", Program(source=source))


OWN_SOURCE = [
    called("main guard", "def f(x):\n    return x + 1\n\nif __name__ == '__main__':\n    raise RuntimeError\n"),
    script("main guard", "import sys\ndef main():\n    print('done')\nif __name__ == '__main__':\n    sys.exit(main())\n"),
    called(
        "source of a function",
        "import inspect, os\ndef f(x):\n    return x + 1\ndef g():\n    os.chdir('/')\n    return inspect.getsource(f)\n",
        "assert g() == 'def f(x):\\n    return x + 1\\n'",
    ),
    called(
        "source of a class",
        "import inspect\nclass A:\n    x = 1\ndef g():\n    return inspect.getsource(A)\n",
        "assert g() == 'class A:\\n    x = 1\\n'",
    ),
    script("source of itself", "import inspect, sys\nassert 'getsource' in inspect.getsource(sys.modules['__main__'])\n"),
    called("own file", "def f():\n    return open(__file__).read()\n", "assert f().startswith('def f')"),
    script("own file", "import sys\nassert open(__file__).read() == open(sys.argv[0]).read() != ''\n"),
    called(
        "lines in a traceback",
        "import traceback\ndef f(x):\n    try:\n        raise ValueError(x)\n    except ValueError:\n"
        "        return traceback.format_exc()\n",
        "assert 'raise ValueError(x)' in f(1)",
    ),
    called("import of itself", "import importlib\ndef one(x): return x + 1\ndef f(x):\n    return importlib.import_module(__name__).one(x)\n"),
    called(
        "doctest of itself",
        "import doctest\ndef add(a, b):\n    '''\n    >>> add(1, 2)\n    3\n    '''\n    return a + b\n"
        "def f():\n    return tuple(doctest.testmod(__import__(__name__)))[:2]\n",
        "assert f() == (0, 1)",
    ),
    called(
        "own file as another process",
        "import subprocess, sys\nif len(sys.argv) > 1:\n    print(int(sys.argv[1]) + 1)\n    sys.exit()\n"
        "def f(x):\n    return int(subprocess.check_output([sys.executable, __file__, str(x)]))\n",
    ),
]  # fmt: skip

FOLDERS = [
    called("deletes its folder", "import os, shutil\nshutil.rmtree(os.getcwd())\ndef f(x):\n    return x + 1\n"),
    called(
        "deletes its folder beside the tests",
        "import os, shutil\nshutil.rmtree(os.getcwd())\ndef f(g):\n    return g(1)\n",
        "assert f(lambda x: x + 1) == 2",
    ),
    script("deletes its folder", "import os, shutil\nshutil.rmtree(os.getcwd())\nprint('done')\n"),
    called(
        "deletes a folder that it is in",
        "import os, shutil, tempfile\ndef f(x):\n    folder = tempfile.mkdtemp()\n    os.chdir(folder)\n    shutil.rmtree(folder)\n    return x + 1\n",
    ),
    *(
        called(
            f"file in {folder}",
            f"import os\ndef f(x):\n    with open('{folder}/note', 'w') as file:\n        file.write(str(x + 1))\n"
            f"    assert 'note' in os.listdir('{folder}')\n    found = int(open('{folder}/note').read())\n"
            f"    os.remove('{folder}/note')\n    assert not os.path.exists('{folder}/note')\n    return found\n",
        )
        for folder in ("/tmp", "/var/tmp")
    ),
    called(
        "tempfile in /var/tmp",
        "import tempfile\ndef f(x):\n    with tempfile.NamedTemporaryFile('w+', dir='/var/tmp') as file:\n"
        "        file.write(str(x + 1))\n        file.seek(0)\n        return int(file.read())\n",
    ),
    called("tempfile", "import os, tempfile\ndef f(x):\n    with tempfile.TemporaryDirectory() as folder:\n        path = os.path.join(folder, 'a')\n        open(path, 'w').write(str(x + 1))\n        return int(open(path).read())\n"),
    called("home", "import pathlib\ndef f(x):\n    path = pathlib.Path.home() / 'x'\n    path.write_text(str(x + 1))\n    return int(path.read_text())\n"),
    called("module of its own", "import pathlib\npathlib.Path('helper.py').write_text('def one(x): return x + 1')\nimport helper\ndef f(x):\n    return helper.one(x)\n"),
    called("sqlite3", "import sqlite3\ndef f(x):\n    with sqlite3.connect(f'{x}.db') as base:\n        base.execute('create table t (x)')\n        base.execute('insert into t values (?)', (x,))\n        return base.execute('select x + 1 from t').fetchone()[0]\n"),
    called("program of its own", "import os\ndef f(x):\n    open('a', 'w').write(f'#!/bin/sh\\necho {x + 1}\\n')\n    os.chmod('a', 0o755)\n    return int(os.popen('./a').read())\n", needs="modes"),
]  # fmt: skip

PROCESSES = [
    *(called(f"{method} pool", POOL.format(f"multiprocessing.get_context('{method}').Pool(1)")) for method in ("fork", "spawn", "forkserver")),
    *(script(f"{method} pool", GUARDED.format(f"multiprocessing.get_context('{method}').Pool(1)")) for method in ("spawn", "forkserver")),
    called("default pool", POOL.format("multiprocessing.Pool(1)")),
    Honest("spawn pool beside the tests", Program(source=POOL.format("multiprocessing.get_context('spawn').Pool(1)"), tests=CALLS, beside=True)),
    called("executor", ONE_MORE + "from concurrent.futures import ProcessPoolExecutor\ndef f(x):\n    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context('spawn')) as pool:\n        return pool.submit(one_more, x).result()\n"),
    called("queue", "import multiprocessing\ndef put(x, queue):\n    queue.put(x + 1)\ndef f(x):\n    context = multiprocessing.get_context('spawn')\n    queue = context.Queue()\n    process = context.Process(target=put, args=(x, queue))\n    process.start()\n    found = queue.get()\n    process.join()\n    return found\n"),
    called("lock around a shared value", "import multiprocessing\ndef add(value):\n    with value.get_lock():\n        value.value += 1\ndef f(x):\n    value = multiprocessing.Value('i', x)\n    process = multiprocessing.Process(target=add, args=(value,))\n    process.start()\n    process.join()\n    return value.value\n"),
    called("locks that are taken", "import multiprocessing\ndef f(x):\n    lock, again = multiprocessing.Lock(), multiprocessing.RLock()\n    with lock, again, again:\n        assert not lock.acquire(timeout=0.01)\n        assert not lock.acquire(block=False)\n    assert lock.acquire()\n    lock.release()\n    try:\n        lock.release()\n    except ValueError:\n        return x + 1\n"),
    called("shared memory", "from multiprocessing import shared_memory\ndef f(x):\n    memory = shared_memory.SharedMemory(create=True, size=8)\n    memory.buf[0] = x + 1\n    found = memory.buf[0]\n    memory.close()\n    memory.unlink()\n    return found\n"),
    called("manager", "import multiprocessing\ndef put(x, found):\n    found['x'] = x + 1\ndef f(x):\n    with multiprocessing.Manager() as manager:\n        found = manager.dict()\n        process = multiprocessing.Process(target=put, args=(x, found))\n        process.start()\n        process.join()\n        return found['x']\n", needs="sockets"),
    called("subprocess", "import subprocess, sys\ndef f(x):\n    return int(subprocess.check_output([sys.executable, '-c', f'print({x} + 1)']))\n"),
    called("threads", "import threading\ndef f(x):\n    found = []\n    threads = [threading.Thread(target=found.append, args=(i,)) for i in range(8)]\n    for thread in threads: thread.start()\n    for thread in threads: thread.join()\n    return x + len(found) - 7\n"),
    called("asyncio", "import asyncio\nasync def ask(x):\n    process = await asyncio.create_subprocess_exec('/bin/echo', str(x + 1), stdout=asyncio.subprocess.PIPE)\n    return int((await process.communicate())[0])\ndef f(x):\n    return asyncio.run(ask(x))\n"),
    called("server with a name", "import asyncio\nasync def echo(reader, writer):\n    writer.write(await reader.readline())\n    writer.close()\nasync def ask(x):\n    server = await asyncio.start_unix_server(echo, f'{x}')\n    reader, writer = await asyncio.open_unix_connection(f'{x}')\n    writer.write(b'%d\\n' % (x + 1))\n    found = int(await reader.readline())\n    writer.close()\n    server.close()\n    return found\ndef f(x):\n    return asyncio.run(ask(x))\n", needs="sockets"),
    called("pair of sockets", "import socket\ndef f(x):\n    one, other = socket.socketpair()\n    with one, other:\n        one.send(bytes([x + 1]))\n        return other.recv(1)[0]\n"),
    called("alarm", "import signal\ndef f(x):\n    came = []\n    signal.signal(signal.SIGALRM, lambda *_: came.append(1))\n    signal.setitimer(signal.ITIMER_REAL, 0.01)\n    signal.pause()\n    return x + len(came)\n"),
]  # fmt: skip

CLASSES = [
    called("pickle", "import pickle\nclass A:\n    def __init__(self, x): self.x = x\ndef f(x):\n    return pickle.loads(pickle.dumps(A(x))).x + 1\n"),
    script("pickle", "import pickle\nclass A:\n    def __init__(self, x): self.x = x\nassert pickle.loads(pickle.dumps(A(1))).x == 1\n"),
    called("dataclass", "from __future__ import annotations\nfrom dataclasses import dataclass, field\n@dataclass(slots=True)\nclass A:\n    x: int\n    y: list[int] = field(default_factory=list)\ndef f(x):\n    return A(x).x + 1\n"),
    called("named tuple and enum", "import enum, typing\nclass N(typing.NamedTuple):\n    x: int\nclass E(enum.Enum):\n    A = 1\ndef f(x):\n    return N(x).x + E.A.value\n"),
    called("type hints", "from __future__ import annotations\nimport typing\nclass A:\n    x: B\nclass B: pass\ndef f(x):\n    return x + (typing.get_type_hints(A)['x'] is B)\n"),
    called("locale", "import locale\ndef f(x):\n    locale.setlocale(locale.LC_ALL, '')\n    return x + (locale.getpreferredencoding().lower() in ('utf-8', 'utf8'))\n"),
    called("logging and warnings", "import logging, warnings\nlogging.basicConfig(level='INFO')\ndef f(x):\n    logging.info('adding %s', x)\n    warnings.warn('slowly')\n    return x + 1\n"),
]  # fmt: skip

ALL = [*OWN_SOURCE, *FOLDERS, *PROCESSES, *CLASSES]
