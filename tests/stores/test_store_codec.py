"""Packing of bodies: every stored form stays readable for ever."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from foveate.core.messages import user
from foveate.errors import MissingExtra
from foveate.ports import append
from foveate.stores import codec
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain


@pytest.mark.parametrize("size", [0, 1, 40, 300, 4000, 16_384, 16_385, 100_000])
def test_body_is_packed_and_unpacked(size: int) -> None:
    body = (b'{"role":"user","parts":[{"type":"text","text":"' + b"the weather in Rome " * 6000)[:size]
    assert codec.unpack(codec.pack(body)) == body
    assert len(codec.pack(body)) <= size + bool(size)


def test_noise_is_kept_as_it_is() -> None:
    body = os.urandom(500)
    assert codec.pack(body) == b"\0" + body


def test_small_bodies_pack_well() -> None:
    body = (
        b'{"role":"tool","parts":[{"type":"tool_result","call_id":"call_9","content":[{"type":"text","text":"ok"}]}]}'
    )
    assert len(codec.pack(body)) < 0.3 * len(body)


def test_dictionary_is_part_of_the_file_format() -> None:
    """Changing it makes every database unreadable: a better one needs another tag."""
    stored = bytes.fromhex("0223316891cb763d900900")
    assert codec.unpack(stored) == b'{"role":"user","parts":[{"type":"text","text":"Let me check."}]}'


@pytest.mark.parametrize("stored", [b"\x01junk", b"\x02junk\xff\xff", b"\x02", b"\x03junk", b"\x99abc"])
def test_unpackable_body_is_damaged(stored: bytes) -> None:
    if stored[:1] == b"\x03":
        pytest.importorskip("zstandard")
    with pytest.raises(codec.DamagedBody):
        codec.unpack(stored)


def test_packed_body_that_is_cut_short_or_runs_on_is_damaged() -> None:
    stored = codec.pack(b"the weather in Rome " * 20)
    for damaged in (stored[:-3], stored + b"\0"):
        with pytest.raises(codec.DamagedBody, match="cut short or run on"):
            codec.unpack(damaged)


def test_zstd_is_written_where_asked_for_and_always_read(tmp_path: Path) -> None:
    pytest.importorskip("zstandard")
    path = tmp_path / "chat.db"
    with SqliteStore(path, codec="zstd") as store:
        head = store.open("acme", "one")
        rows = chain([user("short"), user("the weather in Rome " * 9000)], head)
        head = append(store, head, rows)
        assert codec.pack(rows[1].body, "zstd")[:1] == b"\x03"
    with SqliteStore(path) as store:
        assert store.messages(head, 1, 2) == rows


@pytest.fixture
def without_zstd(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("compression", "compression.zstd", "backports.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    codec._find_zstd.cache_clear()
    yield
    codec._find_zstd.cache_clear()


@pytest.mark.usefixtures("without_zstd")
def test_missing_zstd_names_the_extra(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match=r"foveate\[zstd\]"):
        SqliteStore(tmp_path / "chat.db", codec="zstd")


def test_saved_view_packed_with_zstd_is_left_unused_without_it(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with SqliteStore(tmp_path / "chat.db") as store:
        head = store.open("acme", "one")
        store.save_snapshot(head, 0, 0, b"small", [b"long " * 9_000])
        assert [len(piece) for piece in store.saved_view(head, 0, 0)] == [45_000]
        request.getfixturevalue("without_zstd")
        assert list(store.saved_view(head, 0, 0)) == []
        store.save_snapshot(head, 0, 0, b"small", [b"long " * 9_000])
        assert [len(piece) for piece in store.saved_view(head, 0, 0)] == [45_000]
