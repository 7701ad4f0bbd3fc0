"""Gathering of a streamed answer of Gemini: server-sent events, or one JSON array (`streamGenerateContent`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any

import msgspec

from ...ports import Delta
from ..json import to_text
from ..streams import EventReader
from .read import CALL, SIGNATURE, fields_of, response_fields

__all__ = ["GeminiGatherer", "PieceReader", "is_of_model", "joined_content"]

_STEP = re.compile(r"""\.([^.\[]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
"""One step of a JSON path: a name, an index, or a quoted name."""


class _Author(msgspec.Struct):
    role: str | None = None


_ROLE = msgspec.json.Decoder(_Author)


def is_of_model(content: object) -> bool:
    """Return whether the model wrote a content: a dict, an SDK object, or JSON."""
    if isinstance(content, bytes):
        if b"model" not in content:
            return False
        try:
            return _ROLE.decode(content).role == "model"
        except msgspec.MsgspecError:  # The reader names the problem.
            return False
    role = content.get("role") if isinstance(content, Mapping) else getattr(content, "role", None)
    return isinstance(role, str) and role == "model"


def joined_content(contents: Sequence[object]) -> dict[str, Any]:
    """Return one content with the parts of several, joined like the pieces of a stream. Raises BadMessage.

    The given contents stay as they are.
    """
    gatherer = GeminiGatherer()
    for content in contents:
        own = json.loads(content) if isinstance(content, bytes) else deepcopy(fields_of(content, "content"))
        gatherer.add({"candidates": [{"content": own}]})
    return dict(gatherer.content)


class PieceReader:
    """Splits the bytes of a stream into its responses, in the form that the first byte shows."""

    def __init__(self) -> None:
        self._events: EventReader | None = None
        self._object: list[bytes] = []  # The pieces of the object that is not complete yet.
        self._depth = 0
        self._in_text = self._is_escaped = False

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield an empty name and the bytes of each response that these bytes complete."""
        if self._events is None and not self._depth:
            piece = piece.lstrip()
            if piece and piece[:1] not in b"[{,]":
                self._events = EventReader()
        if self._events is not None:
            yield from self._events.feed(piece)
        elif piece:
            yield from self._objects(piece)

    def _objects(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        start = 0
        for place, byte in enumerate(piece):
            if self._in_text:
                if self._is_escaped:
                    self._is_escaped = False
                elif byte == 0x5C:  # A backslash.
                    self._is_escaped = True
                elif byte == 0x22:  # A quote.
                    self._in_text = False
            elif byte == 0x22:
                self._in_text = True
            elif byte == 0x7B:  # An opening brace.
                if not self._depth:
                    start = place
                self._depth += 1
            elif byte == 0x7D and self._depth:
                self._depth -= 1
                if not self._depth:
                    yield "", b"".join([*self._object, piece[start : place + 1]])
                    self._object = []
        if self._depth:
            self._object.append(piece[start:])


class GeminiGatherer:
    """Gathers the responses of one streamed answer into one GenerateContentResponse.

    Pieces of text are joined as long as none has a thought signature: Google asks to keep such a part apart. Arguments
    of a call that come in pieces (`partialArgs`, Vertex AI) are put together by their paths.
    """

    def __init__(self) -> None:
        self._response: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._content: dict[str, Any] = {"role": "model"}
        self._parts: list[dict[str, Any]] = []
        self._open: dict[str, Any] | None = None
        """The call whose arguments are not complete."""
        self._text_at = ""
        """The path of the argument whose text goes on."""

    def add(self, event: dict[str, Any]) -> list[Delta]:
        """Add a response of the stream, which this gatherer may keep and change, and return the pieces in it."""
        event = response_fields(event, "event")
        candidates = event.pop("candidates", None) or []
        self._response |= {key: value for key, value in event.items() if value is not None}
        pieces: list[Delta] = []
        for value in candidates:
            candidate = fields_of(value, "event.candidates")
            if candidate.get("index"):
                continue  # Only the first of several answers is recorded.
            content = fields_of(candidate.pop("content", None) or {}, "event.candidates.content")
            parts = content.pop("parts", None) or []
            self._content |= content
            self._candidate |= {key: item for key, item in candidate.items() if item is not None}
            for part in parts:
                pieces += self._part(fields_of(part, "event.candidates.content.parts"))
        return pieces

    def whole(self) -> dict[str, Any] | None:
        """Return the response, or None while it is incomplete. Its last candidate names why it ended.

        The response to a prompt that was blocked has no candidate.
        """
        if not self._candidate.get("finishReason"):
            feedback = self._response.get("promptFeedback") or {}
            return dict(self._response) if fields_of(feedback, "promptFeedback").get("blockReason") else None
        return self._whole()

    def partial(self) -> dict[str, Any] | None:
        """Return the response as far as it has arrived; None if nothing has."""
        return self._whole() if self._response or self._parts else None

    @property
    def content(self) -> dict[str, Any]:
        """The content as far as it has arrived."""
        return {**self._content, "parts": list(self._parts)}

    def _whole(self) -> dict[str, Any]:
        return {**self._response, "candidates": [{**self._candidate, "content": self.content}]}

    def _part(self, part: dict[str, Any]) -> list[Delta]:
        if part.get(CALL) is not None:
            return self._call(part, fields_of(part[CALL], "event.functionCall"))
        text = part.get("text")
        last = self._parts[-1] if self._parts else {}
        if isinstance(text, str) and part.keys() <= {"text", "thought"} and last.keys() <= {"text", "thought"} and last:
            if bool(last.get("thought")) == bool(part.get("thought")):
                last["text"] += text
            elif text:
                self._parts.append(part)
        elif text != "" or part.get(SIGNATURE):  # An empty text alone says nothing; the last piece often has one.
            self._parts.append(part)
        if not text or not isinstance(text, str):
            return []
        return [Delta("reasoning" if part.get("thought") else "text", text)]

    def _call(self, part: dict[str, Any], inner: dict[str, Any]) -> list[Delta]:
        pieces: list[Delta] = []
        name, more = inner.pop("name", None), inner.pop("willContinue", None)
        partial = inner.pop("partialArgs", None) or []
        if self._open is None or name:
            self._open = {"name": name, **{key: item for key, item in inner.items() if item is not None}}
            self._open.setdefault("args", {})
            self._parts.append({**part, CALL: self._open})
            self._text_at = ""
            pieces.append(Delta("call", "", str(name or "")))
        elif inner.get("args"):
            self._open["args"] |= inner["args"]
        for value in partial:
            self._argument(self._open["args"], fields_of(value, "event.functionCall.partialArgs"))
        if not more:
            pieces.append(Delta("call", to_text(self._open["args"], "event.functionCall.args")))
            self._open = None
        return pieces

    def _argument(self, arguments: dict[str, Any], partial: dict[str, Any]) -> None:
        """Put one value, or the next piece of a text, at its path in the arguments."""
        path = str(partial["jsonPath"])
        steps: list[Any] = [
            int(number) if number else (name or re.sub(r"\\(.)", r"\1", one or two))
            for name, number, one, two in _STEP.findall(path)
        ]
        value = _value(partial)
        target: Any = arguments
        for step, following in pairwise(steps):
            target = _child(target, step, [] if isinstance(following, int) else {})
        if isinstance(value, str) and path == self._text_at:
            value = _child(target, steps[-1], "") + value
        _child(target, steps[-1], None)
        target[steps[-1]] = value
        self._text_at = path if partial.get("willContinue") else ""


def _child(target: Any, step: Any, default: Any) -> Any:
    """Return the value at one step, which is set to `default` if there is none."""
    if isinstance(target, dict):
        return target.setdefault(step, default)
    target += [None] * (step + 1 - len(target))
    if target[step] is None:
        target[step] = default
    return target[step]


def _value(partial: dict[str, Any]) -> Any:
    for key in ("stringValue", "boolValue", "numberValue"):
        if partial.get(key) is not None:
            value = partial[key]
            return int(value) if isinstance(value, float) and value.is_integer() else value
    return "" if partial.get("willContinue") and "nullValue" not in partial else None
