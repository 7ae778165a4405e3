"""CALLABLES, LISTENERS, RUNNABLES and MESSAGES: components by name, with and without namespace."""

from __future__ import annotations

import pkgutil
from collections import UserDict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

NAMESPACES = ("desktop", "gst", "std")  # in the order in which a name without namespace is looked for
FORMER = {"clock.time_ns": "std/time_ns", "clock/tick": "std/tick"}  # names that the original had before 0.4

T = TypeVar("T")


class Registry(UserDict[str, T]):
    """`desktop/keyboard.press` and `keyboard.press` are the same entry.

    Names of users' own are added as to a dict, or by `register`. An entry may be the place of an object,
    `package.module:name`, which is imported when it is first needed.
    """

    def __init__(self, name: str, entries: Mapping[str, T]) -> None:
        self.name = name
        super().__init__(entries)

    def _full(self, key: Any) -> Any:
        if key not in self.data and isinstance(key, str):
            if FORMER.get(key) in self.data:
                return FORMER[key]
            for namespace in NAMESPACES:
                if f"{namespace}/{key}" in self.data:
                    return f"{namespace}/{key}"
        return key

    def __getitem__(self, key: str) -> T:
        full = self._full(key)
        if full not in self.data:
            raise KeyError(f"{self.name} has no {key!r}; it has: {', '.join(sorted(map(str, self.data)))}")
        found: Any = self.data[full]
        if isinstance(found, str):
            found = self.data[full] = pkgutil.resolve_name(found)
        return found  # type: ignore[no-any-return]

    @overload
    def register(self, name: str) -> Callable[[T], T]: ...

    @overload
    def register(self, name: str, entry: T) -> T: ...

    def register(self, name: str, entry: T | None = None) -> Any:
        """Adds an entry; without one it is a decorator."""
        if entry is None:
            return lambda decorated: self.register(name, decorated)
        self[name] = entry
        return entry

    def __setitem__(self, key: str, value: T) -> None:
        self.data[self._full(key)] = value

    def __delitem__(self, key: str) -> None:
        del self.data[self._full(key)]

    def __contains__(self, key: object) -> bool:
        return self._full(key) in self.data


class Components:
    """The three registries as `get_component` and `list_components` see them."""

    def __init__(self, **registries: Registry[Any]) -> None:
        self._registries = registries

    def _registry(self, kind: str) -> Registry[Any]:
        if kind not in self._registries:
            raise ValueError(f"there are no components {kind!r}; there are: {', '.join(self._registries)}")
        return self._registries[kind]

    def get_component(self, component_type: str, namespace: str | None = None, name: str | None = None) -> Any:
        """One component; without a name all of a namespace, by name; without namespace all, by full name."""
        registry = self._registry(component_type)
        if namespace and name:
            return registry[f"{namespace}/{name}"]
        if not namespace:
            return dict(registry.items())
        prefix = f"{namespace}/"
        return {full.removeprefix(prefix): found for full, found in registry.items() if full.startswith(prefix)}

    def list_components(self, component_type: str | None = None, namespace: str | None = None) -> dict[str, list[str]]:
        """Full names by kind of component."""
        kinds = self._registries if component_type is None else {component_type: self._registry(component_type)}
        prefix = f"{namespace}/" if namespace else ""
        return {kind: [full for full in registry if full.startswith(prefix)] for kind, registry in kinds.items()}
