"""Plugins: functions that add content to messages, and the values they return."""

from __future__ import annotations

from .conversation.plugins import Additions, Plugin, plugin
from .core.enrich import AdditionalContent, EnrichedMessage, display_parts, enrich, persistent_parts

__all__ = [
    "AdditionalContent",
    "Additions",
    "EnrichedMessage",
    "Plugin",
    "display_parts",
    "enrich",
    "persistent_parts",
    "plugin",
]
