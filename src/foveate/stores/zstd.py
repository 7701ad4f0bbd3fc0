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
from pathlib import Path
from typing import Any

__all__ = ["DICTIONARY", "Zstd", "find_module", "find_zstd"]

DICTIONARY = "dictionary_1.zdict"
"""Made by `tools/train_dictionary.py`. It is part of the file format, and never changes."""

_MAGIC = b"\x28\xb5\x2f\xfd"
"""The first bytes of every frame. They are not stored."""

_SMALL_MAX = 4096
"""Bytes up to which a body is packed with small tables."""

_LARGE = {"compression_level": 6}
_SMALL = {"compression_level": 5, "strategy": 3, "hash_log": 13, "chain_log": 13, "search_log": 2, "min_match": 4}
"""Strategy 3 is "greedy". Small tables find fewer repetitions, which costs 3 % more bytes. But most appends begin with
cold caches, and then they halve the time.
"""
_PLAIN = {"checksum_flag": 0, "dict_id_flag": 0}

Code = Callable[[bytes | memoryview], bytes]


class _Contexts:
    """A function whose context only one thread may use at a time, for any number of threads."""

    def __init__(self, new: Callable[[], Code]) -> None:
        self._new = new
        self._idle: deque[Code] = deque()

    def __call__(self, data: bytes) -> bytes:
        try:
            context = self._idle.pop()
        except IndexError:
            context = self._new()
        result = context(data)  # After an error, the context is dropped.
        self._idle.append(context)
        return result


class Zstd:
    """Packs and unpacks bodies. Threads may share it."""

    def __init__(
        self,
        small: Callable[[], Code],
        large: Callable[[], Code],
        unpacker: Callable[[], Code],
        plain: tuple[Code, Code],
    ) -> None:
        self._small, self._large, self._unpack = _Contexts(small), _Contexts(large), _Contexts(unpacker)
        self.compress, self.decompress = plain
        """Pack, as fast as usual, and unpack a whole frame without the dictionary."""

    def pack(self, body: bytes) -> bytes:
        """Return a frame without its first four bytes."""
        return (self._small if len(body) <= _SMALL_MAX else self._large)(body)[len(_MAGIC) :]

    def unpack(self, packed: bytes | memoryview) -> bytes:
        """Return the body. Raises an error of the module if it is damaged."""
        return self._unpack(_MAGIC + packed)


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
    return Path(__file__).with_name(DICTIONARY).read_bytes()


def _of_zstandard(module: Any, dictionary: bytes) -> Zstd:
    shared = module.ZstdCompressionDict(dictionary)

    def packer(compression_level: int, **tables: int) -> Code:
        settings = module.ZstdCompressionParameters.from_level(
            compression_level, write_checksum=False, write_dict_id=False, **tables
        )
        compress: Code = module.ZstdCompressor(dict_data=shared, compression_params=settings).compress
        return compress

    def unpacker(dictionary: Any = shared) -> Code:
        decompress = module.ZstdDecompressor(dict_data=dictionary).decompress
        return lambda data: bytes(decompress(data, allow_extra_data=False))

    plain = lambda data: module.ZstdCompressor().compress(data), lambda data: unpacker(None)(data)
    return Zstd(lambda: packer(**_SMALL), lambda: packer(**_LARGE), unpacker, plain)


def _of_standard_library(module: Any, dictionary: bytes) -> Zstd:
    shared = module.ZstdDict(dictionary)

    def packer(settings: dict[str, int]) -> Code:
        options = {getattr(module.CompressionParameter, name): value for name, value in {**settings, **_PLAIN}.items()}
        compressor = module.ZstdCompressor(options=options, zstd_dict=shared)
        return lambda data: bytes(compressor.compress(data, compressor.FLUSH_FRAME))

    def unpack(data: bytes | memoryview) -> bytes:
        return bytes(module.decompress(data, shared))

    return Zstd(lambda: packer(_SMALL), lambda: packer(_LARGE), lambda: unpack, (module.compress, module.decompress))
