"""Actions on a conversation from its page, and the sentences that report them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from ...conversation import Conversation
from ...core.handles import Handle
from ...core.plurals import plural
from ...core.receipts import Receipt, receipt_of
from ...errors import BadInput, ConflictError, FoveateError, StoreError
from ...ports import StoredMessage
from ...replay.numbers import count
from ..views.places import Place
from .planning import Choice, PlanSettings, apply_plan, compact, read_settings

__all__ = ["ACTIONS", "CONFIRM", "ErasePreview", "Fields", "Outcome", "perform", "preview_erasure", "problem_of"]

CONFIRM: Final = "erase"
"""The word that a person types before messages are erased."""
_MAX_NAMED: Final = 20
"""Messages and conversations that a preview names. It counts the others."""
_BEGINNING: Final = 120
"""Characters of each message that a preview shows."""

Fields = Mapping[str, str]
"""The fields of a form."""


class Outcome(Struct, frozen=True):
    """The result of an action."""

    text: str
    """A sentence or two about the change."""
    first: int = 0
    """Number of the first edit that can be undone; 0 for none."""
    last: int = 0
    """Number of the last one."""
    name: str = ""
    """The conversation to show next, if it is another one."""


def perform(chat: Conversation, action: str, fields: Fields) -> Outcome:
    """Do what a form asks for. Raises FoveateError, and changes nothing, if that is not possible."""
    return ACTIONS[action](chat, fields)


def problem_of(error: FoveateError) -> str:
    """Return the sentences that a page shows for an error."""
    match error:
        case ConflictError():
            return f"{error} Nothing was changed."
        case StoreError():
            return f"The store refused it: {error} Nothing was changed."
        case _:
            return str(error)


# ------------------------------------------------------------------------------------------------------- the actions


def _expand(chat: Conversation, fields: Fields) -> Outcome:
    handle = _handle(fields)
    receipt = _newest_since(chat, lambda: chat.expand(handle, reason="a person asked for it in the inspector"))
    return _reported(f"{handle} is shown whole again from turn {receipt.turn} on.", receipt)


def _pin(chat: Conversation, fields: Fields) -> Outcome:
    handle = _handle(fields)
    if "-" in handle:
        raise BadInput(f"{handle} stands for several messages, and single messages are pinned. Expand it first.")
    receipt = chat.pin(handle)
    if receipt is None:
        return Outcome(f"{handle} is pinned already. Nothing changed.")
    return _reported(f"{handle} is pinned: no policy may shrink or hide it.", receipt)


def _unpin(chat: Conversation, fields: Fields) -> Outcome:
    handle = _handle(fields)
    receipt = chat.unpin(handle)
    if receipt is None:
        return Outcome(f"{handle} is not pinned. Nothing changed.")
    return _reported(f"{handle} is no longer pinned: policies may shrink it again.", receipt)


def _undo(chat: Conversation, fields: Fields) -> Outcome:
    first, last = _number(fields, "first"), _number(fields, "last")
    if not first:
        receipt = chat.undo()
    elif last <= first:
        receipt = chat.undo(first)
    else:
        records = [
            record for record in chat._session.records(first - 1) if (record.first, record.last) == (first, last)
        ]
        if not records:
            raise BadInput(
                f"The journal has no receipt of edits {first} to {last}. Undo single edits by their numbers."
            )
        receipt = chat.undo(receipt_of(records[0]))
    what = f"Edits {first} to {last} are undone." if last > first else f"Edit {first} is undone."
    return _reported(what if first else "The newest change is undone.", receipt)


def _apply(chat: Conversation, fields: Fields) -> Outcome:
    settings = read_settings(chat)
    receipts = apply_plan(chat, _choice(settings, fields), Place.read(fields.get("place", "")))
    if not receipts:
        return Outcome("The plan has no edits. Nothing changed.")
    edits = sum(len(receipt.edits) for receipt in receipts)
    policies = ", ".join(dict.fromkeys(policy for receipt in receipts for policy in receipt.policies))
    newest = receipts[-1]
    text = f"The plan is applied: {plural(edits, 'edit')}{f' by {policies}' if policies else ''}."
    return _reported(text, newest, before=receipts[0].tokens_before)


def _compact(chat: Conversation, fields: Fields) -> Outcome:
    focus = fields.get("focus", "").strip()
    receipt = compact(chat, _choice(read_settings(chat), fields), focus)
    by = f", written by {', '.join(receipt.by)}" if receipt.by else ""
    about = f" that concentrates on {focus[:80]!r}" if focus else ""
    return _reported(f"The oldest part is shown as a summary{about}{by}.", receipt)


def _fork(chat: Conversation, fields: Fields) -> Outcome:
    name = fields.get("fork", "").strip()
    if not name:
        raise BadInput("A fork needs a name. Type one that no conversation has.")
    handle = fields.get("m", "").strip()
    with chat.fork(name, at=handle or None) as fork:
        messages = len(fork)
    return Outcome(f"{name} is a fork of {chat.name}: it shares {plural(messages, 'message')} with it.", name=name)


def _erase(chat: Conversation, fields: Fields) -> Outcome:
    handle = _handle(fields)
    if fields.get("confirm", "").strip().lower() != CONFIRM:
        raise BadInput(f"Nothing was erased: type the word {CONFIRM} to confirm.")
    reason = fields.get("reason", "").strip()
    erased = chat.privacy.erase(handle, reason=reason, who=fields.get("who", "").strip())
    if not erased.number:
        return Outcome(f"{handle} was erased before. Nothing changed.")
    return Outcome(
        f"{erased.handles} is erased for good: {plural(erased.messages, 'message')} with everything that was made of "
        "them. Nothing can undo it. The file may hold the bytes until `foveate db vacuum`."
    )


ACTIONS: Final[Mapping[str, Callable[[Conversation, Fields], Outcome]]] = {
    "expand": _expand,
    "pin": _pin,
    "unpin": _unpin,
    "undo": _undo,
    "apply": _apply,
    "compact": _compact,
    "fork": _fork,
    "erase": _erase,
}
"""The actions by the names in their addresses."""


# --------------------------------------------------------------------------------------------------------- erasing


class ErasePreview(Struct, frozen=True):
    """The effect of erasing a handle."""

    handle: str
    messages: int
    """Messages that would be erased; those erased before do not count."""
    tokens: int
    """Their tokens."""
    beginnings: tuple[tuple[str, str, str], ...]
    """Handle, role and first words of each of the first ones."""
    summaries: tuple[str, ...]
    """Handles of the summaries in the view that were made of them, and are erased too."""
    others: tuple[str, ...]
    """Other conversations that share some of them: there they are erased too."""


def preview_erasure(chat: Conversation, handle: str) -> ErasePreview:
    """Return what erasing the messages of a handle would erase. Changes nothing.

    Raises UnknownHandle, and BadInput for a part of a message.
    """
    session = chat._session
    with session.lock:
        parsed, rows = session.editor.rows_of(handle)
        if parsed.path:
            raise BadInput(f"{handle} names a part, and only whole messages are erased: erase m{parsed.first}.")
        left = [row for row in rows if row.body]
        entries = session.state.view().entries
        others = _sharing(chat, left)
    first, last = (parsed.first, parsed.last)
    summaries = [entry for entry in entries if entry.span and entry.position <= last and first <= entry.last]
    shown = session.history(first, min(last, first + 10 * _MAX_NAMED))
    known = {row.position for row in left}
    return ErasePreview(
        handle,
        len(left),
        sum(row.stamp.tokens for row in left),
        tuple(
            (row.handle, row.message.role, " ".join(row.message.text[: 4 * _BEGINNING].split())[:_BEGINNING])
            for row in shown
            if row.position in known
        )[:_MAX_NAMED],
        tuple(str(Handle(entry.position, entry.last)) for entry in summaries),
        others,
    )


def _sharing(chat: Conversation, rows: Sequence[StoredMessage]) -> tuple[str, ...]:
    """Return the other conversations of the tree that have one of these messages."""
    if not rows:
        return ()
    store, head = chat._session.state.store, chat._session.head
    named = []
    for branch in store.branches(head):
        if branch.head.branch != head.branch:
            found = store.get_many(branch.head, [rows[0].position])
            if any(row.id == rows[0].id for row in found):
                named.append(branch.head.name)
    return tuple(named)


# ---------------------------------------------------------------------------------------------------------- helpers


def _newest_since(chat: Conversation, act: Callable[[], object]) -> Receipt:
    """Do something, and return the receipt of its commit."""
    before = chat._session.head.number
    act()
    return chat.journal.receipts(before)[-1]


def _reported(text: str, receipt: Receipt, *, before: int | None = None) -> Outcome:
    was, now = receipt.tokens_before if before is None else before, receipt.tokens_after
    change = f"{count(was)} → {count(now)} tokens in the view" if was != now else f"{count(now)} tokens, as before"
    edits = f"edit {receipt.first}" if receipt.first == receipt.last else f"edits {receipt.first} to {receipt.last}"
    return Outcome(f"{text} {change}; receipt: {edits}.", receipt.first, receipt.last)


def _choice(settings: PlanSettings, fields: Fields) -> Choice:
    return settings.chosen(*(fields.get(name, "") for name in ("policy", "model", "window", "summarizer")))


def _handle(fields: Fields) -> str:
    handle = fields.get("m", "").strip()
    if not handle:
        raise BadInput("The form names no message. Use a handle, such as m12.")
    return handle


def _number(fields: Fields, name: str) -> int:
    text = fields.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0
