"""A container engine for tests where there is none: python -m helpers.stand_in_engine FOLDER info|image|pull|rm|run …

FOLDER says what it is like: a file `images` with the names it has, and optionally `down`, `strict`, `littered`.
`run` takes a command line apart as Docker does, and runs the command on this machine: in namespaces of its own, with
the folders, the rights and the environment that it was given. For root only.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from pathlib import Path

from helpers.ordinary_user import open_folders
from helpers.paths import CHECKOUT
from proctor.sandbox.inside import kernel

ALONE = {"--rm", "--interactive", "--read-only", "--no-healthcheck"}
NAMESPACES = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC
CAPABILITIES = {"DAC_OVERRIDE": 1, "FOWNER": 3, "KILL": 5, "SETGID": 6, "SETUID": 7, "SYS_PTRACE": 19, "SYS_NICE": 23}
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
FLAGS = {"ro": kernel.MS_RDONLY, "nosuid": kernel.MS_NOSUID, "nodev": kernel.MS_NODEV, "noexec": kernel.MS_NOEXEC}
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HTTPS_PROXY": "http://user:secret@proxy"}
PR_CAPBSET_DROP = 24

Options = dict[str, list[str]]


def take_apart(words: list[str]) -> tuple[Options, str, list[str]]:
    """The options of `run`, the image, and what follows it."""
    options: Options = defaultdict(list)
    rest = list(words)
    while rest[0].startswith("--"):
        name = rest.pop(0)
        options[name].append("" if name in ALONE else rest.pop(0))
    return options, rest[0], rest[1:]


def main(folder: Path, verb: str, words: list[str]) -> None:
    if (folder / "down").exists():
        sys.exit("Cannot connect to the stand-in.")
    images = (folder / "images").read_text().split()
    if verb == "image" and words[-1] not in images:
        sys.exit(f"No such image: {words[-1]}")
    if verb == "pull":
        sys.exit(f"{words[-1]} cannot be pulled.\n")
    if verb == "run":
        options, image, arguments = take_apart(words)
        assert image in images
        if (folder / "strict").exists():
            del options["--cap-add"]
        run(options, arguments, littered=(folder / "littered").exists())


def run(options: Options, arguments: list[str], littered: bool) -> None:
    python = os.path.realpath(sys.executable)  # found now: below, what points to it may be covered
    kernel.unshare(NAMESPACES)
    if child := os.fork():
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("proc", "/proc", "proc", 0)
    open_folders([Path(sys.base_prefix)])
    for place in {str(CHECKOUT), sys.prefix} - {sys.base_prefix}:  # an image has nothing of the harness's
        if os.path.exists(place):  # else it lay in the other
            kernel.mount("tmpfs", place, "tmpfs", 0, "mode=755")
    for place, words in sorted(mount.split(":", 1) for mount in options["--tmpfs"]):
        mount_tmpfs(place, words)
    if littered:
        Path("/tmp/litter").touch()
    make_devices()
    if options["--read-only"]:
        kernel.mount("none", "/", "", kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY)
    keep = {CAPABILITIES[name] for name in options["--cap-add"]}
    for capability in set(range(41)) - keep:
        kernel.prctl(PR_CAPBSET_DROP, capability)
    if "no-new-privileges" in options["--security-opt"]:
        kernel.set_no_new_privileges()
    assert options["--entrypoint"] == ["python3"]
    given = dict(pair.split("=", 1) for pair in options["--env"])
    os.execve(python, [python, *arguments], {**ENVIRONMENT, **given})


def mount_tmpfs(place: str, words: str) -> None:
    os.makedirs(place, exist_ok=True)
    flags = sum(FLAGS.get(word, 0) for word in words.split(","))
    kernel.mount("tmpfs", place, "tmpfs", flags, ",".join(word for word in words.split(",") if "=" in word))


def make_devices() -> None:
    """As in a container: what every program needs, and no shared memory."""
    kept = {name: os.open(f"/dev/{name}", os.O_PATH) for name in DEVICES}
    kernel.mount("tmpfs", "/dev", "tmpfs", 0, "mode=755")
    for name, device in kept.items():
        Path(f"/dev/{name}").touch()
        kernel.mount(f"/proc/self/fd/{device}", f"/dev/{name}", "", kernel.MS_BIND)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
