"""Traces and metrics of a conversation with OpenTelemetry: `instrument(chat)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.lazy_names import lazy_names

if TYPE_CHECKING:
    from .otel import instrument

__all__ = ["instrument"]


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, {"instrument": ".otel"}, extra=("Telemetry", "otel"))
