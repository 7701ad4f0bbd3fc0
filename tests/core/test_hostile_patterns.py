"""Texts of tools and models that would make a pattern try every way to read them.

The limit is there to find what would hang: CPU time, and many times what it takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from foveate.agents.config import ResultType, WrongAnswer
from foveate.core.plain_handles import plain_text
from foveate.formats.ui_messages import read_ui_message

HANGS = 20.0
"""Seconds."""
SIZE = 200_000


def read_answer(text: str) -> None:
    with pytest.raises(WrongAnswer):
        ResultType(dict[str, int]).read(text)


def read_file(url: str) -> None:
    read_ui_message({"role": "user", "parts": [{"type": "file", "mediaType": "image/png", "url": url}]})


@pytest.mark.parametrize(
    ("work", "text"),
    [
        (plain_text, "expand(" + " " * SIZE),
        (plain_text, "[x; expand(" + " " * SIZE),
        (plain_text, 'expand("m1"' + " " * SIZE),
        (read_answer, "```json" + "\n" * SIZE),
        (read_answer, "```json\na" * (SIZE // 9)),
        (read_file, "data:" + " " * SIZE),
    ],
)
def test_a_hostile_text_is_read_in_bounded_time(work: Callable[[str], object], text: str):
    before = time.process_time()
    work(text)
    assert time.process_time() - before < HANGS


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}', '```\n{"a": 1}\n```', 'Here: ```json  \n\n{"a":\n1}\n\n  ``` Done.',
        '```\n{"a": 2}\n```\n```\n{"a": 1}\n```', '```json\n{"a": 1}\n```\nOr ```json',
    ],
)  # fmt: skip
def test_the_last_fenced_block_is_the_answer(text: str):
    assert ResultType(dict[str, int]).read(text) == {"a": 1}
