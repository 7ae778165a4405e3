"""Imports a task file, and lets it find what task files import: the harness, data sets, metrics."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec, resolve_name, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from proctor.integrations.bigcode import surroundings

HARNESS = "bigcode_eval"
_OURS = "proctor.integrations.bigcode"
_METRICS = f"{HARNESS}.tasks.custom_metrics"
_INSTALLED = (sys.prefix, sys.base_prefix)

# The harness's modules, and what stands for them; packages without anything of their own stand for nothing.
_SERVED = {
    HARNESS: "",
    f"{HARNESS}.base": f"{_OURS}.base",
    f"{HARNESS}.utils": f"{_OURS}.utils",
    f"{HARNESS}.tasks": f"{_OURS}.registry",
    _METRICS: "",
    f"{_METRICS}.beyond_eval": f"{_OURS}.beyond_eval",
    f"{_METRICS}.code_eval": f"{_OURS}.code_eval",
    f"{_METRICS}.codexglue_code_to_text_bleu": f"{_OURS}.code_to_text_bleu",
    f"{_METRICS}.diff_eval": f"{_OURS}.diff_eval",
    f"{_METRICS}.execute": f"{_OURS}.code_eval",
    f"{_METRICS}.multiple_metrics": "",
    f"{_METRICS}.multiple_metrics.containerized_eval": f"{_OURS}.multiple_metrics",
    f"{_METRICS}.multiple_metrics.evaluation": f"{_OURS}.multiple_metrics",
    f"{_METRICS}.multiple_metrics.single_experiment_pass_k": f"{_OURS}.multiple_metrics",
    f"{_METRICS}.pal_metric": "",
    f"{_METRICS}.pal_metric.pal_code_exec": f"{_OURS}.pal_metric",
    f"{_METRICS}.pal_metric.python_executor": f"{_OURS}.pal_metric",
}
_PACKAGES = {name.rpartition(".")[0] for name in _SERVED}
_EXTENDED = (f"{HARNESS}.base", f"{HARNESS}.utils")  # forks add to these

# What a task file gets of other packages, where it must not get what everyone does; the rest is theirs.
_BARS = {name: f"{_OURS}.surroundings:{name}" for name in ("tqdm", "trange")}
_REPLACED: dict[str, dict[str, str]] = {
    "datasets": {"load_dataset": "proctor.code.rows:load_dataset"},
    "evaluate": {"load": f"{_OURS}.evaluate:load"},
    "importlib": {"import_module": f"{_OURS}.loader:import_module_for_task"},
    "tqdm": _BARS,
    "tqdm.auto": _BARS,
}
# A module with these imports is task code, wherever it is imported from.
_HARNESS_IMPORT = re.compile(rf"^[ \t]*(?:from|import)[ \t]+{HARNESS}\b", re.MULTILINE)
_TASK_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+proctor\.code\b", re.MULTILINE)
_REPLACED_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(?:datasets|evaluate)\b", re.MULTILINE)


def adopt(module: str = "", folder: str = "") -> None:
    """From now on task code finds what task files import, also where it is imported as an ordinary module.

    `module`: it and the package that it belongs to are task code, found in this folder if they are not elsewhere.
    """
    _FINDER.install()
    if module:
        _FINDER.adopt(module.partition(".")[0], folder)


def has_stand_ins(module: ModuleType) -> bool:
    """Whether a module has found what task files import, or would find nothing else anyway."""
    loader = getattr(module.__spec__, "loader", None)
    file = getattr(module, "__file__", None)
    return isinstance(loader, TaskFileLoader) or file is None or not _is_task_code(Path(file))


def _is_task_code(path: Path) -> bool:
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return False
    return bool(_HARNESS_IMPORT.search(text) or (_TASK_IMPORT.search(text) and _REPLACED_IMPORT.search(text)))


class TaskFileLoader(SourceFileLoader):
    """Runs a file with some builtins of its own, so that nothing changes for other modules."""

    def exec_module(self, module: ModuleType) -> None:
        folder = Path(self.path).parent
        if not module.__spec__ or not module.__spec__.parent or module.__name__.startswith(f"{HARNESS}."):
            _FINDER.look_into(folder)
        own = {"__import__": import_for_task, "open": surroundings.opener(folder)}
        vars(module)["__builtins__"] = vars(builtins) | own
        super().exec_module(module)


def import_for_task(
    name: str,
    globals: Mapping[str, Any] | None = None,  # noqa: A002
    locals: Mapping[str, Any] | None = None,  # noqa: A002
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """What `import` does in a task file."""
    if level:  # a task file is part of the harness, wherever it lies
        name = resolve_name("." * level + name, (globals or {}).get("__package__") or f"{HARNESS}.tasks")
    wanted = name if fromlist else name.partition(".")[0]  # what the statement binds, or takes names from
    if name not in _REPLACED:
        found = builtins.__import__(name, globals, locals, fromlist or (), 0)
    return _replacement(wanted) if wanted in _REPLACED else found


def import_module_for_task(name: str, package: str | None = None) -> ModuleType:
    """The same by a function."""
    return _replacement(name) if name in _REPLACED else import_module(name, package)


class _Replacement(ModuleType):
    """A module of which some things are ours."""

    def __getattr__(self, name: str) -> Any:
        if f"{self.__name__}.{name}" in _REPLACED:
            return _replacement(f"{self.__name__}.{name}")
        if place := _REPLACED[self.__name__].get(name):
            module, _, attribute = place.partition(":")
            return getattr(import_module(module), attribute)
        return getattr(import_module(self.__name__), name)


@cache
def _replacement(name: str) -> ModuleType:
    return _Replacement(name)


class _HarnessFinder(MetaPathFinder):
    """Finds the harness's modules here, and others beside the task files."""

    def __init__(self) -> None:
        self._folders: list[Path] = []
        self._adopted: dict[str, list[str]] = {}

    def install(self) -> None:
        if self not in sys.meta_path:
            sys.meta_path.insert(sys.meta_path.index(PathFinder), self)

    def adopt(self, package: str, folder: str) -> None:
        self._adopted[package] = [*sys.path, folder] if folder else sys.path

    def look_into(self, folder: Path) -> None:
        self.install()
        if folder not in self._folders:
            self._folders.insert(0, folder)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in _SERVED:
            return spec_from_loader(name, _ServedModule(), is_package=name in _PACKAGES)
        return self.find_file(name, path) or self._find_adopted(name, path)

    def _find_adopted(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """A module that is imported like any other, and is task code."""
        adopted = self._adopted.get(name.partition(".")[0])
        spec = PathFinder.find_spec(name, path if path is not None else adopted)
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            return None
        file = spec.loader.path
        if adopted is None and (file.startswith(_INSTALLED) or not _is_task_code(Path(file))):
            return None
        spec.loader = TaskFileLoader(name, file)
        return spec

    def find_file(self, name: str, path: Sequence[str] | None = None) -> ModuleSpec | None:
        """A module of the task's own: beside it, or in the harness that it comes from."""
        if name.startswith(f"{HARNESS}."):
            path = self._places_in_harness(name)
        elif path is None:
            path = [str(folder) for folder in self._folders]
        elif not any(Path(entry).is_relative_to(folder) for entry in path for folder in self._folders):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            return None
        spec.loader = TaskFileLoader(name, spec.loader.path)
        return spec

    def _places_in_harness(self, name: str) -> list[str]:
        parents = name.split(".")[1:-1]
        installed = PathFinder.find_spec(HARNESS)
        roots = [folder.parent for folder in self._folders if folder.name == "tasks"]
        roots += [Path(place) for place in (installed and installed.submodule_search_locations) or ()]
        places = [root.joinpath(*parents) for root in roots]
        if parents[:1] == ["tasks"]:
            places = [*(folder.joinpath(*parents[1:]) for folder in self._folders), *places]
        return [str(place) for place in places]


_FINDER = _HarnessFinder()


class _ServedModule(Loader):
    """Fills a module of the harness's with what is ours."""

    def exec_module(self, module: ModuleType) -> None:
        if ours := _SERVED[module.__name__]:
            vars(module).update({k: v for k, v in vars(import_module(ours)).items() if not k.startswith("__")})
        if module.__name__ in _EXTENDED:
            module.__getattr__ = lambda name: _of_their_own(module.__name__, name)  # type: ignore[method-assign]


def _of_their_own(module: str, name: str) -> Any:
    """What only the harness has that the task file comes from."""
    spec = _FINDER.find_file(module)
    if spec is None or spec.loader is None or name.startswith("__"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    hidden = f"{module} of {spec.origin}"
    if hidden not in sys.modules:
        sys.modules[hidden] = theirs = module_from_spec(spec)
        spec.loader.exec_module(theirs)
    return getattr(sys.modules[hidden], name)
