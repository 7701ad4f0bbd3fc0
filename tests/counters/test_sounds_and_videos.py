"""Tokens of sounds and videos: by their duration, which is read from the file."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.media_duration import duration
from foveate.core.messages import Extra, Media
from foveate.counters import counter_for


def chunk(name: bytes, body: bytes, order: str = "<") -> bytes:
    return name + struct.pack(f"{order}I", len(body)) + body


def wav(seconds: int, *, is_streamed: bool = False) -> bytes:
    form = chunk(b"fmt ", struct.pack("<HHIIHH", 1, 1, 8_000, 16_000, 2, 16))
    data = chunk(b"data", bytes(16_000 * seconds))
    if is_streamed:
        data = b"data\xff\xff\xff\xff" + data[8:]
    return b"RIFF" + bytes(4) + b"WAVE" + form + chunk(b"LIST", b"odd") + b"\0" + data


def aiff(seconds: int) -> bytes:
    rate = struct.pack(">HQ", 16_383 + 12, 8_000 << 51)  # 8,000 as a number of 80 bits
    return b"FORM" + bytes(4) + b"AIFF" + chunk(b"COMM", struct.pack(">hIh", 1, 8_000 * seconds, 16) + rate, ">")


def flac(seconds: int) -> bytes:
    return b"fLaC" + bytes(14) + (8_000 << 44 | 15 << 36 | 8_000 * seconds).to_bytes(8, "big") + bytes(40)


def opus(seconds: int) -> bytes:
    first = b"OggS\0\2" + bytes(22) + b"OpusHead" + bytes(40)
    return first + bytes(200_000) + b"OggS\0\4" + struct.pack("<q", 48_000 * seconds) + bytes(100)


def mp3(seconds: int, *, is_variable: bool = False) -> bytes:
    frame = b"\xff\xfb\x90\x00" + bytes(32)  # version 1, layer III, 128 kbit a second, 44,100 Hz
    if is_variable:
        frame += b"Xing" + struct.pack(">II", 1, seconds * 44_100 // 1_152 + 1)
    tag = b"ID3\4\0\0" + bytes([0, 0, 7, 0x68]) + bytes(1_000)  # 7 bits in each byte of its size: 1,000
    return tag + frame + bytes(16_000 * seconds - len(frame))


def mp4(seconds: int, version: int = 0) -> bytes:
    times = (
        struct.pack(">QQIQ", 0, 0, 600, 600 * seconds) if version else struct.pack(">IIII", 0, 0, 600, 600 * seconds)
    )
    header = bytes([version, 0, 0, 0]) + times + bytes(80)
    moov = chunk_of(b"moov", chunk_of(b"mvhd", header))
    return chunk_of(b"ftyp", b"isom" + bytes(4)) + chunk_of(b"mdat", bytes(100_000)) + moov


def chunk_of(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", 8 + len(body)) + name + body


def webm(seconds: int) -> bytes:
    return (
        b"\x1a\x45\xdf\xa3"
        + bytes(60)
        + b"\x2a\xd7\xb1\x83\x0f\x42\x40"
        + b"\x44\x89\x84"
        + struct.pack(">f", seconds * 1_000.0)
        + bytes(500)
    )


FILES = {
    "wav": wav(30),
    "streamed wav": wav(30, is_streamed=True),
    "aiff": aiff(30),
    "flac": flac(30),
    "opus": opus(30),
    "mp3": mp3(30),
    "mp3 of variable rate": mp3(30, is_variable=True),
    "mp4": mp4(30),
    "mp4 with long times": mp4(30, version=1),
    "webm": webm(30),
}


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize("name", FILES)
def test_the_duration_is_read_from_the_file(name):
    assert duration(text_of(FILES[name])) == pytest.approx(30, abs=0.05)


@pytest.mark.parametrize(
    ("model", "mime", "fields", "tokens"),
    [
        ("gemini-3.1-pro", "audio/wav", "", 960),
        ("gemini-2.5-flash", "audio/wav", "", 960),
        ("gpt-audio", "audio/wav", "", 300),
        ("gemini-3.1-pro", "video/mp4", "", 30 * (70 + 32)),
        ("gemini-3.1-pro", "video/mp4", '{"mediaResolution":{"level":"MEDIA_RESOLUTION_HIGH"}}', 30 * (280 + 32)),
        ("gemini-3.1-pro", "video/mp4", '{"videoMetadata":{"fps":5}}', 30 * (5 * 70 + 32)),
        ("gemini-2.5-flash", "video/mp4", "", 30 * (258 + 32)),
    ],
)
def test_a_second_has_the_tokens_that_the_provider_documents(model, mime, fields, tokens):
    data = wav(30) if mime == "audio/wav" else mp4(30)
    media = Media(mime, "base64", text_of(data), extra=Extra("gemini", fields) if fields else None)
    assert counter_for(model).media(media) == tokens


def test_media_that_a_provider_does_not_read_count_as_the_text_for_them():
    """A sound of ten megabytes filled the window of a model that never gets it."""
    sound = Media("audio/wav", "base64", "A" * 13_000_000)
    video = Media("video/mp4", "url", "https://example.org/a.mp4")
    assert counter_for("claude-opus-5-5").media(sound) == 40
    assert counter_for("claude-opus-5-5").media(video) == 40


def test_a_video_for_a_server_like_openais_counts_by_its_size():
    """OpenAI reads no videos, but models of other makers on such servers do."""
    video = Media("video/mp4", "base64", text_of(mp4(30)))
    assert counter_for("gpt-5.4").media(video) == len(video.data) // 20


def test_a_sound_of_unknown_duration_counts_by_its_size():
    assert counter_for("gemini-3-pro").media(Media("audio/aac", "base64", "A" * 100_000)) == 5_000


@given(st.sampled_from(list(FILES.values())), st.integers(0, 200), st.binary(max_size=16), st.integers(0, 4_000))
def test_damaged_files_raise_nothing(data, at, noise, cut):
    damaged = (data[:at] + noise + data[at + len(noise) :])[: cut or None]
    seconds = duration(text_of(damaged))
    assert seconds is None or seconds > 0
    assert counter_for("gemini-3-pro").media(Media("audio/x", "base64", text_of(damaged))) >= 1


@given(st.text(max_size=200))
def test_text_that_is_no_base64_has_no_duration(text):
    assert duration(text) is None or duration(text) > 0
