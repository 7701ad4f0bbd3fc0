"""The text of a fold: steps in a few lines, with the calls, the results and each name once."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import takewhile
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ..core.caches import cached_by_text
from ..core.edits import CALLER
from ..core.messages import Message, Text, ToolCall, ToolResult
from ..core.readable import content_text, readable_messages
from ..core.results import native_steps
from ..core.sizes import tokens_of
from ..core.view import Entry
from ..digest import Description, room_for
from ..digest.description import describe_text, tells_edit
from ..digest.names import distinct_names, names_in
from ..digest.selection import floor_for, select_names
from ..digest.wrappings import output_of, path_of_whole_output

__all__ = ["StepWriter", "fold_steps"]

_TEXT_MAX = 240
"""Characters of a text of the model that is kept whole."""
_TEXT_SHARE = 0.3
_ARGUMENT_MAX = 80
"""Characters of an argument that is kept whole."""
_ARGUMENT_SHARE = 0.3
_AS_BEFORE = "as before"
"""Stands for arguments that are equal to those of the call of this tool before, in the same stretch."""
_COMPARED = 400
"""Characters of a value that may be equal to one before."""
_BEGUN_ALIKE = 16
"""Characters at the beginning of a long argument, at least, that are left out if an earlier call of this tool has them
too: `const r = await tools.exec_command(` says nothing the second time.
"""
_BEGINS = 16
"""Earlier beginnings that are compared."""
_MARKS = "\"'(=;&|"
"""Marks behind which an argument, a value or a command begins."""
_PATCH = "*** Begin Patch"
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (\S.{0,300})", re.MULTILINE)
"""A patch in the form of Codex, and the files in it."""
_RESULT_MAX = 120
"""Characters of a result that is kept whole."""
_PLAIN = ("output", "prose")
"""Kinds of results whose first words say as much as the name of the kind."""
_EDITED = "edited"
"""Stands for a result that says that a file was changed."""
_LOOKED_AT = 1_000
"""Characters of a result that decide its kind: enough for a line about it."""
_NAMES_MAX = 400_000
"""Characters of a text that are searched for names."""
_NAMED_MAX = 16_000_000
"""Characters of the newest texts whose names are held: some times those of a large view."""
_FLOOR = 0.55
"""The least worth of a name of a result, as a share of that of a line in its digest."""
_READ_FIRST = 4
"""How many times the characters of a text that is kept whole are read before the rest of a text."""
_WHITE_SPACE = re.compile(r"\s(?:\s+|(?<! ))")
"""A run of white space, but for a single space."""
_ESCAPES = {"\n": "\\n", "\t": "\\t"}


def fold_steps(
    entries: Sequence[Entry], named: Set[str] = frozenset(), further: Iterable[str] = ()
) -> tuple[str, frozenset[str]]:
    """Return the text for the messages of whole units, one paragraph for each message of the model, and its names.

    Made from the appended messages, with the caller's edits, so the same steps give the same text. Each name (a path,
    an id, an identifier) is listed once only. `named`, `further`: names that are not listed, since earlier messages
    hold them. `named` may be large: it is neither copied nor iterated over. The returned names include `further`.
    """
    writer = StepWriter(further)
    writer.add(entries, named)
    return writer.text, frozenset(writer.written)


class StepWriter:
    """Writes the lines of steps."""

    def __init__(self, further: Iterable[str]) -> None:
        """`further`: names that are not listed."""
        self.written = set(further)
        """These names, and those in the lines."""
        self.tokens = 0
        """Tokens that the steps take in the view."""
        self._named: Set[str] = frozenset()
        self._lines: list[str] = []
        self._shown: dict[tuple[str, str], str | None] = {}  # (tool, argument) -> its newest value, unless it is long
        self._begins: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=_BEGINS))
        """The beginnings of long arguments, by tool."""

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
                self._lines += self._result_lines(
                    entry, entry.result or ToolResult("", (Text(content_text(source.parts)),))
                )
            else:
                self._lines += self._step_lines(entry, source, entries[index + 1 :])
        self._named = frozenset()

    def _step_lines(self, entry: Entry, message: Message, behind: Sequence[Entry]) -> Iterator[str]:
        """Yield the lines of one message of the model, and of the results of its calls, which are in `behind`.

        Calls that the provider ran have their results in the message itself.
        """
        begin = entry.handle
        pieces = readable_messages((message,))
        for piece in pieces:
            if piece.result is not None:
                yield from self._result_lines(entry, piece.result)
                begin = " "
                continue
            text = list(self._text_lines(piece.text))
            if text or not (piece.calls or len(pieces) > 1):
                yield " ".join([begin, *text[:1]])
                yield from (f"    {line}" for line in text[1:])
                begin = " "
            for call in piece.calls:
                yield self._write(f"{begin} {_name(call.name)}({self._arguments(call)})")
                begin = " "
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
            return self._argument(call.name, call.arguments)
        parts: list[str] = []
        for key, value in values.items():
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            if len(f"{key}={text}") > len(_AS_BEFORE) and self._shown.get((call.name, key)) == text:
                parts += [_AS_BEFORE] if parts[-1:] != [_AS_BEFORE] else []
            else:
                parts.append(f"{_name(key)}={self._argument(call.name, text)}")
                self._shown[call.name, key] = text if len(text) <= _COMPARED else None
        return ", ".join(parts)

    def _argument(self, tool: str, text: str) -> str:
        if text.startswith(_PATCH) and (files := _PATCHED.findall(text)):
            more = f" and {len(files) - 1} more" if len(files) > 1 else ""
            shown = self._write(f"patch of {files[0].strip()}{more}")
            return f"{shown}{self._list_names(text, int(len(text) * _ARGUMENT_SHARE))}"
        flat = _on_one_line(text[: _READ_FIRST * _ARGUMENT_MAX])
        if len(text) > _READ_FIRST * _ARGUMENT_MAX and len(flat) <= _ARGUMENT_MAX + 2:  # The cut may be in white space.
            flat = _on_one_line(text)
        if len(flat) <= _ARGUMENT_MAX:
            return flat
        names = self._list_names(text, max(_ARGUMENT_MAX, int(len(text) * _ARGUMENT_SHARE)))
        alike = _begun_alike(flat, self._begins[tool])
        self._begins[tool].append(flat)
        return f"{'…' if alike else ''}{flat[alike : alike + _ARGUMENT_MAX // 2]}{names or '…'}"

    def _result_lines(self, entry: Entry, result: ToolResult) -> Iterator[str]:
        """Yield the lines of a result, or of a note."""
        text = content_text(result.content)
        about = _describe_result(text)
        mark = " failed" if result.state == "error" else ""
        if about.is_whole:
            yield self._write(f"  → {entry.handle}{mark} {about.line}".rstrip())
            return
        yield self._write(f"  → {entry.handle}{mark} {about.line}")
        if names := self._list_new(about.names.split(), room_for(len(text)), about.floor):
            yield f"    {names}"

    def _list_names(self, text: str, room: int) -> str:
        """Return a list of the new names of a text that are worth most; "" if there are none. `room`: characters."""
        return self._list_new(_long_names(text).split(), room)

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
    names: str = ""
    """The names in it, with spaces between them: a long text has thousands, and a string for each takes much memory."""
    floor: float = 0.0
    """The least worth of a name per character."""


# A change before a stretch makes the folds after it again, with other new names.
@cached_by_text(512, characters=_NAMED_MAX)
def _describe_result(text: str) -> _AboutResult:
    path = path_of_whole_output(text)
    text = output_of(text)
    if tells_edit(text):
        return _AboutResult(_EDITED, False, _names_in(text), _FLOOR)
    flat = _flat(text, _RESULT_MAX)
    if len(flat) <= _RESULT_MAX:
        return _AboutResult(flat, True)
    about = describe_text(text, _LOOKED_AT)
    whole = f" (whole output in {path})" if path else ""
    floor = _FLOOR * floor_for(about.kind, len(text), room_for(len(text)))
    return _AboutResult(f"{_summarize(about)}{whole}", False, _names_in(text), floor)


def _summarize(about: Description) -> str:
    """Return a few words about a result: its items, or its kind, and what it begins with."""
    if about.items:
        return f"{about.counted_items}{' ' if about.kind == 'matches' else ': '}{about.gist}"
    if about.kind in _PLAIN:
        return about.gist if about.gist.endswith("…") else f"{about.gist} …"
    return f"{about.kind}: {about.gist}"


@cached_by_text(128, characters=_NAMED_MAX)
def _long_names(text: str) -> str:
    """Return the names of a long text of the model, with spaces between them."""
    return _names_in(text)


def _names_in(text: str) -> str:
    return " ".join(distinct_names(text[:_NAMES_MAX]))


def _as_edited(entry: Entry) -> Entry:
    """Return an entry whose content is that of the caller's list, if the caller edited it: the old content may have
    been removed for a reason.
    """
    return replace(entry, appended=entry.message) if CALLER in entry.shrunk_by else entry


def _answer_to(call: ToolCall, behind: Sequence[Entry]) -> Entry | None:
    """Return the entry of the result of a call. Some servers use an id for several calls, so it is the first one."""
    results = ((entry, entry.outlined_result) for entry in behind)
    return next((entry for entry, result in results if result is not None and result.call_id == call.call_id), None)


def _begun_alike(text: str, others: Iterable[str]) -> int:
    """Return how many characters of a text to leave out, because others begin with them; 0 if they are few."""
    length = max([_common_length(text, other) for other in others], default=0)
    if (mark := max(text.rfind(mark, 0, length) for mark in _MARKS) + 1) and length - mark <= _BEGUN_ALIKE:
        length = mark  # `git status` behind `git log` is shown whole.
    while length and (text[length - 1].isalnum() or text[length - 1] in "_-./"):
        length -= 1  # So is a word, or a path.
    while text[length : length + 1].isspace():
        length += 1
    return length if _BEGUN_ALIKE <= length < len(text) - _BEGUN_ALIKE else 0


def _common_length(first: str, second: str) -> int:
    """Return how many characters at the beginning of two texts are the same; 0 if they are few."""
    if first[:_BEGUN_ALIKE] != second[:_BEGUN_ALIKE]:
        return 0  # As most, which saves the loop.
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def _flat(text: str, most: int) -> str:
    """Return a text with single spaces; of a text that has more than `most` characters so, perhaps the beginning."""
    if len(text) > _READ_FIRST * most:
        begin = " ".join(text[: _READ_FIRST * most].split())
        if len(begin) > most:
            return begin
    return " ".join(text.split())


def _name(text: str) -> str:
    """Return the name of a tool or of an argument: a model may give it any characters, so that it would forge lines."""
    return _on_one_line(text[:_ARGUMENT_MAX])


def _on_one_line(text: str) -> str:
    """Return a text with each run of white space as one space, or as the escape of its last character."""
    return _WHITE_SPACE.sub(lambda run: _ESCAPES.get(run[0][-1], " "), text)
