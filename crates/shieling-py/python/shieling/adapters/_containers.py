"""What is common to adapters whose commands run in containers of somebody else."""

from __future__ import annotations


def kill_script(mark: str) -> str:
    """Returns shell text that kills every process with the variable `mark` (`NAME=value`).

    The client of a container runtime passes no signal on to what it has started, and the numbers of
    processes that the runtime tells are the host's. The text needs a shell and `cat`.
    """
    return (
        'for p in /proc/[0-9]*; do case "$(cat "$p/environ" 2>/dev/null)" in '
        f'*{mark}*) kill -KILL "${{p#/proc/}}";; esac; done 2>/dev/null; true'
    )
