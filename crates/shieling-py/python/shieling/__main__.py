"""The command ``shieling``, also as ``python -m shieling``: the same as the program of that name."""

from __future__ import annotations

import os
import signal
import sys


def command() -> None:
    """Run the command with this process's words, and exit as it did."""
    from . import _native

    # Its own handling of signals calls the handler that was there before, and Python's would raise afterwards.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Nothing of Python is left to be done after it.
    status = _native.main(["shieling", *sys.argv[1:]])
    os._exit(status)


if __name__ == "__main__":
    command()
