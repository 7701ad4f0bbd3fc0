"""Format for Google's Gemini: `generateContent` of the Gemini API and of Vertex AI.

The format cannot carry: names of speakers, an interrupted result (it comes back as failed), reasoning of other
providers, several texts in one result (they are joined), and call arguments that are not a JSON object (they travel as
`{"_arguments": "..."}`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

from ...core.message_keys import message_key
from ...core.messages import Message
from ...core.profiles import Profile
from ...core.stamps import Stop, Usage
from ...core.view import View
from ...errors import BadMessage
from ..blocks import as_list, get_string
from ..cached import CachedFormat
from ..json import copy_json, encode
from ..stops import gemini_stop
from ..tools import for_gemini
from ..ui_messages import is_ui_message, read_ui_message
from .gather import is_of_model, joined_content
from .read import NAME, fields_of, read, read_reply, response_fields
from .write import cut, user_note, write, write_view

__all__ = ["Gemini"]


class Gemini(CachedFormat):
    """The format of one conversation. It caches the newest view, so use one object for each conversation."""

    name = NAME

    def __init__(self) -> None:
        super().__init__(cut, write_view)
        self._replies: set[bytes] = set()
        """Keys of the replies in the history."""

    def group(self, items: Sequence[object]) -> Sequence[object]:
        """Return a caller's list with the pieces of each answer as one group, `{"output": [...]}`, for `parse`.

        Chats of Google's SDKs keep a streamed answer as one content for each of its pieces. So contents of the model
        that follow each other are one answer, unless they are known as several. Before the first known reply, all are
        read alone.
        """
        if not self._replies:
            return items
        grouped: list[Any] = []
        for by_model, run in groupby(items, is_of_model):
            contents = list(run)
            grouped += [{"output": contents}] if by_model and self._are_pieces(contents) else contents
        return items if len(grouped) == len(items) else grouped

    def _are_pieces(self, contents: Sequence[object]) -> bool:
        """Return whether contents of the model that follow each other are pieces of one answer."""
        if len(contents) < 2:
            return False
        try:
            return self._knows(contents) or not self._knows(contents[:1])
        except BadMessage:  # Each content is read alone, for an error with its place.
            return False

    def _knows(self, contents: Sequence[object]) -> bool:
        return message_key(*read(joined_content(contents))) in self._replies

    def learn(self, message: Message) -> None:
        """Note a message of the history, so that `group` knows which contents are messages of their own."""
        if message.role == "assistant":
            self._replies.add(message_key(message))

    def parse(self, message: object) -> tuple[Message, ...]:
        """Return the messages in one content: a dict, an SDK object, a part, a list of parts or a user's string.

        Each function response becomes a message, and so do the parts next to it. Raises BadMessage.
        """
        if is_ui_message(message):
            return read_ui_message(cast(Any, message))
        if isinstance(message, Mapping) and isinstance(contents := message.get("output"), list):
            message = joined_content(contents)
        return read(message)

    def parse_reply(self, reply: object) -> tuple[Message, Usage]:
        """Return the model's message and the billed usage of a GenerateContentResponse.

        A candidate without content, such as one that a filter removed, is an empty message. Raises BadMessage if the
        prompt was blocked, so that there is no candidate.
        """
        return read_reply(reply)

    def stop_of(self, reply: object) -> Stop | None:
        """Return why a response ended: the `finishReason` of its first candidate, or the reason of a block."""
        return gemini_stop(response_fields(reply, "reply"))

    def render(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Return contents for these messages. A system message keeps its role; `prompt` moves it."""
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
        """Return the keyword arguments `contents` and `config` of `client.models.generate_content`.

        `config` is a dict with `system_instruction` and `tools`, for which the caller adds other options. `system` is a
        string or a list of strings, parts or contents; the view's own leading system messages follow it. Everything
        returned is new: changing it affects neither the view, nor the next prompt, nor the arguments.

        `shared`: contents are the same objects in every prompt, which the caller must not change.
        """
        instruction, leading, note = self._contents(view, profile, system)
        config: dict[str, Any] = {"system_instruction": instruction} if instruction else {}
        if defined := for_gemini(tools):
            config["tools"] = defined
        contents = self._memo.wires[leading:] if shared else self._memo.copies(leading)
        return {"contents": [*contents, *note], "config": config}

    def _body(
        self, view: View, profile: Profile, system: object, tools: Sequence[Mapping[str, Any]]
    ) -> tuple[bytes, list[bytes]]:
        """Return the beginning of the body, and the contents."""
        instruction, leading, note = self._contents(view, profile, system)
        head: dict[str, Any] = {"systemInstruction": instruction} if instruction else {}
        if defined := for_gemini(tools):
            head["tools"] = defined
        start = encode({**head, "contents": []})[:-2]  # Ends before the "]}" of the empty contents.
        return start, [*self._memo.bodies[leading:], *map(encode, note)]

    def _contents(
        self, view: View, profile: Profile, system: object
    ) -> tuple[dict[str, Any] | None, int, list[dict[str, Any]]]:
        """Return the system instruction, the number of contents that it stands for, and contents to add at the end."""
        self._memo.update(view.entries, profile)
        wires = self._memo.wires
        leading = _leading(wires)
        parts = _system(system) + [copy_json(part) for wire in wires[:leading] for part in wire["parts"]]
        note = [user_note()] if _needs_user(wires, profile) else []
        return ({"parts": parts} if parts else None), leading, note


def _leading(wires: Sequence[dict[str, Any]]) -> int:
    """Return how many contents at the start are system messages."""
    return next((count for count, wire in enumerate(wires) if wire["role"] != "system"), len(wires))


def _needs_user(wires: Sequence[dict[str, Any]], profile: Profile) -> bool:
    """Return whether the request would end with the model, which newer models refuse."""
    return bool(profile.user_last and wires and wires[-1]["role"] == "model")


def _system(system: object) -> list[dict[str, Any]]:
    """Return the caller's system prompt as new parts, without empty texts."""
    if system is None or isinstance(system, str):
        return [{"text": system}] if system else []
    if isinstance(system, Mapping) or hasattr(system, "model_dump"):
        system = [system]
    parts: list[dict[str, Any]] = []
    for number, item in enumerate(as_list(system, "system")):
        if isinstance(item, str):
            parts += _system(item)
            continue
        fields = copy_json(fields_of(item, f"system[{number}]"))
        inside = fields.get("parts", fields.get("content"))
        if inside is not None:  # A whole content, or a message as another provider wants it.
            parts += _system(inside)
        else:
            parts += _system(get_string(fields, "text", f"system[{number}]"))
    return parts
