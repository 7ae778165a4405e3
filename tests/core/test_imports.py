"""The layers of the package: imports point downwards, without cycles."""

import ast
from functools import cache
from pathlib import Path

from helpers.paths import CHECKOUT

ROOT = CHECKOUT / "src" / "proctor"

# From the bottom up. A module may import only lower layers and its own entry. The modules of
# `core`, `analysis` and `formats` are in several layers.
LAYERS = [
    ["core.lazy"],
    ["proctor"],
    ["core.types", "core.errors", "core.random", "core.machine", "core.reasoning"],
    ["core.extras"],
    ["distributed"],
    ["core.config", "metrics", "core.candidate", "sandbox", "core.loading", "analysis.plots", "core.budget"],
    ["models", "formats.data_files"],
    ["core.task", "store", "core.provenance", "core.options"],
    ["analysis.reviews"],
    ["analysis.report", "core.runner", "analysis.pairing", "core.estimate"],
    ["core.registry", "analysis.curve", "analysis.comparison"],
    ["core.evaluation", "analysis.check"],
    ["analysis.sweep", "formats.code_files"],
    ["shapes", "code", "agents"],
    ["integrations", "analysis.figures", "analysis.leaderboard", "formats.harness_results"],
    ["viewer"],
    ["cli"],
    ["__main__"],
]
SPLIT = ("core", "analysis", "formats")
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def entry(module: str) -> str:
    """'proctor.store.writer' belongs to the entry 'store', 'proctor.core.task' to 'core.task'."""
    parts = module.split(".")
    if len(parts) > 2 and parts[1] in SPLIT:
        return ".".join(parts[1:3])
    return parts[1] if len(parts) > 1 else parts[0]


def module_name(path: Path) -> str:
    parts = ["proctor", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> set[str]:
    """The modules of Proctor that a file imports, also in functions, but not for type checkers."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    known = set(MODULES)
    return {module for module in found if module in known}


EMPTY = {f"proctor.{name}" for name in SPLIT}  # packages without code of their own
MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def graph() -> dict[str, set[str]]:
    return {name: imports(path) - {name} for name, path in MODULES.items()}


def test_every_module_has_its_layer() -> None:
    assert {entry(name) for name in MODULES} - set(SPLIT) == set(RANK)


def test_no_upward_import() -> None:
    upward = {
        (name, other)
        for name, others in graph().items()
        for other in others - {"proctor", *EMPTY}  # the package has only its version and lazy names
        if entry(other) != entry(name) and RANK[entry(other)] >= RANK[entry(name)]
    }
    assert upward == set()


def test_no_import_cycle() -> None:
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"import cycle: {' → '.join((*path, name))}"
        if name not in done:
            for other in graph()[name] - {"proctor", *EMPTY}:
                visit(other, (*path, name))
            done.add(name)

    for name in graph():
        visit(name, ())


def test_families_do_not_import_each_other() -> None:
    families = set(LAYERS[RANK["shapes"]])
    for name, others in graph().items():
        if entry(name) in families:
            assert {entry(o) for o in others} & families <= {entry(name)}
