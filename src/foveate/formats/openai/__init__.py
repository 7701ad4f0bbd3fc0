"""OpenAI's chat completions, both ways; also what the many servers speak that are compatible with it. No SDK is
imported.

How a wire message is read is in `_openai_read.py`, how one is written in `_openai_write.py`; here they become the
`Format` of one conversation.

Not carried by this format: the error state of a result, signatures and encrypted reasoning, reasoning of other
providers, media inside tool results (they follow in a user message), the order of calls and text (text comes first),
and a result without content (it comes back as an empty text).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...core.messages import Message
from ...core.profiles import Profile
from ...core.stamps import Stop, Usage
from ...core.view import View
from ...ports import Rendered
from ..blocks import items, plain, string
from ..json import encode, fresh
from ..memo import Memo
from ..stops import openai_stop
from ..tools import for_openai
from .read import NAME, read, read_reply
from .write import cut, write, write_view

__all__ = ["OpenAIChat"]


class OpenAIChat:
    """The format of one conversation: it remembers how its newest view was written, so use one for each."""

    name = NAME

    def __init__(self) -> None:
        self._memo = Memo(cut, write_view)

    def parse(self, message: object) -> tuple[Message, ...]:
        """The message in one wire message: a dict, an SDK's object or a string of the user's. Raises BadMessage."""
        return read(message)

    def parse_reply(self, reply: object) -> tuple[Message, Usage]:
        """The assistant message and the billed usage in a chat completion. Raises BadMessage."""
        return read_reply(reply)

    def stop_of(self, reply: object) -> Stop | None:
        """Why the first choice of a completion ended: its `finish_reason`, or that its message is a refusal."""
        return openai_stop(plain(reply, "reply"))

    def render(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Wire messages that carry these messages."""
        return write(messages)

    def prompt(
        self, view: View, *, profile: Profile, system: object = None, tools: Sequence[Mapping[str, Any]] = ()
    ) -> dict[str, Any]:
        """The keyword arguments `messages` and `tools` of `client.chat.completions.create`.

        `system` is a string or a list of strings, text parts or system messages; it goes first. Everything returned
        is fresh: changing it changes neither the view nor the next prompt, nor what was handed in.
        """
        self._memo.update(view.entries, profile)
        defined = for_openai(tools)
        messages = _system(system) + [fresh(wire) for wire in self._memo.wires]
        return {"tools": defined, "messages": messages} if defined else {"messages": messages}

    def rendered(self, view: View, *, profile: Profile) -> list[Rendered]:
        """The wire messages of a view as JSON bytes; unchanged entries keep their bytes.

        The user message that shows the media of tool results has no entries of its own: theirs are with the tool
        messages. An entry that shows nothing this provider knows has no wire message.
        """
        self._memo.update(view.entries, profile)
        return self._memo.rendered.copy()

    def body(
        self, view: View, *, profile: Profile, system: object = None, tools: Sequence[Mapping[str, Any]] = ()
    ) -> bytes:
        """The request body as JSON bytes, `messages` last: as long as nothing is edited, each body begins like the one
        before.
        """
        self._memo.update(view.entries, profile)
        defined = for_openai(tools)
        head = b'{"tools":' + encode(defined) + b',"messages":[' if defined else b'{"messages":['
        bodies = [*[encode(message) for message in _system(system)], *self._memo.bodies]
        if not bodies:
            return head + b"]}"
        # Joined once, with the ends put on before: the messages may be megabytes.
        bodies[0] = head + bodies[0]
        bodies[-1] += b"]}"
        return b",".join(bodies)


def _system(system: object) -> list[dict[str, Any]]:
    """The caller's system prompt as fresh messages; empty texts are left out."""
    if system is None or isinstance(system, str):
        return [{"role": "system", "content": system}] if system else []
    if isinstance(system, Mapping) or hasattr(system, "model_dump"):
        system = [system]
    messages: list[dict[str, Any]] = []
    for number, item in enumerate(items(system, "system")):
        if isinstance(item, str):
            messages += _system(item)
            continue
        fields = fresh(plain(item, f"system[{number}]"))
        if "role" in fields:
            messages.append(fields)
        else:  # A block of text, as the other provider wants it.
            messages += _system(string(fields, "text", f"system[{number}]"))
    return messages
