"""Traces and metrics of a conversation with OpenTelemetry: `instrument(chat)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .otel import instrument

__all__ = ["instrument"]


if not TYPE_CHECKING:  # A type checker then reports names that do not exist.

    def __getattr__(name: str) -> Any:
        """Import `instrument` on first use, because it needs the package `opentelemetry-api`."""
        if name != "instrument":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from ..errors import MissingExtra

        try:
            from .otel import instrument
        except ImportError as error:
            raise MissingExtra("Telemetry", "otel") from error
        return instrument


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
