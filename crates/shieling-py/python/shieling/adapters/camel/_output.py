"""Output of commands: what a view has not shown yet, and the logs. Both are bounded."""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from hashlib import sha256
from queue import Empty
from typing import Any

from ._framework import to_plain

VIEW_BYTES = 128 * 1024
"""The most that one answer holds: its beginning and its end."""

LOG_BYTES = 64 * 1024 * 1024
"""The size at which a log takes no more."""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def log_name(session_id: Any) -> str:
    """Returns the name of a session's log: no part of an id is taken as a path.

    An id may be anything that a dictionary takes as a key. The name for one that is no text has a
    plus sign, which is in no other name: the sessions `5` and `"5"` have a log each.
    """
    text = str(session_id)
    is_text = isinstance(session_id, str)
    if is_text and _PLAIN_NAME.fullmatch(text):
        return f"session_{text}.log"
    known_by = text if is_text else f"{type(session_id).__qualname__} {session_id!r}"
    digest = sha256(known_by.encode(errors="surrogatepass")).hexdigest()[:12]
    shown = re.sub(r"[^A-Za-z0-9_-]", "_", text)[:60]
    return f"session_{shown}{'_' if is_text else '+'}{digest}.log"


def write_log(path: str, content: str, end: str = "\n") -> None:
    """Appends `content` and `end` to a log, as plain text, up to the log's bound."""
    with open(path, "a", encoding="utf-8", errors="replace") as log:
        _append(log.fileno(), to_plain(content) + end)


def _append(descriptor: int, text: str) -> None:
    if os.fstat(descriptor).st_size > LOG_BYTES:
        return
    data = text.encode("utf-8", errors="replace")
    if len(data) > LOG_BYTES:
        data = data[:LOG_BYTES] + b"\n[... the log takes no more ...]\n"
    os.write(descriptor, data)


def universal_lines(text: str) -> str:
    """Returns `text` with each line end as one newline character."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def clip(text: str, log: str) -> str:
    """Returns `text`, or its beginning and end around a line that names the log."""
    if len(text) <= VIEW_BYTES:
        return text
    half = VIEW_BYTES // 2
    missing = len(text) - 2 * half
    return f"{text[:half]}\n[... {missing} characters left out; see {log} ...]\n{text[-half:]}"


class OutputStream:
    """What a session has printed and no view has shown; used like a queue of texts.

    At its bound the middle goes: the beginning and the newest output stay.
    """

    def __init__(self, log: str = "the log") -> None:
        self._log = log
        self._lock = threading.Lock()
        self._head: list[str] = []
        self._head_size = 0
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._dropped = 0

    def put(self, text: str) -> None:
        """Adds a text; never blocks."""
        half = VIEW_BYTES // 2
        with self._lock:
            if not self._tail and self._head_size < half:
                room = half - self._head_size
                self._head.append(text[:room])
                self._head_size += len(text[:room])
                text = text[room:]
            if not text:
                return
            self._tail.append(text)
            self._tail_size += len(text)
            while self._tail_size > half:
                excess = self._tail_size - half
                first = self._tail.popleft()
                if len(first) > excess:
                    self._tail.appendleft(first[excess:])
                    first = first[:excess]
                self._tail_size -= len(first)
                self._dropped += len(first)

    put_nowait = put

    def get_nowait(self) -> str:
        """Takes all that is there; raises `queue.Empty` if nothing is."""
        with self._lock:
            if not self._head:
                raise Empty
            marker = (
                f"\n[... {self._dropped} characters left out; see {self._log} ...]\n"
                if self._dropped
                else ""
            )
            text = "".join([*self._head, marker, *self._tail])
            self._head, self._head_size = [], 0
            self._tail, self._tail_size, self._dropped = deque(), 0, 0
            return text

    def get(self, block: bool = False, timeout: float | None = None) -> str:
        """Takes all that is there. It does not wait: `shell_view` never does."""
        return self.get_nowait()

    def empty(self) -> bool:
        """Returns whether nothing is there."""
        with self._lock:
            return not self._head

    def qsize(self) -> int:
        """Returns how many texts are there."""
        with self._lock:
            return len(self._head) + len(self._tail)
