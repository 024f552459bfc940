"""Every exception that the package raises, under one base class.

A refused, failed or timed-out command is an ordinary :class:`~shieling.Outcome` and raises nothing. These are
raised where there is no outcome to return, or where :meth:`Outcome.check` is asked to raise.
"""

from __future__ import annotations

from ._typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._records import Denial, Outcome

__all__ = [
    "ArgumentError",
    "ClosedError",
    "CommandFailedError",
    "CommandTimeoutError",
    "ConfigurationError",
    "DeniedError",
    "FileError",
    "InputClosedError",
    "JobError",
    "NotStartedError",
    "OutcomeError",
    "ShielingError",
]


class ShielingError(Exception):
    """Base class of every exception of this package.

    >>> from shieling import Shieling, ShielingError
    >>> try:
    ...     Shieling("memory", memory="nonsense")
    ... except ShielingError as error:
    ...     print(type(error).__name__)
    ConfigurationError
    """


class ConfigurationError(ShielingError, ValueError):
    """An option is wrong, or this host or environment cannot enforce it. Nothing was started."""


class ArgumentError(ShielingError, ValueError):
    """An argument of one call is wrong: an empty command, a timeout of 0. Nothing was started."""


class ClosedError(ShielingError, RuntimeError):
    """The `Shieling` was closed, the interpreter is exiting, or the object belongs to the process before a `fork`."""


class OutcomeError(ShielingError):
    """A command did not end with exit code 0.

    Attributes:
        outcome: What happened to it; ``None`` only for an operation on files.
    """

    outcome: Outcome | None

    def __init__(self, message: str, outcome: Outcome | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.outcome)


class CommandFailedError(OutcomeError):
    """The command ran and failed: a non-zero exit code, a signal, out of memory, too much output."""


class CommandTimeoutError(OutcomeError, TimeoutError):
    """The command ran out of its time. ``outcome`` has its output up to then."""


class NotStartedError(OutcomeError):
    """Shieling could not start the command, or lost contact to it (status ``failed`` or ``lost``)."""


class DeniedError(OutcomeError, PermissionError):
    """The command or file operation was refused, needs an approval that nobody gave, or came too soon.

    Attributes:
        denial: Which layer refused, why, and what would be allowed instead.
        outcome: The command's outcome; ``None`` for an operation on files.
    """

    denial: Denial

    def __init__(self, message: str, denial: Denial, outcome: Outcome | None = None) -> None:
        super().__init__(message, outcome)
        self.denial = denial

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.denial, self.outcome)


class FileError(ShielingError, OSError):
    """An operation on files was not done; nothing has changed.

    Attributes:
        code: Which it is, for programs: ``not_found``, ``outside``, ``is_directory``, ``not_a_directory``,
            ``exists``, ``read_only``, ``permission``, ``no_match``, ``ambiguous``, ``stale``, ``not_text``,
            ``too_large``, ``beyond_end``, ``bad_patch``, ``misfit``, ``argument``, ``fault`` and others.
        details: What else is known: ``nearest`` candidates for ``no_match`` and ``misfit``, ``lines`` for
            ``ambiguous``, ``diff`` for ``stale``.
    """

    code: str
    details: dict[str, Any]

    def __init__(self, message: str, code: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.details = details or {}

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.code, self.details)


class JobError(ShielingError):
    """Something cannot be done with a job.

    Attributes:
        code: ``unknown``, ``ended``, ``no_input``, ``no_terminal``, ``full``, ``person_holds``, ``unknown_key``,
            ``pattern``, ``own_network``, ``too_long``, ``unrecorded``, ``size``, ``too_many`` or ``closed``.
    """

    code: str

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.code)


class InputClosedError(ShielingError, BrokenPipeError):
    """A program that is talked to reads no more: its input was closed, or it has ended.

    Attributes:
        written: How many bytes of this write it may still have got.
    """

    written: int

    def __init__(self, message: str, written: int = 0) -> None:
        super().__init__(message)
        self.written = written

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.written)
