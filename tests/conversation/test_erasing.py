"""Erasing: the view stays legal, and no cache shows the erased content again."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import BadInput, Options, open_async_conversation, open_conversation
from foveate.core.checker import check
from foveate.core.edits import Hide, Replace, Span, Summarize, Target
from foveate.core.messages import Reasoning, Text, ToolCall, assistant, system, tool_result, user
from foveate.errors import BadEdit, BadMessage, DoesNotFit, UnknownHandle
from foveate.policies import shrink_to_digest
from foveate.ports import Erasure
from foveate.stores.memory import MemoryStore
from foveate.testing import thought
from foveate.testing.bodies import check_body
from foveate.testing.strategies import edits, histories

from .shells import opened, refusals, shown, texts

PROVIDERS = ("openai", "anthropic")
TALK = [
    system("You help."),
    user("What is the weather?"),
    assistant("I look.", ToolCall("c1", "look", '{"where":"Paris"}'), ToolCall("c2", "look", '{"where":"Rome"}')),
    tool_result("c1", "rain in Paris"),
    tool_result("c2", "sun in Rome"),
    assistant("Rain and sun."),
    user("Thank you."),
]


def talked(provider: str = "openai", **options: Any) -> Any:
    chat = opened(provider=provider, **options)
    for message in TALK:
        chat.append(message)
    return chat


@pytest.mark.parametrize("provider", PROVIDERS)
def test_erased_answer_leaves_a_note_behind_its_call(provider: str) -> None:
    chat = talked(provider)
    done = chat.privacy.erase("m4", reason="asked for", who="ann")
    assert (done.number, done.handles, done.messages, done.who, done.reason) == (1, "m4", 1, "ann", "asked for")
    view = chat.prepare()
    assert texts(view)[2:6] == ["I look.", "sun in Rome", "[erased]", "Rain and sun."]
    assert refusals(chat) == []
    assert b"rain in Paris" not in chat.body()
    assert (chat.journal.verify(), chat.privacy.residue(), chat.privacy.erasures()) == ([], (1, []), [done])


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("handle", ["m2", "m3", "m6", "m3-m5", "m2-m6", "m7"])
def test_view_is_legal_after_any_erasure(provider: str, handle: str) -> None:
    chat = talked(provider)
    gone = [message.text for message in chat.originals(handle)]
    chat.prepare()
    chat.privacy.erase(handle)
    view = chat.prepare()
    assert check(view, chat._agent.profile) == []
    assert refusals(chat, view) == []
    assert not {*gone} & {*texts(view)}
    assert (chat.journal.verify(), chat.privacy.residue()[1]) == ([], [])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_older_input_stays_shrunk_when_the_last_is_erased(provider: str) -> None:
    store = MemoryStore()
    chat = talked(provider, store=store)
    chat.edit(Replace(Target(chat.view.entries[1].id, (0,)), (Text("The weather?"),)))
    chat.privacy.erase("m7")
    for one in (chat, opened(provider=provider, store=store)):
        assert (texts(one.prepare())[1], check(one.view, one._agent.profile)) == ("The weather?", [])
    chat.append(user("And tomorrow?"))
    assert texts(chat.prepare())[-1] == "And tomorrow?"


@pytest.mark.parametrize("is_shown", [True, False])
def test_reasoning_bound_to_an_erased_message_is_hidden(is_shown: bool) -> None:
    """The provider accepts reasoning only after the past that it followed."""

    def thoughts(chat: Any) -> list[str]:
        return [part.text for entry in chat.prepare() for part in entry.message.parts if isinstance(part, Reasoning)]

    store = MemoryStore()
    chat = talked("anthropic", store=store, model="claude-opus-5-5")
    if not is_shown:
        chat.edit(Hide(Target(chat.view.entries[1].id)))
    chat.prompt()
    chat.record(thought("before", assistant("Welcome.")))
    chat.append(user("Tell me more."))
    chat.privacy.erase("m2")
    assert thoughts(chat) == ([] if is_shown else ["before"])
    chat.prompt()
    chat.record(thought("after", assistant("That is all.")))
    chat.append(user("Good bye."))
    kept = ["after"] if is_shown else ["before", "after"]
    for one in (chat, opened(provider="anthropic", store=store, model="claude-opus-5-5")):
        assert (thoughts(one), check(one.view, one._agent.profile)) == (kept, [])


def test_repeated_erasure_changes_nothing() -> None:
    chat = talked()
    chat.privacy.erase("m4")
    before = (chat._agent.head, shown(chat.prepare()))
    assert chat.privacy.erase("m4") == Erasure(0)
    assert (chat._agent.head, shown(chat.prepare())) == before


def test_explanation_of_an_erased_message_says_that_it_was_erased() -> None:
    chat = talked()
    for handle in ("m4", "m7"):
        chat.privacy.erase(handle)
        assert chat.explain(handle) == f"{handle} was erased."


def test_failed_erasure_changes_nothing() -> None:
    chat = talked()
    before = (chat._agent.head, shown(chat.prepare()))
    for handle in ("m8", "m0", "x", "m6-m8", "f" * 40):
        with pytest.raises(UnknownHandle):
            chat.privacy.erase(handle)
    with pytest.raises(BadInput, match="names a part, and only whole messages are erased: erase m4"):
        chat.privacy.erase("m4.1")
    assert (chat._agent.head, shown(chat.prepare()), chat.privacy.erasures()) == (*before, [])


def test_message_is_named_by_handle_id_or_number() -> None:
    chat = talked()
    chat.prepare()
    assert chat.privacy.erase(chat.history()[3].id).handles == "m4"
    chat.prepare()
    assert chat.privacy.erase(2).handles == "m2"


def test_erasing_replaces_its_summary_by_the_other_originals() -> None:
    chat = talked()
    ids = [row.id for row in chat.history()]
    chat.edit(Summarize(Span(ids[1], ids[5]), "It rains in Paris; the sun shines in Rome."))
    assert len(chat.prepare()) == 3
    chat.privacy.erase("m4")
    assert texts(chat.prepare()) == [
        *("You help.", "What is the weather?", "I look.", "sun in Rome", "[erased]", "Rain and sun.", "Thank you.")
    ]
    assert chat.journal.records()[-1].author == "erase"
    assert not any(b"rains" in message for message in map(str.encode, map(repr, chat.journal.records())))


def test_note_replaces_originals_that_do_not_fit() -> None:
    chat = opened(window=2_000)
    chat.append([user(f"long {n} " + "x" * 3000) for n in range(4)])
    ids = [row.id for row in chat.history()]
    chat.edit(Summarize(Span(ids[0], ids[2]), "Long ones."))
    chat.privacy.erase("m1")
    view = chat.prepare()
    assert texts(view)[0] == "[erased]"
    assert view.tokens <= view.budget.usable
    assert refusals(chat, view) == []
    assert chat.original("m2").text.startswith("long 1")


def test_erasing_removes_all_nested_summaries() -> None:
    chat = talked()
    ids = [row.id for row in chat.history()]
    chat.edit(Summarize(Span(ids[1], ids[3]), "It rains in Paris."))
    chat.edit(Summarize(Span(ids[1], ids[5]), "Paris: rain. Rome: sun."))
    chat.privacy.erase("m4")
    assert "[erased]" not in texts(chat.prepare())[:4]
    assert len(texts(chat.prepare())) == 7


def test_erasing_removes_the_placeholder_too() -> None:
    chat = talked()
    four = chat.history()[3].id
    chat.edit(Replace(Target(four, (0,)), (Text("[it rains]"),)))
    chat.privacy.erase("m4")
    assert "[it rains]" not in str(texts(chat.prepare()))
    assert "it rains" not in repr(chat.journal.records())


def test_erasing_an_answer_keeps_the_short_forms_of_the_others() -> None:
    """Parallel calls: the short form of one answer cannot contain text of another answer."""
    chat = talked()
    rome, paris = chat.history()[4].id, chat.history()[3].id
    chat.edit(
        Replace(Target(paris), (Text("short rain"),)),
        Replace(Target(rome), (Text("short sun"),)),
    )
    assert chat.privacy.erase("m4").edits == 1
    assert texts(chat.prepare())[3:5] == ["short sun", "[erased]"]
    assert chat.privacy.erase("m3").edits == 1  # The call may stand in the short form of its answer.
    assert "short sun" not in texts(chat.prepare())
    assert chat.privacy.residue() == (2, [])


def test_erasing_a_message_erases_its_expanded_copies() -> None:
    chat = opened(window=6_000, policy=(shrink_to_digest(),), expand=True)
    chat.append([user("go"), assistant("", ToolCall("c", "look", "{}"))])
    chat.append(tool_result("c", "\n".join(f"plum {n}: {n * n}" for n in range(400))))
    chat.append([assistant("Seen."), user("more")])
    three = chat.history()[2].id
    chat.edit(Replace(Target(three, (0,)), (Text("[plums]"),)))
    chat.append(assistant("", ToolCall("e", "expand", '{"handle":"m3","lines":"1-4"}')))
    chat.prepare()
    chat.expand("m3", where="tail")
    assert sum("plum 3" in text for text in texts(chat.view)) == 2
    chat.privacy.erase("m3")
    assert "plum" not in repr(shown(chat.prepare())) + repr(chat.history()) + repr(chat.journal.records())
    assert refusals(chat) == []
    assert chat.privacy.residue() == (3, [])


def test_erasing_an_answer_does_not_reopen_its_call() -> None:
    """Otherwise an agent would carry the call out again."""
    chat = talked()
    chat.append(assistant("", ToolCall("c3", "pay", "{}"), ToolCall("c4", "pay", "{}")))
    chat.append(tool_result("c3", "paid"))
    assert [call.call_id for call in chat.open_calls()] == ["c4"]
    chat.privacy.erase("m9")
    assert [call.call_id for call in chat.open_calls()] == ["c4"]


def test_open_conversation_elsewhere_sees_the_erasure(tmp_path: Path) -> None:
    """The other process commits a plan, finds that it is stale, and shows the current view."""
    store = MemoryStore()
    one, other = talked(store=store), opened(store=store)
    assert "rain in Paris" in texts(other.prepare())
    fork = one.fork("fork")
    one.privacy.erase("m4")
    other.pin("m6")
    assert "rain in Paris" not in texts(other.prepare())
    fork.refresh()
    assert "rain in Paris" not in texts(fork.prepare())
    other.append(user("And now?"))
    assert other.journal.verify() == []


def remembered() -> int:
    """Return the number of cached answers of policies and digests. Unbounded caches hold only settings."""
    names = [name for name in sys.modules if name.startswith(("foveate.policies", "foveate.digest"))]
    kept = {id(one): one for name in names for one in vars(sys.modules[name]).values() if hasattr(one, "cache_info")}
    return sum(one.cache_info().currsize for one in kept.values() if one.cache_info().maxsize is not None)


def test_no_function_cache_holds_an_erased_text(tmp_path: Path) -> None:
    """Policies cache what they make of a text; an erasure clears these caches."""
    chat = opened(window=3_000, policy="balanced", store=f"sqlite:///{tmp_path / 'chat.db'}")
    chat.append([user("go"), assistant("", ToolCall("c", "look", "{}"))])
    chat.append(tool_result("c", "\n".join(f"quince {n}: {n * n}" for n in range(300))))
    for n in range(8):
        chat.append([assistant(f"Seen {n}."), user("more " * 80)])
        chat.prepare()
    assert remembered() > 0
    chat.privacy.erase("m3")
    assert remembered() == 0
    assert b"quince" not in chat.body()
    chat.close()


def test_async_conversation_erases() -> None:
    async def run() -> list[Any]:
        async with await open_async_conversation("c", format="openai", window=9_000) as chat:
            await chat.append([user("a secret"), user("else")])
            done = await chat.privacy.erase("m1")
            return [
                done.messages,
                await chat.privacy.residue(),
                await chat.privacy.erasures() == [done],
                texts(await chat.prepare()),
            ]

    assert asyncio.run(run()) == [1, (1, []), True, ["else"]]


@settings(deadline=None)
@given(st.data())
@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_view_after_an_erasure_is_legal(provider: str, data: st.DataObject) -> None:
    ticks = iter(range(1, 10**9))
    chat = open_conversation(
        "c", format=provider, window=3_000, policy="balanced", options=Options(clock=lambda: next(ticks))
    )
    for message in data.draw(histories(max_size=12)):
        try:
            chat.append(message)
        except BadMessage:
            continue
    ids = [row.id for row in chat.history()]
    for edit in data.draw(edits(ids, max_size=4)) if ids else ():
        try:
            chat.edit(edit)
        except (BadEdit, BadInput):
            continue
    for _ in range(2 if ids else 0):
        first = data.draw(st.integers(1, len(ids)))
        last = data.draw(st.integers(first, len(ids)))
        chat.privacy.erase(f"m{first}-m{last}" if last > first else f"m{first}")
        try:
            view = chat.prepare()
        except (BadInput, DoesNotFit):
            continue
        assert check(view, chat._agent.profile) == []
        assert check_body(chat.format.name, chat.format.body(view, profile=chat._agent.profile)) == []
        gone = [row for row in chat.history() if not row.message.parts]
        assert len(gone) >= last - first + 1
    assert (chat.journal.verify(), chat.privacy.residue()[1]) == ([], [])


def test_answer_shrunk_after_its_call_was_erased_is_no_residue() -> None:
    """The short form is made of the answer, which is still stored, and says nothing about the erased call."""
    chat = open_conversation("c", window=50_000, policy="none")
    chat.append(TALK[:4])
    chat.privacy.erase("m3")
    chat.edit(Replace(Target(chat.history()[3].id), (Text("rain"),)))
    assert (chat.journal.verify(), chat.privacy.residue()) == ([], (1, []))
