"""Edits that wait are saved with the view: the next process does not write their texts again."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from itertools import chain
from typing import Any

import pytest

from foveate import Conversation
from foveate.core import saved_views
from foveate.core.edits import Edit, Replace, Summarize, Target
from foveate.core.messages import Message, Text, ToolCall
from foveate.policies import deferral, digests, fold, folds, shrink_to_digest, supersede, superseded_results
from foveate.stores.memory import MemoryStore
from foveate.testing import answer, call, calls, user

from .test_saved_views import Rowwise, opened

CODE = "def step_{n}(path_{n}, limit_{n}):\n    return open_file(path_{n}).read({n})\n"


def talk(chat: Conversation, first: int = 0, last: int = 40) -> None:
    """Take turns with texts that become digests, folds and placeholders."""
    for n in range(first, last):
        chat.append(user(f"Look into {n}, then into limit_{n + 6}."))
        for step in range(3):
            read = call(f"c{n}.{step}", "read_file", path=f"src/file_{(n + step) % 9}.py")
            chat.record(calls(read, text=f"I look at part_{step} of it."))
            chat.append(answer(f"c{n}.{step}", CODE.format(n=n + step) * 40))


def policies(**settings: Any) -> list[Any]:
    return [
        supersede(placeholder="[Gone: {by} {about}]"),
        fold(protect=900, stretch=300, **{"min_share": 0, **settings}),
        shrink_to_digest(protect=900, protect_reads=900, least=200),
    ]


def wanted(chat: Conversation, using: list[Any]) -> list[list[Edit]]:
    """Return the edits that each policy wants, which are not made."""
    return [list(policy(chat.view)) for policy in using]


def written_texts(edits: list[list[Edit]]) -> list[str]:
    """Return the texts that edits show."""
    texts = []
    for edit in chain(*edits):
        match edit:
            case Summarize(text=text):
                texts.append(text)
            case Replace(content=content):
                texts += [part.text for part in content if isinstance(part, Text)]
            case _:
                pytest.fail(f"No policy makes {edit!r}.")
    return texts


def counter(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return a function that returns how many texts were written since the last call."""
    written: list[object] = []

    def count(owner: Any, name: str) -> None:
        write = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args, **options: written.append(name) or write(*args, **options))

    count(digests, "digest")
    count(folds.StepWriter, "add")
    count(superseded_results, "replacement")

    def since() -> int:
        number = len(written)
        written.clear()
        return number

    return since


def saved(using: list[Any], turns: int = 40) -> tuple[MemoryStore, list[list[Edit]]]:
    """Return a store with a saved view, and the edits that waited."""
    store = MemoryStore()
    chat = opened(store)
    chat.append("Begin.")
    talk(chat, 0, turns)
    edits = wanted(chat, using)
    chat._agent.save_snapshot()
    return store, edits


def test_texts_of_waiting_edits_are_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    written = counter(monkeypatch)
    store, edits = saved(policies())
    assert all(edits)
    assert written() > 100
    assert wanted(opened(store), policies()) == edits
    assert written() == 0
    assert wanted(opened(Rowwise(store)), policies()) == edits
    assert written() > 100


def test_edits_are_the_same_after_further_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    written = counter(monkeypatch)
    store, _ = saved(policies())
    written()
    again = opened(store)
    using = policies()
    for n in range(40, 43):
        talk(again, n, n + 1)
        edits = wanted(again, using)
        assert 0 < written() < 30
        assert edits == wanted(opened(Rowwise(store)), policies())
        written()


def test_edits_are_the_same_after_an_edit_of_an_early_entry() -> None:
    """It changes the names that all folds behind it may leave out."""
    store, before = saved(policies())
    for at in (1, 8, 15):
        again = opened(store)
        again.edit(Replace(Target(again.history()[at].id, (0,)), (Text("step_20(path_20): see open_file, limit_21"),)))
        edits = wanted(again, policies())
        assert edits == wanted(opened(Rowwise(store)), policies())
        assert edits != before
        again.undo()


def test_edits_of_a_view_that_was_restored_twice_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    written = counter(monkeypatch)
    store, edits = saved(policies())
    chat = opened(store)
    talk(chat, 40, 41)
    more = wanted(chat, policies())
    chat._agent.save_snapshot()
    written()
    assert wanted(opened(store), policies()) == more
    assert written() == 0
    assert more != edits


@pytest.mark.parametrize(
    "using",
    [
        lambda: [supersede(placeholder="[Replaced by {by}]")],
        lambda: [fold(protect=900, stretch=300, min_share=0, framing="In short:\n{steps}")],
        lambda: [fold(protect=900, stretch=300, min_share=0.99)],
        lambda: [shrink_to_digest(protect=900, protect_reads=900, least=200, share=0.4)],
        lambda: [shrink_to_digest(protect=900, protect_reads=900, least=5_000)],
    ],
)
def test_edits_of_other_settings_are_not_used(using: Callable[[], list[Any]]) -> None:
    store, edits = saved(policies())
    assert (other := wanted(opened(store), using())) == wanted(opened(Rowwise(store)), using())
    assert other[0] not in edits


def test_edits_have_the_reason_of_the_newest_plan() -> None:
    store, before = saved([shrink_to_digest(protect=900, protect_reads=900, least=200)])
    using = [shrink_to_digest(protect=901, protect_reads=901, least=200)]
    edits = wanted(opened(store), using)
    assert {edit.reason for edit in edits[0]} == {"older than the newest 901 tokens"}
    assert written_texts(edits) == written_texts(before)


def test_placeholder_names_the_newest_change_of_the_file() -> None:
    store = MemoryStore()
    chat = opened(store)
    chat.append("Begin.")
    for n, tool in enumerate(["read_file", "write_file"]):
        chat.record(call(f"c{n}", tool, path="x.py"))
        chat.append(answer(f"c{n}", "a line of it\n" * 60))
    before = wanted(chat, [supersede(grace=0)])
    chat._agent.save_snapshot()
    again = opened(store)
    again.record(call("c2", "write_file", path="x.py"))
    again.append(answer("c2", "Done."))
    edits = wanted(again, [supersede(grace=0)])
    assert edits == wanted(opened(Rowwise(store)), [supersede(grace=0)])
    assert ["m7" in repr(some) for some in (before, edits)] == [False, True]


def test_digest_with_half_of_a_surrogate_pair_does_not_stop_a_save() -> None:
    """Arguments may have it as an escape, and their short form as a character."""
    store = MemoryStore()
    chat = opened(store)
    chat.append("Begin.")
    half = '{"text": "' + "a \\ud83d few_words of it\\n" * 90 + '"}'
    chat.record(Message("assistant", (ToolCall("c", "write", half),)))
    chat.append(answer("c", "Done."))
    talk(chat, 0, 10)
    using = [shrink_to_digest(protect_said=0)]
    edits = wanted(chat, using)
    chat._agent.save_snapshot()
    assert any("\ud83d" in text for text in written_texts(edits))
    assert wanted(opened(store), [shrink_to_digest(protect_said=0)]) == edits


def test_first_plan_of_the_default_policy_writes_few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """It also reads no message again to measure what an edit of it saves."""
    written, measured = counter(monkeypatch), list[object]()
    count = deferral.tokens_of
    monkeypatch.setattr(deferral, "tokens_of", lambda message: measured.append(message) or count(message))
    store = MemoryStore()
    chat = opened(store, policy="balanced", window=200_000)
    chat.append("Begin.")
    for n in range(40):
        talk(chat, n, n + 1)
        chat.prepare()
    before = chat.body()
    chat._agent.save_snapshot()
    written()
    counts = []
    for each in (store, Rowwise(store)):
        measured.clear()
        assert opened(each, policy="balanced", window=200_000).body() == before
        counts.append((written(), len(measured)))
    (texts, messages), (all_texts, all_messages) = counts
    assert texts == 0 < all_texts
    assert messages <= all_messages / 2


GOLDEN = {2: "0b99602e48ecc620", 3: "0b99602e48ecc620", 4: "0b99602e48ecc620", 5: "0b99602e48ecc620"}
GOLDEN[6] = GOLDEN[5]
"""For each version of the blob: a hash of edits of the policies above."""


def test_version_is_raised_when_the_same_entries_give_other_edits() -> None:
    """Edits of before would be used. If this fails, raise `saved_views.VERSION` and add the new hash."""
    _, edits = saved(policies(), 12)
    texts = written_texts(edits)
    assert blake2b(repr(texts).encode(), digest_size=8).hexdigest() == GOLDEN[saved_views.VERSION]
