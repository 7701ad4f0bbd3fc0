"""The items of the Responses API: who made each one, and which belong to one response."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from ..blocks import as_dict
from ..ui_messages import is_ui_message

__all__ = [
    "APPROVAL",
    "REFERENCE",
    "group",
    "id_key",
    "is_of_model",
    "kind_of",
    "own_id",
    "runs_at_provider",
    "start_keys",
]

APPROVAL = "mcp_approval_request"
"""A call whose answer lets the provider call a tool of an MCP server, or not."""

REFERENCE = "item_reference"
"""An item that the provider stores."""

_OF_MODEL = frozenset(
    {"reasoning", "program", "program_output", "mcp_list_tools", APPROVAL, REFERENCE}
    | {"compaction", "compaction_summary", "context_compaction", "agent_message", "multi_agent_call_output"}
)
"""Items of a response, next to messages of the assistant and calls."""


def is_of_model(item: Mapping[str, Any]) -> bool:
    """Return whether the model, or the provider for it, made this item."""
    kind = kind_of(item)
    if kind == "message":
        return item.get("role") == "assistant"
    if not isinstance(kind, str):
        return False
    return kind in _OF_MODEL or kind.endswith("_call") or (kind == "tool_search_output" and runs_at_provider(item))


def kind_of(item: Mapping[str, Any]) -> object:
    """Return the type of an item. Messages and references may leave it out; a reference has an id alone."""
    return item.get("type") or (REFERENCE if "id" in item and item.keys() <= {"id", "type"} else "message")


def runs_at_provider(item: Mapping[str, Any]) -> bool:
    """Return whether the provider runs this call, or ran it, so that the caller does not answer it."""
    match item.get("type"):
        case "tool_search_call" | "tool_search_output":
            return item.get("execution") == "server" or not item.get("call_id")
        case "shell_call":
            environment = item.get("environment")
            return isinstance(environment, Mapping) and str(environment.get("type")).startswith("container")
        case "multi_agent_call":
            return True
        case kind:
            return not isinstance(item.get("call_id"), str) and kind not in ("function_call", APPROVAL)


def id_key(kind: object) -> str:
    """Return the key that names the call, in a call of this kind or in an answer."""
    return {APPROVAL: "id", "mcp_approval_response": "approval_request_id"}.get(str(kind), "call_id")


def group(
    items: Iterable[object], starts: Set[str] = frozenset(), inside: Set[str | None] = frozenset()
) -> list[object]:
    """Return a caller's list with the items of each response as one response object, `{"object": "response", ...}`.

    A response ends before an item of another author, after a message of the phase `final_answer` or an incomplete item,
    and before an item with a key in `starts` (`start_keys`). An output of what the provider ran belongs to its call,
    and an item with an id in `inside` to what is before it. Other values stay as they are.
    """
    grouped: list[object] = []
    open_items: list[dict[str, Any]] | None = None
    answered_there: set[str | None] = set()
    for value in items:
        item = _as_item(value)
        is_inside = item is not None and (
            own_id(item, "id") in inside
            or (own_id(item, "call_id") in answered_there and str(kind_of(item)).endswith("_output"))
        )
        if item is None or not (is_inside or is_of_model(item)):
            grouped.append(value)
            open_items = None
            continue
        if open_items is None or not starts.isdisjoint(start_keys(item)):
            open_items = []
            grouped.append({"object": "response", "output": open_items})
        open_items.append(item)
        if item.get("type") == "shell_call" and runs_at_provider(item):
            answered_there.add(own_id(item, "call_id"))
        if item.get("phase") == "final_answer" or item.get("status") == "incomplete":
            open_items = None
    return grouped


def start_keys(item: Mapping[str, Any]) -> list[str]:
    """Return the values by which an item is recognised in a list: its own id, and others for clients that drop ids.

    The call id of an output is that of another item.
    """
    names = (
        ("id", "encrypted_content")
        if str(kind_of(item)).endswith("_output")
        else ("id", "call_id", "encrypted_content")
    )
    return [key for name in names if (key := own_id(item, name))]


def own_id(item: Mapping[str, Any], key: str) -> str | None:
    """Return an id of an item; None if it has none. Reading refuses one that is no string."""
    value = item.get(key)
    return value if isinstance(value, str) else None


def _as_item(value: object) -> dict[str, Any] | None:
    """Return an item as a dict; None for anything else, such as a string or a Message."""
    if not isinstance(value, Mapping) and not hasattr(value, "model_dump"):
        return None
    if is_ui_message(value):
        return None
    item = as_dict(value, "item")
    return item if "output" not in item or "type" in item else None
