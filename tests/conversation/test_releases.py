"""Releasing originals: requests stay the same byte for byte, and the store no longer has the content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from sweeps import STEP, by_thirds

from foveate import Conversation, StoreError
from foveate.core.edits import Bill, Edit, Hide, Replace, Restore, Span, Summarize, Target, Task
from foveate.core.messages import Media, Message, Reasoning, Text, ToolResult, user
from foveate.core.originals import RELEASED
from foveate.core.stamps import Lease
from foveate.errors import BadEdit, NotExpandable
from foveate.ops.archive import export_archive, import_archive
from foveate.policies import filter_tool_results
from foveate.policies.expiry import expire_results
from foveate.ports import Database
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import agent_run, answer, call, calls, say
from foveate.testing.faults import Countdown, failing_store
from foveate.testing.strategies import edits, histories

from .shells import opened, refusals, shown, texts, wire

LONG = "".join(f"{n:04} " for n in range(1_000))
SECRET = "tangerine " * 700


def leases(kept: bool, mode: Any = "compact") -> Any:
    return (expire_results(default=Lease(1, mode, "first_chars", 50, preserve_original=kept)),)


class KeepingStore:
    """A memory store without the capability `Releases`."""

    def __init__(self) -> None:
        self.inner = MemoryStore()

    def __getattr__(self, name: str) -> Any:
        if name == "release":
            raise AttributeError(name)
        return getattr(self.inner, name)


def asked(chat: Conversation, *contents: str | Media, at: int = 1) -> None:
    """Let the model call a tool that returns these contents."""
    chat.prepare()
    chat.record(calls(call(f"c{at}", "look")))
    parts = tuple(Text(one) if isinstance(one, str) else one for one in contents)
    chat.append(Message("tool", (ToolResult(f"c{at}", parts),)))


def expired(store: Any = None, *contents: str | Media, mode: Any = "compact") -> Conversation:
    """Return a conversation whose m3, a result, has expired without its original."""
    chat = opened(policy=leases(False, mode), store=store or MemoryStore(), expand=True)
    chat.append("Look into it.")
    asked(chat, *(contents or (SECRET,)))
    for n in range(3):
        chat.prepare()
        chat.record(say(f"step {n}"))
    chat.prepare()
    return chat


def played(chat: Conversation, history: list[Message]) -> list[bytes]:
    """Play a history; return each request."""
    bodies: list[bytes] = []
    for message in history:
        if message.role == "assistant" and len(chat):
            chat.prepare()
            bodies.append(chat.body())
        chat.append(message)
    return bodies


@pytest.mark.parametrize("mode", ["compact", "remove"])
@pytest.mark.parametrize("placeholder", ["[Omitted, m3]", "[Omitted: {about}m3]"], ids=["short", "long"])
def test_original_that_another_policy_shrank_is_released_too(mode: Any, placeholder: str) -> None:
    chat = opened(policy=(*leases(False, mode), filter_tool_results(keep=1, placeholder=placeholder)), expand=True)
    chat.append("Look into it.")
    chat.prepare()
    chat.record(calls(call("c1", "look"), call("c2", "look")))
    chat.append([answer("c1", SECRET), answer("c2", "new")])
    assert chat.prepare().entries[2].shrunk_by == ("keep-last-1",)
    assert not chat.history()[2].is_released
    chat.record(say("step"))
    view = chat.prepare()
    shown_text = "[Omitted, m3]" if placeholder == "[Omitted, m3]" else "[result expired after 1 turns]"
    assert view.entries[2].message.result.text == shown_text
    assert chat.history()[2].is_released
    with pytest.raises(NotExpandable):
        chat.expand("m3")
    chat.record(say("step"))
    chat.prepare()
    assert [record.edits[0].policy for record in chat.journal.records()] == ["keep-last-1", "expire"]
    assert chat.journal.verify() == []


def test_content_that_expired_before_is_not_released_by_a_new_setting() -> None:
    store = MemoryStore()
    for kept in (True, False):
        chat = opened(policy=leases(kept), store=store)
        if kept:
            chat.append("Look into it.")
            asked(chat, SECRET)
        for n in range(3):
            chat.prepare()
            chat.record(say(f"step {n}"))
        assert not chat.history()[2].is_released


@given(st.data())
@settings(deadline=None)
def test_releases_change_no_request(data: st.DataObject) -> None:
    """The same conversation in a store that keeps all originals."""
    mode = data.draw(st.sampled_from(["compact", "remove"]))
    history = [user("begin"), *data.draw(histories(max_size=14))]
    store, control = MemoryStore(), KeepingStore()
    chat = opened(policy=leases(False, mode), store=store)
    kept = opened(policy=leases(False, mode), store=control)
    assert played(chat, history) == played(kept, history)
    assert chat.journal.verify() == kept.journal.verify() == []
    again, kept_again = (opened(policy=leases(False, mode), store=one) for one in (store, control))
    assert wire(again, again.view) == wire(kept_again, kept_again.view) == wire(chat, chat.view)


@given(st.data())
@settings(deadline=None)
def test_releases_by_hand_change_no_request(data: st.DataObject) -> None:
    """Edits of any kind, many of which cannot apply. A `Restore` may bring back less, so there is none."""
    history = [user("begin"), *data.draw(histories(max_size=10))]
    chats = [opened(store=store) for store in (MemoryStore(), KeepingStore())]
    for chat in chats:
        played(chat, history)
    ids = [row.id for row in rows_of(chats[0])]
    for edit in data.draw(edits(ids, max_size=8)):
        if isinstance(edit, Replace | Hide) and isinstance(edit.target, Target):
            edit = structs.replace(edit, keeps_original=data.draw(st.booleans()))
        if not isinstance(edit, Restore | Task | Bill):
            refused = [bool(refusal_of(chat, edit)) for chat in chats]
            assert refused[0] == refused[1]
    for chat in chats:
        chat.append("go on")
        again = opened(store=chat._session.state.store)
        assert wire(again, again.view) == wire(chat, chat.view) == wire(chats[0], chats[0].view)
        assert chat.journal.verify() == []


def refusal_of(chat: Conversation, edit: Edit) -> str:
    try:
        chat.edit(edit)
    except BadEdit as error:
        return str(error)
    return ""


def test_released_original_is_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with SqliteStore(path) as store:
        chat = expired(store)
        assert texts(chat.view)[2].startswith("tangerine tangerine")
        head = chat._agent.head
        (row,) = store.get_many(head, [3])
        assert (row.is_released, b"tangerine" in row.body, len(row.body) < 200) == (True, False, True)
        assert chat.original("m3").result.content == (Text(RELEASED),)
        assert [hit.position for hit in store.search(head, "tangerine")] == []
        assert chat.journal.verify() == []
        assert refusals(chat) == []
        again = opened(store=store)
        assert shown(again.view) == shown(chat.view)


def test_original_with_media_and_texts_is_released() -> None:
    photo = Media("image/png", "base64", "aGVsbG8=" * 500)
    store = MemoryStore()
    chat = expired(store, SECRET, photo, "short")
    assert chat.original("m3").result.content == (Text(RELEASED),) * 3
    assert shown(opened(store=store).view) == shown(chat.view)
    assert chat.journal.verify() == []


def test_original_is_kept_as_long_as_a_fork_shares_it() -> None:
    store = MemoryStore()
    chat = opened(policy=leases(False), store=store)
    chat.append("Look into it.")
    asked(chat, SECRET)
    fork = chat.fork("other")
    for n in range(3):
        chat.prepare()
        chat.record(say(f"step {n}"))
    chat.prepare()
    assert chat.original("m3").result.content == (Text(SECRET),)
    assert len(texts(chat.view)[2]) < 500
    assert fork.view.entries[2].message.result.content == (Text(SECRET),)
    asked(chat, SECRET, at=2)
    handle = f"m{len(chat)}"
    for n in range(3):
        chat.prepare()
        chat.record(say(f"step {n}"))
    chat.prepare()
    assert chat.original(handle).result.content == (Text(RELEASED),)
    assert (chat.journal.verify(), fork.journal.verify()) == ([], [])


def test_expanding_and_undoing_say_that_the_original_was_released() -> None:
    chat = expired()
    before = shown(chat.view)
    with pytest.raises(NotExpandable, match="m3 cannot be expanded: its original was released"):
        chat.expand("m3")
    with pytest.raises(BadEdit, match="they released the originals of m3"):
        chat.undo()
    number = next(number for record in chat.journal.records() for number, edit in record.numbered())
    with pytest.raises(BadEdit, match="they released the originals of m3"):
        chat.undo(number)
    assert shown(chat.view) == before


def removed(store: Any) -> Conversation:
    """Return a conversation whose m3, the result of an action, was removed without its original."""
    chat = opened(policy=leases(False, "remove"), store=store, expand=True)
    chat.append("Look into it.")
    chat.prepare()
    chat.record(say("I search."))
    lease = Lease(1, "remove", preserve_original=False, message_type="action-result")
    chat.append(user(SECRET), lease=lease)
    for n in range(3):
        chat.prepare()
        chat.record(say(f"step {n}"))
    chat.prepare()
    return chat


def test_a_removed_message_is_released_too() -> None:
    chat = removed(MemoryStore())
    assert "m3" not in [entry.handle for entry in chat.view]
    assert chat.original("m3").text == RELEASED
    with pytest.raises(NotExpandable, match="its original was released"):
        chat.expand("m3")
    with pytest.raises(BadEdit, match="they released the originals of m3"):
        chat.undo()
    assert chat.journal.verify() == []


def test_a_restored_span_keeps_the_short_form() -> None:
    chat = expired()
    short = texts(chat.view)[2]
    first, last = chat.view.entries[1].id, chat.view.entries[3].id
    chat.edit(Summarize(Span(first, last), "A look at fruit."))
    assert texts(chat.view)[1] == "A look at fruit."
    chat.expand("m2-m4")
    assert texts(chat.view)[2] == short
    chat.undo()
    assert texts(chat.view)[1] == "A look at fruit."
    chat.edit(Restore((Span(first, last),)))
    assert texts(chat.view)[2] == short
    assert shown(opened(store=chat._session.state.store).view) == shown(chat.view)


@pytest.mark.parametrize("way", ["target", "span", "number", "expand"])
def test_nothing_shows_a_removed_message_again(way: str) -> None:
    """The summary of a span that contains it can be expanded all the same."""
    store = MemoryStore()
    chat = removed(store)
    rows = rows_of(chat)
    (number,) = (n for record in chat.journal.records() for n, edit in record.numbered() if isinstance(edit, Hide))
    before = texts(chat.view)
    if way != "target":
        chat.edit(Summarize(Span(rows[1].id, rows[3].id), "Two steps."))
    match way:
        case "target":
            chat.edit(Restore((Target(rows[2].id),)))
        case "span":
            chat.edit(Restore((Span(rows[1].id, rows[3].id),)))
        case "number":
            chat.edit(Restore((), (number, number + 1)))
        case "expand":
            chat.expand("m2-m4")
    assert texts(chat.view) == before
    assert shown(opened(store=store).view) == shown(chat.view)
    with pytest.raises(NotExpandable, match="its original was released"):
        chat.expand("m3")


def test_a_forgotten_removed_message_stays_removed() -> None:
    """Long conversations forget which edits hid old messages, and ask the journal when some are shown again."""
    store = MemoryStore()
    chat = removed(store)
    rows, before = rows_of(chat), texts(chat.view)
    chat.edit(Summarize(Span(rows[1].id, rows[4].id), "Some steps."))
    chat._session.state.save_snapshot()
    again = opened(store=store)
    again.edit(Restore((Span(rows[1].id, rows[4].id),)))
    assert texts(again.view) == before
    assert shown(opened(store=store).view) == shown(again.view)


def test_other_parts_of_a_released_message_come_back_whole() -> None:
    """A message of which only an outline is in memory is read again."""
    store = MemoryStore()
    chat = opened(store=store)
    chat.append("Look into it.")
    asked(chat, SECRET, LONG)
    result = chat.view.entries[2].id
    chat.edit(Replace(Target(result, (0, 1)), (Text("[later]"),)))
    chat.edit(Replace(Target(result, (0, 0)), (Text("[fruit]"),), keeps_original=False))
    with pytest.raises(NotExpandable, match="its original was released"):
        chat.expand("m3.1.1")
    chat.expand("m3")
    assert chat.view.entries[2].message.result.content == (Text("[fruit]"), Text(LONG))
    assert shown(opened(store=store).view) == shown(chat.view)
    with pytest.raises(NotExpandable, match="its original was released"):
        chat.expand("m3")


def test_reasoning_of_a_released_message_is_released() -> None:
    chat = opened()
    chat.append("Look into it.")
    chat.prepare()
    chat.record(Message("assistant", (Reasoning(SECRET, "signed", format="openai"), Text("I see."))))
    chat.append("go on")
    chat.edit(Hide(Target(rows_of(chat)[1].id), keeps_original=False))
    (row,) = [row for row in rows_of(chat) if row.is_released]
    assert b"tangerine" not in row.body
    assert chat.journal.verify() == []


def test_explain_and_history_say_that_an_original_was_released() -> None:
    chat = expired()
    assert "Content of its original was released" in chat.explain("m3")
    assert [entry.handle for entry in chat.history() if entry.is_released] == ["m3"]
    fork = chat.fork("other", at="m3")
    assert "released" in fork.explain("m3")
    assert "as it was appended" not in fork.explain("m3")
    assert "released" not in fork.explain("m2")
    assert "released" in removed(MemoryStore()).explain("m3")


def test_the_users_own_words_stay() -> None:
    chat = opened(policy=leases(False))
    chat.append(user(LONG), lease=Lease(1, "compact", "first_chars", 50, preserve_original=False))
    for n in range(4):
        chat.prepare()
        chat.record(say(f"step {n}"))
        chat.append("go on")
    assert chat.original("m1").text == LONG


def test_an_edit_by_hand_may_release() -> None:
    store = MemoryStore()
    chat = opened(store=store)
    chat.append("Look into it.")
    asked(chat, SECRET, "the end")
    chat.edit(Replace(Target(chat.view.entries[2].id, (0, 0)), (Text("[fruit]"),), keeps_original=False))
    assert chat.original("m3").result.content == (Text(RELEASED), Text("the end"))
    chat.edit(Hide(Target(chat.view.entries[2].id, (0, 1)), keeps_original=False))
    assert chat.original("m3").result.content == (Text(RELEASED), Text(RELEASED))
    assert chat.view.entries[2].message.result.content == (Text("[fruit]"),)
    assert chat.journal.verify() == []
    assert shown(opened(store=store).view) == shown(chat.view)


def test_a_view_of_the_past_shows_the_place() -> None:
    chat = expired()
    past = chat.as_of(turn=2)
    assert past.entries[2].message.result.content == (Text(RELEASED),)


def test_another_process_follows_a_release() -> None:
    store = MemoryStore()
    chat = opened(policy=leases(False), store=store)
    chat.append("Look into it.")
    asked(chat, SECRET)
    other = opened(store=store)
    assert other.original("m3").result.content == (Text(SECRET),)
    for n in range(3):
        chat.prepare()
        chat.record(say(f"step {n}"))
    chat.prepare()
    other.refresh()
    assert shown(other.view) == shown(chat.view)
    assert other.view.entries[2].source.result.content == (Text(RELEASED),)


def test_a_list_of_the_caller_agrees_with_a_released_original() -> None:
    store = MemoryStore()
    chat = opened(policy=leases(False), store=store)
    mine = [user("Look into it."), calls(call("c1", "look")), answer("c1", SECRET)]
    for n in range(4):
        chat.follow(mine)
        chat.prepare()
        mine.append(say(f"step {n}"))
    chat.follow(mine)
    assert chat.original("m3").result.content == (Text(RELEASED),)
    for one in (chat, None):
        one = one or opened(policy=leases(False), store=store)
        before = len(one), len(one.journal.records())
        mine.append(user("more"))
        assert len(one.follow(mine).added) == 1
        assert (len(one), len(one.journal.records())) == (before[0] + 1, before[1])
    assert chat.journal.verify() == []


def test_archive_keeps_outlines_and_proof(tmp_path: Path) -> None:
    chat = expired()
    path = tmp_path / "chat.jsonl"
    export_archive(chat._session.state.store, path, tenant=chat._agent.head.tenant)
    assert b"tangerine tangerine tangerine tangerine tangerine tangerine" not in path.read_bytes()
    with SqliteStore(tmp_path / "chat.db") as store:
        import_archive(store, path)
        again = opened(store=store)
        assert shown(again.view) == shown(chat.view)
        assert again.journal.verify() == []
        assert again.original("m3").result.content == (Text(RELEASED),)


HISTORY = agent_run(6, seed=4, result_chars=(400, 900))


def play(chat: Conversation) -> None:
    """Play the whole run. A failed operation is repeated, as a user's retry does."""
    tip = chat.tip
    for message in (*HISTORY, None):
        for attempt in range(3):
            try:
                if message is None or message.role == "assistant":
                    chat.prepare()
                if message is not None:
                    tip = chat.append(message, after=tip)[-1]
                break
            except StoreError:
                assert attempt < 2
                chat.refresh()


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after it took effect"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@by_thirds
def test_retry_after_any_failure_releases_the_same(kind: str, after: bool, n: int, tmp_path: Path) -> None:
    """F30."""
    reference = opened(policy=leases(False))
    play(reference)
    gone = [row.is_released for row in rows_of(reference)]
    assert sum(gone) > 2
    while True:
        countdown = Countdown(after=after)
        inner: Database = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / f"{n}.db", synchronous="normal")
        chat = opened(policy=leases(False), store=failing_store(inner, countdown))
        countdown.start(n)
        play(chat)
        is_done = not countdown.is_used_up
        countdown.start(0)
        assert [row.is_released for row in rows_of(chat)] == gone
        assert (chat.tip, refusals(chat), chat.journal.verify()) == (reference.tip, [], [])
        assert shown(opened(store=inner).view) == shown(chat.view)
        inner.close()
        if is_done:
            break
        n += STEP
    assert n > 20


def rows_of(chat: Conversation) -> list[Any]:
    state = chat._session.state
    return state.store.messages(state.head, 1, state.head.position)
