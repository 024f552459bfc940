"""How a coroutine waits for a call: its event loop watches one descriptor, which the native threads write to."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import weakref
from collections.abc import Awaitable

from . import _native
from ._call import answer, ask_in_thread
from ._convert import taken
from ._options import Approver
from ._records import Question
from ._typing import Any, cast

__all__ = ["wait_async"]

_numbers = itertools.count()


class _Mailbox:
    """What one event loop is told of its calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.native = _native.Mailbox()
        self.waiting: dict[int, asyncio.Future[None]] = {}
        loop.add_reader(self.native.fileno(), self._drain)

    def _drain(self) -> None:
        for number in self.native.drain():
            waiting = self.waiting.pop(number, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(None)


_mailboxes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Mailbox] = weakref.WeakKeyDictionary()


async def wait_async(call: _native.Call, approver: Approver | None) -> Any:
    """Wait for a call. Cancelling this ends everything that the call started, before it returns."""
    loop = asyncio.get_running_loop()
    event = call.poll()
    if event is True:
        return taken(call)
    mailbox = _mailboxes.get(loop)
    if mailbox is None:
        mailbox = _mailboxes[loop] = _Mailbox(loop)
    number = next(_numbers)
    raised: list[BaseException] = []
    questions: list[asyncio.Task[None]] = []
    call.arm(mailbox.native, number)
    try:
        while True:
            waiting = None
            if event is None:
                waiting = mailbox.waiting[number] = loop.create_future()
                # What came between the last look and now was told already.
                event = call.poll()
            if event is None and waiting is not None:
                await waiting
                event = call.poll()
            if event is True:
                return taken(call)
            if event is False:
                raise raised[0]
            if event is not None:
                _ask(event, cast(Approver, approver), raised, questions)
                event = None
    finally:
        mailbox.waiting.pop(number, None)
        for question in questions:
            question.cancel()
        await _give_up(call, mailbox, number, loop)
        if questions:
            # An approver that does not let itself be cancelled is left behind.
            await asyncio.wait(questions, timeout=1.0)


async def _give_up(call: _native.Call, mailbox: _Mailbox, number: int, loop: asyncio.AbstractEventLoop) -> None:
    """Breaks a call off that is not over, and waits until what it held is dropped."""
    call.abandon()
    while call.poll() is not True:
        waiting = mailbox.waiting[number] = loop.create_future()
        if call.poll() is True:
            break
        try:
            await waiting
        finally:
            mailbox.waiting.pop(number, None)


def _ask(
    asked: _native.Asked, approver: Approver, raised: list[BaseException], questions: list[asyncio.Task[None]]
) -> None:
    if inspect.iscoroutinefunction(approver) or inspect.iscoroutinefunction(getattr(approver, "__call__", None)):
        questions.append(asyncio.ensure_future(_ask_here(asked, approver, raised)))
    else:
        ask_in_thread(asked, approver, raised)


async def _ask_here(asked: _native.Asked, approver: Approver, raised: list[BaseException]) -> None:
    try:
        found = approver(Question.from_dict(asked.question()))
        answer(asked, await found if isinstance(found, Awaitable) else found)
    except asyncio.CancelledError:
        # The approver's own, or that of its call, which nobody waits for then.
        asked.nobody()
        raise
    except BaseException as error:
        raised.append(error)
        asked.fail()
