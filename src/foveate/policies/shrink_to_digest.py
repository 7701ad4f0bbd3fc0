"""Old results shrink to a digest: shorter, but with the names, paths and numbers that later work refers to.

Behind a protected window a long tool result becomes its digest (`foveate.digest`), which names the handle that brings
the whole of it back. Files that were read stay whole for longer, since an edit needs the lines that it replaces. What
the model wrote itself (texts, and long arguments of its calls, such as whole files) shrinks likewise, far back. What is
short stays as it is, and no model is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..core.edits import Edit, Path, Replace, Target
from ..core.messages import Text, ToolCall
from ..core.planner import Policy
from ..core.view import Entry, View
from ..digest import digest, room_for
from ..errors import BadSetting
from .deeds import deed_reader, results_with_deeds
from .placeholders import handle, is_whole, outgrows, shrink_arguments
from .protected import Tokens, check_tokens, older_than, tokens_of_share

__all__ = ["LEAST", "PROTECT", "PROTECT_READS", "PROTECT_SAID", "shrink_to_digest"]

PROTECT = 0.02
"""Newest tokens in which every result stays whole, as a share of the usable ones."""
PROTECT_READS = 0.2
"""The same for results that show a file."""
PROTECT_SAID = 0.2
"""The same for what the model wrote."""
LEAST = 800
"""Characters below which nothing shrinks."""

_NAME = "shrink"
_REMEMBERED = 8_192


def shrink_to_digest(
    *,
    protect: Tokens = PROTECT,
    protect_reads: Tokens = PROTECT_READS,
    protect_said: Tokens | None = PROTECT_SAID,
    least: int = LEAST,
    protected_tools: Collection[str] = ("skill",),
) -> Policy:
    """A policy that shrinks old results, and what the model wrote, to digests.

    `protect`: newest tokens in which results stay whole, as a number (int) or as a share of the usable tokens (float,
    below 1.0). `protect_reads`: the same for results that show a file, where that is more. `protect_said`: the same for
    texts and call arguments of the model; None leaves these alone. `least`: characters of the shortest text that
    shrinks. Results of `protected_tools`, unfinished ones, what is pinned, what others have shrunk and what was
    expanded for the coming call are spared, and so is what would hardly get shorter. Raises BadSetting for negative
    numbers, and for shares of 1.0 or more.
    """
    check_tokens("shrink_to_digest", protect=protect, protect_reads=protect_reads, protect_said=protect_said)
    if least < 0:
        raise BadSetting(f"shrink_to_digest needs a least of 0 or more, not {least}.")
    if isinstance(protected_tools, str):
        raise BadSetting(f"protected_tools is a list of names, such as [{protected_tools!r}], not a text.")
    spared, deed_of, made = frozenset(protected_tools), deed_reader(), _Made(least)

    def policy(view: View) -> Iterator[Edit]:
        safe = tokens_of_share(protect, view)
        old = older_than(view, safe)
        oldest = min(old, older_than(view, tokens_of_share(protect_reads, view)))
        said = 0 if protect_said is None else min(old, older_than(view, tokens_of_share(protect_said, view)))
        reads = set()
        if oldest < old:
            reads = {entry.id for entry, _, deed in results_with_deeds(view, deed_of) if deed.kind == "read"}
        for index, entry in enumerate(view.entries[:old]):
            if entry.source is None or entry.renewed >= view.turn:
                continue
            if entry.is_result:
                if (index < oldest or entry.id not in reads) and _is_finished(entry, spared):
                    yield from made.of_result(entry, f"older than the newest {safe:,} tokens")
            elif index < said and entry.message.role == "assistant":
                yield from made.of_said(entry)

    return policy


def _is_finished(entry: Entry, spared: Collection[str]) -> bool:
    result = entry.result
    return result is not None and result.state != "interrupted" and entry.tool not in spared


class _Made:
    """The edits that shrink a message, made once: the same entries are asked about at every call."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._known: dict[tuple[str, Path], Replace | None] = {}

    def of_result(self, entry: Entry, reason: str) -> Iterator[Edit]:
        if entry.pinned or not is_whole(entry) or entry.tokens * 4 < self._least:
            return
        edit = self._remembered(entry, (), reason)
        if edit is not None and outgrows(entry, _text(edit)):
            yield edit

    def of_said(self, entry: Entry) -> Iterator[Edit]:
        """Edits of the long texts and arguments in what the model wrote."""
        source = entry.source
        if source is None or entry.tokens * 4 < self._least:
            return
        for index, part in enumerate(source.parts):
            path = (index,)
            if path in entry.shrunk or entry.is_pinned(path) or () in entry.shrunk:
                continue
            if isinstance(part, Text | ToolCall):
                edit = self._remembered(entry, path, "written long ago")
                if edit is not None:
                    yield edit

    def _remembered(self, entry: Entry, path: Path, reason: str) -> Replace | None:
        key = entry.id, path
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = self._made(entry, path, reason)
        return self._known[key]

    def _made(self, entry: Entry, path: Path, reason: str) -> Replace | None:
        source = entry.source
        assert source is not None, "only what was appended is shrunk"
        part = source.parts[path[0]] if path else None
        name = handle(entry)
        match part:
            case ToolCall():
                whole = part.arguments
                text = shrink_arguments(whole, self._least, name, shorten=lambda leaf: _short(leaf, name))
            case Text():
                whole, text = part.text, self._digest(part.text, name)
            case _:
                whole, text = source.text, self._digest(source.text, name)
        if len(text) > len(whole) * 3 // 4:
            return None
        return Replace(Target(entry.id, path), (Text(text),), _NAME, reason)

    def _digest(self, text: str, name: str) -> str:
        return text if len(text) < self._least else _short(text, name)


def _short(text: str, name: str) -> str:
    return digest(text, room_for(len(text)), name).text


def _text(edit: Replace) -> str:
    (part,) = edit.content
    return part.text if isinstance(part, Text) else ""
