"""Names of tools and actions: as people write them, and as providers accept them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.tool_names import find_named, tool_name


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("search", "search"),
        ("mcp__files__read-file", "mcp__files__read-file"),
        ("Query Database", "Query_Database"),
        ("Google Search", "Google_Search"),
        ("files/read.text", "files_read_text"),
        ("Größe (m²) prüfen", "Gro_e_m2_prufen_ba87b22e"),
        ("Café", "Cafe"),
        ("2 plus 2", "_2_plus_2"),
        ("7up", "_7up"),
    ],
)
def test_a_name_becomes_one_that_every_provider_accepts(name: str, legal: str):
    assert tool_name(name) == legal


def test_names_that_lose_letters_stay_different():
    names = {tool_name(name) for name in ("検索", "読む", "?", "x" * 65, "x" * 66)}
    assert len(names) == 5
    assert tool_name("検索") == "tool_" + tool_name("検索")[-8:]
    assert len(tool_name("x" * 500)) == 64


@given(st.text(min_size=1, max_size=200))
def test_every_name_has_a_legal_form_that_is_its_own(name: str):
    legal = tool_name(name)
    assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", legal)
    assert tool_name(legal) == legal


def test_a_name_is_found_in_another_spelling_if_only_one_fits():
    actions = {"Query Database": 1, "Google Search": 2, "google-search": 3}
    assert [find_named(actions, name) for name in ("Query_Database", "query database", "query-database")] == [1, 1, 1]
    assert [find_named(actions, name) for name in ("Google Search", "google-search", "GOOGLE SEARCH")] == [2, 3, None]
    assert find_named(actions, "Query") is None
