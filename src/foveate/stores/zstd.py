"""Frames of zstd with the dictionary of this package, by the modules that a Python may have.

`compression.zstd` is part of Python 3.14, `backports.zstd` is the same for older versions, and `zstandard` is a package
that unpacks small bodies five times as fast. All three read and write the same frames.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any

__all__ = ["DICTIONARY", "Zstd", "find_module", "find_zstd"]

DICTIONARY = "dictionary_1.zdict"
"""Made by `tools/train_dictionary.py`. It is part of the file format, and never changes."""

_LEVEL = 5
"""Level 3 takes half of the time and 4 % more bytes, level 6 takes 1.7 times the time and saves 3 %."""

_MAGIC = b"\x28\xb5\x2f\xfd"
"""The first bytes of every frame. They are not stored."""

Code = Callable[[bytes], bytes]


class Zstd:
    """Packs and unpacks bodies. Threads may share it: each uses a context of its own at a time."""

    def __init__(self, new_packer: Callable[[], Code], new_unpacker: Callable[[], Code], decompress: Code) -> None:
        self._packers: deque[Code] = deque()
        """Contexts that no thread uses now."""
        self._unpackers: deque[Code] = deque()
        self._new_packer, self._new_unpacker = new_packer, new_unpacker
        self.decompress = decompress
        """Unpack a frame without a dictionary."""

    def pack(self, body: bytes) -> bytes:
        return _with_context(self._packers, self._new_packer, body)[len(_MAGIC) :]

    def unpack(self, packed: bytes) -> bytes:
        """Return the body. Raises an error of the module if it is damaged."""
        return _with_context(self._unpackers, self._new_unpacker, _MAGIC + packed)


def _with_context(idle: deque[Code], new: Callable[[], Code], data: bytes) -> bytes:
    try:
        context = idle.pop()
    except IndexError:
        context = new()
    result = context(data)  # After an error, the context is dropped.
    idle.append(context)
    return result


@cache
def find_zstd() -> Zstd | None:
    """Return the fastest zstd of this Python; None if it has none."""
    with suppress(ImportError):
        return _of_zstandard(import_module("zstandard"), _dictionary())
    module = find_module()
    return None if module is None else _of_standard_library(module, _dictionary())


def find_module() -> Any:
    """Return `compression.zstd`, or `backports.zstd`; None if this Python has neither."""
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return import_module(name)
    return None


def _dictionary() -> bytes:
    return files(__package__).joinpath(DICTIONARY).read_bytes()


def _of_zstandard(module: Any, dictionary: bytes) -> Zstd:
    shared = module.ZstdCompressionDict(dictionary)

    def new_packer() -> Code:
        packer = module.ZstdCompressor(level=_LEVEL, dict_data=shared, write_checksum=False, write_dict_id=False)
        compress: Code = packer.compress
        return compress

    def new_unpacker(dictionary: Any = shared) -> Code:
        unpacker = module.ZstdDecompressor(dict_data=dictionary)
        return lambda data: bytes(unpacker.decompress(data, allow_extra_data=False))

    return Zstd(new_packer, new_unpacker, lambda data: new_unpacker(None)(data))


def _of_standard_library(module: Any, dictionary: bytes) -> Zstd:
    shared = module.ZstdDict(dictionary)
    names = module.CompressionParameter
    options = {names.compression_level: _LEVEL, names.checksum_flag: 0, names.dict_id_flag: 0}

    def new_packer() -> Code:
        packer = module.ZstdCompressor(options=options, zstd_dict=shared)
        return lambda data: bytes(packer.compress(data, packer.FLUSH_FRAME))

    def unpack(data: bytes) -> bytes:
        return bytes(module.decompress(data, shared))

    return Zstd(new_packer, lambda: unpack, module.decompress)
