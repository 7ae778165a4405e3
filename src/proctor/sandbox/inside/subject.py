"""The process that holds the untrusted source: loads it, and answers calls with plain data."""

from __future__ import annotations

import marshal
import os
import sys
import types
from typing import Any

from proctor.sandbox.inside import plain, traces, wire
from proctor.sandbox.inside.plain import Packer, Unpacker

SOURCE_FILE = "solution.py"
TESTS_FILE = "tests.py"
_LARGEST = 1 << 30
_CHANGEABLE = (list, dict, set, bytearray)


class Subject:
    """Its messages come from the examiner, which is trusted, as marshalled Python; its answers go back as JSON."""

    def __init__(self, ear: int, mouth: int) -> None:
        self._ear = ear
        self._mouth = mouth
        self._objects: list[Any] = []  # what the tests hold a reference to
        self._packer = Packer(self._refer)
        self._unpacker = Unpacker(lambda number, _kind: self._objects[number])
        self._module = types.ModuleType("solution")

    def serve(self, message: bytes) -> None:
        """Answers until the tests are over; then this process is killed with all that it started."""
        while True:
            answer = self.answer(message)
            flush()
            wire.send(self._mouth, answer)
            message = wire.receive(self._ear, _LARGEST)

    def answer(self, message: bytes) -> bytes:
        verb, *arguments = marshal.loads(message)
        try:
            return plain.dumps(getattr(self, f"_{verb}")(*arguments))
        except BaseException as error:  # whatever the program raises is its answer
            return plain.dumps(traces.of_subject(error))

    # What the tests can ask for. Each answer is ["ok", value, arguments if they were changed].

    def _load(self, code: types.CodeType, wanted: list[str]) -> list[Any]:
        self._execute(code, SOURCE_FILE, "solution")
        found = self._module.__dict__
        return ["ok", {name: self._global(found[name]) for name in wanted if name in found}, None]

    def _test(self, code: types.CodeType, tests: types.CodeType) -> list[Any]:
        """Both in one process: for tests that need more than calls."""
        self._execute(code, SOURCE_FILE, "solution")
        self._execute(tests, TESTS_FILE, "__main__")
        return ["ok", None, None]

    def _call(self, target: int, positional: Any, named: Any) -> list[Any]:
        function = self._objects[target]
        arguments = self._unpacker.unpack(positional)
        value = self._packer.pack(function(*arguments, **self._unpacker.unpack(named)))
        changed = None
        if any(isinstance(argument, _CHANGEABLE) for argument in arguments):
            after = self._packer.pack(arguments)
            changed = after if after != positional else None
        return ["ok", value, changed]

    def _attribute(self, target: int, name: str) -> list[Any]:
        return ["ok", self._packer.pack(getattr(self._objects[target], name)), None]

    def _iterate(self, target: int) -> list[Any]:
        return ["ok", self._packer.pack(iter(self._objects[target])), None]

    def _next(self, target: int) -> list[Any]:
        return ["ok", self._packer.pack(next(self._objects[target])), None]

    def _length(self, target: int) -> list[Any]:
        return ["ok", len(self._objects[target]), None]

    def _item(self, target: int, key: Any) -> list[Any]:
        return ["ok", self._packer.pack(self._objects[target][self._unpacker.unpack(key)]), None]

    def _truth(self, target: int) -> list[Any]:
        return ["ok", bool(self._objects[target]), None]

    def _equal(self, one: int, other: Any) -> list[Any]:
        return ["ok", bool(self._objects[one] == self._unpacker.unpack(other)), None]

    def _instance(self, one: int, kind: Any) -> list[Any]:
        return ["ok", isinstance(self._objects[one], self._unpacker.unpack(kind)), None]

    def _refer(self, value: Any) -> list[Any]:
        self._objects.append(value)
        return [len(self._objects) - 1, type(value).__qualname__]

    def _global(self, value: Any) -> Any:
        if isinstance(value, types.ModuleType):
            return {"#": "module", "v": value.__name__}
        if isinstance(value, type) and issubclass(value, Exception):
            return {"#": "exception", "v": [value.__name__, traces.nearest_builtin(value).__name__]}
        return self._packer.pack(value)

    def _execute(self, code: types.CodeType, file: str, name: str) -> None:
        sys.modules[name] = self._module
        self._module.__dict__.update(__name__=name, __file__=os.path.join(os.getcwd(), file), __builtins__=__builtins__)
        exec(code, self._module.__dict__)


def warm_up() -> None:
    """Python fits its code to what it meets in the first calls. Done before the fork, no program has to pay for it."""
    ear, mouth = os.pipe()
    subject = Subject(ear, mouth)
    program = compile("def f(x): return [x, {'a': (x, 1)}]", SOURCE_FILE, "exec")
    calls = [["call", 0, [1], {}], ["call", 0, [[1, {plain.TAG: "tuple", "v": [1, "a"]}]], {}]]
    for message in (["load", program, ["f"]], *calls * 20):
        wire.send(mouth, subject.answer(marshal.dumps(message)))
        wire.receive(ear, _LARGEST)
        flush()
    os.close(ear)
    os.close(mouth)
    del sys.modules["solution"]


def run_script(code: types.CodeType) -> int:
    """The source as a program of its own, from the top to a normal end; returns the exit status."""
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=os.path.join(os.getcwd(), SOURCE_FILE), __builtins__=__builtins__)
    sys.modules["__main__"] = module
    sys.argv = [SOURCE_FILE]
    try:
        exec(code, module.__dict__)
        status = 0
    except SystemExit as leaving:
        status = _exit_status(leaving)
    except BaseException as error:
        sys.stderr.write(traces.of_script(error))
        status = 1
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    import atexit

    atexit._run_exitfuncs()
    flush()
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # written out at the end whatever has taken their place
    flush()
    return status


def _exit_status(leaving: SystemExit) -> int:
    if leaving.code is None:
        return 0
    if isinstance(leaving.code, int):
        return leaving.code & 0xFF
    sys.stderr.write(f"{leaving.code}\n")
    return 1


def flush() -> None:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:  # the program may have closed or replaced them, or filled them up
        pass
