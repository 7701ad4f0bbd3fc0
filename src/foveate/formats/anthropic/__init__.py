"""Format for Anthropic's Messages API.

The format cannot carry: names of speakers and tools, an interrupted result (it comes back as failed), reasoning of
other providers, and call arguments that are not a JSON object (they travel as `{"_arguments": "..."}`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ...core.messages import Message
from ...core.profiles import Profile
from ...core.stamps import Stop, Usage
from ...core.view import View
from ..blocks import as_dict, as_list, wrong_type
from ..cached import CachedFormat
from ..json import copy_json, encode
from ..stops import anthropic_stop
from ..tools import for_anthropic
from ..ui_messages import is_ui_message, read_ui_message
from .read import NAME, read, read_reply
from .write import cut, first_marked, mark, user_note, write, write_view

__all__ = ["Anthropic"]


class Anthropic(CachedFormat):
    """The format of one conversation. It caches the newest view, so use one object for each conversation."""

    name = NAME

    def __init__(self) -> None:
        super().__init__(cut, write_view)

    def parse(self, message: object) -> tuple[Message, ...]:
        """Return the messages in one wire message: a dict, an SDK object, a list of blocks or a user's string.

        Each tool result becomes a message, and so do the blocks next to it. Raises BadMessage.
        """
        if is_ui_message(message):
            return read_ui_message(cast(Any, message))
        return read(message)

    def parse_reply(self, reply: object) -> tuple[Message, Usage]:
        """Return the assistant message and the billed usage of a response. Raises BadMessage."""
        return read_reply(reply)

    def stop_of(self, reply: object) -> Stop | None:
        """Return why a response ended: its `stop_reason`."""
        return anthropic_stop(as_dict(reply, "reply"))

    def render(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Return wire messages for these messages. A system message keeps its role; `prompt` moves it."""
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
        """Return the keyword arguments `system`, `messages` and `tools` of `client.messages.create`, with cache marks.

        `system` is a string or a list of strings or text blocks; the view's own leading system messages follow it.
        Everything returned is new: changing it affects neither the view, nor the next prompt, nor the arguments.

        `shared`: messages are the same objects in every prompt, which the caller must not change, but for the newest,
        which may have cache marks.
        """
        self._memo.update(view.entries, profile)
        wires = self._memo.wires
        leading = _leading(wires)
        blocks = _system(system) + [copy_json(block) for wire in wires[:leading] for block in wire["content"]]
        defined = for_anthropic(tools)
        # Messages that may get a mark are copied.
        first = first_marked(wires, leading) if shared else leading
        messages = [*wires[leading:first], *self._memo.copies(first)]
        for place in reversed(_places_of_notes(wires, profile)):
            messages.insert(place - leading, user_note())
        mark(blocks, defined, messages)
        return _request(blocks, defined, messages)

    def _body(
        self, view: View, profile: Profile, system: object, tools: Sequence[Mapping[str, Any]]
    ) -> tuple[bytes, list[bytes]]:
        """Return the beginning of the body, and the messages."""
        self._memo.update(view.entries, profile)
        leading = _leading(self._memo.wires)
        blocks = _system(system) + [block for wire in self._memo.wires[:leading] for block in wire["content"]]
        head = encode(_request(blocks, for_anthropic(tools), []))[:-2]  # Ends before the "]}" of the empty messages.
        bodies = self._memo.bodies[leading:]
        for place in reversed(_places_of_notes(self._memo.wires, profile)):
            bodies.insert(place - leading, encode(user_note()))
        return head, bodies


def _request(system: list[Any], tools: list[Any], messages: list[Any]) -> dict[str, Any]:
    """Build a request in the order in which the provider caches it. The messages grow, so they come last."""
    request: dict[str, Any] = {}
    if system:
        request["system"] = system
    if tools:
        request["tools"] = tools
    request["messages"] = messages
    return request


def _leading(wires: Sequence[dict[str, Any]]) -> int:
    """Return how many wire messages at the start are system prompts. Those without content only change settings."""
    count = 0
    while count < len(wires) and wires[count]["role"] == "system" and wires[count]["content"]:
        count += 1
    return count


def _places_of_notes(wires: Sequence[dict[str, Any]], profile: Profile) -> list[int]:
    """Return the indices before which a user's note stands: at the end, and where an earlier request ended.

    A note that was sent stays: thinking behind it is bound to it, and the provider has cached it.
    """
    if not profile.user_last:
        return []
    roles = [wire["role"] for wire in wires]
    ends = [i for i, role in enumerate(roles, 1) if role == "assistant" and roles[i : i + 1] in ([], ["assistant"])]
    return [end for end in ends if _needs_user(wires[:end], profile)]


def _needs_user(wires: Sequence[dict[str, Any]], profile: Profile) -> bool:
    """Return whether the request would end with the assistant, which newer models refuse unless a turn was paused."""
    if not profile.user_last or not wires or wires[-1]["role"] != "assistant":
        return False
    if wires[-1]["content"][-1]["type"].endswith(("_tool_result", "compaction")):
        return False
    answered: set[str] = set()
    for wire in reversed(wires):
        if wire["role"] != "assistant" and any(block["type"] != "tool_result" for block in wire["content"]):
            break  # Only results of calls may stand between the use of a server tool and its result.
        for block in reversed(wire["content"]):
            if block["type"].endswith("_tool_result"):
                answered.add(block["tool_use_id"])
            elif block["type"].endswith("_tool_use") and block["id"] not in answered:
                return False  # A server tool's use that waits for its result; `tool_use` is the client's.
    return True


def _system(system: object) -> list[dict[str, Any]]:
    """Return the caller's system prompt as new blocks, without empty texts, which the API refuses."""
    if system is None:
        return []
    if isinstance(system, str):
        return [{"type": "text", "text": system}] if system else []
    if isinstance(system, Mapping) or hasattr(system, "model_dump"):
        system = [system]
    blocks: list[dict[str, Any]] = []
    for number, item in enumerate(as_list(system, "system")):
        if isinstance(item, str):
            blocks += _system(item)
            continue
        block = copy_json(as_dict(item, f"system[{number}]"))
        if "role" in block:  # A whole message, as the other provider wants it.
            blocks += _system(block.get("content"))
        elif not isinstance(block.get("type"), str):
            raise wrong_type(f"system[{number}].type", block.get("type"), "the type of a block, such as text")
        elif block.get("text") != "":
            blocks.append(block)
    return blocks
