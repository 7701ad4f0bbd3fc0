"""Chunks of a streamed chat completion, gathered into the completion they make.

Compatible servers differ: some give calls no index, or all of them the same; some repeat names and ids in every piece;
some have fields of their own, for thoughts and for signatures that must come back. What is known to be text is added
up, lists of numbered parts are joined by their number, and of anything else the last that was said is kept.
"""

from __future__ import annotations

from typing import Any

from ..ports import Delta
from ._streams import fields

__all__ = ["OpenAIGatherer"]

_TEXT = frozenset(
    {"content", "refusal", "reasoning_content", "reasoning", "thinking", "arguments", "input", "text", "summary"}
    | {"data", "transcript"}
)
"""Fields that come in pieces."""
_THOUGHTS = ("reasoning_content", "reasoning")


class OpenAIGatherer:
    """One answer. See `Gatherer`."""

    def __init__(self) -> None:
        self._said: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[dict[str, Any]] = []
        self._places: dict[object, int] = {}
        """Where a call is in the list, by the index that its pieces carry."""

    def add(self, event: object) -> list[Delta]:
        """The pieces that this chunk brings."""
        chunk = fields(event)
        choices = chunk.pop("choices", None) or []
        self._said |= {key: value for key, value in chunk.items() if value is not None or key not in self._said}
        pieces: list[Delta] = []
        for choice in choices:
            if choice.get("index", 0):
                continue  # Of several answers the first is the one that is recorded.
            delta = choice.pop("delta", None) or {}
            _merge(self._choice, choice)
            calls = delta.pop("tool_calls", None) or []
            _merge(self._message, delta)
            pieces += _pieces(delta)
            for call in calls:
                pieces += self._call(call)
        return pieces

    def whole(self) -> dict[str, Any] | None:
        """The completion; None while it is not whole: its last chunk says why it ended."""
        if not self._choice.get("finish_reason"):
            return None
        # Pieces of empty text say the same as none, where there are thoughts or calls for them to stand beside.
        message = {key: value for key, value in self._message.items() if value != "" or key not in _THOUGHTS}
        if self._calls:
            message = {**message, "content": message["content"] or None, "tool_calls": self._calls}
        choice = {"index": 0, **self._choice, "message": message}
        return {**self._said, "object": "chat.completion", "choices": [choice]}

    def _call(self, piece: dict[str, Any]) -> list[Delta]:
        call = self._at(piece.pop("index", None), piece)
        before = _function(call).get("name")
        _merge(call, piece)
        name = "" if before else str(_function(call).get("name") or "")
        inner = _function(piece)
        text = inner.get("arguments") or inner.get("input") or ""
        return [Delta("call", text if isinstance(text, str) else "", name)] if name or text else []

    def _at(self, index: object, piece: dict[str, Any]) -> dict[str, Any]:
        """The call that a piece belongs to: the one with its index, or the last one where it has none.

        A piece that names a function and has an id of its own begins a call all the same, and so does one that names a
        function and has no index.
        """
        place = self._places.get(index, -1) if index is not None else len(self._calls) - 1
        if place >= 0:
            call, id = self._calls[place], piece.get("id")
            is_named = bool(_function(piece).get("name"))
            if not is_named or (id == call.get("id") if id else index is not None):
                return call
        self._calls.append({})
        self._places[index] = len(self._calls) - 1
        return self._calls[-1]


def _function(call: dict[str, Any]) -> dict[str, Any]:
    inner = call.get("function") or call.get("custom")
    return inner if isinstance(inner, dict) else {}


def _pieces(delta: dict[str, Any]) -> list[Delta]:
    thought = next((text for key in _THOUGHTS if isinstance(text := delta.get(key), str) and text), "")
    said = [text for key in ("content", "refusal") if isinstance(text := delta.get(key), str) and text]
    return [Delta("reasoning", thought)] * bool(thought) + [Delta("text", text) for text in said]


def _merge(whole: dict[str, Any], piece: dict[str, Any]) -> None:
    """Add what a piece says to what was said before."""
    for key, value in piece.items():
        before = whole.get(key)
        match before, value:
            case str(), str() if key in _TEXT:
                whole[key] = before + value
            case dict(), dict():
                _merge(before, value)
            case list(), list():
                _join(before, value)
            case str(), list() if key in _TEXT:
                whole[key] = [{"type": "text", "text": before}, *value] if before else value
            case list(), str() if key in _TEXT:
                _join(before, [{"type": "text", "text": value}] if value else [])
            case _:
                if value not in (None, "") or before is None:  # Nothing takes nothing back.
                    whole[key] = value


def _join(parts: list[Any], more: list[Any]) -> None:
    """Add parts to a list; one with the number and type of a part that is there is a piece of it."""
    for part in more:
        number = part.get("index") if isinstance(part, dict) else None
        if number is not None:
            same = [one for one in parts if one.get("index") == number and one.get("type") == part.get("type")]
            if same:
                _merge(same[0], part)
                continue
        parts.append(part)
