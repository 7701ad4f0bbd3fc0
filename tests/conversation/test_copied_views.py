"""Views are values: a program may copy them, and pickle them for another process."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from foveate import Conversation, Text, View
from foveate.core.originals import Original
from foveate.edits import Replace, Target
from foveate.formats import get_format
from foveate.stores.memory import MemoryStore
from foveate.testing import answer, call

from .test_saved_views import opened

COPIES = [copy.copy, copy.deepcopy, lambda view: pickle.loads(pickle.dumps(view))]


def filled(store: MemoryStore) -> Conversation:
    """Return a conversation in which policies shrank and folded, and released originals from memory."""
    chat = opened(store, policy="balanced", window=16_000)
    chat.append("Which log has an error?")
    for n in range(20):
        chat.prepare()
        chat.record(call(f"c{n}", "read_log", number=n))
        chat.append(answer(f"c{n}", "".join(f"log {n}, line {line}: all is well\n" for line in range(150))))
    chat.pin("m3")
    chat._agent.save_snapshot()
    return chat


@pytest.mark.parametrize("copied", COPIES, ids=["copy", "deepcopy", "pickle"])
def test_copy_of_a_view_shows_the_same(copied: Callable[[View], View]):
    chat = filled(MemoryStore())
    view = chat.prepare()
    again, format = copied(view), get_format("openai")
    profile = chat._agent.profile
    assert format.body(again, profile=profile) == format.body(view, profile=profile)
    assert [(entry.handle, entry.kind, entry.source, entry.pins, entry.edits) for entry in again] == [
        (entry.handle, entry.kind, entry.source, entry.pins, entry.edits) for entry in view
    ]
    assert str(again) == str(view)
    assert [again.index_of(entry.id) for entry in again] == list(range(len(view)))


def test_pickled_view_needs_no_store():
    store = MemoryStore()
    chat = opened(store)
    chat.append("Begin.")
    chat.record(call("a", "read_log"))
    chat.append(answer("a", "a long line of the log\n" * 200))
    chat.edit(Replace(Target(chat.history()[2].id, (0, 0)), (Text("[short]"),)))
    chat._agent.save_snapshot()
    view = chat.view
    (entry,) = [entry for entry in view if isinstance(entry.appended, Original)]
    content = pickle.dumps(view)
    chat.privacy.erase("m3")
    (again,) = [other for other in pickle.loads(content) if other.handle == entry.handle]
    assert again.source.text == "a long line of the log\n" * 200
    assert again.message == entry.message
