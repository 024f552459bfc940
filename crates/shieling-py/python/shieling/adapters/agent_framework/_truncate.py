"""Truncation of a stream to a number of bytes: its beginning and its end around a marker."""

from __future__ import annotations


def truncate_head_tail(data: bytes, cap: int) -> tuple[str, bool]:
    """Returns the text of `data`, cut to `cap` bytes, and whether bytes were left out.

    The head gets `cap // 2` bytes and the tail the rest. Bytes that are not valid UTF-8 are
    replaced. Raises `ValueError` if `cap` is not positive: a bound that bounds nothing is an error.
    """
    if cap <= 0:
        raise ValueError(f"cap must be positive; got {cap}")
    if len(data) <= cap:
        return data.decode("utf-8", errors="replace"), False
    head = data[: cap // 2]
    tail = data[len(data) - (cap - cap // 2) :]
    return around_marker(head, tail, len(data) - cap), True


def truncate_text_head_tail(text: str, cap: int) -> tuple[str, bool]:
    """Returns `text` cut as `truncate_head_tail` cuts its UTF-8 bytes."""
    return truncate_head_tail(text.encode("utf-8", errors="replace"), cap)


def around_marker(head: bytes, tail: bytes, dropped: int) -> str:
    """Returns the text of a beginning and an end, with a line between them that tells what is left out."""
    return (
        f"{head.decode('utf-8', errors='replace')}"
        f"\n[... truncated {dropped} bytes ...]\n"
        f"{tail.decode('utf-8', errors='replace')}"
    )
