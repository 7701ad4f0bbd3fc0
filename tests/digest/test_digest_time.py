"""Ten million characters of anything are digested in bounded time.

The limits are there to find what would hang: CPU time, and many times what it takes, since a process that runs many
tests collects garbage for all of them. `make bench` measures how long it takes: well below a second.
"""

from __future__ import annotations

import time

import pytest

from foveate.digest import digest, room_for

SIZE = 10_000_000
HANGS = 30.0
"""Seconds."""
HOSTILE = {
    "one line": "the quick brown fox ",
    "one character": "a",
    "nested brackets": "[",
    "nested objects": '{"a":',
    "binary": "".join(map(chr, range(256))),
    "nothing": "\0",
    "right to left": "שלום עולם ",
    "a minified bundle": 'function a(b,c){return b.foo_bar(c,"%d")};var x_1=1;',
    "lone surrogates": "\ud800\udfff",
    "short lines": "a\n",
    "white space": " ",
    "line ends": "\n",
    "quotes": '"\\',
    "written line ends": "\\n",
    "a path without end": "a/",
    "a search": "a.py:1:x\n",
    "a table": "|a|b_1|c|\n",
    "numbers of lines": "1\tx\n",
    "markup": '<div class="a_b">',
    "headings": "# h\n",
    "escape codes": "\x1b[",
    "open comments of a page": "<html><!--",
    "open scripts of a page": "<html><script>",
    "open links of a page": '<html><a href="x">',
}


@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE)
def test_ten_million_characters_take_bounded_time(what):
    piece = HOSTILE[what]
    text = (piece * (SIZE // len(piece) + 1))[:SIZE]
    before = time.process_time()
    short = digest(text, handle="m1")
    assert time.process_time() - before < HANGS
    assert len(short.text) <= room_for(SIZE)
    assert short.text.startswith(f"[{short.description.kind}, ")


@pytest.mark.slow
def test_ten_million_characters_of_distinct_words_take_bounded_time():
    text = "\n".join([f"w{number:x}_Q" for number in range(SIZE // 9)])
    before = time.process_time()
    short = digest(text, handle="m1")
    assert time.process_time() - before < HANGS
    assert "read in part" in short.text.split("\n")[0]


def test_a_text_of_usual_length_does_not_hang():
    text = "".join([f"    value_{n} = self.table_{n % 7}.get(key_{n}, default)\n" for n in range(150)])
    digest(text + "x")
    before = time.process_time()
    for number in range(20):
        digest(text + f"# {number}")
    assert time.process_time() - before < HANGS
