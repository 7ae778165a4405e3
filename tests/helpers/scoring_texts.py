"""What scoring functions do with a text, and texts do to scoring functions, that is not done every day."""

# ruff: noqa: E501

from __future__ import annotations

# Ways to run a text like those of scoring_driver.py, in less common corners of the standard library.
RARE_WAYS = {
    "an annotation": "import typing; typing.get_type_hints(type('A', (), {'__annotations__': {'a': f'exec({text!r}, dict())'}}))",
    "a factory in a logging configuration": (
        "import logging.config\nformatter = {'()': 'builtins.exec', '__source': text}\n"
        "sys.modules['made'] = type(sys)('made'); sys.modules['made'].make = lambda: exec(text, {})\n"
        "logging.config.dictConfig({'version': 1, 'formatters': {'x': {'()': 'made.make'}}})"
    ),
    "a function of a database": (
        "import sqlite3; line = sqlite3.connect(':memory:'); line.create_function('run', 1, lambda t: exec(t, {})); "
        "line.execute('select run(?)', (text,)).fetchall()"
    ),
    "pdb": "import io, pdb; pdb.Pdb(stdin=io.StringIO('continue\\n' * 9), stdout=io.StringIO(), nosigint=True).runcall(exec, text, {})",
    "an interactive console": (
        "import code; lines = iter([f'exec({text!r})']); console = code.InteractiveConsole({})\n"
        "console.raw_input = lambda prompt='': next(lines, None) or (_ for _ in ()).throw(EOFError)\n"
        "console.interact('', '')"
    ),
    "a module in an archive": (
        "import importlib, zipfile\nwith zipfile.ZipFile('packed.zip', 'w') as packed: packed.write(file, 'inside_zip.py')\n"
        "sys.path.insert(0, os.path.abspath('packed.zip')); importlib.import_module('inside_zip')"
    ),
    "a compiled file": (
        "import py_compile; made = py_compile.compile(file, 'made.pyc', doraise=True); "
        "subprocess.run([sys.executable, '-IS', made], check=True)"
    ),
    "a finder of modules": (
        "import importlib.abc, importlib.machinery, importlib.util\n"
        "class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        return importlib.util.spec_from_loader(name, self) if name == 'conjured' else None\n"
        "    def exec_module(self, module):\n        exec(text, vars(module))\n"
        "sys.meta_path.insert(0, Finder()); __import__('conjured')"
    ),
    "a handler of a signal": "import signal; signal.signal(signal.SIGUSR1, lambda *_: exec(text, {})); signal.raise_signal(10)",
    "a finaliser": "import weakref\nclass A: pass\na = A(); weakref.finalize(a, exec, text, {}); del a",
    "__del__": "type('A', (), {'__del__': lambda self: exec(text, {})})()",
    "a collection of garbage": "import gc; gc.callbacks.append(lambda *_: (gc.callbacks.clear(), exec(text, {}))); gc.collect()",
    "map": "list(map(exec, [text], [{}]))",
    "a timer": "import threading; timer = threading.Timer(0, exec, (text, {})); timer.start(); timer.join()",
    "a scheduler": "import sched; plan = sched.scheduler(); plan.enter(0, 0, exec, (text, {})); plan.run()",
    "a stack of exits": "import contextlib\nwith contextlib.ExitStack() as stack: stack.callback(exec, text, {})",
    "a copy": "import copy; copy.copy(Reduced(text))",
    "a mock": "from unittest import mock; mock.Mock(side_effect=exec)(text, {})",
    "a tracer": "sys.settrace(lambda *_: sys.settrace(None) or exec(text, {}))\n(lambda: None)()\nsys.settrace(None)",
    "pydoc": "import pydoc; pydoc.importfile(file)",
    "a pipe between processes": (
        "from multiprocessing import Pipe; here, there = Pipe(); here.send(Reduced(text)); there.recv()"
    ),
    "a shelf": "import shelve\nwith shelve.open('shelf') as shelf: shelf['a'] = Reduced(text)\nwith shelve.open('shelf') as shelf: shelf['a']",
    "a thread of a loop": "import asyncio; asyncio.run(asyncio.to_thread(exec, text, {}))",
    "a script in a shell's here-document": "subprocess.run(['bash', '-c', f'python3 -IS - <<<\"$TEXT\"'], env=os.environ | {'TEXT': text})",
    "a customised start of Python": (
        "os.mkdir('start'); Path('start/sitecustomize.py').write_text(text); "
        "subprocess.run([sys.executable, '-c', ''], env=os.environ | {'PYTHONPATH': 'start'})"
    ),
    "a warning": "import warnings; warnings.showwarning = lambda *_: exec(text, {}); warnings.simplefilter('always'); warnings.warn('x')",
    "a comparison while it is sorted": (
        "import functools; sorted([1, 2], key=functools.cmp_to_key(lambda a, b: exec(text, {}) or 0))"
    ),
    "a codec": (
        "import codecs; codecs.register(lambda name: exec(text, {}) if name == 'foreign' else None)\n"
        "try: ''.encode('foreign')\nexcept LookupError: pass"
    ),
}  # fmt: skip

# What a text does in its call, after the head; and the text after it, which must have a room as if nothing had been.
HOSTILE = {
    "the parent": "os.kill(os.getppid(), 9)",
    "everybody": "os.kill(-1, 9)",
    "everybody, stopped": "os.kill(-1, signal.SIGSTOP)",
    "the parent, stopped": "os.kill(os.getppid(), signal.SIGSTOP)",
    "its group": "os.killpg(0, 9)",
    "every process that there is": "for pid in os.listdir('/proc'):\n    if pid.isdigit() and pid != str(os.getpid()):\n"
    "        attempt(os.kill, int(pid), signal.SIGSTOP); attempt(os.kill, int(pid), 9)",
    "every descriptor": "for fd in range(1024): attempt(os.write, fd, b'\\xff' * 64)",
    "a full disk": "with open('big', 'wb') as big:\n    while True: big.write(bytes(1 << 20))",
    "a full disk of small files": "for number in range(100_000): open(f'f{number}', 'w').close()",
    "folders within folders": "for _ in range(3000):\n    os.mkdir('d'); os.chdir('d')",
    "files that nobody may touch": "os.mkdir('locked'); open('locked/f', 'w').close(); os.chmod('locked', 0); os.chmod('.', 0)",
    "links to elsewhere": "os.symlink('/usr', 'usr'); os.symlink('/proc/self/root', 'root'); os.mkfifo('pipe')",
    "a process that holds on to everything": "if os.fork() == 0:\n    os.setsid()\n    while True: time.sleep(1)",
    "a line that another process keeps writing to": "if os.fork() == 0:\n    while True: os.write(3, b'x' * 4096)",
    "a thread that never ends": "import threading; threading.Thread(target=time.sleep, args=(3600,)).start()",
    "an exit that hangs": "import atexit; atexit.register(time.sleep, 3600)",
    "a finaliser that hangs": "import weakref; keep = lambda: 0; weakref.finalize(keep, time.sleep, 3600)",
    "lower limits": "import resource; [attempt(resource.setrlimit, kind, (0, 0)) for kind in range(16)]",
    "another root": "attempt(os.chroot, '/tmp'); attempt(os.unshare, 0x10000000) if hasattr(os, 'unshare') else None",
    "the clock": "attempt(time.clock_settime, time.CLOCK_REALTIME, 0)",
    "the memory of others": "attempt(lambda: open(f'/proc/{os.getppid()}/mem', 'wb').write(b'x'))",
    "a trickle": "os.write(3, b'\\xff\\xff\\x00\\x00')\nwhile True:\n    os.write(3, b'x'); time.sleep(0.01)",
    "requests without end": "import json\nbody = json.dumps({'type': 'RequestDataset'}).encode()\n"
    "while True: os.write(3, len(body).to_bytes(4, 'little') + body)",
    "programs that sleep for days": "import json\nbody = json.dumps({'type': 'RunPrograms', 'judged': False, 'limits': "
    "{'seconds': 3600}, 'programs': [{'source': 'import time; time.sleep(1e6)'}] * 100}).encode()\n"
    "os.write(3, len(body).to_bytes(4, 'little') + body); time.sleep(3600)",
    "recursion": "(lambda f: f(f))(lambda f: f(f))",
    "a stack overflow": "sys.setrecursionlimit(1 << 30); exec('x = ' + '(' * 90 + ')' * 90); (lambda f: f(f))(lambda f: f(f))",
}  # fmt: skip
HOSTILE_HEAD = """
import os, signal, sys, time

def attempt(function, *arguments):
    try:
        function(*arguments)
    except BaseException:
        pass

mark = 0.5
"""
HOSTILE_NEXT = """
import os
assert not {"big", "f0", "d", "locked", "usr", "root", "pipe"} & {*os.listdir(), *os.listdir(os.environ["TMPDIR"])}
with open("big", "wb") as big:
    big.write(bytes(64 << 20))
mark = 1.0
"""
