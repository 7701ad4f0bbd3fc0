"""Expanding: originals shown again, whole, in part, or found by words, for programs and as a tool for models."""

from __future__ import annotations

from .excerpts import Excerpt
from .search import Hit
from .tool import EXPAND_INSTRUCTION, expand_tool

__all__ = ["EXPAND_INSTRUCTION", "Excerpt", "Hit", "expand_tool"]
