"""Foreign task code: which methods it overrides, where it lies, how a worker finds it."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import gettempdir
from types import ModuleType
from typing import Any, TypeVar

from msgspec import Struct

from proctor.core import registry
from proctor.core.config import user_path
from proctor.core.errors import UsageError
from proctor.core.loading import MODULE_PREFIX, import_file, is_task_file
from proctor.sandbox.layout import SCRATCH

_OURS = "proctor"
_MAIN = "__main__"
HAS_STUBS = "proctor.integrations.bigcode.loader:has_stand_ins"
T = TypeVar("T")


class Origin(Struct, frozen=True):
    """Where another process finds a class."""

    name: str
    """The name of the task."""
    module: str
    file: str
    folder: str
    """The folder of the module, or of its package."""
    qualname: str
    entry_point: str
    """module:name, if an installed package registers it."""


def overrides(task: Any, *methods: str) -> bool:
    """Whether foreign code defines one of these methods of the task."""
    if any(method in vars(task) for method in methods):
        return not _is_proctor(registry.defining_module(type(task)))
    defined = [(cls, vars(cls)[method]) for cls in type(task).__mro__ for method in methods if method in vars(cls)]
    return not all(_is_proctor(getattr(found, "__module__", None) or cls.__module__) for cls, found in defined)


def with_stubs(cls: type[T]) -> type[T]:
    """The class, imported with the stubs of task files if it was not."""
    name = registry.defining_module(cls)
    module = sys.modules.get(name)
    if _is_proctor(name) or module is None or name == _MAIN or "." in name:
        return cls
    if registry.import_object(HAS_STUBS)(module):
        return cls
    found: type[T] | None = _attribute(
        import_file(Path(str(module.__file__)), registry.import_object(registry.FILE_LOADER)), cls.__qualname__
    )
    return found or cls


def origin_of(task: Any) -> Origin:
    cls = type(task)
    home = registry.defining_module(cls)
    module = sys.modules.get(home)
    file = getattr(module, "__file__", None)
    if file is None or not Path(file).is_file():
        raise UsageError(
            f"{task.name or cls.__name__} is not in a file, so its scoring worker cannot find it: put its class "
            "into a file, or pass --unsafe."
        )
    path = Path(file).resolve()
    name = task.name
    if is_task_file(name):
        own, _, key = name.partition(":")
        name = ":".join(filter(None, [str(user_path(own).resolve()), key]))
    depth = home.count(".") + (path.name == "__init__.py")
    point = None if is_task_file(name) or registry.find_registered(name) else registry.installed_tasks().get(name)
    entry_point = point.value if point else ""
    return Origin(name, home, str(path), str(path.parents[depth]), cls.__qualname__, entry_point)


def find_class(origin: Origin) -> type:
    """Finds the class in another process."""
    if is_task_file(origin.name):
        return registry.load_task_class(origin.name)
    if origin.entry_point:
        name, _, qualname = origin.entry_point.partition(":")
        registry.import_object(registry.ADOPT)(name, origin.folder)
        return registry.check_task_class(_attribute(import_module(name), qualname), origin.name)
    module = _module(origin)
    found = _attribute(module, origin.qualname)
    if found is None:  # created by a function
        short = origin.name.rpartition("/")[2]
        made = registry.load_listed_tasks(module)
        alike = [cls for cls in made.values() if cls.__qualname__ == origin.qualname]
        found = made.get(short) or (alike[0] if len(alike) == 1 else None) or registry.find_registered(origin.name)
    if found is None:
        raise UsageError(
            f"{origin.file} has no {origin.qualname} for {origin.name}: let its create_all_tasks() "
            "return it under this name."
        )
    return registry.check_task_class(found, origin.name)


def _attribute(module: ModuleType, qualname: str) -> Any:
    found: Any = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def _module(origin: Origin) -> ModuleType:
    if origin.module == _MAIN or origin.module.startswith(MODULE_PREFIX):
        return import_file(Path(origin.file), registry.import_object(registry.FILE_LOADER))
    registry.import_object(registry.ADOPT)(origin.module, origin.folder)
    return import_module(origin.module)


def code_paths(task: Any) -> set[str]:
    """Files and folders of the task's code: its folder, its harness, and its imports."""
    paths = {str(path) for module in _modules_of(type(task)) for path in _paths_of(module)}
    own, _, _ = task.name.partition(":") if is_task_file(task.name) else ("", "", "")
    return paths | ({str(path) for path in _around(user_path(own).resolve())} if own else set())


def search_paths() -> set[str]:
    """Further folders of importable packages: PYTHONPATH and the user's site-packages.

    Excludes folders that contain the home or temporary folder.
    """
    named = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    asked = [Path(path).resolve() for path in [*named, site.getusersitepackages()] if path in sys.path]
    return {str(path) for path in asked if path.is_dir() and not _is_shared(path)}


def _paths_of(module: ModuleType) -> list[Path]:
    top = sys.modules.get(module.__name__.partition(".")[0])
    path = Path(str(module.__file__)).resolve()
    packages = [Path(path).resolve() for path in getattr(top, "__path__", ())]
    return [folder for folder in packages if path.is_relative_to(folder)] or _around(path)


def _around(file: Path) -> list[Path]:
    """The folder of a file, or of its harness.

    In a home or temporary folder, only the file and the names that it mentions: the rest is
    private.
    """
    folder = file.parent
    if folder.name == "tasks" and (folder.parent / "base.py").is_file():
        folder = folder.parent
    if not _is_shared(folder):
        return [folder]
    text = file.read_text(errors="replace")
    return [file, *(path for path in sorted(folder.glob("[!.]*")) if path != file and path.name in text)]


def _is_shared(folder: Path) -> bool:
    return any(Path(path).resolve().is_relative_to(folder) for path in (Path.home(), gettempdir(), SCRATCH))


def _modules_of(cls: type) -> Iterator[ModuleType]:
    """The foreign modules of its classes, and their imports."""
    waiting = [base.__module__ for base in cls.__mro__ if not _is_proctor(base.__module__)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        module = sys.modules.get(name)
        if name in seen or module is None or _is_installed(module):
            continue
        seen.add(name)
        yield module
        for value in list(vars(module).values()):
            other = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if isinstance(other, str):
                waiting.append(other)


def _is_installed(module: ModuleType) -> bool:
    """Whether every worker can read it."""
    file = getattr(module, "__file__", None)
    return file is None or _is_proctor(module.__name__) or str(file).startswith((sys.prefix, sys.base_prefix))


def _is_proctor(module: str) -> bool:
    return module.partition(".")[0] == _OURS
