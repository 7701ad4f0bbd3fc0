"""Show old turns of the assistant as their recap line, a batch at a time, and hide what the user had said before.

For agents that are told to begin each answer with a line such as `recap - wrote the parser`. The oldest turns are
shrunk as soon as `batch_size` of them are due beside those that stay whole, and nothing is touched between two batches:
what the provider has cached stays valid, and the newest turns stay as they were said.

What is due follows from the history alone, never from when a plan was made: planning before every call comes to the
same view as planning once at the end. So each batch is looked at from its *trigger*, the reply that made it due.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from ..core.edits import Edit, Hide, Span, Summarize, Target
from ..core.messages import Message
from ..core.planner import Policy
from ..core.view import Entry, View
from ..errors import BadSetting
from .placeholders import replacement

__all__ = ["BATCH", "LINE", "NOTE", "PREFIX", "PRESERVED", "ratio_line", "recap_batches"]

PRESERVED = 3
"""Newest turns of the assistant that are never shrunk."""
BATCH = 4
"""Turns that are shrunk at once."""
PREFIX = "recap -"
"""What a recap line begins with."""
LINE = "{recap}"
"""What stands for a turn without calls."""
NOTE = '[Earlier: {recap}; expand("{handle}")]'
"""What stands for a turn with calls. A user's note cannot be taken for a request if it is marked as what it is."""

_NAME = "recap"
_log = logging.getLogger("foveate")


def recap_batches(
    *,
    min_preserved_assistant_messages: int = PRESERVED,
    batch_size: int = BATCH,
    recap_prefix: str = PREFIX,
    keep_first_user: bool = False,
    hide_users: bool = True,
    as_note: bool = False,
    template: str = LINE,
    note: str = NOTE,
    enabled: bool = True,
    min_preserved_pairs: int | None = None,
) -> Policy:
    """A policy that shrinks old turns of the assistant, in batches, to their recap line.

    Of n turns, the oldest `batch_size * ((n - min_preserved_assistant_messages) // batch_size)` are due. Each is shown
    as its first line that begins with `recap_prefix` (white space around it aside); one without such a line stays as
    it is. User inputs before the newest recap are hidden, except the one that was being answered (and the first of all,
    with `keep_first_user`: it often holds the task); with `hide_users=False` all of them stay.

    A turn with tool calls goes whole, calls and results, and becomes a note of role user; one that has a call without
    an answer stays whole. `as_note` makes notes of the other turns too. `template` is what stands for a turn without
    calls, `note` for one with calls: `{recap}` is the recap line, `{handle}` what `expand` takes. What would not get
    shorter is left alone, and so are pinned messages, what others have shrunk, and what was expanded for the coming
    call. `min_preserved_pairs` is a deprecated name of `min_preserved_assistant_messages`.

    Raises BadSetting for numbers that are too small, and for texts that would leave nothing of a turn.
    """
    if min_preserved_pairs is not None:
        warnings.warn(
            "min_preserved_pairs is now called min_preserved_assistant_messages", DeprecationWarning, stacklevel=2
        )
        min_preserved_assistant_messages = min_preserved_pairs
    keep, batch = min_preserved_assistant_messages, batch_size
    if not _is_number(keep, 0) or not _is_number(batch, 1):
        raise BadSetting(
            "recap_batches needs min_preserved_assistant_messages of 0 or more and batch_size of 1 or more, "
            f"not {keep!r} and {batch!r}."
        )
    if not recap_prefix.strip():
        raise BadSetting("recap_batches needs a recap_prefix: a blank one would take any line for a recap.")
    if "{recap}" not in template or "{recap}" not in note:
        raise BadSetting("recap_batches needs {recap} in template and in note: nothing else would be left of a turn.")
    form = _Form(recap_prefix.lstrip(), template, note, as_note)

    def policy(view: View) -> Sequence[Edit]:
        turns = _turns(view) if enabled else []
        due = (len(turns) - keep) // batch * batch
        if due < 1:
            return ()
        trigger = turns[due + keep - 1]
        old = turns[:due]
        going = _inputs_due(view, old, trigger, form, keep_first_user) if hide_users else []
        taken = sorted([*_hidden(going), *_shrunk(view, old, trigger, form, going)], key=lambda taken: taken.position)
        if taken:
            before = sum(_size(entry.message) for entry in view.entries)
            _log.info(ratio_line(before, before - sum(step.saved for step in taken)))
        return tuple(step.edit for step in taken)

    return policy


def ratio_line(before: int, after: int) -> str:
    """What compaction came to, for a log: both sizes in characters, and the second as a share of the first.

    >>> ratio_line(2000, 500)
    'LLM Context: 2000 -> 500 chars (25.00%)'
    """
    return f"LLM Context: {before} -> {after} chars ({after / before if before else 1.0:.2%})"


class _Step(NamedTuple):
    """An edit, where in the history it is made, and the characters that it saves."""

    position: int
    edit: Edit
    saved: int


class _Form(Struct, frozen=True):
    """How recaps are found and shown."""

    prefix: str
    template: str
    note: str
    as_note: bool

    def line_of(self, message: Message) -> str:
        """The first recap line, stripped; "" where there is none."""
        if self.prefix not in message.text:  # Most texts have none, and need not be taken apart at every plan.
            return ""
        lines = (line.strip() for line in message.text.split("\n"))
        return next((line for line in lines if line.startswith(self.prefix)), "")

    def is_shown_by(self, entry: Entry) -> bool:
        """Whether the entry shows its recap already."""
        if entry.source is None:
            return entry.kind == "summary"
        line = self.line_of(entry.source) if entry.shrunk else ""
        return bool(line) and entry.message.text == _filled(self.template, line, entry.handle)


def _turns(view: View) -> list[Entry]:
    """What the assistant said, oldest first, a recap in the place of what it stands for.

    Left out is what holds nothing but reasoning: an edit before it may make it vanish, and counts must not change then.
    """
    turns: dict[str, Entry] = {}
    for entry in view.entries:
        source = entry.source
        if source is None:
            said = _is_recap(entry)
        else:
            said = source.role == "assistant" and (bool(source.calls) or source.says_something)
        if said:
            turns.setdefault(entry.id, entry)  # A recap stands before what was brought back of its own turn.
    return list(turns.values())


def _inputs_due(view: View, old: Sequence[Entry], trigger: Entry, form: _Form, keep_first: bool) -> list[Entry]:
    """User inputs before the newest recap, but for the last one before the trigger: it was being answered then."""
    newest = next((turn.position for turn in reversed(old) if _has_recap(turn, view, form)), 0)
    inputs = [entry for entry in view.entries if entry.is_input and entry.position < trigger.position]
    return [
        entry
        for entry in inputs[int(keep_first) : -1]
        if entry.position < newest and entry.message.role == "user" and _is_free(entry, view)
    ]


def _has_recap(turn: Entry, view: View, form: _Form) -> bool:
    """Whether the turn shows its recap, or may."""
    if form.is_shown_by(turn):
        return True
    return _is_free(turn, view) and turn.source is not None and bool(form.line_of(turn.source))


def _hidden(entries: Sequence[Entry]) -> Iterator[_Step]:
    for entry in entries:
        edit = Hide(Target(entry.id), _NAME, "the turns that followed are shown as recaps")
        yield _Step(entry.position, edit, _size(entry.message))


def _shrunk(view: View, old: Sequence[Entry], trigger: Entry, form: _Form, going: Sequence[Entry]) -> Iterator[_Step]:
    """The steps that make recaps of those of the old turns that can be."""
    hidden = {entry.id for entry in going}
    places = {entry: index for index, entry in enumerate(view.entries)}
    for turn in old:
        if turn.span is not None:
            yield from _covered_again(turn, view)
        elif turn.source is not None and _is_free(turn, view) and (line := form.line_of(turn.source)):
            if not turn.message.calls:
                yield from _recap(turn, line, form)
            elif turn is not trigger:  # Nobody has read its results yet.
                answers = _answers(view, places[turn], hidden)
                yield from _note([turn, *answers], line, form.note) if answers else ()


def _recap(turn: Entry, line: str, form: _Form) -> Iterator[_Step]:
    if form.as_note:
        yield from _note([turn], line, form.template)
        return
    text = _filled(form.template, line, turn.handle)
    saved = _size(turn.message) - len(text)
    if saved > 0 or (saved == 0 and len(turn.message.parts) > 1):
        yield _Step(turn.position, replacement(turn, text, _NAME, "an old turn, as its recap"), saved)


def _note(unit: Sequence[Entry], line: str, template: str) -> Iterator[_Step]:
    """One note in the place of an assistant's message and the answers to its calls."""
    first, last = unit[0], max(unit, key=lambda entry: entry.position)
    handle = first.handle if first is last else f"{first.handle}-{last.handle}"
    text = _filled(template, line, handle)
    saved = sum(_size(entry.message) for entry in unit) - len(text)
    if saved >= 0:
        edit = Summarize(Span(first.id, last.id), text, _NAME, "an old turn, as its recap")
        yield _Step(first.position, edit, saved)


def _answers(view: View, index: int, hidden: Container[str]) -> list[Entry]:
    """The answers to all calls of the turn at this index; none where not all of the turn can go."""
    answers: list[Entry] = []
    others: list[Entry] = []
    for entry in view.entries[index + 1 :]:
        if entry.message.role == "assistant" or entry.kind == "summary":
            break
        (answers if entry.message.result else others).append(entry)
    last = max((answer.position for answer in answers), default=0)
    between = [entry for entry in others if entry.position < last and entry.id not in hidden]
    can_go = all(answer.kind == "message" and not answer.pinned and answer.renewed < view.turn for answer in answers)
    return answers if can_go and not between else []


def _covered_again(recap: Entry, view: View) -> Iterator[_Step]:
    """Put a recap back in the place of what was expanded from behind it, once that has been seen."""
    back = [
        entry
        for entry in view.entries
        if entry.kind in ("message", "note")
        and recap.position <= entry.position <= recap.last
        and not entry.pinned
        and entry.position != view.last_input
        and entry.message.role != "system"
    ]
    if back and recap.span and all(entry.renewed < view.turn for entry in back):
        edit = Summarize(recap.span, recap.message.text, _NAME, "an old turn, as its recap")
        yield _Step(recap.position, edit, sum(_size(entry.message) for entry in back))


def _is_recap(entry: Entry) -> bool:
    return entry.kind == "summary" and entry.stamp.source == _NAME


def _is_free(entry: Entry, view: View) -> bool:
    """Whether the entry may be shrunk: others have not, nobody pinned it, nobody asked to see it whole."""
    return entry.span is None and not entry.shrunk and not entry.pinned and entry.renewed < view.turn


def _size(message: Message) -> int:
    """Characters of text and of calls."""
    return len(message.text) + sum(len(call.name) + len(call.arguments) for call in message.calls)


def _filled(template: str, line: str, handle: str) -> str:
    return template.replace("{handle}", handle).replace("{recap}", line)


def _is_number(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
