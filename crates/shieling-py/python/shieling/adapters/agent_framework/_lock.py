"""A lock for coroutines of several event loops."""

from __future__ import annotations

import asyncio
import threading
import weakref

__all__ = ["LoopsLock"]

# Short beside a command, and long beside a look.
_LOOK_SECONDS = 0.002


class LoopsLock:
    """Like `asyncio.Lock`, in the order of the calls of each event loop, and also between loops of several threads.

    Waits for another loop by looking again, since nothing wakes a coroutine of one loop from another. Which loop is next
    is not defined.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()
        self._between = threading.Lock()

    def __reduce__(self) -> tuple[type[LoopsLock], tuple[()]]:
        # A copy of what it is a part of has a lock of its own.
        return LoopsLock, ()

    def locked(self) -> bool:
        """Returns whether somebody holds the lock."""
        return self._between.locked()

    def _own(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        with self._guard:
            own = self._loops.get(loop)
            if own is None:
                own = self._loops[loop] = asyncio.Lock()
            return own

    async def __aenter__(self) -> None:
        own = self._own()
        await own.acquire()
        try:
            while not self._between.acquire(blocking=False):
                await asyncio.sleep(_LOOK_SECONDS)
        except BaseException:
            own.release()
            raise

    async def __aexit__(self, *error: object) -> None:
        self._between.release()
        self._own().release()
