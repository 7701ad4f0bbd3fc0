"""Names that a summary must contain because later messages use them."""

from __future__ import annotations

from conversation.shells import opened, texts
from core.story import Story

from foveate.core.view import Entry
from foveate.edits import Summarize
from foveate.policies import checkpoint, compact_on_overflow
from foveate.policies.names import names_needed_later
from foveate.testing import answer, call, say, system, user
from foveate.testing.stubs import ScriptedSummarizer


def entries(*messages: object) -> tuple[Entry, ...]:
    return Story(*messages).projection.entries()  # type: ignore[arg-type]


def test_needed_names_are_sorted_by_use():
    view = entries(
        user("Look at src/a.py and src/b.py; KEY_77 is old."),
        say("src/c.py too."),
        say("I read src/a.py now."),
        call("x", "read", path="src/c.py"),
        answer("x", "src/b.py is imported here"),
        user("And KEY_77 of never/seen.py?"),
    )
    assert names_needed_later(view[:2], view, 4_000) == ("KEY_77", "src/c.py", "src/a.py")


def test_results_and_system_prompts_are_no_references():
    view = entries(
        system("Mind src/a.py."), user("See src/a.py."), call("x", "ls"), answer("x", "src/a.py"), user("So?")
    )
    assert names_needed_later(view[1:2], view, 4_000) == ()


def test_needed_names_are_limited_to_twenty_and_an_eighth():
    many = " ".join(f"src/file_{n:02}.py" for n in range(50))
    view = entries(user(many), say("Hm."), user(many))
    assert len(names_needed_later(view[:2], view, 100_000)) == 20
    assert names_needed_later(view[:2], view, 8 * 40) == ("src/file_00.py", "src/file_01.py")
    assert names_needed_later(view[:2], view, 8) == ()


def talk(conversation: object, last: str = "And src/a.py?") -> None:
    messages = [
        edits for n in range(12) for edits in (user(f"Q{n} about src/a.py. " + "word " * 400), say("Well. " * 300))
    ]
    conversation.append([*messages, user(last)])  # type: ignore[attr-defined]


def test_missing_names_are_added_to_a_summary():
    """F25."""
    summarizer = ScriptedSummarizer(["We spoke."])
    conversation = opened(policy=(compact_on_overflow(),), summarizer=summarizer, window=11_000, reserve=1_000)
    talk(conversation)
    conversation.prepare()
    assert summarizer.requests[0].required == ("src/a.py",)
    (edit,) = [
        edit for receipt in conversation.journal.receipts() for edit in receipt.edits if isinstance(edit, Summarize)
    ]
    assert edit.text.endswith("\n\nWe spoke.\n\nStill referred to: src/a.py")


def test_a_bare_framing_adds_no_names():
    for policy in (
        compact_on_overflow(framing="{summary}"),
        checkpoint(trigger_at=10, keep_recent=5, template="Before: {summary}"),
    ):
        summarizer = ScriptedSummarizer(["We spoke."])
        conversation = opened(policy=(policy,), summarizer=summarizer, window=11_000, reserve=1_000)
        talk(conversation)
        conversation.prepare()
        assert summarizer.requests[0].required == ()
        assert texts(conversation.view)[0] in ("We spoke.", "Before: We spoke.")


def test_a_checkpoint_contains_the_needed_names():
    summarizer = ScriptedSummarizer(["We spoke."])
    conversation = opened(policy=(checkpoint(trigger_at=10, keep_recent=5),), summarizer=summarizer)
    talk(conversation)
    conversation.prepare()
    assert summarizer.requests[0].required == ("src/a.py",)
    assert texts(conversation.view)[0].endswith("We spoke.\n\nStill referred to: src/a.py")
