"""State machine: any calls of `expand` and any other events; each request is legal, and nothing is lost."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from foveate import Text
from foveate.edits import Hide, Replace, Span, Summarize, Target
from foveate.errors import BadEdit
from foveate.stores.memory import MemoryStore
from foveate.testing import BodyChecker, answer, call, calls, say, user

from .expand_requests import LOG, ROWS, SHORT, TOOLS
from .shells import opened, shown, texts

HANDLES = st.integers(1, 20).map("m{}".format) | st.tuples(st.integers(1, 9), st.integers(1, 9)).map(
    lambda ends: f"m{min(ends)}-m{max(ends)}"
)
ARGUMENTS = st.one_of(
    st.fixed_dictionaries({"handle": HANDLES}),
    st.fixed_dictionaries({"handle": HANDLES, "lines": st.sampled_from(["1-3", "-2", "97", "400-"])}),
    st.fixed_dictionaries({"handle": HANDLES, "items": st.sampled_from(["1-3", "-2", "99"])}),
    st.fixed_dictionaries({"handle": HANDLES, "pattern": st.sampled_from(["ERROR", "customer 1", "(", "nothing"])}),
    st.fixed_dictionaries({"search": st.sampled_from(["disk full", "customer", "nothing"])}),
    st.fixed_dictionaries({"messageIndex": st.integers(-1, 20)}),
)


@given(
    data=st.data(),
    provider=st.sampled_from(["openai", "anthropic"]),
    policy=st.sampled_from(["none", "keep-last-1", "prune", "balanced", "expire"]),
    where=st.sampled_from(["auto", "view", "tail"]),
)
def test_any_sequence_with_expansions_is_legal_and_reopens_equal(data, provider, policy, where):
    store = MemoryStore()

    def open_it() -> object:
        return opened(provider=provider, policy=policy, expand=True, expand_where=where, store=store, window=12_000)

    chat = open_it()
    chat.append(user("go"))
    said: list[str] = []
    for number in range(data.draw(st.integers(1, 9))):
        match data.draw(st.sampled_from(["look", "expand", "both", "say", "edit", "undo", "reopen"])):
            case "look":
                chat.record(call(f"l{number}", "look"))
                said.append(data.draw(st.sampled_from([LOG, ROWS, SHORT])))
                chat.append(answer(f"l{number}", said[-1]))
            case "expand":
                chat.record(calls(*(call(f"e{number}_{n}", "expand", **data.draw(ARGUMENTS)) for n in range(2))))
            case "both":
                chat.record(calls(call(f"e{number}", "expand", **data.draw(ARGUMENTS)), call(f"l{number}", "look")))
                assert [one.call_id for one in chat.open_calls()] == [f"l{number}"]
                if data.draw(st.booleans()):
                    said.append(SHORT)
                    chat.append(answer(f"l{number}", SHORT))
            case "say":
                chat.record(say("Yes."))
                chat.append(user("And then?"))
            case "edit":
                ids = [row.id for row in chat.history()]
                first = data.draw(st.integers(0, len(ids) - 1))
                last = data.draw(st.integers(first, len(ids) - 1))
                made = data.draw(st.sampled_from(["replace", "kept", "hide", "sum"]))
                edit = {
                    "replace": Replace(Target(ids[first]), (Text("[short]"),)),
                    "kept": Replace(Target(ids[first]), (Text("[kept back]"),), expandable=False),
                    "hide": Hide(Target(ids[first])),
                    "sum": Summarize(Span(ids[first], ids[last]), "They did things."),
                }[made]
                try:
                    chat.edit(edit)
                except BadEdit:
                    continue
            case "undo":
                if receipts := chat.journal.receipts():
                    try:
                        chat.undo(data.draw(st.sampled_from(receipts)))
                    except BadEdit:
                        continue
            case "reopen":
                chat = open_it()
        chat.prepare(tools=TOOLS)
        assert BodyChecker(provider).check(json.loads(chat.body(tools=TOOLS))) == []
    assert chat.journal.verify() == []
    assert shown(open_it().view) == shown(chat.view)
    assert [row.message.text for row in chat.history() if row.stamp.origin == "tool"] == said
    failed = [text for text in texts(chat.view) if "It failed:" in text]
    assert failed == []
