"""Results expire: so many model calls after it came, a result is removed, or shrunk to its beginning or a summary.

How long each stays, and what becomes of it then, is its lease: said of the message when it is appended, of its tool, of
its action, or of all (`leases.py`). A lease begins with the call that the result belongs to, and anew when the result
is expanded; once in each lease it is compacted (`expired.py`). Knows nothing of stores and models: a summary is asked
for, and what is done without one is decided by the policy itself.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from ..core.edits import Edit, Hide, Replace, Target
from ..core.events import EXPIRED
from ..core.messages import Content, Media, Message, Opaque, Text, ToolResult
from ..core.planner import Policy
from ..core.sizes import IMAGE_TOKENS, tokens_of
from ..core.stamps import Lease
from ..core.summaries import Answer, NeedsSummary, SummaryRequest
from ..core.view import Entry, View
from ..errors import BadSetting
from .leases import SYSTEM_PROMPT, check_lease, expires, merged
from .placeholders import outgrows, placeholder

__all__ = [
    "ANNOTATION",
    "BARE_ANNOTATION",
    "BARE_PREAMBLE",
    "BARE_STUB",
    "PREAMBLE",
    "STUB",
    "Due",
    "Form",
    "Step",
    "expire_results",
    "step",
]

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
        said = placeholder(template, self.entry).replace("{kept}", str(self.length))
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
    stub = placeholder(template, due.entry).replace("{turns}", str(due.lease.expiration_turns))
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


ANNOTATION = '...\n\n[Compacted: the first {kept} of {length} characters; expand("{handle}") shows all]'
"""Follows the beginning of a compacted text."""
PREAMBLE = '[Summary of {length} characters; expand("{handle}") shows all]\n\n'
"""Stands before a summary."""
BARE_ANNOTATION = "...\n\n[Compacted: the first {kept} of {length} characters]"
BARE_PREAMBLE = "[Summary of {length} characters]\n\n"
"""The same two where the model may not have the original back."""
STUB = '[result expired after {turns} turns: {about}expand("{handle}")]'
"""Stands in the place of a tool result that is to be removed: its call needs an answer."""
BARE_STUB = "[result expired after {turns} turns]"
"""The same where the model may not have the original back: nothing is told of it."""

_NO_LEASES: Mapping[str, Lease] = {}
_log = logging.getLogger("foveate")


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
    """A policy that removes or compacts results whose lease has ended.

    The levels, the highest first: `override` (for all results of a run, such as a test), the lease with which a message
    was appended, `tools` (by `agent_action_id`, or by the name of the tool), `actions` (by `action_id`, or by the name
    of the tool), `default`. `effective_lease` tells what they come to; without any of them nothing expires. Other
    messages than results expire only by a lease of their own. System prompts, the last user input, pinned messages,
    messages of the assistant that hold calls, and what other policies have shrunk never do.

    `prompts`: names of the prompts for summaries that there are (default: every one that is named); `system_prompt`:
    the one for leases that name none. Where a summary cannot be had, the beginning of the text is kept instead.

    `annotation` follows the beginning of a text, `preamble` stands before a summary: `{kept}` and `{length}` are
    characters, `{handle}` is what `expand` takes. `bare_annotation` and `bare_preamble` take their places where
    `preserve_original` is off. `stub` stands for a removed tool result: `{turns}` is its limit, and what
    placeholders may name works too; `bare_stub` where `preserve_original` is off.
    What would not get shorter is left as it is.

    `stable_prefix`: spare what stands before the first result, for the sake of the provider's cache. `min_gain`: wait
    until all that is due frees at least so many tokens (a quarter of the characters). Raises BadSetting for values that
    are not allowed; warns where `expiration_turns` is 0, since no model call ever sees such a result.
    """
    levels = _Levels(tools, actions, default, override, prompts, system_prompt)
    form = Form(annotation, preamble, bare_annotation, bare_preamble, stub, bare_stub)
    if type(min_gain) is not int or min_gain < 0:
        raise BadSetting(f"min_gain is {min_gain!r:.80}; allowed: tokens, a whole number of 0 or more.")
    if unseen := levels.unseen:
        told = f"{', '.join(unseen)}: expiration_turns is 0, so these results expire before any model call sees them"
        warnings.warn(told, stacklevel=2)

    def policy(view: View) -> Sequence[Edit | NeedsSummary]:
        tally = _Tally(view)
        entries = view.entries[_stable(view) if stable_prefix else 0 :]
        ended = [one for entry in entries if not _is_shrunk(entry) and (one := levels.due(entry, view.turn))]
        due = [one for one in ended if _may_expire(one.entry, view)]
        steps = [made for one in due if (made := step(one, form, tally.answered))]
        if sum(made.saved for made in steps) < min_gain:
            return ()
        tally.planned(steps)
        return [made.made for made in steps]

    return policy


class _Levels:
    """What is said of leases, on all levels. Raises BadSetting for what is not allowed."""

    def __init__(
        self,
        tools: Mapping[str, Lease],
        actions: Mapping[str, Lease],
        default: Lease | None,
        override: Lease | None,
        prompts: Collection[str] | None,
        system_prompt: str,
    ) -> None:
        self._tools, self._actions = _checked("tools", tools), _checked("actions", actions)
        self._default = None if default is None else check_lease("default", default)
        self._override = None if override is None else check_lease("override", override)
        if prompts is not None and (isinstance(prompts, str) or not all(isinstance(name, str) for name in prompts)):
            raise BadSetting(f"prompts is {prompts!r:.80}; allowed: names of prompts, or None.")
        if not isinstance(system_prompt, str):
            raise BadSetting(f"system_prompt is {system_prompt!r:.80}; allowed: the name of a prompt.")
        self._prompts = None if prompts is None else frozenset(prompts)
        self._system_prompt = system_prompt
        self._lease_of = lru_cache(4096)(self._merged)  # The same few leases are asked for at every call.

    @property
    def unseen(self) -> list[str]:
        """The levels by which results expire before a model call has seen them."""
        named = {"override": self._override, "default": self._default}
        for level, leases in (("tools", self._tools), ("actions", self._actions)):
            named |= {f"{level}[{name!r}]": lease for name, lease in leases.items()}
        said = {name: lease for name, lease in named.items() if lease and lease.expiration_turns == 0}
        return [
            name for name, lease in said.items() if lease.expiration_mode != "none" and not lease.disable_expiration
        ]

    def due(self, entry: Entry, turn: int) -> Due | None:
        """The entry with its lease, if that has ended before this model call."""
        age = turn - max(entry.stamp.turn, entry.renewed)
        is_result = _is_result(entry)
        if age < 1 or not (is_result or entry.stamp.lease):
            return None
        lease = self._lease_of(entry.stamp.lease, entry.tool, is_result)
        if not expires(lease) or lease.message_type == "system" or age <= (lease.expiration_turns or 0):
            return None
        return Due(entry, lease, age)

    def _merged(self, own: Lease | None, tool: str, is_result: bool) -> Lease:
        said: list[Lease | None] = [self._override, own]
        if is_result:
            binding, action = (own.agent_action_id, own.action_id) if own else ("", "")
            said += [self._tools.get(binding), self._tools.get(tool)]
            said += [self._actions.get(action), self._actions.get(tool), self._default]
        elif self._override and not self._override.disable_expiration:
            said = [own]  # What is said of the results of a run is not said of anything else.
        return merged([level for level in said if level], self._prompts, self._system_prompt)


def _checked(level: str, leases: Mapping[str, Lease]) -> dict[str, Lease]:
    if not isinstance(leases, Mapping):
        raise BadSetting(f"{level} is {leases!r:.80}; allowed: names, each with a Lease.")
    return {name: check_lease(f"{level}[{name!r}]", lease) for name, lease in leases.items()}


def _is_result(entry: Entry) -> bool:
    """Whether a tool, an action or another agent said this, in whatever role."""
    return entry.is_result or entry.stamp.origin == "tool"


def _may_expire(entry: Entry, view: View) -> bool:
    """Whether this policy may touch an entry."""
    source = entry.source
    if source is None or source.role == "system" or source.calls or entry.is_pinned():
        return False
    return not entry.is_input or entry.position != view.last_input


def _is_shrunk(entry: Entry) -> bool:
    """Whether the content as a whole was replaced already; an image in it may have been."""
    if not entry.shrunk or entry.source is None:
        return False
    return () in entry.shrunk or (len(entry.source.parts) == 1 and (0,) in entry.shrunk)


def _stable(view: View) -> int:
    """How many entries stand before the first result, or before the first place where something was hidden."""
    following = 1
    for index, entry in enumerate(view.entries):
        if entry.kind != "stand-in":
            if _is_result(entry) or entry.position != following:
                return index
            following = entry.last + 1
    return len(view.entries)


class _Tally:
    """What one plan does, told to the log in one line once all of it is known."""

    def __init__(self, view: View) -> None:
        self._turn, self._is_trial = view.turn, view.is_trial
        self._compacted = self._removed = self._saved = self._asked = 0

    def planned(self, steps: Sequence[Step]) -> None:
        """These are the steps; what a model is asked for will be known later."""
        for made in steps:
            if isinstance(made.made, NeedsSummary):
                self._asked += 1
            else:
                self._count(made)
        self._tell()

    def answered(self, made: Step | None) -> None:
        """A model was asked, and this is what came of it, if anything."""
        self._asked -= 1
        if made:
            self._count(made)
        self._tell()

    def _count(self, made: Step) -> None:
        self._removed += made.removes
        self._compacted += not made.removes
        self._saved += 0 if made.removes else made.saved

    def _tell(self) -> None:
        if not self._is_trial and not self._asked and (self._compacted or self._removed):
            done = f"{self._compacted} compacted (saved ~{self._saved} tokens), {self._removed} removed"
            _log.info("[Turn %d] Message pruning: %s", self._turn, done)
