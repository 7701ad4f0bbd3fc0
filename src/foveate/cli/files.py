"""Files that are read as text, or written whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from ..archive.files import check_place
from ..errors import BadSetting

__all__ = ["folder_of", "remove_database", "text_from", "write_whole"]


def folder_of(path: Path) -> Path:
    """The folder a file is to be written to. Raises BadSetting where nothing can be written to that place."""
    check_place(path)
    if not path.parent.is_dir():
        raise BadSetting(f"There is no folder {path.parent} to write {path.name} to.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise BadSetting(f"{path} cannot be written: nothing may be written to its folder.")
    return path.parent


def write_whole(path: Path, content: bytes) -> None:
    """Write a file beside its place, then put it there: whoever looks sees the old file or the whole new one.

    Raises BadSetting where it cannot be written; then there is nothing new.
    """
    folder = folder_of(path)
    try:
        _write_beside(folder, path, content)
    except OSError as error:
        raise BadSetting(f"{path} cannot be written: {error.strerror or error}.") from error


def remove_database(path: Path) -> None:
    """Take away a SQLite file that this run has made and that holds nothing whole, with what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _write_beside(folder: Path, path: Path, content: bytes) -> None:
    handle, beside = tempfile.mkstemp(dir=folder, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask())
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
