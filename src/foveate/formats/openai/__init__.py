"""Format for OpenAI's chat completions, which many compatible servers speak too.

The format cannot carry: the error state of a result, signatures and encrypted reasoning, reasoning of other providers,
media inside tool results (they follow in a user message), the order of calls and text (text comes first), and a result
without content (it comes back as an empty text).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, cast

from ...core.messages import Message
from ...core.profiles import Profile
from ...core.stamps import Stop, Usage
from ...core.system_messages import sent_role
from ...core.view import Entry, View
from ..blocks import as_dict, as_list, system_messages
from ..cached import CachedFormat
from ..json import copy_json, encode
from ..stops import openai_stop
from ..tools import for_openai
from ..ui_messages import is_ui_message, read_ui_message
from .read import NAME, read, read_reply
from .write import cut, write, write_view

__all__ = ["OpenAIChat"]


class OpenAIChat(CachedFormat):
    """The format of one conversation. It caches the newest view, so use one object for each conversation."""

    name = NAME

    def __init__(self) -> None:
        super().__init__(cut, write_view)

    def parse(self, message: object) -> tuple[Message, ...]:
        """Return the message in one wire message: a dict, an SDK object or a user's string. Raises BadMessage."""
        if is_ui_message(message):
            return read_ui_message(cast(Any, message))
        return read(message)

    def parse_reply(self, reply: object) -> tuple[Message, Usage]:
        """Return the assistant message and the billed usage of a chat completion. Raises BadMessage."""
        return read_reply(reply)

    def stop_of(self, reply: object) -> Stop | None:
        """Return why the first choice of a completion ended: its `finish_reason`, or a refusal."""
        return openai_stop(as_dict(reply, "reply"))

    def render(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Return wire messages for these messages."""
        return write(messages)

    def prompt(
        self,
        view: View,
        *,
        profile: Profile,
        system: object = None,
        tools: Sequence[Mapping[str, Any]] = (),
        shared: bool = False,
    ) -> dict[str, Any]:
        """Return the keyword arguments `messages` and `tools` of `client.chat.completions.create`.

        `system` is a string or a list of strings, text parts or system messages. It goes first, in one message with the
        view's own first system message, since many servers take only one. Everything returned is new: changing it
        affects neither the view, nor the next prompt, nor the arguments.

        `shared`: messages are the same objects in every prompt, which the caller must not change.
        """
        prompts, leading = self._prompts(view, profile, system)
        defined = for_openai(tools)
        messages = prompts + (self._memo.wires[leading:] if shared else self._memo.copies(leading))
        return {"tools": defined, "messages": messages} if defined else {"messages": messages}

    def _body(
        self, view: View, profile: Profile, system: object, tools: Sequence[Mapping[str, Any]]
    ) -> tuple[bytes, list[bytes]]:
        """Return the beginning of the body, and the messages."""
        prompts, leading = self._prompts(view, profile, system)
        defined = for_openai(tools)
        head = b'{"tools":' + encode(defined) + b',"messages":[' if defined else b'{"messages":['
        pieces = self._memo.bodies[leading:] if leading else self._memo.pieces
        return head, [*map(encode, prompts), *pieces]

    def _prompts(self, view: View, profile: Profile, system: object) -> tuple[list[dict[str, Any]], int]:
        """Return the system messages of a request, and the number of the view's messages that they stand for."""
        self._memo.update(view.entries, profile)
        prompts = system_messages(system)
        takes_one = profile.system_places == "first"
        most = len(view.entries) if takes_one else 1 if prompts else 0
        leading = list(takewhile(_is_system, view.entries[:most]))
        # Written again: wire messages that are held as bytes stay so.
        wires = [wire for wire, _ in write_view(tuple(leading), 0, profile)]
        return _joined([*prompts, *copy_json(wires)]), len(wires)


def _is_system(entry: Entry) -> bool:
    """Return whether an entry is written as a system message."""
    return sent_role(entry) == "system"


_SYSTEM = ("system", "developer")


def _joined(prompts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return these messages, with consecutive system messages as one. The fields of the last one count.

    A text with which the next message begins is not repeated: programs may send back what a prompt showed them.
    Chat templates of many open models refuse a second system message, or leave it or the first one out. Source: the
    templates that llama.cpp ships, as of November 2026.
    """
    joined: list[dict[str, Any]] = []
    for prompt in prompts:
        before = joined[-1] if joined else {}
        contents = [before.get("content"), prompt.get("content")]
        if before.get("role") not in _SYSTEM or prompt.get("role") not in _SYSTEM or not all(contents):
            joined.append(prompt)
        elif _begins_with(contents[1], contents[0]):
            joined[-1] = {**before, **prompt}
        elif all(isinstance(content, str) for content in contents):
            joined[-1] = {**before, **prompt, "content": "\n\n".join(map(str, contents))}
        else:
            joined[-1] = {**before, **prompt, "content": [part for content in contents for part in _parts(content)]}
    return joined


def _begins_with(content: object, text: object) -> bool:
    """Return whether the content of a message begins with a text, as a joined one does."""
    if isinstance(content, list):
        return bool(content) and as_dict(content[0], "content[0]").get("text") == text
    return f"{content}\n\n".startswith(f"{text}\n\n")


def _parts(content: object) -> list[Any]:
    """Return the content of a message as a list of parts."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(as_list(content, "content"))
