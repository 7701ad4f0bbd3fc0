"""Recaps: show old turns of the assistant as their recap line, a batch at a time.

For agents whose prompt asks them to begin each answer with a line such as `recap - wrote the parser`. When `batch_size`
turns are due, in addition to those that stay whole, the policy shrinks them and hides the user inputs before them.
Between two batches nothing changes, so the cached prefix stays valid.

The due turns follow from the history alone (except for turns that other summaries cover), not from when a plan is made.
Planning before every call gives the same view as planning once at the end. So the policy looks at each batch from its
trigger, the reply that made it due.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Container, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from ..core.edits import Edit, Hide, Span, Summarize, Target
from ..core.json_objects import objects_in
from ..core.messages import Message
from ..core.planner import Policy
from ..core.results import is_step_note
from ..core.server_tools import ServerBlock, follow_uses, partner_of, server_blocks
from ..core.view import Entry, View
from ..errors import BadSetting
from .kinds import check_kinds
from .placeholders import replacement

__all__ = [
    "BATCH",
    "LINE",
    "NOTE",
    "PREFIX",
    "PRESERVED",
    "RECAP_INSTRUCTION",
    "format_ratio",
    "recap_batches",
]

PRESERVED = 3
"""Newest turns of the assistant that are never shrunk."""
BATCH = 4
"""Turns that are shrunk at once."""
PREFIX = "recap -"
"""Beginning of a recap line."""
RECAP_INSTRUCTION = (
    "Begin each answer with one line `recap - ...`. It says in one sentence what you did and found, with the names and "
    "numbers that matter later. Older answers are shown as this line alone."
)
"""For the system prompt: tells a model to write recap lines."""
LINE = "{recap}"
"""Template for a turn without calls."""
NOTE = '[Earlier: {recap}; expand("{handle}")]'
"""Template for a turn with calls. It becomes a note of role user, and this form cannot be taken for a request."""

_NAME = "recap"
_REASON = "an old turn, as its recap"
_NO_LINE = (
    "recap is due for %d turns, and none has a line that begins with %r: they stay whole. Add "
    "foveate.policies.RECAP_INSTRUCTION to the system prompt, or pass compact= to recap_batches. This is logged once."
)
_log = logging.getLogger("foveate")


@check_kinds
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
    compact: Callable[[Entry], str | None] | None = None,
    enabled: bool = True,
    min_preserved_pairs: int | None = None,
) -> Policy:
    """Return a policy that shrinks old turns of the assistant, in batches, to their recap line.

    Of n turns, the oldest `batch_size * ((n - min_preserved_assistant_messages) // batch_size)` are due. Each is shown
    as its first line that begins with `recap_prefix`, without white space around it. A turn without such a line stays.
    User inputs before the newest recap are hidden, except the one that the trigger answers, and with `keep_first_user`
    the first of all, which often holds the task. `hide_users=False` keeps all of them.

    A turn with tool calls, or with results of actions, is replaced with its results, by a note of role user. It
    stays if a call has no answer. `as_note` turns other turns into notes too. `template`: for a turn without calls.
    `note`: for a turn with calls. Their fields are `{recap}`, the recap line, and `{handle}` for `expand`. Content
    that would not get shorter, pinned messages, messages that other policies shrank and messages that were expanded
    for the coming call stay.

    `compact(entry)` may return the text that stands for a due turn, or for a user's message before the newest recap: an
    input, a note or a plugin's message. None leaves the entry to the rules above. It takes the place of recap lines for
    models that write none. It must return the same text for the same entry. With `enabled=False` the policy does
    nothing. `min_preserved_pairs` is a deprecated name of `min_preserved_assistant_messages`.

    Raises BadSetting for values out of range, and for templates without `{recap}`.
    """
    if min_preserved_pairs is not None:
        warnings.warn(
            "min_preserved_pairs is now called min_preserved_assistant_messages", DeprecationWarning, stacklevel=3
        )
        min_preserved_assistant_messages = min_preserved_pairs
    keep, batch = min_preserved_assistant_messages, batch_size
    if not _is_number(keep, 0) or not _is_number(batch, 1):
        raise BadSetting(
            f"min_preserved_assistant_messages and batch_size of recap_batches are {keep!r} and {batch!r}. Set the "
            "first to 0 or more, and batch_size to 1 or more."
        )
    if not recap_prefix.strip():
        raise BadSetting("recap_prefix of recap_batches is blank, and would match every line. Set it to some text.")
    if "{recap}" not in template or "{recap}" not in note:
        raise BadSetting(
            f"template and note of recap_batches are {template!r:.40} and {note!r:.40}. Each must contain {{recap}}, "
            "the recap line."
        )
    form = _RecapForm(recap_prefix.lstrip(), template, note, as_note, compact)
    is_reported = False

    def policy(view: View) -> Sequence[Edit]:
        nonlocal is_reported
        turns = _assistant_turns(view) if enabled else []
        covered = _count_covered(view, turns)
        due = (covered + len(turns) - keep) // batch * batch - covered
        if due < 1:
            return ()
        batches = _Batches(view, turns[:due], turns[due + keep - 1], form)
        if not (batches.has_recap or is_reported or view.is_trial):
            is_reported = True
            _log.warning(_NO_LINE, due, form.prefix)
        shrunk = list(batches.shrink_inputs())
        hidden = list(batches.hide_inputs(keep_first_user)) if hide_users else []
        steps = [*shrunk, *hidden, *batches.shrink_turns({step.position for step in hidden})]
        steps.sort(key=lambda step: step.position)
        if steps and not view.is_trial:
            before = sum(_size(entry.message) for entry in view.entries)
            _log.info(format_ratio(before, before - sum(step.saved for step in steps)))
        return tuple(step.edit for step in steps)

    return policy


def format_ratio(before: int, after: int) -> str:
    """Return the log line for the sizes of a context before and after, in characters.

    >>> format_ratio(2000, 500)
    'LLM Context: 2000 -> 500 chars (25.00%)'
    """
    return f"LLM Context: {before} -> {after} chars ({after / before if before else 1.0:.2%})"


class _Step(NamedTuple):
    """An edit, its position in the history, and the characters that it saves."""

    position: int
    edit: Edit
    saved: int


class _RecapForm(Struct, frozen=True):
    """The form of recap lines in messages, and the templates for showing them."""

    prefix: str
    template: str
    note: str
    as_note: bool
    compact: Callable[[Entry], str | None] | None

    def own_text(self, entry: Entry) -> str:
        """Return the text of `compact` for an entry; "" if it leaves the entry to the rules."""
        text = self.compact(entry) if self.compact else None
        if text is not None and not isinstance(text, str):
            raise BadSetting(f"compact of recap_batches returned {text!r:.60}. Return a text, or None.")
        return (text or "").strip()

    def find_line(self, message: Message) -> str:
        """Return the first recap line, stripped; "" if there is none. It may be in a string of a JSON object."""
        if self.prefix not in message.text:  # A quick check: most texts have none.
            return ""
        texts = [
            message.text,
            *(string for fields, _, _ in objects_in(message.text, []) for string in _strings(fields)),
        ]
        lines = (line.strip() for text in texts for line in text.split("\n"))
        return next((line for line in lines if line.startswith(self.prefix)), "")


def _strings(value: object) -> Iterator[str]:
    """Yield the strings inside a value of JSON."""
    match value:
        case str():
            yield value
        case dict() | list():
            for inner in value.values() if isinstance(value, dict) else value:
                yield from _strings(inner)
        case _:
            pass


def _assistant_turns(view: View) -> list[Entry]:
    """Return the turns of the assistant, oldest first. A recap counts as its turn."""
    turns: dict[str, Entry] = {}
    for entry in view.entries:
        if _is_recap(entry) if entry.outline is None else entry.outline.role == "assistant":
            turns.setdefault(entry.id, entry)  # The recap comes before the messages of its turn that were expanded.
    return list(turns.values())


def _count_covered(view: View, turns: Sequence[Entry]) -> int:
    """Return the number of turns that other summaries cover. They count, so that batches begin at the same turns."""
    last = max((entry.last for entry in view.entries if entry.kind == "summary" and not _is_recap(entry)), default=0)
    after = next((i for i, turn in enumerate(turns) if turn.span is None and turn.position > last), None)
    return max(0, turns[after].stamp.turn - 1 - after) if last and after is not None else 0


class _Batches:
    """The due turns of a view, oldest first, and the edits for them."""

    def __init__(self, view: View, due: Sequence[Entry], trigger: Entry, form: _RecapForm) -> None:
        self._view, self._due, self._trigger, self._form = view, due, trigger, form
        units = _read_server_units(view)
        self._closing_inputs = units.closing
        sources = ((turn.id, turn.source) for turn in due if turn.source is not None and turn.id not in units.turns)
        self._expanded = [entry for entry in view.entries if entry.renewed]
        self._replaced: set[int] = set()  # positions of the user's messages for which `compact` has a text
        self._indexes = {entry: index for index, entry in enumerate(view.entries)}
        self._own = {
            turn.id: text
            for turn in due
            if turn.source and not turn.shrunk and turn.id not in units.turns and (text := form.own_text(turn))
        }
        lines = {id: line for id, source in sources if (line := form.find_line(source))}
        self._lines = {**lines, **self._own}
        self._newest = next((turn.position for turn in reversed(due) if self._has_recap(turn)), 0)

    @property
    def has_recap(self) -> bool:
        """Return whether a due turn is shown as its recap, or may be."""
        return bool(self._newest or self._lines)

    def shrink_inputs(self) -> Iterator[_Step]:
        """Replace the user's messages before the newest recap for which `compact` has a text."""
        for entry in self._view.entries if self._form.compact else ():
            is_message = entry.kind == "message" and entry.message.role == "user" and not entry.is_result
            is_old = entry.position < self._newest and entry.position != self._view.last_input
            if is_message and is_old and _may_shrink(entry, self._view) and (text := self._form.own_text(entry)):
                self._replaced.add(entry.position)
                if (saved := _size(entry.message) - len(text)) > 0:
                    yield _Step(entry.position, replacement(entry, text, _NAME, _REASON), saved)

    def hide_inputs(self, keep_first: bool) -> Iterator[_Step]:
        """Hide user inputs before the newest recap, except the last one before the trigger, which this answers."""
        inputs = [entry for entry in self._view.entries if entry.is_input and entry.position < self._trigger.position]
        for entry in inputs[int(keep_first) : -1]:
            is_old = entry.position < self._newest and entry.position not in self._replaced | self._closing_inputs
            if is_old and entry.message.role == "user" and _may_shrink(entry, self._view):
                edit = Hide(Target(entry.id), _NAME, "the turns that followed are shown as recaps")
                yield _Step(entry.position, edit, _size(entry.message))

    def shrink_turns(self, hidden: Container[int]) -> Iterator[_Step]:
        """Replace turns by recaps. `hidden`: positions of the inputs that the same plan hides."""
        for turn in self._due:
            line = self._lines.get(turn.id, "")
            if turn.span is not None:
                yield from self._cover_again(turn)
            elif not line or not _may_shrink(turn, self._view):
                continue
            elif turn.message.calls or self._is_step(turn, line):
                answers = self._find_answers(turn, hidden)
                if answers or (answers is not None and not turn.message.calls):
                    yield from _write_note([turn, *answers], line, self._form.note)
            elif self._form.as_note:
                yield from _write_note([turn], line, self._form.template)
            else:
                yield from _write_recap(turn, line, self._form.template)

    def _has_recap(self, turn: Entry) -> bool:
        """Return whether the view shows the turn as its recap, or may do so."""
        if turn.span is not None:
            return True
        is_shown = _NAME in turn.shrunk_by
        return is_shown or (turn.id in self._lines and _may_shrink(turn, self._view))

    def _is_step(self, turn: Entry, line: str) -> bool:
        """Return whether the turn is a step in JSON. In its place a recap would show another form of answer."""
        after = self._indexes[turn] + 1
        following = self._view.entries[after] if after < len(self._view.entries) else turn
        has_results = following.is_result and following.kind == "message"  # A note has a late result of another turn.
        return has_results or (
            turn.id not in self._own and all(line != own.strip() for own in turn.message.text.split("\n"))
        )

    def _find_answers(self, turn: Entry, hidden: Container[int]) -> list[Entry] | None:
        """Return the answers to a turn; None if a part of it must stay, or if it holds other messages."""
        if turn is self._trigger:  # The model has not read these answers.
            return None
        answers: list[Entry] = []
        others: list[Entry] = []
        for index in range(self._indexes[turn] + 1, len(self._view.entries)):
            entry = self._view.entries[index]
            if entry.is_between:
                continue
            if entry.message.role == "assistant":
                break
            is_answer = entry.is_result or is_step_note(entry.message, entry.stamp)
            (answers if is_answer else others).append(entry)
        last = max((answer.position for answer in answers), default=0)
        if any(entry.position < last and entry.position not in hidden for entry in others):
            return None
        may_go = all(answer.kind == "message" and _may_go(answer, self._view) for answer in answers)
        return answers if may_go else None

    def _cover_again(self, recap: Entry) -> Iterator[_Step]:
        """Replace messages that were expanded behind a recap by the recap, after the call that showed them."""
        expanded = [entry for entry in self._expanded if recap.position <= entry.position <= recap.last]
        if expanded and recap.span and all(_may_go(entry, self._view) for entry in expanded):
            edit = Summarize(recap.span, recap.message.text, _NAME, _REASON)
            yield _Step(recap.position, edit, sum(_size(entry.message) for entry in expanded))


class _ServerUnits(NamedTuple):
    """The units of server tools that go over several messages: uses, their results, and the turns between them."""

    turns: set[str]
    """Ids of the turns of the assistant in these units."""
    closing: set[int]
    """Positions of the messages that end a unit without a result. If one is hidden, later turns join the unit."""


def _read_server_units(view: View) -> _ServerUnits:
    """Return the units of server tools in a view.

    A note of role user inside a unit would end the turn of the assistant, so that the result could not be sent. Each
    turn counts as part of a unit if the messages before it show that. So later messages change no decision.
    """
    units = _ServerUnits(set(), set())
    open_uses: dict[str, ServerBlock] = {}
    for entry in view.entries:
        message = entry.outline
        if message is None or message.role == "tool":
            continue
        if message.role != "assistant":
            if open_uses:
                units.closing.add(entry.position)
            open_uses.clear()
            continue
        is_inside = bool(open_uses)
        follow_uses(message, str(entry.position), open_uses)
        if is_inside or open_uses or _has_lone_result(message):
            units.turns.add(entry.id)
    return units


def _has_lone_result(message: Message) -> bool:
    """Return whether a result of a server tool has no use in the same message."""
    return any(not block.is_use and partner_of(message.parts, i) is None for i, block in server_blocks(message))


def _write_recap(turn: Entry, line: str, template: str) -> Iterator[_Step]:
    """Cut a turn to its recap."""
    text = _fill(template, line, turn.handle)
    saved = _size(turn.message) - len(text)
    if saved > 0 or (saved == 0 and len(turn.message.parts) > 1):
        yield _Step(turn.position, replacement(turn, text, _NAME, _REASON), saved)


def _write_note(unit: Sequence[Entry], line: str, template: str) -> Iterator[_Step]:
    """Replace a message of the assistant, and the answers to its calls, by one note."""
    first, last = unit[0], max(unit, key=lambda entry: entry.position)
    handle = first.handle if first is last else f"{first.handle}-{last.handle}"
    text = _fill(template, line, handle)
    saved = sum(_size(entry.message) for entry in unit) - len(text)
    if saved >= 0:
        yield _Step(first.position, Summarize(Span(first.id, last.id), text, _NAME, _REASON), saved)


def _is_recap(entry: Entry) -> bool:
    return entry.kind == "summary" and entry.stamp.source == _NAME


def _may_shrink(entry: Entry, view: View) -> bool:
    return not entry.shrunk and _may_go(entry, view)


def _may_go(entry: Entry, view: View) -> bool:
    return not entry.is_pinned() and entry.renewed < view.turn


def _size(message: Message) -> int:
    """Return the characters of text and calls."""
    return len(message.text) + sum(len(call.name) + len(call.arguments) for call in message.calls)


def _fill(template: str, line: str, handle: str) -> str:
    return template.replace("{handle}", handle).replace("{recap}", line)


def _is_number(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
