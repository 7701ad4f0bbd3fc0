"""The hard floor: rungs that bring any view within its budget without a model.

Each rung is a policy that frees what it can until the view is at its target (`core.budget.TARGET` of what is
usable), the oldest first, and each is climbed only if the one before was not enough:

1. images and documents become placeholders (only where images or bytes are over)
2. a single tool result or text that fills half the budget is cut
3. older tool results become placeholders
4. long texts and long arguments of older messages are cut
5. the oldest units are hidden behind one note
6. results and arguments of the newest unit are cut, then become placeholders

System prompts, the last user input and pins are never touched. Whatever is shrunk names the handle that brings it
back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.budget import Excess, to_free
from ..core.edits import Edit, Replace, Span, Summarize, Target
from ..core.messages import Media, Message, Text, ToolCall, ToolResult
from ..core.planner import Policy
from ..core.rules import cut_points
from ..core.view import Entry, View
from .placeholders import CLEARED, cut, fill, handle, replacement, shrink_arguments

__all__ = ["FLOOR"]

_NAME = "floor"
_KEEP = 400
"""Characters that are kept of a long text, and of a long string in arguments."""
_MEDIA = '[Media omitted: expand("{handle}")]'


class _Quota:
    """What is left to free."""

    def __init__(self, excess: Excess) -> None:
        self.tokens, self.bytes, self.images = excess.tokens, excess.bytes, excess.images

    def is_met(self) -> bool:
        return self.tokens <= 0 and self.bytes <= 0 and self.images <= 0

    def freed(self, tokens: int = 0, bytes: int = 0, images: int = 0) -> None:
        self.tokens -= tokens
        self.bytes -= bytes
        self.images -= images


def omit_media(view: View) -> Iterator[Edit]:
    """Rung 1: placeholders for media, oldest first."""
    excess = to_free(view)
    if not (excess.images or excess.bytes):
        return
    quota = _Quota(Excess(0, excess.bytes, excess.images))
    for entry in _touchable(view.entries, view):
        if entry.source is None or entry.shrunk:
            continue
        for path, media in _media_of(entry.source):
            if quota.is_met():
                return
            if excess.images and not media.is_image and not excess.bytes:
                continue
            yield replacement(entry, fill(_MEDIA, entry, path), _NAME, "too many images or bytes", path)
            quota.freed(bytes=len(media.data), images=int(media.is_image))


def cut_giants(view: View) -> Iterator[Edit]:
    """Rung 2: cut what alone fills half of the budget, so that one huge result does not push all else out."""
    budget = view.budget
    for entry in _touchable(view.entries, view):
        is_giant = entry.tokens > budget.usable // 2 or entry.bytes > budget.usable_bytes // 2
        if is_giant and entry.source is not None and not entry.message.calls and len(entry.message.text) > _KEEP:
            keep = max(_KEEP, min(budget.usable // 2, budget.usable_bytes // 8))
            if keep < len(entry.message.text):
                yield _cut_text(entry, keep, "fills half of the window alone")


def clear_older_results(view: View) -> Iterator[Edit]:
    """Rung 3: placeholders for tool results before the newest unit, oldest first."""
    yield from _clear(_touchable(_older(view), view), _Quota(to_free(view)))


def cut_older_texts(view: View) -> Iterator[Edit]:
    """Rung 4: cut long texts and arguments before the newest unit, oldest first."""
    quota = _Quota(to_free(view))
    for entry in _touchable(_older(view), view):
        if quota.is_met():
            return
        yield from _shrink(entry, _KEEP, quota)


def hide_oldest(view: View) -> Iterator[Edit]:
    """Rung 5: hide whole units, oldest first, behind one note that names them."""
    quota = _Quota(to_free(view))
    entries = view.entries
    points = cut_points(view)
    start = next((i for i in points if i == len(entries) or entries[i].message.role != "system"), 0)
    newest = _newest_unit(view)
    end = start
    for point in points:
        if point <= start or point > newest:
            continue
        for entry in entries[end:point]:
            quota.freed(entry.tokens, entry.bytes, entry.images)
        end = point
        if quota.is_met():
            break
    hidden = [entry for entry in entries[start:end] if entry.position and entry.kind != "stand-in"]
    if not hidden:
        return
    first, last = hidden[0], hidden[-1]
    note = (
        f"[Messages m{first.position} to m{last.last} are hidden to fit the window. "
        f'expand("m{first.position}-m{last.last}") brings them back, expand("m{last.last}") one of them.]'
    )
    last_id = last.span.last if last.span else last.id
    yield Summarize(Span(first.id, last_id), note, _NAME, "the oldest part did not fit the window")


def cut_newest(view: View) -> Iterator[Edit]:
    """Rung 6: cut long results and arguments of the newest unit, the largest first."""
    quota = _Quota(to_free(view))
    for entry in sorted(_touchable(view.entries[_newest_unit(view) :], view), key=lambda entry: -entry.tokens):
        if quota.is_met():
            return
        yield from _shrink(entry, _KEEP, quota)


def clear_newest(view: View) -> Iterator[Edit]:
    """Rung 7: placeholders even for the newest results, the oldest first."""
    yield from _clear(_touchable(view.entries, view), _Quota(to_free(view)))


FLOOR: tuple[Policy, ...] = (
    omit_media,
    cut_giants,
    clear_older_results,
    cut_older_texts,
    hide_oldest,
    cut_newest,
    clear_newest,
)
"""The rungs in the order in which they are climbed."""


def _touchable(entries: Sequence[Entry], view: View) -> list[Entry]:
    last_input = max((entry.position for entry in view.entries if entry.stamp.origin == "user"), default=0)
    return [
        entry
        for entry in entries
        if entry.source is not None
        and not entry.pinned
        and entry.message.role != "system"
        and entry.position != last_input
    ]


def _newest_unit(view: View) -> int:
    """Index at which the newest unit begins: the last message of the assistant that calls, or the last one of all."""
    points = cut_points(view)
    return points[-2] if len(points) > 1 else 0


def _older(view: View) -> Sequence[Entry]:
    return view.entries[: _newest_unit(view)]


def _clear(entries: Sequence[Entry], quota: _Quota) -> Iterator[Edit]:
    for entry in entries:
        if quota.is_met():
            return
        text = fill(CLEARED, entry)
        if entry.is_result and entry.tokens > len(text) // 4 + 8:
            yield replacement(entry, text, _NAME, "the view did not fit the window")
            quota.freed(entry.tokens - len(text) // 4 - 5, entry.bytes - len(text), entry.images)


def _shrink(entry: Entry, keep: int, quota: _Quota) -> Iterator[Edit]:
    """Cut the long texts of one entry, part by part, and the long strings in its arguments."""
    reason = "the view did not fit the window"
    message = entry.source
    if message is None:
        return
    for i, part in enumerate(message.parts):
        match part:
            case ToolCall() if len(part.arguments) > 2 * keep and (i,) not in entry.shrunk and not entry.mended:
                small = shrink_arguments(part.arguments, keep)
                if len(small) < len(part.arguments):
                    yield Replace(Target(entry.id, (i,)), (Text(small),), _NAME, reason)
                    quota.freed((len(part.arguments) - len(small)) // 4, len(part.arguments) - len(small))
            case Text() if len(part.text) > 2 * keep and (i,) not in entry.shrunk:
                yield replacement(entry, cut(part.text, keep, handle(entry)), _NAME, reason, (i,))
                quota.freed((len(part.text) - keep) // 4, len(part.text) - keep)
            case ToolResult() if len(entry.message.text) > 2 * keep:
                yield _cut_text(entry, keep, reason)
                quota.freed(entry.tokens - keep // 4 - 20, entry.bytes - keep)
            case _:
                pass


def _cut_text(entry: Entry, keep: int, reason: str) -> Edit:
    source = entry.source
    assert source is not None, "only what was appended is cut"
    return replacement(entry, cut(source.text, keep, entry.handle), _NAME, reason)


def _media_of(message: Message) -> Iterator[tuple[tuple[int, ...], Media]]:
    for i, part in enumerate(message.parts):
        if isinstance(part, Media):
            yield (i,), part
        elif isinstance(part, ToolResult):
            yield from (((i, j), nested) for j, nested in enumerate(part.content) if isinstance(nested, Media))
