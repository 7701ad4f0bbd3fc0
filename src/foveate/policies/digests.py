"""Old results shrink to a digest: shorter, but with the names, paths and numbers that later work refers to.

Behind a protected window a long tool result becomes its digest (`foveate.digest`), which names the handle that brings
the whole of it back. Files that were read stay whole for longer, since an edit needs the lines that it replaces. What
the model wrote itself, texts and the arguments of its calls, such as whole files, shrinks likewise (`in_short.py`).
What users and system prompts said never does, what is short stays as it is, and no model is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..core.caches import register
from ..core.edits import Edit, Path
from ..core.messages import Part, Text, ToolCall
from ..core.planner import Policy
from ..core.view import Entry, View
from ..digest import digest
from ..errors import BadSetting
from .names import UsedLately, in_short
from .placeholders import handle, is_whole, outgrows, replacement, shrink_arguments
from .span_selection import Tokens, check_tokens, older_than, tokens_of_share
from .tool_kinds import deed_reader, results_with_deeds

__all__ = ["LEAST", "LEAST_SAID", "PROTECT", "PROTECT_READS", "PROTECT_SAID", "SHARE", "SHARE_SAID", "shrink_to_digest"]

PROTECT = 0.02
"""Newest tokens in which every result stays whole, as a share of the usable ones."""
PROTECT_READS = 0.04
"""The same for results that show a file."""
PROTECT_SAID = 0.05
"""The same for what the model wrote."""
SHARE = 0.15
"""Share of the characters of a result that its digest may have."""
SHARE_SAID = 0.4
"""The same for what the model wrote: names in code are used again more often."""
LEAST = 600
"""Characters of the shortest result, and of the shortest text of the model, that shrinks."""
LEAST_SAID = 160
"""Characters of the shortest string in the arguments of a call that shrinks."""

_NAME = "shrink"
_LEAST_ROOM = 200
_LEAST_ROOM_SAID = 80
_MOST_ROOM = 16_000
_BEGINS = 200
"""Characters of how a text of the model begins that stay: what it said it would do, or had found."""
_WORTH = 0.75
"""What would keep more than this share of its characters is left as it is."""
_REMEMBERED = 8_192

_Form = tuple[Path, str]
"""A part of a message, and what it becomes."""


def shrink_to_digest(
    *,
    protect: Tokens = PROTECT,
    protect_reads: Tokens = PROTECT_READS,
    protect_said: Tokens | None = PROTECT_SAID,
    share: float = SHARE,
    share_said: float = SHARE_SAID,
    least: int = LEAST,
    least_said: int = LEAST_SAID,
    stay_if_used: int = 0,
    protected_tools: Collection[str] = ("skill",),
) -> Policy:
    """A policy that shrinks old results, and what the model wrote, to digests.

    `protect`: newest tokens in which results stay whole, as a number (int) or as a share of the usable tokens (float,
    below 1.0). `protect_reads`: the same for results that show a file, where that is more. `protect_said`: the same for
    texts and call arguments of the model; None leaves these alone. `share`, `share_said`: of the characters of a text,
    what its short form may have. `least`, `least_said`: characters of the shortest text, and of the shortest string in
    arguments, that shrinks. `stay_if_used`: a result whose names the model used in the newest so many turns stays whole
    (0: never for that). Results of `protected_tools`, unfinished ones, what is pinned, what others have shrunk and what
    was expanded for the coming call are spared, and so is what would hardly get shorter. Raises BadSetting for negative
    numbers, and for shares of 1.0 or more.
    """
    check_tokens("shrink_to_digest", protect=protect, protect_reads=protect_reads, protect_said=protect_said)
    if min(least, least_said, stay_if_used) < 0:
        raise BadSetting("shrink_to_digest needs least, least_said and stay_if_used of 0 or more.")
    if not (0 < share < 1 and 0 < share_said < 1):
        raise BadSetting(f"shrink_to_digest needs shares between 0 and 1, not {share} and {share_said}.")
    if isinstance(protected_tools, str):
        raise BadSetting(f"protected_tools is a list of names, such as [{protected_tools!r}], not a text.")
    spared, deed_of = frozenset(protected_tools), deed_reader()
    short = _Short(share, share_said, least, least_said)

    def policy(view: View) -> Iterator[Edit]:
        safe = tokens_of_share(protect, view)
        old = older_than(view, safe)
        window_of_reads = tokens_of_share(protect_reads, view)
        said = None if protect_said is None else tokens_of_share(protect_said, view)
        oldest = min(old, older_than(view, window_of_reads))
        last_said = 0 if said is None else older_than(view, said)
        reads: set[str] = set()
        if oldest < old:
            reads = {entry.id for entry, _, deed in results_with_deeds(view, deed_of) if deed.kind == "read"}
        used = UsedLately(view, stay_if_used)
        for index, entry in enumerate(view.entries[: max(old, last_said)]):
            forms = short.forms(entry)
            if not forms or entry.renewed >= view.turn:
                continue
            if entry.is_result:
                window = window_of_reads if entry.id in reads else safe
                is_due = index < oldest or (index < old and entry.id not in reads)
                if not is_due or entry.tool in spared or entry in used:
                    continue
            elif index < last_said and said is not None:
                window = said
            else:
                continue
            for path, text in forms:
                yield replacement(entry, text, _NAME, f"older than the newest {window:,} tokens", path)

    return policy


class _Short:
    """The short forms of what is shown whole, made once: the same entries are asked about at every call."""

    def __init__(self, share: float, share_said: float, least: int, least_said: int) -> None:
        self._share, self._share_said, self._least, self._least_said = share, share_said, least, least_said
        self._known: dict[Entry, tuple[_Form, ...]] = {}
        register(self)

    def cache_clear(self) -> None:
        """Let go of them: something was erased."""
        self._known.clear()

    def forms(self, entry: Entry) -> tuple[_Form, ...]:
        """What the parts of an entry become, where that is worth it; nothing for what may not shrink."""
        known = self._known.get(entry)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[entry] = tuple(self._made(entry))
        return known

    def _made(self, entry: Entry) -> Iterator[_Form]:
        source = entry.source
        if source is None:
            return
        if entry.is_result:
            result = source.result
            is_finished = result is not None and result.state != "interrupted"
            if is_finished and is_whole(entry) and not entry.is_pinned() and len(whole := source.text) >= self._least:
                text = digest(whole, _room(whole, self._share, _LEAST_ROOM), handle(entry)).text
                if len(text) <= len(whole) * _WORTH and outgrows(entry, text):
                    yield (), text
        elif source.role == "assistant" and () not in entry.shrunk:
            for index, part in enumerate(source.parts):
                if (index,) not in entry.shrunk and not entry.is_pinned((index,)):
                    yield from self._said((index,), part, handle(entry))

    def _said(self, path: Path, part: Part, name: str) -> Iterator[_Form]:
        match part:
            case Text(text=whole) if len(whole) >= self._least:
                text = in_short(whole, _room(whole, self._share_said, _LEAST_ROOM), name, begins=_BEGINS)
            case ToolCall(arguments=whole) if len(whole) > self._least_said:
                text = shrink_arguments(whole, self._least_said, name, shorten=lambda leaf: self._in_short(leaf, name))
            case _:
                return
        if len(text) <= len(whole) * _WORTH:
            yield path, text

    def _in_short(self, text: str, name: str) -> str:
        short = in_short(text, _room(text, self._share_said, _LEAST_ROOM_SAID), name)
        return short if len(short) <= len(text) * _WORTH else text


def _room(text: str, share: float, least: int) -> int:
    return max(least, min(int(len(text) * share), _MOST_ROOM))
