"""Builders of short conversations for tests, and a generator of long ones.

Generated text depends only on its arguments: the same call returns the same text on every computer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from random import Random

from msgspec.structs import replace

from ..core.messages import Media, Message, Reasoning, ResultState, ToolCall, assistant, system, tool_result, user
from .sample_project import Project, prose

__all__ = ["agent_run", "answer", "call", "calls", "chat", "say", "system", "text_of", "thought", "user"]


def chat(*messages: Message | Iterable[Message]) -> list[Message]:
    """Return the messages as item list; the items may be messages or lists of messages.

    >>> [message.role for message in chat(user("hi"), call("a"), answer("a", "ok"), say("done"))]
    ['user', 'assistant', 'tool', 'assistant']
    """
    flat: list[Message] = []
    for item in messages:
        if isinstance(item, Message):
            flat.append(item)
        else:
            flat.extend(item)
    return flat


def say(text: str) -> Message:
    """Return an assistant's text."""
    return assistant(text)


def call(call_id: str, name: str = "tool", /, **arguments: object) -> Message:
    """Return an assistant's message with one tool call and no text."""
    written = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return assistant("", ToolCall(call_id, name, written))


def calls(*items: str | Message, text: str = "") -> Message:
    """Return an assistant's message with several calls: ids of plain calls, or messages of `call`.

    >>> [part.name for part in calls("a", call("b", "grep", pattern="def"), text="Both.").calls]
    ['tool', 'grep']
    """
    messages = [call(item) if isinstance(item, str) else item for item in items]
    return assistant(text, *(part for message in messages for part in message.calls))


def answer(call_id: str, text: str = "ok", *media: Media, state: ResultState = "ok", name: str = "") -> Message:
    """Return the result of the call with this id: see `foveate.tool_result`."""
    return tool_result(call_id, text, *media, state=state, name=name)


def thought(text: str, message: Message, *, signature: str = "c2lnbmF0dXJl", format: str = "anthropic") -> Message:
    """Return the assistant's message with signed reasoning of a provider before it."""
    return replace(message, parts=(Reasoning(text, signature, format=format), *message.parts))


def text_of(tokens: int, seed: int = 0) -> str:
    """Return readable text with identifiers that counts exactly `tokens` at four characters each."""
    length, random = 4 * tokens, Random(seed)
    pieces: list[str] = []
    have = 0
    while have < length:
        pieces.append(prose(random, 2_000))
        have += len(pieces[-1])
    # The last character is a full stop, so trimming white space never changes the count.
    return "".join(pieces)[: length - 1] + "." if length else ""


def agent_run(turns: int, seed: int = 0, *, result_chars: tuple[int, int] = (200, 6_000)) -> list[Message]:
    """Return a generated conversation of a coding agent with `turns` model calls.

    It begins with the user's request and ends with the assistant's last answer. The agent lists, searches, reads, edits
    and tests the files of one generated project, sometimes with two or three calls at once. It uses only files and
    lines that earlier results showed. Results have at most the second of `result_chars` characters, and about the first
    at least if there is enough content; small results are more frequent than large ones. Every call has an answer.
    """
    random = Random(seed)
    project = Project(random)
    messages = [user(project.request(random))]
    number = 0
    for turn in range(1, turns + 1):
        if turn == turns:
            messages.append(say(project.report(random)))
        elif random.random() < 0.06:
            messages += [say(project.report(random)), user(project.request(random))]
        else:
            steps = [project.step(random, result_chars) for _ in range(random.choice((1, 1, 1, 1, 2, 3)))]
            requests = [call(f"call_{seed}_{number + i}", step.tool, **step.arguments) for i, step in enumerate(steps)]
            messages.append(calls(*requests, text=project.remark(random) if random.random() < 0.5 else ""))
            for step in steps:
                messages.append(answer(f"call_{seed}_{number}", step.result, state=step.state))
                number += 1
    return messages
