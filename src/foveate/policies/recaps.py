"""Show old turns of the assistant as their recap line, a batch at a time, and hide what the user had said before.

For agents that are told to begin each answer with a line such as `recap - wrote the parser`. The oldest turns are
shrunk as soon as `batch_size` of them are due beside those that stay whole, and nothing is touched between two batches:
what the provider has cached stays valid, and the newest turns stay as they were said.

What is due follows from the history alone (what other summaries cover aside), never from when a plan was made: planning
before every call comes to the same view as planning once at the end. So each batch is looked at from its *trigger*, the
reply that made it due.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple, TypedDict

from msgspec import Struct

from ..core.edits import Edit, Hide, Span, Summarize, Target
from ..core.messages import Message
from ..core.planner import Policy
from ..core.view import Entry, View
from ..errors import BadSetting
from .placeholders import replacement

__all__ = [
    "BATCH",
    "LINE",
    "NOTE",
    "PREFIX",
    "PRESERVED",
    "VARIABLES",
    "RecapSettings",
    "ratio_line",
    "recap_batches",
    "recap_settings",
]

_ENABLED = "LLM_COMPACTION_ENABLED"
_PRESERVED = "LLM_COMPACTION_MIN_PRESERVED_ASSISTANT_MESSAGES"
_BATCH = "LLM_COMPACTION_BATCH_SIZE"
VARIABLES = {"enabled": _ENABLED, "min_preserved_assistant_messages": _PRESERVED, "batch_size": _BATCH}
"""The variable that sets each argument of `recap_batches`."""
_ANSWERS = {**dict.fromkeys(["1", "true", "yes", "on"], True), **dict.fromkeys(["0", "false", "no", "off"], False)}


class RecapSettings(TypedDict):
    """Arguments of `recap_batches`."""

    enabled: bool
    min_preserved_assistant_messages: int
    batch_size: int


def recap_settings(environ: Mapping[str, str]) -> RecapSettings:
    """What an environment such as `os.environ` says: `recap_batches(**recap_settings(os.environ))`.

    `LLM_COMPACTION_ENABLED` is 1, true, yes or on (the default), or 0, false, no or off, in any case;
    `LLM_COMPACTION_MIN_PRESERVED_ASSISTANT_MESSAGES` a number of 0 or more (3); `LLM_COMPACTION_BATCH_SIZE` one of 1 or
    more (4). A blank value counts as none. Raises BadSetting, naming variable and value, for others.
    """
    return RecapSettings(
        enabled=_switch(environ, _ENABLED),
        min_preserved_assistant_messages=_number(environ, _PRESERVED, PRESERVED, 0),
        batch_size=_number(environ, _BATCH, BATCH, 1),
    )


def _switch(environ: Mapping[str, str], name: str) -> bool:
    value = environ.get(name, "").strip().lower() or "true"
    if value not in _ANSWERS:
        raise BadSetting(f"{name} is {environ[name]!r}; set it to one of {', '.join(_ANSWERS)}.")
    return _ANSWERS[value]


def _number(environ: Mapping[str, str], name: str, default: int, least: int) -> int:
    value = environ.get(name, "").strip()
    if not value:
        return default
    if not re.fullmatch(r"\+?[0-9]{1,9}", value) or int(value) < least:
        raise BadSetting(f"{name} is {environ[name]!r}; set it to a whole number of {least} or more.")
    return int(value)


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
_WHY = "an old turn, as its recap"
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
        covered = _covered(view, turns)
        due = (covered + len(turns) - keep) // batch * batch - covered
        if due < 1:
            return ()
        batches = _Batches(view, turns[:due], turns[due + keep - 1], form)
        hidden = list(batches.inputs_due(keep_first_user)) if hide_users else []
        taken = sorted([*hidden, *batches.shrunk({step.position for step in hidden})], key=lambda step: step.position)
        if taken and not view.is_trial:
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


def _turns(view: View) -> list[Entry]:
    """What the assistant said, oldest first; a recap counts as what it stands for."""
    turns: dict[str, Entry] = {}
    for entry in view.entries:
        if _is_recap(entry) if entry.source is None else entry.source.role == "assistant":
            turns.setdefault(entry.id, entry)  # A recap stands before what was brought back of its own turn.
    return list(turns.values())


def _covered(view: View, turns: Sequence[Entry]) -> int:
    """How many turns other summaries stand for: with them gone from the count, batches would begin elsewhere."""
    last = max((entry.last for entry in view.entries if entry.kind == "summary" and not _is_recap(entry)), default=0)
    after = next((i for i, turn in enumerate(turns) if turn.span is None and turn.position > last), None)
    return max(0, turns[after].stamp.turn - 1 - after) if last and after is not None else 0


class _Batches:
    """The turns of a view that are due, the oldest first, and what can be done about them."""

    def __init__(self, view: View, due: Sequence[Entry], trigger: Entry, form: _Form) -> None:
        self._view, self._due, self._trigger, self._form = view, due, trigger, form
        sources = ((turn.id, turn.source) for turn in due if turn.source is not None)
        self._brought_back = [entry for entry in view.entries if entry.renewed]
        self._lines = {id: line for id, source in sources if (line := form.line_of(source))}

    def inputs_due(self, keep_first: bool) -> Iterator[_Step]:
        """Hide user inputs before the newest recap, but for the last one before the trigger: it was being answered."""
        newest = next((turn.position for turn in reversed(self._due) if self._has_recap(turn)), 0)
        inputs = [entry for entry in self._view.entries if entry.is_input and entry.position < self._trigger.position]
        for entry in inputs[int(keep_first) : -1]:
            if entry.position < newest and entry.message.role == "user" and _is_free(entry, self._view):
                edit = Hide(Target(entry.id), _NAME, "the turns that followed are shown as recaps")
                yield _Step(entry.position, edit, _size(entry.message))

    def shrunk(self, hidden: Container[int]) -> Iterator[_Step]:
        """Make recaps of turns. `hidden`: positions of the inputs that are hidden in the same plan."""
        for turn in self._due:
            line = self._lines.get(turn.id, "")
            if turn.span is not None:
                yield from self._covered_again(turn)
            elif not line or not _is_free(turn, self._view):
                continue
            elif turn.message.calls:
                answers = self._answers(turn, hidden)
                yield from _note([turn, *answers], line, self._form.note) if answers else ()
            elif self._form.as_note:
                yield from _note([turn], line, self._form.template)
            else:
                yield from _recap(turn, line, self._form.template)

    def _has_recap(self, turn: Entry) -> bool:
        """Whether the turn shows its recap, or may."""
        if turn.span is not None:
            return True
        line = self._lines.get(turn.id, "")
        shows_it = bool(turn.shrunk) and turn.message.text == _filled(self._form.template, line, turn.handle)
        return bool(line) and (shows_it or _is_free(turn, self._view))

    def _answers(self, turn: Entry, hidden: Container[int]) -> list[Entry]:
        """The answers to all calls of a turn; none where not all of the turn can go, or somebody else spoke inside."""
        if turn is self._trigger:  # Nobody has read them yet.
            return []
        answers: list[Entry] = []
        others: list[Entry] = []
        for entry in self._view.entries[self._view.entries.index(turn) + 1 :]:
            if entry.message.role == "assistant":
                break
            (answers if entry.message.result else others).append(entry)
        last = max((answer.position for answer in answers), default=0)
        if any(entry.position < last and entry.position not in hidden for entry in others):
            return []
        return answers if all(one.kind == "message" and _may_go(one, self._view) for one in answers) else []

    def _covered_again(self, recap: Entry) -> Iterator[_Step]:
        """Put a recap back in the place of what was expanded from behind it, once that has been seen."""
        back = [entry for entry in self._brought_back if recap.position <= entry.position <= recap.last]
        if back and recap.span and all(_may_go(entry, self._view) for entry in back):
            edit = Summarize(recap.span, recap.message.text, _NAME, _WHY)
            yield _Step(recap.position, edit, sum(_size(entry.message) for entry in back))


def _recap(turn: Entry, line: str, template: str) -> Iterator[_Step]:
    """What the assistant said, cut to its recap."""
    text = _filled(template, line, turn.handle)
    saved = _size(turn.message) - len(text)
    if saved > 0 or (saved == 0 and len(turn.message.parts) > 1):
        yield _Step(turn.position, replacement(turn, text, _NAME, _WHY), saved)


def _note(unit: Sequence[Entry], line: str, template: str) -> Iterator[_Step]:
    """One note in the place of an assistant's message and the answers to its calls."""
    first, last = unit[0], max(unit, key=lambda entry: entry.position)
    handle = first.handle if first is last else f"{first.handle}-{last.handle}"
    text = _filled(template, line, handle)
    saved = sum(_size(entry.message) for entry in unit) - len(text)
    if saved >= 0:
        yield _Step(first.position, Summarize(Span(first.id, last.id), text, _NAME, _WHY), saved)


def _is_recap(entry: Entry) -> bool:
    return entry.kind == "summary" and entry.stamp.source == _NAME


def _is_free(entry: Entry, view: View) -> bool:
    """Whether the entry may be shrunk: others have not, nobody pinned it, nobody asked to see it whole."""
    return not entry.shrunk and _may_go(entry, view)


def _may_go(entry: Entry, view: View) -> bool:
    return not entry.is_pinned() and entry.renewed < view.turn


def _size(message: Message) -> int:
    """Characters of text and of calls."""
    return len(message.text) + sum(len(call.name) + len(call.arguments) for call in message.calls)


def _filled(template: str, line: str, handle: str) -> str:
    return template.replace("{handle}", handle).replace("{recap}", line)


def _is_number(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
