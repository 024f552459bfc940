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
from typing import Any, NamedTuple

psutil: Any = None
with contextlib.suppress(ImportError):
    psutil = importlib.import_module("psutil")
_has_psutil = psutil is not None

_taskkill_path: str | None = None


class ProcessEntry(NamedTuple):
    """A process of this host."""

    pid: int
    parent: int
    group: int
    start: str
    """When it started: its number may be given to another one."""


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
    if psutil is None:
        raise RuntimeError("_kill_via_psutil called without psutil available")
    try:
        parent = psutil.Process(proc.pid)
        victims = [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for victim in victims:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            victim.terminate()
    await _ended(proc, grace)
    # Each once, in this order. What they have started since then goes with them.
    left: dict[Any, None] = {}
    for victim in reversed(victims):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if victim.is_running():
                left.update(dict.fromkeys((*victim.children(recursive=True), victim)))
    for victim in left:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            victim.kill()
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
    table = _table()
    tree = _tree(table, [proc.pid] if _is_child(table, proc.pid) else [])
    group = _group(proc.pid, table, tree)
    _signal_all(tree, group, signal.SIGTERM)
    if await _ended(proc, grace):
        # The number of its group may be another one's by now.
        group = None
    table = _table()
    left = [pid for pid, one in tree.items() if table.get(pid) and table[pid].start == one.start]
    _signal_all(_tree(table, left), group, signal.SIGKILL)
    await _ended(proc, grace)


async def _ended(proc: asyncio.subprocess.Process, grace: float) -> bool:
    """Waits for `proc`, for at most `grace` seconds; returns whether it has ended."""
    try:
        await asyncio.wait_for(proc.wait(), timeout=grace)
    except asyncio.TimeoutError:
        return False
    return True


def _table() -> dict[int, ProcessEntry]:
    """Returns the processes of this host by their numbers; none where there is no `/proc`."""
    pids = [int(directory.name) for directory in Path("/proc").glob("[0-9]*")]
    return {pid: one for pid in pids if (one := _table_entry(pid)) is not None}


def _table_entry(pid: int) -> ProcessEntry | None:
    try:
        return parse_entry(Path(f"/proc/{pid}/stat").read_text(errors="replace"))
    except OSError:
        return None


def parse_entry(text: str) -> ProcessEntry | None:
    """Returns the process that the text of a file `/proc/PID/stat` tells of."""
    # Behind the name, which may hold anything.
    pid, fields = text.partition(" ")[0], text.rpartition(")")[2].split()
    if not pid.isdigit() or len(fields) < 20:
        return None
    return ProcessEntry(int(pid), int(fields[1]), int(fields[2]), fields[19])


def interrupt_group(leader: ProcessEntry) -> bool:
    """Sends SIGINT to the process group of `leader`, and returns whether it did.

    It does not unless `leader` is the leader and still the process that it was. What a shell elsewhere tells of itself is
    that of no process here.
    """
    if sys.platform == "win32" or leader.group != leader.pid or _table_entry(leader.pid) != leader:
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader.group, signal.SIGINT)
        return True
    return False


def _is_child(table: dict[int, ProcessEntry], pid: int) -> bool:
    return pid in table and table[pid].parent == os.getpid()


def _tree(table: dict[int, ProcessEntry], roots: Iterable[int]) -> dict[int, ProcessEntry]:
    """Returns the processes `roots` and all that descend from them."""
    members = set(roots)
    while more := {pid for pid, one in table.items() if one.parent in members} - members:
        members |= more
    return {pid: table[pid] for pid in members if pid in table}


def _group(pid: int, table: dict[int, ProcessEntry], tree: dict[int, ProcessEntry]) -> int | None:
    """Returns the process group of `pid`; `None` if there is none that may be signalled.

    A group may be if one of `tree` is in it, or nobody, and neither this process nor one above it is.
    """
    try:
        group = os.getpgid(pid)
    except (ProcessLookupError, PermissionError):
        return None
    above, seen = os.getpid(), set[int]()
    while above in table and above not in seen:
        if table[above].group == group:
            return None
        seen.add(above)
        above = table[above].parent
    members = {one for one, process in table.items() if process.group == group}
    return group if group != os.getpgrp() and (not members or members & tree.keys()) else None


def _signal_all(tree: dict[int, ProcessEntry], group: int | None, number: signal.Signals) -> None:
    """Sends a signal to the group, and to those of `tree` that are not in it."""
    if group is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
    for pid, process in tree.items():
        if group is None or process.group != group:
            with contextlib.suppress(OSError):
                _signal(pid, process.start, number)


def _signal(pid: int, start: str, number: signal.Signals) -> None:
    """Sends a signal to the process `pid` if it is still that which started at `start`."""
    if sys.platform != "linux":
        return
    # What is open here keeps its number, so that nobody else is met.
    handle = os.pidfd_open(pid)
    try:
        if (found := _table_entry(pid)) is not None and found.start == start:
            signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)
