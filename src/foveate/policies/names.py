"""Names in texts (paths, ids, identifiers), and selections that depend on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from ..core.caches import cached_by_text, cached_on_entry
from ..core.messages import Message
from ..core.view import Entry, View
from ..digest.names import distinct_names

__all__ = ["RecentlyUsed", "keep_naming_lines", "names_needed_later", "names_of"]

_LINE_MAX = 160
"""Characters. A longer line is replaced by its names."""
_LINE_NAMES_MAX = 400
"""Characters of the names of one such line."""
_TEXT_MAX = 200_000
"""Characters of a text that are read."""
_NEEDED_MAX = 20
"""Names."""
_NEEDED_SHARE = 8
"""The names take at most one part in so many of the length of a summary."""
_JOINED = 100
"""Messages whose names are searched at once."""


def names_of(text: str) -> frozenset[str]:
    """Return the names of a text as a set."""
    return frozenset(_names_in(text).split())


@cached_by_text(4_096, characters=16_000_000)
def _names_in(text: str) -> str:
    """Return the names of a text, with spaces between them: a set takes several times the memory."""
    return " ".join(distinct_names(text))


def keep_naming_lines(text: str, room: int, handle: str, *, beginning: int = 0) -> str:
    """Return a note with the handle, and the lines of `text` that hold a new name: about `room` characters at most.

    For texts that the model wrote: code, patches, long answers. Indentation is kept, so that later quotes match.
    `beginning`: number of characters from the beginning of the text to show before the note.
    """
    begin = " ".join(text[:beginning].split()).rsplit(" ", 1)[0] + " …" if beginning else ""
    lines = [f'{begin} [{len(text):,} characters; expand("{handle}") shows all]'.lstrip()]
    room -= len(lines[0])
    seen = set(distinct_names(begin))
    for line in text[:_TEXT_MAX].split("\n"):
        new = [name for name in distinct_names(line) if name not in seen]
        if not new:
            continue
        shown = line.rstrip()
        if len(shown) > _LINE_MAX:
            shown = " ".join(new)[:_LINE_NAMES_MAX]
        if len(shown) < room:
            lines.append(shown)
            seen.update(new)
            room -= len(shown) + 1
    return "\n".join(lines)


class RecentlyUsed:
    """The results of a view with a name that the model used in its newest `turns` turns. Computed on first use.

    A name counts if only one result of the view holds it: a name that several results hold does not select one.
    """

    def __init__(self, view: View, turns: int) -> None:
        self._view, self._turns = view, turns
        self._results: frozenset[str] | None = None

    def __contains__(self, entry: object) -> bool:
        """Return whether the model used a name of the result that this entry shows."""
        if not self._turns or not isinstance(entry, Entry):
            return False
        if self._results is None:
            self._results = self._used_results()
        return entry.id in self._results

    def _used_results(self) -> frozenset[str]:
        view, names, holders = self._view, set[str](), dict[str, str]()
        for entry in reversed(view.entries):
            if entry.message.role == "assistant" and entry.outline is not None:
                if entry.stamp.turn < view.turn - self._turns:
                    break
                names.update(_names_of_entry(entry))
        for entry in view.entries:
            if entry.is_result and entry.outline is not None:
                for name in _names_of_entry(entry):
                    if name in names:
                        holders[name] = "" if name in holders else entry.id
        return frozenset(id for id in holders.values() if id)


@cached_on_entry
def _names_of_entry(entry: Entry) -> tuple[str, ...]:
    """Return the names in the text and the calls that an entry shows, each once."""
    return _message_names(entry.message)


def names_needed_later(covered: Sequence[Entry], entries: Sequence[Entry], target: int) -> tuple[str, ...]:
    """Return the names that a summary of `covered` must contain, the most used first.

    These are names of covered messages that other `entries` use, results aside; newer entries count more. `target`:
    length of the summary in characters.
    """
    ids = {entry.id for entry in covered if entry.outline is not None}
    others = [entry for entry in entries if entry.id not in ids and entry.outline is not None and not entry.is_result]
    weights: defaultdict[str, float] = defaultdict(float)
    for i, entry in enumerate(others):
        if not entry.is_system:
            for name in _message_names(entry.message):
                weights[name] += (i + 1) / len(others)
    covered_names = _names_among(covered, weights)
    chosen: list[str] = []
    left = target // _NEEDED_SHARE
    for name, _ in sorted(weights.items(), key=lambda pair: (-pair[1], pair[0])):
        if len(chosen) < _NEEDED_MAX and name in covered_names and len(name) + 2 <= left:
            chosen.append(name)
            left -= len(name) + 2
    return tuple(chosen)


def _names_among(entries: Sequence[Entry], wanted: Collection[str]) -> set[str]:
    """Return those of these names that occur in messages. Joined messages are searched faster than each alone."""
    names: set[str] = set()
    for begin in range(0, len(entries) if wanted else 0, _JOINED):
        text = "\n".join([_text_of(entry.message) for entry in entries[begin : begin + _JOINED]])
        names.update([name for name in distinct_names(text) if name in wanted])
    return names


def _message_names(message: Message) -> tuple[str, ...]:
    return distinct_names(_text_of(message))


def _text_of(message: Message) -> str:
    """Return the text and the arguments of a message."""
    return "\n".join([message.text, *[call.arguments for call in message.calls]])
