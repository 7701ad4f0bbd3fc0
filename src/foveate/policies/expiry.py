"""Expiry: remove or compact results after a number of model calls.

The lease of a result says for how many calls it stays and what happens then: removal, its beginning or a summary. A
lease is set for the message, its tool, its action or all results (`leases.py`). It begins with the call that the result
belongs to, and again when the result is expanded. In each lease a result is compacted once. Without a summary, the
beginning of the text is used.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ..core.edits import SAVED, Edit, Hide, Replace, Target
from ..core.events import EXPIRED
from ..core.messages import Content, Media, Message, Opaque, Text, ToolResult
from ..core.planner import Policy
from ..core.results import with_headline
from ..core.scripts import beginning_of
from ..core.sizes import IMAGE_TOKENS, tokens_of
from ..core.stamps import Lease
from ..core.summaries import Answer, NeedsSummary, SummaryRequest
from ..core.view import Entry, View
from ..errors import BadSetting
from .kinds import check_kinds
from .leases import SYSTEM_PROMPT, Due, Levels
from .placeholders import harmless_line, is_longer, placeholder

__all__ = ["ANNOTATION", "BARE_ANNOTATION", "BARE_PREAMBLE", "BARE_STUB", "PREAMBLE", "STUB", "expire_results"]

ANNOTATION = '...\n\n[Compacted: the first {kept} of {length} characters; expand("{handle}") shows all]'
"""Template for the note after the beginning of a compacted text."""
PREAMBLE = '[Summary of {length} characters; expand("{handle}") shows all]\n\n'
"""Template for the note before a summary."""
BARE_ANNOTATION = "...\n\n[Compacted: the first {kept} of {length} characters]"
BARE_PREAMBLE = "[Summary of {length} characters]\n\n"
"""The same two if the model may not expand the original."""
STUB = '[result expired after {turns} turns: {about}expand("{handle}")]'
"""Template for a removed tool result: its call needs an answer."""
BARE_STUB = "[result expired after {turns} turns]"
"""The same if the model may not expand the original."""

_NAME = "expire"
_FIRST_CHARS, _SUMMARY = "First N Chars", "AI Summary"
_MEDIA_SIZE = 4 * IMAGE_TOKENS
_NO_LEASES: Mapping[str, Lease] = {}
_log = logging.getLogger("foveate")


@check_kinds
def expire_results(
    *,
    tools: Mapping[str, Lease] = _NO_LEASES,
    actions: Mapping[str, Lease] = _NO_LEASES,
    default: Lease | None = None,
    override: Lease | None = None,
    prompts: Collection[str] | None = None,
    system_prompt: str = SYSTEM_PROMPT,
    annotation: str = ANNOTATION,
    preamble: str = PREAMBLE,
    bare_annotation: str = BARE_ANNOTATION,
    bare_preamble: str = BARE_PREAMBLE,
    stub: str = STUB,
    bare_stub: str = BARE_STUB,
    stable_prefix: bool = False,
    min_gain: int = 0,
) -> Policy:
    """Return a policy that removes or compacts results whose lease has ended.

    Levels, the highest first: `override` (all results), the lease of the appended message, `tools` (by
    `agent_action_id` or the name of the tool), `actions` (by `action_id` or the name of the tool), `default`.
    `effective_lease` shows how they merge; without any of them nothing expires. Messages that are not results expire
    only by their own lease. These never expire: system prompts, the last user input, pinned messages, messages of the
    assistant with calls, and messages that other policies shrank; but if `preserve_original` is off, the originals
    behind these are released.

    `prompts`: names of the existing prompts for summaries (default: all names exist). `system_prompt`: the prompt for
    leases that name none.

    Templates: `annotation` follows the beginning of a text, `preamble` precedes a summary; their fields are `{kept}`
    and `{length}` in characters, and `{handle}` for `expand`. `stub` replaces a removed tool result; its fields are
    `{turns}`, the limit, and those of other placeholders. The `bare_` templates are used if `preserve_original` is
    off. Content that would not get shorter stays.

    `stable_prefix`: leave everything before the first result alone, for the provider's cache. `min_gain`: wait until
    all due edits together save this many tokens (a quarter of the characters). Raises BadSetting for values that are
    not allowed. Warns if `expiration_turns` is 0, since no model call sees such a result.
    """
    levels = Levels(tools, actions, default, override, prompts, system_prompt)
    templates = _Templates(annotation, preamble, bare_annotation, bare_preamble, stub, bare_stub)
    if type(min_gain) is not int or min_gain < 0:
        raise BadSetting(f"min_gain is {min_gain!r:.80}; allowed: tokens, a whole number of 0 or more.")
    if unseen := levels.unseen:
        warnings.warn(
            f"{', '.join(unseen)}: expiration_turns is 0, so these results expire before any model call sees them",
            stacklevel=3,
        )

    def policy(view: View) -> Sequence[Edit | NeedsSummary]:
        tally = _Tally(view)
        entries = view.entries[_count_stable(view) if stable_prefix else 0 :]
        ended = [due for entry in entries if not _is_expired(entry) and (due := levels.find_due(entry, view.turn))]
        allowed = [due for due in ended if _may_expire(due, view)]
        steps = [step for due in allowed if (step := _expire(due, templates, tally.add_answer))]
        if sum(step.saved for step in steps) < min_gain:
            return ()
        tally.add_steps(steps)
        return [step.edit for step in steps]

    return ExpiryPolicy(policy, levels)


class ExpiryPolicy:
    """The policy of `expire_results`. Other code can ask it for leases."""

    follows: ClassVar[str] = "leases"
    """Read when a conversation is opened: the terms of messages that this policy follows."""
    before_calls_only: ClassVar[bool] = True
    """Whether it is left out of plans behind a reply: only the next call makes results older."""

    def __init__(self, policy: Policy, levels: Levels) -> None:
        self._policy, self._levels = policy, levels

    def __call__(self, view: View) -> Iterable[Edit | NeedsSummary]:
        """Return the edits for a view."""
        return self._policy(view)

    def idle_note(self, usable: int, *, has_summarizer: bool) -> str:
        """Return why the policy cannot do all that its leases ask for; "" if it can. Read when opening."""
        if has_summarizer or not self._levels.wants_summaries:
            return ""
        return "expire shows first characters in place of summaries, since there is no summarizer. Pass summarizer=."

    def lease_of(self, own: Lease | None, tool: str, is_result: bool) -> Lease:
        """Return the lease that counts for a message with this lease in its stamp. `tool`: of a result."""
        return self._levels.lease_of(own, tool, is_result)


# ------------------------------------------------------------------------------------------------------ which are due


def _may_expire(due: Due, view: View) -> bool:
    entry = due.entry
    if due.is_expandable and _is_shrunk(entry):
        return False
    source = entry.outline
    if source is None or source.role == "system" or source.calls or entry.is_pinned():
        return False
    return not entry.is_input or entry.position != view.last_input


def _is_expired(entry: Entry) -> bool:
    """Return whether the content expired in this lease already."""
    return _NAME in entry.shrunk_by and _is_shrunk(entry)


def _is_shrunk(entry: Entry) -> bool:
    """Return whether an edit replaced the whole content; edits may have replaced images in it."""
    if not entry.shrunk or entry.outline is None:
        return False
    return () in entry.shrunk or (len(entry.outline.parts) == 1 and (0,) in entry.shrunk)


def _count_stable(view: View) -> int:
    """Return the number of entries before the first result, or before the first gap."""
    following = 1
    for index, entry in enumerate(view.entries):
        if entry.kind != "stand-in":
            if entry.is_result or entry.position != following:
                return index
            following = entry.last + 1
    return len(view.entries)


# ------------------------------------------------------------------------------------------------- what becomes of them


class _Templates(Struct, frozen=True):
    """The texts that replace expired content. Raises BadSetting for other values."""

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
        """Return the beginning of a text with the annotation, or the text itself if that is not shorter."""
        if len(text) <= due.length:
            return text
        template = self.annotation if due.is_expandable else self.bare_annotation
        short = beginning_of(text, due.length) + due.fill(template, len(text))
        return short if len(short) < len(text) else text

    def fill_preamble(self, due: Due, length: int) -> str:
        """Return the note before a summary of a text of `length` characters."""
        return due.fill(self.preamble if due.is_expandable else self.bare_preamble, length)


class _Step(NamedTuple):
    """The edit or request for one entry."""

    edit: Replace | Hide | NeedsSummary
    saved: int
    """Tokens, as a quarter of the characters. For a request: the tokens that the summary should save."""
    removes: bool = False
    """Whether the view shows none of the content any more."""


def _expire(due: Due, templates: _Templates, on_answer: Callable[[_Step | None], object]) -> _Step | None:
    """Return the step for an entry; None if it would save nothing.

    `on_answer` is called with the step that a request led to, when it is answered.
    """
    if due.lease.expiration_mode == "remove":
        return _remove(due, templates)
    content = _content(due.entry)
    if _is_shrunk(due.entry):
        return _release(due, content, templates)
    if due.lease.compact_mode != "summary":
        return _cut_content(due, content, templates)
    if due.lease.compact_prompt_id is None:
        return _cut_content(due, content, templates, "no prompt of a name that was given")
    length = len(_text(content))
    room = length - due.length - len(templates.fill_preamble(due, length))
    if room <= 0:  # Not even a summary of the wanted length would be shorter.
        return _cut_content(due, content, templates)

    def use(answer: Answer) -> Iterator[Edit]:
        step = _use_summary(due, content, answer, templates)
        on_answer(step)
        if step and not isinstance(step.edit, NeedsSummary):
            yield step.edit

    return _Step(NeedsSummary(_summary_request(due, length), use), room // 4)


def _remove(due: Due, templates: _Templates) -> _Step | None:
    if due.entry.outline is None or due.entry.outline.result is None:  # No call needs an answer.
        hide = Hide(Target(due.entry.id), _NAME, _expired(due), keeps_original=due.is_expandable)
        return _Step(hide, due.entry.tokens, removes=True)
    content = _content(due.entry)
    if _is_shrunk(due.entry):
        return _release(due, content, templates)
    stub = _stub(due, templates)
    return _replace_by_stub(due, content, stub) if is_longer(due.entry, stub) else None


def _release(due: Due, content: tuple[Content, ...], templates: _Templates) -> _Step:
    """Release the original behind a short form of another policy, which may offer to expand it."""
    stub = _stub(due, templates)
    if is_longer(due.entry, stub):
        return _replace_by_stub(due, content, stub)
    return _Step(_replace(due, tuple(map(_showable, content)), _expired(due)), 0, removes=True)


def _replace_by_stub(due: Due, content: Sequence[Content], stub: str) -> _Step:
    new = (Text(with_headline(due.entry, stub)),)
    return _Step(_replace(due, new, _expired(due)), _tokens(content) - _tokens(new), removes=True)


def _stub(due: Due, templates: _Templates) -> str:
    # The limit, not the age: the view must not depend on the call at which the plan was made.
    template = templates.stub if due.is_expandable else templates.bare_stub
    return placeholder(template, due.entry).replace("{turns}", str(due.lease.expiration_turns))


def _expired(due: Due) -> str:
    return EXPIRED.format(turns=due.age, limit=due.lease.expiration_turns)


def _cut_content(due: Due, content: Sequence[Content], templates: _Templates, why: str = "") -> _Step | None:
    """Cut every text to its beginning. The edit is recorded even if all texts are short: it marks the lease as used."""
    return _compact(due, content, [_cut_part(part, due, templates) for part in content], _FIRST_CHARS, why)


def _use_summary(due: Due, content: Sequence[Content], answer: Answer, templates: _Templates) -> _Step | None:
    if not answer.text:
        return _cut_content(due, content, templates, answer.error or "the summary is empty")
    summary = [Text(templates.fill_preamble(due, len(_text(content))) + answer.text)]
    if _size(summary) >= _size(content):
        why = "the summary is no shorter"
        step = _compact(due, content, [_showable(part) for part in content], _SUMMARY, why)
        if step is None or not isinstance(step.edit, Replace):
            return step
        refused = (f"{answer.by or 'summarizer'}: {why} than the original",)
        return step._replace(edit=replace(step.edit, refused=refused))
    return _compact(due, content, summary, _SUMMARY)


def _compact(due: Due, old: Sequence[Content], new: Sequence[Text | Media], way: str, why: str = "") -> _Step | None:
    if _size(new) >= _size(old) and any(isinstance(part, Opaque) for part in old):
        return None  # The edit could not show a block that only its provider knows.
    saved = _tokens(old) - _tokens(new)
    reason = f"Compacted using {way} (saved {SAVED} tokens){f': {why}' if why else ''}"
    return _Step(_replace(due, tuple(new), reason), saved)


def _replace(due: Due, content: tuple[Text | Media, ...], reason: str) -> Replace:
    is_kept = due.is_expandable
    return Replace(Target(due.entry.id), content, _NAME, reason, expandable=is_kept, keeps_original=is_kept)


def _summary_request(due: Due, length: int) -> SummaryRequest:
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
    """Return the content that the view shows of a message, or of its tool result, without reasoning."""
    result = entry.message.result
    parts = result.content if result else entry.message.parts[1 if entry.kind == "note" else 0 :]
    return tuple(part for part in parts if isinstance(part, Text | Media | Opaque))


def _cut_part(part: Content, due: Due, templates: _Templates) -> Text | Media:
    match part:
        case Text(text=text):
            short = templates.cut(due, text)
            return part if short == text else Text(short)
        case Media(mime=mime):
            handle = f': expand("{due.entry.handle}")' if due.is_expandable else ""
            return Text(f"[{harmless_line(mime) or 'media'} omitted{handle}]")
        case Opaque():
            return _showable(part)


def _showable(part: Content) -> Text | Media:
    return Text(f"[{part.kind} omitted]") if isinstance(part, Opaque) else part


def _text(content: Sequence[Content]) -> str:
    return "\n".join(part.text for part in content if isinstance(part, Text))


def _size(content: Sequence[Content]) -> int:
    """Return the size of content in characters."""

    def size_of(part: Content) -> int:
        match part:
            case Text(text=text):
                return len(text)
            case Opaque(body=body):
                return len(body)
            case Media():
                return _MEDIA_SIZE

    return sum(map(size_of, content))


def _tokens(content: Sequence[Content]) -> int:
    return tokens_of(Message("tool", (ToolResult("", tuple(content)),)))


# ----------------------------------------------------------------------------------------------------------- log lines


class _Tally:
    """Counts the steps of one plan, and logs one line when all summaries of it are answered."""

    def __init__(self, view: View) -> None:
        self._turn, self._is_trial = view.turn, view.is_trial
        self._compacted = self._removed = self._saved = self._requested = 0

    def add_steps(self, steps: Sequence[_Step]) -> None:
        """Count the steps of the plan. Requests are counted when they are answered."""
        for step in steps:
            if isinstance(step.edit, NeedsSummary):
                self._requested += 1
            else:
                self._count(step)
        self._log_when_complete()

    def add_answer(self, step: _Step | None) -> None:
        """Count the step that a request led to, if any."""
        self._requested -= 1
        if step:
            self._count(step)
        self._log_when_complete()

    def _count(self, step: _Step) -> None:
        self._removed += step.removes
        self._compacted += not step.removes
        self._saved += 0 if step.removes else step.saved

    def _log_when_complete(self) -> None:
        if not self._is_trial and not self._requested and (self._compacted or self._removed):
            counts = f"{self._compacted} compacted (saved ~{self._saved} tokens), {self._removed} removed"
            _log.info("[Turn %d] Message pruning: %s", self._turn, counts)
