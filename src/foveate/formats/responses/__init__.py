"""Format for OpenAI's Responses API.

A prompt holds the whole view, so it needs nothing that the provider stores: it is legal with `store` true and false.
Reasoning is sent only with its encrypted content (the API returns it by default, or for
`include=["reasoning.encrypted_content"]`), because a bare id fails with `store=False`.

The format cannot carry: names of speakers, an error state of a result (except of a patch), signatures and reasoning of
other providers, media in messages of the assistant, and the boundary between two responses in a row, when a caller's
list is read, unless a phase or an id shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ...core.messages import Message
from ...core.profiles import Profile
from ...core.stamps import Stop, Usage
from ...core.view import View
from ...ports import Rendered
from ..blocks import as_dict, system_messages
from ..cached import CachedFormat
from ..json import copy_json, encode
from ..stops import responses_stop
from ..tools import for_responses
from ..ui_messages import is_ui_message, read_ui_message
from .items import group, is_of_model, own_id, start_keys
from .read import NAME, read, read_reply
from .write import cut, without_id, write, write_view

__all__ = ["Responses"]


class Responses(CachedFormat):
    """The format of one conversation. It caches the newest view, so use one object for each conversation."""

    name = NAME

    def __init__(self) -> None:
        super().__init__(cut, write_view)
        self._starts: set[str] = set()
        """Keys of the first item of each known response. An item with one of them begins a message."""
        self._inside: set[str | None] = set()
        """Ids of items that known responses have, and that others make too, such as outputs of calls."""

    def group(self, items: Sequence[object]) -> list[object]:
        """Return a caller's list with the items of each response as one response object, for `parse`."""
        return group(items, self._starts, self._inside)

    def learn(self, message: Message) -> None:
        """Note a message of the history, so that `group` finds where it begins in a list."""
        if message.role == "assistant" and (items := write([message])):
            self._starts.update(start_keys(items[0]))
            self._inside.update([own_id(item, "id") for item in items if not is_of_model(item)])
            self._inside.discard(None)

    def parse(self, message: object) -> tuple[Message, ...]:
        """Return the messages in an item, a response, a list of items, or a string from the user.

        Items are dicts or SDK objects. Raises BadMessage.
        """
        if is_ui_message(message):
            return read_ui_message(cast(Any, message))
        return read(message)

    def parse_reply(self, reply: object) -> tuple[Message, Usage]:
        """Return the assistant message and the billed usage of a response.

        Raises BadMessage, also for a response that failed, or that continues what the provider stores
        (`previous_response_id`, `conversation`).
        """
        message, usage = read_reply(reply)
        self.learn(message)
        return message, usage

    def stop_of(self, reply: object) -> Stop | None:
        """Return why a response ended: the reason of an incomplete one, else its calls or its status."""
        response = as_dict(reply, "reply")
        return responses_stop(response, read({"output": response.get("output") or []})[0])

    def render(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Return items for these messages."""
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
        """Return the keyword arguments `instructions`, `tools` and `input` of `client.responses.create`.

        `system` is a string, which becomes `instructions`, or a list of strings, text parts or messages, which go first
        in `input`. Everything returned is new: changing it affects neither the view, nor the next prompt, nor the
        arguments.

        `shared`: items are the same objects in every prompt, which the caller must not change.
        """
        changed = self._update(view, profile)
        head, leading = _head(system, tools)
        items = list(self._memo.wires) if shared else self._memo.copies()
        for place, item in changed.items():
            items[place : place + 1] = [copy_json(item)] if item else []
        return {**head, "input": leading + items}

    def rendered(self, view: View, *, profile: Profile) -> list[Rendered]:
        """Return the items of a view as JSON bytes. Unchanged entries keep their bytes.

        A message of the assistant has an item for each of its parts. A message with the text that stands for a
        screenshot has no entries.
        """
        changed = self._update(view, profile)
        rendered = self._memo.rendered.copy()
        for place, item in changed.items():
            rendered[place : place + 1] = [Rendered(encode(item), rendered[place].entries)] if item else []
        return rendered

    def _body(
        self, view: View, profile: Profile, system: object, tools: Sequence[Mapping[str, Any]]
    ) -> tuple[bytes, list[bytes]]:
        """Return the beginning of the body, and the items."""
        changed = self._update(view, profile)
        fields, leading = _head(system, tools)
        head = encode({**fields, "input": []})[:-2]  # Ends before the "]}" of the empty list.
        bodies = list(self._memo.bodies)
        for place, item in changed.items():
            bodies[place : place + 1] = [encode(item)] if item else []
        return head, [*[encode(item) for item in leading], *bodies]

    def _update(self, view: View, profile: Profile) -> dict[int, dict[str, Any] | None]:
        """Write the items of a view. Return those that a request has otherwise, by place, the last one first.

        The API refuses an id that it sees twice, so that the later item goes without it. It takes a trigger of its
        compaction only at the end: None stands for one that is left out.
        """
        self._memo.update(view.entries, profile)
        seen: set[str] = set()
        changed: dict[int, dict[str, Any] | None] = {}
        last = len(self._memo.wires) - 1
        for place, item in enumerate(self._memo.wires):
            id = item.get("id")
            if item.get("type") == "compaction_trigger" and place < last:
                changed[place] = None
                continue
            if isinstance(id, str) and item.get("type") != "local_shell_call_output":  # Its id is that of the call.
                if id in seen:
                    changed[place] = without_id(item)
                seen.add(id)
        return dict(reversed(changed.items()))


def _head(system: object, tools: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the fields before `input`, and the items at its beginning."""
    head: dict[str, Any] = {}
    leading: list[dict[str, Any]] = []
    if isinstance(system, str):
        if system:
            head["instructions"] = system
    elif system is not None:
        leading = system_messages(system)
    if defined := for_responses(tools):
        head["tools"] = defined
    return head, leading
