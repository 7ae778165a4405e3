"""The process that holds the tests. No program is ever forked from it, and it believes nothing but plain data."""

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

LARGE_JOB = 1 << 16  # does not come in one piece, and a program's time must not start before it is there
_LARGEST_ANSWER = 64 << 20
_LARGEST_PRODUCT = 128 << 20
_MEMORY = 2 << 30
_DETAIL = 4000
_LONGEST_REPR = 300
_CACHE_SIZE = 256
# Modules that tests may use without an import of their own, where the program has one. The name decides, and never what
# the program has imported under it.
_LIBRARIES = {"np": "numpy", "numpy": "numpy", "pd": "pandas", "pandas": "pandas"}
_MODULES = sys.stdlib_module_names | _LIBRARIES.keys()
# Tests with these reach into the process of what they test: they replace parts of its modules, take over what it prints
# or reads, run its coroutines.
_IN_PROCESS_NAMES = (
    {"asyncio"},
    {"redirect_stderr"},
    {"redirect_stdout"},
    {"unittest.mock", "patch"},
    {"mock", "patch"},
)
_STREAMS = frozenset({"stdin", "stdout", "stderr"})
_INVALID_ANSWER_ERRORS = (TypeError, KeyError, IndexError, AttributeError, ValueError, ArithmeticError, RecursionError)
_EXIT_TIMEOUT_MS = 10_000  # milliseconds for a program that closed its line to end, also on a busy machine
# Tests that import these run in a process of their own. The imports, with those that `unittest.main` makes on the way,
# take longer than all else that such a process does, and longer on Python 3.12 and 3.13 than on 3.11. So they happen
# once, before the fork: none of these modules keeps a state that one fork could hand to the next.
_IMPORTED_BEFORE_FORK = {"unittest": ("unittest", "locale", "shutil"), "unittest.mock": ("unittest.mock",)}


class ProgramExitedError(BaseException):
    """The program is gone: it crashed, left, or ran out of memory. Not an Exception, so that tests let it through."""


def serve(orders: socket.socket, jobs: int, verdicts: socket.socket) -> None:
    """Judges one program after another, until the warden is gone."""
    kernel.set_undumpable()
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    gc.enable()
    importlib.import_module("random")  # not in the warden: it seeds itself anew in every fork
    runner = JobRunner(program_process.source_path(os.getcwd()))
    while True:
        order, descriptors, _, _ = socket.recv_fds(orders, 8, 3)
        if not order:
            return
        length = int.from_bytes(order, "little")
        job, blob = _read_job(jobs, length)
        if length > LARGE_JOB:
            orders.send(b"r")
        report, product = runner.run(job, blob, ProgramConnection(*descriptors))
        report["detail"] = report["detail"][-_DETAIL:]  # a message has room for so much
        # Half a surrogate pair is a character that no message can carry.
        socket.send_fds(verdicts, [json.dumps(report, ensure_ascii=False).encode(errors="replace")], product)
        for descriptor in (*descriptors, *product):
            os.close(descriptor)
        orders.send(b".")


def _read_job(jobs: int, length: int) -> tuple[dict[str, Any], bytes]:
    """Four bytes of length, the job as JSON, then the contents of the files that it brings."""
    parts = []
    while length > 0:
        parts.append(os.read(jobs, min(length, 1 << 20)))
        length -= len(parts[-1])
    data = b"".join(parts)
    size = int.from_bytes(data[:4], "little")
    return json.loads(data[4 : 4 + size]), data[4 + size :]


class JobRunner:
    """Holds exams; remembers tests it has compiled, because the samples of one problem share them."""

    def __init__(self, source_path: str) -> None:
        self._source_path = source_path
        self._compiled_tests: dict[tuple[str, str], CompiledTests] = {}

    def run(self, job: dict[str, Any], blob: bytes, link: ProgramConnection) -> tuple[dict[str, Any], list[int]]:
        """The report, and what a compiler made, if that was asked for."""
        try:
            if job["command"]:
                commands.write_files(job["files"], blob)
                report = link.run(["command", job["command"], job["environment"], job["stdin"]])
                return _collect_product(report) if job["collect"] else (report, [])
            return self._run_python(job, link), []
        except BaseException as error:  # a fault of ours, not the program's
            return {"outcome": "sandbox error", "detail": f"test runner: {traces.summary(error)}"}, []

    def _run_python(self, job: dict[str, Any], link: ProgramConnection) -> dict[str, Any]:
        try:
            program = compile(job["source"], self._source_path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            told = traces.frames(error, "solution.py") + traces.summary(error)
            return {"outcome": "failed", "detail": told}
        if job["testing"] == "exit status":
            return link.run(["script", job["source"], program, job["stdin"]])
        try:
            compiled = self._compile_tests(job["tests"], job["prelude"])
        except (SyntaxError, ValueError) as error:
            return {"outcome": "sandbox error", "detail": f"The tests do not compile: {traces.summary(error)}"}
        if compiled.in_process and job["testing"] != "in-process":
            return {"outcome": "not plain", "detail": ""}
        if job["testing"] == "in-process":
            return _report(link, lambda: link.test(job["source"], compiled.prelude, program, compiled.tests), "")

        def run_tests() -> dict[str, Any]:
            space = _tests_module(compiled.prelude).__dict__

            def run() -> None:
                _add_program(space, link, compiled, program, job)
                exec(compiled.tests, space)

            report = _report(link, run, job["tests"])
            space.clear()  # its functions refer to it, and it to them
            return report

        sys.modules["random"].seed(0)  # tests that draw their cases draw the same ones every time
        return run_tests() if compiled.pure else _run_in_fork(run_tests)

    def _compile_tests(self, tests: str, prelude: str) -> CompiledTests:
        key = tests, prelude
        if key not in self._compiled_tests:
            if len(self._compiled_tests) >= _CACHE_SIZE:
                self._compiled_tests.clear()
            self._compiled_tests[key] = CompiledTests(tests, prelude)
        return self._compiled_tests[key]


class CompiledTests:
    """Tests, compiled and looked through once, for all the programs that they judge."""

    def __init__(self, tests: str, prelude: str) -> None:
        self.tests = compile(tests, "tests.py", "exec", dont_inherit=True)
        self.names = sorted(purity.names(self.tests))
        self.in_process = any(map({*self.names}.issuperset, _IN_PROCESS_NAMES)) or purity.sets_attribute(
            self.tests, _STREAMS
        )
        self.prelude = _compile_prelude(prelude, self.names)
        self.modules = purity.owners(self.tests, _MODULES)
        """Names that stand for modules wherever the tests use them."""
        self.pure = (
            self.modules <= purity.STATELESS
            and purity.is_pure(self.tests)
            and (self.prelude is None or purity.is_pure(self.prelude))
        )
        for name in _IMPORTED_BEFORE_FORK.keys() & self.names:
            for module in _IMPORTED_BEFORE_FORK[name]:
                importlib.import_module(module)


def _compile_prelude(prelude: str, names: list[str]) -> CodeType | None:
    """None where the tests use none of its names, or it is half a function or prose: then the program has the names."""
    if not any(name in prelude for name in names):
        return None
    try:
        return compile(prelude, "prelude.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None


def _run_in_fork(run_tests: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """In a process of its own, for tests that might leave something behind: a changed module, a file, a process."""
    read_fd, write_fd = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.setpgid(0, 0)
            wire.send(write_fd, json.dumps(run_tests()).encode())
        finally:
            os._exit(0)
    os.close(write_fd)
    end = os.pidfd_open(process)
    told: dict[str, Any] | None = None
    if (
        read_fd in select.select([read_fd, end], [], [])[0]
    ):  # else something that the tests started may still hold the pipe
        with contextlib.suppress(wire.BrokenMessageError):
            told = json.loads(wire.receive(read_fd, _LARGEST_ANSWER))
    os.close(read_fd)
    os.close(end)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    if os.getpid() == 1:  # of a namespace of our own: whatever the tests started ends with them
        with contextlib.suppress(ProcessLookupError):  # nothing, mostly
            os.kill(-1, signal.SIGKILL)
    return told or {"outcome": "failed", "detail": f"The tests ended with status {status}."}


def _collect_product(report: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
    """The compiler's product as a file that lies nowhere, written as: length of the list, the list, the contents."""
    try:
        files, contents = commands.collect_files(_LARGEST_PRODUCT)
    except OSError as error:
        return {**report, "outcome": "failed", "detail": f"What was made cannot be used: {error}."}, []
    listed = json.dumps(files).encode()
    product = os.memfd_create("product", os.MFD_CLOEXEC)
    with open(os.dup(product), "wb") as file:
        file.write(len(listed).to_bytes(4, "little") + listed + contents)
    return report, [product]


class ProgramConnection:
    """Asks the subject. Remembers how it ended, because tests may swallow what is raised here."""

    def __init__(self, read_fd: int, write_fd: int, end: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._program_pidfd = end
        self._packer = Packer(self._refer)
        self._unpacker = Unpacker(self._remote, self._derived)
        self._poll = select.poll()
        self._poll.register(read_fd, select.POLLIN)
        self._poll.register(end, select.POLLIN)
        self._names: dict[int, str] = {}
        self._given: list[Any] = []
        self._classes: dict[tuple[str, type[Exception]], type[Exception]] = {}
        self.ended: tuple[str, str] | None = None
        self.not_plain = False
        self.data: set[str] = set()
        """Names of the program that stand for plain data."""
        self.space: dict[str, Any] = {}
        """Where the tests find these, as they are after each answer."""
        self.stops = False
        """Whether the tests know StopIteration by name. Else it could end a loop of theirs around a call."""
        self.last_call: tuple[str, tuple[Any, ...], Any] | None = None

    def run(self, message: list[Any]) -> dict[str, Any]:
        """A whole program: how it ended, the warden will say."""
        wire.send(self._write_fd, marshal.dumps(message))
        self._await_end(None)
        return {"outcome": "ended", "detail": ""}

    def load(self, source: str, program: CodeType, wanted: list[str], modules: set[str]) -> dict[str, Any]:
        """The program's own names among those wanted, and no others: it must not replace what the tests are made of.

        `math.isclose` is Python's, whatever the program has called math.
        """
        answer = self._ask(["load", source, program, wanted])
        if answer[0] != "ok" or type(answer[1]) is not dict:
            self._value(answer)
            return {}
        found: dict[str, Any] = {}
        for name in wanted:
            if name not in answer[1]:
                continue
            packed = answer[1][name]
            tag = packed.get(plain.TAG) if type(packed) is dict else None
            if name in modules:
                found[name] = importlib.import_module(_LIBRARIES.get(name, name))
            elif tag == "module":
                continue
            elif tag == "exception":
                found[name] = self._class_of(*packed["v"])
            else:
                found[name] = self._value(["ok", packed])
                if type(found[name]) is ProgramObject:
                    self._names[found[name]._target] = name
                else:
                    self.data.add(name)
        self._given = list(found.values())
        return found

    def test(self, source: str, prelude: CodeType | None, program: CodeType, tests: CodeType) -> None:
        self._value(self._ask(["test", source, prelude, program, tests]))

    def call(self, target: int, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
        packed = {name: self._pack(value) for name, value in named.items()}
        answer = self._ask(["call", target, self._pack(list(positional)), packed])
        if len(answer) > 2 and type(answer[-1]) is list:
            self._take_over(answer[-1], positional, named)
        value, name = self._value(answer), self._names.get(target, "it")
        if type(value) is ProgramObject and name[0].isupper():  # as classes are called
            value.mark_constructed()
        self.last_call = (name, positional, value)
        return value

    def _take_over(self, changes: list[Any], positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        try:
            for place, packed in changes:
                old = named[place] if type(place) is str else positional[place]
                arguments.update_in_place(old, self._unpacker.unpack(packed))
        except _INVALID_ANSWER_ERRORS as wrong:
            self._give_up(wrong)

    def ask(self, verb: str, target: int, *rest: Any) -> Any:
        return self._value(self._ask([verb, target, *(self._pack(value) for value in rest)]), ending=verb == "next")

    def _ask(self, message: list[Any]) -> list[Any]:
        if self.ended:
            raise ProgramExitedError
        try:
            wire.send(self._write_fd, marshal.dumps(message))
            if not any(descriptor == self._read_fd for descriptor, _ in self._poll.poll()):
                raise BrokenPipeError
            answer = plain.loads(wire.receive(self._read_fd, _LARGEST_ANSWER))
            if type(answer) is not list or not answer:
                raise ValueError("no answer")
            if len(answer) > 2 and type(answer[-1]) is dict:
                self._renew(answer.pop())
            return answer
        except (OSError, wire.BrokenMessageError) as error:
            self._await_end(_EXIT_TIMEOUT_MS)
            self.ended = ("ended", f"The program closed its line to the tests: {error}")
            raise ProgramExitedError from None
        except (ValueError, RecursionError) as error:
            self._give_up(error)

    def _renew(self, changed: dict[str, Any]) -> None:
        """Data of the program that are others now. What the tests have themselves under a name stays theirs."""
        try:
            self.space |= {name: self._unpacker.unpack(changed[name]) for name in self.data & changed.keys()}
        except _INVALID_ANSWER_ERRORS as wrong:
            self._give_up(wrong)

    def _await_end(self, milliseconds: int | None) -> None:
        poll = select.poll()
        poll.register(self._program_pidfd, select.POLLIN)
        poll.poll(milliseconds)

    def _value(self, answer: list[Any], ending: bool = False) -> Any:
        error: Any = None
        try:
            if answer[0] == "ok":
                return self._unpacker.unpack(answer[1])
            if answer[0] == "raise":
                _, name, builtin, message, told, *_ = answer
                kind = self._class_of(name, builtin)
                if issubclass(kind, StopIteration) and not (ending or self.stops):
                    kind, message = RuntimeError, f"The program raised {kind.__name__}."
                error = _exception(kind, str(message))
                error.told = str(told)
            elif answer[0] == "exit":
                self.ended = ("exited early", f"The program left with sys.exit({answer[1]!s:.60}).")
            else:
                self.ended = {
                    "memory": ("memory", "MemoryError"),
                    "processes": ("timeout", "The program started processes until no more were allowed."),
                }[answer[0]]
        except _INVALID_ANSWER_ERRORS as wrong:
            self._give_up(wrong)
        raise error or ProgramExitedError

    def _give_up(self, wrong: Exception) -> NoReturn:
        self.ended = ("failed", f"The program's answer is no plain data: {type(wrong).__name__}")
        raise ProgramExitedError

    def _class_of(self, name: Any, builtin: Any) -> type[Exception]:
        """The program's own exceptions are told apart by name, and caught like the built-in one they derive from."""
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
        if self._comes_of_an_answer(value):  # else a program could choose where it is tested
            raise TypeError(f"A {type(value).__qualname__} that comes from the program cannot be handed back to it.")
        raise NotPlainError(type(value).__qualname__)

    def _comes_of_an_answer(self, value: Any) -> bool:
        """Whether it may be there only because of what the program answered, or has under its names."""
        if isinstance(value, BuiltinMethodType | MethodType | MethodWrapperType):
            return not isinstance(value.__self__, ModuleType) and self._is_plain(value.__self__)
        home = type(value).__module__
        if home.startswith("numpy") and not home.startswith("numpy.random") and not callable(value):
            dtype = getattr(value, "dtype", None)
            return dtype is None or bool(dtype.hasobject)  # a part of an array, or one that a mixed list became
        if isinstance(value, BaseException):
            return hasattr(value, "told")
        return isinstance(value, memoryview) or any(value is given for given in self._given)

    def _is_plain(self, value: Any) -> bool:
        try:
            self._packer.pack(value)
        except (NotPlainError, TypeError) as error:
            return not isinstance(error, NotPlainError)
        return True

    def _remote(self, number: Any, kind: Any) -> ProgramObject:
        if type(number) is not int:
            raise ValueError("no reference")
        return ProgramObject(self, number, str(kind))

    def _derived(self, content: Any, number: Any, kind: Any) -> Any:
        return derived(content, self._remote(number, kind))


def _tests_module(prelude: CodeType | None) -> ModuleType:
    """Where tests run, and where unittest looks for them."""
    module = sys.modules["__main__"] = ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    if prelude is not None:
        try:
            exec(prelude, module.__dict__)
        except Exception:  # it needs what only the whole program has
            return _tests_module(None)
    return module


def _add_program(
    space: dict[str, Any], link: ProgramConnection, compiled: CompiledTests, program: CodeType, job: dict[str, Any]
) -> None:
    """The entry point, and all that only the program defines among the names that the tests use."""
    used = [name for name in compiled.names if name not in space]
    missing = [name for name in used if not hasattr(builtins, name)]
    entry_point = job["entry_point"]
    if entry_point:
        missing.append(entry_point)
    # Tests that use nothing but built-in names mean the program's own function of such a name. Otherwise the tests'
    # built-ins are not the program's business.
    link.stops = "StopIteration" in compiled.names
    space.update(link.load(job["source"], program, missing or used, compiled.modules - {entry_point}))
    if link.data:
        link.data -= purity.stored(compiled.tests)
        link.space = space


def _exception(kind: type[Exception], message: str) -> Exception:
    try:
        return kind(message)
    except TypeError:  # it is not made from a text alone, as those about characters
        error = kind.__new__(kind)
        error.args = (message,)
        return error


def _report(link: ProgramConnection, run: Callable[[], None], tests: str) -> dict[str, Any]:
    try:
        run()
        outcome, detail = "passed", ""
    except ProgramExitedError:
        outcome, detail = "failed", ""
    except MemoryError:
        outcome, detail = "memory", "MemoryError while testing"
    except BaseException as error:
        outcome, detail = "failed", _describe_failure(error, tests, link.last_call)
        if isinstance(error, SystemExit) and traces.is_success_exit(error):
            outcome, detail = "passed", ""
    if link.not_plain:
        return {"outcome": "not plain", "detail": detail}
    if link.ended:
        outcome, detail = link.ended
    return {"outcome": outcome, "detail": detail}


def _describe_failure(error: BaseException, tests: str, last_call: tuple[str, tuple[Any, ...], Any] | None) -> str:
    told = traces.frames(error, "tests.py", tests) + getattr(error, "told", "") + traces.summary(error)
    if isinstance(error, AssertionError) and last_call:
        name, arguments, value = last_call
        shown = ", ".join(_short_repr(argument) for argument in arguments)
        told += f"\nThe last call before: {name}({shown}) returned {_short_repr(value)}"
    return told


def _short_repr(value: object) -> str:
    try:
        text = value.description() if type(value) is ProgramObject else repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST_REPR else text[:_LONGEST_REPR] + " …"
