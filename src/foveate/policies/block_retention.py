"""Retention of message parts: show the blocks of plugins for their calls only.

A plugin adds blocks to a message: for the coming call, for a number of later calls, or for good. `core/enrich.py` puts
all of them into one message. This policy hides the blocks that are only for later calls, shows them after the first
call, and hides blocks that had all their calls. Age is the number of later messages with retention that had their first
call. These are counted by stored numbers, so hidden messages count too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

from msgspec import Struct

from ..core.edits import Edit, Hide, Path, Replace, Restore, Target, paths_overlap
from ..core.enrich import retained_parts
from ..core.growing import selecting
from ..core.messages import Message, Part, Text
from ..core.planner import Policy
from ..core.plurals import plural
from ..core.stamps import PartRetention, Retention
from ..core.view import Entry, View
from ..errors import BadMessage, BadSetting
from .kinds import check_kinds
from .placeholders import placeholder as fill

__all__ = ["NOT_KEPT", "POLICY", "BlockRetention", "PluginRetention", "retain_blocks"]

NOT_KEPT = '[No longer kept: expand("{handle}")]'
"""Template for a tool result with no part left to show: its call still needs an answer."""

POLICY = "retain"
"""The name of the policy in the journal."""

_RESULT: Path = (0,)
"""The tool result in a message of role tool."""


class PluginRetention(Struct, frozen=True):
    """Retention of one plugin's blocks, set by the program. None: the plugin's own value applies."""

    save: bool | int | None = None
    """Number of later calls at which the blocks are shown. True: for good. False: none."""
    display: bool | None = None
    """Whether the blocks are shown at the coming call."""
    release: bool = False
    """Whether the blocks leave the store when their calls are over. The message and its other parts stay."""

    def override(self, own: PartRetention) -> PartRetention:
        """Return the retention of a part with these values in place of the plugin's own."""
        shown = own.shown if self.display is None else self.display
        if self.save is None:
            calls = own.calls
        elif isinstance(self.save, bool):
            calls = None if self.save else 0
        else:
            calls = self.save
        return PartRetention(shown, calls, own.plugin)


_OWN = PluginRetention()
_RETAINED = selecting(lambda entry: bool(entry.stamp.retention))
"""For a plugin that the program sets nothing for."""


@check_kinds
def retain_blocks(*, plugins: Mapping[str, PluginRetention] = {}, placeholder: str = NOT_KEPT) -> Policy:
    """Return a policy that shows the parts of messages with retention for their calls only.

    `plugins`: retention by the name of the plugin, in place of the plugin's own. `placeholder`: template for a tool
    result with no part left. These stay as they are: parts that were expanded for the coming call, parts that another
    policy shrank, pinned parts and the user's own words. Raises BadSetting for a negative `save`.
    """
    for name, retention in plugins.items():
        if retention.save is not None and retention.save < 0:
            raise BadSetting(f"save of plugin {name!r} is {retention.save}. Set it to 0 or more, or to true or false.")
    return BlockRetention(dict(plugins), placeholder)


class BlockRetention:
    """The policy of `retain_blocks`."""

    follows: ClassVar[str] = "kept"
    """Read when a conversation is opened: the terms of messages that this policy follows."""

    def __init__(self, overrides: Mapping[str, PluginRetention], template: str) -> None:
        self._overrides, self._template = overrides, template

    def __call__(self, view: View) -> Iterator[Edit]:
        for entry in (*[view.entries[index] for index in _RETAINED.of(view).indices], *view.withheld):
            source, retention = entry.outline, entry.stamp.retention
            if source and source.parts and retention and entry.renewed < view.turn:  # An erased one has no parts.
                blocks = self._blocks(entry, source, retention, view)
                edits = self._edit_message if source.result is None else self._edit_result
                yield from edits(entry, blocks, view)

    def _edit_message(self, entry: Entry, blocks: list[_Block], view: View) -> Iterator[Edit]:
        if not any(block.stays for block in blocks):
            if entry.position == view.last_input:
                return  # The last input stays, even if all of its parts had their calls.
            if all(block.is_over for block in blocks):
                yield Hide(Target(entry.id), POLICY, "all its parts had their calls", keeps_original=_is_kept(blocks))
                return
        yield from _restore(entry, [block.path for block in blocks if block.is_back])
        yield from (_hide(entry, block) for block in blocks if block.is_due)

    def _edit_result(self, entry: Entry, blocks: list[_Block], view: View) -> Iterator[Edit]:
        due = [block for block in blocks if block.is_due]
        back = [block.path for block in blocks if block.is_back]
        if not any(block.stays for block in blocks):
            if due:  # Not hidden: providers refuse a call without an answer.
                text = fill(self._template, entry)
                is_kept = _is_kept(blocks)
                yield Replace(Target(entry.id, _RESULT), (Text(text),), POLICY, due[0].reason, keeps_original=is_kept)
            return
        if back and _RESULT in entry.shrunk:
            back, due = [_RESULT], [block for block in blocks if not block.stays and block.has_content]
        yield from _restore(entry, back)
        yield from (_hide(entry, block) for block in due)

    def _blocks(self, entry: Entry, source: Message, retention: Retention, view: View) -> list[_Block]:
        """Return the state of each part. Raises BadMessage if the number of retentions is not the number of parts."""
        parts = retained_parts(source)
        if len(parts) != len(retention.parts):
            raise BadMessage(f"{entry.handle} has times for {len(retention.parts)} of its {len(parts)} parts.")
        is_first_call = entry.stamp.turn + 1 >= view.turn
        age = 0 if is_first_call else view.retained - retention.sequence
        prefix = _RESULT if source.result else ()
        blocks: list[_Block] = []
        for i, (part, own) in enumerate(zip(parts, retention.parts, strict=True)):
            settings = self._overrides.get(own.plugin, _OWN)
            block = _block(entry, (*prefix, i), part, settings.override(own), age, is_first_call=is_first_call)
            blocks.append(block._replace(is_released=settings.release and block.is_over))
        return blocks


class _Block(NamedTuple):
    """One part of a message, and the change that is due."""

    path: Path
    has_content: bool
    """Blank texts have none. They are never sent to a model, so nothing need hide them."""
    stays: bool
    """Whether the part shows content after this plan."""
    is_due: bool
    """Whether the part is to be hidden now."""
    is_back: bool
    """Whether the part is to be shown again now."""
    is_over: bool
    """Whether the policy will never show the part again."""
    reason: str
    is_released: bool = False
    """Whether the part leaves the store when it is hidden."""


def _block(entry: Entry, path: Path, part: Part, retention: PartRetention, age: int, *, is_first_call: bool) -> _Block:
    has_content = not isinstance(part, Text) or bool(part.text.strip())
    is_over = not is_first_call and retention.calls is not None and retention.calls <= age
    is_wanted = retention.shown if is_first_call else not is_over
    shrunk_by = {
        policy for shrunk, policy in zip(entry.shrunk, entry.shrunk_by, strict=True) if paths_overlap(shrunk, path)
    }
    if not has_content or retention.is_permanent or entry.is_pinned(path) or shrunk_by - {POLICY}:
        return _Block(path, has_content, has_content, False, False, not has_content, "")
    is_hidden = bool(shrunk_by)
    # Only once: a user who undoes this wants the part hidden.
    is_back = is_hidden and is_wanted and entry.renewed <= entry.stamp.turn + 1
    stays = is_wanted and (is_back or not is_hidden)
    reason = "not for its first call" if is_first_call else _calls_reason(retention.calls or 0)
    return _Block(path, has_content, stays, not is_wanted and not is_hidden, is_back, is_over, reason)


def _calls_reason(calls: int) -> str:
    if calls == 0:
        return "for its first call only"
    return f"kept for {plural(calls, 'later call')}"


def _hide(entry: Entry, block: _Block) -> Hide:
    return Hide(Target(entry.id, block.path), POLICY, block.reason, keeps_original=not block.is_released)


def _is_kept(blocks: list[_Block]) -> bool:
    """Return whether the store keeps a message when all of it is hidden."""
    return any(block.has_content and not block.is_released for block in blocks)


def _restore(entry: Entry, paths: list[Path]) -> Iterator[Restore]:
    if paths:
        yield Restore(tuple(Target(entry.id, path) for path in paths), policy=POLICY, reason="kept for later calls")
