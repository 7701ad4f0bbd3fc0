"""Writing a request with a view in place of its messages, from the bytes of the client's own request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ..conversation import Conversation
from ..conversation.request_items import RequestItem, RequestItems
from ..core.needs import Needs
from ..core.view import View
from ..expand.tool import EXPAND_INSTRUCTION, TOOL, expand_tool_json, offers_expand
from ..formats.gemini.gather import joined_content
from .apis import Api
from .body import RequestBody
from .cache_marks import MARK_KEY, add_marks, keep_marks, marks_pay

__all__ = ["RequestWriter", "WrittenRequest", "add_betas", "has_functions", "json_value"]

_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_INSTRUCTION: Final = msgspec.json.encode(EXPAND_INSTRUCTION)
_FUNCTIONS: Final = ("functionDeclarations", "function_declarations")
"""Keys of the list of functions in a tool of Gemini's. Google takes two spellings."""
_RESPONSES: Final = ("functionResponse", "function_response")
"""Keys of the result of a call."""
_CALLS: Final = ("functionCall", "function_call")
_CONTENTS: Final = frozenset(("role", "content", "refusal", "tool_calls", "tool_call_id"))
"""Keys of a chat message that hold its content."""


class WrittenRequest(NamedTuple):
    """A request for the provider."""

    content: bytes
    """Its body."""
    betas: tuple[str, ...]
    """Values that the header `anthropic-beta` needs in addition to those of the client."""
    tokens_history: int
    """Tokens of all messages that the client did not remove: what the request would have without a view."""


class RequestWriter:
    """Writes the requests that take the place of one request of a client."""

    def __init__(self, api: Api, body: RequestBody, raws: Sequence[bytes], *, adds_marks: bool) -> None:
        """`raws`: the items of the client's list. `adds_marks`: as for `WireRequest`."""
        self._api, self._body, self._raws, self._adds_marks = api, body, raws, adds_marks
        self._tools = body.value("tools") or ()

    def write(self, chat: Conversation, view: View) -> WrittenRequest:
        """Return the request that shows a view of the conversation."""
        fields = dict[str, bytes](self._body.fields)
        request = chat.request_items(view)
        offers, needs = chat.answers(TOOL), chat.needs
        is_own, adds_marks = self._is_own(request), self._needs_marks(view, offers)
        if is_own and not offers:
            needs = needs if request.is_edited else Needs()  # Nothing before any reasoning was ever changed.
            if not needs and not adds_marks:
                return WrittenRequest(self._body.content, (), request.tokens_history)
        raws, items = self._raws, list(request.items)
        if any(len(item.places) > 1 for item in items):
            parts_of = _as_one if self._api.format == "gemini" else _parts
            items = [part for item in items for part in (parts_of(item, raws) if item.places else (item,))]
        lists: dict[str, list[bytes]] = {}
        bodies = [item.body or raws[item.places[0]] for item in items]
        if self._api.format == "openai":
            bodies = [_with_own_keys(item, body, raws) for item, body in zip(items, bodies, strict=True)]
            if "functions" in fields:
                for place, item in enumerate(items):
                    if item.body:
                        bodies[place] = _with_function(bodies[place], bodies[place - 1])
        if self._api.format == "anthropic":
            keep_marks(items, bodies, raws, self._body.marked)
            while items and not items[0].places and items[0].entries and items[0].entries[0].is_system:
                items.pop(0)  # A system prompt of ours stands first: the API takes it only in `system`.
                fields["system"] = _with_blocks(fields.get("system"), bodies.pop(0))
        if self._api.format == "gemini":
            bodies = _with_joined_responses(bodies, [bool(item.body) for item in items])
        if offers:
            self._offer_expand(fields, bodies)
        if adds_marks:
            _mark(fields, bodies)
        if self._body.items is not None or not is_own or offers:
            lists = {self._api.messages: bodies}
        for key, value in needs.options.items():
            own = {key: json_value(fields[key])} if key in fields else {}
            fields[key] = msgspec.json.encode(Needs(options={key: value}).added_to(own)[key])
        betas = add_betas(self._api, fields, needs.betas)
        content = _object(fields, lists)
        if key := self._api.inside:
            content = _object({**self._body.around, key: content})
        return WrittenRequest(content, betas, request.tokens_history)

    def _is_own(self, request: RequestItems) -> bool:
        """Return whether the request shows the client's list, as it is."""
        if any(item.body for item in request.items):
            return False
        return [place for item in request.items for place in item.places] == list(range(len(self._raws)))

    def _needs_marks(self, view: View, offers: bool) -> bool:
        """Return whether to mark the request for Anthropic's cache, since its client marks none."""
        if self._api.format != "anthropic" or self._is_marked():
            return False
        return self._adds_marks or marks_pay(view, offers)

    def _is_marked(self) -> bool:
        """Return whether the client marks the request for Anthropic's cache."""
        fields = self._body.fields
        others = [fields[key] for key in ("system", "tools") if key in fields]
        return "cache_control" in fields or bool(self._body.marked) or any(MARK_KEY in bytes(raw) for raw in others)

    def _offer_expand(self, fields: dict[str, bytes], bodies: list[bytes]) -> None:
        """Add the tool `expand` and its instruction. They are the same bytes in every request of a conversation."""
        if not offers_expand(self._tools):
            fields["tools"] = self._with_expand(fields.get("tools"))
        if key := self._body.system_key:
            is_content = self._api.format == "gemini"
            fields[key] = (_with_instruction_part if is_content else _with_instruction)(fields.get(key))
            return
        first = _FIELDS.decode(bodies[0]) if bodies else {}
        if json_value(first.get("role")) in ("system", "developer") and first.get("content"):
            bodies[0] = _object({**first, "content": _with_instruction(first["content"])})
        else:
            bodies.insert(0, b'{"role":"system","content":' + _INSTRUCTION + b"}")

    def _with_expand(self, raw: bytes | None) -> bytes:
        """Return the client's tools with `expand`. Vertex AI takes only one list of functions."""
        tool = expand_tool_json(self._api.format)
        place = next((at for at, known in enumerate(self._tools) if has_functions(known)), -1)
        if raw is None or place < 0:
            return _with_item(raw, tool)
        tools = [bytes(item) for item in _LIST.decode(raw)]
        fields = dict[str, bytes](_FIELDS.decode(tools[place]))
        key = next(key for key in _FUNCTIONS if key in fields)
        fields[key] = _with_item(fields[key], *_LIST.decode(_FIELDS.decode(tool)[_FUNCTIONS[0]]))
        tools[place] = _object(fields)
        return b"[" + b",".join(tools) + b"]"


def add_betas(api: Api, fields: dict[str, Any], betas: Sequence[str]) -> tuple[str, ...]:
    """Return the values that the header `anthropic-beta` needs. Bedrock has them in the body, so add them there."""
    if not api.is_bedrock or not betas:
        return tuple(betas)
    own = json_value(fields.get("anthropic_beta")) or ()
    fields["anthropic_beta"] = msgspec.Raw(msgspec.json.encode(list(dict.fromkeys((*own, *betas)))))
    return ()


def has_functions(tool: object) -> bool:
    """Return whether a tool is a list of functions, as Gemini has them."""
    return isinstance(tool, dict) and any(tool.get(key) for key in _FUNCTIONS)


def json_value(raw: msgspec.Raw | bytes | None) -> Any:
    """Return a value of JSON; None for a field that is missing."""
    return None if raw is None else json.loads(bytes(raw))


def _parts(item: RequestItem, raws: Sequence[bytes]) -> list[RequestItem]:
    """Return one item for each of the client's items that an item stands for."""
    return [RequestItem(range(place, place + 1), entries=item.entries, last=place) for place in item.places]


def _as_one(item: RequestItem, raws: Sequence[bytes]) -> list[RequestItem]:
    """Return an item with one content of Gemini's for the pieces of an answer: a call follows the side of the user."""
    if len(item.places) == 1:
        return [item]
    content = joined_content([raws[place] for place in item.places])
    return [RequestItem(body=msgspec.json.encode(content), entries=item.entries, last=item.last)]


def _with_own_keys(item: RequestItem, body: bytes, raws: Sequence[bytes]) -> bytes:
    """Return a reply that we wrote without keys that the client's own message in its place lacks.

    Many clients leave out the reasoning of a reply, and some servers refuse it in a request.
    """
    if not item.body or item.last < 0 or len(item.entries) != 1:
        return body
    entry = item.entries[0]
    if entry.kind != "message" or entry.message.role != "assistant":
        return body
    fields = _FIELDS.decode(body)
    if fields.keys() <= _CONTENTS:
        return body
    own = _FIELDS.decode(raws[item.last])
    return _object({key: raw for key, raw in fields.items() if key in own or key in _CONTENTS})


def _with_function(body: bytes, before: bytes) -> bytes:
    """Return a message that we wrote in the older form of chat completions, with one `function_call` and its result.

    The client's own messages have this form, and a result must have the form of its call. `before`: the message before
    it, in this form.
    """
    message = json.loads(body)
    match message:
        case {"role": "assistant", "tool_calls": [{"function": {"name": name, "arguments": arguments}}]}:
            del message["tool_calls"]
            return msgspec.json.encode({**message, "function_call": {"name": name, "arguments": arguments}})
        case {"role": "tool", "content": content}:
            call = json.loads(before).get("function_call") or {}
            name = message.get("name") or call.get("name")
            return msgspec.json.encode({"role": "function", "name": name, "content": content}) if name else body
        case _:
            return body


def _with_joined_responses(bodies: Sequence[bytes], are_ours: Sequence[bool]) -> list[bytes]:
    """Return Gemini's contents, in which a result of ours joins the content of the client's results next to it.

    The API wants the results of all calls of one content in one content. `are_ours`: whether we wrote each content.
    """
    joined: list[bytes] = []
    is_last_ours = False
    for body, is_ours in zip(bodies, are_ours, strict=True):
        parts = _parts_with_results(body) if (is_ours or is_last_ours) and len(joined) > 1 else []
        before = _parts_with_results(joined[-1]) if parts else []
        if before:
            fields = dict[str, bytes](_FIELDS.decode(joined[-1]))
            joined[-1] = _object(fields, {"parts": _in_order_of_calls([*before, *parts], joined[-2])})
        else:
            joined.append(body)
        is_last_ours = is_ours or bool(before)
    return joined


def _parts_with_results(body: bytes) -> list[bytes]:
    """Return the parts of a content of Gemini's with a result; [] for another content."""
    if not any(key.encode() in body for key in _RESPONSES):
        return []
    parts = [bytes(part) for part in _LIST.decode(_FIELDS.decode(body)["parts"])]
    return parts if any(_named(part, _RESPONSES) is not None for part in parts) else []


def _in_order_of_calls(parts: list[bytes], calls: bytes) -> list[bytes]:
    """Return results in the order of the calls in the content before them, and other parts behind the results."""
    named = [_named(bytes(part), _CALLS) for part in _LIST.decode(_FIELDS.decode(calls)["parts"])]
    places = {name: place for place, name in enumerate(named) if name is not None}
    return sorted(parts, key=lambda part: places.get(_named(part, _RESPONSES) or "", len(named)))


def _named(part: bytes, keys: tuple[str, str]) -> str | None:
    """Return the id, or else the name, of a call or a result in a part; None for another part."""
    fields = json.loads(part)
    inner = next((fields[key] for key in keys if fields.get(key)), None)
    return str(inner.get("id") or inner.get("name")) if isinstance(inner, dict) else None


def _object(fields: Mapping[str, bytes | msgspec.Raw], lists: Mapping[str, Sequence[bytes]] = {}) -> bytes:
    """Return a JSON object. `lists`: the items of those fields that are lists."""
    pieces: list[bytes | msgspec.Raw] = []  # Joined at once: each copy of a long request takes time.
    for key, raw in fields.items():
        pieces += (b"," if pieces else b"{", msgspec.json.encode(key), b":")
        pieces += (b"[", b",".join(lists[key]), b"]") if key in lists else (raw,)
    return b"".join([*pieces, b"}"])


def _with_item(raw: bytes | None, *values: bytes) -> bytes:
    """Return a JSON list with these values, in JSON, at its end."""
    return b"[" + b",".join([*_LIST.decode(raw or b"[]"), *values]) + b"]"


def _with_blocks(raw: bytes | None, message: bytes) -> bytes:
    """Return a system prompt of Anthropic's with the blocks of a message at its end."""
    blocks = msgspec.json.decode(message)["content"]
    prompt = json_value(raw)
    if isinstance(prompt, list):
        return _with_item(raw, *map(msgspec.json.encode, blocks))
    return msgspec.json.encode([*([{"type": "text", "text": prompt}] if prompt else []), *blocks])


def _with_instruction_part(raw: bytes | None) -> bytes:
    """Return a system prompt of Gemini's with the instruction of `expand` at its end, once."""
    if raw is not None and _INSTRUCTION in bytes(raw):
        return raw
    fields = dict[str, bytes](_FIELDS.decode(_set(raw) or b"{}"))
    parts = _set(fields.get("parts"))
    if parts is not None and parts.startswith(b"{"):  # Google takes one value in the place of a list with it.
        parts = b"[" + parts + b"]"
    return _object({**fields, "parts": _with_item(parts, b'{"text":' + _INSTRUCTION + b"}")})


def _set(raw: msgspec.Raw | bytes | None) -> bytes | None:
    """Return the bytes of a value; None for null, which is the same as a missing field for Google."""
    value = b"null" if raw is None else bytes(raw).strip()
    return None if value == b"null" else value


def _with_instruction(raw: bytes | None) -> bytes:
    """Return a system prompt with the instruction of `expand` at its end, once."""
    text = _INSTRUCTION[1:-1]
    raw = bytes(raw or b'""').strip()
    if text in raw:
        return raw
    if raw.startswith(b"["):
        return _with_item(raw, b'{"type":"text","text":' + _INSTRUCTION + b"}")
    return raw[:-1] + (b"\\n\\n" if raw != b'""' else b"") + text + b'"' if raw != b"null" else _INSTRUCTION


def _mark(fields: dict[str, bytes], bodies: list[bytes]) -> None:
    """Mark the request for Anthropic's cache. The tools do not change, nor does a system prompt that is a text."""
    prompt = json_value(fields.get("system"))
    system = prompt if isinstance(prompt, list) and all(isinstance(block, dict) for block in prompt) else []
    add_marks(system, bodies)
    if system:
        fields["system"] = msgspec.json.encode(system)
