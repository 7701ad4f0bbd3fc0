"""Blocks that plugins add for a limited number of calls: searches and expansions leave them out."""

from __future__ import annotations

from typing import Any

import pytest

import foveate
from foveate import Media, Text, assistant
from foveate.edits import Hide, Span, Target
from foveate.errors import NotExpandable
from foveate.plugins import AdditionalContent

SHOT = Media("image/png", "base64", "iVBORw0KGgo=" * 20)


class Browser:
    name = "browser"

    def __call__(self, content: tuple[Any, ...]) -> Any:
        yield AdditionalContent((Text("Pointer on: papaya"), SHOT))
        yield AdditionalContent("Page of quinces", save_to_history=1)
        yield AdditionalContent("Visited: medlar", save_to_history=True)


def shop(tmp_path) -> foveate.Conversation:
    store = f"sqlite:///{tmp_path}/shop.db"
    chat = foveate.open_conversation("shop", format="openai", window=100_000, plugins=[Browser()], store=store)
    for question in ("Which apple is cheapest?", "And with shipping?", "Is it in stock?", "Buy it."):
        chat.append(question)
        chat.prepare()
        chat.record(assistant("Done."))
    return chat


def texts(chat: foveate.Conversation, index: int = 0) -> list[str]:
    return [part.text for part in chat.prepare().entries[index].message.parts if isinstance(part, Text)]


def test_search_leaves_out_blocks_whose_time_is_over(tmp_path):
    chat = shop(tmp_path)
    assert chat.search("papaya") == []
    assert chat.search("quinces") == []
    chat.edit(Hide(Target(chat.history()[0].id)))
    assert chat.search("papaya") == []
    (hit,) = chat.search("apple")
    assert hit.handle == "m1"
    assert "papaya" not in hit.snippet
    assert [hit.handle for hit in chat.search("medlar")] == ["m1"]


def test_expand_leaves_out_blocks_whose_time_is_over(tmp_path):
    chat = shop(tmp_path)
    before = texts(chat)
    with pytest.raises(NotExpandable, match=r"shown whole, apart from blocks of plugins. Name one of these"):
        chat.expand("m1")
    chat.edit(Hide(Target(chat.history()[0].id)))
    assert texts(chat) != before
    for where in ("view", "tail"):
        chat.expand("m1", where=where)
        shown = "\n".join(texts(chat, 0 if where == "view" else -1))
        assert "apple" in shown
        assert "medlar" in shown
        assert "papaya" not in shown
        assert "quinces" not in shown
        chat.undo() if where == "view" else None


def test_expand_of_a_span_leaves_out_blocks_whose_time_is_over(tmp_path):
    chat = shop(tmp_path)
    before = [entry.message for entry in chat.prepare()]
    rows = chat.history()
    chat.edit(Hide(Span(rows[0].id, rows[3].id)))
    assert [entry.message for entry in chat.prepare()] != before
    chat.expand("m1-m4", where="view")
    assert [entry.message for entry in chat.prepare()] == before


def test_expand_brings_back_a_block_that_its_handle_names(tmp_path):
    chat = shop(tmp_path)
    row = chat.history()[0]
    place = next(i for i, part in enumerate(row.message.parts) if part == Text("Pointer on: papaya"))
    chat.expand(f"m1.{place + 1}", where="view")
    assert "Pointer on: papaya" in texts(chat)
    assert chat.original("m1") == row.message


def test_message_with_passing_blocks_alone_is_expanded_by_part_only(tmp_path):
    @foveate.plugin(after_tools=True)
    def clock(content: object) -> str:
        return "noon"

    chat = foveate.open_conversation("c", format="openai", window=100_000, plugins=[clock])
    chat.append("Go.")
    for number in range(2):
        chat.prepare()
        chat.record(assistant("", foveate.ToolCall(f"c{number}", "look", "{}")))
        chat.append(foveate.tool_result(f"c{number}", "seen"))
    chat.prepare()
    at = next(row.position for row in chat.history() if row.stamp.origin == "plugin")
    assert f"m{at}" not in [entry.handle for entry in chat.view]
    with pytest.raises(NotExpandable, match="apart from blocks of plugins"):
        chat.expand(f"m{at}")
    chat.expand(f"m{at}.2", where="view")
    assert "noon" in "\n".join(entry.message.text for entry in chat.prepare())
