"""Content: parts of messages as safe HTML for people.

The HTML of any message has only the elements, classes and attributes of this package: no script, no style attribute and
no link to another site. `render` shows a part within limits, `render_page` a page of a long part.
"""

from __future__ import annotations

from .calls import render_diff
from .diffs import DiffRow, diff_lines, render_diff_rows
from .lines import FOLDED, PAGE, Limits
from .media import File, data_url, file_of
from .parts import Links, headline, part_at, render, render_page, text_of

__all__ = [
    "FOLDED",
    "PAGE",
    "DiffRow",
    "File",
    "Limits",
    "Links",
    "data_url",
    "diff_lines",
    "file_of",
    "headline",
    "part_at",
    "render",
    "render_diff",
    "render_diff_rows",
    "render_page",
    "text_of",
]
