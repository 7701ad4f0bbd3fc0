"""Reader for contents of Gemini: a request body, a list of contents, or one content in each line.

The list may be in a field `contents`, as in a request, or `history`, as in saved chats; the object that holds it may
be in a field `request`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ...core.messages import Message
from ...formats.ui_messages import is_ui_message
from .recording import Reader, RecordedMessage, Recording, as_list, collect_notes
from .source import Sample, Source

__all__ = ["READER"]

_ROLES = ("user", "model", "function")


def _recognises(sample: Sample) -> bool:
    return any(_is_content(value) or _list_in(value)[0] for value in list(sample.lines) or [sample.document])


def _read(source: Source) -> Recording:
    values = list(source.values())
    holder: Mapping[str, Any] = {}
    counted: Counter[str] = Counter()
    contents = [(line, value) for line, value in values if _is_content(value)]
    if not contents:
        line, found, holder = next(
            ((line, *_list_in(value)) for line, value in values if _list_in(value)[0]), (0, [], {})
        )
        contents = [(line, value) for value in found]
        counted["other lines"] = max(0, len(values) - 1)
    else:
        counted["other lines"] = len(values) - len(contents)
    recorded = (*_instruction(holder), *_recorded(source, contents))
    model = holder.get("model")
    return Recording(
        source.path,
        READER.name,
        recorded,
        model if isinstance(model, str) else "",
        tuple(tool for tool in as_list(_setting(holder, "tools")) if isinstance(tool, dict)),
        notes=collect_notes(recorded, counted),
        provider="gemini",
    )


READER = Reader("gemini", _recognises, _read)


def _is_content(value: Any) -> bool:
    if not isinstance(value, dict) or is_ui_message(value):
        return False
    return isinstance(value.get("parts"), list) and value.get("role", "user") in _ROLES


def _list_in(value: Any) -> tuple[list[Any], Mapping[str, Any]]:
    """Return the contents in a value, and the object that holds them; an empty list if there are none."""
    if isinstance(value, list):
        return (value, {}) if value and all(map(_is_content, value[:8])) else ([], {})
    if not isinstance(value, dict):
        return [], {}
    for field in ("contents", "history"):
        found, _ = _list_in(value.get(field))
        if found:
            return found, value
    found, holder = _list_in(value["request"]) if isinstance(value.get("request"), dict) else ([], {})
    return found, {**value, **holder}


def _setting(holder: Mapping[str, Any], *names: str) -> Any:
    """Return a setting of a request, which the SDK takes in `config`."""
    config = holder.get("config")
    places = (holder, config) if isinstance(config, dict) else (holder,)
    return next((place[name] for place in places for name in names if name in place), None)


def _instruction(holder: Mapping[str, Any]) -> Iterator[RecordedMessage]:
    from ...formats.gemini import Gemini

    instruction = _setting(holder, "systemInstruction", "system_instruction")
    if isinstance(instruction, dict | str | list) and instruction:
        value = instruction if isinstance(instruction, dict) else {"parts": instruction}
        for message in Gemini().parse({**value, "role": "user"}):
            yield RecordedMessage(Message("system", message.parts), 0)


def _recorded(source: Source, contents: list[tuple[int, Any]]) -> Iterator[RecordedMessage]:
    from ...formats.gemini import Gemini

    format = Gemini()
    in_one_document = len({line for line, _ in contents}) < len(contents)
    for place, (line, value) in enumerate(contents, 1):
        with source.guard(line, f"content {place}" if in_one_document else ""):
            for message in format.parse(value):
                yield RecordedMessage(message, line)
