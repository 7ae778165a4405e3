"""A temporary home folder for the program of one episode."""

from __future__ import annotations

import os
import shutil
import site
import tempfile
from pathlib import Path

from proctor.agents.desktop.authority import VARIABLE, user_authority

PREFIX = "proctor-home-"
KEPT = "home"  # beside the log of the episode
# Where the XDG base directory specification lets programs keep their things, within the home folder.
FOLDERS = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
    "XDG_RUNTIME_DIR": ".run",
}


class Home:
    """Created by the constructor, as a copy of the template if given; removed by `close` unless kept."""

    def __init__(self, folder: Path | None = None, template: Path | None = None, keep: bool = False) -> None:
        """Created in `folder`, where it is found even if this process is killed."""
        parent = folder.resolve() if folder is not None else None  # the working directory may change
        self._kept_as = parent / KEPT if keep and parent is not None else None
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        try:
            if template is not None:
                shutil.copytree(template, self.path, symlinks=True, dirs_exist_ok=True)
            for name in FOLDERS.values():
                (self.path / name).mkdir(parents=True, exist_ok=True)
            (self.path / FOLDERS["XDG_RUNTIME_DIR"]).chmod(0o700)
        except BaseException:
            self.close()
            raise

    @property
    def environment(self) -> dict[str, str]:
        given = {"HOME": str(self.path)} | {name: str(self.path / place) for name, place in FOLDERS.items()}
        # Files of the user's home folder that Python needs.
        given["PYTHONUSERBASE"] = os.environ.get("PYTHONUSERBASE") or site.getuserbase()
        if authority := user_authority():
            given[VARIABLE] = authority
        return given

    def close(self) -> None:
        if self._kept_as is not None:
            shutil.rmtree(self._kept_as, ignore_errors=True)  # of an attempt that was cut short
            self.path.rename(self._kept_as)
            self._kept_as = None
        elif self.path.exists():
            remove_home(self.path)


def remove_home(folder: Path) -> None:
    """Removes a home folder; the program may have removed its own write permissions."""
    for place, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(place, name)
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
