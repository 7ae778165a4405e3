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

# What models write into whole answers: guards, examples, command lines, logs.
EVERYDAY = [
    called("examples under a guard", "import argparse, logging, sys\nlogging.basicConfig(stream=sys.stderr, level=logging.DEBUG, format='%(asctime)s %(name)s %(message)s')\nlog = logging.getLogger(__name__)\ndef f(x: int) -> int:\n    log.debug('adding to %d', x)\n    return x + 1\ndef main() -> None:\n    parser = argparse.ArgumentParser()\n    parser.add_argument('x', type=int, nargs='?', default=3)\n    print(f(parser.parse_args().x))\nif __name__ == '__main__':\n    main()\n"),
    script("argparse without arguments", "import argparse\nparser = argparse.ArgumentParser(prog='x')\nparser.add_argument('--n', type=int, default=4)\nargs = parser.parse_args()\nassert args.n == 4\n"),
    script("dataclasses under a guard", "from __future__ import annotations\nfrom dataclasses import dataclass, field, asdict, replace\n@dataclass(order=True, frozen=True)\nclass Point:\n    x: float\n    y: float = 0.0\n    tags: tuple[str, ...] = field(default=(), compare=False)\n    def __post_init__(self):\n        object.__setattr__(self, 'x', float(self.x))\nif __name__ == '__main__':\n    assert sorted([Point(2), Point(1)])[0] == Point(1)\n    assert asdict(replace(Point(1), y=2)) == {'x': 1.0, 'y': 2, 'tags': ()}\n"),
    called("asyncio with tasks, queues and timeouts", "import asyncio\nasync def worker(queue, found):\n    while True:\n        found.append(await queue.get() + 1)\n        queue.task_done()\nasync def main(x):\n    queue, found = asyncio.Queue(), []\n    workers = [asyncio.create_task(worker(queue, found)) for _ in range(3)]\n    await queue.put(x)\n    await asyncio.wait_for(queue.join(), 5)\n    for one in workers: one.cancel()\n    await asyncio.gather(*workers, return_exceptions=True)\n    return found[0] + await asyncio.to_thread(lambda: 0)\ndef f(x):\n    return asyncio.run(main(x))\n"),
    script("a loop of its own and uncaught tasks", "import asyncio\nloop = asyncio.new_event_loop()\nasyncio.set_event_loop(loop)\nasync def one():\n    await asyncio.sleep(0)\n    return 1\nassert loop.run_until_complete(asyncio.gather(one(), one())) == [1, 1]\nloop.close()\n"),
    called("thread pool with locals and locks", "import threading\nfrom concurrent.futures import ThreadPoolExecutor, as_completed\nlocal, lock, total = threading.local(), threading.RLock(), 0\ndef add(n):\n    global total\n    local.n = n\n    with lock:\n        total += local.n\n    return n\ndef f(x):\n    global total\n    total = 0\n    with ThreadPoolExecutor(max_workers=8) as pool:\n        found = [one.result() for one in as_completed([pool.submit(add, n) for n in range(10)])]\n    return x + (total == sum(found) == 45)\n"),
    called("database in memory", "import sqlite3\nfrom contextlib import closing\ndef f(x):\n    with closing(sqlite3.connect(':memory:')) as base, base:\n        base.row_factory = sqlite3.Row\n        base.executescript('create table a (id integer primary key, n int); create index b on a (n);')\n        base.executemany('insert into a (n) values (?)', [(n,) for n in range(100)])\n        base.create_function('more', 1, lambda n: n + 1)\n        return base.execute('select more(n) as m from a where n = ?', (x,)).fetchone()['m']\n"),
    called("pipeline of processes", "import subprocess, sys, textwrap\nCODE = textwrap.dedent('import sys\\nprint(int(sys.stdin.read()) + 1, end=str())')\ndef f(x):\n    done = subprocess.run([sys.executable, '-c', CODE], input=str(x), capture_output=True, text=True, check=True, timeout=20)\n    return int(subprocess.run('cat', shell=True, input=done.stdout, capture_output=True, text=True).stdout)\n"),
    called("a module run by name", "import subprocess, sys\ndef f(x):\n    out = subprocess.check_output([sys.executable, '-m', 'json.tool'], input=b'{\"a\": %d}' % (x + 1))\n    return int(out.decode().split(':')[1].strip(' }\\n'))\n"),
    called("decorated by a timeout of alarms", "import functools, signal\nclass TooSlow(Exception): pass\ndef within(seconds):\n    def decorate(function):\n        @functools.wraps(function)\n        def call(*args):\n            def late(number, frame): raise TooSlow\n            before = signal.signal(signal.SIGALRM, late)\n            signal.alarm(seconds)\n            try:\n                return function(*args)\n            finally:\n                signal.alarm(0)\n                signal.signal(signal.SIGALRM, before)\n        return call\n    return decorate\n@within(10)\ndef f(x):\n    return x + 1\n"),
    called("deep recursion in a thread with a larger stack", "import sys, threading\nsys.setrecursionlimit(300_000)\nthreading.stack_size(256 << 20)\ndef depth(n):\n    return 0 if n == 0 else 1 + depth(n - 1)\ndef f(x):\n    found = []\n    thread = threading.Thread(target=lambda: found.append(depth(50_000)))\n    thread.start()\n    thread.join()\n    return x + found[0] - 49_999\n"),
    script("deep recursion in a thread with a larger stack", "import sys, threading\ndef main():\n    def depth(n):\n        return 0 if n == 0 else 1 + depth(n - 1)\n    print(depth(50_000))\nsys.setrecursionlimit(10**6)\nthreading.stack_size(1 << 27)\nthread = threading.Thread(target=main)\nthread.start()\nthread.join()\n"),
    called("recursion that is caught", "def f(x):\n    def again(n): return again(n + 1)\n    try:\n        again(0)\n    except RecursionError:\n        return x + 1\n"),
    called("decimals in contexts", "from decimal import Decimal, Context, localcontext, getcontext, ROUND_HALF_UP\ngetcontext().prec = 50\ndef f(x):\n    with localcontext(Context(prec=5, rounding=ROUND_HALF_UP)) as context:\n        assert str(context.divide(Decimal(1), Decimal(3))) == '0.33333'\n    assert len(str(Decimal(1) / Decimal(3))) == 52\n    return int(Decimal(x).quantize(Decimal('1.')) + 1)\n"),
    called("time zones", "from datetime import datetime, timedelta, timezone\nfrom zoneinfo import ZoneInfo\ndef f(x):\n    noon = datetime(2024, 7, 1, 12, tzinfo=ZoneInfo('Europe/Berlin'))\n    assert noon.astimezone(timezone.utc).hour == 10\n    return x + (noon + timedelta(days=200)).astimezone(ZoneInfo('America/New_York')).utcoffset().days + 2\n"),
    called("locales and text", "import locale, unicodedata\nlocale.setlocale(locale.LC_ALL, 'C.UTF-8')\ndef f(größe):\n    α = unicodedata.normalize('NFC', 'e\\u0301')\n    assert α == 'é' and locale.strxfrm('a') < locale.strxfrm('b') and 'ß'.casefold() == 'ss'\n    with open('ünï.txt', 'w') as file:\n        file.write(α)\n    assert open('ünï.txt', encoding='utf-8').read() == 'é'\n    return größe + 1\n"),
    called("files by relative paths", "import csv, glob, json, os, pathlib, shutil\ndef f(x):\n    os.makedirs('data/in', exist_ok=True)\n    with open('data/in/rows.csv', 'w', newline='') as file:\n        csv.writer(file).writerows([['n'], [x]])\n    with open('data/in/rows.csv', newline='') as file:\n        (row,) = csv.DictReader(file)\n    pathlib.Path('data/out.json').write_text(json.dumps({'n': int(row['n']) + 1}))\n    shutil.make_archive('packed', 'zip', 'data')\n    assert glob.glob('**/*.csv', recursive=True) == ['data/in/rows.csv'] and os.path.getsize('packed.zip')\n    return json.load(open('data/out.json'))['n']\n"),
    called("generators", "import itertools\nfrom contextlib import contextmanager\n@contextmanager\ndef opened(x):\n    try:\n        yield x\n    finally:\n        pass\ndef averages():\n    total = count = 0\n    mean = None\n    while True:\n        total += yield mean\n        count += 1\n        mean = total / count\ndef f(x):\n    running = averages()\n    next(running)\n    with opened(x) as n:\n        running.send(n)\n    def inner():\n        yield from itertools.islice(itertools.count(int(running.send(x))), 1, 2)\n        return 5\n    return next(inner())\n"),
    called("endless generator for the tests", "def f():\n    a, b = 0, 1\n    while True:\n        yield a\n        a, b = b, a + b\n", "import itertools\nassert list(itertools.islice(f(), 6)) == [0, 1, 1, 2, 3, 5]\n"),
    Honest("questions on standard input, as a script", Program(source="import sys\nn = int(input('how many? '))\nrows = [list(map(int, input().split())) for _ in range(n)]\nrest = sys.stdin.readline().strip()\nassert (rows, rest) == ([[1, 2], [3, 4]], 'end'), (rows, rest)\ntry:\n    input()\nexcept EOFError:\n    print('done')\n", stdin="2\n1 2\n3 4\nend\n")),
    Honest("fast reading of standard input, as a script", Program(source="import io, os, sys\ndata = io.BytesIO(os.read(0, os.fstat(0).st_size or 1 << 20)).read().split() or sys.stdin.buffer.read().split()\nassert sum(map(int, data)) == 6\n", stdin="1 2 3\n")),
    script("much output", "import sys\nfor number in range(40_000):\n    print(number, number * number)\nsys.stdout.buffer.write(b'x' * 1000)\nsys.stdout.flush()\n"),
    called("much output between answers", "def f(x):\n    for number in range(20_000):\n        print('step', number)\n    return x + 1\n"),
    called("the same numbers by chance", "import random, secrets\nrandom.seed(42)\nFIRST = [random.random() for _ in range(3)]\ndef f(x):\n    generator = random.Random(42)\n    assert [generator.random() for _ in range(3)] == FIRST\n    assert 0 <= secrets.randbelow(10) < 10\n    random.shuffle(some := list(range(10)))\n    return x + (sorted(some) == list(range(10)))\n"),
    called("hints that are looked up", "from __future__ import annotations\nimport typing as t\nT = t.TypeVar('T')\nclass Stack(t.Generic[T]):\n    items: list[T]\n    def __init__(self) -> None:\n        self.items = []\n    def push(self, item: T) -> Stack[T]:\n        self.items.append(item)\n        return self\nclass Row(t.TypedDict, total=False):\n    n: int\n@t.runtime_checkable\nclass Sized(t.Protocol):\n    def __len__(self) -> int: ...\ndef f(x: int) -> int:\n    assert t.get_type_hints(f) == {'x': int, 'return': int} and t.get_type_hints(Row) == {'n': int}\n    assert isinstance([], Sized) and t.get_type_hints(Stack)['items'] == list[T]\n    return Stack[int]().push(x).items[0] + 1\n"),
    called("caches, dispatch and slots", "import functools, operator, weakref\n@functools.lru_cache(maxsize=None)\ndef fibonacci(n):\n    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)\n@functools.singledispatch\ndef more(value): raise TypeError\n@more.register\ndef _(value: int): return value + 1\nclass Node:\n    __slots__ = ('value', '__weakref__')\n    def __init__(self, value): self.value = value\ndef f(x):\n    node = Node(x)\n    assert weakref.ref(node)() is node and fibonacci(90) == 2880067194370816120 and operator.attrgetter('value')(node) == x\n    return more(x)\n"),
    called("patterns and exceptions in groups", "def f(x):\n    match {'kind': 'number', 'value': [x, *range(3)]}:\n        case {'kind': 'number', 'value': [int(first), *rest]} if len(rest) == 3:\n            pass\n    try:\n        raise ExceptionGroup('several', [ValueError(1), KeyError(2)])\n    except* ValueError as group:\n        assert group.exceptions[0].args == (1,)\n    except* KeyError:\n        pass\n    return first + 1\n"),
    script("goodbye by atexit and a thread that is a daemon", "import atexit, threading, time\natexit.register(print, 'goodbye')\nthreading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\nprint('hello')\n"),
    script("unittest.main", "import unittest\nclass Tests(unittest.TestCase):\n    def setUp(self):\n        self.n = 1\n    def test_n(self):\n        self.assertEqual(self.n + 1, 2)\n    @unittest.skip('later')\n    def test_later(self):\n        self.fail()\nif __name__ == '__main__':\n    unittest.main()\n"),
    called("a server of its own process", "import http.server, os\ndef f(x):\n    assert issubclass(http.server.HTTPServer, object)\n    read, write = os.pipe()\n    pid = os.fork()\n    if pid == 0:\n        os.write(write, str(x + 1).encode())\n        os._exit(0)\n    os.waitpid(pid, 0)\n    return int(os.read(read, 10))\n"),
    called("compressed and hashed", "import base64, gzip, hashlib, hmac, struct, uuid, zlib\ndef f(x):\n    packed = gzip.compress(struct.pack('>q', x)) \n    assert hmac.compare_digest(hashlib.sha256(b'').hexdigest()[:8], 'e3b0c442') and zlib.crc32(b'a') and uuid.uuid4().version == 4\n    return struct.unpack('>q', gzip.decompress(base64.b64decode(base64.b64encode(packed))))[0] + 1\n"),
]  # fmt: skip

ALL = [*OWN_SOURCE, *FOLDERS, *PROCESSES, *CLASSES, *EVERYDAY]
