"""A conversation that opens with a saved view equals one that reads its messages, and reads none of them."""

from __future__ import annotations

import asyncio
import sqlite3
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import structs
from together.mechanisms import MECHANISMS, summarizer

from foveate import BadInput, Conversation, FoveateError, Message, Options, Text, open_conversation
from foveate.core import growing, packed_messages, projection, saved_views
from foveate.core.checker import Checker
from foveate.core.edits import Replace, Span, Summarize, Target
from foveate.core.messages import Media, Opaque, Reasoning, ToolCall, ToolResult
from foveate.core.stamps import Lease, PartRetention
from foveate.core.view import Entry
from foveate.policies import fold, prune_tool_outputs, shrink_to_digest, supersede, when_it_pays
from foveate.ports import Head
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import answer, calls, user
from foveate.testing.strategies import edits, histories, runs

from .memory_state import differences, known, projected

FORMATS = ("openai", "anthropic", "openai_responses", "gemini")
MODELS = {"openai": "", "anthropic": "claude-opus-5-5", "openai_responses": "gpt-6", "gemini": "gemini-3.2-pro"}


class Rowwise:
    """A store that returns no saved views, so that messages are read one by one."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def saved_view(self, head: Head, position: int, number: int) -> Iterable[bytes]:
        return ()


class Counting:
    """A store that counts the messages that are read."""

    def __init__(self, store: Any) -> None:
        self._store, self.read = store, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get_many(self, head: Head, positions: Sequence[int]) -> Any:
        self.read += len(positions)
        return self._store.get_many(head, positions)

    def messages(self, head: Head, first: int, last: int) -> Any:
        rows = self._store.messages(head, first, last)
        self.read += len(rows)
        return rows


def opened(
    store: Any, provider: str = "openai", policy: Any = "none", *, model: str | None = None, window: int = 100_000
) -> Conversation:
    return open_conversation(
        "c",
        store=store,
        format=provider,
        model=MODELS[provider] if model is None else model,
        window=3_000 if policy == "all" else window,
        policy=tuple(MECHANISMS[name]() for name in MECHANISMS) if policy == "all" else policy,
        summarizer=summarizer,
        options=Options(background=False, clock=lambda: 1_000),
    )


def body(chat: Conversation) -> bytes:
    try:
        return chat.body()
    except (BadInput, FoveateError) as error:
        return str(error).encode()


def requests(chat: Conversation) -> tuple[bytes, Any]:
    """Return the body and the prompt of the view as it is now."""
    view, profile = chat.view, chat._agent.profile
    return chat.format.body(view, profile=profile), chat.format.prompt(view, profile=profile)


def talk(chat: Conversation, turns: int = 20) -> None:
    chat.append("Look into it.")
    for n in range(turns):
        chat.prepare()
        chat.record(calls(f"a{n}", f"b{n}", text=f"I look at {n}."))
        chat.append([answer(f"a{n}", f"line {n}\n" * 30), answer(f"b{n}", "Nothing.")])


@pytest.mark.parametrize("provider", FORMATS)
@settings(max_examples=settings.default.max_examples * 2 // 3, phases=[Phase.generate])
@given(history=histories(), later=histories(max_size=4), policy=st.sampled_from(["none", "all"]), data=st.data())
def test_view_from_the_blob_equals_the_one_from_rows(
    provider: str, history: list[Message], later: list[Message], policy: str, data: st.DataObject
) -> None:
    """Also after more messages and edits, which return to states in the middle of what was saved."""
    store = MemoryStore()
    chat = opened(store, provider, policy)
    for message in history:
        with suppress(FoveateError):
            chat.append(message)
        if data.draw(st.integers(0, 3)) == 0:
            body(chat)
        if data.draw(st.integers(0, 5)) == 0:
            for edit in data.draw(edits([row.id for row in chat.history()], max_size=2)):
                with suppress(FoveateError):
                    chat.edit(edit)
    chat._agent.save_snapshot()
    again, rowwise = opened(store, provider, policy), opened(Rowwise(store), provider, policy)
    assert differences(known(again), known(rowwise)) == {}
    assert requests(again) == requests(rowwise)
    for step in range(4):
        with suppress(FoveateError):
            if step == 0:
                again.append(later)
            else:
                again.edit(data.draw(edits([row.id for row in again.history()], max_size=2)))
        rowwise = opened(Rowwise(store), provider, policy)
        assert differences(projected(state_of(again)), projected(state_of(rowwise))) == {}
        assert rendered(again) == rendered(rowwise)


def state_of(chat: Conversation) -> Any:
    return chat._session.state.projection


def rendered(chat: Conversation) -> list[bytes]:
    return [message.body for message in chat.format.rendered(chat.view, profile=chat._agent.profile)]


@pytest.mark.parametrize("provider", FORMATS)
def test_saved_states_are_used(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No message is read, no rule reads an old entry, and no old message is written again."""
    store = Counting(MemoryStore())
    chat = opened(store, provider)
    talk(chat, 40)
    before = chat.body()
    chat._agent.save_snapshot()
    store.read = 0
    checked: list[int] = []
    check = Checker.check

    def counted(checker: Checker, entries: Any, newest_input: int = 0) -> Any:
        checked.append(len(entries) - len(checker._read))
        return check(checker, entries, newest_input)

    monkeypatch.setattr(Checker, "check", counted)
    again = opened(store, provider)
    memo = again.format.memo  # type: ignore[attr-defined]
    write, written = memo._write, []
    memo._write = lambda entries, start, profile: written.append(len(entries)) or write(entries, start, profile)
    assert again.body() == before
    assert store.read <= 1  # The newest message links the chain.
    assert max(checked) <= 32
    assert sum(written) <= 4


def decoded_forms(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list that grows with each message of a saved view that is decoded."""
    forms: list[bytes] = []
    decode = packed_messages._decoded
    monkeypatch.setattr(
        packed_messages, "_decoded", lambda form, rendered: forms.append(form) or decode(form, rendered)
    )
    return forms


@pytest.mark.parametrize("policy", ["none", "balanced"])
@pytest.mark.parametrize("has_tools", [True, False])
def test_first_request_decodes_few_messages(policy: str, has_tools: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request with tools offers `expand`; the other one names handles in another form."""
    tools = [{"type": "function", "function": {"name": "look"}}] if has_tools else []
    store = MemoryStore()
    chat = opened(store, policy=policy, window=10_000_000)
    talk(chat, 100)
    chat.edit(*[Replace(Target(row.id), (Text("[done]"),)) for row in chat.history() if row.message.result])
    chat.append("And now?")
    before = chat.body(tools=tools)
    chat._agent.save_snapshot()
    decoded = decoded_forms(monkeypatch)
    again = opened(store, policy=policy, window=10_000_000)
    assert again.body(tools=tools) == before
    again.append("And then?")
    again.body(tools=tools)
    assert len(decoded) <= 75  # Of 302.
    assert [entry.message for entry in again.view] == [entry.message for entry in opened(Rowwise(store)).view]


def soft_policies(least: int = 120) -> list[Any]:
    """Return policies whose facts are saved, with numbers so small that they act in a short conversation."""
    return [
        supersede(grace=1),
        fold(protect=60, stretch=40, min_share=0, by_worth=True),
        shrink_to_digest(protect_said=60, least=least, by_worth=True),
        shrink_to_digest(protect=60, protect_reads=90, least=least),
        prune_tool_outputs(protect=60, minimum=0),
        when_it_pays([supersede(), shrink_to_digest(protect_said=60, least=least, by_worth=True)], patience=0.1),
    ]


def wanted(chat: Conversation, policies: list[Any]) -> list[Any]:
    """Return the edits that each of these policies wants for the view."""
    view = chat.view
    return [list(policy(view)) for policy in policies]


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep facts about short views."""
    monkeypatch.setattr(growing, "STEP", 2)
    growing._mark_places.cache_clear()
    yield
    growing._mark_places.cache_clear()


@pytest.mark.usefixtures("small_steps")
@settings(max_examples=settings.default.max_examples // 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    history=histories() | runs(max_size=20),
    later=histories(max_size=4) | runs(max_size=3),
    data=st.data(),
)
def test_policies_want_the_same_with_saved_facts(
    history: list[Message], later: list[Message], data: st.DataObject
) -> None:
    """Also after more messages and edits."""
    store = MemoryStore()
    chat = opened(store)
    for message in history:
        with suppress(FoveateError):
            chat.append(message)
        if data.draw(st.integers(0, 3)) == 0:
            wanted(chat, soft_policies())
            chat.prepare() if chat.view.entries and not body(chat).startswith(b"There") else None
    for edit in data.draw(edits([row.id for row in chat.history()], max_size=3)):
        with suppress(FoveateError):
            chat.edit(edit)
    wanted(chat, soft_policies())
    chat._agent.save_snapshot()
    again = opened(store)
    for step in range(4):
        rowwise = opened(Rowwise(store))
        assert wanted(again, soft_policies()) == wanted(rowwise, soft_policies())
        with suppress(FoveateError):
            if step == 0:
                again.append(later)
            else:
                again.edit(data.draw(edits([row.id for row in again.history()], max_size=2)))


def test_entry_whose_message_is_not_decoded_can_be_copied() -> None:
    store = MemoryStore()
    chat = opened(store)
    talk(chat, 40)
    chat._agent.save_snapshot()
    entry = opened(store).view.entries[3]
    assert type(entry) is not Entry
    twin = structs.replace(entry, renewed=7)
    assert (twin.renewed, twin.message, twin.appended) == (7, chat.view.entries[3].message, entry.message)
    assert twin.message is entry.message
    assert type(twin) is type(entry) is Entry


def test_entry_whose_message_is_not_decoded_prints_as_a_plain_one() -> None:
    store = MemoryStore()
    chat = opened(store)
    talk(chat, 40)
    chat.body()
    chat._agent.save_snapshot()
    entry, packed = opened(store).view.entries[3:5]
    assert repr(entry) == repr(chat.view.entries[3])
    assert repr(packed).startswith("<Entry m5 ")


def test_summaries_of_a_saved_view_are_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    chat = opened(store)
    talk(chat, 40)
    ids = [row.id for row in chat.history()]
    for first in (1, 31, 61):
        chat.edit(Summarize(Span(ids[first], ids[first + 17]), f"I looked from {first} on."))
    chat.body()
    chat._agent.save_snapshot()
    counted: list[Message] = []
    count = projection.tokens_of
    monkeypatch.setattr(
        projection, "tokens_of", lambda message, *rest: counted.append(message) or count(message, *rest)
    )
    again = opened(store)
    assert counted == []
    rowwise = opened(Rowwise(store))
    assert len(counted) == 3
    assert differences(known(again), known(rowwise)) == {}
    assert [entry.kind for entry in again.view].count("summary") == 3


def test_facts_of_other_settings_are_not_used() -> None:
    store = MemoryStore()
    chat = opened(store)
    chat.append("Look into it.")
    for n in range(40):
        chat.prepare()
        chat.record(calls(f"a{n}", text=f"I look at {n}."))
        chat.append(answer(f"a{n}", f"line {n}\n" * 200))
    assert wanted(chat, soft_policies(10_000))[3] == []
    chat._agent.save_snapshot()
    for least in (10_000, 120):
        again, rowwise = opened(store), opened(Rowwise(store))
        edits = wanted(again, soft_policies(least))
        assert edits == wanted(rowwise, soft_policies(least))
        assert bool(edits[3]) is (least == 120)


def test_edit_near_the_end_works_out_only_the_end_again() -> None:
    store = MemoryStore()
    chat = opened(store)
    talk(chat, 40)
    chat._agent.save_snapshot()
    again = opened(store)
    before = again.view.entries
    result = before[-2].id
    again.edit(Replace(Target(result, (0,)), (Text("[done]"),)))
    after = again.view.entries
    assert [a is b for a, b in zip(before, after, strict=True)].count(False) == 1


def test_states_of_another_release_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    chat = opened(store, policy="balanced")
    talk(chat, 30)
    chat.prepare()
    chat._agent.save_snapshot()
    assert opened(store, policy="balanced")._session.state.marks._saved
    monkeypatch.setattr("foveate.conversation.snapshots.__version__", "0.0.9")
    assert not opened(store, policy="balanced")._session.state.marks._saved
    counting = Counting(store)
    assert opened(counting, policy="balanced").body() == opened(Rowwise(store), policy="balanced").body()
    assert counting.read <= 1  # The messages are the same in each release.


def test_states_of_another_model_are_not_used() -> None:
    store = MemoryStore()
    chat = opened(store, "anthropic", model="claude-opus-5-5")
    talk(chat)
    chat._agent.save_snapshot()
    counting = Counting(store)
    other = opened(counting, "openai", model="")
    assert counting.read <= 1  # The messages are the same for each model.
    assert other.body() == opened(Rowwise(store), "openai", model="").body()


def blob(chat: Conversation) -> list[bytes]:
    head = chat._agent.head
    number, position = head.number, head.position
    return list(chat._session.state.store.saved_view(head, position, number))


@pytest.mark.parametrize("damage", ["version", "cut", "noise", "no messages", "no texts", "none"])
def test_blob_that_does_not_fit_is_ignored(damage: str) -> None:
    store = MemoryStore()
    chat = opened(store)
    talk(chat)
    chat.body()
    chat._agent.save_snapshot()
    pieces = blob(chat)
    assert len(pieces) == 3
    head = msgspec.msgpack.decode(pieces[0])
    head[0] = saved_views.VERSION + 1
    broken = {
        "version": [msgspec.msgpack.encode(head), *pieces[1:]],
        "cut": [*pieces[:2], pieces[2][:-9]],
        "noise": [*pieces[:2], b"\xc1" * 40],
        "no messages": pieces[:2],
        "no texts": pieces[:1],
        "none": [],
    }[damage]
    found = store.snapshot(chat._agent.head)
    assert found is not None
    store.save_snapshot(chat._agent.head, *found, broken)
    counting = Counting(store)
    again = opened(counting)
    assert counting.read >= len(chat)
    assert differences(known(again), known(chat), without=("view", "plan")) == {}


def test_blob_of_another_conversation_is_not_believed() -> None:
    """The newest message must be the one at the tip of the chain."""
    store = MemoryStore()
    chat = opened(store)
    talk(chat)
    chat._agent.save_snapshot()
    head = chat._agent.head
    pieces = [piece.replace(head.tip.encode(), b"0" * 40) for piece in blob(chat)]
    found = store.snapshot(head)
    assert found is not None
    store.save_snapshot(head, *found, pieces)
    assert opened(store).body() == chat.body()
    assert opened(store).view.entries[-1].id == head.tip


def test_large_message_is_left_to_the_store() -> None:
    store = Counting(MemoryStore())
    chat = opened(store)
    chat.append([user("See."), Message("user", (Media("image/png", "base64", "A" * 100_000),)), user("Well?")])
    chat._agent.save_snapshot()
    assert sum(map(len, blob(chat))) < 5_000
    store.read = 0
    again = opened(store)
    assert store.read == 1
    assert again.body() == chat.body()


@pytest.mark.parametrize("provider", FORMATS)
def test_large_message_between_others_is_written_again(provider: str) -> None:
    store = MemoryStore()
    chat = opened(store, provider)
    talk(chat, 3)
    chat.append([Message("user", (Text("See."), Media("image/png", "base64", "A" * 100_000))), user("Well?")])
    chat.record(calls("z"))
    chat.append(answer("z", "a line\n" * 20))
    before = chat.body()
    chat._agent.save_snapshot()
    assert sum(map(len, blob(chat))) < 30_000
    again = opened(store, provider)
    assert again.body() == before
    for index in (-1, 2):  # Behind the large message, and before it.
        again.edit(Replace(Target(again.history()[index].id, (0, 0)), (Text("[done]"),)))
        assert rendered(again) == rendered(opened(Rowwise(store), provider))
        assert again.body() == opened(Rowwise(store), provider).body()


def test_request_sends_the_saved_pieces_until_an_edit_changes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    chat = opened(store)
    talk(chat, 40)
    chat.body()
    chat._agent.save_snapshot()
    again = opened(store)
    before = again.format.body_parts(again.view, profile=again._agent.profile)
    assert len(before) < 10
    again.append("And now?")
    after = again.format.body_parts(again.view, profile=again._agent.profile)
    assert after[1] is before[1]
    assert b"".join(after) == opened(Rowwise(store)).body()
    again.edit(Replace(Target(again.history()[2].id, (0, 0)), (Text("[done]"),)))
    parts = again.format.body_parts(again.view, profile=again._agent.profile)
    assert len(parts) > 200
    assert b"".join(parts) == opened(Rowwise(store)).body()


@pytest.mark.parametrize("is_async", [False, True])
def test_closing_saves_what_is_new(is_async: bool) -> None:
    store = MemoryStore()
    chat = opened(store)
    talk(chat, 30)
    if is_async:
        asyncio.run(chat.aio.close())
    else:
        chat.close()
    counting = Counting(store)
    assert opened(counting).body() == chat.body()
    assert counting.read == 0


def test_closing_saves_nothing_if_little_is_new() -> None:
    store = MemoryStore()
    with opened(store) as chat:
        talk(chat, 30)
    head = chat._agent.head
    with opened(store) as chat:
        chat.append("More.")
    with opened(store) as chat:
        chat.body()
    found = store.snapshot(chat._agent.head)
    assert found is not None
    assert found[:2] == (head.position, head.number)


def test_closing_fails_quietly_if_the_store_does() -> None:
    store = MemoryStore()
    chat = opened(store)
    talk(chat, 30)
    store.close()
    chat.close()


def rows(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(view_body) FROM snapshot").fetchone()
        return int(count)


WORD = "pomegranate"


def in_files(folder: Path) -> bool:
    return any(WORD.encode() in path.read_bytes() for path in folder.iterdir())


@pytest.mark.parametrize("way", ["erase", "erase the summary", "release", "retention"])
def test_erased_text_is_in_no_saved_view(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces are stored without compression here, so that the word is found in the pages of the file."""
    monkeypatch.setattr(
        "foveate.stores.sql.journal.pack_pieces",
        lambda pieces: msgspec.msgpack.encode([b"\x00" + piece for piece in pieces]),
    )
    with SqliteStore(tmp_path / "c.db", search=False) as store:
        chat = opened(store)
        chat.append("Look into it.")
        chat.prepare()
        chat.record(calls("a"))
        chat.append(answer("a", f"a {WORD}, and much else. " * 9))
        chat.append("Well?")
        if way == "erase the summary":
            ids = [row.id for row in chat.history()]
            chat.edit(Summarize(Span(ids[1], ids[2]), f"It was a {WORD}."))
        chats = [chat]
        if way != "release":  # What a fork shares is not released.
            chats.append(chat.fork("other"))
            chats[1].append("And?")
        for each in chats:
            each.body()
            wanted(each, soft_policies())  # Edits that wait are saved, too.
            each._agent.save_snapshot()
        assert (rows(tmp_path / "c.db"), in_files(tmp_path)) == (len(chats), True)
        if way == "retention":
            chat.privacy.apply_retention({"all": "0 turns, even shown"})
        elif way == "release":
            chat.edit(Replace(Target(chat.history()[2].id, (0, 0)), (Text("[gone]"),), keeps_original=False))
        else:
            chat.privacy.erase("m3")
        assert rows(tmp_path / "c.db") == 0
        store.vacuum()
        assert not in_files(tmp_path)
        before = chat.body()
    with SqliteStore(tmp_path / "c.db", search=False) as store:
        assert opened(store).body() == before


GOLDEN = {1: "ed5efecbde3921c7", 2: "ed5efecbde3921c7", 3: "b966ca96c7941dfb", 4: "b966ca96c7941dfb"}
GOLDEN[6] = GOLDEN[5] = GOLDEN[4]
"""For each version of the blob: a hash of what it shows of one history. An earlier version never changes."""


def test_version_is_raised_when_a_history_shows_something_else() -> None:
    """A blob of before would show the old form. If this fails, raise `saved_views.VERSION` and add the new hash."""
    hash = blake2b(digest_size=8)
    for provider in FORMATS:
        chat = opened(MemoryStore(), provider)
        chat.append(Message("system", (Text("Be brief."),)))
        talk(chat, 3)
        chat.append([user("A picture:", Media("image/png", "base64", "aGk=")), answer("a0", "It came late.")])
        chat.prepare()
        chat.record(Message("assistant", (Reasoning("Hm.", format=provider), Text("So. "), ToolCall("x", "look", "{"))))
        chat.append([Message("system", (Text("Be quick."),)), user("Go on.")])
        ids = [row.id for row in chat.history()]
        chat.edit(Replace(Target(ids[3], (0,)), (Text("[short]"),)))
        chat.edit(Summarize(Span(ids[4], ids[6]), "I looked once more."))
        hash.update(chat.body())
        for entry in chat.view:
            hash.update(repr((entry.handle, entry.kind, entry.message, entry.legalized)).encode())
    assert GOLDEN[saved_views.VERSION] == hash.hexdigest()


BEGINS = {
    "jpeg": b"\xff\xd8\xff\xe0",
    "pdf": b"%PDF-1.4\n",
    "wav": b"RIFF\0\0\0\0WAVE",
    "wide": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (9_000).to_bytes(4, "big") + (20).to_bytes(4, "big"),
}
"""The first bytes of media. The image is too wide for Claude."""
GOLDEN_MEDIA = {6: "7fe4753c79af10cb"}
"""The same for a history with media and with blocks that are kept whole."""


def test_version_is_raised_when_media_or_blocks_show_something_else() -> None:
    data = {name: b64encode(begin + bytes(300)).decode() for name, begin in BEGINS.items()}
    media = [
        Media("image/jpg", "base64", data["jpeg"]),
        Media("image/png", "base64", data["wide"]),
        Media("application/pdf", "base64", data["pdf"], "plan"),
        Media("application/pdf", "base64", data["jpeg"]),
        Media("text/markdown", "base64", b64encode(b"# Plan").decode(), "plan.md"),
        Media("audio/x-wav", "base64", data["wav"]),
        Media("video/mp4", "base64", "AAAA"),
        Media("application/pdf", "url", "https://a/b.pdf"),
        Media("image/png", "file", "file_1"),
    ]
    hash = blake2b(digest_size=8)
    for provider in FORMATS:
        chat = opened(MemoryStore(), provider)
        blocks = [Opaque(format, "found", '{"type":"found","title":"Kites"}') for format in FORMATS]
        chat.append(Message("user", (Text("Look."), *media, *blocks)))
        chat.prepare()
        chat.record(Message("assistant", (Text("So."), *media[:1], *blocks, ToolCall("x", "look", "{}"))))
        chat.append(Message("tool", (ToolResult("x", (Text("Seen."), *media, *blocks)),)))
        hash.update(chat.body())
        for entry in chat.view:
            hash.update(repr((entry.handle, entry.kind, entry.message, entry.legalized)).encode())
    assert GOLDEN_MEDIA[saved_views.VERSION] == hash.hexdigest()


GOLDEN_FACTS: dict[int, dict[str, str]] = {
    2: {
        "fold units": "7ef26b66c694403c",
        "leased": "432f2dd910129ea8",
        "retained": "432f2dd910129ea8",
        "shrink others": "d77c7322da0fb1a7",
        "shrink results": "ab8fcd084093b348",
        "sizes": "65b9383f6bf6b9b8",
        "sums": "1250de8ecf2d41e1",
        "supersede": "0804f16f8bdee10c",
        "token sums inf False": "4417346e469983ab",
        "worth": "cd06bfd1c6152336",
    }
}
"""For each version of the blob: hashes of the facts of `balanced` about one view, by the words of their names."""
GOLDEN_FACTS[3] = GOLDEN_FACTS[2]
GOLDEN_FACTS[4] = {**GOLDEN_FACTS[3], "fold units": "8043ef3442cde5fe"}
GOLDEN_FACTS[6] = GOLDEN_FACTS[5] = GOLDEN_FACTS[4]


def looks_and_changes(chat: Conversation, turns: int) -> None:
    """Add reads, changes of files, commands and screenshots."""
    chat.append("Mend src/a.py.")
    for n in range(turns):
        tool, arguments = [
            ("read_file", {"path": f"src/{'ab'[n % 2]}.py"}),
            ("read_file", {"path": "src/a.py", "offset": n, "limit": 40}),
            ("edit_file", {"path": "src/a.py", "old": "x", "new": "y"}),
            ("bash", {"command": "pytest -q"}),
            ("screenshot", {}),
        ][n % 5]
        chat.prepare()
        call = ToolCall(f"c{n}", tool, msgspec.json.encode(arguments).decode())
        chat.record(Message("assistant", (Text(f"I look at {n}. " * (n % 7) * 40), call)))
        chat.append(answer(f"c{n}", f"line {n}\n" * 400))


def test_version_is_raised_when_the_same_entries_give_another_fact() -> None:
    """A fact of before would be continued. If this fails, raise `saved_views.VERSION` and add the new hashes."""
    user_of_facts = opened(MemoryStore(), policy="balanced", window=20_000)
    looks_and_changes(user_of_facts, 40)
    user_of_facts.prepare()
    facts = [fact for fact in user_of_facts._session.state.marks._known if fact.name]
    chat = opened(MemoryStore(), window=10**6)
    looks_and_changes(chat, 40)
    chat.append("It is noon.", lease=Lease(expiration_turns=2), kept=[PartRetention(calls=3)])
    ids = [row.id for row in chat.history()]
    chat.edit(Replace(Target(ids[4], (0,)), (Text("[short]"),)))
    chat.edit(Summarize(Span(ids[7], ids[12]), "[Folded: read_file(path=src/b.py)]"))
    hashes = {}
    for fact in facts:
        words = " ".join(word for word in fact.name.split() if word.isalpha())
        state = fact._copy(fact.of(chat.view))  # Copies are saved.
        hashes[words] = blake2b(msgspec.msgpack.encode(state), digest_size=8).hexdigest()
    assert hashes == GOLDEN_FACTS[saved_views.VERSION]
