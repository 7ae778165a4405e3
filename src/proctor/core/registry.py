"""Name → task class: from the registries of the families, installed packages or a file."""

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
from proctor.core.loading import describe_error, import_file, is_task_file
from proctor.core.task import Task

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "proctor.tasks"

# Each family maps short names to task classes. As text, since the core imports no family.
REGISTRIES = {
    "shapes": "proctor.shapes.tasks.registered_tasks:REGISTERED_TASKS",
    "code": "proctor.code.tasks:TASK_REGISTRY",
    "agents": "proctor.agents.tasks:EXAMS",
}

# Families of other packages, which extras install. Their import takes a second, so they are
# imported only for names that start with the family.
OPTIONAL_FAMILIES = {
    "reasoning-gym": "proctor.integrations.reasoning_gym:DATA_SETS",
    "gym": "proctor.integrations.gymnasium:ENVIRONMENTS",
}

# Imports a task file; tasks of the BigCode harness find its modules.
FILE_LOADER = "proctor.integrations.bigcode.loader:TaskFileLoader"
# Does the same for the modules of an installed package.
ADOPT = "proctor.integrations.bigcode.loader:adopt"


def expand(pattern: str) -> list[str]:
    """The task names that match a name or a wildcard, in order."""
    if is_task_file(pattern):
        return [pattern]
    if "/" not in pattern:
        pattern = _with_family(pattern)
    family, _, short = pattern.partition("/")
    if is_wildcard(pattern):
        matches = fnmatch.filter(task_names(family), pattern)
        if not matches:
            raise UsageError(f"No task matches {pattern!r}. `proctor list tasks` shows all.")
        return matches
    if short not in _registry(family) and pattern not in installed_tasks():
        raise UnknownNameError(
            "task",
            pattern,
            task_names(family),
            "`proctor list tasks` shows all; name a task in a file path/to/file.py:Class.",
        )
    return [pattern]


def _with_family(pattern: str) -> str:
    """Adds the family to a name or wildcard if only one family matches."""
    families = [family for family in REGISTRIES if fnmatch.filter(_registry(family), pattern)]
    return f"{families[0]}/{pattern}" if len(families) == 1 else pattern


def expand_one(pattern: str) -> str:
    """The only task that matches a name or a wildcard."""
    name, *others = expand(pattern)
    if others:
        raise UsageError(f"{pattern!r} matches {1 + len(others)} tasks; name one of them.")
    return name


def task_names(optional_family: str = "") -> list[str]:
    """All task names, including those of one optional family."""
    families = [*REGISTRIES, *({optional_family} & OPTIONAL_FAMILIES.keys())]
    names = {f"{family}/{name}" for family in families for name in _registry(family)}
    return sorted(names | installed_tasks().keys())


def load_task_class(name: str) -> type[Task]:
    """The task class of a name."""
    if is_task_file(name):
        return _from_file(name)
    name = expand_one(name)
    cls = find_registered(name)
    return cls if cls is not None else _from_entry_point(installed_tasks()[name])


def resolve_task(task: str | type[Task]) -> tuple[str, type[Task]]:
    """Name and class of a task, from either of them."""
    if isinstance(task, str):
        name = expand_one(task)
        return name, load_task_class(name)
    return find_task_name(check_task_class(task)), task


def find_task_name(cls: type[Task]) -> str:
    """The name that loads this class again; its qualified name if there is none."""
    optional = [family for family, path in OPTIONAL_FAMILIES.items() if path.partition(":")[0] == cls.__module__]
    for family in (*REGISTRIES, *optional):
        for name, registered in _registry(family).items():
            if registered is cls:
                return f"{family}/{name}"
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return f"{file}:{cls.__qualname__}" if file else cls.__qualname__


def portable_name(name: str, cls: type[Task]) -> str:
    """The name that loads the task in another process, which lacks registrations of user code."""
    module = defining_module(cls)
    if find_registered(name) is None or module.partition(".")[0] == __name__.partition(".")[0]:
        return name
    file = getattr(sys.modules.get(module), "__file__", None)
    return f"{file}:{cls.__qualname__}" if file else name


def defining_module(cls: type) -> str:
    """The module that defines a class; for a class from a call of `type`, whose module is
    "abc", the module of its base.
    """
    return next(base.__module__ for base in cls.__mro__ if base.__module__ != ABC.__module__)


def _registry(family: str) -> Mapping[str, type[Task]]:
    """The tasks of one family by short name. Imports only this family."""
    path = REGISTRIES.get(family) or OPTIONAL_FAMILIES.get(family)
    if path is None:
        return {}
    registry: Mapping[str, type[Task]] = import_object(path)
    return registry


def import_object(path: str) -> Any:
    """Imports the object at module:name."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def find_registered(name: str) -> type[Task] | None:
    """The class that a family registers under this name."""
    family, _, short = name.partition("/")
    return _registry(family).get(short)


def installed_tasks() -> dict[str, EntryPoint]:
    """The tasks of installed packages, by name."""
    from importlib.metadata import entry_points  # lazy: slow to import and seldom needed

    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _from_entry_point(point: EntryPoint) -> type[Task]:
    import_object(ADOPT)(point.module)
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:
        raise UsageError(f"Task {point.name} ({point.value}) could not be loaded: {describe_error(error)}") from error
    return check_task_class(loaded, point.name)


def is_wildcard(pattern: str) -> bool:
    return not is_task_file(pattern) and any(c in pattern for c in "*?[")


def task_variant(name: str) -> str:
    """The part of the name that distinguishes the tasks of one file; '' for its only task."""
    file, _, class_name = name.partition(":")
    try:
        module = _import_file(file)
        listed, classes = load_listed_tasks(module), _classes_in(module)
    except UsageError:  # the file of an old run may be gone
        return class_name
    if class_name in listed:
        return class_name
    is_one_of_many = class_name and len(listed) + len(classes) > 1
    return f"{Path(file).stem}_{class_name}" if is_one_of_many else ""


def _import_file(file: str) -> ModuleType:
    path = user_path(file)
    if not path.is_file():
        raise UsageError(f"No task file {file}: expected path/to/file.py:Class.")
    return import_file(path, import_object(FILE_LOADER))


def _classes_in(module: ModuleType) -> dict[str, type[Task]]:
    return {
        name: cls
        for name, cls in vars(module).items()
        if inspect.isclass(cls) and issubclass(cls, Task) and cls.__module__ == module.__name__
    }


def _from_file(name: str) -> type[Task]:
    file, _, class_name = name.partition(":")
    module = _import_file(file)
    classes, listed = _classes_in(module), load_listed_tasks(module)
    if not class_name and not listed and len(classes) == 1:
        return next(iter(classes.values()))
    if not class_name:
        listing = ", ".join(f"{file}:{n}" for n in listed or classes) or "none in this file"
        raise UsageError(f"Which task of {file}? Write file.py:Class. Tasks: {listing}.")
    if class_name in listed:
        return check_task_class(listed[class_name], name)
    if class_name not in vars(module):
        names = [*listed, *classes]
        suggestion = did_you_mean(class_name, names)
        listing = f"Tasks in it: {', '.join(names) or 'none'}."
        raise UsageError(f"{file} has no class {class_name!r}{suggestion} {listing}")
    return check_task_class(getattr(module, class_name), name)


@cache
def load_listed_tasks(module: ModuleType) -> dict[str, Any]:
    """The tasks that a file creates in `create_all_tasks` or lists in `TASK_REGISTRY`."""
    try:
        created = module.create_all_tasks() if hasattr(module, "create_all_tasks") else {}
        return {**getattr(module, "TASK_REGISTRY", {}), **created}
    except (Exception, SystemExit) as error:
        path = Path(str(module.__file__))
        raise UsageError(f"{path} could not create its tasks: {describe_error(error, path)}") from error


def check_task_class(cls: object, name: str = "") -> type[Task]:
    """Returns the class if it is a complete task; raises a UsageError otherwise."""
    name = name or repr(cls)
    if inspect.isclass(cls) and hasattr(cls, "exam"):
        cls = cls.exam()  # a class of another kind, which converts itself into a task
    if not (inspect.isclass(cls) and issubclass(cls, Task)):
        raise UsageError(f"{name} is not a task: a task is a class that extends proctor.Task or a family's Task.")
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(cls.__abstractmethods__))
        raise UsageError(f"{name} is not complete: it must define {missing}.")
    if not isinstance(cls.version, str) or not isinstance(cls.group_by, tuple):
        raise UsageError(f"{name}: version must be a str and group_by a tuple of str.")
    if not (inspect.isclass(cls.Settings) and issubclass(cls.Settings, Struct)):
        raise UsageError(f"{name}: its Settings must be a class that extends msgspec.Struct.")
    if cls.judge is Task.judge and cls.score_text is Task.score_text:
        raise UsageError(f"{name} is not complete: it must define score_text(sample, text) or judge(sample, outputs).")
    return cls
