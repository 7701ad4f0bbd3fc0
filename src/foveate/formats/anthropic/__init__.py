"""Anthropic's Messages API, both ways. No SDK is imported.

How a wire message is read is in `_anthropic_read.py`, how one is written in `_anthropic_write.py`, and where a prompt
is cached in `_anthropic_marks.py`; here they become the `Format` of one conversation.

Not carried by this format: names of speakers and tools, an interrupted result (it comes back as failed), reasoning of
other providers, and call arguments that are not a JSON object (they travel as `{"_arguments": "..."}`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...core.messages import Message
from ...core.profiles import Profile
from ...core.stamps import Stop, Usage
from ...core.view import View
from ...ports import Rendered
from ..blocks import items, plain, wrong
from ..json import encode, fresh
from ..memo import Memo
from ..stops import anthropic_stop
from ..tools import for_anthropic
from .read import NAME, read, read_reply
from .write import cut, mark, write, write_view

__all__ = ["Anthropic"]


class Anthropic:
    """The format of one conversation: it remembers how its newest view was written, so use one for each."""

    name = NAME

    def __init__(self) -> None:
        self._memo = Memo(cut, write_view)

    def parse(self, message: object) -> tuple[Message, ...]:
        """The messages in one wire message: a dict, an SDK's object, a list of blocks or a user's string.

        Tool results and what stands beside them become a message each. Raises BadMessage.
        """
        return read(message)

    def parse_reply(self, reply: object) -> tuple[Message, Usage]:
        """The assistant message and the billed usage in a response of the Messages API. Raises BadMessage."""
        return read_reply(reply)

    def stop_of(self, reply: object) -> Stop | None:
        """Why a response ended: its `stop_reason`."""
        return anthropic_stop(plain(reply, "reply"))

    def render(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Wire messages that carry these messages; a system message keeps its role, for `prompt` to move where it
        belongs.
        """
        return write(messages)

    def prompt(
        self, view: View, *, profile: Profile, system: object = None, tools: Sequence[Mapping[str, Any]] = ()
    ) -> dict[str, Any]:
        """The keyword arguments `system`, `messages` and `tools` of `client.messages.create`, marked for the cache.

        `system` is a string or a list of strings or text blocks; the view's own leading system messages follow it.
        Everything returned is fresh: changing it changes neither the view nor the next prompt, nor what was handed
        in.
        """
        self._memo.update(view.entries, profile)
        wires = self._memo.wires
        leading = _leading(wires)
        blocks = _system(system) + [fresh(block) for wire in wires[:leading] for block in wire["content"]]
        defined = for_anthropic(tools)
        messages = [fresh(wire) for wire in wires[leading:]]
        mark(blocks, defined, messages)
        return _request(blocks, defined, messages)

    def rendered(self, view: View, *, profile: Profile) -> list[Rendered]:
        """The wire messages of a view as JSON bytes, without cache marks; unchanged entries keep their bytes.

        Leading system messages are the first of them, as messages of the role system; `prompt` and `body` say them in
        `system`. An entry that shows nothing this provider knows has no wire message.
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
        leading = _leading(self._memo.wires)
        blocks = _system(system) + [block for wire in self._memo.wires[:leading] for block in wire["content"]]
        head = encode(_request(blocks, for_anthropic(tools), []))[:-2]  # Ends before the "]}" of the empty messages.
        bodies = self._memo.bodies[leading:]
        if not bodies:
            return head + b"]}"
        # Joined once, with the ends put on before: the messages may be megabytes.
        bodies[0] = head + bodies[0]
        bodies[-1] += b"]}"
        return b",".join(bodies)


def _request(system: list[Any], tools: list[Any], messages: list[Any]) -> dict[str, Any]:
    """What is there of a request, in the order in which it is cached, but for the messages, which grow, last."""
    request: dict[str, Any] = {}
    if system:
        request["system"] = system
    if tools:
        request["tools"] = tools
    request["messages"] = messages
    return request


def _leading(wires: Sequence[dict[str, Any]]) -> int:
    """How many of the wire messages are system messages at the start."""
    count = 0
    while count < len(wires) and wires[count]["role"] == "system":
        count += 1
    return count


def _system(system: object) -> list[dict[str, Any]]:
    """The caller's system prompt as fresh blocks; empty texts, which the API refuses, are left out."""
    if system is None:
        return []
    if isinstance(system, str):
        return [{"type": "text", "text": system}] if system else []
    if isinstance(system, Mapping) or hasattr(system, "model_dump"):
        system = [system]
    blocks: list[dict[str, Any]] = []
    for number, item in enumerate(items(system, "system")):
        if isinstance(item, str):
            blocks += _system(item)
            continue
        block = fresh(plain(item, f"system[{number}]"))
        if "role" in block:  # A whole message, as the other provider wants it.
            blocks += _system(block.get("content"))
        elif not isinstance(block.get("type"), str):
            raise wrong(f"system[{number}].type", block.get("type"), "the type of a block, such as text")
        elif block.get("text") != "":
            blocks.append(block)
    return blocks
