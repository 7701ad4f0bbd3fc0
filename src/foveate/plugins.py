"""Plugins: functions that add content to messages, and the values they return."""

from __future__ import annotations

from .conversation.plugins import Addition, Additions, Plugin, PluginFunction, plugin
from .core.enrich import AdditionalContent, EnrichedMessage, display_parts, enrich, persistent_parts

__all__ = [
    "Addition",
    "AdditionalContent",
    "Additions",
    "EnrichedMessage",
    "Plugin",
    "PluginFunction",
    "display_parts",
    "enrich",
    "persistent_parts",
    "plugin",
]
