"""Files that appear whole or not at all, and are read and written compressed where their name says so.

`.gz` is gzip and `.zst` zstd, which needs Python 3.14 or the extra `zstd`; anything else is plain. What goes wrong with
a file is told as BadSetting. Nothing here knows what is in them.
"""

from __future__ import annotations

import gzip
import io
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from ..errors import BadSetting, MissingExtra

__all__ = ["UNREADABLE", "check_place", "is_compressed", "placed", "reading", "writing"]

UNREADABLE = (OSError, EOFError, zlib.error)
"""What reading a damaged or cut compressed file raises; zstd's own error comes out as OSError."""

_DATABASE = b"SQLite format 3\0"
"""How a SQLite file begins: https://www.sqlite.org/fileformat2.html#magic_header_string."""
_BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite appends to the name of a database for what it keeps beside it: https://www.sqlite.org/tempfiles.html."""


def check_place(path: Path, *, database: bool = False) -> None:
    """Raises BadSetting where no file may be put, whatever is to be overwritten: in the place of a folder, of a device,
    of what SQLite keeps beside a database, and, unless one is to be written (`database`), of a SQLite database.
    """
    if path.is_dir():
        raise BadSetting(f"{path} is a folder; name a file in it.")
    for suffix in _BESIDE:
        owner = path.with_name(path.name.removesuffix(suffix) or path.name)
        if owner != path and owner.exists():
            raise BadSetting(f"{path} is where SQLite keeps what belongs to {owner}. Name another file.")
    if not path.exists():
        return
    if not path.is_file():
        raise BadSetting(f"{path} is no file that could be replaced. Name another one.")
    if not database and _begins(path) == _DATABASE:
        raise BadSetting(f"{path} is a database, which nothing else may replace. Name another file.")


@contextmanager
def placed(path: Path, *, overwrite: bool = False, database: bool = False) -> Iterator[Path]:
    """The path of an empty file beside `path`, which takes its place once all is well, and is on the disk then.

    Raises BadSetting where there is a file already, unless `overwrite`, and where nothing can be written there; see
    `check_place` for `database`.
    """
    check_place(path, database=database)
    if path.exists() and not overwrite:
        raise BadSetting(f"There is a file {path} already. Name another one, or say that it is to be overwritten.")
    if not path.parent.is_dir():
        raise BadSetting(f"There is no folder {path.parent} to write {path.name} to.")
    beside = None
    try:
        beside = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.tmp")
        os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))  # Less what the user's umask takes.
        if path.exists():
            beside.chmod(path.stat().st_mode & 0o7777)
        yield beside
        _sync(beside)
        if overwrite:
            os.replace(beside, path)
        else:
            os.link(beside, path)  # Refused where somebody else made the file meanwhile.
        _sync(path.parent)
    except FileExistsError as error:
        raise BadSetting(f"{path} was made by somebody else meanwhile. Name another file.") from error
    except OSError as error:
        raise BadSetting(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        if beside is not None:
            for suffix in ("", *_BESIDE):  # SQLite leaves its journal where the disk was full.
                with suppress(OSError):
                    beside.with_name(beside.name + suffix).unlink()


@contextmanager
def writing(path: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A file to write to, compressed as its name says. Raises as `placed` does, and MissingExtra."""
    zstd = _zstd() if path.suffix == ".zst" else None
    with placed(path, overwrite=overwrite) as beside, open(beside, "wb") as raw:
        if path.suffix == ".gz":
            # Neither the name nor the time: the same content makes the same file.
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
                yield cast("BinaryIO", packed)
        elif zstd is not None:
            with zstd.open(raw, "wb") as packed:
                yield packed
        else:
            yield raw


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """A file to read from, unpacked as its name says. Raises BadSetting where it cannot be opened, and MissingExtra.

    What reading it raises where it is damaged is one of `UNREADABLE`.
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
    """Whether `reading` decompresses this file."""
    return path.suffix in (".gz", ".zst")


class _Unpacking(io.RawIOBase):
    """A file as zstd unpacks it, with errors that do not depend on whose zstd it is."""

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
    except OSError:  # It cannot be read, so it cannot be told what it is; writing may be allowed all the same.
        return b""


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _zstd() -> Any:
    """The standard library's zstd where Python has it, else the `zstandard` package."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            import zstandard as zstd  # type: ignore[import-not-found, unused-ignore]
        except ImportError as error:
            raise MissingExtra("A file that is compressed with zstd", "zstd") from error
    return zstd
