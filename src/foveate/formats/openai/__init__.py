"""Format for OpenAI's chat completions, which many compatible servers speak too.

The format cannot carry: the error state of a result, signatures and encrypted reasoning, reasoning of other providers,
media inside tool results (they follow in a user message), the order of calls and text (text comes first), and a result
without content (it comes back as an empty text).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ...core.messages import Message
from ...core.profiles import Profile
from ...core.stamps import Stop, Usage
from ...core.view import View
from ..blocks import as_dict, as_list, get_string
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

        `system` is a string or a list of strings, text parts or system messages; it goes first. Everything returned is
        new: changing it affects neither the view, nor the next prompt, nor the arguments.

        `shared`: messages are the same objects in every prompt, which the caller must not change.
        """
        self._memo.update(view.entries, profile)
        defined = for_openai(tools)
        messages = _system(system) + (self._memo.wires if shared else self._memo.copies())
        return {"tools": defined, "messages": messages} if defined else {"messages": messages}

    def _body(
        self, view: View, profile: Profile, system: object, tools: Sequence[Mapping[str, Any]]
    ) -> tuple[bytes, list[bytes]]:
        """Return the beginning of the body, and the messages."""
        self._memo.update(view.entries, profile)
        defined = for_openai(tools)
        head = b'{"tools":' + encode(defined) + b',"messages":[' if defined else b'{"messages":['
        return head, [*[encode(message) for message in _system(system)], *self._memo.pieces]


def _system(system: object) -> list[dict[str, Any]]:
    """Return the caller's system prompt as new messages, without empty texts."""
    if system is None or isinstance(system, str):
        return [{"role": "system", "content": system}] if system else []
    if isinstance(system, Mapping) or hasattr(system, "model_dump"):
        system = [system]
    messages: list[dict[str, Any]] = []
    for number, item in enumerate(as_list(system, "system")):
        if isinstance(item, str):
            messages += _system(item)
            continue
        fields = copy_json(as_dict(item, f"system[{number}]"))
        if "role" in fields:
            messages.append(fields)
        else:  # A text block, as the other provider wants it.
            messages += _system(get_string(fields, "text", f"system[{number}]"))
    return messages
