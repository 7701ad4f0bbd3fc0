"""Every mechanism, with numbers so small that it acts in a short conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from foveate import Conversation, Message, Policy, Text, open_conversation
from foveate.open import grouped
from foveate.policies import (
    checkpoint,
    compact_on_overflow,
    dedupe,
    expire_results,
    filter_tool_results,
    fold,
    pin_newest,
    prune_tool_outputs,
    recap_batches,
    retain_blocks,
    shrink_to_digest,
)
from foveate.ports import Database
from foveate.summarizers import SummaryRequest
from foveate.testing import answer, call, calls, say, user
from foveate.types import Lease, PartRetention

WINDOW = 100_000

MECHANISMS: Mapping[str, Callable[[], Policy]] = {
    "retain": retain_blocks,
    "expire": lambda: expire_results(default=Lease(2, "compact", "first_chars", 120)),
    "dedupe": lambda: dedupe(least=100, placeholder='[Same as {by}: expand("{handle}")]'),
    "pins": lambda: pin_newest(["todo"]),
    "prune": lambda: prune_tool_outputs(protect=120, minimum=60),
    "filter": lambda: filter_tool_results(keep=2),
    "fold": lambda: fold(protect=200, stretch=300),
    "shrink": lambda: shrink_to_digest(protect=120, protect_reads=120, protect_said=120, least=240),
    "recap": lambda: recap_batches(min_preserved_assistant_messages=2, batch_size=2),
    "checkpoint": lambda: checkpoint(trigger_at=14, keep_recent=6),
    "compact": lambda: compact_on_overflow(threshold=0.004, min_progress=0.02),
}


def summarizer(request: SummaryRequest) -> str:
    """A scripted model that returns the size and a hash of its input."""
    size = sum(len(message.text) for message in request.messages)
    return f"{len(request.messages)} messages, {size} characters, after {len(request.previous)} characters."


def opened(*names: str, store: str | Database = "memory:", provider: str = "openai", **options: Any) -> Conversation:
    """Open a conversation with these mechanisms, whose clock ticks at each look."""
    ticks = iter(range(1, 10**9))
    options.setdefault("window", WINDOW)
    options.setdefault("summarizer", summarizer)
    policy = tuple(MECHANISMS[name]() for name in names) or "none"
    return open_conversation(
        "c", store=store, format=provider, policy=policy, **grouped({"clock": lambda: next(ticks), **options})
    )


def told(chat: Conversation, messages: list[Message], *, every_turn: bool = True) -> Conversation:
    """Append these messages; each message of the assistant is recorded after a plan."""
    for message in messages:
        if len(message.parts) == 3 and message.role == "user":  # The user's text, and the content of two plugins.
            chat.append(message, kept=[PartRetention(), PartRetention(True, 0), PartRetention(False, 2)])
        elif message.role == "assistant":
            if every_turn:
                chat.prepare()
            chat.record(message) if every_turn else chat.append(message)
        else:
            chat.append(message)
    return chat


def story(steps: int = 12) -> list[Message]:
    """Messages that make every mechanism act: requests, recaps, parallel calls, long and short results."""
    messages: list[Message] = [user("Build the parser. Never touch main.py.")]
    messages.append(Message("user", (Text("Here."), Text("It is noon."), Text("The tests were red at noon."))))
    for n in range(steps):
        if n % 4 == 0:
            messages += [call(f"t{n}", "todo"), answer(f"t{n}", f"[x] step {n}\n[ ] the rest\n" * 5)]
        if n % 4 == 3:
            messages += [
                say(f"recap - step {n} is done\n" + f"At length, about step {n}. " * 12),
                user(f"Now part {n}."),
            ]
        elif n % 4 == 2:
            messages += [calls(f"a{n}", f"b{n}", text=f"recap - looked at {n}")]
            messages += [answer(f"a{n}", f"{n} lines of a.\n" * 40), answer(f"b{n}", "Nothing to commit. " * 8)]
        else:
            messages += [calls(f"c{n}"), answer(f"c{n}", f"what c{n} found: {'x' * (40 * n + 200)}")]
    return messages
