"""Cutting what a tool says to a size that a model can use, and saying so in the place where something is missing."""

from __future__ import annotations

__all__ = ["head_and_tail", "line_cut", "lines_of"]


def lines_of(text: str) -> list[str]:
    """The lines of a text as editors and `grep` count them, without their ends."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def head_and_tail(text: str, most: int, hint: str = "") -> str:
    """The beginning and the end of a text, `most` characters of it, cut at line ends where there are some near."""
    if len(text) <= most:
        return text
    head, tail = text[: most // 2], text[len(text) - most // 2 :]
    if (end := head.rfind("\n")) > len(head) // 2:
        head = head[: end + 1]
    if -1 < (begin := tail.find("\n")) < len(tail) // 2:
        tail = tail[begin + 1 :]
    missing = text[len(head) : len(text) - len(tail)]
    note = f"[... {len(missing):,} characters, {missing.count(chr(10)):,} lines left out{hint} ...]"
    return f"{head.rstrip(chr(10))}\n{note}\n{tail}"


def line_cut(line: str, most: int) -> str:
    """One line, with a note where it was too long."""
    return line if len(line) <= most else f"{line[:most]}... [{len(line) - most:,} more characters]"
