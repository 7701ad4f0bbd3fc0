"""Files that are written whole or not at all, and compressed according to their names.

`.gz` is gzip and `.zst` is zstd. Errors of files are raised as BadSetting.
"""

from __future__ import annotations

import gzip
import io
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

from ...errors import BadSetting, MissingExtra

__all__ = ["UNREADABLE", "check_place", "is_compressed", "placed", "reading", "writing"]

UNREADABLE = (OSError, EOFError, zlib.error)
"""Errors of reading a damaged or cut compressed file; zstd's own error is raised as OSError."""

_DATABASE = b"SQLite format 3\0"
"""The beginning of a SQLite file: https://www.sqlite.org/fileformat2.html#magic_header_string."""
_COMPANIONS = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite creates for a database: https://www.sqlite.org/tempfiles.html."""


def check_place(path: Path, *, database: bool = False) -> None:
    """Raise BadSetting if no file may be written here, even with `overwrite`.

    Folders, devices and the companion files of a SQLite database are refused; a SQLite database too, unless `database`.
    """
    if path.is_dir():
        raise BadSetting(f"{path} is a folder; name a file in it.")
    for suffix in _COMPANIONS:
        owner = path.with_name(path.name.removesuffix(suffix) or path.name)
        if owner != path and owner.exists():
            raise BadSetting(f"{path} is a file that SQLite uses for {owner}. Name another file.")
    if not path.exists():
        return
    if not path.is_file():
        raise BadSetting(f"{path} is not a regular file. Name another one.")
    if not database and _begins(path) == _DATABASE:
        raise BadSetting(f"{path} is a database, and must not be replaced by another kind of file. Name another file.")


@contextmanager
def placed(path: Path, *, overwrite: bool = False, database: bool = False) -> Iterator[Path]:
    """Yield the path of an empty temporary file, which is synced and renamed to `path` at the end.

    Raises BadSetting if the file exists, unless `overwrite`, or if it cannot be written; `database`: see `check_place`.
    """
    check_place(path, database=database)
    if path.exists() and not overwrite:
        raise BadSetting(
            f"There is a file {path} already. Name another one, or overwrite it: --overwrite, or overwrite=True."
        )
    if not path.parent.is_dir():
        raise BadSetting(f"There is no folder {path.parent} to write {path.name} to.")
    temporary = None
    try:
        temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.tmp")
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))  # Minus the user's umask.
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o7777)
        yield temporary
        _sync(temporary)
        if overwrite:
            os.replace(temporary, path)
        else:
            os.link(temporary, path)  # Fails if another process created the file meanwhile.
        _sync(path.parent)
    except FileExistsError as error:
        raise BadSetting(f"{path} was created by another process meanwhile. Name another file.") from error
    except OSError as error:
        raise BadSetting(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        if temporary is not None:
            for suffix in ("", *_COMPANIONS):  # SQLite leaves its journal if the disk is full.
                with suppress(OSError):
                    temporary.with_name(temporary.name + suffix).unlink()


@contextmanager
def writing(path: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing, compressed according to its name. Raises as `placed` does, and MissingExtra."""
    zstd = _zstd() if path.suffix == ".zst" else None
    with placed(path, overwrite=overwrite) as temporary, open(temporary, "wb") as raw:
        if path.suffix == ".gz":
            # Without name and time: the same content gives the same file.
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
                yield cast("BinaryIO", packed)
        elif zstd is not None:
            with zstd.open(raw, "wb") as packed:
                yield packed
        else:
            yield raw


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, unpacked according to its name. Raises BadSetting, and MissingExtra.

    Reading a damaged file raises one of `UNREADABLE`.
    """
    try:
        raw = open(path, "rb")  # noqa: SIM115 - closed below.
    except OSError as error:
        raise BadSetting(f"{path} cannot be read: {error.strerror or error}.") from error
    with raw:
        if path.suffix == ".gz":
            with gzip.GzipFile(fileobj=raw) as packed:
                yield cast("BinaryIO", packed)
        elif path.suffix == ".zst":
            with io.BufferedReader(_Unpacking(raw, _zstd()), 1 << 16) as buffered:
                yield cast("BinaryIO", buffered)
        else:
            yield raw


def is_compressed(path: Path) -> bool:
    """Return whether `reading` decompresses this file."""
    return path.suffix in (".gz", ".zst")


class _Unpacking(io.RawIOBase):
    """A file unpacked by zstd, with the same errors for each zstd module."""

    def __init__(self, raw: BinaryIO, zstd: Any) -> None:
        self._error: type[Exception] = zstd.ZstdError
        self._file = zstd.open(raw, "rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            piece: bytes = self._file.read(len(buffer))
        except self._error as error:
            raise OSError(str(error)) from error
        buffer[: len(piece)] = piece
        return len(piece)


def _begins(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(len(_DATABASE))
    except OSError:  # It cannot be read; it may be writable all the same.
        return b""


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _zstd() -> Any:
    """Return the zstd module of Python 3.14 or newer, the same module for older versions, or `zstandard`."""
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        with suppress(ImportError):
            return import_module(name)
    raise MissingExtra("A file that is compressed with zstd", "zstd")
