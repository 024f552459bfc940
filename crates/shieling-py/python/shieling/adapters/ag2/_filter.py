"""Which commands a list of prefixes names, and which paths a list of patterns hides: AG2's functions."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath, PurePosixPath

from .._quoting import unescaped
from ._framework import IS_1X

__all__ = [
    "DEVICES",
    "READONLY_COMMANDS",
    "SANDBOX_READONLY_COMMANDS",
    "SHELL_READONLY_COMMANDS",
    "check_ignore",
    "contains_shell_operator",
    "hidden",
    "matches",
    "matches_argv",
    "split_command",
]

SANDBOX_READONLY_COMMANDS: tuple[str, ...] = (
    *("cat", "head", "tail", "ls", "grep", "egrep", "fgrep", "wc", "du", "df", "diff", "stat", "which", "pwd", "echo"),
    *("printenv", "cut"),
)
"""What ``readonly=True`` allows in AG2 1.x."""

SHELL_READONLY_COMMANDS: tuple[str, ...] = (
    *("cat", "head", "tail", "ls", "ll", "la", "grep", "egrep", "fgrep", "find", "wc", "du", "df", "diff", "stat"),
    *("file", "which", "pwd", "echo", "env", "printenv", "sort", "uniq", "cut"),
    *("git log", "git diff", "git status", "git show", "git branch"),
)
"""What ``readonly=True`` allows in AG2 0.12, as far as it changes nothing: ``sort -o`` and ``find -delete`` are refused."""

READONLY_COMMANDS: tuple[str, ...] = SANDBOX_READONLY_COMMANDS if IS_1X else SHELL_READONLY_COMMANDS
"""The list that the AG2 which is installed has under this name; without AG2, that of 0.12."""

DEVICES = frozenset({"/dev/null", "/dev/zero", "/dev/full", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"})
"""Devices that hold nothing, which a command may name wherever it works."""


def matches(pattern: str, command: str) -> bool:
    """Tell whether a command begins with the words of `pattern`.

    >>> matches("git", "git status"), matches("git", "gitconfig"), matches("uv run", "uv add requests")
    (True, False, False)
    """
    text = command.strip()
    return text == pattern or text.startswith(f"{pattern} ")


def matches_argv(pattern: str, argv: Sequence[str]) -> bool:
    """Tell whether an argv begins with the words of `pattern`.

    >>> matches_argv("git log", ["git", "log", "-5"]), matches_argv("git log", ["git", "-c", "x", "log"])
    (True, False)
    """
    words = pattern.split()
    return list(argv[: len(words)]) == words


def split_command(command: str) -> list[str] | None:
    """The words of a command after quote removal; ``None`` if a quote is not closed."""
    try:
        return shlex.split(command)
    except ValueError:
        return None


def contains_shell_operator(command: str) -> bool:
    """Tell whether a command holds shell syntax outside quotes: redirections, chains, line ends, substitutions."""
    text = "".join(char for _, char, quote in unescaped(command) if not quote)
    return "$(" in text or any(char in "<>|;&`\n\r" for char in text)


def check_ignore(command: str, workdir: PurePath, patterns: list[str]) -> str | None:
    """Return ``Access denied: PATH`` for the first word that leads out of `workdir` or names a hidden path.

    Words are taken as paths: as a whole, behind ``=``, and as a value glued to a short option. With a `Path` links are
    followed and globs are looked up on this host; with a `PurePosixPath` paths are only put in order as text.
    """
    tokens = split_command(command)
    if tokens is None:
        tokens = command.split()
    root: PurePath = workdir.resolve() if isinstance(workdir, Path) else _ordered(workdir)
    for token in tokens:
        for part in _parts(token):
            for path in _named(part, workdir):
                if str(path) in DEVICES:
                    continue
                if hidden(path, root, patterns):
                    return f"Access denied: {path}"
    return None


def hidden(path: PurePath, root: PurePath, patterns: Sequence[str]) -> bool:
    """Tell whether a resolved path lies outside `root`, or matches one of the patterns."""
    try:
        relative = path.relative_to(root).as_posix()
    except ValueError:
        return True
    return any(_matches_path(pattern, relative, path.name) for pattern in patterns)


def _matches_path(pattern: str, relative: str, name: str) -> bool:
    if not any(char in pattern for char in "*?["):
        pattern = pattern.rstrip("/")
        return pattern in (name, relative) or relative.startswith(f"{pattern}/")
    if pattern.endswith("/**") and relative == pattern[:-3]:
        # The directory itself: listing it tells what is hidden in it.
        return True
    names = [pattern, pattern[3:]] if pattern.startswith("**/") else [pattern]
    return fnmatch.fnmatch(relative, pattern) or any(fnmatch.fnmatch(name, one) for one in names)


def _parts(token: str) -> Iterator[str]:
    yield token
    if "=" in token:
        yield from (part for part in token.split("=") if part)
    if token.startswith("-") and not token.startswith("--"):
        yield from (token[start:] for start in range(2, len(token)))


def _named(part: str, workdir: PurePath) -> Iterator[PurePath]:
    if not isinstance(workdir, Path):
        yield _ordered(PurePosixPath(str(workdir)) / part)
        return
    if part == "~" or part.startswith("~/"):
        part = os.path.expanduser(part)
    try:
        yield (workdir / part).resolve()
    except (OSError, RuntimeError, ValueError):
        return
    if any(char in part for char in "*?["):
        try:
            yield from [found.resolve() for found in workdir.glob(part)]
        except (OSError, RuntimeError, ValueError, NotImplementedError):
            return


def _ordered(path: PurePath) -> PurePosixPath:
    return PurePosixPath(posixpath.normpath(str(path)))
