"""`apply_plan()`: a dry run that is committed without a model call."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from foveate import Conversation, open_async_conversation, open_conversation
from foveate.edits import Task
from foveate.errors import ConflictError, DoesNotFit
from foveate.policies import compact_on_overflow
from foveate.testing import answer, call, say, text_of, user
from foveate.testing.stubs import ScriptedSummarizer

WINDOW = 8_000


def worked(chat: Any, results: int = 12, size: int = 900) -> Any:
    """Append a question and many large tool results."""
    messages: list[Any] = [user("Read the files.")]
    for number in range(results):
        messages += [call(f"c{number}", path=f"f{number}"), answer(f"c{number}", text_of(size, number))]
    return chat.append([*messages, say("I read them."), user("And now?")])


def looks(view: Any) -> list[object]:
    return [(entry.position, entry.message) for entry in view]


def test_applied_plan_gives_the_view_of_the_dry_run():
    chat = open_conversation("a", window=WINDOW, policy="prune")
    worked(chat)
    plan = chat.plan()
    (receipt,) = chat.apply_plan()
    assert plan.edits
    assert len(receipt.edits) == len(plan.edits)
    assert (receipt.author, receipt.tokens_after) == ("plan", plan.after.tokens)
    assert looks(chat.view) == looks(plan.after)
    assert chat.apply_plan() == ()  # There is nothing more to do.


def test_prompt_after_an_applied_plan_is_that_without_it():
    applied, plain = (open_conversation(name, window=WINDOW, policy="prune") for name in ("a", "b"))
    for chat in (applied, plain):
        worked(chat)
    applied.apply_plan()
    assert applied.prompt() == plain.prompt()
    assert applied.journal.receipts()[0].turn == plain.journal.receipts()[0].turn


def test_applied_plan_begins_no_model_call():
    """A call without its answer is not noted as interrupted: its tool may still run."""
    chat = open_conversation("a", window=WINDOW, policy="prune")
    worked(chat)
    chat.append(call("running"))
    turn = chat.view.turn
    chat.apply_plan()
    assert chat.view.turn == turn
    assert not any(isinstance(edit, Task) for record in chat.journal.records() for edit in record.edits)


def test_applied_plan_writes_the_summaries_that_it_needs():
    asked = ScriptedSummarizer(["They read files."])
    chat = open_conversation("a", window=WINDOW, policy=compact_on_overflow(), summarizer=asked)
    chat.append([made for n in range(14) for made in (user(f"Q{n} {text_of(300, n)}"), say(text_of(300, n + 50)))])
    chat.append(user("And now?"))
    assert chat.plan().requests
    receipts = chat.apply_plan()
    assert any("They read files." in entry.message.text for entry in chat.view)
    assert sum(receipt.tokens_saved for receipt in receipts) > 0


def test_plan_is_refused_after_another_writer_changed_the_view(tmp_path: Path):
    chat, other = (stored(tmp_path) for _ in range(2))
    worked(chat)
    other.refresh()
    other.pin("m3")
    with pytest.raises(ConflictError):
        chat.apply_plan()
    assert [record.author for record in chat.journal.records()] == ["pin"]
    assert chat.apply_plan()  # It has read what the other writer did.


def test_plan_that_cannot_fit_changes_nothing():
    chat = open_conversation("a", window=WINDOW, policy="prune")
    chat.append(user(text_of(9_000)))
    with pytest.raises(DoesNotFit):
        chat.apply_plan()
    assert chat.journal.records() == []


def test_async_side_applies_a_plan():
    async def story() -> int:
        async with await open_async_conversation("a", window=WINDOW, policy="prune") as chat:
            await worked(chat)
            (receipt,) = await chat.apply_plan()
            return receipt.tokens_saved

    assert asyncio.run(story()) > 0


def stored(folder: Path) -> Conversation:
    return open_conversation("a", store=f"sqlite:///{folder}/chat.db", window=WINDOW, policy="prune")
