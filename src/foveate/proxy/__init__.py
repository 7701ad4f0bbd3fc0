"""A proxy that keeps the conversations of any client inside their windows (`foveate proxy`)."""

from __future__ import annotations

from .settings import ProxySettings

__all__ = ["ProxySettings"]
