"""Bringing back what is not shown: whole, in part, or by a search; for programs, and for models as a tool.

Excerpts     lines, items and matches of a text                    ranges.py items.py excerpts.py originals.py
Hits         where words stand in what is not shown                hits.py
Tool         its definition, its instruction, what a call says     tool.py
Placing      in its place or at the tail: what costs less          placing.py
Expander     the steps that perform all this                       answering.py
"""

from __future__ import annotations

from .excerpts import Excerpt
from .hits import Hit
from .tool import EXPAND_INSTRUCTION, expand_tool

__all__ = ["EXPAND_INSTRUCTION", "Excerpt", "Hit", "expand_tool"]
