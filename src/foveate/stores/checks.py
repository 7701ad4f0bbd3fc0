"""Checks that every store makes of its arguments, and the errors that every store raises.

Rows must continue the chain of the head that they follow, and a record must continue its journal: a chain that was
wrong once could never be verified again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ..core import ids, wire
from ..core.catalog import Action, Binding, Prompt, prompt_key
from ..core.edits import Hide, Record, Replace, path_of, released_by
from ..core.ids import redacted_record, redacted_stamp
from ..core.runs import AgentRun, AgentRunStep, LockHolder, step_of
from ..core.stamps import Stamp
from ..errors import (
    BadInput,
    BadSetting,
    ConflictError,
    ConversationBusy,
    StoreError,
    StoreRolledBack,
    conversation_label,
)
from ..ports import Erasure, Head, LinkedRows, StoredMessage
from .lineage import Lineage, position_ranges

__all__ = [
    "CLOSED",
    "append_conflict",
    "check_action_unused",
    "check_erasure",
    "check_journal",
    "check_keys",
    "check_names",
    "check_names_exist",
    "check_no_repeats",
    "check_not_behind",
    "check_owner",
    "check_point",
    "check_prefix",
    "check_prompt_is_new",
    "check_prompt_unused",
    "check_record",
    "check_release",
    "check_rows",
    "check_run",
    "check_spans",
    "check_step",
    "check_texts",
    "commit_conflict",
    "is_shared",
    "lock_lost",
    "name_taken",
    "rolled_back",
    "step_released",
    "too_old_to_erase",
]

CLOSED = "This store was closed. Open it again."

_NAME_MAX = 500
_HASH = re.compile("[0-9a-f]{40}")


def check_keys(tenant: str, name: str) -> None:
    """Raise BadSetting if a tenant or the name of a conversation cannot be a key in every database."""
    check_texts("conversation", tenant=tenant, name=name)
    if not name:
        raise BadSetting("A conversation needs a name.")


def check_names(tenant: str, names: Mapping[str, str]) -> None:
    """Raise BadSetting if this renaming is not possible in any store."""
    for name in names.values():
        check_keys(tenant, name)
    if len({*names, *names.values()}) < 2 * len(names):
        raise BadSetting("A name can be given once, and not while another conversation of the same call still has it.")


def check_texts(kind: str, /, **texts: str) -> None:
    """Raise BadSetting if one of these short texts cannot be stored as text in every database."""
    of = f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
    for what, text in texts.items():
        if not isinstance(text, str):
            raise BadSetting(f"The {what} of {of} must be a string, not {text!r:.60}.")
        if len(text) > _NAME_MAX:
            raise BadSetting(f"The {what} of {of} has {len(text):,} characters; at most {_NAME_MAX} are allowed.")
        if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise BadSetting(f"The {what} {text!r} holds a NUL or half of a surrogate pair. Choose another one.")


def check_owner(owner: str) -> None:
    """Raise BadSetting if a name cannot be that of a lock's owner in every database."""
    check_texts("lock", owner=owner)
    if not owner:
        raise BadSetting("A lock needs an owner.")


def check_run(run: AgentRun) -> None:
    """Raise BadSetting if a run cannot be stored in every database. Its long texts may contain anything."""
    check_texts("run", id=run.id, agent=run.agent, conversation=run.conversation, parent=run.parent)
    if not run.id:
        raise BadSetting("A run needs an id.")


def check_step(step: AgentRunStep) -> None:
    """Raise BadSetting if a step cannot be stored in every database. Its long texts may contain anything."""
    check_texts("step", run=step.run, name=step.name, call=step.call, message=step.message)
    if not step.run or step.number < 1:
        raise BadSetting(f"A step needs the id of its run and a number from 1, not {step.run!r} and {step.number}.")


def check_erasure(erasure: Erasure) -> None:
    """Raise BadSetting if the record of an erasure cannot be stored in every database."""
    check_texts("erasure", who=erasure.who, reason=erasure.reason, name=erasure.name)
    if re.search(r"[^m0-9 -]", erasure.handles) or erasure.number < 1:
        raise BadSetting(
            f"The record of an erasure has a number from 1 and names handles, not {erasure.number} and "
            f"{erasure.handles!r:.50}."
        )


def check_rows(head: Head, rows: Sequence[StoredMessage]) -> None:
    """Raise BadInput if these rows do not follow `head` and each other."""
    position, tip, seal = head.position, head.tip, head.seal
    if isinstance(rows, LinkedRows) and rows.follows == (position, tip, seal):
        return
    for row in rows:
        position += 1
        problem = ""
        if row.position != position:
            problem = f"it says it is message {row.position}"
        elif not _HASH.fullmatch(row.body_hash):
            problem = "its body's hash is not one"
        elif row.body and not row.is_released and ids.body_hash(row.body) != row.body_hash:
            problem = "its body has another hash than it says"
        elif ids.message_id(tip, row.body_hash) != row.id:
            problem = "its id does not follow from its body and the message before it"
        elif not _seals(seal, row):
            problem = "its seal does not follow from its stamp and the seal before it"
        if problem:
            raise BadInput(f"Message {position} of {head.label} cannot be appended: {problem}. Nothing was written.")
        tip, seal = row.id, row.seal


def _seals(parent: str, row: StoredMessage) -> bool:
    """Return whether the seal of a row fits its redacted stamp or, as in old stores, the bytes of its stamp."""
    if ids.seal(parent, row.id, redacted_stamp(row.stamp)) == row.seal:
        return True
    return bool(row.stamp.metadata) and ids.seal(parent, row.id, wire.encode_stamp(row.stamp)) == row.seal


def check_release(head: Head, record: Record, outlines: Mapping[int, bytes], families: Mapping[int, Lineage]) -> None:
    """Raise BadInput for outlines that a record does not name, and ConflictError if branches share these messages.

    `families`: the lineages of all branches of the tree.
    """
    named = {edit.released for edit in record.edits if isinstance(edit, Replace | Hide)}
    for position, outline in outlines.items():
        if not outline or ids.body_hash(outline) not in named:
            raise BadInput(
                f"No edit of the record names the outline of message {position} of {head.label}. Nothing was written."
            )
        if is_shared(families, head.branch, position):
            raise ConflictError(
                f"Another conversation shares message {position} of {head.label}, so its original was not released. "
                f"Nothing was written. Read both again."
            )


def step_released(record: Record, id: str, stamp: Stamp) -> tuple[str, int] | None:
    """Return the step whose output a record releases with this message: the one that produced it, if it goes whole."""
    is_whole = any(released_by(edit) == id and not path_of(edit) for edit in record.edits)
    return step_of(stamp.step) if is_whole and stamp.step else None


def is_shared(families: Mapping[int, Lineage], branch: int, position: int) -> bool:
    """Return whether more than one of these branches shows the message at a position of `branch`."""
    places = [
        part.branch for other, family in families.items() for part in position_ranges(family, other, position, position)
    ]
    (own,) = position_ranges(families[branch], branch, position, position)
    return places.count(own.branch) > 1


def check_record(head: Head, record: Record, record_id: str) -> bytes:
    """Return the canonical bytes of a record. Raises BadInput if it does not follow the newest record of `head`."""
    body = wire.encode_record(record)
    problem = ""
    if not record.edits:
        problem = "it holds no edit"
    elif record.first != head.number + 1:
        problem = f"its first edit is numbered {record.first}, and the next number is {head.number + 1}"
    elif record_id != ids.record_id(head.record, redacted_record(record)) and (
        record_id != ids.legacy_record_id(head.record, body)  # Imported, and older than redacted forms.
    ):
        problem = "its id does not follow from its content and the record before it"
    if problem:
        raise BadInput(f"A record cannot be added to the journal of {head.label}: {problem}. Nothing was written.")
    return body


def check_prefix(prefix: str, names: Iterable[str]) -> None:
    """Raise BadSetting unless all of these names begin with `prefix`."""
    for name in names:
        if not prefix or not name.startswith(prefix):
            raise BadSetting(f"{name!r} is in that tree, and does not begin with {prefix!r}. Nothing was deleted.")


def check_point(head: Head, position: int, number: int) -> None:
    """Raise BadSetting if `head` has no such position or edit number."""
    if not 0 <= position <= head.position:
        raise BadSetting(f"{head.label} has messages 1 to {head.position}; there is no point after message {position}.")
    if not 0 <= number <= head.number:
        raise BadSetting(f"{head.label} has edits 1 to {head.number}; there is no point after edit {number}.")


def check_not_behind(head: Head, now: Head) -> None:
    """Raise StoreRolledBack if the branch, as it is `now`, ends before `head`, which the store acknowledged."""
    if now.position < head.position or now.number < head.number or now.erased < head.erased:
        raise rolled_back(head, now)


def rolled_back(head: Head, now: Head) -> StoreRolledBack:
    """Return the error for a branch that does not run through `head` any more."""
    return StoreRolledBack(head.name, (head.position, head.number), (now.position, now.number), head.tenant)


def check_journal(head: Head, now: Head) -> None:
    """Raise ConflictError if the view was changed, or something was erased, since `head` was read."""
    if (now.name, now.number, now.record, now.erased) != (head.name, head.number, head.record, head.erased):
        raise commit_conflict(head, now)


def check_no_repeats(head: Head, since: Iterable[Stamp]) -> None:
    """Raise ConflictError if a message that was appended since `head` was read repeats others."""
    if any(stamp.expanded and stamp.expanded.is_copy for stamp in since):
        raise ConflictError(
            f"A message that repeats others was added to {head.label} after message {head.position}, up to which it "
            "was read. Read it again."
        )


def check_spans(head: Head, spans: Sequence[tuple[int, int]]) -> None:
    """Raise BadSetting if `head` has no such spans of positions; (1, 0) is an empty span."""
    for first, last in spans:
        if not (1 <= first <= last <= head.position or (first, last) == (1, 0)):
            raise BadSetting(
                f"{head.label} has messages 1 to {head.position}; there are no messages {first} to {last}."
            )


def too_old_to_erase(head: Head, what: str) -> StoreError:
    """Return the error for data that cannot be erased without breaking the chain."""
    return StoreError(
        f"{what} written by an old foveate, whose chains contain the texts themselves, so {head.label} could not be "
        f"verified any more without them. Nothing was erased. Append the messages that may stay to a conversation in "
        f"a new database, and delete this one."
    )


def name_taken(tenant: str, name: str) -> BadSetting:
    """Return the error for a name that another conversation has."""
    return BadSetting(f"There already is a conversation {conversation_label(tenant, name)}. Choose another name.")


def lock_lost(head: Head, holder: LockHolder | None) -> ConversationBusy:
    """Return the error for an agent that does not hold the lock any more; `holder` does."""
    if holder is None:
        return ConversationBusy(
            f"This agent lost the lock on {head.label}: it sent no heartbeat for too long, and another agent that took "
            "its work over has ended since. Nothing was written. Resume to see the result."
        )
    return ConversationBusy(
        f"Another agent has taken over the work in {head.label}: this one sent no heartbeat for too long. Nothing was "
        f"written. The other agent continues the run; resume when it has ended.",
        holder.owner,
    )


def append_conflict(head: Head, now: Head) -> ConflictError:
    """Return the error for a writer whose head is not the current one, `now`."""
    if now.name != head.name:
        return ConflictError(
            f"{head.label} was moved to another branch; this one is called {now.name!r} now. Open it again."
        )
    return ConflictError(
        f"Another writer extended {head.label} first: it has {now.position} messages, and this writer read "
        f"{head.position}. Nothing was written. Open it again, then retry."
    )


def commit_conflict(head: Head, now: Head) -> ConflictError:
    """Return the error for a plan whose head is not the current one, `now`."""
    if now.erased != head.erased:
        return ConflictError(
            f"Something was erased in {head.label} since this plan was made. Nothing was written. Plan again."
        )
    if now.name != head.name:
        return ConflictError(
            f"{head.label} was moved to another branch; this one is called {now.name!r} now. Plan again."
        )
    return ConflictError(
        f"Another writer changed the view of {head.label} first: its journal has {now.number} edits, this plan was "
        f"made for {head.number}. Nothing was written. Plan again."
    )


def check_names_exist(value: Action | Binding, actions: Iterable[Action], prompts: Iterable[Prompt]) -> None:
    """Raise BadSetting if `value` names an action or a prompt that does not exist."""
    if isinstance(value, Binding):
        kind, prompt = f"binding {value.id!r}", value.compact_prompt
        if value.action not in (names := [action.name for action in actions]):
            raise BadSetting(f"The {kind} names an action that does not exist. {_known('action', names)}")
    else:
        kind, prompt = f"action {value.name!r}", value.default_compact_prompt
    if prompt and prompt not in (names := [prompt.name for prompt in prompts]):
        raise BadSetting(
            f"The {kind} names the prompt {prompt!r}, which does not exist. {_known('prompt', names)} Without a name "
            "the usual prompt is used."
        )


def check_prompt_is_new(prompt: Prompt, prompts: Iterable[Prompt]) -> None:
    """Raise BadSetting if the name of another prompt means the same."""
    for other in prompts:
        if other.name != prompt.name and prompt_key(other.name) == prompt_key(prompt.name):
            raise BadSetting(
                f"There is a prompt {other.name!r} already, and {prompt.name!r} means the same. Change that one, or "
                f"choose another name."
            )


def check_action_unused(name: str, bindings: Iterable[Binding]) -> None:
    """Raise BadSetting if an agent is bound to this action."""
    agents = [binding.agent for binding in bindings if binding.action == name]
    if agents:
        raise BadSetting(f"The action {name!r} is still bound to {_listed(agents)}. Drop the bindings first.")


def check_prompt_unused(name: str, actions: Iterable[Action], bindings: Iterable[Binding]) -> None:
    """Raise BadSetting if an action or a binding names this prompt."""
    users = [f"the action {action.name!r}" for action in actions if action.default_compact_prompt == name]
    users += [f"the binding {binding.id!r}" for binding in bindings if binding.compact_prompt == name]
    if users:
        raise BadSetting(f"The prompt {name!r} is still named by {_listed(users)}. Let them name another prompt first.")


def _known(what: str, names: list[str]) -> str:
    return f"Known: {_listed(names)}." if names else f"There is no {what} yet; set it first."


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:10])
    return f"{shown} and {len(names) - 10} more" if len(names) > 10 else shown
