"""Recorded conversations under a policy: all content that is not shown whole can be expanded in every form."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from foveate import Conversation, Message
from foveate.errors import NotExpandable
from foveate.expand.originals import text_of
from foveate.stores.memory import MemoryStore
from foveate.testing import BodyChecker, call, say

from .expand_requests import TOOLS
from .shells import opened, wire

RECORDED = [
    ("openai", "SWE-agent", 0),
    ("anthropic", "kimi-cli", 0),
    ("openai", "tau-bench", 1),
    ("anthropic", "oh-my-posh", 1),
    ("openai", "pi-mono", 0),
    ("anthropic", "entireio-cli", 2),
]
MOST = 140
"""Messages of a recording that are played."""


def played(folder: Path, provider: str, source: str, number: int, **options: object) -> Conversation:
    """Return a conversation that replayed a recording with few whole results, and that plans no more edits."""
    path = sorted((folder / "neutral" / source).glob("*.jsonl"))[number]
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[:MOST]]
    reader = opened("reader", window=10**6)
    store = MemoryStore()
    chat = opened(provider=provider, policy="keep-last-3", window=40_000, expand=True, store=store)
    for message in (message for row in rows for message in reader.format.parse(row)):
        if message.role == "assistant":
            chat.prepare(tools=TOOLS)
            chat.record(message)
        else:
            chat.append(message)
    if chat.open_calls() or chat.view.entries[-1].message.role != "user":
        chat.append("Go on.")
    chat.prepare(tools=TOOLS)
    return opened(provider=provider, policy="none", window=10**6, expand=True, store=store, **options)


def ask(chat: Conversation, **arguments: object) -> Message:
    """Return the answer to a call with these arguments; the request must be legal."""
    chat.record(call(f"x{len(chat)}", "expand", **arguments))
    chat.prepare(tools=TOOLS)
    assert BodyChecker(chat.format.name).check(json.loads(chat.body(tools=TOOLS))) == []
    return chat.history()[-1].message


@pytest.mark.parametrize(("provider", "source", "number"), RECORDED)
def test_every_kind_of_expansion_keeps_bytes_and_cached_prefix(transcripts, provider, source, number):
    chat = played(transcripts, provider, source, number, expand_where="tail")
    shrunk = [entry for entry in chat.prepare(tools=TOOLS) if entry.is_result and entry.shrunk]
    asked_for = [entry for entry in shrunk if len(entry.source.text) > 400][-3:] or shrunk[-3:]
    assert asked_for
    for entry in asked_for:
        before, text, name = wire(chat, chat.prepare(tools=TOOLS)), text_of(entry.source), entry.handle
        cut = ask(chat, handle=name, lines="1-").text
        assert cut.partition("\n")[2] == text
        items = ask(chat, handle=name, items="-1").text
        assert items.partition("\n")[2] in text
        matches = ask(chat, handle=name, pattern=r"[A-Za-z]{3,}").text.split("\n")[1:]
        assert all("…" in line or line == "--" or line.lstrip("0123456789")[1:] in text for line in matches)
        assert ask(chat, handle=name).result.content == entry.source.result.content
        assert wire(chat, chat.prepare(tools=TOOLS))[: len(before)] == before


@pytest.mark.parametrize(("provider", "source", "number"), RECORDED)
def test_original_in_its_place_is_in_the_next_view(transcripts, provider, source, number):
    chat = played(transcripts, provider, source, number, expand_where="view")
    shrunk = [entry for entry in chat.prepare(tools=TOOLS) if entry.is_result and entry.shrunk]
    for entry in shrunk[-3:]:
        assert ask(chat, handle=entry.handle).text == f"{entry.handle} is shown in full again above."
        (there,) = [one for one in chat.view if one.position == entry.position and one.source is not None]
        assert there.message == entry.source
        chat.record(say("I see."))
        chat.append("Go on.")
    assert chat.journal.verify() == []


@pytest.mark.parametrize(("provider", "source", "number"), RECORDED)
def test_hidden_message_is_found_by_its_words(transcripts, provider, source, number):
    chat = played(transcripts, provider, source, number)
    looked = 0
    for entry in chat.prepare(tools=TOOLS).entries:
        words = re.findall(r"\w{4,}", entry.source.text[:2_000]) if entry.source and entry.shrunk else []
        if len(words) > 5 and looked < 5:
            query = f'"{words[0]}" {words[3]} {words[5]}'
            assert entry.handle in [hit.handle for hit in chat.search(query, limit=200)]
            looked += 1
    assert looked
    whole = [entry.handle for entry in chat.view if entry.source is not None and not entry.shrunk]
    for handle in whole[:3]:
        with pytest.raises(NotExpandable):
            chat.expand(handle, lines="1")
