"""The quotes of a shell text, as far as the adapters' own filters look at them."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["unescaped"]


def unescaped(command: str) -> Iterator[tuple[int, str, str]]:
    """Yield each character that is neither escaped nor a quotation mark: its position, itself, and the mark of the
    quotes around it, which is empty outside of quotes.

    >>> [char for _, char, quote in unescaped('a "b" \\\\c d') if not quote]
    ['a', ' ', ' ', ' ', 'd']
    """
    quote, position = "", 0
    while position < len(command):
        char = command[position]
        if char == "\\" and quote != "'":
            position += 1
        elif char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        else:
            yield position, char, quote
        position += 1
