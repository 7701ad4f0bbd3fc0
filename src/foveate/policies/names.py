"""Names in what is to be summarised that later messages still speak of: a summary must hold them letter by letter.

Only what stays in the view is looked at, and only its newest part counts much: a name in the open request matters more
than one that was mentioned long ago. Knows nothing of who writes the summary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from ..core.caches import cached
from ..core.messages import Message
from ..core.view import Entry, View
from ..digest import names_in

__all__ = ["UsedLately", "in_short", "names_of", "still_needed"]

_WIDE = 160
"""Characters up to which a line is kept as it is; of a longer one, the names are."""
_NAMES = 400
"""Characters of the names of one such line."""
_LONGEST = 200_000
"""Characters of a text that are looked at: what comes behind is in no short form of it anyway."""


def in_short(text: str, room: int, name: str, *, begins: int = 0) -> str:
    """At most about `room` characters: a note that names the handle, then lines with new names, in their order.

    `begins`: characters that are told of how the text begins, before the note; what is only code needs none.
    """
    begin = " ".join(text[:begins].split()).rsplit(" ", 1)[0] + " …" if begins else ""
    kept = [f'{begin} [{len(text):,} characters; expand("{name}") shows all]'.lstrip()]
    room -= len(kept[0])
    told = set(names_of(begin))
    for line in text[:_LONGEST].split("\n"):
        new = [found for found in names_of(line) if found not in told]
        if not new:
            continue
        shown = line.rstrip()
        if len(shown) > _WIDE:
            shown = " ".join(new)[:_NAMES]
        if len(shown) < room:
            kept.append(shown)
            told.update(new)
            room -= len(shown) + 1
    return "\n".join(kept)


def names_of(text: str) -> list[str]:
    """Paths, ids, identifiers: what somebody could refer to, each once, in order."""
    return list(dict.fromkeys(names_in(text)))


class UsedLately:
    """The names that the model used in the newest `turns` turns of a view; worked out when somebody asks."""

    def __init__(self, view: View, turns: int) -> None:
        self._view, self._turns = view, turns
        self._results: frozenset[str] | None = None

    def __contains__(self, entry: object) -> bool:
        """Whether the result that this entry shows was used lately."""
        if not self._turns or not isinstance(entry, Entry):
            return False
        if self._results is None:
            self._results = self._found()
        return entry.id in self._results

    def _found(self) -> frozenset[str]:
        view, names, holders = self._view, set[str](), dict[str, str]()
        for entry in reversed(view.entries):
            if entry.message.role == "assistant" and entry.source is not None:
                if entry.stamp.turn < view.turn - self._turns:
                    break
                names.update(*(_names(call.arguments) for call in entry.source.calls), _names(entry.source.text))
        for entry in view.entries:
            if entry.is_result and entry.source is not None:
                for name in _names(entry.source.text) & names:
                    holders[name] = "" if name in holders else entry.id
        return frozenset(id for id in holders.values() if id)


@cached(2_048)
def _names(text: str) -> frozenset[str]:
    return frozenset(names_of(text))


_MOST = 20
"""Names, at most."""
_SHARE = 8
"""One part in so many of a summary's length that the names may take together."""


def still_needed(gone: Sequence[Entry], entries: Sequence[Entry], target: int) -> tuple[str, ...]:
    """What a summary of `gone` must name, the most wanted first, as far as it is spoken of in the other `entries`.

    What tools answered does not count: the names in a listing refer to nothing. `target`: characters of the summary.
    """
    ids = {entry.id for entry in gone if entry.source is not None}
    stays = [entry for entry in entries if entry.id not in ids and entry.source is not None and not entry.is_result]
    wanted: defaultdict[str, float] = defaultdict(float)
    for i, entry in enumerate(stays):
        if entry.message.role != "system":
            for name in _named(entry.message):
                wanted[name] += (i + 1) / len(stays)
    there = _in(gone, wanted)
    chosen: list[str] = []
    left = target // _SHARE
    for name, _ in sorted(wanted.items(), key=lambda pair: (-pair[1], pair[0])):
        if len(chosen) < _MOST and name in there and len(name) + 2 <= left:
            chosen.append(name)
            left -= len(name) + 2
    return tuple(chosen)


def _in(gone: Sequence[Entry], wanted: Collection[str]) -> set[str]:
    there: set[str] = set()
    for entry in gone:
        if wanted:
            there.update(name for name in _named(entry.message) if name in wanted)
    return there


def _named(message: Message) -> list[str]:
    return names_of("\n".join([message.text, *(call.arguments for call in message.calls)]))
