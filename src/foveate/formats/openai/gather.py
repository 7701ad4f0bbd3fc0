"""Gathering of a streamed answer of OpenAI's chat completions."""

from __future__ import annotations

from typing import Any

from ...ports import Delta
from ..streams import error_in_stream

__all__ = ["OpenAIGatherer"]

_TEXT = frozenset(
    {"content", "refusal", "reasoning_content", "reasoning", "thinking", "arguments", "input", "text", "summary"}
    | {"data", "transcript"}
)
"""Fields whose text comes in pieces."""
_THOUGHTS = ("reasoning_content", "reasoning")


class OpenAIGatherer:
    """Gathers the chunks of one streamed answer into its completion.

    Compatible servers differ. Some give calls no index, or the same index to all; some repeat names and ids in every
    piece; some add fields for thoughts and for signatures that must come back. Known texts are appended, lists of
    numbered parts are joined by number, and of any other field the last value is kept.
    """

    def __init__(self) -> None:
        self._completion: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[dict[str, Any]] = []
        self._places: dict[object, int] = {}
        """The position of a call in the list, by the index in its pieces."""

    def add(self, event: dict[str, Any]) -> list[Delta]:
        """Add a chunk, which this gatherer may keep and change, and return the pieces in it."""
        if "type" in event and "choices" not in event:
            return []  # Not a chunk: gateways send other events too, such as a ping.
        choices = event.pop("choices", None) or []
        self._completion |= {
            key: value for key, value in event.items() if value is not None or key not in self._completion
        }
        pieces: list[Delta] = []
        for choice in choices:
            if choice.get("index", 0):
                continue  # Only the first of several answers is recorded.
            if choice.get("error") or choice.get("finish_reason") == "error":
                raise error_in_stream(choice.get("error") or {})
            delta = choice.pop("delta", None) or {}
            _merge(self._choice, choice)
            calls = delta.pop("tool_calls", None) or []
            _merge(self._message, delta)
            pieces += _pieces(delta)
            for call in calls:
                pieces += self._call(call)
        return pieces

    def whole(self) -> dict[str, Any] | None:
        """Return the completion, or None while it is incomplete. Its last chunk names why it ended."""
        return self._response(self._calls) if self._choice.get("finish_reason") else None

    def partial(self) -> dict[str, Any] | None:
        """Return the completion as far as it has arrived; None if nothing has."""
        if not self._completion and not self._choice:
            return None
        return self._response([call for call in self._calls if _is_readable(call)])

    def _response(self, calls: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the completion with these calls."""
        # An empty text next to thoughts or calls means the same as none.
        message = {key: value for key, value in self._message.items() if value != "" or key not in _THOUGHTS}
        if calls:
            message = {**message, "content": message["content"] or None, "tool_calls": calls}
        choice = {"index": 0, **self._choice, "message": message}
        return {**self._completion, "object": "chat.completion", "choices": [choice]}

    def _call(self, piece: dict[str, Any]) -> list[Delta]:
        call = self._call_at(piece.pop("index", None), piece)
        before = _function(call).get("name")
        _merge(call, piece)
        name = "" if before else str(_function(call).get("name") or "")
        inner = _function(piece)
        text = inner.get("arguments") or inner.get("input") or ""
        return [Delta("call", text if isinstance(text, str) else "", name)] if name or text else []

    def _call_at(self, index: object, piece: dict[str, Any]) -> dict[str, Any]:
        """Return the call that a piece belongs to: the call with its index, or the last call if it has none.

        A piece with a function's name begins a new call if it also has a new id, or no index.
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


def _is_readable(call: dict[str, Any]) -> bool:
    """Return whether a call that may be incomplete has what reading it needs."""
    inner = _function(call)
    return bool(inner.get("name")) and ("custom" not in call or isinstance(inner.get("input"), str))


def _function(call: dict[str, Any]) -> dict[str, Any]:
    inner = call.get("function") or call.get("custom")
    return inner if isinstance(inner, dict) else {}


def _pieces(delta: dict[str, Any]) -> list[Delta]:
    thought = next((text for key in _THOUGHTS if isinstance(text := delta.get(key), str) and text), "")
    texts = [text for key in ("content", "refusal") if isinstance(text := delta.get(key), str) and text]
    return [Delta("reasoning", thought)] * bool(thought) + [Delta("text", text) for text in texts]


def _merge(whole: dict[str, Any], piece: dict[str, Any]) -> None:
    """Merge a piece into the earlier content."""
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
                if value not in (None, "") or before is None:  # An empty value does not remove an earlier one.
                    whole[key] = value


def _join(parts: list[Any], more: list[Any]) -> None:
    """Append parts to a list. A part with the number and type of an earlier one is a piece of it."""
    for part in more:
        number = part.get("index") if isinstance(part, dict) else None
        if number is not None:
            same = [entry for entry in parts if entry.get("index") == number and entry.get("type") == part.get("type")]
            if same:
                _merge(same[0], part)
                continue
        parts.append(part)
