"""Gathering of a streamed response of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import BrokenStream
from ...ports import Delta

__all__ = ["ResponsesGatherer"]

_TEXTS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
    "response.function_call_arguments.delta": "call",
    "response.custom_tool_call_input.delta": "call",
}
"""Events with a piece of a text, and the kind of their Delta."""


class ResponsesGatherer:
    """Gathers the events of one response.

    The last event holds the whole response. Some servers leave its items out, so the finished items are kept too.
    """

    def __init__(self) -> None:
        self._begun: dict[str, Any] = {}
        self._ended: dict[str, Any] | None = None
        self._items: dict[int, dict[str, Any]] = {}
        """The finished items, by their place in the output."""
        self._open_texts: dict[int, dict[tuple[str, object], str]] = {}
        """The texts of items that are not finished: by the item's place, and by kind and number."""

    def add(self, event: dict[str, Any]) -> list[Delta]:
        """Add an event, which this gatherer may keep and change, and return the pieces in it."""
        kind = event.get("type")
        match kind:
            case "response.created":
                self._begun = event["response"]
            case "response.output_item.added":
                item = event["item"]
                if str(item.get("type")) in ("function_call", "custom_tool_call"):
                    return [Delta("call", "", str(item.get("name") or ""))]
            case "response.output_item.done":
                place = event.get("output_index", len(self._items))
                self._items[place] = event["item"]
                self._open_texts.pop(place, None)
            case "response.completed" | "response.incomplete":
                self._ended = event["response"]
            case "response.failed":
                error = event["response"].get("error")
                fields = error if isinstance(error, Mapping) else {}
                why = ": ".join(str(fields[key]) for key in ("code", "message") if fields.get(key))
                raise BrokenStream(
                    f"The response failed: {why or 'the server gives no reason'}. Nothing of it was recorded; send the "
                    "request again."
                )
            case str() if kind in _TEXTS and isinstance(event.get("delta"), str) and event["delta"]:
                piece = _delta(_TEXTS[kind], event["delta"])
                texts = self._open_texts.setdefault(event.get("output_index", len(self._items)), {})
                key = piece.kind, event.get("content_index", event.get("summary_index"))
                texts[key] = texts.get(key, "") + piece.text
                return [piece]
        return []

    def whole(self) -> dict[str, Any] | None:
        """Return the response, or None while it is incomplete."""
        if self._ended is None:
            return None
        output = self._ended.get("output") or [self._items[index] for index in sorted(self._items)]
        return {**self._begun, **self._ended, "output": output}

    def partial(self) -> dict[str, Any] | None:
        """Return the response as far as it has arrived; None if nothing has.

        An unfinished item holds only its text. An unfinished call is left out.
        """
        if self._ended is not None:
            return self.whole()
        if not (self._begun or self._items or self._open_texts):
            return None
        open_texts = dict(self._open_texts)  # Another thread may add to it.
        items = {**{place: _open_item(texts) for place, texts in open_texts.items()}, **self._items}
        output = [item for place in sorted(items) if (item := items[place]) is not None]
        return {**self._begun, "status": None, "output": output}


def _open_item(texts: Mapping[tuple[str, object], str]) -> dict[str, Any] | None:
    """Return an unfinished item with these texts; None for a call."""
    if outputs := [text for (kind, _), text in texts.items() if kind == "text"]:
        content = [{"type": "output_text", "text": text} for text in outputs]
        return {"type": "message", "role": "assistant", "content": content}
    if thought := [text for (kind, _), text in texts.items() if kind == "reasoning"]:
        return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text} for text in thought]}
    return None


def _delta(kind: str, text: str) -> Delta:
    match kind:
        case "reasoning":
            return Delta("reasoning", text)
        case "call":
            return Delta("call", text)
        case _:
            return Delta("text", text)
