"""The protocol of what runs shell commands."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ._types import ShellResult


@runtime_checkable
class ShellExecutor(Protocol):
    """Runs shell commands for one conversation; an async context manager.

    In persistent mode an executor holds one shell whose state every later command sees. It belongs
    to one conversation and is closed with it.
    """

    async def start(self) -> None:
        """Starts the backend; does nothing if it runs."""

    async def close(self) -> None:
        """Stops everything the backend started. Calling it again does nothing."""

    async def run(self, command: str, *, timeout: float | None = None) -> ShellResult:
        """Runs `command` and returns its result.

        `timeout` is in seconds; `None` means the executor's own. At the timeout, and when the
        call is cancelled, the command's processes end.
        """
        ...

    async def __aenter__(self) -> ShellExecutor: ...

    async def __aexit__(self, *exc: object) -> None: ...
