"""The end of a process that was started with asyncio, and of everything that it has started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

# A process: its number, and when it started, since the number may be given to another one.
_Process = tuple[int, str]


async def kill_process_tree(proc: asyncio.subprocess.Process, *, grace: float = 2.0) -> None:
    """Ends `proc` and its descendants: SIGTERM, and SIGKILL for what is left after `grace` seconds.

    Does nothing if `proc` has ended, and never raises. What has left the tree before, as daemons do,
    is not found.
    """
    if proc.returncode is not None:
        return
    tree = _tree({proc.pid})
    _signal(tree, signal.SIGTERM)
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(proc.wait(), grace)
    table = _table()
    _signal(_tree({pid for pid, start in tree if table.get(pid, (0, ""))[1] == start}), signal.SIGKILL)
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(proc.wait(), grace)


def _table() -> dict[int, tuple[int, str]]:
    """Returns the parent and the start of each process of this host."""
    found: dict[int, tuple[int, str]] = {}
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # Behind the name, which may hold anything.
            fields = (directory / "stat").read_text(errors="replace").rpartition(")")[2].split()
            found[int(directory.name)] = int(fields[1]), fields[19]
    return found


def _tree(roots: set[int]) -> list[_Process]:
    """Returns the processes `roots` and all that descend from them."""
    table = _table()
    members = set(roots)
    while more := {pid for pid, (parent, _) in table.items() if parent in members} - members:
        members |= more
    return [(pid, table[pid][1]) for pid in members if pid in table]


def _signal(processes: Iterable[_Process], number: signal.Signals) -> None:
    for pid, _ in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
