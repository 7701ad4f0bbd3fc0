"""What becomes of a message whose lease has ended: nothing is shown of it, or its beginning, or a summary.

Knows one entry and its lease at a time, and the texts that stand for what is gone. Which entries are due is decided in
`expire_results.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from ..core.edits import Edit, Hide, Replace, Target
from ..core.events import EXPIRED
from ..core.messages import Content, Media, Message, Opaque, Text, ToolResult
from ..core.sizes import IMAGE_TOKENS, tokens_of
from ..core.stamps import Lease
from ..core.summaries import Answer, NeedsSummary, SummaryRequest
from ..core.view import Entry
from ..errors import BadSetting
from .placeholders import fill, outgrows

__all__ = ["Due", "Form", "Step", "step"]

_NAME = "expire"
_FIRST_CHARS, _SUMMARY = "First N Chars", "AI Summary"
_MEDIA_SIZE = 4 * IMAGE_TOKENS


class Due(NamedTuple):
    """An entry whose lease has ended."""

    entry: Entry
    lease: Lease
    age: int
    """Model calls since the lease began."""

    @property
    def is_expandable(self) -> bool:
        """Whether the model may have the original back."""
        return self.lease.preserve_original is not False

    @property
    def length(self) -> int:
        """Characters that are to be kept, or that a summary is to have."""
        return self.lease.compact_length or 0

    def filled(self, template: str, length: int) -> str:
        """What is said beside a text that had so many characters."""
        said = fill(template, self.entry).replace("{kept}", str(self.length))
        return said.replace("{length}", str(length))


class Form(Struct, frozen=True):
    """The texts that stand for what expired, as `expire_results` describes them. Raises BadSetting for other values."""

    annotation: str
    preamble: str
    bare_annotation: str
    bare_preamble: str
    stub: str
    bare_stub: str

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            if not isinstance(getattr(self, field), str):
                raise BadSetting(f"{field} is {getattr(self, field)!r:.80}; allowed: a text.")

    def cut(self, due: Due, text: str) -> str:
        """The beginning of a text, or the text itself where that is no longer."""
        if len(text) <= due.length:
            return text
        template = self.annotation if due.is_expandable else self.bare_annotation
        short = text[: due.length] + due.filled(template, len(text))
        return short if len(short) < len(text) else text

    def head(self, due: Due, length: int) -> str:
        """What stands before a summary of so many characters."""
        return due.filled(self.preamble if due.is_expandable else self.bare_preamble, length)


class Step(NamedTuple):
    """What becomes of one entry."""

    made: Replace | Hide | NeedsSummary
    saved: int
    """Tokens, as a quarter of the characters; where a summary is asked for, those that it should save."""
    removes: bool = False
    """Whether nothing of the content is shown any more."""


def step(due: Due, form: Form, answered: Callable[[Step | None], object]) -> Step | None:
    """The edit, or the question, that the end of a lease leads to; None where nothing would be gained.

    `answered` is told what a question led to, once that is known.
    """
    if due.lease.expiration_mode == "remove":
        return _removed(due, form)
    content = _content(due.entry)
    if due.lease.compact_mode != "summary":
        return _shortened(due, content, form)
    if due.lease.compact_prompt_id is None:
        return _shortened(due, content, form, "no prompt of a name that was given")
    length = len(_text(content))
    room = length - due.length - len(form.head(due, length))
    if room <= 0:  # Not even a summary of the length that is wanted would be shorter.
        return _shortened(due, content, form)

    def then(answer: Answer) -> Iterator[Edit]:
        made = _summarized(due, content, answer, form)
        answered(made)
        if made and not isinstance(made.made, NeedsSummary):
            yield made.made

    return Step(NeedsSummary(_request(due, length), then), room // 4)


def _removed(due: Due, form: Form) -> Step | None:
    reason = EXPIRED.format(turns=due.age, limit=due.lease.expiration_turns)
    if due.entry.result is None:
        return Step(Hide(Target(due.entry.id), _NAME, reason), due.entry.tokens, removes=True)
    # The limit, not the age: what is shown must not depend on when the plan was made.
    template = form.stub if due.is_expandable else form.bare_stub
    stub = fill(template, due.entry).replace("{turns}", str(due.lease.expiration_turns))
    if not outgrows(due.entry, stub):
        return None
    told = (Text(stub),)
    return Step(_replaced(due, told, reason), _tokens(_content(due.entry)) - _tokens(told), removes=True)


def _shortened(due: Due, content: Sequence[Content], form: Form, why: str = "") -> Step | None:
    """The beginning of every text. Recorded even where all of it is short: that it was looked at is the mark."""
    return _compacted(due, content, [_cut(part, due, form) for part in content], _FIRST_CHARS, why)


def _summarized(due: Due, content: Sequence[Content], answer: Answer, form: Form) -> Step | None:
    if not answer.text:
        return _shortened(due, content, form, answer.error or "the summary is empty")
    told = [Text(form.head(due, len(_text(content))) + answer.text)]
    if _size(told) >= _size(content):
        return _compacted(due, content, [_plain(part) for part in content], _SUMMARY, "the summary is no shorter")
    return _compacted(due, content, told, _SUMMARY)


def _compacted(due: Due, old: Sequence[Content], new: Sequence[Text | Media], way: str, why: str = "") -> Step | None:
    if _size(new) >= _size(old) and any(isinstance(part, Opaque) for part in old):
        return None  # A block that only its provider knows cannot be shown again as it is.
    saved = _tokens(old) - _tokens(new)
    reason = f"Compacted using {way} (saved {saved} tokens){f': {why}' if why else ''}"
    return Step(_replaced(due, tuple(new), reason), saved)


def _replaced(due: Due, content: tuple[Text | Media, ...], reason: str) -> Replace:
    return Replace(Target(due.entry.id), content, _NAME, reason, expandable=due.is_expandable)


def _request(due: Due, length: int) -> SummaryRequest:
    facts = {
        "originalLength": length,
        "targetLength": due.length,
        "messageType": due.lease.message_type or "unknown",
        "turnAdded": due.entry.stamp.turn,
    }
    prompt = due.lease.compact_prompt_id or ""
    return SummaryRequest(_NAME, (due.entry.message,), due.length, prompt=prompt, facts=facts)


# ------------------------------------------------------------------------------------------------------------- content


def _content(entry: Entry) -> tuple[Content, ...]:
    """What is shown of a message, or of its tool result, without thoughts."""
    result = entry.message.result
    parts = result.content if result else entry.message.parts[1 if entry.kind == "note" else 0 :]
    return tuple(part for part in parts if isinstance(part, Text | Media | Opaque))


def _cut(part: Content, due: Due, form: Form) -> Text | Media:
    match part:
        case Text(text=text):
            short = form.cut(due, text)
            return part if short == text else Text(short)
        case Media(mime=mime):
            how = f': expand("{due.entry.handle}")' if due.is_expandable else ""
            return Text(f"[{mime or 'media'} omitted{how}]")
        case Opaque():
            return _plain(part)


def _plain(part: Content) -> Text | Media:
    return Text(f"[{part.kind} omitted]") if isinstance(part, Opaque) else part


def _text(content: Sequence[Content]) -> str:
    return "\n".join(part.text for part in content if isinstance(part, Text))


def _size(content: Sequence[Content]) -> int:
    """The room that content takes, in characters."""

    def room(part: Content) -> int:
        match part:
            case Text(text=text):
                return len(text)
            case Opaque(body=body):
                return len(body)
            case Media():
                return _MEDIA_SIZE

    return sum(map(room, content))


def _tokens(content: Sequence[Content]) -> int:
    return tokens_of(Message("tool", (ToolResult("", tuple(content)),)))
