"""The end of a process that was started with asyncio, and of everything that it has started.

Processes are found by `psutil` where that is installed, else by `/proc` or, on Windows, by taskkill.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

psutil: Any = None
with contextlib.suppress(ImportError):
    psutil = importlib.import_module("psutil")
_has_psutil = psutil is not None

_taskkill_path: str | None = None

# A process: its number, and when it started, since the number may be given to another one.
_Process = tuple[int, str]


def _resolve_taskkill() -> str:
    """Returns the path of the system's taskkill.exe, so that no other one on the PATH is started."""
    global _taskkill_path
    if _taskkill_path is None:
        root = os.environ.get("SystemRoot") or os.environ.get("SYSTEMROOT") or r"C:\Windows"
        found = os.path.join(root, "System32", "taskkill.exe")
        _taskkill_path = found if os.path.isfile(found) else "taskkill"
    return _taskkill_path


async def kill_process_tree(proc: asyncio.subprocess.Process, *, grace: float = 2.0) -> None:
    """Ends `proc` and its descendants: SIGTERM, and SIGKILL for what is left after `grace` seconds.

    Does nothing if `proc` has ended, and never raises. What has left the tree before, as daemons do,
    is not found.
    """
    if proc.returncode is not None:
        return
    if _has_psutil:
        await _kill_via_psutil(proc, grace=grace)
    else:
        await _kill_via_stdlib(proc, grace=grace)


async def _kill_via_psutil(proc: asyncio.subprocess.Process, *, grace: float) -> None:
    try:
        parent = psutil.Process(proc.pid)
        victims = [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for victim in victims:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            victim.terminate()
    await _ended(proc, grace)
    for victim in victims:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if victim.is_running():
                # What it has started since then goes with it.
                for one in (*victim.children(recursive=True), victim):
                    one.kill()
    await _ended(proc, grace)


async def _kill_via_stdlib(proc: asyncio.subprocess.Process, *, grace: float) -> None:
    if sys.platform == "win32":
        words = (_resolve_taskkill(), "/T", "/F", "/PID", str(proc.pid))
        with contextlib.suppress(OSError):
            killer = await asyncio.create_subprocess_exec(
                *words, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
            )
            await _ended(killer, grace)
            if killer.returncode is None:
                killer.kill()
        with contextlib.suppress(OSError):
            proc.kill()
        return
    tree = _tree({proc.pid})
    _signal(tree, signal.SIGTERM)
    await _ended(proc, grace)
    table = _table()
    _signal(_tree({pid for pid, start in tree if table.get(pid, (0, ""))[1] == start}), signal.SIGKILL)
    await _ended(proc, grace)


async def _ended(proc: asyncio.subprocess.Process, grace: float) -> None:
    """Waits for `proc`, for at most `grace` seconds."""
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(proc.wait(), timeout=grace)


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
