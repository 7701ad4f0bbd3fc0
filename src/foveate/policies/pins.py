"""Pins by the name of a tool: the newest todo list or plan stays as it was said, whatever else is shrunk.

An agent writes its list again and again; only the newest is in force, and that must survive every mechanism. So the
newest result of each named tool is pinned together with the call behind it, where the list often stands, and what
this policy had pinned before is unpinned. Pins made by hand are left alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from ..core.edits import Edit, Path, Pin, Target, Unpin
from ..core.messages import ToolCall
from ..core.planner import Policy
from ..core.view import Entry, View
from ..errors import BadSetting

__all__ = ["pin_newest", "pin_newest_as"]

_NAME = "pins"


def pin_newest(tools: Collection[str], keep: int = 1) -> Policy:
    """A policy that pins the newest `keep` results of each of these tools, and the calls that they answer.

    Results that are errors or were interrupted do not count: what was in force before them still is. Results that are
    shrunk already are pinned as they are shown, so name this policy before those that shrink. Raises BadSetting where
    no tool is named, or for `keep` below 1.
    """
    if isinstance(tools, str) or not tools or not all(tools):
        raise BadSetting(f"pin_newest needs the names of tools, such as ['todo_write'], not {tools!r:.80}.")
    if keep < 1:
        raise BadSetting(f"pin_newest needs keep >= 1, not {keep}.")
    return pin_newest_as(tools, keep, _NAME)


def pin_newest_as(tools: Collection[str], keep: int, name: str) -> Policy:
    """The same under a name of its own in the journal, so that it leaves the pins of others to them."""
    named = frozenset(tools)

    def policy(view: View) -> Iterator[Edit]:
        wanted = _newest(view, named, keep)
        ids = {entry.id for entry, _ in wanted}
        for entry in view.entries:
            paths = {path for one, path in wanted if one is entry} if entry.id in ids else set()
            own = {pin.path for pin in entry.pins if pin.policy == name}
            for path in sorted(own - paths):
                yield Unpin(Target(entry.id, path), name, "no longer the newest of its tool")
                for pin in entry.pins:  # What is pinned inside of it by somebody else was unpinned too.
                    if pin.policy != name and pin.path[: len(path)] == path:
                        yield Pin(Target(entry.id, pin.path), pin.policy, "still pinned")
            for path in sorted(paths - own):
                # A pin replaces one at the same place; one made by hand must stay the hand's.
                if not any(pin.path == path[: len(pin.path)] for pin in entry.pins):
                    yield Pin(Target(entry.id, path), name, "the newest of its tool")

    return policy


def _newest(view: View, tools: Collection[str], keep: int) -> list[tuple[Entry, Path]]:
    """What is to be pinned: results, and the calls that they answer, each with its place."""
    found: list[tuple[Entry, Path]] = []
    counts: dict[str, int] = defaultdict(int)
    waiting: set[str] = set()
    for entry in reversed(view.entries):
        result = entry.result
        if entry.is_result and result and result.state == "ok" and entry.tool in tools and counts[entry.tool] < keep:
            counts[entry.tool] += 1
            found.append((entry, ()))
            waiting.add(result.call_id)
        for index, part in enumerate(entry.source.parts if entry.source else ()):
            if isinstance(part, ToolCall) and part.call_id in waiting:
                waiting.discard(part.call_id)
                found.append((entry, (index,)))
    return found
