"""Reading text files, and writing files completely or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from ..errors import BadSetting
from ..ops.archive.files import check_place

__all__ = ["STDOUT", "check_report", "folder_of", "read_text", "remove_database", "write_whole"]

STDOUT = "/dev/stdout"
"""The place of a file that is written to standard output."""

_HTML = b"<!doctype html>"
"""The beginning of each report, in small letters."""


def folder_of(path: Path) -> Path:
    """Return the folder of a file to be written. Raises BadSetting if the file cannot be written there."""
    check_place(path)
    if not path.parent.is_dir():
        raise BadSetting(f"There is no folder {path.parent} to write {path.name} to.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise BadSetting(f"{path} cannot be written: you may not write to its folder.")
    return path.parent


def check_report(path: Path) -> None:
    """Raise BadSetting if no report can be written here: it replaces reports and empty files, but no other file.

    With `--html *.jsonl` the shell names a recording as the report.
    """
    folder_of(path)
    if not path.is_file():
        return
    with open(path, "rb") as file:
        beginning = file.read(len(_HTML))
    if beginning and beginning.lower() != _HTML:
        raise BadSetting(f"{path} exists, and is no report. Name another file, such as --html report.html.")


def write_whole(path: Path, content: bytes) -> None:
    """Write a temporary file, then rename it, so that a reader sees the old file or the complete new one.

    Raises BadSetting if the file cannot be written; the old file is then unchanged.
    """
    folder = folder_of(path)
    try:
        _replace(folder, path, content)
    except OSError as error:
        raise BadSetting(f"{path} cannot be written: {error.strerror or error}.") from error


def remove_database(path: Path) -> None:
    """Delete a SQLite file that this run created, with the files that SQLite keeps next to it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def read_text(source: str) -> str:
    """Read a file, or standard input if `source` is `-`. Raises BadSetting if it cannot be read as UTF-8."""
    if source.startswith("-") and source != "-":
        raise BadSetting(f"Unknown option: {source}. A file of that name is ./{source}.")
    name, raw = ("Standard input", sys.stdin.buffer.read()) if source == "-" else (source, _read(Path(source)))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadSetting(f"{name} is not text in UTF-8 ({error.reason} at byte {error.start}).") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadSetting(f"{path} cannot be read: {error.strerror or error}.") from error


def _replace(folder: Path, path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
