"""Name → task: the families' registries, installed packages, a user's own file."""

from __future__ import annotations

import fnmatch
import inspect
import sys
from abc import ABC
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from proctor.core.config import user_path
from proctor.core.errors import UnknownNameError, UsageError, did_you_mean
from proctor.core.loading import import_file, is_file, said_where
from proctor.core.task import Task

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "proctor.tasks"

# Each family keeps a mapping from short name to task class. Named here as text: the core imports no family.
REGISTRIES = {
    "shapes": "proctor.shapes.tasks.registered_tasks:REGISTERED_TASKS",
    "code": "proctor.code.tasks:TASK_REGISTRY",
    "agents": "proctor.agents.tasks:EXAMS",
}

# Families of other packages, behind extras, which take a second to import: asked only for names that begin with theirs.
OPTIONAL_FAMILIES = {
    "reasoning-gym": "proctor.integrations.reasoning_gym:DATA_SETS",
    "gym": "proctor.integrations.gymnasium:ENVIRONMENTS",
}

# Imports a user's file, in which tasks of other harnesses may find what they are used to.
FILE_LOADER = "proctor.integrations.bigcode.loader:TaskFileLoader"
# Lets the modules of a package find the same.
ADOPT = "proctor.integrations.bigcode.loader:adopt"


def expand(pattern: str) -> list[str]:
    """The task names that a name or a wildcard stands for, in order."""
    if is_file(pattern):
        return [pattern]
    if "/" not in pattern:
        pattern = _with_family(pattern)
    family, _, short = pattern.partition("/")
    if is_wildcard(pattern):
        found = fnmatch.filter(task_names(family), pattern)
        if not found:
            raise UsageError(f"No task matches {pattern!r}. `proctor list tasks` shows all.")
        return found
    if short not in _registry(family) and pattern not in installed_tasks():
        raise UnknownNameError(
            "task",
            pattern,
            task_names(family),
            "`proctor list tasks` shows all; a task of your own is path/to/file.py:Class.",
        )
    return [pattern]


def _with_family(pattern: str) -> str:
    """The name or wildcard with its family before it, where only one family has such a task."""
    having = [family for family in REGISTRIES if fnmatch.filter(_registry(family), pattern)]
    return f"{having[0]}/{pattern}" if len(having) == 1 else pattern


def single(pattern: str) -> str:
    """The one task that a name or a wildcard stands for."""
    name, *others = expand(pattern)
    if others:
        raise UsageError(f"{pattern!r} stands for {1 + len(others)} tasks; name one of them.")
    return name


def task_names(guest: str = "") -> list[str]:
    """All names, with those of a guest family if it is asked for."""
    families = [*REGISTRIES, *({guest} & OPTIONAL_FAMILIES.keys())]
    return sorted({f"{family}/{name}" for family in families for name in _registry(family)} | installed_tasks().keys())


def task_class(name: str) -> type[Task]:
    """The class behind a single name."""
    if is_file(name):
        return _from_file(name)
    name = single(name)
    found = registered(name)
    return found if found is not None else _from_entry_point(installed_tasks()[name])


def resolve(task: str | type[Task]) -> tuple[str, type[Task]]:
    """Name and class of a task that is given as either."""
    if isinstance(task, str):
        name = single(task)
        return name, task_class(name)
    return name_of(checked(task)), task


def name_of(cls: type[Task]) -> str:
    """A name under which a class at hand can be found again, where there is one."""
    hosts = [family for family, place in OPTIONAL_FAMILIES.items() if place.partition(":")[0] == cls.__module__]
    for family in (*REGISTRIES, *hosts):
        for name, registered in _registry(family).items():
            if registered is cls:
                return f"{family}/{name}"
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return f"{file}:{cls.__qualname__}" if file else cls.__qualname__


def name_elsewhere(name: str, cls: type[Task]) -> str:
    """A name under which another process finds the task, too: what a user's own code has registered is in its file."""
    home = module_of(cls)
    if registered(name) is None or home.partition(".")[0] == __name__.partition(".")[0]:
        return name
    file = getattr(sys.modules.get(home), "__file__", None)
    return f"{file}:{cls.__qualname__}" if file else name


def module_of(cls: type) -> str:
    """Where a class is defined; of one that a call of `type` has made, which says "abc", where its base is."""
    return next(base.__module__ for base in cls.__mro__ if base.__module__ != ABC.__module__)


def _registry(family: str) -> Mapping[str, type[Task]]:
    """The tasks of one family by short name; the others need not be imported for it."""
    place = REGISTRIES.get(family) or OPTIONAL_FAMILIES.get(family)
    if place is None:
        return {}
    registry: Mapping[str, type[Task]] = import_object(place)
    return registry


def import_object(place: str) -> Any:
    """What is meant by module:name."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def registered(name: str) -> type[Task] | None:
    """The class that a family has under this name."""
    family, _, short = name.partition("/")
    return _registry(family).get(short)


def installed_tasks() -> dict[str, EntryPoint]:
    """What installed packages offer, by name."""
    from importlib.metadata import entry_points  # takes longer to import than all the rest here, and is seldom needed

    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _from_entry_point(point: EntryPoint) -> type[Task]:
    import_object(ADOPT)(point.module)
    try:
        found = point.load()
    except (Exception, SystemExit) as error:
        raise UsageError(f"Task {point.name} ({point.value}) could not be loaded: {said_where(error)}") from error
    return checked(found, point.name)


def is_wildcard(pattern: str) -> bool:
    return not is_file(pattern) and any(c in pattern for c in "*?[")


def variant(name: str) -> str:
    """What tells a task of a file from the others in it: '' where it is the only one."""
    file, _, chosen = name.partition(":")
    try:
        module = _import_file(file)
        made, classes = made_by(module), _classes_in(module)
    except UsageError:  # a run may have outlived its file
        return chosen
    if chosen in made:
        return chosen
    return f"{Path(file).stem}_{chosen}" if chosen and len(made) + len(classes) > 1 else ""


def _import_file(file: str) -> ModuleType:
    path = user_path(file)
    if not path.is_file():
        raise UsageError(f"No task file {file}: expected path/to/file.py:Class.")
    return import_file(path, import_object(FILE_LOADER))


def _classes_in(module: ModuleType) -> dict[str, type[Task]]:
    return {
        n: c
        for n, c in vars(module).items()
        if inspect.isclass(c) and issubclass(c, Task) and c.__module__ == module.__name__
    }


def _from_file(name: str) -> type[Task]:
    file, _, class_name = name.partition(":")
    module = _import_file(file)
    classes, made = _classes_in(module), made_by(module)
    if not class_name and not made and len(classes) == 1:
        return next(iter(classes.values()))
    if not class_name:
        listing = ", ".join(f"{file}:{n}" for n in made or classes) or "none in this file"
        raise UsageError(f"Which task of {file}? Write file.py:Class. Tasks: {listing}.")
    if class_name in made:
        return checked(made[class_name], name)
    if class_name not in vars(module):
        listing = f"Tasks in it: {', '.join([*made, *classes]) or 'none'}."
        raise UsageError(f"{file} has no class {class_name!r}{did_you_mean(class_name, [*made, *classes])} {listing}")
    return checked(getattr(module, class_name), name)


@cache
def made_by(module: ModuleType) -> dict[str, Any]:
    """The tasks that a file makes in a function, or lists under other names than their classes'."""
    try:
        made = module.create_all_tasks() if hasattr(module, "create_all_tasks") else {}
        return {**getattr(module, "TASK_REGISTRY", {}), **made}
    except (Exception, SystemExit) as error:
        path = Path(str(module.__file__))
        raise UsageError(f"{path} could not make its tasks: {said_where(error, path)}") from error


def checked(found: object, name: str = "") -> type[Task]:
    """The same object, if it is a class that can be set as an exam."""
    name = name or repr(found)
    if inspect.isclass(found) and hasattr(found, "exam"):
        found = found.exam()  # another kind of class, which knows how it is set as an exam
    if not (inspect.isclass(found) and issubclass(found, Task)):
        raise UsageError(f"{name} is not a task: a task is a class that extends proctor.Task or a family's Task.")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise UsageError(f"{name} is not complete: it must define {missing}.")
    if not isinstance(found.version, str) or not isinstance(found.group_by, tuple):
        raise UsageError(f"{name}: its version is a text, its group_by a tuple of texts.")
    if not (inspect.isclass(found.Settings) and issubclass(found.Settings, Struct)):
        raise UsageError(f"{name}: its Settings must be a class that extends msgspec.Struct.")
    if found.judge is Task.judge and found.score_text is Task.score_text:
        raise UsageError(f"{name} is not complete: it must define score_text(sample, text), or judge(sample, outputs).")
    return found
