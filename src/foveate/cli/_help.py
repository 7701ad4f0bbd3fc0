"""What `--help` says of a command: its docstring."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getdoc

__all__ = ["description"]


def description(command: Callable[..., int]) -> str:
    """What a docstring says before its parameters, a line a paragraph: the terminal decides where lines end."""
    paragraphs = (getdoc(command) or "").split("\n\nParameters\n")[0].split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()).replace("`", "") for paragraph in paragraphs)
