"""Runs a program on a terminal of its own: `terminal.py PROGRAM ARGUMENTS...`.

Takes steps as JSON on standard input, each `[text to wait for, what to do]`: a text is typed, an object
does something else. Prints what came of it as JSON.
"""
import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

LIMIT = 60  # seconds for each step


def resize(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def main():
    steps = json.load(sys.stdin)
    ready, go = os.pipe()
    pid, fd = pty.fork()
    if pid == 0:
        os.read(ready, 1)
        os.execv(sys.argv[1], sys.argv[1:])
    resize(fd, 33, 101)
    # Both ends have the same settings. Not the default, so that restoring them can be seen.
    settings = termios.tcgetattr(fd)
    settings[3] &= ~termios.ECHOCTL
    termios.tcsetattr(fd, termios.TCSANOW, settings)
    before = termios.tcgetattr(fd)
    os.write(go, b"+")
    seen, all_seen, missed, raw = b"", b"", None, False

    def more(until):
        nonlocal seen, all_seen
        if not select.select([fd], [], [], max(0, until - time.monotonic()))[0]:
            return False
        try:
            read = os.read(fd, 65536)
        except OSError:
            return False
        seen += read
        all_seen += read
        return bool(read)

    for mark, action in steps:
        until = time.monotonic() + LIMIT
        while mark.encode() not in seen and missed is None:
            if not more(until):
                missed = mark
        if missed is not None:
            break
        # What came after it may be what the next step waits for.
        seen = seen.partition(mark.encode())[2]
        raw = raw or not termios.tcgetattr(fd)[3] & termios.ICANON
        if isinstance(action, str):
            os.write(fd, action.encode())
        elif "signal" in action:
            os.kill(pid, getattr(signal, action["signal"]))
        else:
            resize(fd, *action["resize"])
    until = time.monotonic() + (0 if missed else LIMIT)
    while more(until):
        pass
    ended = os.waitpid(pid, os.WNOHANG)
    if ended == (0, 0):
        until = time.monotonic() + 2
        while ended == (0, 0) and time.monotonic() < until:
            time.sleep(0.01)
            ended = os.waitpid(pid, os.WNOHANG)
    if ended == (0, 0):
        os.kill(pid, signal.SIGKILL)
        ended = os.waitpid(pid, 0)
    status = os.waitstatus_to_exitcode(ended[1])
    print(
        json.dumps(
            {
                "output": all_seen.decode(errors="replace"),
                "missed": missed,
                "status": status,
                "was_raw": raw,
                "restored": termios.tcgetattr(fd) == before,
            }
        )
    )


main()
