"""The test runner: runs the tests, and calls the program in its own process.

Programs are never forked from it, and it accepts nothing but plain data from them.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import importlib
import json
import marshal
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Callable
from types import BuiltinMethodType, CodeType, MethodType, MethodWrapperType, ModuleType
from typing import Any, NoReturn

from proctor.sandbox.inside import arguments, commands, kernel, plain, purity, traces, wire
from proctor.sandbox.inside import program as program_process
from proctor.sandbox.inside.plain import Packer, Unpacker
from proctor.sandbox.inside.program_object import NotPlainError, ProgramObject, derived

LARGE_JOB = 1 << 16  # arrives in parts; the program's clock starts after the last
_LARGEST_ANSWER = 64 << 20
_LARGEST_PRODUCT = 128 << 20
_MEMORY = 2 << 30
_DETAIL = 4000
_LONGEST_REPR = 300
_CACHE_SIZE = 256
# Modules that tests may use without importing them, if the program imports them. The
# name decides, not what the program has bound to it.
_LIBRARIES = {"np": "numpy", "numpy": "numpy", "pd": "pandas", "pandas": "pandas"}
_MODULES = sys.stdlib_module_names | _LIBRARIES.keys()
# Tests with these names patch modules of the program, redirect its streams or run its
# coroutines, so they run in its process.
_IN_PROCESS_NAMES = (
    {"asyncio"},
    {"redirect_stderr"},
    {"redirect_stdout"},
    {"unittest.mock", "patch"},
    {"mock", "patch"},
)
_STREAMS = frozenset({"stdin", "stdout", "stderr"})
_INVALID_ANSWER_ERRORS = (TypeError, KeyError, IndexError, AttributeError, ValueError, ArithmeticError, RecursionError)
_EXIT_TIMEOUT_MS = 10_000  # for a program that closed its pipe to exit
# Tests that import these run in a fork. The imports, with those of `unittest.main`, take
# longer than the rest of the fork, so they happen once, before it. None of these modules
# has state that one fork could pass to the next.
_IMPORTED_BEFORE_FORK = {"unittest": ("unittest", "locale", "shutil"), "unittest.mock": ("unittest.mock",)}


class ProgramExitedError(BaseException):
    """The program crashed, exited or ran out of memory.

    Not an Exception, so that `except Exception` in tests does not catch it.
    """


def serve(supervisor: socket.socket, jobs: int, verdicts: socket.socket) -> None:
    """Tests one program after another until the supervisor exits."""
    kernel.set_undumpable()
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    gc.enable()
    importlib.import_module("random")  # reseeds itself in every fork, so not in the supervisor
    runner = JobRunner(program_process.source_path(os.getcwd()))
    while True:
        header, descriptors, _, _ = socket.recv_fds(supervisor, 8, 3)
        if not header:
            return
        length = int.from_bytes(header, "little")
        job, blob = _read_job(jobs, length)
        if length > LARGE_JOB:
            supervisor.send(b"r")
        report, product = runner.run(job, blob, ProgramConnection(*descriptors))
        report["detail"] = report["detail"][-_DETAIL:]  # fits into a message
        # A lone surrogate cannot be encoded.
        socket.send_fds(verdicts, [json.dumps(report, ensure_ascii=False).encode(errors="replace")], product)
        for descriptor in (*descriptors, *product):
            os.close(descriptor)
        supervisor.send(b".")


def _read_job(jobs: int, length: int) -> tuple[dict[str, Any], bytes]:
    """Four bytes of length, the job as JSON, then the contents of its files."""
    parts = []
    while length > 0:
        parts.append(os.read(jobs, min(length, 1 << 20)))
        length -= len(parts[-1])
    data = b"".join(parts)
    size = int.from_bytes(data[:4], "little")
    return json.loads(data[4 : 4 + size]), data[4 + size :]


class JobRunner:
    """Runs jobs; caches compiled tests, which the completions of a sample share."""

    def __init__(self, source_path: str) -> None:
        self._source_path = source_path
        self._compiled_tests: dict[tuple[str, str], CompiledTests] = {}

    def run(self, job: dict[str, Any], blob: bytes, connection: ProgramConnection) -> tuple[dict[str, Any], list[int]]:
        """The report, and the files that a compiler made if the job asks for them."""
        try:
            if job["command"]:
                commands.write_files(job["files"], blob)
                report = connection.run(["command", job["command"], job["environment"], job["stdin"]])
                return _collect_product(report) if job["collect"] else (report, [])
            return self._run_python(job, connection), []
        except BaseException as error:  # not the fault of the program
            return {"outcome": "sandbox error", "detail": f"test runner: {traces.summary(error)}"}, []

    def _run_python(self, job: dict[str, Any], connection: ProgramConnection) -> dict[str, Any]:
        try:
            program = compile(job["source"], self._source_path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            detail = traces.frames(error, "solution.py") + traces.summary(error)
            return {"outcome": "failed", "detail": detail}
        if job["testing"] == "exit status":
            return connection.run(["script", job["source"], program, job["stdin"]])
        try:
            compiled = self._compile_tests(job["tests"], job["prelude"])
        except (SyntaxError, ValueError) as error:
            return {"outcome": "sandbox error", "detail": f"The tests do not compile: {traces.summary(error)}"}
        if compiled.in_process and job["testing"] != "in-process":
            return {"outcome": "not plain", "detail": ""}
        if job["testing"] == "in-process":
            return _report(
                connection, lambda: connection.test(job["source"], compiled.prelude, program, compiled.tests), ""
            )

        def run_tests() -> dict[str, Any]:
            namespace = _tests_module(compiled.prelude).__dict__

            def run() -> None:
                _add_program(namespace, connection, compiled, program, job)
                exec(compiled.tests, namespace)

            report = _report(connection, run, job["tests"])
            namespace.clear()  # breaks the cycle with its functions
            return report

        sys.modules["random"].seed(0)  # random test cases are the same each time
        return run_tests() if compiled.pure else _run_in_fork(run_tests)

    def _compile_tests(self, tests: str, prelude: str) -> CompiledTests:
        key = tests, prelude
        if key not in self._compiled_tests:
            if len(self._compiled_tests) >= _CACHE_SIZE:
                self._compiled_tests.clear()
            self._compiled_tests[key] = CompiledTests(tests, prelude)
        return self._compiled_tests[key]


class CompiledTests:
    """Tests, compiled and analysed once for all programs."""

    def __init__(self, tests: str, prelude: str) -> None:
        self.tests = compile(tests, "tests.py", "exec", dont_inherit=True)
        self.names = sorted(purity.names(self.tests))
        self.in_process = any(map({*self.names}.issuperset, _IN_PROCESS_NAMES)) or purity.sets_attribute(
            self.tests, _STREAMS
        )
        self.prelude = _compile_prelude(prelude, self.names)
        self.modules = purity.owners(self.tests, _MODULES)
        """Names of modules in the tests, whatever the program binds to them."""
        self.pure = (
            self.modules <= purity.STATELESS
            and purity.is_pure(self.tests)
            and (self.prelude is None or purity.is_pure(self.prelude))
        )
        for name in _IMPORTED_BEFORE_FORK.keys() & self.names:
            for module in _IMPORTED_BEFORE_FORK[name]:
                importlib.import_module(module)


def _compile_prelude(prelude: str, names: list[str]) -> CodeType | None:
    """None if the tests use none of its names, or if it does not compile by itself."""
    if not any(name in prelude for name in names):
        return None
    try:
        return compile(prelude, "prelude.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None


def _run_in_fork(run_tests: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Runs tests that may leave something behind: a changed module, a file, a process."""
    read_fd, write_fd = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.setpgid(0, 0)
            wire.send(write_fd, json.dumps(run_tests()).encode())
        finally:
            os._exit(0)
    os.close(write_fd)
    pidfd = os.pidfd_open(process)
    report: dict[str, Any] | None = None
    # Processes that the tests started may hold the pipe open after the fork exits.
    if read_fd in select.select([read_fd, pidfd], [], [])[0]:
        with contextlib.suppress(wire.BrokenMessageError):
            report = json.loads(wire.receive(read_fd, _LARGEST_ANSWER))
    os.close(read_fd)
    os.close(pidfd)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    if os.getpid() == 1:  # init of a PID namespace: kills what the tests started
        with contextlib.suppress(ProcessLookupError):  # usually there is nothing
            os.kill(-1, signal.SIGKILL)
    return report or {"outcome": "failed", "detail": f"The tests ended with status {status}."}


def _collect_product(report: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
    """The files that a compiler made, in a memfd: length of the list, list, contents."""
    try:
        files, contents = commands.collect_files(_LARGEST_PRODUCT)
    except OSError as error:
        return {**report, "outcome": "failed", "detail": f"The compiler's files cannot be used: {error}."}, []
    listed = json.dumps(files).encode()
    product = os.memfd_create("product", os.MFD_CLOEXEC)
    with open(os.dup(product), "wb") as file:
        file.write(len(listed).to_bytes(4, "little") + listed + contents)
    return report, [product]


class ProgramConnection:
    """The connection to the program.

    Records how the program exited, because tests may catch what is raised here.
    """

    def __init__(self, read_fd: int, write_fd: int, pidfd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._program_pidfd = pidfd
        self._packer = Packer(self._refer)
        self._unpacker = Unpacker(self._resolve, self._resolve_derived)
        self._poll = select.poll()
        self._poll.register(read_fd, select.POLLIN)
        self._poll.register(pidfd, select.POLLIN)
        self._names: dict[int, str] = {}
        self._program_values: list[Any] = []
        self._classes: dict[tuple[str, type[Exception]], type[Exception]] = {}
        self.exit: tuple[str, str] | None = None
        self.not_plain = False
        self.data: set[str] = set()
        """Names of the program that are bound to plain data."""
        self.namespace: dict[str, Any] = {}
        """The namespace of the tests, updated with these values after each answer."""
        self.catches_stop_iteration = False
        """Whether the tests name StopIteration. Otherwise it could end a loop of the tests."""
        self.last_call: tuple[str, tuple[Any, ...], Any] | None = None

    def run(self, message: list[Any]) -> dict[str, Any]:
        """Runs a whole program; the supervisor reports how it exited."""
        wire.send(self._write_fd, marshal.dumps(message))
        self._await_exit(None)
        return {"outcome": "ended", "detail": ""}

    def load(self, source: str, program: CodeType, names: list[str], modules: set[str]) -> dict[str, Any]:
        """Loads the program; returns its values of these names, and no others.

        Names of `modules` are Python's: `math.isclose` is, whatever the program binds to
        `math`.
        """
        answer = self._ask(["load", source, program, names])
        if answer[0] != "ok" or type(answer[1]) is not dict:
            self._value(answer)
            return {}
        values: dict[str, Any] = {}
        for name in names:
            if name not in answer[1]:
                continue
            packed = answer[1][name]
            tag = packed.get(plain.TAG) if type(packed) is dict else None
            if name in modules:
                values[name] = importlib.import_module(_LIBRARIES.get(name, name))
            elif tag == "module":
                continue
            elif tag == "exception":
                values[name] = self._class_of(*packed["v"])
            else:
                values[name] = self._value(["ok", packed])
                if type(values[name]) is ProgramObject:
                    self._names[values[name]._target] = name
                else:
                    self.data.add(name)
        self._program_values = list(values.values())
        return values

    def test(self, source: str, prelude: CodeType | None, program: CodeType, tests: CodeType) -> None:
        self._value(self._ask(["test", source, prelude, program, tests]))

    def call(self, target: int, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
        packed = {name: self._pack(value) for name, value in named.items()}
        answer = self._ask(["call", target, self._pack(list(positional)), packed])
        if len(answer) > 2 and type(answer[-1]) is list:
            self._take_over(answer[-1], positional, named)
        value, name = self._value(answer), self._names.get(target, "it")
        if type(value) is ProgramObject and name[0].isupper():  # by convention a class
            value.mark_constructed()
        self.last_call = (name, positional, value)
        return value

    def _take_over(self, changes: list[Any], positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        try:
            for position, packed in changes:
                old = named[position] if type(position) is str else positional[position]
                arguments.update_in_place(old, self._unpacker.unpack(packed))
        except _INVALID_ANSWER_ERRORS as wrong:
            self._fail(wrong)

    def ask(self, verb: str, target: int, *rest: Any) -> Any:
        return self._value(self._ask([verb, target, *(self._pack(value) for value in rest)]), ending=verb == "next")

    def _ask(self, message: list[Any]) -> list[Any]:
        if self.exit:
            raise ProgramExitedError
        try:
            wire.send(self._write_fd, marshal.dumps(message))
            if not any(descriptor == self._read_fd for descriptor, _ in self._poll.poll()):
                raise BrokenPipeError
            answer = plain.loads(wire.receive(self._read_fd, _LARGEST_ANSWER))
            if type(answer) is not list or not answer:
                raise ValueError("no answer")
            if len(answer) > 2 and type(answer[-1]) is dict:
                self._update_namespace(answer.pop())
            return answer
        except (OSError, wire.BrokenMessageError) as error:
            self._await_exit(_EXIT_TIMEOUT_MS)
            self.exit = ("ended", f"The program closed its pipe to the tests: {error}")
            raise ProgramExitedError from None
        except (ValueError, RecursionError) as error:
            self._fail(error)

    def _update_namespace(self, changed: dict[str, Any]) -> None:
        """Updates data that the program rebound, except names that the tests bind."""
        try:
            self.namespace |= {name: self._unpacker.unpack(changed[name]) for name in self.data & changed.keys()}
        except _INVALID_ANSWER_ERRORS as wrong:
            self._fail(wrong)

    def _await_exit(self, milliseconds: int | None) -> None:
        poll = select.poll()
        poll.register(self._program_pidfd, select.POLLIN)
        poll.poll(milliseconds)

    def _value(self, answer: list[Any], ending: bool = False) -> Any:
        error: Any = None
        try:
            if answer[0] == "ok":
                return self._unpacker.unpack(answer[1])
            if answer[0] == "raise":
                _, name, builtin, message, frames, *_ = answer
                kind = self._class_of(name, builtin)
                if issubclass(kind, StopIteration) and not (ending or self.catches_stop_iteration):
                    kind, message = RuntimeError, f"The program raised {kind.__name__}."
                error = _exception(kind, str(message))
                error.program_frames = str(frames)
            elif answer[0] == "exit":
                self.exit = ("exited early", f"The program called sys.exit({answer[1]!s:.60}).")
            else:
                self.exit = {
                    "memory": ("memory", "MemoryError"),
                    "processes": ("timeout", "The program reached the limit on processes."),
                }[answer[0]]
        except _INVALID_ANSWER_ERRORS as wrong:
            self._fail(wrong)
        raise error or ProgramExitedError

    def _fail(self, error: Exception) -> NoReturn:
        self.exit = ("failed", f"The program's answer is not plain data: {type(error).__name__}")
        raise ProgramExitedError

    def _class_of(self, name: Any, builtin: Any) -> type[Exception]:
        """A class for each exception of the program: its name, derived from its built-in base."""
        base = getattr(builtins, str(builtin), Exception)
        if not (isinstance(base, type) and issubclass(base, Exception)):
            base = Exception
        if base.__name__ == name:
            return base
        return self._classes.setdefault((str(name), base), type(str(name), (base,), {}))

    def _pack(self, value: Any) -> Any:
        try:
            return self._packer.pack(value)
        except NotPlainError:
            self.not_plain = True
            raise

    def _refer(self, value: Any) -> dict[str, Any]:
        if type(value) is ProgramObject:
            return {plain.TAG: "object", "v": [value._target, value._kind]}
        if passing := self._packer.passing(value):
            return passing
        if self._comes_from_program(value):  # otherwise the program chooses where it is tested
            raise TypeError(f"A {type(value).__qualname__} that comes from the program cannot be passed back to it.")
        raise NotPlainError(type(value).__qualname__)

    def _comes_from_program(self, value: Any) -> bool:
        """Whether the value may come from an answer or a name of the program."""
        if isinstance(value, BuiltinMethodType | MethodType | MethodWrapperType):
            return not isinstance(value.__self__, ModuleType) and self._is_plain(value.__self__)
        module = type(value).__module__
        if module.startswith("numpy") and not module.startswith("numpy.random") and not callable(value):
            dtype = getattr(value, "dtype", None)
            return dtype is None or bool(dtype.hasobject)  # part of an array, or made of a mixed list
        if isinstance(value, BaseException):
            return hasattr(value, "program_frames")
        return isinstance(value, memoryview) or any(value is given for given in self._program_values)

    def _is_plain(self, value: Any) -> bool:
        try:
            self._packer.pack(value)
        except (NotPlainError, TypeError) as error:
            return not isinstance(error, NotPlainError)
        return True

    def _resolve(self, number: Any, kind: Any) -> ProgramObject:
        if type(number) is not int:
            raise ValueError("no reference")
        return ProgramObject(self, number, str(kind))

    def _resolve_derived(self, content: Any, number: Any, kind: Any) -> Any:
        return derived(content, self._resolve(number, kind))


def _tests_module(prelude: CodeType | None) -> ModuleType:
    """The module in which tests run, and in which unittest finds them."""
    module = sys.modules["__main__"] = ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    if prelude is not None:
        try:
            exec(prelude, module.__dict__)
        except Exception:  # it needs names of the program
            return _tests_module(None)
    return module


def _add_program(
    namespace: dict[str, Any],
    connection: ProgramConnection,
    compiled: CompiledTests,
    program: CodeType,
    job: dict[str, Any],
) -> None:
    """Adds the entry point, and names of the tests that only the program defines."""
    used = [name for name in compiled.names if name not in namespace]
    missing = [name for name in used if not hasattr(builtins, name)]
    entry_point = job["entry_point"]
    if entry_point:
        missing.append(entry_point)
    # Tests that use only built-in names mean the program's functions of these names;
    # otherwise the program cannot replace built-ins.
    connection.catches_stop_iteration = "StopIteration" in compiled.names
    namespace.update(connection.load(job["source"], program, missing or used, compiled.modules - {entry_point}))
    if connection.data:
        connection.data -= purity.stored(compiled.tests)
        connection.namespace = namespace


def _exception(kind: type[Exception], message: str) -> Exception:
    try:
        return kind(message)
    except TypeError:  # it takes more arguments, as UnicodeError does
        error = kind.__new__(kind)
        error.args = (message,)
        return error


def _report(connection: ProgramConnection, run: Callable[[], None], tests: str) -> dict[str, Any]:
    try:
        run()
        outcome, detail = "passed", ""
    except ProgramExitedError:
        outcome, detail = "failed", ""
    except MemoryError:
        outcome, detail = "memory", "MemoryError while testing"
    except BaseException as error:
        outcome, detail = "failed", _describe_failure(error, tests, connection.last_call)
        if isinstance(error, SystemExit) and traces.is_success_exit(error):
            outcome, detail = "passed", ""
    if connection.not_plain:
        return {"outcome": "not plain", "detail": detail}
    if connection.exit:
        outcome, detail = connection.exit
    return {"outcome": outcome, "detail": detail}


def _describe_failure(error: BaseException, tests: str, last_call: tuple[str, tuple[Any, ...], Any] | None) -> str:
    detail = traces.frames(error, "tests.py", tests) + getattr(error, "program_frames", "") + traces.summary(error)
    if isinstance(error, AssertionError) and last_call:
        name, arguments, value = last_call
        shown = ", ".join(_short_repr(argument) for argument in arguments)
        detail += f"\nLast call: {name}({shown}) returned {_short_repr(value)}"
    return detail


def _short_repr(value: object) -> str:
    try:
        text = value.description() if type(value) is ProgramObject else repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST_REPR else text[:_LONGEST_REPR] + " …"
