"""Keep the newest tool results whole and show a placeholder for the others; and images likewise.

Assistant messages, calls and ids stay as they are, and no message is removed. The frontier moves with every new
result, so on a warm cache this rewrites some of the prefix each time; `batch` lets it move only every so many
results.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ..core.edits import Edit, Hide, Path, Replace, Target
from ..core.messages import Media, Text, ToolResult
from ..core.planner import Policy
from ..core.view import Entry, View
from ..errors import BadSetting
from .placeholders import OMITTED, is_whole, outgrows, placeholder, replacement

__all__ = ["IMAGE_OMITTED", "filter_tool_results"]

IMAGE_OMITTED = '[Image omitted: {about}expand("{handle}")]'
"""For an image, a document or a sound. A template without `{handle}` stands only where nothing else is left."""


def filter_tool_results(
    *,
    keep: int,
    batch: int = 1,
    placeholder: str = OMITTED,
    max_multimodal: int | None = None,
    media_placeholder: str = IMAGE_OMITTED,
) -> Policy:
    """A policy that keeps the newest `keep` tool results whole (0: all of them).

    `batch`: results are replaced only once at least so many are due (default 1: at once). A result that is no
    longer than its placeholder stays, and so does one that was expanded for the coming call. `max_multimodal`: of the
    messages that show images, documents or sounds, the newest so many keep them, the others lose them and keep their
    text (0: none keeps them; None: all do). With `{handle}` in it, `media_placeholder` stands for each of them; else it
    stands alone where a message or a result has nothing else to show. Raises BadSetting for negative numbers.
    """
    if keep < 0 or batch < 1:
        raise BadSetting(f"filter_tool_results needs keep >= 0 and batch >= 1, not keep={keep} and batch={batch}.")
    if max_multimodal is not None and max_multimodal < 0:
        raise BadSetting(f"filter_tool_results needs max_multimodal >= 0, not {max_multimodal}; None keeps all.")
    return _Filter(keep, batch, placeholder, max_multimodal, media_placeholder)


class _Filter(Struct, frozen=True):
    """The policy; see `filter_tool_results`."""

    tool_results_keep: int
    """Read when a conversation is opened: another policy must not want another number."""
    batch: int
    placeholder: str
    max_multimodal: int | None
    media_placeholder: str

    def __call__(self, view: View) -> Iterator[Edit]:
        shortened = list(self._results(view))
        yield from shortened
        if self.max_multimodal is not None:
            gone = {edit.target.message for edit in shortened}
            yield from self._media(view, self.max_multimodal, gone)

    def _results(self, view: View) -> Iterator[Replace]:
        keep = self.tool_results_keep
        results = [entry for entry in view.entries if entry.is_result]
        old = results[: len(results) - keep] if keep and len(results) > keep else []
        due = [entry for entry in old if is_whole(entry) and not entry.is_pinned() and entry.renewed < view.turn]
        texts = {entry.handle: placeholder(self.placeholder, entry) for entry in due}
        due = [entry for entry in due if outgrows(entry, texts[entry.handle])]
        if len(due) >= self.batch:
            for entry in due:
                reason = f"older than the newest {keep} results"
                yield replacement(entry, texts[entry.handle], f"keep-last-{keep}", reason)

    def _media(self, view: View, keep: int, gone: set[str]) -> Iterator[Edit]:
        bearing = [entry for entry in view.entries if entry.id not in gone and any(entry.message.media())]
        last_input = view.last_input
        for entry in bearing[: max(0, len(bearing) - keep)]:
            is_free = entry.position != last_input and entry.message.role != "system" and entry.renewed < view.turn
            if is_free:
                yield from self._without_media(entry, keep)

    def _without_media(self, entry: Entry, keep: int) -> Iterator[Edit]:
        name, reason = f"media-last-{keep}", f"older than the newest {keep} messages with media"
        paths = [path for path in _media_shown(entry) if not entry.is_pinned(path)]
        if "{handle}" in self.media_placeholder:
            for path in paths:
                yield replacement(entry, placeholder(self.media_placeholder, entry, path), name, reason, path)
            return
        says_something = any(_is_left(entry, paths))
        for index, path in enumerate(paths):
            if index or says_something:
                yield Hide(Target(entry.id, path), name, reason)
            else:
                yield replacement(entry, self.media_placeholder, name, reason, path)


def _media_shown(entry: Entry) -> Iterator[Path]:
    """Paths of media, in the message as appended, that are still shown."""
    for path, part in _parts(entry):
        if isinstance(part, Media) and not any(path[: len(shrunk)] == shrunk for shrunk in entry.shrunk):
            yield path


def _is_left(entry: Entry, without: list[Path]) -> Iterator[bool]:
    """For each part but these: whether it says something."""
    for path, part in _parts(entry):
        if path not in without:
            yield not isinstance(part, Text) or bool(part.text.strip())


def _parts(entry: Entry) -> Iterator[tuple[Path, object]]:
    for i, part in enumerate(entry.source.parts if entry.source else ()):
        if isinstance(part, ToolResult):
            yield from (((i, j), nested) for j, nested in enumerate(part.content))
        else:
            yield (i,), part
