"""References of the tests to objects in the program's process."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any

from proctor.sandbox.inside.plain import ORIGIN

if TYPE_CHECKING:
    from proctor.sandbox.inside.test_runner import ProgramConnection

# The special names of Python's types. Others are protocols of libraries: by one of them an
# object tells numpy the address of its data.
_SPECIAL = frozenset(name for kind in (int, set, str, memoryview, type, FunctionType) for name in dir(kind))
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
_UNARY = ("neg", "pos", "abs", "invert", "index", "int", "float", "complex", "trunc", "floor", "ceil", "round")
_ORDER = ("lt", "le", "gt", "ge")


class NotPlainError(Exception):
    """The tests pass something that is not plain data, so they must run in the program."""


class IncomparableError(TypeError):
    """The program answered with an object where the tests need a value."""


class ProgramObject:
    """Can be called, iterated and changed; its answers are not trusted.

    The program compares and combines two of its objects. Against a value of the tests it
    could give any answer, so combining yields only another object, which has no number,
    order or truth value.
    """

    __slots__ = ("_connection", "_constructed", "_kind", "_mixed", "_target")

    def __init__(self, connection: ProgramConnection, target: int, kind: str) -> None:
        attributes = {
            "_connection": connection,
            "_target": target,
            "_kind": kind,
            "_mixed": False,
            "_constructed": False,
        }
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def mark_constructed(self) -> None:
        """Marks an object that the tests constructed; it is not an answer."""
        object.__setattr__(self, "_constructed", True)

    def description(self) -> str:
        return f"<{self._kind} of the program>"

    def __call__(self, *positional: Any, **named: Any) -> Any:
        return self._connection.call(self._target, positional, named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _SPECIAL:
            raise AttributeError(f"Tests cannot ask an object of the program for {name}.")
        return self._connection.ask("attribute", self._target, name)

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        return self._connection.ask("attribute", self._target, "__doc__")

    def __setattr__(self, name: str, value: Any) -> None:
        self._apply("setattr", name, value)

    def __delattr__(self, name: str) -> None:
        self._apply("delattr", name)

    def __iter__(self) -> Any:
        return self._connection.ask("iterate", self._target)

    def __next__(self) -> Any:
        return self._connection.ask("next", self._target)

    def __contains__(self, value: object) -> bool:
        if self._constructed:
            return self._apply("contains", value) is True
        return any(value is item or value == item for item in self)

    def __reversed__(self) -> Any:
        return self._apply("reversed")

    def __len__(self) -> Any:
        return self._connection.ask("length", self._target)

    def __getitem__(self, key: Any) -> Any:
        return self._connection.ask("item", self._target, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._apply("setitem", key, value)

    def __delitem__(self, key: Any) -> None:
        self._apply("delitem", key)

    def __enter__(self) -> Any:
        return self._connection.ask("enter", self._target)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        raised = [] if kind is None else [kind.__name__, str(error)]
        suppressed: bool = self._connection.ask("leave", self._target, raised)
        return suppressed is True and not isinstance(error, AssertionError | IncomparableError)

    def __str__(self) -> str:
        return self._text(self._apply("str"))

    def __repr__(self) -> str:
        return self._text(self._apply("repr"))

    def __format__(self, how: str) -> str:
        return self._text(self._apply("format", how))

    def __hash__(self) -> int:
        return hash(self._apply("hash"))

    def __eq__(self, other: object) -> Any:
        if type(other) is ProgramObject:  # the program compares its own objects
            return self._connection.ask("equal", self._target, other)
        content = self._connection.ask("content", self._target)  # of a list, dict or set with its own methods
        if type(content) not in (dict, list, set):
            raise self._incomparable()
        return content == other

    def __bool__(self) -> bool:
        if self._mixed:
            raise self._incomparable()
        return self._connection.ask("truth", self._target) is True  # the program may answer a bool anyway

    def __instancecheck__(self, value: object) -> Any:
        return type(value) is ProgramObject and self._connection.ask("instance", value._target, self)

    def __mro_entries__(self, _bases: object) -> Any:
        self._connection.not_plain = True  # the tests subclass a class of the program
        raise NotPlainError(self._kind)

    def _apply(self, function: str, *arguments: Any) -> Any:
        return self._connection.ask("apply", self._target, function, [self, *arguments])

    def _combine(self, function: str, other: Any, *, swapped: bool = False) -> Any:
        operands = [other, self] if swapped else [self, other]
        result = self._connection.ask("apply", self._target, function, operands)
        if self._mixed or type(other) is not ProgramObject or other._mixed:
            if type(result) is not ProgramObject:
                raise self._incomparable()
            object.__setattr__(result, "_mixed", True)
        return result

    def _compare(self, function: str, other: Any) -> Any:
        if type(other) is not ProgramObject:
            raise self._incomparable()
        return self._apply(function, other)

    def _convert(self, function: str, *arguments: Any) -> Any:
        if self._mixed:
            raise self._incomparable()
        return self._apply(function, *arguments)

    def _text(self, answer: Any) -> str:
        if type(answer) is not str:
            raise self._incomparable()
        return answer

    def _incomparable(self) -> IncomparableError:
        return IncomparableError(
            f"The program answered with an object of its own class {self._kind}, not with a value."
        )


def derived(content: Any, remote: ProgramObject) -> Any:
    """Plain data of a derived class: compared as its base, with its other attributes."""

    def ask(value: Any, name: str) -> Any:
        return getattr(remote, name)

    def copy_plainly(value: Any, _memo: object = None) -> Any:
        return content

    base = type(content)
    members: dict[str, Any] = {"__getattr__": ask, "__copy__": copy_plainly, "__deepcopy__": copy_plainly}
    if not isinstance(content, dict | list | set):  # mutable ones may differ by now
        members[ORIGIN] = remote
    return type(base.__name__, (base,), members)(content)


def _asking(method: Callable[..., Any], function: str, **options: Any) -> Callable[..., Any]:
    return lambda self, *arguments: method(self, function, *arguments, **options)


def _add_operators() -> None:
    for name in _BINARY:
        function = name if hasattr(operator, name) else f"{name}_"
        setattr(ProgramObject, f"__{name}__", _asking(ProgramObject._combine, function))
        setattr(ProgramObject, f"__r{name}__", _asking(ProgramObject._combine, function, swapped=True))
        setattr(ProgramObject, f"__i{name}__", _asking(ProgramObject._combine, f"i{name}"))
    for name in _UNARY:
        setattr(ProgramObject, f"__{name}__", _asking(ProgramObject._convert, name))
    for name in _ORDER:
        setattr(ProgramObject, f"__{name}__", _asking(ProgramObject._compare, name))


_add_operators()
