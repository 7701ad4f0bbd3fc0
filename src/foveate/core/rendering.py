"""Rendering of one message: its edits applied, and legal for its provider.

`apply_edits` applies a message's own edits (replaced and hidden parts). `legalized` removes content that a provider
refuses in any message: blank text, foreign or unsigned reasoning, arguments that are not a JSON object. Rules across
several messages (answers and their calls, ids) are in `legalize.py`.

Slots are the working memory of `projection.py` and are never handed out. A trial projection (a plan) copies the slots
that it changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from .caches import cached
from .edits import Edit, Hide, Path, Replace, Span, Summarize, Target, path_of, released_by
from .messages import Content, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from .originals import Original, ReadOriginal, outline_of, released_form
from .profiles import Profile
from .results import is_action_result
from .server_tools import partner_of, server_block
from .sizes import images_of, tokens_of
from .stamps import Stamp
from .tool_names import tool_name
from .view import Entry, Kind, PinnedPart
from .wire import encode_message

__all__ = [
    "NO_ERROR_TEXT",
    "Counter",
    "EditedMessage",
    "Slot",
    "apply_edits",
    "can_apply",
    "is_carried",
    "is_directive",
    "legalized",
    "reshape",
]

NO_ERROR_TEXT = "[The tool failed and said nothing.]"
"""The text of an error without content, which Anthropic refuses."""

T = TypeVar("T", bound=Hashable)

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")


class EditedMessage(msgspec.Struct, frozen=True):
    """A message after its edits."""

    message: Message
    """The message to show."""
    shrunk: tuple[Path, ...] = ()
    """Paths in the appended message whose content was replaced or hidden."""
    edits: tuple[int, ...] = ()
    """Numbers of the edits that apply."""
    by: tuple[str, ...] = ()
    """For each of these paths: the policy of the last edit."""
    expandable: bool = True
    """Whether all of these edits let the model expand the original."""


def apply_edits(message: Message, edits: Sequence[tuple[int, Edit]]) -> EditedMessage:
    """Return the message with these numbered edits applied in order. Skips edits that cannot apply.

    A server tool's use and its result are replaced or hidden together: an edit of one also hides the other.
    """
    content: dict[Path, tuple[Part, ...]] = {}
    by: dict[Path, Replace | Hide] = {}
    numbers: list[int] = []
    for number, edit in edits:
        match edit:
            case Replace() if edit.erased and not message.parts:
                pass  # Both the message and the replacement are erased. Nothing needs to replace them.
            case Replace(target=target):
                path = _narrowed(message, target)
                replaced = _replaced(message, path, edit)
                if replaced is not None:
                    content[path], by[path] = replaced, edit
                    numbers.append(number)
                    _hide_partner(message, path, edit, content, by)
            case Hide(target=Target() as target) if target.path:
                if _may_hide(message, target.path):
                    content[target.path], by[target.path] = (), edit
                    numbers.append(number)
                    _hide_partner(message, target.path, edit, content, by)
            case _:
                pass
    if not content:
        return EditedMessage(message)
    return EditedMessage(
        _rebuilt(message, content),
        _shared(tuple(content)),
        tuple(numbers),
        _shared(tuple([by[path].policy for path in content])),
        all(edit.expandable for edit in by.values() if isinstance(edit, Replace)),
    )


@cached(1 << 10)
def _shared(value: T) -> T:
    """Return an equal tuple, the same one for many messages: most edits change the same part by the same policy."""
    return value


def _hide_partner(
    message: Message,
    path: Path,
    edit: Replace | Hide,
    content: dict[Path, tuple[Part, ...]],
    by: dict[Path, Replace | Hide],
) -> None:
    """Hide the other block of a server tool with the one that an edit changes."""
    partner = partner_of(message.parts, path[0]) if len(path) == 1 else None
    if partner is not None and (partner,) not in content:
        content[(partner,)], by[(partner,)] = (), edit


def can_apply(message: Message, edit: Replace | Hide) -> bool:
    """Return whether this edit can change the message: its path exists and the part allows the edit."""
    return bool(apply_edits(message, ((1, edit),)).edits)


def is_carried(part: Reasoning, profile: Profile) -> bool:
    """Return whether the provider's messages have a place for this reasoning of its own.

    Chat completions have no place for encrypted reasoning, and strict servers have none for any reasoning.
    """
    return profile.signed_reasoning or not (part.encrypted or profile.strict)


def is_directive(message: Message, profile: Profile) -> bool:
    """Return whether a system message has no content and only settings for the provider, such as an effort.

    Anthropic takes such a message at any place.
    """
    if message.role != "system" or message.parts or message.extra is None or message.extra.format != profile.format:
        return False
    return profile.system_places == "after_user" and "output_config" in msgspec.json.decode(message.extra.fields)


def _narrowed(message: Message, target: Target) -> Path:
    """Return the path of the only part for a message of one part, so that a result keeps its call."""
    return (0,) if not target.path and len(message.parts) == 1 else target.path


def _part_at(message: Message, path: Path) -> Part | None:
    match path:
        case (i,) if 0 <= i < len(message.parts):
            return message.parts[i]
        case (i, j) if 0 <= i < len(message.parts):
            result = message.parts[i]
            if isinstance(result, ToolResult) and 0 <= j < len(result.content):
                return result.content[j]
    return None


def _replaced(message: Message, path: Path, edit: Replace) -> tuple[Part, ...] | None:
    """Return the content at `path` after the edit, or None if the edit cannot apply.

    It cannot apply to a wrong path, to reasoning, or with invalid arguments.
    """
    if not path:
        return edit.content if not message.calls and message.result is None else None
    match _part_at(message, path):
        case None | Reasoning():
            return None
        case ToolResult() as result:
            return (ToolResult(result.call_id, edit.content, result.state, result.name, result.extra),)
        case ToolCall() as call:
            if len(edit.content) == 1 and isinstance(edit.content[0], Text) and _is_object(edit.content[0].text):
                return (ToolCall(call.call_id, call.name, edit.content[0].text, call.extra),)
            return None
        case _:
            return edit.content


def _may_hide(message: Message, path: Path) -> bool:
    """Return whether an edit may hide this part. Calls and results are hidden only as whole messages, and reasoning
    stays with the calls it led to.
    """
    match _part_at(message, path):
        case None | ToolCall() | ToolResult():
            return False
        case Reasoning():
            return not message.calls
        case _:
            return True


def _rebuilt(message: Message, content: dict[Path, tuple[Part, ...]]) -> Message:
    if () in content:
        return Message(message.role, content[()], message.name, message.extra)
    parts: list[Part] = []
    for i, part in enumerate(message.parts):
        if (i,) in content:
            parts.extend(content[(i,)])
        elif isinstance(part, ToolResult) and any(len(path) == 2 and path[0] == i for path in content):
            shown = [new for j, old in enumerate(part.content) for new in content.get((i, j), (old,))]
            nested = tuple(new for new in shown if isinstance(new, Text | Media | Opaque))
            parts.append(ToolResult(part.call_id, nested, part.state, part.name, part.extra))
        else:
            parts.append(part)
    return Message(message.role, tuple(parts), message.name, message.extra)


def legalized(message: Message, profile: Profile, *, stale: bool, compacts: bool = False) -> tuple[Message | None, str]:
    """Return the message without content that its provider refuses, and the reason of the change ("" for no change).

    `stale`: an edit before this message voids bound reasoning. `compacts`: its compaction is active. Returns None as
    the message if nothing is left.
    """
    why = ""
    parts: list[Part] = []
    for part in message.parts:
        match part:
            case Text() if not part.text.strip():
                why = why or "blank text is refused"
                continue
            case Text() if message.role == "assistant" and profile.refuses_trailing_space and part.text[-1].isspace():
                why = why or "white space at the end of the assistant's text is refused"
                part = Text(part.text.rstrip(), part.extra)
            case Reasoning():
                problem = _reasoning_problem(part, profile, stale)
                if problem:
                    why = why or problem
                    continue
            case Opaque() if part.format != profile.format:
                why = why or "a block that only another provider knows is refused"
                continue
            case Opaque() if message.role != "assistant" and server_block(part):
                why = why or "a server tool's block is refused outside of the assistant's messages"
                continue
            case Opaque() if not compacts and part.is_compaction:
                why = why or "the messages that the provider compacted are shown"
                continue
            case ToolResult():
                result = _legal_result(part, profile)
                if result is not part:
                    why = why or "its result had refused content"
                part = result
            case ToolCall():
                call = _legal_call(part, profile)
                if call is not part:
                    why = why or "its call had refused arguments or a refused name"
                part = call
            case _:
                pass
        parts.append(part)
    if profile.calls_last and message.role == "assistant" and (ordered := _calls_last(parts)) != parts:
        why = why or "content after a call, and reasoning at the end, are refused"
        parts = ordered
    if message.role != "tool" and all(isinstance(part, Reasoning) for part in parts):
        is_kept = not parts and is_directive(message, profile)
        return (message if is_kept else None), "" if is_kept else "a message without content is refused"
    return (Message(message.role, tuple(parts), message.name, message.extra) if why else message), why


def _calls_last(parts: Sequence[Part]) -> list[Part]:
    """Return the same parts with reasoning and text before the first call. Reasoning does not come last."""
    others = [part for part in parts if not isinstance(part, ToolCall)]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if not calls and others and isinstance(others[-1], Reasoning):
        others.sort(key=lambda part: not isinstance(part, Reasoning))
    return [*others, *calls]


def _reasoning_problem(part: Reasoning, profile: Profile, stale: bool) -> str:
    if part.format != profile.format:
        return "another provider's reasoning is refused"
    if profile.signed_reasoning and not (part.signature or part.encrypted):
        return "unsigned reasoning is refused"
    if not is_carried(part, profile):
        return "reasoning that the format cannot carry is refused"
    if profile.binds_reasoning and stale:
        return "reasoning bound to an earlier form of the conversation is refused"
    return ""


def _legal_call(call: ToolCall, profile: Profile) -> ToolCall:
    arguments = call.arguments
    if not _is_object(arguments):
        # Kept readable: a truncated stream often holds the one value that matters.
        arguments = json.dumps({"invalid_arguments": arguments}, ensure_ascii=False) if arguments.strip() else "{}"
    name = _legal_name(call.name, profile)
    if arguments is call.arguments and name == call.name:
        return call
    return ToolCall(call.call_id, name, arguments, call.extra)


def _legal_name(name: str, profile: Profile) -> str:
    """Return the name that the definition of such a tool has (`tool_name`), or the name itself if it is legal."""
    marks = profile.tool_name_marks
    is_legal = len(name) <= profile.max_tool_name and all(found in marks for found in _NOT_PLAIN.findall(name))
    if is_legal and name and (not marks or name[0].isalpha() or name[0] == "_"):
        return name
    return tool_name(name) if name.strip() else "unnamed_tool"


def _legal_result(result: ToolResult, profile: Profile) -> ToolResult:
    content = tuple(part for part in result.content if not _is_refused(part, profile))
    if not content and result.state == "error":
        content = (Text(NO_ERROR_TEXT),)
    if content == result.content:
        return result
    return ToolResult(result.call_id, content, result.state, result.name, result.extra)


def _is_refused(part: Content, profile: Profile) -> bool:
    match part:
        case Text():
            return not part.text.strip()
        case Opaque():
            return part.format != profile.format or server_block(part) is not None
        case Media():
            return False


def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False


Counter = Callable[[str], int]

_BY_PROVIDER = PinnedPart((), "provider")
"""The pin that an active compaction has in a view: without it, everything that it stands for would come back."""


class Slot:
    """The place of a message or a summary in a projection. `span` and `last` are set for a summary."""

    __slots__ = (
        "_base",
        "_forms",
        "compacts",
        "edits",
        "id",
        "is_late",
        "is_recounted",
        "last",
        "message",
        "original",
        "pins",
        "position",
        "renewed",
        "seen",
        "size",
        "span",
        "stale",
        "stamp",
    )

    def __init__(
        self,
        position: int,
        id: str,
        message: Message,
        stamp: Stamp,
        size: int,
        *,
        span: Span | None = None,
        last: int = 0,
    ) -> None:
        self.position, self.id, self.message, self.stamp, self.size = position, id, message, stamp, size
        self.span, self.last, self.seen = span, last or position, 0
        self.original: Original | None = None
        """A way to read the message, if `message` is only its outline."""
        self.edits: tuple[tuple[int, Edit], ...] = ()
        self.pins: tuple[PinnedPart, ...] = ()
        # An expansion is new to the coming call. Policies spare it until then, like restored content.
        self.renewed = stamp.turn + 1 if stamp.expanded else 0
        self.stale = False
        self.compacts = False  # whether its compaction stands for everything before it
        self.is_late = False
        """Whether this is an answer that was appended after a request had shown a stand-in for it."""
        self.is_recounted = False
        """Whether the stamp holds the count of another counter."""
        self._base: Entry | bool | None = False  # False: not computed yet
        self._forms: dict[tuple[str, ...], Entry] | None = None

    @property
    def order(self) -> tuple[int, int]:
        """Return the sorting key: a summary comes before the visible messages of its span, and before narrower
        summaries.
        """
        return (self.position, -self.last if self.span else 1)

    @property
    def is_input(self) -> bool:
        """Return whether this is user input with content, even if it is erased: its protection remains."""
        return self.stamp.origin == "user" and (not self.size or self.message.has_content)

    @property
    def is_erased_result(self) -> bool:
        """Return whether this is an erased answer to a call."""
        return not self.size and self.stamp.origin in ("tool", "derived")

    @property
    def has_reasoning(self) -> bool:
        """Return whether the message has reasoning, which may be bound to the messages before it."""
        return any(isinstance(part, Reasoning) for part in self.message.parts)

    def copy(self, *, changes: bool = True) -> Slot:
        """Return an independent copy. `changes`: whether the copy may show something else."""
        twin = Slot(self.position, self.id, self.message, self.stamp, self.size, span=self.span, last=self.last)
        twin.edits, twin.pins, twin.renewed, twin.stale = self.edits, self.pins, self.renewed, self.stale
        twin.seen, twin.compacts, twin.is_recounted = self.seen, self.compacts, self.is_recounted
        twin.original = self.original
        twin.is_late = self.is_late
        if not changes:
            twin._base, twin._forms = self._base, self._forms
        return twin

    def released(self, read: ReadOriginal) -> Slot | None:
        """Return a copy that holds only the outline of the message; None if that would save too little."""
        if self.span is not None or not self.edits:
            return None
        outline = outline_of(self.message, self.stamp, apply_edits(self.message, self.edits).shrunk)
        if outline is None:
            return None
        twin = self.copy()
        twin.hold_outline(outline, read)
        return twin

    def hold_outline(self, outline: Message, read: ReadOriginal) -> None:
        """Hold only the outline of the message. Call it on a new slot."""
        self.message, self.original = outline, Original(outline, partial(read, self.position, self.id))

    def drop_released(self) -> None:
        """Hold of the message only what the store keeps. Call it on a new slot, after an edit that releases."""
        paths = {path_of(edit) for _, edit in self.edits if released_by(edit)}
        form = partial(released_form, stamp=self.stamp, paths=paths)
        self.message = form(self.message)
        self.original = self.original and self.original.converted(form)

    def reload(self) -> None:
        """Read the whole message again, before edits of it are cancelled."""
        if self.original is not None:
            self.message, self.original = self.original.message(), None

    def entry(self, profile: Profile, count: Counter) -> Entry | None:
        """Return the entry of this place alone, or None if nothing is left to show."""
        if isinstance(self._base, bool):
            self._base = self._shown(profile, count)
        return self._base

    def cached_entry(self, form: tuple[str, ...], make: Callable[[], Entry]) -> Entry:
        """Return the entry for this form, made only once: an equal form returns the same entry."""
        forms = self._forms = self._forms or {}
        if form not in forms:
            forms[form] = make()
        return forms[form]

    @property
    def own_entry(self) -> Entry | None:
        """Return the entry that `entry` made; None if it made none."""
        return None if isinstance(self._base, bool) else self._base

    @property
    def forms(self) -> Mapping[tuple[str, ...], Entry]:
        """Return the entries that `cached_entry` made."""
        return self._forms or {}

    def hold_entry(self, entry: Entry | None, form: tuple[str, ...] = ()) -> None:
        """Hold an entry that was made before, as the place's own entry, or as its entry of this form."""
        if form:
            self._forms = {**self.forms, form: entry} if entry else self._forms
        else:
            self._base = entry

    def withheld(self, profile: Profile, count: Counter) -> Entry | None:
        """Return an empty entry if the place shows nothing, so that policies know of it. Otherwise return None."""
        if self.entry(profile, count) is not None:
            return None
        empty = Message(self.message.role)
        entry = self._entry(empty, "a message without content is refused", self._edited(), count)
        return replace(entry, tokens=0, bytes=0)

    def _shown(self, profile: Profile, count: Counter) -> Entry | None:
        shown = self._edited()
        asked = _in_role(shown.message, self.edits[0][1], profile) if self.span else shown.message
        message, why = legalized(asked, profile, stale=self.stale, compacts=self.compacts)
        return None if message is None else self._entry(message, why, shown, count)

    def _edited(self) -> EditedMessage:
        return apply_edits(self.message, self.edits) if self.edits else EditedMessage(self.message)

    def _entry(self, message: Message, why: str, shown: EditedMessage, count: Counter) -> Entry:
        untouched = message is self.message
        is_result = self.message.role == "tool" or (not self.span and is_action_result(self.message, self.stamp))
        return Entry(
            position=self.position,
            id=self.id,
            message=message,
            appended=None if self.span else self.original or self.message,
            stamp=self.stamp,
            kind="summary" if self.span else "message",
            tool=self.stamp.tool if is_result else "",
            edits=shown.edits if not self.span else tuple(number for number, _ in self.edits),
            shrunk=shown.shrunk,
            shrunk_by=shown.by,
            expandable=shown.expandable,
            span=self.span,
            last=self.last,
            seen=self.seen,
            pins=(*self.pins, _BY_PROVIDER) if self.compacts else self.pins,
            renewed=self.renewed,
            legalized=why,
            tokens=self.stamp.tokens if untouched and not self.is_recounted else tokens_of(message, count),
            bytes=self.size if untouched else len(encode_message(message)),
            images=images_of(message),
            is_result=is_result,
        )


def _in_role(message: Message, edit: Edit, profile: Profile) -> Message:
    """Return a summary in the role of its edit, or as a user's message if the provider has no place for the role.

    Anthropic takes a system message only behind the user's, and Gemini takes none among the messages. There a summary
    would stand behind the request that it precedes, or become a part of the system prompt.
    """
    role = edit.role if isinstance(edit, Summarize) else "user"
    if role == "system" and (profile.system_places != "any" or profile.user_first):
        role = "user"
    return message if role == "user" else Message(role, message.parts)


def reshape(entry: Entry, message: Message, why: str, count: Counter, *, kind: Kind | None = None) -> Entry:
    """Return the same entry with another form of its message, for the reason `why`."""
    return Entry(
        position=entry.position,
        id=entry.id,
        message=message,
        appended=entry.appended,
        stamp=entry.stamp,
        kind=kind or entry.kind,
        tool=entry.tool,
        edits=entry.edits,
        shrunk=entry.shrunk,
        shrunk_by=entry.shrunk_by,
        expandable=entry.expandable,
        span=entry.span,
        last=entry.last,
        seen=entry.seen,
        pins=entry.pins,
        renewed=entry.renewed,
        legalized=why,
        tokens=tokens_of(message, count),
        bytes=len(encode_message(message)),
        images=images_of(message),
        is_result=entry.is_result,
    )
