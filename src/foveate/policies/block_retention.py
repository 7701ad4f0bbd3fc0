"""Show each part of a message for as long as it is meant to be shown, and no longer.

Plugins add blocks to what the user says: some for the coming call alone, some for a number of later calls, some for
good. `core/enrich.py` makes one message of them and the history keeps all of it; this policy hides what is only for
later, shows it once the first call was made, and hides what has had its calls. Age is counted in later messages with
retention that have had their first call, by numbers that are stamped: what was hidden still counts, so nothing stays
for ever because something newer went first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from ..core.edits import Edit, Hide, Path, Replace, Restore, Target, paths_overlap
from ..core.enrich import retained_parts
from ..core.messages import Message, Part, Text
from ..core.planner import Policy
from ..core.stamps import PartRetention, Retention
from ..core.view import Entry, View
from ..errors import BadMessage, BadSetting
from .placeholders import placeholder

__all__ = ["NOT_KEPT", "POLICY", "PluginRetention", "RetainBlocks", "retain_blocks"]

NOT_KEPT = '[No longer kept: expand("{handle}")]'
"""For a tool result of which nothing is left to show: its call still needs an answer."""

POLICY = "retain"
"""Its name in the journal."""

_RESULT: Path = (0,)
"""The tool result in a message of role tool."""


class PluginRetention(Struct, frozen=True):
    """What a program's user says of one plugin, whatever the plugin says. None: as the plugin has it."""

    save: bool | int | None = None
    """For how many later calls what it adds is shown: true for good, false for none."""
    display: bool | None = None
    """Whether it is shown at the coming call."""

    def over(self, kept: PartRetention) -> PartRetention:
        """What counts then for a part of the plugin's."""
        shown = kept.shown if self.display is None else self.display
        if self.save is None:
            return PartRetention(shown, kept.calls, kept.plugin)
        return PartRetention(
            shown, (None if self.save else 0) if isinstance(self.save, bool) else self.save, kept.plugin
        )


def retain_blocks(*, plugins: Mapping[str, PluginRetention] = {}, placeholder: str = NOT_KEPT) -> Policy:
    """A policy that shows the parts of messages with retention for their time.

    `plugins`: by the name of a plugin, what counts in the place of what it says. `placeholder`: stands for a tool
    result of which nothing is left. What was expanded for the coming call stays for that call; what another policy has
    shrunk, what is pinned and what the user said of their own is left alone. Raises BadSetting for a negative `save`.
    """
    for name, said in plugins.items():
        if said.save is not None and said.save < 0:
            raise BadSetting(f"retain_blocks needs a save of 0 or more for the plugin {name!r}, not {said.save}.")
    return RetainBlocks(dict(plugins), placeholder)


class RetainBlocks:
    """The policy that `retain_blocks` makes. A class, so that opening can tell whether it is there: plugins need it."""

    def __init__(self, rules: Mapping[str, PluginRetention], placeholder: str) -> None:
        self._rules, self._placeholder = rules, placeholder

    def __call__(self, view: View) -> Iterator[Edit]:
        for entry in (*view.entries, *view.withheld):
            source, retention = entry.source, entry.stamp.retention
            if source and retention and entry.renewed < view.turn:
                blocks = self._blocks(entry, source, retention, view)
                of_kind = self._of_message if source.result is None else self._of_result
                yield from of_kind(entry, blocks, view)

    def _of_message(self, entry: Entry, blocks: list[_Block], view: View) -> Iterator[Edit]:
        if not any(block.stays for block in blocks):
            if entry.position == view.last_input:
                return  # The user is not silenced, though all that was said was meant for less.
            if all(block.measure_excess for block in blocks):
                yield Hide(Target(entry.id), POLICY, "all its parts had their calls")
                return
        yield from _shown_again(entry, [block.path for block in blocks if block.is_back])
        yield from (_hidden(entry, block) for block in blocks if block.is_due)

    def _of_result(self, entry: Entry, blocks: list[_Block], view: View) -> Iterator[Edit]:
        due = [block for block in blocks if block.is_due]
        back = [block.path for block in blocks if block.is_back]
        if not any(block.stays for block in blocks):
            if due:  # Not hidden: a call without its answer is refused by every provider.
                text = placeholder(self._placeholder, entry)
                yield Replace(Target(entry.id, _RESULT), (Text(text),), POLICY, due[0].why)
            return
        if back and _RESULT in entry.shrunk:
            back, due = [_RESULT], [block for block in blocks if not block.stays and block.says]
        yield from _shown_again(entry, back)
        yield from (_hidden(entry, block) for block in due)

    def _blocks(self, entry: Entry, source: Message, retention: Retention, view: View) -> list[_Block]:
        """How each part of an entry stands. Raises BadMessage where a part has no time of its own."""
        parts = retained_parts(source)
        if len(parts) != len(retention.parts):
            raise BadMessage(f"{entry.handle} has times for {len(retention.parts)} of its {len(parts)} parts.")
        is_first = entry.stamp.turn + 1 >= view.turn
        age = 0 if is_first else view.retained - retention.sequence
        under = _RESULT if source.result else ()
        kept = [self._rules[one.plugin].over(one) if one.plugin in self._rules else one for one in retention.parts]
        return [
            _block(entry, (*under, i), part, one, age, is_first=is_first)
            for i, (part, one) in enumerate(zip(parts, kept, strict=True))
        ]


class _Block(NamedTuple):
    """One part: where it is, and what is to become of it."""

    path: Path
    says: bool
    """Whether it is more than blank; blank texts are not shown to any model, so nothing need hide them."""
    stays: bool
    """Whether something of it is shown after this plan."""
    is_due: bool
    is_back: bool
    measure_excess: bool
    """Whether it will never be shown again of itself."""
    why: str


def _block(entry: Entry, path: Path, part: Part, kept: PartRetention, age: int, *, is_first: bool) -> _Block:
    says = not isinstance(part, Text) or bool(part.text.strip())
    measure_excess = not is_first and kept.calls is not None and kept.calls <= age
    is_wanted = kept.shown if is_first else not measure_excess
    shrunk_by = {who for at, who in zip(entry.shrunk, entry.shrunk_by, strict=True) if paths_overlap(at, path)}
    if not says or kept.is_permanent or entry.is_pinned(path) or shrunk_by - {POLICY}:
        return _Block(path, says, says, False, False, not says, "")
    is_hidden = bool(shrunk_by)
    # Once: who takes that back wants it hidden.
    is_back = is_hidden and is_wanted and entry.renewed <= entry.stamp.turn + 1
    stays = is_wanted and (is_back or not is_hidden)
    why = "not for its first call" if is_first else _had(kept.calls or 0)
    return _Block(path, says, stays, not is_wanted and not is_hidden, is_back, measure_excess, why)


def _had(calls: int) -> str:
    if calls == 0:
        return "for its first call only"
    return f"kept for {calls} later call{'s' if calls > 1 else ''}"


def _hidden(entry: Entry, block: _Block) -> Hide:
    return Hide(Target(entry.id, block.path), POLICY, block.why)


def _shown_again(entry: Entry, paths: list[Path]) -> Iterator[Restore]:
    if paths:
        yield Restore(tuple(Target(entry.id, path) for path in paths), policy=POLICY, reason="kept for later calls")
