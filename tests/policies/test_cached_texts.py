"""Caches of the policies do not keep the texts of conversations in memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest

from foveate.policies.names import names_of
from foveate.policies.tool_kinds import create_classifier


@pytest.mark.parametrize("read", [names_of, lambda text: create_classifier()("write_file", text)])
def test_cache_holds_no_long_text(read: Callable[[str], object]) -> None:
    """A server held the newest 4,096 texts and the arguments of 16,384 calls, of conversations that were closed too."""
    text = json.dumps({"path": "notes.md", "content": "a_name and more words. " * 1_000})
    before = sys.getrefcount(text)
    result = read(text)
    assert (sys.getrefcount(text), result) == (before, read(text))
