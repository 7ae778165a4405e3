"""Modules of extras: one that is missing and one that does not load have different cures."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.errors import MissingExtraError, UsageError
from proctor.extras import import_extra


def test_installed_module_is_imported() -> None:
    assert import_extra("json.decoder", "reading", "json").JSONDecoder


def test_missing_module_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"reading needs the extra 'text': pip install 'proctor\[text\]'"):
        import_extra("no_such_module.at_all", "reading", "text")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_dependency", "No module named 'no_such_dependency'."),
        (
            "raise ImportError('libgomp.so.1: cannot open shared object file')",
            r"cannot open .* apt-get install libgomp1",
        ),
    ],
)
def test_module_that_does_not_load_names_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, reason: str
) -> None:
    name = f"broken_{len(source)}"
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=f"reading needs {name}, which does not load: .*{reason}") as caught:
        import_extra(name, "reading", "text")
    assert not isinstance(caught.value, MissingExtraError)
