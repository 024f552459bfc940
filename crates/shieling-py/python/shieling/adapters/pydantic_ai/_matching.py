"""Matches regular expressions in files, in a process of its own.

Python's engine takes exponential time for some expressions, holds the interpreter's lock meanwhile and cannot be
interrupted. The search therefore runs in a process that is killed when its time is over. This file is that process's
program as well: it imports nothing but the standard library, and reads the request from standard input.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

__all__ = ["MAX_MATCHES", "collect_grep_matches", "search"]

MAX_MATCHES = 1_000
SEARCH_SECONDS = 20.0
_LARGEST_FILE = 64 * 1024 * 1024
_BINARY_PROBE = 8192


def collect_grep_matches(
    rel_path: str, text: str, compiled: re.Pattern[str], output_mode: str, results: list[str]
) -> None:
    """Append what `compiled` finds in one file to `results`, in the form that `output_mode` names.

    A line ends at a newline and nowhere else, as for ``grep -n``.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    found = ((number, line[:-1] if line.endswith("\r") else line) for number, line in enumerate(lines, 1))
    hits = ((number, line) for number, line in found if compiled.search(line))
    if output_mode == "files_with_matches":
        if next(hits, None) is not None:
            results.append(rel_path)
    elif output_mode == "count":
        count = sum(1 for _ in hits)
        if count:
            results.append(f"{rel_path}:{count}")
    else:
        results.extend(f"{rel_path}:{number}:{line}" for number, line in hits)


def _matched(pattern: str, mode: str, files: Iterable[tuple[str, str | None, str | None]]) -> list[str]:
    compiled = re.compile(pattern)
    results: list[str] = []
    for name, path, text in files:
        if text is None and path is not None:
            try:
                with open(path, "rb") as file:
                    data = file.read(_LARGEST_FILE)
            except OSError:
                continue
            if b"\0" in data[:_BINARY_PROBE]:
                continue
            text = data.decode("utf-8", errors="replace")
        collect_grep_matches(name, text or "", compiled, mode, results)
        if len(results) > MAX_MATCHES:
            results.append(f"[... truncated at {MAX_MATCHES} matches]")
            break
    return results


def search(pattern: str, mode: str, files: Iterable[tuple[str, str | None, str | None]]) -> str:
    """Search files for a pattern, and return one line for each match.

    Args:
        pattern: A regular expression of Python.
        mode: ``content``, ``files_with_matches`` or ``count``.
        files: For each file its name in the answer, and either its path or its text.

    Raises:
        re.error: The pattern is wrong.
        TimeoutError: The search took more than 20 seconds.
    """
    re.compile(pattern)
    request = json.dumps({"pattern": pattern, "mode": mode, "files": list(files)}).encode()
    if not sys.executable:
        raise RuntimeError("`sys.executable` is not set, so there is no Python for the process that searches")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", __file__],
            input=request,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=SEARCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(
            f"the search for {pattern!r} took more than {SEARCH_SECONDS:g} s; use a simpler pattern, or fewer files"
        ) from None
    if done.returncode != 0:
        raise OSError(f"the search failed: {done.stderr.decode(errors='replace')[-500:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return "\n".join(answer["lines"])


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump({"lines": _matched(asked["pattern"], asked["mode"], asked["files"])}, sys.stdout)
