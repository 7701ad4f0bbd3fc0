"""A filter for tool results: keep the newest ones whole, and do the same for media.

Messages, calls and ids stay; only content is replaced. Each new result moves the boundary, which rewrites part of the
cached prefix; with `batch` the boundary moves only after so many results.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ..core.edits import Edit, Hide, Path, Replace, Target
from ..core.messages import Media, Text, ToolResult
from ..core.planner import Policy
from ..core.view import Entry, View
from ..errors import BadSetting
from .kinds import check_kinds
from .placeholders import OMITTED, is_longer, is_whole, placeholder, replacement

__all__ = ["IMAGE_OMITTED", "filter_tool_results"]

IMAGE_OMITTED = '[Image omitted: {about}expand("{handle}")]'
"""Template for an image, a document or a sound. Without `{handle}` it is used only if no other content is left."""


@check_kinds
def filter_tool_results(
    *,
    keep: int,
    batch: int = 1,
    placeholder: str = OMITTED,
    max_multimodal: int | None = None,
    media_placeholder: str = IMAGE_OMITTED,
) -> Policy:
    """Return a policy that keeps the newest `keep` tool results whole (0: all).

    `batch`: replace results only when at least so many are due. `placeholder`: template for a replaced result. A result
    that is no longer than its placeholder stays, and so does one that was expanded for the coming call.
    `max_multimodal`: number of newest messages that keep their images, documents and sounds (0: none; None: all); the
    others keep their text. `media_placeholder`: template for each of these media if it contains `{handle}`; else it is
    used only if a message or a result has no other content. Raises BadSetting for negative numbers.
    """
    if keep < 0 or batch < 1:
        raise BadSetting(
            f"keep and batch of filter_tool_results are {keep} and {batch}. Set keep to 0 or more, and batch to 1 or "
            "more."
        )
    if max_multimodal is not None and max_multimodal < 0:
        raise BadSetting(
            f"max_multimodal of filter_tool_results is {max_multimodal}. Set it to 0 or more; None keeps all."
        )
    return _Filter(keep, batch, placeholder, max_multimodal, media_placeholder)


class _Filter(Struct, frozen=True):
    """The policy of `filter_tool_results`."""

    tool_results_keep: int
    """Read when a conversation is opened: no other policy may keep another number."""
    batch: int
    template: str
    max_multimodal: int | None
    media_template: str

    def __call__(self, view: View) -> Iterator[Edit]:
        replaced = list(self._replace_results(view))
        yield from replaced
        if self.max_multimodal is not None:
            yield from self._remove_media(view, self.max_multimodal, {edit.target.message for edit in replaced})

    def _replace_results(self, view: View) -> Iterator[Replace]:
        keep = self.tool_results_keep
        results = [entry for entry in view.entries if entry.is_result]
        old = results[: len(results) - keep] if keep and len(results) > keep else []
        due = [entry for entry in old if is_whole(entry) and not entry.is_pinned() and entry.renewed < view.turn]
        texts = {entry.handle: placeholder(self.template, entry) for entry in due}
        due = [entry for entry in due if is_longer(entry, texts[entry.handle])]
        if len(due) >= self.batch:
            name, reason = f"keep-last-{keep}", f"older than the newest {keep} results"
            for entry in due:
                yield replacement(entry, texts[entry.handle], name, reason)

    def _remove_media(self, view: View, keep: int, replaced: set[str]) -> Iterator[Edit]:
        with_media = [entry for entry in view.entries if entry.id not in replaced and any(entry.message.media())]
        last_input = view.last_input
        for entry in with_media[: max(0, len(with_media) - keep)]:
            if entry.position != last_input and not entry.is_system and entry.renewed < view.turn:
                yield from self._remove_media_of(entry, keep)

    def _remove_media_of(self, entry: Entry, keep: int) -> Iterator[Edit]:
        name, reason = f"media-last-{keep}", f"older than the newest {keep} messages with media"
        paths = [path for path in _shown_media(entry) if not entry.is_pinned(path)]
        if "{handle}" in self.media_template:
            for path in paths:
                yield replacement(entry, placeholder(self.media_template, entry, path), name, reason, path)
            return
        has_other_content = _has_content_besides(entry, paths)
        for index, path in enumerate(paths):
            if index or has_other_content:
                yield Hide(Target(entry.id, path), name, reason)
            else:
                yield replacement(entry, self.media_template, name, reason, path)


def _shown_media(entry: Entry) -> Iterator[Path]:
    """Yield the paths, in the appended message, of media that are still shown."""
    for path, part in _parts(entry):
        if isinstance(part, Media) and not any(path[: len(shrunk)] == shrunk for shrunk in entry.shrunk):
            yield path


def _has_content_besides(entry: Entry, paths: list[Path]) -> bool:
    """Return whether a part that is not at one of these paths is more than blank text."""
    others = [part for path, part in _parts(entry) if path not in paths]
    return any(not isinstance(part, Text) or bool(part.text.strip()) for part in others)


def _parts(entry: Entry) -> Iterator[tuple[Path, object]]:
    for i, part in enumerate(entry.outline.parts if entry.outline else ()):
        if isinstance(part, ToolResult):
            yield from (((i, j), nested) for j, nested in enumerate(part.content))
        else:
            yield (i,), part
