"""Short ways to write a conversation down in a test, and to make a long one up.

Knows the message model and nothing else. What is made up depends on its arguments alone: the same call gives the same
text, word for word, on every computer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from random import Random

from msgspec.structs import replace

from ..core.messages import Media, Message, Reasoning, State, ToolCall, assistant, system, tool_result, user
from .made_up import Project, prose

__all__ = ["agent_run", "answer", "call", "calls", "chat", "say", "system", "text_of", "thought", "user"]


def chat(*said: Message | Iterable[Message]) -> list[Message]:
    """A conversation, message by message; a list among them is taken as its messages.

    >>> [message.role for message in chat(user("hi"), call("a"), answer("a", "ok"), say("done"))]
    ['user', 'assistant', 'tool', 'assistant']
    """
    flat: list[Message] = []
    for one in said:
        if isinstance(one, Message):
            flat.append(one)
        else:
            flat.extend(one)
    return flat


def say(text: str) -> Message:
    """The assistant says something."""
    return assistant(text)


def call(call_id: str, name: str = "tool", /, **arguments: object) -> Message:
    """The assistant calls one tool and says nothing."""
    written = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return assistant("", ToolCall(call_id, name, written))


def calls(*asked: str | Message, text: str = "") -> Message:
    """The assistant calls several tools at once: ids for plain calls, or messages made by `call`.

    >>> [one.name for one in calls("a", call("b", "grep", pattern="def"), text="Both.").calls]
    ['tool', 'grep']
    """
    made = [call(one) if isinstance(one, str) else one for one in asked]
    return assistant(text, *(one for message in made for one in message.calls))


def answer(call_id: str, text: str = "ok", *media: Media, state: State = "ok", name: str = "") -> Message:
    """A tool answers one call."""
    return tool_result(call_id, text, *media, state=state, name=name)


def thought(text: str, message: Message, *, signature: str = "c2lnbmF0dXJl", format: str = "anthropic") -> Message:
    """The same message of the assistant, after some thinking, signed by the provider named."""
    return replace(message, parts=(Reasoning(text, signature, format=format), *message.parts))


def text_of(tokens: int, seed: int = 0) -> str:
    """Readable text, with identifiers in it, that counts exactly `tokens` at four characters each."""
    length, random = 4 * tokens, Random(seed)
    pieces: list[str] = []
    have = 0
    while have < length:
        pieces.append(prose(random, 2_000))
        have += len(pieces[-1])
    # The last character is a full stop, so that no trimming of white space ever changes the count.
    return "".join(pieces)[: length - 1] + "." if length else ""


def agent_run(turns: int, seed: int = 0, *, result_chars: tuple[int, int] = (200, 6_000)) -> list[Message]:
    """A made-up conversation of a coding agent in which the model is called `turns` times.

    It begins with the user's request and ends with the assistant's last answer. The agent lists, searches, reads, edits
    and tests the files of one made-up project, sometimes with two or three calls at once; what it calls for, it has
    seen in an earlier result. Results have at most the second of `result_chars` characters, and about the first at
    least where there is so much to show; small ones are more frequent than large ones. Every call is answered.
    """
    random = Random(seed)
    project = Project(random)
    said = [user(project.request(random))]
    number = 0
    for turn in range(1, turns + 1):
        if turn == turns:
            said.append(say(project.report(random)))
        elif random.random() < 0.06:
            said += [say(project.report(random)), user(project.request(random))]
        else:
            steps = [project.step(random, result_chars) for _ in range(random.choice((1, 1, 1, 1, 2, 3)))]
            asked = [call(f"call_{seed}_{number + i}", step.tool, **step.arguments) for i, step in enumerate(steps)]
            said.append(calls(*asked, text=project.remark(random) if random.random() < 0.5 else ""))
            for step in steps:
                said.append(answer(f"call_{seed}_{number}", step.result, state=step.state))
                number += 1
    return said
