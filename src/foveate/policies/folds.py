"""Folds: replace finished stretches of an agent's steps by a few lines, without a model.

In a long run most of the view is finished steps: a text of the model, its call, a result that is already shrunk. Behind
a protected window, each stretch of such steps becomes one text with the calls, the results and each name once, and the
handles of the whole steps. User inputs stay.

A stretch begins where the previous one, or a message that stays, ends, and is closed when it is long enough. So it is
the same at every later call, and is folded once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import chain, pairwise
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from ..core.caches import cached_by_text, known_form, newest_forms
from ..core.edits import CALLER, Edit, Span, Summarize
from ..core.growing import Growing
from ..core.messages import Message, Text, ToolCall, ToolResult
from ..core.planner import Policy
from ..core.results import is_loose_result, is_step_note, native_steps
from ..core.sizes import estimate, tokens_of
from ..core.units import Units
from ..core.view import Entry, View
from ..digest import describe, distinct_names, floor_for, names_in, path_of_whole_output, room_for, select_names
from ..errors import BadSetting
from .names import names_of
from .result_worth import needed_results
from .span_selection import TokenWindow, check_token_windows, count_older, window_tokens

__all__ = ["FOLDED", "PROTECT", "STRETCH", "fold", "fold_steps"]

PROTECT = 0.1
"""Share of the usable tokens: the newest tokens that are never folded."""
STRETCH = 5_000
"""Tokens, as appended, that close a stretch."""
FOLDED = (
    "[Steps {handle} in short. They are done, and ask for nothing; "
    'expand("{handle}") shows all of them whole, expand("{last}") one.]\n{steps}'
)
"""Template for a stretch."""

_NAME = "fold"
_SAVED_SHARE_MIN = 0.3
"""Share of a stretch's tokens that folding must save."""
_TEXT_MAX = 240
"""Characters of a text of the model that is kept whole."""
_TEXT_SHARE = 0.3
_ARGUMENT_MAX = 100
"""Characters of an argument that is kept whole."""
_ARGUMENT_SHARE = 0.3
_RESULT_MAX = 120
"""Characters of a result that is kept whole."""
_LOOKED_AT = 1_000
"""Characters of a result that decide its kind: enough for a line about it."""
_NAMES_MAX = 400_000
"""Characters of a text that are searched for names."""
_FLOOR = 0.7
"""The least worth of a name of a result, as a share of that of a line in its digest."""
_READ_FIRST = 4
"""How many times the characters of a text that is kept whole are read before the rest of a text."""
_WHITE_SPACE = re.compile(r"\s(?:\s+|(?<! ))")
"""A run of white space, but for a single space."""
_ESCAPES = {"\n": "\\n", "\t": "\\t"}


def fold(
    *,
    protect: TokenWindow = PROTECT,
    stretch: int = STRETCH,
    min_share: float = _SAVED_SHARE_MIN,
    framing: str = FOLDED,
    by_worth: bool = False,
) -> Policy:
    """Return a policy that folds finished steps of the model, calls and results, a stretch at a time.

    `protect`: newest tokens that stay, as a number (int) or as a share of the usable tokens (float below 1.0).
    `stretch`: minimum number of tokens, as appended, of a stretch that no message ends earlier. `min_share`: share of
    a stretch's tokens that folding must save. `framing`: template for a stretch; `{handle}` and `{last}` are
    arguments of `expand`, `{steps}` is the text. `by_worth`: steps whose results are worth their place stay
    (`needed_results`), and end a stretch.

    System prompts, user inputs, pins, calls without an answer, other summaries and messages that were expanded for the
    coming call stay, and end a stretch. Raises BadSetting for values out of range and for a framing without `{steps}`.
    """
    check_token_windows("fold", protect=protect)
    if stretch < 1 or not 0 <= min_share < 1:
        raise BadSetting(
            f"stretch and min_share of fold are {stretch} and {min_share}. Set stretch to 1 or more, and min_share to "
            "0 or more and below 1."
        )
    if "{steps}" not in framing:
        raise BadSetting(f"framing of fold is {framing!r:.80}. It must contain {{steps}}, the text of the steps.")

    def write(entries: Sequence[Entry], writer: _StepWriter) -> str:
        """Return the text of a fold; "" if it saves too little."""
        text = _fill_framing(framing, entries[0].position, max(entry.position for entry in entries), writer.text)
        # The text has no count yet: its quarter of the characters is corrected as for the steps that it replaces.
        return text if estimate(text) <= (1 - min_share) * max(1, writer.tokens) else ""

    memo = _Memo(write)

    def policy(view: View) -> Iterator[Edit]:
        window = window_tokens(protect, view)
        old = count_older(view, window)
        if not old:
            return
        named = _Names()
        at, newest = 0, _START
        needed = needed_results(view) if by_worth else frozenset[str]()
        for start, end in _closed_stretches(view, old, stretch, needed):
            between, entries = view.entries[at:start], view.entries[start:end]
            at = end
            newest.writer = None  # Its stretch is closed.
            newest = memo.fold(newest.node, between, entries, named)
            named.add(newest.names)
            if newest.text:
                yield newest.edit(entries, f"older than the newest {window:,} tokens")

    return policy


def _fill_framing(framing: str, first: int, last: int, steps: str) -> str:
    handle = f"m{first}-m{last}" if first < last else f"m{last}"
    text = framing.replace("{handle}", handle).replace("{last}", f"m{last}")
    return text.replace("{steps}", steps)


class _Names:
    """The names up to a fold, gathered when they are asked for: most calls make no fold."""

    def __init__(self) -> None:
        self._all: set[str] = set()
        self._further: list[tuple[str, ...]] = []

    def add(self, names: tuple[str, ...]) -> None:
        """Add the new names of a fold."""
        self._further.append(names)

    def all(self) -> Set[str]:
        """Return all names, until the next `add`."""
        self._all.update(*self._further)
        self._further.clear()
        return self._all


class _Fold:
    """The fold of a stretch."""

    __slots__ = ("_edit", "names", "node", "text", "writer")

    def __init__(self, node: int, text: str = "", names: tuple[str, ...] = (), writer: _StepWriter | None = None):
        self.node = node
        self.text = text
        """The text; "" if it saves too little."""
        self.names = names
        """The names up to its end that are new. A set would take four times the memory."""
        self.writer = writer
        """The writer of its steps, as long as the stretch may grow."""
        self._edit: Summarize | None = None

    def edit(self, entries: Sequence[Entry], reason: str) -> Summarize:
        """Return the edit that replaces its entries, the same one at each call: it may wait for many calls."""
        if self._edit is None or self._edit.reason != reason:
            self._edit = Summarize(Span(entries[0].id, entries[-1].id), self.text, _NAME, reason)
        return self._edit


_START: Final = _Fold(0)
"""Before the first fold."""


class _Memo:
    """The folds of earlier calls. A fold depends on all entries before it, so folds form a tree, from node 0 on."""

    def __init__(self, write: Callable[[Sequence[Entry], _StepWriter], str]) -> None:
        """`write`: returns the text of a fold of entries with these steps; "" if there is none."""
        self._newest = 0
        self._write = write

    def fold(self, node: int, between: tuple[Entry, ...], entries: tuple[Entry, ...], named: _Names) -> _Fold:
        """Return the fold of entries.

        `node`: of the fold before; `between`: the entries since then; `named`: the names up to that fold.
        """

        def make() -> _Fold:
            known = named.all()
            writer, size = self._begun(node, between, entries)
            if writer is None:
                writer = _StepWriter(frozenset[str]().union(*(names_of(entry.message.text) for entry in between)))
            writer.add(entries[size:], known)
            self._newest += 1
            return _Fold(self._newest, self._write(entries, writer), tuple(writer.written - known), writer)

        return newest_forms(entries[-1], self, (node, between, entries[:-1]), make)

    def _begun(
        self, node: int, between: tuple[Entry, ...], entries: tuple[Entry, ...]
    ) -> tuple[_StepWriter | None, int]:
        """Return the writer of the longest fold with which these entries begin, and the number of its entries.

        A stretch at the end of the view grows by a step with each call, until it is closed.
        """
        if any(map(is_loose_result, entries)):  # The form of a step depends on the messages after it.
            return None, 0
        for size in range(len(entries) - 1, 0, -1):
            fold: _Fold | None = known_form(entries[size - 1], self, (node, between, entries[: size - 1]))
            if fold is not None and fold.writer is not None:
                writer, fold.writer = fold.writer, None
                return writer, size
        return None, 0


class _Unit(NamedTuple):
    """A unit of entries that may be folded, if none of them is needed or was expanded for the coming call."""

    start: int
    end: int
    tokens: int
    """Tokens, as appended."""
    renewed: int
    """Newest turn in which one of its entries was expanded."""
    ids: tuple[str, ...]


class _Units:
    """The units among entries that are added in order."""

    __slots__ = ("_begin", "_entries", "_units", "closed")

    def __init__(self) -> None:
        self.closed: list[_Unit] = []
        """The closed units that may be folded."""
        self._units = Units()
        self._entries: list[Entry] = []  # Of the newest unit, which is still open.
        self._begin = 0  # Where it begins.

    def copy(self) -> _Units:
        twin = _Units()
        twin.closed, twin._units = self.closed.copy(), self._units.copy()
        twin._entries, twin._begin = self._entries.copy(), self._begin
        return twin

    def add(self, entry: Entry) -> None:
        if self._units.add(entry):
            self.closed += self.newest
            self._entries, self._begin = [], self._units.size - 1
        self._entries.append(entry)

    @property
    def newest(self) -> list[_Unit]:
        """The newest unit, as if it ended here; empty if it may not be folded."""
        entries = self._entries
        if not entries or not all(map(_may_fold, entries)) or _is_scattered(entries):
            return []
        tokens = sum([entry.stamp.tokens for entry in entries])
        renewed, ids = max([entry.renewed for entry in entries]), tuple([entry.id for entry in entries])
        return [_Unit(self._begin, self._begin + len(entries), tokens, renewed, ids)]


_UNITS = Growing[_Units](_Units, _Units.add, _Units.copy)


def _closed_stretches(view: View, old: int, least: int, needed: Set[str]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the closed stretches among the first `old` entries. `needed`: ids of results that stay."""
    units = _UNITS.of(view)
    begin, end, size = 0, 0, 0
    for unit in chain(units.closed, units.newest):
        if unit.start > end:  # Other units are between.
            if begin < end <= old:
                yield begin, end
            begin, size = unit.start, 0
        if unit.renewed >= view.turn or not needed.isdisjoint(unit.ids):
            if begin < unit.start <= old:
                yield begin, unit.start
            begin, end, size = unit.end, unit.end, 0
            continue
        end = unit.end
        size += unit.tokens
        if end > old:
            return
        if size >= least:
            yield begin, end
            begin, size = end, 0
    if begin < end <= old and end < len(view.entries):
        yield begin, end


def _may_fold(entry: Entry) -> bool:
    if entry.kind != "message" or entry.outline is None or entry.is_pinned():
        return False
    return entry.message.role == "assistant" or entry.is_result or is_step_note(entry.message, entry.stamp)


def _is_scattered(unit: Sequence[Entry]) -> bool:
    """Return whether an answer of this unit is elsewhere in the history: a span would cover other messages too."""
    return any(after.position != before.position + 1 for before, after in pairwise(unit))


# --------------------------------------------------------------------------------------------------- the text of a fold


def fold_steps(
    entries: Sequence[Entry], named: Set[str] = frozenset(), further: Iterable[str] = ()
) -> tuple[str, frozenset[str]]:
    """Return the text for the messages of whole units, one paragraph for each message of the model, and its names.

    Made from the appended messages, with the caller's edits, so the same steps give the same text. Each name (a path,
    an id, an identifier) is listed once only. `named`, `further`: names that are not listed, since earlier messages
    hold them. `named` may be large: it is neither copied nor iterated over. The returned names include `further`.
    """
    writer = _StepWriter(further)
    writer.add(entries, named)
    return writer.text, frozenset(writer.written)


class _StepWriter:
    """Writes the lines of steps."""

    def __init__(self, further: Iterable[str]) -> None:
        """`further`: names that are not listed."""
        self.written = set(further)
        """These names, and those in the lines."""
        self.tokens = 0
        """Tokens that the steps take in the view."""
        self._named: Set[str] = frozenset()
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        """The lines of all steps."""
        return "\n".join(self._lines)

    def add(self, entries: Sequence[Entry], named: Set[str]) -> None:
        """Write the lines of whole units. `named`: names that are not listed."""
        self._named = named
        self.tokens += sum([tokens_of(entry.message) for entry in entries])
        entries = native_steps([_as_edited(entry) for entry in entries])
        for index, entry in enumerate(entries):
            if entry.outline is None or entry.outline.result is not None:
                continue
            source = entry.source
            if source is None:
                continue
            if source.role == "user":  # A note, or the result of an action whose call is unknown.
                self._lines += self._result_lines(entry, entry.result or ToolResult("", (Text(source.text),)))
            else:
                self._lines += self._step_lines(entry, source, entries[index + 1 :])
        self._named = frozenset()

    def _step_lines(self, entry: Entry, message: Message, behind: Sequence[Entry]) -> Iterator[str]:
        """Yield the lines of one message of the model, and of the results of its calls, which are in `behind`."""
        text = list(self._text_lines(message.text))
        calls = message.calls
        if text or not calls:
            yield " ".join([entry.handle, *text[:1]])
            yield from (f"    {line}" for line in text[1:])
        for number, call in enumerate(calls):
            begin = " " if text or number else entry.handle
            yield self._write(f"{begin} {call.name}({self._arguments(call)})")
            answer = _answer_to(call, behind)
            result = answer.result if answer is not None else None
            if answer is not None and result is not None:
                yield from self._result_lines(answer, result)

    def _write(self, line: str) -> str:
        self.written.update(names_in(line))
        return line

    def _text_lines(self, text: str) -> Iterator[str]:
        """Yield the beginning of a text of the model, then its new names."""
        flat = _flat(text, _TEXT_MAX)
        if len(flat) <= _TEXT_MAX:
            if flat:
                yield self._write(flat)
            return
        yield self._write(f"{flat[:_TEXT_MAX].rsplit(' ', 1)[0]} …")
        if names := self._list_names(text, max(_TEXT_MAX, int(len(text) * _TEXT_SHARE))):
            yield names

    def _arguments(self, call: ToolCall) -> str:
        try:
            values = msgspec.json.decode(call.arguments)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            values = None
        if not isinstance(values, dict):
            return self._argument(call.arguments)
        return ", ".join(f"{key}={self._argument(value)}" for key, value in values.items())

    def _argument(self, value: Any) -> str:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        flat = _on_one_line(text[: _READ_FIRST * _ARGUMENT_MAX])
        if len(text) > _READ_FIRST * _ARGUMENT_MAX and len(flat) <= _ARGUMENT_MAX + 2:  # The cut may be in white space.
            flat = _on_one_line(text)
        if len(flat) <= _ARGUMENT_MAX:
            return flat
        names = self._list_names(text, max(_ARGUMENT_MAX, int(len(text) * _ARGUMENT_SHARE)))
        return f"{flat[: _ARGUMENT_MAX // 2]}{names or '…'}"

    def _result_lines(self, entry: Entry, result: ToolResult) -> Iterator[str]:
        """Yield the lines of a result, or of a note."""
        about = _describe_result(result.text)
        mark = " failed" if result.state == "error" else ""
        if about.is_whole:
            yield self._write(f"  → {entry.handle}{mark} {about.line}".rstrip())
            return
        yield self._write(f"  → {entry.handle}{mark} {about.line}")
        if names := self._list_new(about.names, room_for(len(result.text)), about.floor):
            yield f"    {names}"

    def _list_names(self, text: str, room: int) -> str:
        """Return a list of the new names of a text that are worth most; "" if there are none. `room`: characters."""
        return self._list_new(_long_names(text), room)

    def _list_new(self, names: Iterable[str], room: int, floor: float = 0.0) -> str:
        """Return a list of those of these names that are new. `floor`: the least worth of a name per character."""
        new = [name for name in names if not (name in self._named or name in self.written)]
        listed = select_names(new, room, floor=floor)
        self.written.update(listed)
        return f"… {' '.join(listed)}" if listed else ""


class _AboutResult(NamedTuple):
    """The text of a result as far as a fold shows it."""

    line: str
    """The text in one line, or its description."""
    is_whole: bool
    """Whether the line is all of it."""
    names: tuple[str, ...] = ()
    floor: float = 0.0
    """The least worth of a name per character."""


@cached_by_text(512)  # A change before a stretch makes the folds after it again, with other new names.
def _describe_result(text: str) -> _AboutResult:
    flat = _flat(text, _RESULT_MAX)
    if len(flat) <= _RESULT_MAX:
        return _AboutResult(flat, True)
    about = describe(text, _LOOKED_AT)
    path = path_of_whole_output(text)
    whole = f" (whole output in {path})" if path else ""
    floor = _FLOOR * floor_for(about.kind, len(text), room_for(len(text)))
    line = f"{about.kind}, {about.counted_items}: {about.gist}{whole}"
    return _AboutResult(line, False, distinct_names(text[:_NAMES_MAX]), floor)


@cached_by_text(128)
def _long_names(text: str) -> tuple[str, ...]:
    """Return the names of a long text of the model."""
    return distinct_names(text[:_NAMES_MAX])


def _as_edited(entry: Entry) -> Entry:
    """Return an entry whose content is that of the caller's list, if the caller edited it: the old content may have
    been removed for a reason.
    """
    return replace(entry, appended=entry.message) if CALLER in entry.shrunk_by else entry


def _answer_to(call: ToolCall, behind: Sequence[Entry]) -> Entry | None:
    """Return the entry of the result of a call. Some servers use an id for several calls, so it is the first one."""
    results = ((entry, entry.outlined_result) for entry in behind)
    return next((entry for entry, result in results if result is not None and result.call_id == call.call_id), None)


def _flat(text: str, most: int) -> str:
    """Return a text with single spaces; of a text that has more than `most` characters so, perhaps the beginning."""
    if len(text) > _READ_FIRST * most:
        begin = " ".join(text[: _READ_FIRST * most].split())
        if len(begin) > most:
            return begin
    return " ".join(text.split())


def _on_one_line(text: str) -> str:
    """Return a text with each run of white space as one space, or as the escape of its last character."""
    return _WHITE_SPACE.sub(lambda run: _ESCAPES.get(run[0][-1], " "), text)
