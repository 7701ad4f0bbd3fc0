"""Plugins of a conversation: when they are called, their blocks, and their errors."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import (
    BadInput,
    ConflictError,
    Conversation,
    Media,
    Message,
    Text,
    ToolResult,
    open_async_conversation,
    open_conversation,
    plugin,
    tool_result,
)
from foveate.conversation import caller_list
from foveate.conversation.plugins import AdditionalContent
from foveate.core.enrich import own_message, retained_parts
from foveate.errors import BadEdit, BadMessage, BadSetting, StoreError
from foveate.open import grouped
from foveate.policies import PluginRetention, filter_tool_results, pin_newest, retain_blocks
from foveate.rules import check
from foveate.stores.memory import MemoryStore
from foveate.testing import answer, call, calls, say, user
from foveate.testing.bodies import check_body
from foveate.testing.faults import Countdown, failing_store
from foveate.testing.strategies import edits, histories
from foveate.types import Event, Lease, PartRetention

PROVIDERS = ("openai", "anthropic")
HEADER = "\n### PLUGIN screen CONTEXT ###\n"


class Screen:
    """A plugin that returns the state of the screen, and notes its calls."""

    def __init__(self, name: str = "screen", says: Callable[..., Any] | None = None, save: int | bool = 1) -> None:
        self.name, self.asked, self._save = name, [], save
        self._says = says

    def __call__(self, content: tuple[Any, ...]) -> Any:
        self.asked.append([part.text for part in content])
        if self._says is not None:
            return self._says(content)
        return [AdditionalContent(f"shot {len(self.asked)}", True, self._save)]


def opened(*plugins: Any, provider: str = "openai", **options: Any) -> Conversation:
    ticks = iter(range(1, 10**9))
    options.setdefault("policy", "none")
    options.setdefault("window", 200_000)
    return open_conversation(
        "c", format=provider, plugins=plugins, **grouped({"clock": lambda: next(ticks), **options})
    )


def parts(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, Text)]


def texts_by_message(chat: Conversation) -> list[tuple[str, list[str]]]:
    """Return the history: the origin of each message, and its texts."""
    return [(row.stamp.origin, parts(row.message)) for row in chat.history()]


def sent(chat: Conversation, **options: Any) -> list[dict[str, Any]]:
    """Return the wire messages of the next prompt, after the second checker."""
    body = chat.prompt(**options)["messages"]
    assert check_body(chat.format.name, chat.format.body(chat.view, profile=chat._agent.profile)) == []
    return body  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------------------ what is added


def test_plugin_sees_the_input_and_adds_to_the_same_message():
    screen = Screen()
    chat = opened(screen)
    chat.append("What is there?")
    assert screen.asked == [["What is there?"]]
    (row,) = chat.history()
    assert row.message == Message("user", (Text("What is there?"), Text(HEADER), Text("shot 1"), Text("\n")))
    assert row.stamp.origin == "user"
    assert row.stamp.retention is not None
    assert row.stamp.retention.parts == (PartRetention(), *[PartRetention(True, 1, "screen")] * 3)
    assert sent(chat) == [
        {
            "role": "user",
            "content": [{"type": "text", "text": text} for text in ("What is there?", HEADER, "shot 1")],
        }
    ]


def test_input_without_additions_counts_too():
    chat = opened(
        Screen(says=lambda content: [AdditionalContent("first", True, 1)] if "One." in str(content) else None)
    )
    for text in ("One.", "Two.", "Three."):
        chat.append(text)
        seen = sent(chat)[0]["content"]
        chat.record(say("Yes."))
    assert seen == "One."
    assert [row.stamp.retention.sequence for row in chat.history() if row.stamp.retention] == [1, 2, 3]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_plugins_are_asked_once_after_all_tool_results(provider: str):
    screen = Screen()
    chat = opened(screen, provider=provider)
    chat.append([user("Go."), calls("t1", "t2")])  # Answered already: the past.
    assert screen.asked == []
    chat.append([answer("t1", "one"), answer("t2", "two", state="error")])
    assert screen.asked == []
    sent(chat)
    assert screen.asked == [["one", "two"]]
    assert texts_by_message(chat)[2:] == [("tool", []), ("tool", []), ("plugin", [HEADER, "shot 1", "\n"])]
    assert [entry.position for entry in chat.view] == [1, 2, 3, 4, 5]


def test_plugin_sees_results_with_the_tools_names_and_states():
    """A plugin was once called with () after tools, so it could not react to what they answered."""
    seen: list[object] = []
    chat = opened(Screen(says=lambda content: seen.append(content)))
    picture = Media("image/png", "base64", "aWNvbg==")
    chat.append([user("Go."), calls("t1", "t2")])
    chat.append([answer("t1", "one"), tool_result("t2", "two", picture, state="error")])
    chat.prepare()
    chat.prepare()
    one, two = ToolResult("t1", (Text("one"),), name="tool"), (Text("two"), picture)
    assert seen == [(one, ToolResult("t2", two, "error", "tool"))]


def test_plugin_sees_an_action_result_of_a_loop_agent():
    seen: list[object] = []
    chat = opened(Screen(says=lambda content: seen.append(content)))
    chat.append([user("Go."), say("I act.")])
    chat.append(user("18 degrees"), lease=Lease(message_type="action-result", action_id="Weather"))
    chat.prepare()
    assert seen == [(ToolResult("", (Text("18 degrees"),), name="Weather"),)]


def test_nothing_is_attributed_to_the_user():
    """A "please continue" was once taken for a request, and answered."""
    chat = opened(Screen())
    chat.append([user("Go."), call("t1"), answer("t1", "one")])
    inputs = [entry.message.text for entry in chat.prepare() if entry.message.role == "user"]
    assert inputs == ["Go.", f"{HEADER}\nshot 1"]


def test_plugins_skip_failed_tools_and_answered_results():
    screen = Screen()
    chat = opened(screen)
    chat.append([user("Go."), call("t1"), answer("t1", "no", state="error")])
    chat.prepare()
    assert screen.asked == []
    chat.record(call("t2"))
    chat.append([answer("t2", "ok"), user("Wait.")])
    chat.prepare()
    assert screen.asked == [["Wait."]]


def test_user_message_marked_as_a_result_is_a_result():
    screen = Screen()
    chat = opened(screen)
    chat.append([user("Go."), say("I act.")])
    chat.append(user("18 degrees"), lease=Lease(message_type="action-result"))
    assert screen.asked == []
    chat.prepare()
    assert screen.asked == [["18 degrees"]]


def test_plugin_message_without_content_is_not_appended():
    chat = opened(Screen(says=lambda content: [AdditionalContent("", True, True), AdditionalContent("a", False)]))
    chat.append([user("Go."), call("t1"), answer("t1", "ok")])
    chat.prepare()
    assert len(chat) == 3


@pytest.mark.parametrize("adds", [True, False])
def test_plugins_are_asked_once_for_repeated_prompts(adds: bool):
    screen = Screen(says=None if adds else lambda content: None)
    chat = opened(screen)
    chat.append([user("Go."), call("t1"), answer("t1", "ok")])
    first = sent(chat)
    assert sent(chat) == first
    refusal = RuntimeError("prompt is too long: 300000 tokens > 250000 maximum")
    assert chat.retry_smaller(refusal)["messages"] == first
    assert chat.plan().edits == ()
    assert screen.asked == [["ok"]]
    chat.record(call("t2"))
    chat.append(answer("t2", "ok"))
    chat.prepare()
    assert screen.asked == [["ok"], ["ok"]]


def test_reopened_conversation_does_not_ask_plugins_again(tmp_path):
    url = f"sqlite:///{tmp_path}/c.db"
    with opened(Screen(), store=url) as chat:
        chat.append([user("Go."), call("t1"), answer("t1", "ok")])
        before = sent(chat)
    screen = Screen()
    with opened(screen, store=url) as again:
        assert sent(again) == before
    assert screen.asked == []


def test_plugins_add_to_the_last_unanswered_input_only():
    screen = Screen()
    chat = opened(screen)
    chat.append([user("Old."), say("Yes."), user("a"), user("b")])
    assert screen.asked == [["b"]]
    assert [texts[0] for _, texts in texts_by_message(chat)] == ["Old.", "Yes.", "a", "b"]
    assert [bool(row.stamp.retention) for row in chat.history()] == [False, False, False, True]


@pytest.mark.parametrize("options", [{"kept": [PartRetention(True, 2)]}, {"origin": "derived"}, {"origin": "plugin"}])
def test_plugins_skip_messages_with_retention_or_origin(options: dict[str, Any]):
    screen = Screen()
    chat = opened(screen)
    chat.append("Note.", **options)
    assert (screen.asked, texts_by_message(chat)[0][1]) == ([], ["Note."])


def test_fork_has_the_same_plugins():
    screen = Screen()
    chat = opened(screen)
    chat.append("One.")
    with chat.fork("other") as fork:
        fork.append("Two.")
    assert screen.asked == [["One."], ["Two."]]


# ------------------------------------------------------------------------------------------------------ what goes wrong


def returns(value: object) -> Callable[[object], object]:
    return lambda content: value


def raises(content: object) -> Iterable[AdditionalContent]:
    yield AdditionalContent("half", True, 1)
    raise ValueError("no camera")


async def waits(content: object) -> list[AdditionalContent]:
    return [AdditionalContent("awaited", True, 1)]


@pytest.mark.parametrize(
    ("says", "why"),
    [
        (raises, "ValueError: no camera"),
        (lambda content: [AdditionalContent("a", True, "2")], "BadSetting: save_to_history="),  # type: ignore[arg-type]
        (lambda content: [AdditionalContent("a", True, 2**64)], "BadSetting: save_to_history= must be at most"),
        (returns(7), "TypeError: it returned 7, which is no AdditionalContent"),
        (returns([b"text"]), "TypeError: it returned b'text', which is no AdditionalContent"),
        (returns([AdditionalContent("a"), {"content": "b"}]), "TypeError: it returned {'content': 'b'}"),
        (returns({"type": "text", "text": "b"}), "TypeError: it returned {'type': 'text', 'text': 'b'}"),
        (returns([AdditionalContent((Text(7),))]), ""),  # type: ignore[arg-type]
        (returns([AdditionalContent("\ud83d")]), "BadMessage: "),
        (waits, "TypeError: it must be awaited, which only an async conversation can do"),
    ],
)
def test_3_4_20_a_failing_plugin_is_left_out_and_the_others_run(says: Any, why: str, caplog):
    events: list[Event] = []
    chat = opened(Screen("bad", says), Screen(), on_event=events.append)
    with caplog.at_level(logging.WARNING, "foveate"):
        chat.append("Go.")
    assert texts_by_message(chat) == [("user", ["Go.", HEADER, "shot 1", "\n"])]
    assert [(event.kind, event.policy) for event in events] == [("plugin-failed", "bad"), ("message-added", "")]
    assert events[0].reason.startswith(why)
    assert "the plugin bad is left out" in caplog.text
    assert [event.kind for event in chat.journal.events()] == ["message-added"]


def test_3_4_17_later_changes_by_a_plugin_leave_the_history_alone():
    kept: list[Any] = []

    def says(content: tuple[Text, ...]) -> list[AdditionalContent]:
        blocks = [Text("mine")]
        contents = [AdditionalContent(blocks, True, True)]  # type: ignore[arg-type]
        kept.extend((content, blocks, contents))
        return contents

    chat = opened(Screen(says=says))
    chat.append("Go.")
    content, blocks, contents = kept
    with pytest.raises((TypeError, AttributeError)):
        content[0] = Text("changed")
    with pytest.raises((TypeError, AttributeError)):
        content[0].text = "changed"
    blocks[:] = [Text("changed")]
    contents.clear()
    assert texts_by_message(chat) == [("user", ["Go.", HEADER, "mine", "\n"])]
    assert chat.journal.verify() == []


def test_plugin_is_not_asked_about_its_own_appends():
    def says(content: object) -> list[AdditionalContent]:
        chat.append("A note of the plugin's.")
        return [AdditionalContent("shot")]

    chat = opened(Screen(says=says))
    chat.append("Go.")
    assert texts_by_message(chat) == [("user", ["A note of the plugin's."]), ("user", ["Go.", HEADER, "shot", "\n"])]


def test_store_failure_changes_nothing_and_asks_the_plugin_again():
    screen = Screen()
    countdown = Countdown()
    chat = opened(screen, store=failing_store(MemoryStore(), countdown))
    chat.append([user("Go."), call("t1"), answer("t1", "ok")])
    countdown.start(1)
    with pytest.raises(StoreError):
        chat.prepare()
    assert len(chat) == 3
    chat.prepare()
    assert texts_by_message(chat)[3][0] == "plugin"


@pytest.mark.parametrize(
    ("plugins", "says"),
    [
        ("screen", "plugins= must be a list of plugins"),
        ([lambda content: None], "A plugin has a name"),
        ([Screen(" ")], "A plugin has a name"),
        ([3], "can be called"),
        ([Screen(), Screen()], "two plugins of the name 'screen'"),
    ],
)
def test_invalid_plugin_is_refused_before_opening(plugins: Any, says: str):
    with pytest.raises(BadSetting, match=says):
        open_conversation("c", window=9_000, plugins=plugins)


# ------------------------------------------------------------------------------------------------------------- retries


def test_retry_is_recognized_though_plugins_changed_their_text():
    screen = Screen()
    chat = opened(screen)
    first = chat.append("Go.", after="")
    assert chat.append("Go.", after="") == first
    assert screen.asked == [["Go."]]
    more = chat.append([user("Go."), user("Now.")], after="")
    assert (more[0], len(chat), screen.asked) == (first[0], 2, [["Go."], ["Now."]])
    with pytest.raises(ConflictError):
        chat.append("Stop.", after="")


def test_retry_skips_messages_of_plugins():
    chat = opened(Screen())
    ids = chat.append([user("Go."), call("t1"), answer("t1", "ok")])
    chat.prepare()
    later = chat.append("Wait.", after=ids[-1])
    assert [origin for origin, _ in texts_by_message(chat)] == ["user", "assistant", "tool", "plugin", "user"]
    assert chat.append("Wait.", after=ids[-1]) == later
    assert len(chat) == 5


# --------------------------------------------------------------------------------------------- lists of users' own


def play(chat: Conversation, script: Iterable[str], own: list[dict[str, Any]]) -> None:
    """Play an agent that keeps its own list of messages and passes all of it at each call."""
    render = chat.format.render
    for i, step in enumerate(script):
        if step == "user":
            own.extend(render([user(f"Round {i}.")]))
        sent(chat, messages=own)
        reply = calls(f"a{i}", f"b{i}") if step == "tools" else say(f"Answer {i}.")
        chat.record(reply)
        own.extend(render([reply]))
        if step == "tools":
            own.extend(render([answer(f"a{i}", "ok"), answer(f"b{i}", "no", state="error")]))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_host_list_is_followed_without_plugin_texts(provider: str, monkeypatch):
    comparisons: list[object] = []
    history = caller_list.CallerHistory
    monkeypatch.setattr(
        caller_list, "CallerHistory", lambda *arguments: comparisons.append(arguments) or history(*arguments)
    )
    store = MemoryStore()
    chat = opened(Screen(), provider=provider, store=store)
    own = chat.format.render([user("Begin.")])
    play(chat, ["tools", "tools", "say", "user", "tools", "say"], own)
    sent(chat, messages=own)
    origins = "user assistant tool tool plugin assistant tool tool plugin assistant user assistant user assistant"
    assert store.names("") == ["c"]
    assert [origin for origin, _ in texts_by_message(chat)][:10] == origins.split()[:10]
    assert [texts for origin, texts in texts_by_message(chat) if origin == "user"] == [
        ["Begin.", HEADER, "shot 1", "\n"],
        ["Round 3.", HEADER, "shot 4", "\n"],
    ]
    assert len(comparisons) == 1  # The history is read once, not at each call.


@pytest.mark.parametrize("provider", PROVIDERS)
@given(script=st.lists(st.sampled_from(["user", "tools", "say"]), max_size=8), reopens=st.booleans())
def test_list_of_an_agent_with_plugins_never_departs(provider: str, script: list[str], reopens: bool):
    store = MemoryStore()
    screen = Screen(save=2)
    chat = opened(screen, provider=provider, store=store)
    own = chat.format.render([user("Begin.")])
    play(chat, script, own)
    if reopens:
        chat = opened(screen, provider=provider, store=store)
    sent(chat, messages=own)
    length = len(chat)
    sent(chat, messages=own)
    assert (store.names(""), len(chat), chat.journal.verify()) == (["c"], length, [])
    assert [texts[0] for origin, texts in texts_by_message(chat) if origin == "user"] == [
        "Begin.",
        *[f"Round {i}." for i, step in enumerate(script) if step == "user"],
    ]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_regenerated_answer_keeps_plugin_texts_of_its_question(provider: str):
    screen = Screen()
    chat = opened(screen, provider=provider)
    own = chat.format.render([user("Begin.")])
    play(chat, ["tools", "say"], own)
    asked = len(screen.asked)
    sent(chat, messages=own[:-1])
    assert [origin for origin, _ in texts_by_message(chat)] == ["user", "assistant", "tool", "tool", "plugin"]
    assert len(screen.asked) == asked


@pytest.mark.parametrize("provider", PROVIDERS)
def test_plugins_are_asked_again_when_the_list_departs(provider: str):
    screen = Screen()
    chat = opened(screen, provider=provider)
    own = chat.format.render([user("Begin.")])
    play(chat, ["tools", "tools", "say"], own)
    sent(chat, messages=[*own[:-1], *chat.format.render([user("Stop.")])])
    assert [origin for origin, _ in texts_by_message(chat)] == [
        *["user", "assistant", "tool", "tool", "plugin"],
        *["assistant", "tool", "tool", "plugin", "assistant", "user"],
    ]
    assert [entry.stamp.origin for entry in chat.view][-3:] == ["tool", "plugin", "user"]  # The reply is hidden.
    assert screen.asked[-1] == ["Stop."]
    sent(chat, messages=chat.format.render([user("Begin."), say("Another answer."), user("Go.")]))
    assert [entry.message.parts[0].text for entry in chat.view] == ["Begin.", "Another answer.", "Go."]


# ------------------------------------------------------------------------------------------------------- every history


class Drawn:
    """A plugin that adds random blocks of every retention, nothing, or an error."""

    def __init__(self, name: str, data: st.DataObject) -> None:
        self.name, self._data = name, data

    def __call__(self, content: object) -> list[AdditionalContent]:
        if self._data.draw(st.integers(0, 5)) == 0:
            raise ValueError("drawn")
        return self._data.draw(st.lists(CONTENTS, max_size=2))  # type: ignore[no-any-return]


CONTENTS = st.builds(
    AdditionalContent,
    st.sampled_from(["a", "", (Text("b"), Text(" "), Text("c")), (Media("image/png", "base64", "iVBORw0KGgo="),)]),
    st.booleans(),
    st.sampled_from([False, True, 0, 1, 2, -1]),
)


@pytest.mark.parametrize("provider", PROVIDERS)
@given(history=histories(max_size=16), data=st.data())
def test_every_view_with_any_plugins_is_legal_and_shows_the_input(
    provider: str, history: list[Message], data: st.DataObject
):
    store, plugins = MemoryStore(), [Drawn("a", data), Drawn("b", data)]
    chat = opened(*plugins, provider=provider, store=store, policy=(filter_tool_results(keep=2),))
    accepted = []
    for message in history:
        with suppress(BadMessage):
            chat.append(message)
            accepted.append(message)
        if data.draw(st.integers(0, 2)) == 0:
            for edit in data.draw(edits([row.id for row in chat.history()], max_size=1)):
                with suppress(BadEdit):
                    chat.edit(edit)
            with suppress(BadInput):  # There may be nothing to send yet.
                view = chat.prepare()
                assert check(view, chat._agent.profile) == []
                assert check_body(chat.format.name, chat.format.body(view, profile=chat._agent.profile)) == []
    rows = chat.history()
    own = [message for row in rows if (message := own_message(row.message, row.stamp)) is not None]
    assert own == accepted
    for row in rows:
        if row.stamp.retention:
            assert len(row.stamp.retention.parts) == len(retained_parts(row.message))
    assert chat.journal.verify() == []
    again = opened(*plugins, provider=provider, store=store, policy=(filter_tool_results(keep=2),))
    assert [entry.message for entry in again.view] == [entry.message for entry in chat.view]


# ------------------------------------------------------------------------------------------------------------- settings


def later_view(**options: Any) -> list[str]:
    """Return the view of the first input at the second call; the plugin asked for at most one later call."""
    chat = opened(Screen(save=0), **options)
    chat.append("One.")
    chat.prepare()
    chat.record(say("Yes."))
    return parts(next(iter(chat.prepare())).message)


@pytest.mark.parametrize("policy", [None, "none", "prune", "retain", "keep-last-3", (), [lambda view: ()]])
def test_plugin_texts_leave_on_time_under_any_policy(policy: Any):
    assert later_view(policy=policy) == ["One."]


@pytest.mark.parametrize("handle", ["m1", "m3"])
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("reopens", [False, True])
def test_conversation_goes_on_after_an_enriched_message_is_erased(handle: str, provider: str, reopens: bool):
    """An erased message has no parts, and still the stamp with their retention."""
    store = MemoryStore()
    chat = opened(Screen(save=2), provider=provider, store=store)
    chat.append(user("What is there?"))
    chat.prompt()
    chat.record(call("c1", "look"))
    chat.append(answer("c1", "A lamp."))
    chat.prompt()
    chat.record(say("A lamp."))
    chat.privacy.erase(handle)
    if reopens:
        chat = opened(Screen(save=2), provider=provider, store=store)
    for word in ("And now?", "And then?", "And last?"):
        chat.append(user(word))
        assert word in str(sent(chat)[-1])
        chat.record(say("Nothing."))


def test_plugin_text_stays_with_everything_automatic_off():
    assert later_view(policy="off") == ["One.", HEADER, "shot 1"]


def test_retain_policy_of_the_program_is_not_doubled():
    assert later_view(policy=[retain_blocks(plugins={"screen": PluginRetention(save=3)})]) == ["One.", HEADER, "shot 1"]


def test_settings_file_chooses_what_is_kept_of_a_plugin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "foveate.toml").write_text("[retain.plugins.screen]\nsave = 3\n")
    assert later_view(policy=None) == ["One.", HEADER, "shot 1"]
    assert later_view(policy="prune") == ["One.", HEADER, "shot 1"]
    (tmp_path / "foveate.toml").write_text("[retain.plugins.screen]\ndisplay = false\nsave = true\n")
    assert later_view(policy="prune") == ["One.", HEADER, "shot 1"]
    (tmp_path / "foveate.toml").write_text("[retain]\nenabled = false\n")
    assert later_view(policy="prune") == ["One.", HEADER, "shot 1"]
    (tmp_path / "foveate.toml").write_text("[retain.plugins.screen]\nsave = -3\n")
    with pytest.raises(BadSetting, match="0 or more"):
        later_view(policy="prune")


# --------------------------------------------------------------------------------------------------------------- async


def test_async_conversation_runs_async_and_sync_plugins():
    async def run() -> list[tuple[str, list[str]]]:
        chat = await open_async_conversation(
            "c", window=9_000, plugins=[Screen("slow", waits), Screen(), Screen("bad", raises)]
        )
        await chat.append("Go.")
        await chat.prompt()
        await chat.record(call("t1"))
        await chat.append(answer("t1", "ok"))
        await chat.prompt()
        await chat.prompt()
        return [(row.stamp.origin, parts(row.message)) for row in await chat.history()]

    slow = "\n### PLUGIN slow CONTEXT ###\n"
    assert asyncio.run(run()) == [
        ("user", ["Go.", slow, "awaited", "\n", HEADER, "shot 1", "\n"]),
        ("assistant", []),
        ("tool", []),
        ("plugin", [slow, "awaited", "\n", HEADER, "shot 2", "\n"]),
    ]


@pytest.mark.parametrize("patience", [0.0, 0.001, 0.01, 0.05])
def test_cancelled_append_leaves_nothing_behind(patience: float):
    async def hangs(content: object) -> list[AdditionalContent]:
        if hanging:
            await asyncio.Event().wait()
        return [AdditionalContent("shot")]

    async def run() -> list[list[str]]:
        chat = await open_async_conversation("c", window=9_000, plugins=[Screen(says=hangs)])
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(chat.append("Go."), patience)
        hanging.clear()
        await chat.append("Go.")
        return [parts(row.message) for row in await chat.history()]

    hanging = [True]
    assert asyncio.run(run()) == [["Go.", HEADER, "shot", "\n"]]


# -------------------------------------------------------------------------------------------- plugins made of functions


def times(chat: Conversation) -> list[tuple[str, bool, int | None]]:
    """Return for each part of the newest message its text, whether it is shown now, and its number of later calls."""
    row = chat.history()[-1]
    assert row.stamp.retention is not None
    return [
        (text, one.shown, one.calls) for text, one in zip(parts(row.message), row.stamp.retention.parts, strict=True)
    ]


@pytest.mark.parametrize(
    "says",
    [
        returns("shot"),
        returns(["shot"]),
        returns((Text("shot"),)),
        returns(Text("shot")),
        lambda content: iter(["shot"]),
        returns(AdditionalContent("shot")),
    ],
)
def test_text_of_a_plugin_shows_at_the_coming_call_only(says: Any):
    chat = opened(Screen(says=says))
    chat.append("Go.")
    assert times(chat) == [("Go.", True, None), (HEADER, True, 0), ("shot", True, 0), ("\n", True, 0)]


def test_plugin_function_declares_once_how_long_its_texts_show():
    asked: list[object] = []

    @plugin
    def clock(content: object) -> str:
        asked.append(content)
        return "noon"

    @plugin(name="screen", save=2, after_tools=True)
    def page(content: object) -> list[str | AdditionalContent]:
        return ["Prices", AdditionalContent("no", False, True)]

    chat = opened(clock, page)
    chat.append([user("Go."), call("c", "look"), answer("c")])
    chat.prepare()
    assert times(chat) == [
        (HEADER, True, None),
        ("Prices", True, 2),
        ("\n", True, 2),
        ("no", False, None),
        ("\n", False, None),
    ]
    assert asked == []
    chat.append("And now?")
    assert asked == [(Text("And now?"),)]
    assert parts(chat.history()[-1].message)[1:4] == ["\n### PLUGIN clock CONTEXT ###\n", "noon", "\n"]


def test_plugin_function_may_be_async():
    @plugin(save=True)
    async def slow(content: object) -> str:
        await asyncio.sleep(0)
        return "at last"

    async def main() -> list[str]:
        async with await open_async_conversation("c", window=100_000, policy="none", plugins=[slow]) as chat:
            await chat.append("Go.")
            return parts((await chat.history())[0].message)

    assert asyncio.run(main())[2:] == ["at last", "\n"]


def test_policies_of_a_plugin_run_first_unless_all_is_off():
    pinning = plugin(name="list", policies=[pin_newest(["todo"])])(lambda content: None)
    messages = [user("Go."), call("a", "todo"), answer("a", "x" * 900), call("b", "look"), answer("b", "y" * 900)]
    seen = {}
    for policy in ("keep-last-1", [filter_tool_results(keep=1)], "off"):
        chat = opened(pinning, policy=policy)
        chat.append(messages)
        seen[str(policy)[:4]] = [
            (entry.handle, len(entry.message.text)) for entry in chat.prepare() if entry.is_pinned()
        ]
    assert seen == {"keep": [("m2", 0), ("m3", 900)], "[_Fi": [("m2", 0), ("m3", 900)], "off": []}


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: plugin(save="2"), "save_to_history="),
        (lambda: plugin(save=2**64), "save_to_history= must be at most"),
        (lambda: plugin(after_tools=1), "after_tools="),
        (lambda: plugin(name=" ")(returns("x")), "A plugin has a name"),
        (lambda: plugin("x"), "The argument of plugin()"),
        (lambda: plugin(name="x", policies=["prune"])(returns("x")), "The policies of the plugin x"),
    ],
)
def test_invalid_plugin_is_refused_when_made(make: Callable[[], object], why: str):
    with pytest.raises(BadSetting, match=re.escape(why)):
        make()
