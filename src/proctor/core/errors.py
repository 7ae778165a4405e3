"""Errors that say what was wrong and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.core.types import Run


class ProctorError(Exception):
    """The run cannot go on. Shown as one sentence, without a traceback."""

    exit_code = 1
    run: Run | None = None  # the run that was stopped by it, as far as it got


class UsageError(ProctorError):
    """The user asked for something that cannot be had as asked; nothing was run."""

    exit_code = 2


class UnknownNameError(UsageError):
    def __init__(self, what: str, name: str, known: Iterable[str], hint: str) -> None:
        super().__init__(what, name, tuple(known), hint)

    def __str__(self) -> str:  # looking for similar names takes milliseconds, and the error is often caught
        what, name, known, hint = self.args
        return f"Unknown {what} {name!r}{did_you_mean(name, known)} {hint}"


class MissingExtraError(UsageError):
    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the extra {extra!r}: pip install 'proctor[{extra}]'")


class MissingToolchainError(UsageError):
    """Programs of this language cannot be run here."""

    def __init__(self, language: str, tool: str, packages: str, site: str, fault: str = "was not found") -> None:
        remedies = [f"apt-get install {packages}"] * bool(packages) + [f"see {site}"] * bool(site)
        super().__init__(f"Programs in {language} need {tool}, which {fault}: {' or '.join(remedies)}")
        self.tool, self.fault = tool, fault


class MissingFromImageError(MissingToolchainError):
    """The image that programs run in has no tools for this language."""

    def __init__(self, language: str, tool: str, image: str) -> None:
        UsageError.__init__(
            self, f"Programs in {language} need {tool}, which the image {image} does not have; name an image that does"
        )


class MissingDataError(UsageError):
    """The problems of this task are not here; those of another may be."""


class SandboxUnavailableError(UsageError):
    """This machine cannot contain programs, and running them unprotected was not asked for."""


class SettingError(UsageError):
    """The task has no such setting, or does not take this value for it, or not with the others (then it is '')."""

    def __init__(self, message: str, setting: str) -> None:
        super().__init__(message)
        self.setting = setting


class StoreError(UsageError):
    """The store cannot be opened, read or written."""


class StoreWriteError(ProctorError):
    """A record could not be written: the run stops, what was stored stays."""


class TaskError(ProctorError):
    """The task broke its contract while making samples or summing up."""


class ChangedSampleError(UsageError):
    """A resumed run would mix samples of two kinds."""


class NotComparableError(UsageError):
    """A comparison of these runs would compare different things."""


class HopelessRunError(ProctorError):
    """Too many samples failed; going on would only cost."""


class ModelError(Exception):
    """One request failed for good: the sample gets an error record, the run goes on."""


class TransientModelError(ModelError):
    """A failure worth another try: connection, timeout, rate limit, server error."""

    def __init__(self, message: str, retry_after: float | None = None, overloaded: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.overloaded = overloaded  # fewer requests at once may be what helps


class OutOfBudgetError(BaseException):
    """Nothing new may begin: the sample stays unasked. No Exception: a task that survives all of those must not
    take it for a failure of the model."""


class RefusedByModelError(UsageError):
    """The server will refuse every request alike (key, model name): the run stops at once."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """'; did you mean …?' for the nearest known name, else a full stop."""
    known = list(known)
    # Someone who types "existance" means "shapes/existence": compare with the last part of a name too.
    by_last_part = {k.rsplit("/", 1)[-1]: k for k in known}
    near = difflib.get_close_matches(name, known, 1) or [
        by_last_part[match] for match in difflib.get_close_matches(name.rsplit("/", 1)[-1], by_last_part, 1)
    ]
    return f"; did you mean {near[0]}?" if near else "."
