"""What a store demands of what it is handed, and what it hands back: the same for every store.

Before writing: rows continue the chain of the head they are for, and a record continues its journal. After reading:
each message's body has the hash its id was made of. A chain that was wrong once could never be verified again, so
neither is taken on trust. Hashes and numbers only; nothing here knows where rows lie.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ..core import ids, wire
from ..core.edits import Record
from ..core.redacted_form import redacted_record, redacted_stamp
from ..core.runs import AgentRun, AgentRunStep, Claim
from ..core.stamps import Stamp
from ..errors import (
    BadInput,
    BadSetting,
    ConflictError,
    ConversationBusy,
    NoSuchConversation,
    StoreError,
    StoreRolledBack,
)
from ..ports import Appended, Erased, Head

__all__ = [
    "CLOSED",
    "append_conflict",
    "check_erased",
    "check_held",
    "check_journal",
    "check_keys",
    "check_names",
    "check_not_shown_again",
    "check_owner",
    "check_point",
    "check_prefix",
    "check_record",
    "check_rows",
    "check_run",
    "check_spans",
    "check_step",
    "check_words",
    "commit_conflict",
    "no_branch",
    "taken",
    "taken_over",
    "too_early",
    "went_back",
]

CLOSED = "This store was closed. Open it again."

_NAME_MAX = 500
_HASH = re.compile("[0-9a-f]{40}")


def check_keys(tenant: str, name: str) -> None:
    """Raises BadSetting where a tenant or a conversation's name cannot be a key in every database."""
    check_words("conversation", tenant=tenant, name=name)
    if not name:
        raise BadSetting("A conversation needs a name.")


def check_names(tenant: str, names: Mapping[str, str]) -> None:
    """Raises BadSetting where conversations cannot be renamed like this, whatever there is."""
    for name in names.values():
        check_keys(tenant, name)
    if len({*names, *names.values()}) < 2 * len(names):
        raise BadSetting("Each name can be given once, and not to a conversation while another one gives it up.")


def check_words(whose: str, **words: str) -> None:
    """Raises BadSetting where one of these short texts cannot be kept as text in every database."""
    for what, text in words.items():
        if len(text) > _NAME_MAX:
            of = f"an {whose}" if whose[0] in "aeiou" else f"a {whose}"
            raise BadSetting(f"The {what} of {of} has {len(text):,} characters; at most {_NAME_MAX} are allowed.")
        if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise BadSetting(f"The {what} {text!r} holds a NUL or half of a surrogate pair. Choose another one.")


def check_owner(owner: str) -> None:
    """Raises BadSetting where a name cannot be that of a claim's owner in every database."""
    check_words("claim", owner=owner)
    if not owner:
        raise BadSetting("A claim needs an owner.")


def check_run(run: AgentRun) -> None:
    """Raises BadSetting where a run cannot be kept in every database. Long texts may hold anything."""
    check_words("run", id=run.id, agent=run.agent, conversation=run.conversation, parent=run.parent)
    if not run.id:
        raise BadSetting("A run needs an id.")


def check_step(step: AgentRunStep) -> None:
    """Raises BadSetting where a step cannot be kept in every database. Long texts may hold anything."""
    check_words("step", run=step.run, name=step.name, call=step.call, message=step.message)
    if not step.run or step.number < 1:
        raise BadSetting(f"A step needs the id of its run and a number from 1, not {step.run!r} and {step.number}.")


def check_erased(erased: Erased) -> None:
    """Raises BadSetting where the record of an erasure cannot be kept in every database."""
    check_words("erasure", who=erased.who, reason=erased.reason, name=erased.name)
    if re.search(r"[^m0-9 -]", erased.handles) or erased.number < 1:
        raise BadSetting(
            f"The record of an erasure has a number from 1 and names handles, not {erased.number} and "
            f"{erased.handles!r:.50}."
        )


def check_rows(head: Head, rows: Sequence[Appended]) -> None:
    """Raises BadInput where these rows do not follow each other from `head` on."""
    position, tip, seal = head.position, head.tip, head.seal
    for row in rows:
        position += 1
        problem = ""
        if row.position != position:
            problem = f"it says it is message {row.position}"
        elif not _HASH.fullmatch(row.body_hash):
            problem = "its body's hash is not one"
        elif row.body and ids.body_hash(row.body) != row.body_hash:
            problem = "its body has another hash than it says"
        elif ids.message_id(tip, row.body_hash) != row.id:
            problem = "its id does not follow from its body and the message before it"
        elif not _seals(seal, row):
            problem = "its seal does not follow from its stamp and the seal before it"
        if problem:
            raise BadInput(f"Message {position} of {head.name!r} cannot be appended: {problem}. Nothing was written.")
        tip, seal = row.id, row.seal


def _seals(parent: str, row: Appended) -> bool:
    """Whether the seal of a row is made of its stamp: of its outline, or, as before there were outlines, its bytes."""
    if ids.seal(parent, row.id, redacted_stamp(row.stamp)) == row.seal:
        return True
    return bool(row.stamp.metadata) and ids.seal(parent, row.id, wire.encode_stamp(row.stamp)) == row.seal


def check_record(head: Head, record: Record, record_id: str) -> bytes:
    """The record's canonical bytes. Raises BadInput where it does not follow the newest record of `head`."""
    body = wire.encode_record(record)
    problem = ""
    if not record.edits:
        problem = "it holds no edit"
    elif record.first != head.number + 1:
        problem = f"its first edit is numbered {record.first}, and the next number is {head.number + 1}"
    elif record_id != ids.record_id(head.record, redacted_record(record)) and (
        record_id != ids.legacy_record_id(head.record, body)  # Imported, and older than outlines.
    ):
        problem = "its id does not follow from its content and the record before it"
    if problem:
        raise BadInput(f"A record cannot be added to the journal of {head.name!r}: {problem}. Nothing was written.")
    return body


def check_prefix(prefix: str, names: Iterable[str]) -> None:
    """Raises BadSetting where not all of these names begin with this."""
    for name in names:
        if not prefix or not name.startswith(prefix):
            raise BadSetting(f"{name!r} lies in that tree, and does not begin with {prefix!r}. Nothing was taken away.")


def check_point(head: Head, position: int, number: int) -> None:
    """Raises BadSetting where `head` has no such position or edit number."""
    if not 0 <= position <= head.position:
        raise BadSetting(
            f"{head.name!r} has messages 1 to {head.position}; there is no point after message {position}."
        )
    if not 0 <= number <= head.number:
        raise BadSetting(f"{head.name!r} has edits 1 to {head.number}; there is no point after edit {number}.")


def check_held(head: Head, now: Head) -> None:
    """Raises StoreRolledBack where the branch, as it is `now`, ends before what was acknowledged to whoever has
    `head`.
    """
    if now.position < head.position or now.number < head.number or now.erased < head.erased:
        raise went_back(head, now)


def went_back(head: Head, now: Head) -> StoreRolledBack:
    """For a branch that does not run through `head` any more."""
    return StoreRolledBack(head.name, (head.position, head.number), (now.position, now.number))


def check_journal(head: Head, now: Head) -> None:
    """Raises ConflictError where somebody changed the view, or erased, since `head` was read."""
    if (now.name, now.number, now.record, now.erased) != (head.name, head.number, head.record, head.erased):
        raise commit_conflict(head, now)


def check_not_shown_again(head: Head, since: Iterable[Stamp]) -> None:
    """Raises ConflictError where one of the messages that came since `head` was read shows others again."""
    if any(stamp.expanded and stamp.expanded.is_copy for stamp in since):
        raise ConflictError(
            f"Something was shown again in {head.name!r} since it was read up to message {head.position}. Look again."
        )


def check_spans(head: Head, spans: Sequence[tuple[int, int]]) -> None:
    """Raises BadSetting where `head` has no such runs of positions; (1, 0) names none."""
    for first, last in spans:
        if not (1 <= first <= last <= head.position or (first, last) == (1, 0)):
            raise BadSetting(
                f"{head.name!r} has messages 1 to {head.position}; there are no messages {first} to {last}."
            )


def too_early(head: Head, what: str) -> StoreError:
    """For what cannot be erased without breaking the chain that proves all else."""
    return StoreError(
        f"{what} written by a foveate whose chains are made of the texts themselves, so {head.name!r} could not be "
        f"verified any more without them. Nothing was erased. Append what may stay to a conversation in a new "
        f"database, and delete this one."
    )


def taken(name: str) -> BadSetting:
    return BadSetting(f"There already is a conversation {name!r}. Choose another name.")


def no_branch(head: Head, place: str) -> NoSuchConversation:
    """For a head that did not come from this store."""
    return NoSuchConversation(head.name, place)


def taken_over(head: Head, claim: Claim | None) -> ConversationBusy:
    """What to tell an agent whose claim is gone."""
    if claim is None:
        return ConversationBusy(
            f"This agent has no claim on {head.name!r} any more: nothing was heard of it for too long, and another one "
            f"that took its work over has ended since. Nothing was written. Resume to see what came of it."
        )
    return ConversationBusy(
        f"Another agent has taken over the work in {head.name!r}: nothing was heard of this one for too long. Nothing "
        f"was written. What was begun is its affair now; resume when it has ended.",
        claim.owner,
    )


def append_conflict(head: Head, now: Head) -> ConflictError:
    """What to tell a writer whose head is not `now`, the current one."""
    if now.name != head.name:
        return ConflictError(
            f"{head.name!r} was moved to another branch; this one is called {now.name!r} now. Open it again."
        )
    return ConflictError(
        f"Another writer extended {head.name!r} first: it has {now.position} messages, this writer knew "
        f"{head.position}. Nothing was written. Open it again, then retry."
    )


def commit_conflict(head: Head, now: Head) -> ConflictError:
    """What to tell a planner whose head is not `now`, the current one."""
    if now.erased != head.erased:
        return ConflictError(
            f"Something was erased in {head.name!r} since this plan was made. Nothing was written. Plan again."
        )
    if now.name != head.name:
        return ConflictError(
            f"{head.name!r} was moved to another branch; this one is called {now.name!r} now. Plan again."
        )
    return ConflictError(
        f"Another writer changed the view of {head.name!r} first: its journal has {now.number} edits, this plan was "
        f"made for {head.number}. Nothing was written. Plan again."
    )
