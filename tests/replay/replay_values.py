"""Entries and rendered messages, built by hand."""

from __future__ import annotations

from foveate.core.messages import Message
from foveate.core.sizes import tokens_of
from foveate.core.stamps import Stamp
from foveate.core.view import Entry
from foveate.ports import Rendered


def entry(
    position: int, message: Message, *, source: Message | None = None, tokens: int | None = None, **more
) -> Entry:
    """Return an entry that shows `message`, as appended unless `source` or `kind` differ."""
    shown = tokens_of(message) if tokens is None else tokens
    stamp = Stamp(turn=0, time=0, tokens=shown, origin="user")
    was = None if more.get("kind") in ("summary", "stand-in") else source or message
    more["is_result"] = was is not None and was.role == "tool"
    return Entry(position, f"id{position}", message, was, stamp, tokens=shown, last=position, **more)


def rendered(*entries: Entry) -> Rendered:
    """Return one rendered message that shows these entries."""
    return Rendered("|".join(entry.message.text for entry in entries).encode(), entries)
