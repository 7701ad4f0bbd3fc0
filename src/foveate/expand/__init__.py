"""Expanding: originals shown again, whole, in part, or found by words, for programs and as a tool for models.

expander.py    shows originals, returns parts, and answers the calls of a model
tool.py        the definition of the tool `expand`, its instruction, and the arguments of its calls
excerpts.py    lines, items and matches of a text
items.py       the items of a text: elements of JSON, rows, records, lines
search.py      words in what is not shown
originals.py   the text of a message
patterns.py    regular expressions with a time limit
"""

from __future__ import annotations

from .excerpts import Excerpt
from .search import Hit
from .tool import EXPAND_INSTRUCTION, expand_tool

__all__ = ["EXPAND_INSTRUCTION", "Excerpt", "Hit", "expand_tool"]
