"""Labels: the lines before messages in a text of several, which no message may forge."""

from __future__ import annotations

import re
from functools import cache

__all__ = ["TITLE", "without_labels"]

TITLE = (
    r" {0,3}(?:#{1,6}[ \t]+(?![ \t])[^\w\r\n]{0,20}(?:m\d|(?<=&#)[\dxX])"  # `## **m1**` and `## &#109;1` look alike.
    r"|m\d[^\r\n]{0,200}(?:\r\n?|\n) {0,3}(?:-+|=+)[ \t]*$)"
)
"""The beginning of a title of a message in Markdown, `## m1`, in any of the forms that Markdown has for titles."""


def without_labels(text: str, label: str) -> str:
    """Return a text with `> ` before each line that begins like a label. `label`: a pattern of its first characters."""
    return _lines_like(label).sub("> ", text)


@cache
def _lines_like(label: str) -> re.Pattern[str]:
    # A model reads other line ends, too.
    return re.compile(rf"(?:^|(?<=[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]))(?={label})", re.MULTILINE)
