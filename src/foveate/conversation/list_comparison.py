"""The comparison of a caller's list with the history: what left, what changed, what is new, and where they part.

Messages are aligned in order. In a gap between two messages that both have, the list may lack messages (the caller
removed them) and have others in their place (the caller edited them). Messages that have no place in the history make
the list depart from it. System messages are compared apart from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ..core.alignment import align
from ..core.edits import Edit
from ..core.message_keys import message_key
from ..core.messages import Message, ToolCall
from .caller_history import CallerHistory
from .list_items import Known, NewList, Spot, Traits, quotes

__all__ = ["Changes", "Comparison"]

_BACK = "the caller's list ends at {place}"
_NEW = "the caller's list has nothing of the history"
_OTHER = "the caller's list has new messages, or another order, after {place}"


class Changes(Struct):
    """The changes that a list makes."""

    hidden: list[int] = []
    """Known messages that the list no longer has, by index."""
    restored: list[int] = []
    """Hidden messages that the list has again."""
    edited: list[tuple[int, list[Edit]]] = []
    """Known messages that have other content in the list, and the edits that show it."""
    tail: list[Spot] = []
    """New messages."""
    shown: list[tuple[int, Spot]] = []
    """Known messages that the list has, and where."""
    absent: list[int] = []
    """Known messages that the list lacks, but that stay."""
    fork_at: int | None = None
    """Position after which the list departs from the history; None if it does not."""
    is_rewind: bool = False
    """Whether the list ends there, so that the departure waits for the next request."""
    reason: str = ""
    """Why it departs, as a clause."""
    is_compaction: bool = False
    """Whether the list begins with a summary of the hidden messages."""
    undone: list[int] = []
    """Hidden and edited messages whose summaries are wrong now: the list has another course."""
    went_back: int | None = None
    """The first hidden reply, by index, if the list has nothing that follows it in the history."""


class _Gap(NamedTuple):
    """The messages between two that the history and the list both have."""

    before: int
    """Index of the known message before it; -1: none."""
    known: list[int]
    """Known messages that the list may lack only because the caller removed or edited them."""
    erased: list[int]
    hidden: list[int]
    spots: list[Spot]
    is_last: bool


EditsOf = Callable[[Known, Message], list[Edit] | None]
"""Returns the edits that make a known message show what another one says; None if edits cannot express it."""


class Comparison:
    """Compares one list with the history."""

    def __init__(
        self, history: CallerHistory, new: NewList, edits_of: EditsOf, *, keeps_removed: bool, may_fork: bool
    ) -> None:
        self._history, self._new, self._edits_of = history, new, edits_of
        self._keeps_removed, self._may_fork = keeps_removed, may_fork
        self._changes = Changes()

    def changes(self) -> Changes:
        """Return what the list changes."""
        history, new, changes = self._history, self._new, self._changes
        spots = self._spots()
        chain = [spot for spot in spots if spot.traits.role != "system"]
        start = history.items[new.known - 1].end if new.known else 0
        known = [
            index
            for index in range(max(start, history.first_open), len(history.known))
            if self._is_open(history.known[index]) and history.known[index].traits.role != "system"
        ]
        for gap in self._gaps(known, chain, start):
            if (self._last if gap.is_last else self._inner)(gap):
                continue
            if changes.fork_at is None:
                self._depart(gap, known, chain)
            break
        if changes.fork_at is None or changes.is_rewind:
            changes.undone = self._undone()
            changes.went_back = self._went_back()
            self._compare_systems([spot for spot in spots if spot.traits.role == "system"], chain)
            changes.tail = sorted(map(self._as_listed, changes.tail), key=lambda spot: (spot.item, spot.part))
        return changes

    def _undone(self) -> list[int]:
        """Return the hidden and edited messages; none if the caller trims: one block is hidden, and others follow it.

        A single edit may come with each list, such as that of a message with the time.
        """
        changes = self._changes
        edited = [index for index, _ in changes.edited]
        if not changes.restored and len(edited) < 2:
            first, last = min(changes.hidden, default=0), max(changes.hidden, default=-1)
            kept = [index for index, _ in changes.shown if index > first]
            if not changes.hidden or (kept and min(kept) > last):
                return []
        return [*changes.hidden, *edited]

    def _went_back(self) -> int | None:
        """Return the first hidden reply, if the list ends before it or goes on with other messages."""
        hidden = [index for index in self._changes.hidden if self._history.known[index].traits.role == "assistant"]
        if not hidden:
            return None
        first = min(hidden)
        return first if all(index < first for index, _ in self._changes.shown) else None

    def _as_listed(self, spot: Spot) -> Spot:
        """Return the spot of a new message with its own key, although a stored reply may look like it in lists."""
        if not spot.is_cut:
            return spot
        return Spot(spot.item, spot.part, self._new.fresh[spot.item - self._new.known].traits[spot.part])

    def _is_open(self, known: Known) -> bool:
        """Return whether a message may be in the part of the list that is new."""
        return not known.is_hidden and (known.item < 0 or known.item >= self._new.known)

    def _spots(self) -> list[Spot]:
        """Return the messages of the new items without the results of calls that foveate answered."""
        history, new = self._history, self._new
        spots: list[Spot] = []
        taken: set[int] = set()
        before = (n for n in reversed(range(len(history.known))) if 0 <= history.known[n].item < new.known)
        newest = next(before, -1)  # The newest message that the list shows so far.
        replies = (traits for item in reversed(history.items[: new.known]) for traits in reversed(item.traits))
        reply = next((traits for traits in replies if traits.role == "assistant"), None)
        for number, item in enumerate(new.fresh, new.known):
            for part, traits in enumerate(item.traits):
                is_cut = False
                if traits.role == "assistant":
                    indices = () if traits.key in history.keys else history.cut_keys.get(traits.key, ())
                    # Several replies may look alike without these calls. The list has them in order.
                    free = [n for n in indices if n not in taken and self._is_open(history.known[n])]
                    if not indices and traits.calls and traits.key not in history.keys:
                        indices = free = self._bare_replies(number, part, taken)
                    if indices:
                        # A reply that was passed over is joined to a later one.
                        index = next((n for n in free if n > newest), free[0] if free else indices[-1])
                        taken.add(index)
                        newest = index
                        traits, is_cut = traits._replace(key=history.known[index].traits.key), True
                    elif traits.key not in history.keys and (joined := self._joined(traits)):
                        spots += [Spot(number, part, history.known[n].traits, True) for n in joined]
                        newest, reply = joined[-1], history.known[joined[-1]].traits
                        continue
                    reply = traits
                if traits.call_id and traits.key not in history.keys and self._is_answered(traits.call_id, reply):
                    continue
                spots.append(Spot(number, part, traits, is_cut))
        return self._in_order_of_calls(spots)

    def _joined(self, traits: Traits) -> list[int]:
        """Return the indices of the replies that the list has as one; [] if they are not known."""
        indices = self._history.joined(traits)
        return indices if all(self._is_open(self._history.known[index]) for index in indices) else []

    def _in_order_of_calls(self, spots: Sequence[Spot]) -> list[Spot]:
        """Return the messages with each reply behind the results that it had, as the history has them.

        Some clients put the results of several replies behind the last of these.
        """
        ordered: list[Spot] = []
        waiting: list[Spot] = []  # replies with calls, of which no result came
        asked: tuple[str, ...] = ()  # the calls of the last reply before them
        for spot in spots:
            if spot.traits.calls:
                waiting.append(spot)
                continue
            call_id = spot.traits.call_id
            count = next((n for n, reply in enumerate(waiting, 1) if call_id in reply.traits.calls), 0)
            if len(waiting) > count and not ((count or call_id in asked) and self._is_before(spot, waiting[count])):
                count = len(waiting)
            if count:
                ordered += waiting[:count]
                asked = waiting[count - 1].traits.calls
                del waiting[:count]
            ordered.append(spot)
        return ordered + waiting

    def _is_before(self, result: Spot, reply: Spot) -> bool:
        """Return whether the history has a result before a reply."""
        places = self._places
        return places.get(result.traits.key, len(self._history.known)) < places.get(reply.traits.key, -1)

    @cached_property
    def _places(self) -> dict[bytes, int]:
        """The newest place of each known message, by its key."""
        return {known.traits.key: place for place, known in enumerate(self._history.known)}

    def _bare_replies(self, item: int, part: int, taken: Set[int]) -> list[int]:
        """Return the replies, by index, that a message of the list shows if it has given ids to calls without them."""
        history = self._history
        if not history.cut_keys:
            return []
        message = self._new.message(item, part).message
        calls = [replace(each, call_id=each.name) if isinstance(each, ToolCall) else each for each in message.parts]
        indices = history.cut_keys.get(message_key(replace(message, parts=tuple(calls))), ())
        return [n for n in indices if n not in taken and self._is_open(history.known[n])]

    def _is_answered(self, call_id: str, reply: Traits | None) -> bool:
        """Return whether foveate answered a call itself. `reply`: the newest one before the result in the list.

        Some servers number the calls of each reply from 0.
        """
        answered = self._history.answered
        if reply is not None and call_id in reply.calls:
            return call_id in answered.get(reply.key, ())
        return any(call_id in ids for ids in answered.values())

    # ---------------------------------------------------------------------------------------------------------- order

    def _gaps(self, known: Sequence[int], chain: Sequence[Spot], start: int) -> list[_Gap]:
        """Match the messages that both have, and return the gaps between them, in order."""
        history, changes = self._history, self._changes
        keys = [history.known[index].traits.key for index in known]
        pairs = align(keys, [self._key_of(spot) for spot in chain])
        pairs = [(i, j) for i, j in pairs if self._match(known[i], chain[j])]
        matched_known, matched_spots = {i for i, _ in pairs}, {j for _, j in pairs}
        results: dict[bytes, list[int]] = {}
        for j in range(len(chain) - 1, -1, -1):
            if j not in matched_spots and chain[j].traits.call_id:
                results.setdefault(chain[j].traits.key, []).append(j)
        for i, index in enumerate(known):  # Results of one reply come in any order, and some come late.
            if i not in matched_known and results.get(keys[i]) and self._has_its_call(known, i, matched_known):
                j = results[keys[i]].pop()
                changes.shown.append((index, chain[j]))
                matched_known.add(i)
                matched_spots.add(j)
        gaps: list[_Gap] = []
        i, j, before = 0, 0, start - 1
        for end_i, end_j in [*pairs, (len(known), len(chain))]:
            is_last = end_i == len(known)
            free = [known[n] for n in range(i, end_i) if n not in matched_known]
            spots = [chain[n] for n in range(j, end_j) if n not in matched_spots]
            until = len(history.known) if is_last else known[end_i]
            gaps.append(
                _Gap(
                    before,
                    [index for index in free if not history.known[index].may_lack],
                    [index for index in free if history.known[index].is_erased],
                    [n for n in range(before + 1, until) if history.known[n].is_hidden]
                    if spots and not is_last
                    else [],
                    spots,
                    is_last,
                )
            )
            if not is_last:
                i, j, before = end_i + 1, end_j + 1, known[end_i]
        return [gap for gap in gaps if gap.known or gap.spots]

    def _has_its_call(self, known: Sequence[int], i: int, matched: Set[int]) -> bool:
        """Return whether the list has the call that a known result answers, or had it before."""
        call_id = self._history.known[known[i]].traits.call_id
        for n in range(i - 1, -1, -1):
            if call_id in self._history.known[known[n]].traits.calls:
                return n in matched
        return True

    def _key_of(self, spot: Spot) -> bytes:
        """Return the key of the known message with the same id of the caller, else the key of what it says."""
        history = self._history
        index = history.caller_ids.get(spot.traits.id) if spot.traits.id else None
        if index is None or not self._is_open(history.known[index]):
            return spot.traits.key
        known = history.known[index].traits
        return known.key if known.role == spot.traits.role else spot.traits.key

    def _match(self, index: int, spot: Spot) -> bool:
        """Note that the list has a known message there, with other content if only the caller's id is the same."""
        if self._history.known[index].traits.key != spot.traits.key and not self._edit(index, spot):
            return False
        self._changes.shown.append((index, spot))
        return True

    def _edit(self, index: int, spot: Spot) -> bool:
        """Note the edits that make a known message show what the list has; return whether there are such edits."""
        known = self._history.known[index]
        if not known.is_erased:
            edits = self._edits_of(known, self._new.message(spot.item, spot.part).message)
            if edits is None:
                return False
            self._changes.edited.append((index, edits))
        return True

    # ----------------------------------------------------------------------------------------------------------- gaps

    def _inner(self, gap: _Gap) -> bool:
        """Take in a gap before a message that both have. Return whether that was possible."""
        history, changes = self._history, self._changes
        spots = list(gap.spots)
        again = align([history.known[index].traits.key for index in gap.hidden], [spot.traits.key for spot in spots])
        for i, j in again:
            changes.restored.append(gap.hidden[i])
            changes.shown.append((gap.hidden[i], spots[j]))
        spots = [spot for j, spot in enumerate(spots) if j not in {j for _, j in again}]
        free = sorted([*gap.known, *gap.erased])
        left = list(gap.known)
        at = 0
        for spot in spots:
            place = next((n for n in range(at, len(free)) if self._may_become(history.known[free[n]], spot)), None)
            if place is not None and self._edit(free[place], spot):
                changes.shown.append((free[place], spot))
                left = [index for index in left if index != free[place]]
                at = place + 1
            elif spot.traits.call_id and self._is_unanswered(spot.traits.call_id, gap.before):
                changes.tail.append(spot)
            else:
                return False
        self._remove(left)
        return True

    def _last(self, gap: _Gap) -> bool:
        """Take in the gap at the end. Return whether the list goes on from the history."""
        history, changes = self._history, self._changes
        known, spots = list(gap.known), list(gap.spots)
        for index in gap.erased:
            erased = history.known[index]
            if spots and not known and not erased.is_recognized and spots[0].traits.role == erased.traits.role:
                changes.shown.append((index, spots.pop(0)))
        if not known:
            self._restore_end(gap, spots)
        while known and spots and self._is_same_utterance(history.known[known[0]], spots[0]):
            if not self._edit(known[0], spots[0]):
                break
            changes.shown.append((known.pop(0), spots.pop(0)))
        if not known or (not spots and self._keeps_removed):
            self._remove(known)
            changes.tail += spots
            return True
        if not spots and self._may_fork:
            changes.is_rewind, changes.fork_at = True, self._end_of(gap.before)
            changes.reason = _BACK.format(place=self._place(gap.before))
            return True
        changes.is_compaction = gap.before < 0 and bool(spots) and self._is_summarized(spots[0])
        if gap.before < 0 and self._may_fork and not changes.is_compaction:
            changes.reason, changes.fork_at = _NEW, self._end_of(gap.before)
            return False
        self._remove(known)
        changes.tail += spots
        return True

    def _is_summarized(self, spot: Spot) -> bool:
        """Return whether a list begins with the newest reply, which is a summary: the caller compacted its list.

        The history then stays behind the summary, where `expand` and searches reach it.
        """
        reply = self._history.newest_reply
        return spot.traits.role == "user" and quotes(self._new.message(spot.item, spot.part).message.text, reply)

    def _restore_end(self, gap: _Gap, spots: list[Spot]) -> None:
        """Match new messages with hidden ones at the end of the history, in whole units; remove them from `spots`."""
        hidden = [
            index
            for index in range(gap.before + 1, len(self._history.known))
            if self._history.known[index].is_hidden and self._history.known[index].traits.role != "system"
        ]
        count = 0
        while count < min(len(hidden), len(spots)) and (
            self._history.known[hidden[count]].traits.key == spots[count].traits.key
        ):
            count += 1
        if count < len(spots) and spots[count].traits.call_id:  # Its call came with another result.
            while count and not spots[count - 1].traits.calls:
                count -= 1
            count = max(0, count - 1)
        self._changes.restored += hidden[:count]
        self._changes.shown += zip(hidden, spots[:count], strict=False)
        del spots[:count]

    def _depart(self, gap: _Gap, known: Sequence[int], chain: Sequence[Spot]) -> None:
        """Note that the list and the history part in this gap."""
        history, changes = self._history, self._changes
        changes.reason = _OTHER.format(place=self._place(gap.before))
        if self._may_fork:
            changes.fork_at = history.last_row(gap.before) if gap.before >= 0 else 0
            return
        after = {(spot.item, spot.part) for spot in chain if (spot.item, spot.part) >= gap.spots[0][:2]}
        changes.shown = [pair for pair in changes.shown if pair[0] <= gap.before]
        changes.edited = [pair for pair in changes.edited if pair[0] <= gap.before]
        changes.restored = [index for index in changes.restored if index <= gap.before]
        kept = {spot[:2] for _, spot in changes.shown}
        changes.tail = [spot for spot in chain if spot[:2] in after or (spot[:2] not in kept and spot in changes.tail)]
        changes.hidden = [index for index in changes.hidden if index <= gap.before]
        changes.hidden += [index for index in known if index > gap.before and not history.known[index].is_erased]

    def _remove(self, indices: Sequence[int]) -> None:
        (self._changes.absent if self._keeps_removed else self._changes.hidden).extend(indices)

    def _end_of(self, before: int) -> int:
        """Return the position up to which a fork keeps the history after the known message at this index.

        It keeps the additions of plugins and the calls of `expand` there, but no messages that are hidden.
        """
        rest = self._history.known[before + 1 :]
        return next(known.position for known in rest if not known.is_optional and known.traits.role != "system") - 1

    def _place(self, index: int) -> str:
        return f"m{self._history.known[index].position}" if index >= 0 else "its beginning"

    def _may_become(self, known: Known, spot: Spot) -> bool:
        """Return whether a message may be an edited form of another one."""
        old, new = known.traits, spot.traits
        if known.is_erased:
            return old.role == new.role
        return (old.role, old.call_id, old.calls) == (new.role, new.call_id, new.calls)

    def _is_same_utterance(self, known: Known, spot: Spot) -> bool:
        """Return whether a message at the end of the history is certainly an older form of one in the list.

        Otherwise it is a new message.
        """
        if not self._may_become(known, spot):
            return False
        return bool(known.traits.calls or known.traits.call_id) or (known.traits.role == "assistant" and known.item < 0)

    def _is_unanswered(self, call_id: str, before: int) -> bool:
        """Return whether the newest of the messages up to `before` with this call has no result."""
        if not call_id:
            return False
        for index in range(before, -1, -1):
            traits = self._history.known[index].traits
            if traits.call_id == call_id:
                return False
            if call_id in traits.calls:
                later = self._history.known[before + 1 :]
                return not any(other.traits.call_id == call_id for other in later if not other.is_hidden)
        return False

    # --------------------------------------------------------------------------------------------------------- systems

    def _compare_systems(self, spots: Sequence[Spot], chain: Sequence[Spot]) -> None:
        """Compare the system messages, whose order counts only among themselves."""
        history, changes = self._history, self._changes
        open_systems = [index for index in history.systems if self._is_open(history.known[index])]
        if not spots and not open_systems:
            return
        pairs = align([history.known[index].traits.key for index in open_systems], [spot.traits.key for spot in spots])
        changes.shown += [(open_systems[i], spots[j]) for i, j in pairs]
        left = [index for i, index in enumerate(open_systems) if i not in {i for i, _ in pairs}]
        new = [spot for j, spot in enumerate(spots) if j not in {j for _, j in pairs}]
        first = min((spot[:2] for spot in chain), default=(len(self._new.fresh) + self._new.known, 0))
        last = max((spot[:2] for index, spot in changes.shown if spot.traits.role != "system"), default=(-1, 0))
        for spot in new:
            is_prompt = self._new.known == 0 and spot[:2] < first
            place = next((index for index in left if self._is_prompt(index) == is_prompt), None)
            if place is not None and (is_prompt or spot[:2] < last) and self._edit(place, spot):
                changes.shown.append((place, spot))
                left.remove(place)
            else:
                changes.tail.append(spot)
        self._remove([index for index in left if not history.known[index].may_lack])

    def _is_prompt(self, index: int) -> bool:
        """Return whether only system messages come before this one."""
        return all(known.traits.role == "system" for known in self._history.known[:index])
