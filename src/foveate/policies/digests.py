"""Digests: shrink old results, and old texts of the model, without asking a model.

Behind a protected window a long result becomes its digest (`foveate.digest`), which keeps names, paths and numbers and
has the handle of the original. Results that show a file stay longer, since an edit needs the lines that it replaces.
Texts and call arguments of the model shrink too. User inputs and system prompts never do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from heapq import merge

from msgspec.structs import replace

from ..core.edits import Edit, Path, Replace
from ..core.entry_facts import EntryFact
from ..core.growing import selecting
from ..core.messages import Part, Text, ToolCall
from ..core.planner import CostlyPolicy, Policy
from ..core.results import read_actions
from ..core.view import Entry, View
from ..digest import digest
from ..errors import BadSetting
from .kinds import check_kinds
from .names import RecentlyUsed, keep_naming_lines
from .placeholders import handle_of, is_longer, is_whole, replacement, shrink_arguments, shrink_step
from .result_worth import needed_results
from .span_selection import TokenWindow, check_token_windows, count_older, window_tokens
from .tool_kinds import classify_results, create_classifier, create_name_filter

__all__ = ["LEAST", "LEAST_SAID", "PROTECT", "PROTECT_READS", "PROTECT_SAID", "SHARE", "SHARE_SAID", "shrink_to_digest"]

PROTECT = 0.02
"""Share of the usable tokens: the newest tokens in which every result stays whole."""
PROTECT_READS = 0.04
"""The same for results that show a file."""
PROTECT_SAID = 0.05
"""The same for texts and call arguments of the model."""
SHARE = 0.15
"""Share of the characters of a result that its digest may take."""
SHARE_SAID = 0.4
"""The same for texts of the model. It is larger, since names in code are used again more often."""
LEAST = 600
"""Characters of the shortest result, and of the shortest text of the model, that shrinks."""
LEAST_SAID = 160
"""Characters of the shortest string in call arguments that shrinks."""

_NAME = "shrink"
_ROOM_MIN = 200
_ROOM_MIN_ARGUMENT = 80
_ROOM_MAX = 16_000
_BEGINNING = 200
"""Characters of the beginning of a text of the model that stay: its plan or its finding."""
_SHRUNK_MAX = 0.75
"""A short form that keeps more than this share of the characters is not used."""

_ShortForm = tuple[Path, str]
"""A part of a message, and the text that replaces it."""


@check_kinds
def shrink_to_digest(
    *,
    protect: TokenWindow = PROTECT,
    protect_reads: TokenWindow = PROTECT_READS,
    protect_said: TokenWindow | None = PROTECT_SAID,
    share: float = SHARE,
    share_said: float = SHARE_SAID,
    least: int = LEAST,
    least_said: int = LEAST_SAID,
    stay_if_used: int = 0,
    protected_tools: Collection[str] = ("skill",),
    by_worth: bool = False,
) -> Policy:
    """Return a policy that shrinks old results, and old texts of the model, to digests.

    `protect`: newest tokens in which results stay whole, as a number (int) or as a share of the usable tokens (float
    below 1.0). `protect_reads`: the same for results that show a file, if it is more. `protect_said`: the same for
    texts and call arguments of the model; None never shrinks them. `share`, `share_said`: share of the characters that
    the short form of a result, or of a text of the model, may take. `least`, `least_said`: characters of the shortest
    text, and of the shortest string in arguments, that shrinks. `stay_if_used`: a result stays whole if the model used
    one of its names in the newest so many turns (0: no result stays for this). `by_worth`: results stay while they are
    worth their place (`needed_results`); `protect` and `protect_reads` are then not used.

    Results of `protected_tools` (names, or patterns such as `memory_*`), unfinished results, pinned parts, parts that
    another policy shrank and parts that were expanded for the coming call stay, and so does content that would hardly
    get shorter. Raises BadSetting for values out of range.
    """
    check_token_windows("shrink_to_digest", protect=protect, protect_reads=protect_reads, protect_said=protect_said)
    for name, value in (("least", least), ("least_said", least_said), ("stay_if_used", stay_if_used)):
        if value < 0:
            raise BadSetting(f"{name} of shrink_to_digest is {value}. Set it to 0 or more.")
    for name, part in (("share", share), ("share_said", share_said)):
        if not 0 < part < 1:
            raise BadSetting(f"{name} of shrink_to_digest is {part}. Set it above 0 and below 1.")
    is_protected, classifier = create_name_filter(protected_tools), create_classifier()
    shortener = _Shortener(share, share_said, least, least_said)

    def may_shrink(entry: Entry) -> bool:
        return shortener.may_shorten(entry) and not (entry.is_result and is_protected(entry.tool))

    settings = f"{least} {least_said} {sorted(protected_tools)}"
    results = selecting(lambda entry: entry.is_result and may_shrink(entry), f"shrink results {settings}")
    others = selecting(lambda entry: not entry.is_result and may_shrink(entry), f"shrink others {settings}")

    def edits(view: View, taken: Set[str]) -> Iterator[Edit]:
        windows = _Windows(view, protect, protect_reads, protect_said)
        reads: set[str] = set()
        if windows.old_reads < windows.old and not by_worth:
            reads = {entry.id for entry, _, call in classify_results(view, classifier) if call.kind == "read"}
        if by_worth:
            needed = needed_results(view)
            old = [index for index in results.of(view).indices if index not in needed]
        else:
            old = results.of(view).before(windows.old)
        used = RecentlyUsed(view, stay_if_used)
        for index in merge(old, others.of(view).before(windows.old_said)):
            entry = view.entries[index]
            if entry.renewed >= view.turn or entry.id in taken:
                continue
            if entry.is_result and by_worth:
                reason = "a later use is too unlikely"
            else:
                reason = windows.reason(index, entry, is_read=entry.id in reads)
            short = shortener.edits(entry, reason) if reason else ()
            if short and entry not in used:
                yield from short

    return CostlyPolicy(edits)


class _Windows:
    """The protected windows of a view."""

    def __init__(
        self, view: View, protect: TokenWindow, protect_reads: TokenWindow, protect_said: TokenWindow | None
    ) -> None:
        self._tokens = window_tokens(protect, view)
        self._tokens_reads = window_tokens(protect_reads, view)
        self._tokens_said = 0 if protect_said is None else window_tokens(protect_said, view)
        self.old = count_older(view, self._tokens)
        self.old_reads = min(self.old, count_older(view, self._tokens_reads))
        self.old_said = 0 if protect_said is None else count_older(view, self._tokens_said)

    def reason(self, index: int, entry: Entry, *, is_read: bool) -> str:
        """Return why this entry is old; "" if it is not."""
        if not entry.is_result:
            old, passed = self.old_said, self._tokens_said
        elif is_read:
            old, passed = self.old_reads, self._tokens_reads
        else:
            old, passed = self.old, self._tokens
        return f"older than the newest {passed:,} tokens" if index < old else ""


class _Shortener:
    """Makes short forms. Entries hold the edits that show them: these may wait for many calls."""

    def __init__(self, share: float, share_said: float, least: int, least_said: int) -> None:
        self._share, self._share_said, self._least, self._least_said = share, share_said, least, least_said
        name = f"shrink edits {share} {share_said} {least} {least_said}"
        self._known = EntryFact[tuple[Replace, ...]](name, tuple[Replace, ...])

    def edits(self, entry: Entry, reason: str) -> tuple[Replace, ...]:
        """Return the edits that shrink parts of an entry. Parts that may not shrink, or hardly would, are left out."""
        edits = self._known.of(entry)
        if edits is None:
            forms = self._make_forms(entry)
            edits = tuple([replacement(entry, text, _NAME, reason, path) for path, text in forms])
        elif not edits or edits[0].reason == reason:
            return edits
        else:
            edits = tuple([replace(edit, reason=reason) for edit in edits])
        self._known.remember(entry, edits)
        return edits

    def may_shorten(self, entry: Entry) -> bool:
        """Return whether an entry may have short forms, without making them."""
        source = entry.outline
        if source is None:
            return False
        if entry.is_result:
            result = entry.outlined_result
            if result is None or result.state == "interrupted" or not is_whole(entry) or entry.is_pinned():
                return False
            return len(result.text) >= self._least
        if source.role != "assistant" or () in entry.shrunk:
            return False
        return any(self._is_long(part) and (index,) not in entry.shrunk for index, part in enumerate(source.parts))

    def _is_long(self, part: Part) -> bool:
        match part:
            case Text(text=whole):
                return len(whole) >= self._least
            case ToolCall(arguments=whole):
                return len(whole) > self._least_said
            case _:
                return False

    def _make_forms(self, entry: Entry) -> Iterator[_ShortForm]:
        source = entry.outline
        if source is None or not self.may_shorten(entry):
            return
        if entry.is_result:
            if (result := entry.outlined_result) is not None:
                whole = result.text
                text = digest(whole, _room(whole, self._share, _ROOM_MIN), handle_of(entry)).text
                if len(text) <= len(whole) * _SHRUNK_MAX and is_longer(entry, text):
                    yield (), text
        else:
            for index, part in enumerate(source.parts):
                if self._is_long(part) and (index,) not in entry.shrunk and not entry.is_pinned((index,)):
                    yield from self._shorten_part((index,), part, handle_of(entry))

    def _shorten_part(self, path: Path, part: Part, handle: str) -> Iterator[_ShortForm]:
        match part:
            case Text(text=whole) if read_actions(whole):
                text = shrink_step(
                    whole, self._least_said, handle, shorten=lambda string: self._shorten_string(string, handle)
                )
            case Text(text=whole):
                room = _room(whole, self._share_said, _ROOM_MIN)
                text = keep_naming_lines(whole, room, handle, beginning=_BEGINNING)
            case ToolCall(arguments=whole):
                text = shrink_arguments(
                    whole, self._least_said, handle, shorten=lambda string: self._shorten_string(string, handle)
                )
            case _:
                return
        if len(text) <= len(whole) * _SHRUNK_MAX:
            yield path, text

    def _shorten_string(self, text: str, handle: str) -> str:
        short = keep_naming_lines(text, _room(text, self._share_said, _ROOM_MIN_ARGUMENT), handle)
        return short if len(short) <= len(text) * _SHRUNK_MAX else text


def _room(text: str, share: float, least: int) -> int:
    return max(least, min(int(len(text) * share), _ROOM_MAX))
