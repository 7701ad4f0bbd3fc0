"""Facts about single entries that policies work out, and that a saved view keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from .scalars import plain_scalar

if TYPE_CHECKING:
    from .view import Entry

__all__ = ["EntryFact", "restore_entry_facts", "saved_entry_facts"]

V = TypeVar("V")

_encode = msgspec.msgpack.Encoder(enc_hook=plain_scalar).encode


class _Key(msgspec.Struct, frozen=True, gc=False):
    """The key of a fact in the memo of an entry."""

    name: str


class EntryFact(Generic[V]):
    """A fact about an entry alone, such as the edits that shrink it.

    The entry holds it, so nothing has to be invalidated. A saved view keeps it, so that a conversation that opens with
    the view does not work it out again.
    """

    def __init__(self, name: str, kind: Any) -> None:
        """`name` has all settings on which the fact depends. `kind`: the type of the fact, which `msgspec` decodes."""
        self._key = _Key(name)
        self._decode = msgspec.msgpack.Decoder(kind).decode

    def of(self, entry: Entry) -> V | None:
        """Return the fact about an entry; None if it is not known."""
        fact: V | msgspec.Raw | None = entry.recall(self._key)
        if not isinstance(fact, msgspec.Raw):
            return fact
        known: V | None = None
        with suppress(msgspec.MsgspecError):  # Another shape, of code that is developed.
            known = self._decode(fact)
        entry.remember(self._key, known)
        return known

    def remember(self, entry: Entry, fact: V) -> None:
        """Let an entry hold the fact about it."""
        entry.remember(self._key, fact)


def saved_entry_facts(entries: Iterable[Entry]) -> dict[str, dict[int, msgspec.Raw]]:
    """Return the facts that entries hold, to be saved, by name and by the index of the entry.

    Restored ones that no policy asked for are left out: they may be of other settings.
    """
    facts: dict[str, dict[int, msgspec.Raw]] = {}
    for index, entry in enumerate(entries):
        for key, fact in entry.remembered():
            if type(key) is _Key and fact is not None and not isinstance(fact, msgspec.Raw):
                with suppress(UnicodeEncodeError):  # Half of a surrogate pair: the commit of such an edit is refused.
                    facts.setdefault(key.name, {})[index] = msgspec.Raw(_encode(fact))
    return facts


def restore_entry_facts(facts: Mapping[str, Mapping[int, msgspec.Raw]], entries: Sequence[Entry]) -> None:
    """Let entries hold the facts that were saved with them. Each is decoded when it is asked for."""
    for name, by_index in facts.items():
        key = _Key(name)
        for index, fact in by_index.items():
            entries[index].remember(key, fact.copy())  # Otherwise it would keep all bytes of the view in memory.
