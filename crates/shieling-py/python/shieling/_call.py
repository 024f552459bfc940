"""How an ordinary thread waits for a call, and how an approver is asked meanwhile."""

from __future__ import annotations

import contextvars
import threading
import weakref
from collections.abc import Awaitable

from . import _native
from ._convert import taken
from ._options import Approver
from ._records import No, Question, Yes
from ._typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["Asker", "answer", "ask_in_thread", "is_coroutine", "wait_call"]


class Asker:
    """Who is asked: by the call in which a question comes up, or apart from any where it comes up in none."""

    def __init__(self, approver: Approver, core: _native.Core) -> None:
        self.approver = approver
        self._questions = core.questions_apart if core.asks_apart else None
        self._context: contextvars.Context | None = None
        self._loop: weakref.ref[AbstractEventLoop] | None = None

    def listen(self, loop: AbstractEventLoop | None = None) -> None:
        """Have questions asked that come up in no call, as about a connection, from now on: where this was called last."""
        if self._questions is None:
            return
        is_first = self._context is None
        self._context = contextvars.copy_context()
        self._loop = None if loop is None else weakref.ref(loop)
        call = self._questions() if is_first else None
        if call is not None:
            # It holds nothing that would keep the environment open.
            threading.Thread(target=_listen, args=(call, weakref.ref(self)), name="approver", daemon=True).start()

    def ask_apart(self, asked: _native.Asked) -> None:
        """Ask in the event loop of the last call, or in a thread."""
        loop = None if self._loop is None else self._loop()
        context = cast(contextvars.Context, self._context).copy()
        if loop is not None and is_coroutine(self.approver) and loop.is_running():
            from ._call_async import ask_apart_in

            if ask_apart_in(loop, context, asked, self.approver):
                return
        _in_thread(context, _ask_apart, asked, self.approver)


def _listen(call: _native.Call, asker: weakref.ref[Asker]) -> None:
    while (event := call.wait()) is not True:
        known = asker()
        if isinstance(event, _native.Asked) and known is not None:
            known.ask_apart(event)
        del event, known


def is_coroutine(approver: Approver) -> bool:
    """Whether an approver is to be called within an event loop."""
    import inspect

    return inspect.iscoroutinefunction(approver) or inspect.iscoroutinefunction(getattr(approver, "__call__", None))


def wait_call(call: _native.Call, asker: Asker | None) -> Any:
    """Wait for a call, asking the approver where it wants that. Other threads run meanwhile.

    An exception of a signal's handler, such as ``KeyboardInterrupt``, ends everything that the call started.
    """
    raised: list[BaseException] = []
    if asker is not None:
        asker.listen()
    try:
        while (event := call.wait()) is not True:
            if event is False or not isinstance(event, _native.Asked):
                raise raised[0]
            ask_in_thread(event, cast(Asker, asker).approver, raised)
    except BaseException:
        # A traceback can keep the call for as long as somebody keeps the exception.
        call.cancel()
        raise
    return taken(call)


def ask_in_thread(asked: _native.Asked, approver: Approver, raised: list[BaseException]) -> None:
    _in_thread(contextvars.copy_context(), _ask, asked, approver, raised)


def _in_thread(context: contextvars.Context, function: Any, *arguments: Any) -> None:
    # Not one that is waited for when the interpreter exits: nobody needs its answer then.
    threading.Thread(target=lambda: context.run(function, *arguments), name="approver", daemon=True).start()


def _ask(asked: _native.Asked, approver: Approver, raised: list[BaseException]) -> None:
    try:
        _put(asked, approver)
    except BaseException as error:  # whatever it is, the caller gets it
        raised.append(error)
        asked.fail()


def _ask_apart(asked: _native.Asked, approver: Approver) -> None:
    try:
        _put(asked, approver)
    except BaseException as error:
        asked.no(failed(error))
        raise  # there is no caller: `threading.excepthook` gets it


def failed(error: BaseException) -> str:
    """The no of an approver that raised."""
    return f"the approver failed with {type(error).__name__}"


def _put(asked: _native.Asked, approver: Approver) -> None:
    found = approver(Question.from_dict(asked.question()))
    if isinstance(found, Awaitable):
        import asyncio

        found = asyncio.run(_awaited(found))
    answer(asked, found)


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


