"""Modules of extras: different errors for missing modules and for those that do not load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.code.rows import load_dataset
from proctor.core.errors import MissingExtraError, UsageError
from proctor.core.extras import import_extra, missing_extra
from proctor.distributed.cluster import import_ray
from proctor.models.providers import vllm
from proctor.store import open_store


def test_installed_module_is_imported() -> None:
    assert import_extra("json.decoder", "reading", "json").JSONDecoder


def test_missing_module_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"reading needs the extra 'text': pip install 'proctor-eval\[text\]'"):
        import_extra("no_such_module.at_all", "reading", "text")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "import no_such_dependency",
            r"No module named 'no_such_dependency'\. "
            r"Reinstall it: pip install --force-reinstall 'proctor-eval\[text\]'\.$",
        ),
        (
            "raise ImportError('libgomp.so.1: cannot open shared object file')",
            r"libgomp\.so\.1: cannot open shared object file\. Install it: apt-get install libgomp1\.$",
        ),
        ("raise ImportError('no wrapper.\\nAttempts made:\\n- none.')", r"no wrapper\. Attempts made: - none\.$"),
    ],
)
def test_module_that_does_not_load_names_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, reason: str
) -> None:
    name = f"broken_{len(source)}"
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=f"reading needs {name}, which does not load: {reason}") as caught:
        import_extra(name, "reading", "text")
    assert not isinstance(caught.value, MissingExtraError)


@pytest.mark.parametrize(
    ("module", "use"),
    [
        ("datasets", lambda: load_dataset("owner/name")),
        ("psycopg", lambda: open_store("postgresql:///exams")),
        ("ray", import_ray),
        ("vllm", lambda: vllm.import_vllm("owner/name")),
    ],
)
def test_installed_extra_that_does_not_load_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, use: Callable[[], Any]
) -> None:
    (tmp_path / f"{module}.py").write_text("raise ImportError('libgomp.so.1: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(vllm, "ENVIRONMENT", {})
    with pytest.raises(UsageError, match=f"needs {module}, which does not load: libgomp.* apt-get install libgomp1"):
        use()


def test_missing_package_of_extra_is_named_with_extra() -> None:
    missing = missing_extra(
        "agent x.py:Player", ModuleNotFoundError("No module named 'Xlib.display'", name="Xlib.display")
    )
    assert "agent x.py:Player needs the extra 'desktop': pip install 'proctor-eval[desktop]'" in str(missing)
    assert missing_extra("task", ModuleNotFoundError("No module named 'mine'", name="mine")) is None
    assert missing_extra("task", ImportError("does not load")) is None
