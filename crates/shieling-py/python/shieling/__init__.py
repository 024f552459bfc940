"""The place where AI agents work: every command is judged, contained, bounded, recorded and reported truthfully.

>>> from shieling import Shieling
>>> with Shieling("memory") as shieling:
...     outcome = shieling.run("echo hello | tr a-z A-Z")
...     print(outcome.stdout.strip(), outcome.exit_code)
HELLO 0
"""

from __future__ import annotations

import atexit as _atexit

from . import _native as _native_module
from ._errors import (
    ArgumentError,
    ClosedError,
    CommandFailedError,
    CommandTimeoutError,
    ConfigurationError,
    DeniedError,
    FileError,
    InputClosedError,
    JobError,
    NotStartedError,
    OutcomeError,
    ShielingError,
)
from ._options import Answer, Approver
from ._records import (
    Accepted,
    ChangeTotals,
    Changes,
    CommandSeen,
    Confinement,
    Denial,
    Description,
    Edited,
    Effect,
    FileInfo,
    FileRead,
    Found,
    Grepped,
    HeldBack,
    Hint,
    Hit,
    JobInfo,
    KilledProcess,
    LimitHit,
    Listed,
    Network,
    NetworkConnection,
    NetworkDenied,
    No,
    Outcome,
    OutputPage,
    Patched,
    PatchedFile,
    Question,
    Reason,
    Renamed,
    Screen,
    SessionInfo,
    Span,
    Verdict,
    View,
    Written,
    Yes,
)
from ._sync import Job, Process, Session, Shieling, Stream
from ._typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._async import AsyncJob, AsyncProcess, AsyncSession, AsyncShieling, AsyncStream
    from ._options import EnvironmentName

_atexit.register(_native_module.shutdown)

_ASYNC = {"AsyncJob", "AsyncProcess", "AsyncSession", "AsyncShieling", "AsyncStream"}


def __getattr__(name: str) -> Any:
    # `asyncio` takes longer to import than all of this package.
    if name in _ASYNC:
        from . import _async

        return getattr(_async, name)
    if name == "EnvironmentName":
        from . import _options

        return eval(str(_options.EnvironmentName), _options.__dict__)
    if name == "__version__":
        return _native_module.version()
    raise AttributeError(f"module `shieling` has no attribute `{name}`")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


__all__ = [
    "Accepted",
    "Answer",
    "Approver",
    "ArgumentError",
    "AsyncJob",
    "AsyncProcess",
    "AsyncSession",
    "AsyncShieling",
    "AsyncStream",
    "ChangeTotals",
    "Changes",
    "ClosedError",
    "CommandFailedError",
    "CommandSeen",
    "CommandTimeoutError",
    "ConfigurationError",
    "Confinement",
    "Denial",
    "DeniedError",
    "Description",
    "Edited",
    "Effect",
    "EnvironmentName",
    "FileError",
    "FileInfo",
    "FileRead",
    "Found",
    "Grepped",
    "HeldBack",
    "Hint",
    "Hit",
    "InputClosedError",
    "Job",
    "JobError",
    "JobInfo",
    "KilledProcess",
    "LimitHit",
    "Listed",
    "Network",
    "NetworkConnection",
    "NetworkDenied",
    "No",
    "NotStartedError",
    "Outcome",
    "OutcomeError",
    "OutputPage",
    "Patched",
    "PatchedFile",
    "Process",
    "Question",
    "Reason",
    "Renamed",
    "Screen",
    "Session",
    "SessionInfo",
    "Shieling",
    "ShielingError",
    "Span",
    "Stream",
    "Verdict",
    "View",
    "Written",
    "Yes",
]
