"""The hard floor: stages that bring any view within its budget without a model.

Each stage shrinks entries, oldest first, until the view is at its target (`core.budget.TARGET` of the usable budget). A
stage runs only if the stages before it did not come near the target:

1. Images and documents become placeholders (only if the view has too many images or bytes).
2. A single tool result or text that fills half the budget becomes a digest of that size.
3. Older tool results become digests, a seventh of their size or less.
4. Older tool results become placeholders.
5. Long texts and long arguments of older messages are cut.
6. The oldest units are hidden behind one note with a digest of them.
7. Results and arguments of the newest unit become digests and are cut (only while the view does not fit).
8. They become placeholders (only while the view does not fit).
9. The newest unit is hidden (only while the view does not fit).

No stage changes system prompts, the last user input or pins. Each replacement text has the handle of the original.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.budget import TARGET, Excess, measure_excess
from ..core.edits import Edit, Path, Replace, Span, Summarize, Target
from ..core.handles import Handle
from ..core.messages import Media, Text, ToolCall, ToolResult, user
from ..core.planner import Stage
from ..core.results import native_message, read_actions
from ..core.sizes import tokens_of
from ..core.units import cut_points
from ..core.view import Entry, View
from ..digest import digest, room_for
from ..digest.history import digest_messages
from .frames import HIDDEN, HIDDEN_ALONE, HIDDEN_ONE, HIDDEN_ONE_ALONE, frame_summary, unframe_summary
from .names import names_needed_later
from .placeholders import (
    CLEARED,
    cut_arguments,
    cut_text,
    handle_of,
    is_whole,
    placeholder,
    replacement,
    shrink_arguments,
    shrink_step,
)
from .span_selection import is_carried_summary
from .summary_input import all_messages, summary_tokens_max

__all__ = ["FLOOR"]

_NAME = "floor"
_REASON = "the view did not fit the window"
_KEEP = 400
"""Characters that are kept of a long text, and of a long string in arguments."""
_DIGESTED_MIN = 1_000
"""Characters of a result that becomes a digest before it becomes a placeholder."""
_HALF = 0.5 / TARGET
"""Half of the whole budget, as a share of the target, which is the budget that a stage sees."""
_NOTE_TOKENS = 40
"""About the size of the note for hidden messages, without a digest of them."""
_FRAME_TOKENS = 70
"""The size of the note around a digest, at most."""
_SPARE_TOKENS = 40
"""Tokens that stay free next to the note, for messages that the rules of a provider may add to a view."""
_DIGEST_TOKENS = 24
"""A digest of hidden messages below this size is not worth its frame."""
_BYTES = 4
"""Bytes of a token."""
_MEDIA_OMITTED = '[Media omitted: {about}expand("{handle}")]'


class _Quota:
    """The amounts that a stage still has to free: never more than its entries hold."""

    def __init__(self, excess: Excess, entries: Sequence[Entry]) -> None:
        self.tokens = min(excess.tokens, sum(entry.tokens for entry in entries))
        self.bytes = min(excess.bytes, sum(entry.bytes for entry in entries))
        self.images = min(excess.images, sum(entry.images for entry in entries))

    def is_met(self, reserved: int = 0) -> bool:
        """Return whether enough was freed, with `reserved` tokens for a note."""
        return self.tokens + reserved <= 0 and self.bytes + _BYTES * reserved <= 0 and self.images <= 0

    def needs(self, entry: Entry) -> bool:
        """Return whether shrinking this entry would help."""
        return self.tokens > 0 or self.bytes > 0 or (self.images > 0 and entry.images > 0)

    def subtract(self, tokens: int = 0, bytes: int = 0, images: int = 0) -> None:
        self.tokens -= tokens
        self.bytes -= bytes
        self.images -= images


def omit_media(view: View) -> Iterator[Edit]:
    """Stage 1: replace media by placeholders, oldest first."""
    excess = measure_excess(view)
    shrinkable = _shrinkable(view.entries, view, with_expanded=True)
    entries = [entry for entry in shrinkable if entry.outline and any(entry.message.media())]
    quota = _Quota(Excess(0, excess.bytes, excess.images), entries)
    for entry in entries:
        for path, media in _shown_media(entry):
            if quota.is_met():
                return
            if entry.is_pinned(path):
                continue
            if quota.bytes > 0 or media.is_image:
                text = placeholder(_MEDIA_OMITTED, entry, path)
                yield replacement(entry, text, _NAME, "too many images or bytes", path)
                quota.subtract(bytes=len(media.data), images=int(media.is_image))


def digest_giants(view: View) -> Iterator[Edit]:
    """Stage 2: digest an entry that alone fills half of the budget, so that it does not displace all others."""
    excess = measure_excess(view)
    half, half_bytes = int(view.budget.usable * _HALF), int(view.budget.usable_bytes * _HALF)
    keep = max(_KEEP, min(half, half_bytes // 4))
    for entry in _shrinkable(view.entries, view):
        is_giant = (excess.tokens and entry.tokens > half) or (excess.bytes and entry.bytes > half_bytes)
        if is_giant and not entry.is_pinned() and not entry.message.calls and len(entry.message.text) > keep:
            yield _replace_by_digest(entry, keep, "fills half of the window alone")


def digest_older_results(view: View) -> Iterator[Edit]:
    """Stage 3: digest long tool results before the newest unit, oldest first."""
    entries = [
        entry
        for entry in _shrinkable(_before_newest_unit(view), view)
        if entry.is_result
        and not entry.is_pinned()
        and is_whole(entry)
        and entry.result
        and len(entry.result.text) > _DIGESTED_MIN
    ]
    quota = _Quota(measure_excess(view), entries)
    for entry in entries:
        if quota.needs(entry):
            edit = _replace_by_digest(entry, room_for(len(entry.result.text if entry.result else "")), _REASON)
            yield edit
            length = sum(len(part.text) for part in edit.content if isinstance(part, Text))
            quota.subtract(entry.tokens - length // 4 - 6, entry.bytes - length, entry.images)


def clear_older_results(view: View) -> Iterator[Edit]:
    """Stage 4: replace tool results before the newest unit by placeholders, oldest first."""
    yield from _clear_results(_shrinkable(_before_newest_unit(view), view), measure_excess(view))


def cut_older_texts(view: View) -> Iterator[Edit]:
    """Stage 5: cut long texts and arguments before the newest unit, oldest first."""
    yield from _cut_long_parts(_shrinkable(_before_newest_unit(view), view), _KEEP, measure_excess(view))


def hide_oldest(view: View) -> Iterator[Edit]:
    """Stage 6: hide whole units, oldest first, behind one note with their handles and a digest of them.

    If the view does not even fit without them, stages 7 and 8 shrink the newest unit, which makes room for the digest.
    """
    fits, newest = int(view.budget.usable / TARGET), _newest_unit_index(view)
    shrinkable = _shrinkable(view.entries[newest:], view, with_expanded=True)
    results = [entry for entry in shrinkable if entry.is_result and not entry.is_pinned()]  # Reasoning stays as it is.
    later = sum(max(0, entry.tokens - _KEEP // 2) for entry in results)
    yield from _hide_units(view, newest, with_expanded=False, usable=fits, later=later)


def cut_newest(view: View) -> Iterator[Edit]:
    """Stage 7: digest or cut long results and arguments of the newest unit, largest first."""
    newest = _shrinkable(view.entries[_newest_unit_index(view) :], view, with_expanded=True)
    yield from _cut_long_parts(sorted(newest, key=lambda entry: -entry.tokens), _KEEP, measure_excess(view))


def clear_newest(view: View) -> Iterator[Edit]:
    """Stage 8: replace even the newest results by placeholders, and cut arguments of many small values."""
    yield from _clear_results(_shrinkable(view.entries, view, with_expanded=True), measure_excess(view))
    for entry in _shrinkable(view.entries[_newest_unit_index(view) :], view, with_expanded=True):
        for index, call in _shown_calls(entry):
            if len(call.arguments) > 4 * _KEEP and not entry.is_pinned((index,)):
                small = cut_arguments(call.arguments, _KEEP, handle_of(entry))
                yield Replace(Target(entry.id, (index,)), (Text(small),), _NAME, _REASON)


def hide_newest(view: View) -> Iterator[Edit]:
    """Stage 9: hide even the newest unit. The model may repeat its work, but it can continue."""
    yield from _hide_units(view, len(view.entries), with_expanded=True, usable=view.budget.usable)


FLOOR: tuple[Stage, ...] = (
    Stage(omit_media),
    Stage(digest_giants),
    Stage(digest_older_results),
    Stage(clear_older_results),
    Stage(cut_older_texts),
    Stage(hide_oldest),
    Stage(cut_newest, is_last_resort=True),
    Stage(clear_newest, is_last_resort=True),
    Stage(hide_newest, is_last_resort=True),
)
"""The stages in the order in which they run."""


# -------------------------------------------------------------------------------------------------------------- entries


def _shrinkable(entries: Sequence[Entry], view: View, *, with_expanded: bool = False) -> list[Entry]:
    """Return the entries with a part that may shrink, oldest first.

    `with_expanded`: append the entries that were expanded for the coming call. Without it the model sees them at least
    once.
    """
    last_input = view.last_input
    shrinkable = [entry for entry in entries if entry.outline is not None and _may_shrink(entry, last_input)]
    if not with_expanded:
        return [entry for entry in shrinkable if entry.renewed < view.turn]
    return sorted(shrinkable, key=lambda entry: entry.renewed >= view.turn)


def _may_hide(entry: Entry, last_input: int) -> bool:
    return not entry.is_pinned() and _may_shrink(entry, last_input)


def _may_shrink(entry: Entry, last_input: int) -> bool:
    is_pinned_whole = any(not pin.path for pin in entry.pins)
    return not is_pinned_whole and not entry.is_system and entry.position != last_input


def _newest_unit_index(view: View) -> int:
    """Return the index of the newest unit: the last message of the assistant with calls, or the last message."""
    points = cut_points(view)
    return points[-2] if len(points) > 1 else 0


def _before_newest_unit(view: View) -> Sequence[Entry]:
    return view.entries[: _newest_unit_index(view)]


def _shown_calls(entry: Entry) -> Iterator[tuple[int, ToolCall]]:
    """Yield the calls of a message as the view shows them, each with its index in the appended message."""
    indexes = [i for i, part in enumerate(entry.outline.parts) if isinstance(part, ToolCall)] if entry.outline else []
    yield from zip(indexes, entry.message.calls, strict=False)


def _shown_media(entry: Entry) -> Iterator[tuple[Path, Media]]:
    """Yield the media of the appended message that are still shown, each with its path."""
    source = entry.outline
    for i, part in enumerate(source.parts if source else ()):
        content = part.content if isinstance(part, ToolResult) else (part,)
        for j, media in enumerate(content):
            path = (i, j) if isinstance(part, ToolResult) else (i,)
            if isinstance(media, Media) and not any(path[: len(shrunk)] == shrunk for shrunk in entry.shrunk):
                yield path, media


# ---------------------------------------------------------------------------------------------------------------- edits


def _clear_results(entries: Sequence[Entry], excess: Excess) -> Iterator[Edit]:
    results = [entry for entry in entries if entry.is_result and not entry.is_pinned()]
    quota = _Quota(excess, results)
    for entry in results:
        text = placeholder(CLEARED, entry)
        if quota.needs(entry) and entry.tokens > len(text) // 4 + 8:
            yield replacement(entry, text, _NAME, _REASON)
            quota.subtract(entry.tokens - len(text) // 3 - 6, entry.bytes - len(text), entry.images)


def _cut_long_parts(entries: Sequence[Entry], keep: int, excess: Excess) -> Iterator[Edit]:
    """Cut the long texts of entries, part by part, and the long strings in their arguments."""
    quota = _Quota(Excess(excess.tokens, excess.bytes), entries)
    for entry in entries:
        message = entry.outline
        if message is None or quota.is_met():
            return
        for i, part in enumerate(message.parts):
            match part:
                case _ if entry.is_pinned((i,)):
                    pass
                case ToolCall() if len(part.arguments) > 2 * keep and (i,) not in entry.shrunk:
                    small = shrink_arguments(part.arguments, keep, handle_of(entry))
                    if len(small) < len(part.arguments):
                        yield Replace(Target(entry.id, (i,)), (Text(small),), _NAME, _REASON)
                        quota.subtract((len(part.arguments) - len(small)) // 4, len(part.arguments) - len(small))
                case Text() | ToolResult() if entry.is_result:
                    if i == 0 and len(entry.message.text) > 2 * keep:
                        yield _replace_by_digest(entry, keep, _REASON)
                        quota.subtract(entry.tokens - keep // 4 - 20, entry.bytes - keep)
                case Text() if len(part.text) > 2 * keep and (i,) not in entry.shrunk:
                    small = _cut(part.text, keep, handle_of(entry))
                    yield replacement(entry, small, _NAME, _REASON, (i,))
                    quota.subtract((len(part.text) - len(small)) // 4, len(part.text) - len(small))
                case _:
                    pass


def _cut(text: str, keep: int, handle: str) -> str:
    """Return the beginning of a text. The JSON of a step of actions stays valid, if that is short enough."""
    if read_actions(text) and len(step := shrink_step(text, keep, handle)) <= len(text) // 2:
        return step
    return cut_text(text, keep, handle)


def _replace_by_digest(entry: Entry, room: int, reason: str) -> Replace:
    source = native_message(entry)
    assert source is not None, "only appended messages are shrunk"
    return replacement(entry, digest(source.text, room, handle_of(entry)).text, _NAME, reason)


def _hide_units(view: View, before: int, *, with_expanded: bool, usable: int, later: int = 0) -> Iterator[Edit]:
    """Hide units from the oldest on behind one note with their digest, none that begins at index `before` or later.

    `with_expanded`: also units with a part that was expanded for the coming call. `usable`: tokens that the view may
    have if hiding all these units is not enough. `later`: tokens that later stages can free if that is necessary.
    """
    entries = view.entries
    points = cut_points(view)
    start = next((i for i in points if i == len(entries) or not entries[i].is_system), 0)
    last_input = view.last_input
    quota = _Quota(measure_excess(view), [entry for entry in entries[start:before] if _may_hide(entry, last_input)])
    quota.subtract(-_NOTE_TOKENS)
    note = _Note(summary_tokens_max(view.budget.usable))
    end = start
    kept: list[str] = []
    for point in points:
        if point <= start or point > before:
            continue
        unit, end = entries[end:point], point
        if not with_expanded and any(entry.renewed >= view.turn for entry in unit):
            kept += [entry.id for entry in unit if entry.outline is not None]
            continue
        for entry in unit:
            if _may_hide(entry, last_input):
                quota.subtract(entry.tokens, entry.bytes, entry.images)
                note.add(entry)
        if quota.is_met(reserved=note.tokens):
            break
    candidates = [entry for entry in entries[start:end] if entry.kind != "stand-in"]
    hidden = [entry for entry in candidates if entry.id not in kept]
    if not hidden:
        return
    first = min(hidden, key=lambda entry: entry.position)  # A late answer may stand before older messages.
    last = max(hidden, key=lambda entry: entry.last)
    reserved = _FRAME_TOKENS + _SPARE_TOKENS
    room = min(note.tokens, usable - (view.tokens - note.hidden_tokens) - reserved)
    if room < _DIGEST_TOKENS:
        room = min(note.tokens, room + later)
    if measure_excess(view).bytes:
        room = min(room, -quota.bytes // _BYTES - reserved)
    text = note.text(str(Handle(first.position, last.last)), room, view)
    last_id = last.span.last if last.span else last.id
    yield Summarize(Span(first.id, last_id), text, _NAME, "the oldest part did not fit the window", keep=tuple(kept))


class _Note:
    """The note for hidden messages, with as much of a digest of them as there is room for."""

    def __init__(self, tokens_max: int) -> None:
        self._tokens_max = tokens_max
        self._hidden: list[Entry] = []
        self._carried = 0
        self.hidden_tokens = 0
        """Tokens of the hidden messages."""

    def add(self, entry: Entry) -> None:
        """Hide one more message."""
        self._hidden.append(entry)
        self.hidden_tokens += entry.tokens
        self._carried += entry.tokens if is_carried_summary(entry) else 0

    @property
    def tokens(self) -> int:
        """The wanted size of the digest: that of the hidden summaries, and a third of the other messages."""
        wanted = min(self._tokens_max, self._carried + (self.hidden_tokens - self._carried) // 3)
        return wanted if wanted >= _DIGEST_TOKENS else 0

    def text(self, handle: str, room: int, view: View) -> str:
        """Return the note, with a digest of at most `room` tokens if that is enough for one."""
        summaries = [entry for entry in self._hidden if is_carried_summary(entry)]
        previous = "\n\n".join(unframe_summary(entry.message.text) for entry in summaries)
        messages = all_messages([entry for entry in self._hidden if not is_carried_summary(entry)])
        scale = max(1, self.hidden_tokens) / max(1, sum(tokens_of(entry.message) for entry in self._hidden))
        required = names_needed_later(self._hidden, view.entries, 4 * room)
        with_digest, alone = (HIDDEN, HIDDEN_ALONE) if "-" in handle else (HIDDEN_ONE, HIDDEN_ONE_ALONE)
        length = int(4 * room / scale)  # Letters of other scripts take more tokens.
        while length >= 4 * _DIGEST_TOKENS:
            text = digest_messages(messages, length, previous=previous, required=required)
            note = frame_summary(with_digest, handle, text)
            size = scale * tokens_of(user(note))
            if text and size <= room + _FRAME_TOKENS:
                return note
            length = int(min(0.9, room / size) * length) if text else 0
        return frame_summary(alone, handle, "")
