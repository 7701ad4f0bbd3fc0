"""Tuning of a preset on recorded conversations: search, cross-check and frontier.

`tune` searches, and `preset_text` writes what it found as a preset.
"""

from __future__ import annotations

from .report import preset_text
from .result import Ending, HeldOut, Trial, Tuned
from .tuning import tune

__all__ = ["Ending", "HeldOut", "Trial", "Tuned", "preset_text", "tune"]
