"""Names in what is to be summarised that later messages still speak of: a summary must hold them letter by letter.

Only what stays in the view is looked at, and only its newest part counts much: a name in the open request matters more
than one that was mentioned long ago. Knows nothing of who writes the summary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from ..core.messages import Message
from ..core.view import Entry
from .in_short import names_of

__all__ = ["still_needed"]

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
