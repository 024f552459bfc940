"""How a coroutine waits for a call: its event loop watches one descriptor, which the native threads write to."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import weakref
from collections.abc import Awaitable

from . import _native
from ._call import Asker, answer, ask_in_thread, failed, is_coroutine
from ._convert import taken
from ._options import Approver
from ._records import Question
from ._typing import Any, cast

__all__ = ["ask_apart_in", "wait_async"]

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


async def wait_async(call: _native.Call, asker: Asker | None) -> Any:
    """Wait for a call. Cancelling this ends everything that the call started, before it returns."""
    loop = asyncio.get_running_loop()
    if asker is not None:
        asker.listen(loop)
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
                _ask(event, cast(Asker, asker).approver, raised, questions)
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
    if is_coroutine(approver):
        questions.append(asyncio.ensure_future(_ask_here(asked, approver, raised)))
    else:
        ask_in_thread(asked, approver, raised)


async def _ask_here(asked: _native.Asked, approver: Approver, raised: list[BaseException]) -> None:
    try:
        await _put_here(asked, approver)
    except asyncio.CancelledError:
        # The approver's own, or that of its call, which nobody waits for then.
        asked.nobody()
        raise
    except BaseException as error:
        raised.append(error)
        asked.fail()


async def _put_here(asked: _native.Asked, approver: Approver) -> None:
    found = approver(Question.from_dict(asked.question()))
    answer(asked, await found if isinstance(found, Awaitable) else found)


_apart: set[asyncio.Task[None]] = set()


def ask_apart_in(
    loop: asyncio.AbstractEventLoop, context: contextvars.Context, asked: _native.Asked, approver: Approver
) -> bool:
    """Has a loop ask, from another thread, in no call. False if the loop is closed."""

    def begin() -> None:
        task = context.run(loop.create_task, _ask_apart(loop, asked, approver))
        # A loop holds its tasks weakly.
        _apart.add(task)
        task.add_done_callback(_apart.discard)

    try:
        loop.call_soon_threadsafe(begin)
    except RuntimeError:
        return False
    return True


async def _ask_apart(loop: asyncio.AbstractEventLoop, asked: _native.Asked, approver: Approver) -> None:
    try:
        await _put_here(asked, approver)
    except asyncio.CancelledError:
        asked.nobody()
        raise
    except BaseException as error:
        asked.no(failed(error))
        loop.call_exception_handler({"message": "an approver failed", "exception": error})
