"""A store as a folder of files: the page with all its data, shown by any web server or from a file:// address."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from itertools import batched
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from proctor.config import user_path
from proctor.errors import UsageError
from proctor.store import open_store
from proctor.store.store import Opinions, Store
from proctor.store.types import Wanted
from proctor.types import Run
from proctor.viewer.answers import Answers
from proctor.viewer.assets import exported_page, page_files
