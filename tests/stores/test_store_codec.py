"""Packing of bodies: every stored form stays readable for ever."""

from __future__ import annotations

import os
import runpy
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from foveate.core.messages import user
from foveate.errors import MissingExtra
from foveate.ports import append
from foveate.stores import codec, zstd
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain

MODULES = ("compression.zstd", "backports.zstd", "zstandard")
TEXT = b'{"role":"user","parts":[{"type":"text","text":"' + b"the weather in Rome " * 6000
WHAT = b'{"role":"user","parts":[{"type":"text","text":"' + b"No such file or directory. " * 9 + b'"}]}'


def hide(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    zstd.find_zstd.cache_clear()


@pytest.fixture
def without_zstd(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    hide(monkeypatch, *MODULES)
    yield
    zstd.find_zstd.cache_clear()


@pytest.fixture(params=["zstandard", "the standard library's", "none"])
def each_zstd(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bodies are packed and unpacked by one zstd after the other, and without any."""
    match request.param:
        case "zstandard":
            pytest.importorskip("zstandard")
            hide(monkeypatch, "compression.zstd", "backports.zstd")
        case "none":
            hide(monkeypatch, *MODULES)
        case _:
            hide(monkeypatch, "zstandard")
            assert zstd.find_zstd() is not None
    yield
    zstd.find_zstd.cache_clear()


@pytest.mark.usefixtures("each_zstd")
@pytest.mark.parametrize("size", [0, 1, 40, 199, 200, 300, 4000, 16_384, 16_385, 100_000])
def test_body_is_packed_and_unpacked(size: int) -> None:
    body = TEXT[:size]
    assert codec.unpack(codec.pack(body)) == body
    assert len(codec.pack(body)) <= size + bool(size)


@pytest.mark.usefixtures("each_zstd")
@pytest.mark.parametrize("size", [0, 199, 16_384, 16_385, 100_000])
def test_quickly_packed_body_is_unpacked(size: int) -> None:
    body = TEXT[:size]
    packed = codec.pack_quickly(body)
    assert codec.unpack(packed) == body
    assert len(packed) <= size


@pytest.mark.usefixtures("each_zstd")
def test_noise_is_kept_as_it_is() -> None:
    body = os.urandom(500)
    assert codec.pack(body) == b"\0" + body


@pytest.mark.parametrize("size", [40, 199, 200, 4000])
def test_short_bodies_are_packed_with_zlib_and_others_with_zstd(size: int) -> None:
    assert codec.pack(TEXT[:size])[:1] == (b"\x02" if size < 200 else b"\x05")


def test_small_bodies_pack_well() -> None:
    body = (
        b'{"role":"tool","parts":[{"type":"tool_result","call_id":"call_9","content":[{"type":"text","text":"ok"}]}]}'
    )
    assert len(codec.pack(body)) < 0.3 * len(body)


@pytest.mark.usefixtures("each_zstd")
def test_dictionary_of_zlib_is_part_of_the_file_format() -> None:
    """Changing it makes every database unreadable: a better one needs another tag."""
    stored = bytes.fromhex("0223316891cb763d900900")
    assert codec.unpack(stored) == b'{"role":"user","parts":[{"type":"text","text":"Let me check."}]}'


def test_dictionary_of_zstd_is_part_of_the_file_format() -> None:
    """Changing it makes every database unreadable: a better one needs another tag and another file."""
    dictionary = Path(zstd.__file__).with_name(zstd.DICTIONARY).read_bytes()
    assert sha256(dictionary).hexdigest() == "e149e69c8e980c91b49bdc4684100428564e62802bfbef5f7f1ff018390e3b05"


@pytest.mark.slow
def test_dictionary_has_only_fragments_of_several_projects(transcripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it contains no text of any one project."""
    monkeypatch.setenv("FOVEATE_TRANSCRIPTS", str(transcripts))
    path = Path(__file__).resolve().parents[2] / "tools" / "train_dictionary.py"
    tool: dict[str, Any] = runpy.run_path(str(path))
    bodies = tool["read_bodies"]()
    text = tool["text_of"]({project: bodies[project] for project in tool["TRAINED"]})
    assert Path(zstd.__file__).with_name(zstd.DICTIONARY).read_bytes().endswith(text)


def test_threads_share_one_zstd() -> None:
    """A context of zstd is of one thread at a time."""
    bodies = [(f'{{"role":"user","parts":[{n}]}}' * (20 + n)).encode() for n in range(200)]
    with ThreadPoolExecutor(8) as threads:
        packed = list(threads.map(codec.pack, bodies * 5))
        assert list(threads.map(codec.unpack, packed)) == bodies * 5


@pytest.mark.parametrize("hidden", MODULES[1:])
def test_stored_form_is_read_by_every_zstd(hidden: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, hidden)
    try:
        assert codec.unpack(bytes.fromhex("05602600c50000284e227d5d7d05fc53cf35b0c7686d80717e0e69561cce06")) == WHAT
        assert codec.unpack(b"\x03" + bytes.fromhex("28b52ffd2003190000616263")) == b"abc"
    finally:
        zstd.find_zstd.cache_clear()


@pytest.mark.parametrize(
    "stored", [b"\x01junk", b"\x02junk\xff\xff", b"\x02", b"\x03junk", b"\x05", b"\x05junk", b"\x99abc"]
)
def test_unpackable_body_is_damaged(stored: bytes) -> None:
    with pytest.raises(codec.DamagedBody):
        codec.unpack(stored)


@pytest.mark.usefixtures("each_zstd")
@pytest.mark.parametrize("size", [150, 400])
def test_packed_body_that_is_cut_short_or_runs_on_is_damaged(size: int) -> None:
    stored = codec.pack(TEXT[:size])
    for damaged in (stored[:-3], stored + b"\0"):
        with pytest.raises(codec.DamagedBody, match=r"cut short or run on|cannot be decompressed"):
            codec.unpack(damaged)


def test_packing_never_leaves_bytes_of_another_body() -> None:
    """Contexts are used again, so each body must become a frame of its own."""
    others = [TEXT[:size] for size in range(200, 900, 7)]
    assert [codec.pack(body) for body in reversed(others)] == [codec.pack(body) for body in others][::-1]


@pytest.mark.usefixtures("without_zstd")
def test_store_works_without_zstd(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "chat.db") as store:
        head = store.open("acme", "one")
        rows = chain([user("short"), user("the weather in Rome " * 9000)], head)
        head = append(store, head, rows)
        assert store.messages(head, 1, 2) == rows


def test_missing_zstd_names_the_extra(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with SqliteStore(tmp_path / "chat.db") as store:
        head = store.open("acme", "one")
        head = append(store, head, chain([user("short"), user("the weather in Rome " * 20)], head))
    request.getfixturevalue("without_zstd")
    with SqliteStore(tmp_path / "chat.db") as store:
        assert len(store.messages(head, 1, 1)) == 1
        with pytest.raises(MissingExtra, match=r"foveate\[zstd\]"):
            store.messages(head, 1, 2)


def test_older_forms_stay_readable() -> None:
    large = TEXT[:40_000]
    assert codec.unpack(b"\x01" + zlib.compress(large)) == large
    assert codec.unpack(codec.pack_with_zlib(large[:3000])) == large[:3000]


def test_saved_view_packed_with_zstd_is_left_unused_without_it(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with SqliteStore(tmp_path / "chat.db") as store:
        head = store.open("acme", "one")
        store.save_snapshot(head, 0, 0, b"small", [b"long " * 9_000])
        assert [len(piece) for piece in store.saved_view(head, 0, 0)] == [45_000]
        request.getfixturevalue("without_zstd")
        assert list(store.saved_view(head, 0, 0)) == []
        store.save_snapshot(head, 0, 0, b"small", [b"long " * 9_000])
        assert [len(piece) for piece in store.saved_view(head, 0, 0)] == [45_000]
