"""Views are values: a program may copy them, and pickle them for another process."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foveate import BadInput, Conversation, Text, View, open_conversation
from foveate.core.originals import Original
from foveate.core.planner import Plan
from foveate.core.summaries import Answer
from foveate.edits import Replace, Target
from foveate.formats import get_format
from foveate.policies import compact_on_overflow
from foveate.stores.memory import MemoryStore
from foveate.testing import answer, call, say, user

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


@pytest.mark.parametrize("copied", [lambda plan: pickle.loads(pickle.dumps(plan)), copy.deepcopy])
@pytest.mark.parametrize("store", ["memory:", "sqlite"])
def test_a_plan_with_an_open_summary_can_be_copied(store: str, copied: Callable[[Plan], Plan], tmp_path: Path):
    """Jobs carry plans between processes."""
    url = f"sqlite:///{tmp_path}/a.db" if store == "sqlite" else store
    options: dict[str, Any] = {"policy": compact_on_overflow(), "summarizer": lambda request: "They talk."}
    with open_conversation("c", store=url, format="openai", window=4_000, **options) as chat:
        for _ in range(20):
            chat.append([user("Go on. " * 60), say("Yes. " * 60)])
        plan = chat.plan()
        other = copied(plan)
        assert plan.requests
        assert (str(other), other.edits, other.requests) == (str(plan), plan.edits, plan.requests)
        assert [open_request.is_due for open_request in other.open_requests] == [True]
        for mine, yours in ((plan.before, other.before), (plan.after, other.after)):
            assert [entry.message for entry in mine] == [entry.message for entry in yours]


def test_a_plan_from_another_process_cannot_be_continued():
    with open_conversation(
        "c", format="openai", window=4_000, policy=compact_on_overflow(), summarizer=lambda request: "S."
    ) as chat:
        for _ in range(20):
            chat.append([user("Go on. " * 60), say("Yes. " * 60)])
        (question,) = pickle.loads(pickle.dumps(chat.plan())).open_requests
    with pytest.raises(BadInput, match=r"Plan again in the conversation\."):
        question.needs.then(Answer("They talk."))
