"""Pins by tool name: keep the newest todo list or plan word for word.

An agent writes its list again and again, and only the newest is in force. The policy pins the newest result of each
named tool together with its call, which often holds the list, and unpins the earlier ones. It does not change pins made
by hand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from ..core.edits import Edit, Path, Pin, Target, Unpin
from ..core.messages import ToolCall
from ..core.planner import Policy
from ..core.tool_names import add_tool_names
from ..core.view import Entry, View
from ..errors import BadSetting
from .kinds import check_kinds

__all__ = ["pin_newest", "pin_newest_as"]

_NAME = "pins"


@check_kinds
def pin_newest(tools: Collection[str], keep: int = 1) -> Policy:
    """Return a policy that pins the newest `keep` results of each of these tools or actions, and their calls.

    Errors and interrupted results do not count: the result before them is still in force. A result that is shrunk
    already is pinned in its short form, so put this policy before those that shrink. Raises BadSetting if no tool is
    named, and for `keep` below 1.
    """
    if isinstance(tools, str) or not tools or not all(tools):
        raise BadSetting(f"tools of pin_newest is {tools!r:.80}. Pass a list of tool names, such as ['todo_write'].")
    if keep < 1:
        raise BadSetting(f"keep of pin_newest is {keep}. Set it to 1 or more.")
    return pin_newest_as(_NAME, tools, keep)


def pin_newest_as(name: str, tools: Collection[str], keep: int) -> Policy:
    """Return the same policy with this name in the journal. It does not change pins of policies with other names."""
    names = add_tool_names(tools)

    def policy(view: View) -> Iterator[Edit]:
        wanted = _newest_parts(view, names, keep)
        ids = {entry.id for entry, _ in wanted}
        for entry in view.entries:
            paths = {path for pinned, path in wanted if pinned is entry} if entry.id in ids else set()
            own = {pin.path for pin in entry.pins if pin.policy == name}
            for path in sorted(own - paths):
                yield Unpin(Target(entry.id, path), name, "no longer the newest of its tool")
                for pin in entry.pins:  # Unpinning also removed the pins of others on parts inside this one.
                    if pin.policy != name and pin.path[: len(path)] == path:
                        yield Pin(Target(entry.id, pin.path), pin.policy, "still pinned")
            for path in sorted(paths - own):
                # A pin replaces another one at the same place, and a pin made by hand must stay.
                if not any(pin.path == path[: len(pin.path)] for pin in entry.pins):
                    yield Pin(Target(entry.id, path), name, "the newest of its tool")

    return policy


def _newest_parts(view: View, tools: Collection[str], keep: int) -> list[tuple[Entry, Path]]:
    """Return the results to pin and their calls, each with its path."""
    parts: list[tuple[Entry, Path]] = []
    counts: dict[str, int] = defaultdict(int)
    open_calls: set[str] = set()
    has_open_action = False
    for entry in reversed(view.entries):
        result = entry.outlined_result
        if entry.is_result and result and result.state == "ok" and entry.tool in tools and counts[entry.tool] < keep:
            counts[entry.tool] += 1
            parts.append((entry, ()))
            if entry.outline is not None and entry.outline.result is not None:
                open_calls.add(result.call_id)
            else:
                has_open_action = True
        for index, part in enumerate(entry.outline.parts if entry.outline else ()):
            if isinstance(part, ToolCall) and part.call_id in open_calls:
                open_calls.discard(part.call_id)
                parts.append((entry, (index,)))
        if has_open_action and entry.outline is not None and entry.outline.role == "assistant":
            has_open_action = False
            parts.append((entry, ()))  # The text of the step holds the call of the action.
    return parts
