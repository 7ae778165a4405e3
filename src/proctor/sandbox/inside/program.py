"""The process of a program: loads the untrusted source and answers calls."""

from __future__ import annotations

import builtins
import contextlib
import marshal
import math
import operator
import os
import sys
import types
from collections.abc import Iterable
from typing import Any

from proctor.sandbox.inside import plain, traces, wire
from proctor.sandbox.inside.plain import Packer, Unpacker

FOLDER = "program"
"""The program's own folder in the scratch folder."""
SOURCE_FILE = "solution.py"


class ProgramServer:
    """Receives calls from the trusted test runner by marshal, answers as JSON."""

    def __init__(self, read_fd: int, write_fd: int, file: str) -> None:
        """``file``: path of the source, which programs and their child processes read."""
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._file = file
        self._objects: list[Any] = []  # referenced by the tests
        self._numbers: dict[int, int] = {}  # by id()
        self._packer = Packer(self._refer, names_derived=True)
        self._argument_packer = Packer(self._refer_as_argument)
        self._unpacker = Unpacker(lambda number, _kind: self._objects[number])
        self._module = types.ModuleType("solution")
        self._data: dict[str, Any] = {}  # shared with the tests: packed values by name

    def serve(self, message: bytes) -> None:
        """Answers until the supervisor kills this process after the tests."""
        while True:
            answer = self.answer(message)
            flush()
            wire.send(self._write_fd, answer)
            message = wire.receive(self._read_fd, wire.LARGEST)

    def answer(self, message: bytes) -> bytes:
        verb, *arguments = marshal.loads(message)
        try:
            answer = getattr(self, f"_{verb}")(*arguments)
            if self._data and (changed := self._changed_data()):
                answer.append(changed)
            return plain.dumps(answer)
        except BaseException as error:  # what the program raises is the answer
            return plain.dumps(traces.describe(error))

    # The verbs of the tests. An answer is ["ok", value] or `traces.describe(exception)`; the
    # answer to a call ends with a list of the changed arguments.

    def _load(self, _source: str, code: types.CodeType, names: list[str]) -> list[Any]:
        self._execute(code, "solution")
        defined = self._module.__dict__
        values = {name: self._global(defined[name]) for name in names if name in defined}
        self._data = {name: packed for name, packed in values.items() if not _is_reference(packed)}
        return ["ok", values]

    def _test(
        self, _source: str, prelude: types.CodeType | None, code: types.CodeType, tests: types.CodeType
    ) -> list[Any]:
        """Runs the tests in this process, if they need more than calls."""
        import random

        if prelude is not None:
            with contextlib.suppress(Exception):  # it may need names of the program
                self._execute(prelude, "solution")
        self._execute(code, "solution")
        random.seed(0)  # random test cases are the same each time
        try:
            self._execute(tests, "__main__")
        except SystemExit as error:
            if traces.frames(error, SOURCE_FILE):  # the program called sys.exit
                raise
            if not traces.is_success_exit(error):
                raise AssertionError(f"The tests called sys.exit({error.code}).") from None
        return ["ok", None]

    def _call(self, target: int, positional: list[Any], named: dict[str, Any]) -> list[Any]:
        function = self._objects[target]
        arguments = self._unpacker.unpack(positional)
        options = {name: self._unpacker.unpack(value) for name, value in named.items()}
        try:
            value = function(*arguments, **options)
            constructed = type(value) is function and isinstance(value, dict | list | set)
            answer = ["ok", self._refer(value) if constructed else self._packer.pack(value)]
        except BaseException as error:
            answer = [*traces.describe(error)]
        changes = self._changes(enumerate(positional), arguments) + self._changes(named.items(), options)
        return [*answer, changes]

    def _changed_data(self) -> dict[str, Any]:
        now = {name: self._packer.pack(self._module.__dict__.get(name)) for name in self._data}
        changed = {name: packed for name, packed in now.items() if _differ(packed, self._data[name])}
        self._data |= changed
        return changed

    def _changes(self, before: Iterable[tuple[Any, Any]], after: Any) -> list[tuple[Any, Any]]:
        """Positions or names of changed arguments, with their new values."""
        changes = []
        for position, was in before:
            if not plain.is_immutable(after[position]):
                now = self._argument_packer.pack(after[position])
                if _differ(now, was):
                    changes.append((position, now))
        return changes

    def _attribute(self, target: int, name: str) -> list[Any]:
        return ["ok", self._packer.pack(getattr(self._objects[target], name))]

    def _iterate(self, target: int) -> list[Any]:
        return ["ok", self._packer.pack(iter(self._objects[target]))]

    def _next(self, target: int) -> list[Any]:
        return ["ok", self._packer.pack(next(self._objects[target]))]

    def _length(self, target: int) -> list[Any]:
        return ["ok", len(self._objects[target])]

    def _item(self, target: int, key: Any) -> list[Any]:
        return ["ok", self._packer.pack(self._objects[target][self._unpacker.unpack(key)])]

    def _truth(self, target: int) -> list[Any]:
        return ["ok", bool(self._objects[target])]

    def _equal(self, one: int, other: Any) -> list[Any]:
        return ["ok", bool(self._objects[one] == self._unpacker.unpack(other))]

    def _apply(self, _target: int, function: str, arguments: list[Any]) -> list[Any]:
        """Applies a function of Python, such as an operator, to objects of the program."""
        modules = (operator, builtins, math)
        known = next(getattr(module, function) for module in modules if hasattr(module, function))
        return ["ok", self._packer.pack(known(*map(self._unpacker.unpack, arguments)))]

    def _content(self, target: int) -> list[Any]:
        return ["ok", self._packer.content(self._objects[target])]

    def _enter(self, target: int) -> list[Any]:
        manager = self._objects[target]
        return ["ok", self._packer.pack(type(manager).__enter__(manager))]

    def _leave(self, target: int, raised: list[str]) -> list[Any]:
        """`raised`: the class name and message of an exception, if there is one."""
        manager, error = self._objects[target], None
        if raised:
            name, message = raised
            kind = self._module.__dict__.get(name) or getattr(builtins, name, None) or Exception
            error = kind(message)
        return ["ok", bool(type(manager).__exit__(manager, error and type(error), error, None))]

    def _instance(self, one: int, kind: Any) -> list[Any]:
        return ["ok", isinstance(self._objects[one], self._unpacker.unpack(kind))]

    def _refer(self, value: Any) -> dict[str, Any]:
        number = self._numbers.setdefault(id(value), len(self._objects))
        if number == len(self._objects):
            self._objects.append(value)
        return {plain.TAG: "object", "v": [number, type(value).__qualname__]}

    def _refer_as_argument(self, value: Any) -> dict[str, Any]:
        return self._argument_packer.passing(value) or self._refer(value)

    def _global(self, value: Any) -> Any:
        if isinstance(value, types.ModuleType):
            return {plain.TAG: "module", "v": value.__name__}
        if isinstance(value, type) and issubclass(value, Exception):
            return {plain.TAG: "exception", "v": [value.__name__, traces.nearest_builtin(value).__name__]}
        return self._packer.pack(value)

    def _execute(self, code: types.CodeType, name: str) -> None:
        sys.modules[name] = self._module
        self._module.__dict__.update(__name__=name, __file__=self._file, __builtins__=__builtins__)
        exec(code, self._module.__dict__)


def write_source(source: str) -> str:
    """Writes the source to the program's folder, and makes that the working folder.

    Returns the path, which the test runner knows as `source_path`.
    """
    os.mkdir(FOLDER)
    os.chdir(FOLDER)
    file = os.open(SOURCE_FILE, os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(file, source.encode(errors="surrogatepass"))
    os.close(file)
    folder = os.getcwd()
    sys.path.insert(0, folder)
    return os.path.join(folder, SOURCE_FILE)


def source_path(scratch: str) -> str:
    return os.path.join(scratch, FOLDER, SOURCE_FILE)


def _is_reference(packed: Any) -> bool:
    return type(packed) is dict and packed.get(plain.TAG) in ("object", "module", "exception")


def _differ(now: Any, was: Any) -> bool:
    """Compares packed values as JSON, because NaN does not equal itself."""
    if now == was:
        return type(now) is dict and list(now) != list(was)  # the order of keys
    return plain.dumps(now) != plain.dumps(was)


def warm_up() -> None:
    """Specialises the bytecode of this module before the fork, once for all programs."""
    read_fd, write_fd = os.pipe()
    subject = ProgramServer(read_fd, write_fd, SOURCE_FILE)
    program = compile("def f(x): return [x, {'a': (x, 1)}]", SOURCE_FILE, "exec")
    calls = [["call", 0, [1], {}], ["call", 0, [[1, {plain.TAG: "tuple", "v": [1, "a"]}]], {}]]
    for message in (["load", "", program, ["f"]], *calls * 20):
        wire.send(write_fd, subject.answer(marshal.dumps(message)))
        wire.receive(read_fd, wire.LARGEST)
        flush()
    os.close(read_fd)
    os.close(write_fd)
    del sys.modules["solution"]


def run_script(code: types.CodeType, file: str) -> int:
    """Runs the source as a script; returns the exit status."""
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=file, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
        status = 0
    except SystemExit as error:
        status = _exit_status(error)
    except BaseException as error:
        sys.stderr.write(traces.script_traceback(error))
        status = 1
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    import atexit

    atexit._run_exitfuncs()
    flush()
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # the program may have replaced them
    flush()
    return status


def _exit_status(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    sys.stderr.write(f"{error.code}\n")
    return 1


def flush() -> None:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:  # closed, replaced or full
        pass
