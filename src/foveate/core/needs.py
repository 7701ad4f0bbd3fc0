"""Needs of a request beyond its messages: options of the call, and the beta features that they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from .growing import Marks, selecting
from .messages import Message, Opaque, Reasoning
from .profiles import Profile
from .view import Entry

__all__ = ["CACHE_KEY", "DROP_STALE_REASONING", "Needs", "needs_of"]

CACHE_KEY = "prompt_cache_key"
"""The field of OpenAI's requests by which they find the cache of their conversation."""


class Needs(Struct, frozen=True):
    """Options that a request should have in addition to its prompt. Both are empty for most models."""

    betas: tuple[str, ...] = ()
    """Values of the header `anthropic-beta`, or `betas=` of the SDK's `client.beta.messages`."""
    options: Mapping[str, Any] = {}
    """Fields of the request, such as `thinking`."""

    def __bool__(self) -> bool:
        return bool(self.betas or self.options)

    def added_to(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments of `client.beta.messages.create`: the request with its own values first.

        Objects are merged field by field, so `thinking` keeps the type and the display that the request has.
        """
        merged = _merged(request, self.options)
        if self.betas:
            merged["betas"] = list(dict.fromkeys((*request.get("betas", ()), *self.betas)))
        return merged


DROP_STALE_REASONING = Needs(
    ("thinking-binding-controls-2026-08-01",),
    {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}},
)
"""Lets Anthropic drop reasoning that is bound to another prefix, instead of refusing the request. A changed system
prompt or tool list changes the prefix too. Source: Anthropic's page on preserved thinking.
"""


def needs_of(entries: tuple[Entry, ...], profile: Profile, marks: Marks) -> Needs:
    """Return the needs of a request with these entries. `marks`: those of their conversation."""
    messages = [entries[index].message for index in _SPECIAL.after(entries, marks).indices]
    shown = (part for message in messages for part in message.parts)
    has_bound = profile.binds_reasoning and any(isinstance(part, Reasoning) for part in shown)
    needs = DROP_STALE_REASONING if has_bound else Needs()
    if profile.format != "anthropic" or profile.strict:
        return needs
    betas = dict.fromkeys(beta for message in messages for beta in _betas_of(message))
    return Needs((*needs.betas, *betas), needs.options)


def _is_special(entry: Entry) -> bool:
    """Return whether the message of an entry may need something, as few messages do."""
    message = entry.message
    kinds = {*map(type, message.parts)}
    return entry.kind != "note" and (message.extra is not None or Opaque in kinds or Reasoning in kinds)


_SPECIAL = selecting(_is_special, "special 1")


def _betas_of(message: Message) -> Iterator[str]:
    """Yield the beta features of Anthropic that a message uses. Source: the pages that introduce them."""
    fields = message.extra.fields if message.extra is not None and message.extra.format == "anthropic" else ""
    if message.role == "system" and '"clear_at"' in fields:
        yield "mid-conversation-system-clear-at-2026-08-21"
    if '"output_config"' in fields:
        yield "mid-conversation-output-config-2026-07-01" if message.role == "system" else "per-turn-control-2026-07-01"
    for part in message.parts:
        if isinstance(part, Opaque) and part.kind in ("tool_addition", "tool_removal"):
            yield "mid-conversation-tool-changes-2026-07-01"
            if '"tool_definition"' in part.body:
                yield "inline-tools-2026-09-15"
        elif isinstance(part, Opaque) and part.kind == "compaction":
            yield "compact-2026-09-04" if '"signature"' in part.body else "compact-2026-01-12"


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(first)
    for key, value in second.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key, {}), Mapping):
            merged[key] = _merged(merged.get(key, {}), value)
        else:
            merged.setdefault(key, value)
    return merged
