"""Errors whose messages say what is wrong and how to fix it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.core.types import Run


class ProctorError(Exception):
    """The run cannot continue. The command line shows one sentence, without a traceback."""

    exit_code = 1
    run: Run | None = None  # the run that it stopped, with the results so far


class UsageError(ProctorError):
    """The request of the user is invalid; nothing ran."""

    exit_code = 2


class UnknownNameError(UsageError):
    def __init__(self, what: str, name: str, known: Iterable[str], hint: str) -> None:
        super().__init__(what, name, tuple(known), hint)

    def __str__(self) -> str:  # lazy: the search for similar names takes milliseconds
        what, name, known, hint = self.args
        return f"Unknown {what} {name!r}{did_you_mean(name, known)} {hint}"


class MissingExtraError(UsageError):
    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the extra {extra!r}: pip install 'proctor-eval[{extra}]'")


class MissingToolchainError(UsageError):
    """A tool that this language needs is missing on this machine."""

    def __init__(self, language: str, tool: str, packages: str, site: str, fault: str = "was not found") -> None:
        remedies = [f"apt-get install {packages}"] * bool(packages) + [f"see {site}"] * bool(site)
        super().__init__(f"Programs in {language} need {tool}, which {fault}: {' or '.join(remedies)}")
        self.tool, self.fault = tool, fault


class MissingFromImageError(MissingToolchainError):
    """The container image lacks a tool that this language needs."""

    def __init__(self, language: str, tool: str, image: str) -> None:
        UsageError.__init__(
            self,
            f"Programs in {language} need {tool}, which the image {image} does not have; name an image that has it",
        )


class MissingDataError(UsageError):
    """The data of this task is missing; other tasks may still run."""


class SandboxUnavailableError(UsageError):
    """This machine has no isolation level for programs, and --unsafe was not given."""


class SettingError(UsageError):
    """A setting is unknown or invalid; `setting` is '' if several contradict each other."""

    def __init__(self, message: str, setting: str) -> None:
        super().__init__(message)
        self.setting = setting


class StoreError(UsageError):
    """The store cannot be opened, read or written."""


class StoreWriteError(ProctorError):
    """A record could not be written: the run stops and keeps its stored records."""


class TaskError(ProctorError):
    """The task broke its contract while it made samples or summed up."""


class ChangedSampleError(UsageError):
    """A resumed run would mix different versions of a sample."""


class NotComparableError(UsageError):
    """These runs cannot be compared."""


class TooManyErrorsError(ProctorError):
    """Too many samples failed."""


class ModelError(Exception):
    """One request failed for good: the sample gets an error record, the run continues."""


class TransientModelError(ModelError):
    """A failure that a retry may fix: connection, timeout, rate limit, server error."""

    def __init__(self, message: str, retry_after: float | None = None, overloaded: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.overloaded = overloaded  # lower the concurrency


class BudgetExhaustedError(BaseException):
    """The budget admits no further request. A BaseException, so that a task that catches
    every Exception does not take it for an error of the model.
    """


class RequestRefusedError(UsageError):
    """The server refuses every request (key, model name): the run stops at once."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """'; did you mean …?' for the nearest known name, else a full stop."""
    known = list(known)
    # "existance" means "shapes/existence": compare with the last part of a name, too.
    by_last_part = {k.rsplit("/", 1)[-1]: k for k in known}
    near = difflib.get_close_matches(name, known, 1) or [
        by_last_part[match] for match in difflib.get_close_matches(name.rsplit("/", 1)[-1], by_last_part, 1)
    ]
    return f"; did you mean {near[0]}?" if near else "."
