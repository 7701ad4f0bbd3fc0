"""Places to keep conversations: `memory` (the oracle), and one SQL store with a thin driver for each database."""

from __future__ import annotations

from typing import Literal

from ..errors import BadSetting

__all__ = ["place_of"]


def place_of(url: str) -> tuple[Literal["memory", "sqlite"], str]:
    """What kind of store a URL names, and its path: `memory:` or `sqlite:///PATH`. Raises BadSetting for another."""
    if url in ("memory:", "memory://"):
        return "memory", ""
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        return "sqlite", url.removeprefix("sqlite:///")
    raise BadSetting(f"There is no store {url!r}. Known: memory: and sqlite:///PATH, for example sqlite:///chat.db.")
