"""Text that a command is handed: from a file, or from standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from ...errors import BadSetting

__all__ = ["text_from"]


def text_from(source: str) -> str:
    """What stands in a file, or comes from standard input where it is `-`. Raises BadSetting where it is no UTF-8."""
    if source.startswith("-") and source != "-":
        raise BadSetting(f"Unknown option: {source}. A file of that name is ./{source}.")
    name, raw = ("standard input", sys.stdin.buffer.read()) if source == "-" else (source, _read(Path(source)))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadSetting(f"{name} is no text in UTF-8 ({error.reason} at byte {error.start}).") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadSetting(f"{path} cannot be read: {error.strerror or error}.") from error
