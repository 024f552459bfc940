"""How an ordinary thread waits for a call, and how an approver is asked meanwhile."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Awaitable

from . import _native
from ._convert import taken
from ._options import Approver
from ._records import No, Question, Yes
from ._typing import Any, cast

__all__ = ["answer", "ask_in_thread", "wait_call"]


def wait_call(call: _native.Call, approver: Approver | None) -> Any:
    """Wait for a call, asking the approver where it wants that. Other threads run meanwhile.

    An exception of a signal's handler, such as ``KeyboardInterrupt``, ends everything that the call started.
    """
    raised: list[BaseException] = []
    try:
        while (event := call.wait()) is not True:
            if event is False or not isinstance(event, _native.Asked):
                raise raised[0]
            ask_in_thread(event, cast(Approver, approver), raised)
    except BaseException:
        # A traceback can keep the call for as long as somebody keeps the exception.
        call.cancel()
        raise
    return taken(call)


def ask_in_thread(asked: _native.Asked, approver: Approver, raised: list[BaseException]) -> None:
    context = contextvars.copy_context()
    # Not one that is waited for when the interpreter exits: nobody needs its answer then.
    thread = threading.Thread(target=lambda: context.run(_ask, asked, approver, raised), name="approver", daemon=True)
    thread.start()


def _ask(asked: _native.Asked, approver: Approver, raised: list[BaseException]) -> None:
    try:
        found = approver(Question.from_dict(asked.question()))
        if isinstance(found, Awaitable):
            import asyncio

            found = asyncio.run(_awaited(found))
        answer(asked, found)
    except BaseException as error:  # whatever it is, the caller gets it
        raised.append(error)
        asked.fail()


async def _awaited(found: Awaitable[Any]) -> Any:
    return await found


def answer(asked: _native.Asked, found: object) -> None:
    """Pass an approver's answer on.

    Raises:
        TypeError: It is no answer.
    """
    if found is True:
        asked.yes("once", [], None, None)
    elif isinstance(found, Yes):
        asked.yes(found.scope, list(found.prefix), found.uses, found.seconds)
    elif found is False:
        asked.no("")
    elif isinstance(found, No):
        asked.no(found.because)
    elif found is None:
        asked.nobody()
    else:
        raise TypeError(f"an approver answers True, False, Yes(...), No(...) or None, and this one said {found!r}")


