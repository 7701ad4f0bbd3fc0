"""The frames of a WebSocket connection to `/v1/responses`, as requests by POST.

A frame `response.create` brings new items, and names the response that they follow. The connection therefore keeps the
list behind the newest response of each lane, and each request gets its whole list.

Sources: OpenAI's guide to its WebSocket mode, and recorded frames of Codex 0.169.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from .client import Header

__all__ = [
    "Frame",
    "FrameError",
    "ResponseLists",
    "error_frame",
    "limits_frame",
    "on_lane",
    "read_frame",
    "request_headers",
]

_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_ITEMS = msgspec.json.Decoder(list[Raw])
_LANE = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_NAME = re.compile(rb"[a-z0-9-]{1,100}")
_LANES_MAX: Final = 32
"""Lanes with a name on one connection."""
_ENVELOPE: Final = ("type", "stream_id", "generate", "stream", "input", "previous_response_id")
"""Fields of a frame that the body of a request does not have, or has otherwise."""
_AS_HEADER: Final = ("x-codex-window-id", "x-codex-turn-metadata", "x-codex-turn-state")
"""Keys of `client_metadata` that Codex sends as headers of a POST request. On a connection they change by frame."""
_HEADER_KEY: Final = "ws_request_header_"
"""How other keys of `client_metadata` begin that stand for a header, with `_` for `-`."""
_SOCKET_BETA: Final = "responses_websockets="
_NOT_SENT_ON: Final = (b"accept", b"accept-encoding", b"connection", b"content-length", b"content-type", b"upgrade")
"""Headers of a handshake that a POST request has otherwise, or not at all."""
_ERROR_HEADERS: Final = ("x-", "openai-", "retry-after")
"""How the names of headers begin that an error frame repeats, such as limits and times."""
_OWN: Final = "x-foveate-"
_LIMIT: Final = {"used-percent": float, "window-minutes": int, "reset-at": int}
"""Ends of the names of headers with a limit of Codex, and the types of their values."""


class FrameError(Exception):
    """A frame that cannot be served."""

    def __init__(self, code: str, message: str, param: str | None = None, lane: str = "") -> None:
        super().__init__(message)
        self.lane = lane
        self.error = {"type": "invalid_request_error", "code": code, "message": message, "param": param}
        """The error in the provider's words."""


class Frame(NamedTuple):
    """A frame `response.create`."""

    lane: str
    """Frames of one lane are answered one after the other; "" without a name."""
    fields: dict[str, Raw]
    """Its fields, not decoded."""
    size: int
    """Its length in bytes."""

    @property
    def previous(self) -> str:
        """The response that it follows; "" if there is none."""
        return str(_value(self.fields, "previous_response_id") or "")

    @property
    def is_warmup(self) -> bool:
        """Return whether it brings items only, and asks for no reply."""
        return _value(self.fields, "generate") is False

    @property
    def is_kept_by_provider(self) -> bool:
        """Return whether the provider may know a response that this connection does not know."""
        return _value(self.fields, "store") is not False and not self.is_warmup

    def body(self, items: list[bytes] | None) -> bytes:
        """Return the body of the request. `items`: the whole list; None to send the frame's own input."""
        fields: dict[str, bytes] = {key: bytes(raw) for key, raw in self.fields.items() if key not in _ENVELOPE}
        if items is None:
            fields |= {key: bytes(self.fields[key]) for key in _ENVELOPE[-2:] if key in self.fields}
        else:
            fields["input"] = b"[" + b",".join(items) + b"]"
        fields["stream"] = b"true"
        return b"{" + b",".join(msgspec.json.encode(key) + b":" + raw for key, raw in fields.items()) + b"}"

    def items(self) -> list[bytes]:
        """Return the items that the frame brings. Raises FrameError."""
        raw = bytes(self.fields.get("input", b"[]")).strip()
        if raw.startswith(b'"'):
            return [b'{"role":"user","content":' + raw + b"}"]
        try:
            return [bytes(item) for item in _ITEMS.decode(raw)]
        except msgspec.MsgspecError as error:
            raise FrameError("invalid_type", "`input` is a text or a list of items.", "input", self.lane) from error


def read_frame(text: bytes) -> Frame:
    """Return a frame of a client. Raises FrameError."""
    try:
        fields = _FIELDS.decode(text)
        kind = _value(fields, "type")
        lane = _value(fields, "stream_id")
    except (msgspec.MsgspecError, RecursionError) as error:
        raise FrameError("invalid_json", f"A frame is a JSON object: {error}.") from error
    if lane is not None and not (isinstance(lane, str) and _LANE.fullmatch(lane)):
        raise FrameError(
            "invalid_stream_id", "`stream_id` is 1 to 256 letters, digits, underscores, hyphens and dots.", "stream_id"
        )
    if kind != "response.create":
        raise FrameError(
            "unknown_event_type", f"Send frames of the type response.create, not {kind!r:.60}.", "type", lane or ""
        )
    return Frame(lane or "", fields, len(text))


class ResponseLists:
    """The list behind the newest response of each lane of one connection."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[str, list[bytes]]] = {}

    def whole(self, frame: Frame) -> list[bytes] | None:
        """Return all items of the request; None if the provider keeps what is before it. Raises FrameError.

        A lane may go on from the newest response of another one.
        """
        items, previous = frame.items(), frame.previous
        if _value(frame.fields, "conversation"):
            if frame.is_warmup:
                message = "`generate: false` is not served with `conversation`. Leave one of them out."
                raise FrameError("unsupported_parameter", message, "generate", frame.lane)
            return None
        if not previous:
            return items
        before = next((known for name, known in self._newest.values() if name == previous), None)
        if before is not None:
            return before + items
        if frame.is_kept_by_provider:
            return None
        raise FrameError(
            "previous_response_not_found",
            f"Previous response with id '{previous:.200}' not found.",
            "previous_response_id",
            frame.lane,
        )

    def check_lane(self, frame: Frame) -> None:
        """Raise FrameError if the frame begins one lane too many."""
        named = [lane for lane in self._newest if lane]
        if frame.lane and frame.lane not in named and len(named) >= _LANES_MAX:
            raise FrameError(
                "websocket_stream_limit_reached",
                f"This connection has {_LANES_MAX} stream IDs. Use one of them, or open a new connection.",
                "stream_id",
                frame.lane,
            )
        self._newest.setdefault(frame.lane, ("", []))

    def answered(self, frame: Frame, response: str, items: list[bytes] | None, output: list[bytes]) -> None:
        """Keep the list behind a response. `items`: those of its request; None if they are not the whole list."""
        self._newest[frame.lane] = (response, items + output) if items is not None else ("", [])

    def warmed(self, frame: Frame, items: list[bytes]) -> list[bytes]:
        """Keep the items of a warmup, and return the events that answer it."""
        response: dict[str, Any] = {
            "id": f"resp_{uuid.uuid4().hex}",
            "object": "response",
            "created_at": int(time.time()),
            "status": "in_progress",
            "model": _value(frame.fields, "model"),
            "output": [],
            "usage": None,
        }
        self.answered(frame, response["id"], items, [])
        usage: dict[str, Any] = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), 0)
        usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        events = [
            {"type": "response.created", "sequence_number": 0, "response": response},
            {
                "type": "response.completed",
                "sequence_number": 1,
                "response": {**response, "status": "completed", "usage": usage},
            },
        ]
        return [on_lane(frame.lane, msgspec.json.encode(event)) for event in events]


def on_lane(lane: str, event: bytes) -> bytes:
    """Return an event with the name of its lane."""
    return b'{"stream_id":' + msgspec.json.encode(lane) + b"," + event.lstrip()[1:] if lane else event


def error_frame(lane: str, status: int, content: bytes, headers: Mapping[str, str]) -> bytes:
    """Return the frame for an error of the provider, in the provider's words. `content`: the body of its answer."""
    try:
        error = msgspec.json.decode(content)["error"]
    except (msgspec.MsgspecError, KeyError, TypeError, RecursionError):
        error = None
    if not isinstance(error, dict):
        text = content.decode(errors="replace")[:1000] or f"The provider answered with status {status}."
        error = {"type": "server_error" if status >= 500 else "invalid_request_error", "code": None, "message": text}
    names = [name for name in headers if name.startswith(_ERROR_HEADERS) and not name.startswith(_OWN)]
    shown = {name: headers[name] for name in names}
    event = {"type": "error", "status": status, "error": error, **({"headers": shown} if shown else {})}
    return on_lane(lane, msgspec.json.encode(event))


def limits_frame(lane: str, headers: Mapping[str, str]) -> bytes | None:
    """Return the frame with the limits that the headers of an answer report; None if they report none.

    By POST, ChatGPT reports the limits of Codex in headers, and on a connection in an event.
    """
    limits: dict[str, dict[str, float]] = {}
    for name in ("primary", "secondary"):
        for end, type in _LIMIT.items():
            try:
                number = type(headers[f"x-codex-{name}-{end}"])
            except (KeyError, ValueError):
                continue
            if isfinite(number):
                limits.setdefault(name, {})[end.replace("-", "_")] = number
    limits = {name: limit for name, limit in limits.items() if "used_percent" in limit}
    if not limits:
        return None
    event: dict[str, Any] = {"type": "codex.rate_limits", "rate_limits": limits}
    credits = {end: headers.get(f"x-codex-credits-{end.replace('_', '-')}") for end in ("has_credits", "unlimited")}
    if None not in credits.values():
        event["credits"] = {end: (value or "").lower() == "true" for end, value in credits.items()}
        event["credits"]["balance"] = headers.get("x-codex-credits-balance")
    return on_lane(lane, msgspec.json.encode(event))


def request_headers(handshake: list[Header], frame: Frame) -> list[Header]:
    """Return the headers of a POST request for a frame on a connection with this handshake.

    Some headers of Codex belong to one request. On a connection they stand in the field `client_metadata`.
    """
    metadata = _value(frame.fields, "client_metadata")
    changed: dict[bytes, bytes] = {}
    for key, value in (metadata if isinstance(metadata, dict) else {}).items():
        is_header = key in _AS_HEADER or key.startswith(_HEADER_KEY)
        name = key.removeprefix(_HEADER_KEY).lower().replace("_", "-").encode()
        is_text = isinstance(value, str) and value.isascii() and value.isprintable()
        if is_header and is_text and _NAME.fullmatch(name) and name not in _NOT_SENT_ON:
            changed[name] = value.encode()
    changed |= {b"accept": b"text/event-stream", b"content-type": b"application/json"}
    headers = []
    for name, value in handshake:
        if name == b"openai-beta":
            values = [part.strip() for part in value.decode("latin-1").split(",")]
            value = ", ".join(part for part in values if not part.startswith(_SOCKET_BETA)).encode("latin-1")
        is_sent = value and name not in changed and name not in _NOT_SENT_ON
        if is_sent and not name.startswith(b"sec-websocket-"):
            headers.append((name, value))
    return [*headers, *changed.items()]


def _value(fields: Mapping[str, Raw], key: str) -> Any:
    try:
        return msgspec.json.decode(fields[key]) if key in fields else None
    except (msgspec.MsgspecError, RecursionError):  # Half of a surrogate pair, for example.
        return None
