"""The hard floor: stages that bring any view within its budget without a model.

Each stage frees what it can until the view is at its target (`core.budget.TARGET` of what is usable), the oldest
first, and each is climbed only if the one before did not come near it:

1. images and documents become placeholders (only where images or bytes are over)
2. a single tool result or text that fills half the budget becomes a digest of that size
3. older tool results become digests, a seventh of their size and less
4. older tool results become placeholders
5. long texts and long arguments of older messages are cut
6. the oldest units are hidden behind one note
7. results and arguments of the newest unit become digests and are cut, become placeholders, and at last the unit is
   hidden: only while the view does not fit

System prompts, the last user input and pins are never touched. Whatever is shrunk names the handle that brings it
back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.budget import TARGET, Excess, measure_excess
from ..core.edits import Edit, Path, Replace, Span, Summarize, Target
from ..core.messages import Media, Text, ToolCall, ToolResult
from ..core.planner import Stage
from ..core.rules import cut_points
from ..core.view import Entry, View
from ..digest import digest, room_for
from .placeholders import CLEARED, cut, cut_arguments, handle, is_whole, placeholder, replacement, shrink_arguments

__all__ = ["FLOOR"]

_NAME = "floor"
_REASON = "the view did not fit the window"
_KEEP = 400
"""Characters that are kept of a long text, and of a long string in arguments."""
_LONG = 1_000
"""Characters from which on a result becomes a digest before it becomes a placeholder."""
_HALF = 0.5 / TARGET
"""Half of the whole budget, as a share of the target that a stage sees as its budget."""
_NOTE_TOKENS = 40
"""About what the note costs that stands for hidden messages."""
_MEDIA = '[Media omitted: {about}expand("{handle}")]'


class _Quota:
    """What is left to free: at most what these entries hold, or the rest would be freed in vain."""

    def __init__(self, excess: Excess, entries: Sequence[Entry]) -> None:
        self.tokens = min(excess.tokens, sum(entry.tokens for entry in entries))
        self.bytes = min(excess.bytes, sum(entry.bytes for entry in entries))
        self.images = min(excess.images, sum(entry.images for entry in entries))

    def is_met(self) -> bool:
        return self.tokens <= 0 and self.bytes <= 0 and self.images <= 0

    def wants(self, entry: Entry) -> bool:
        """Whether shrinking this entry would help."""
        return self.tokens > 0 or self.bytes > 0 or (self.images > 0 and entry.images > 0)

    def freed(self, tokens: int = 0, bytes: int = 0, images: int = 0) -> None:
        self.tokens -= tokens
        self.bytes -= bytes
        self.images -= images


def omit_media(view: View) -> Iterator[Edit]:
    """Rung 1: placeholders for media, oldest first."""
    over = measure_excess(view)
    touchable = _touchable(view.entries, view, expanded=True)
    entries = [entry for entry in touchable if entry.source and any(entry.message.media())]
    quota = _Quota(Excess(0, over.bytes, over.images), entries)
    for entry in entries:
        for path, media in _media_shown(entry):
            if quota.is_met():
                return
            if entry.is_pinned(path):
                continue
            if quota.bytes > 0 or media.is_image:
                yield replacement(entry, placeholder(_MEDIA, entry, path), _NAME, "too many images or bytes", path)
                quota.freed(bytes=len(media.data), images=int(media.is_image))


def cut_giants(view: View) -> Iterator[Edit]:
    """Rung 2: digest what alone fills half of the budget, so that one huge result does not push all else out."""
    over = measure_excess(view)
    half, half_bytes = int(view.budget.usable * _HALF), int(view.budget.usable_bytes * _HALF)
    keep = max(_KEEP, min(half, half_bytes // 4))
    for entry in _touchable(view.entries, view):
        is_giant = (over.tokens and entry.tokens > half) or (over.bytes and entry.bytes > half_bytes)
        if is_giant and not entry.is_pinned() and not entry.message.calls and len(entry.message.text) > keep:
            yield _digested(entry, keep, "fills half of the window alone")


def shrink_older_results(view: View) -> Iterator[Edit]:
    """Rung 3: digests of long tool results before the newest unit, oldest first."""
    entries = [
        entry
        for entry in _touchable(_older(view), view)
        if entry.is_result
        and not entry.is_pinned()
        and is_whole(entry)
        and entry.source
        and len(entry.source.text) > _LONG
    ]
    quota = _Quota(measure_excess(view), entries)
    for entry in entries:
        if quota.wants(entry):
            made = _digested(entry, room_for(len(entry.source.text if entry.source else "")), _REASON)
            yield made
            length = sum(len(part.text) for part in made.content if isinstance(part, Text))
            quota.freed(entry.tokens - length // 4 - 6, entry.bytes - length, entry.images)


def clear_older_results(view: View) -> Iterator[Edit]:
    """Rung 4: placeholders for tool results before the newest unit, oldest first."""
    yield from _clear(_touchable(_older(view), view), measure_excess(view))


def cut_older_texts(view: View) -> Iterator[Edit]:
    """Rung 5: cut long texts and arguments before the newest unit, oldest first."""
    yield from _shrink(_touchable(_older(view), view), _KEEP, measure_excess(view))


def hide_oldest(view: View) -> Iterator[Edit]:
    """Rung 6: hide whole units, oldest first, behind one note that names them."""
    yield from _hide(view, _newest_unit(view), expanded=False)


def cut_newest(view: View) -> Iterator[Edit]:
    """Rung 7: digest or cut long results and arguments of the newest unit, the largest first."""
    newest = _touchable(view.entries[_newest_unit(view) :], view, expanded=True)
    yield from _shrink(sorted(newest, key=lambda entry: -entry.tokens), _KEEP, measure_excess(view))


def clear_newest(view: View) -> Iterator[Edit]:
    """Rung 8: placeholders even for the newest results, the oldest first, and for arguments of many small values."""
    yield from _clear(_touchable(view.entries, view, expanded=True), measure_excess(view))
    for entry in _touchable(view.entries[_newest_unit(view) :], view, expanded=True):
        for place, call in _calls_shown(entry):
            if len(call.arguments) > 4 * _KEEP and not entry.is_pinned((place,)):
                small = cut_arguments(call.arguments, _KEEP, handle(entry))
                yield Replace(Target(entry.id, (place,)), (Text(small),), _NAME, _REASON)


def hide_newest(view: View) -> Iterator[Edit]:
    """Rung 9: hide even the newest unit. The model may do again what it did; but it can go on."""
    yield from _hide(view, len(view.entries), expanded=True)


FLOOR: tuple[Stage, ...] = (
    Stage(omit_media),
    Stage(cut_giants),
    Stage(shrink_older_results),
    Stage(clear_older_results),
    Stage(cut_older_texts),
    Stage(hide_oldest),
    Stage(cut_newest, is_last_resort=True),
    Stage(clear_newest, is_last_resort=True),
    Stage(hide_newest, is_last_resort=True),
)
"""The stages in the order in which they are climbed."""


def _hide(view: View, before: int, *, expanded: bool) -> Iterator[Edit]:
    """Hide units from the oldest on, none that begins at index `before` or later.

    `expanded`: those too of which something was expanded for the coming call.
    """
    entries = view.entries
    points = cut_points(view)
    start = next((i for i in points if i == len(entries) or entries[i].message.role != "system"), 0)
    last_input = view.last_input
    quota = _Quota(measure_excess(view), [entry for entry in entries[start:before] if _may_go(entry, last_input)])
    quota.freed(-_NOTE_TOKENS)
    end = start
    kept: list[str] = []
    for point in points:
        if point <= start or point > before:
            continue
        unit, end = entries[end:point], point
        if not expanded and any(entry.renewed >= view.turn for entry in unit):
            kept += [entry.id for entry in unit if entry.source is not None]
            continue
        for entry in unit:
            if _may_go(entry, last_input):
                quota.freed(entry.tokens, entry.bytes, entry.images)
        if quota.is_met():
            break
    there = [entry for entry in entries[start:end] if entry.position and entry.kind != "stand-in"]
    hidden = [entry for entry in there if entry.id not in kept]
    if not hidden:
        return
    first = min(hidden, key=lambda entry: entry.position)  # An answer may stand before what was said before it.
    last = max(hidden, key=lambda entry: entry.last)
    note = (
        f"[Messages m{first.position} to m{last.last} are hidden to fit the window. "
        f'expand("m{first.position}-m{last.last}") brings them back, expand("m{last.last}") one of them.]'
    )
    last_id = last.span.last if last.span else last.id
    yield Summarize(Span(first.id, last_id), note, _NAME, "the oldest part did not fit the window", keep=tuple(kept))


def _touchable(entries: Sequence[Entry], view: View, *, expanded: bool = False) -> list[Entry]:
    """What may be shrunk in some part, the oldest first.

    `expanded`: what was expanded for the coming call too, last. Else whoever asked for it would never see it.
    """
    last_input = view.last_input
    touchable = [entry for entry in entries if entry.source is not None and _may_shrink(entry, last_input)]
    if not expanded:
        return [entry for entry in touchable if entry.renewed < view.turn]
    return sorted(touchable, key=lambda entry: entry.renewed >= view.turn)


def _may_go(entry: Entry, last_input: int) -> bool:
    return not entry.is_pinned() and _may_shrink(entry, last_input)


def _may_shrink(entry: Entry, last_input: int) -> bool:
    is_pinned = any(not pin.path for pin in entry.pins)
    return not is_pinned and entry.message.role != "system" and entry.position != last_input


def _newest_unit(view: View) -> int:
    """Index at which the newest unit begins: the last message of the assistant that calls, or the last one of all."""
    points = cut_points(view)
    return points[-2] if len(points) > 1 else 0


def _older(view: View) -> Sequence[Entry]:
    return view.entries[: _newest_unit(view)]


def _clear(entries: Sequence[Entry], excess: Excess) -> Iterator[Edit]:
    results = [entry for entry in entries if entry.is_result and not entry.is_pinned()]
    quota = _Quota(excess, results)
    for entry in results:
        text = placeholder(CLEARED, entry)
        if quota.wants(entry) and entry.tokens > len(text) // 4 + 8:
            yield replacement(entry, text, _NAME, _REASON)
            quota.freed(entry.tokens - len(text) // 3 - 6, entry.bytes - len(text), entry.images)


def _shrink(entries: Sequence[Entry], keep: int, excess: Excess) -> Iterator[Edit]:
    """Cut the long texts of entries, part by part, and the long strings in their arguments."""
    quota = _Quota(Excess(excess.tokens, excess.bytes), entries)
    for entry in entries:
        message = entry.source
        if message is None or quota.is_met():
            return
        for i, part in enumerate(message.parts):
            match part:
                case _ if entry.is_pinned((i,)):
                    pass
                case ToolCall() if len(part.arguments) > 2 * keep and (i,) not in entry.shrunk:
                    small = shrink_arguments(part.arguments, keep, handle(entry))
                    if len(small) < len(part.arguments):
                        yield Replace(Target(entry.id, (i,)), (Text(small),), _NAME, _REASON)
                        quota.freed((len(part.arguments) - len(small)) // 4, len(part.arguments) - len(small))
                case Text() if len(part.text) > 2 * keep and (i,) not in entry.shrunk:
                    yield replacement(entry, cut(part.text, keep, handle(entry)), _NAME, _REASON, (i,))
                    quota.freed((len(part.text) - keep) // 4, len(part.text) - keep)
                case ToolResult() if len(entry.message.text) > 2 * keep:
                    yield _digested(entry, keep, _REASON)
                    quota.freed(entry.tokens - keep // 4 - 20, entry.bytes - keep)
                case _:
                    pass


def _digested(entry: Entry, room: int, reason: str) -> Replace:
    source = entry.source
    assert source is not None, "only what was appended is shrunk"
    return replacement(entry, digest(source.text, room, handle(entry)).text, _NAME, reason)


def _calls_shown(entry: Entry) -> Iterator[tuple[int, ToolCall]]:
    """The calls of a message as they are shown, each with its place in the message as appended."""
    places = [i for i, part in enumerate(entry.source.parts) if isinstance(part, ToolCall)] if entry.source else []
    yield from zip(places, entry.message.calls, strict=False)


def _media_shown(entry: Entry) -> Iterator[tuple[Path, Media]]:
    """Media of the message as appended that are still shown, each with its path."""
    source = entry.source
    for i, part in enumerate(source.parts if source else ()):
        found = part.content if isinstance(part, ToolResult) else (part,)
        for j, media in enumerate(found):
            path = (i, j) if isinstance(part, ToolResult) else (i,)
            if isinstance(media, Media) and not any(path[: len(shrunk)] == shrunk for shrunk in entry.shrunk):
                yield path, media
