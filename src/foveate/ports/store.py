"""The store: twelve methods that every store has, and capabilities that a store may have.

`foveate.testing.store_contract` tests each of them. A new store starts with `Store` and adds capabilities one by one;
`complete` makes any store usable, and raises BadSetting if a missing capability is used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, Self

from msgspec.structs import replace

from ..core.catalog import Action, Binding, Prompt
from ..core.edits import Record
from ..core.runs import AgentRun, AgentRunStep, LockHolder
from ..core.stamps import StampRow
from ..errors import ConflictError
from .values import Branch, Changes, Erasure, Finding, Head, Listed, Orphan, SearchHit, StoredMessage

__all__ = [
    "Audits",
    "Database",
    "Erases",
    "HasCatalog",
    "Imports",
    "KeepsRuns",
    "Lists",
    "Locks",
    "Releases",
    "Rewinds",
    "SavesViews",
    "Searches",
    "Store",
    "append",
]


class Store(Protocol):
    """Keeps conversations. Every write is one transaction.

    A conversation has messages at positions 1..n and a journal of numbered edits. A fork shares the positions up to its
    fork point with its parent branch and has its own after it; the same holds for journal records. Names are unique per
    tenant. Every method but `open` and `names` takes a head, raises NoSuchConversation if its branch does not exist,
    and raises StoreRolledBack if the branch ends before the head.
    """

    def open(self, tenant: str, name: str, *, create: bool = True) -> Head:
        """Return the head of a conversation. If there is none, create it empty, or raise NoSuchConversation."""
        ...

    def extend(self, head: Head, make: Callable[[Changes], Sequence[StoredMessage]], *, owner: str = "") -> Changes:
        """Append the messages that `make` returns, all or none, wherever the tip is now.

        `make` receives the changes since `head` and returns rows that follow them; no other writer appends until these
        rows are stored. Concurrent writers wait for each other, as far as possible in the order in which they came.
        `make` must be pure and fast, and must not call the store. It may be called several times, by any thread; only
        the rows of the last call count. An exception that it raises is passed on, and nothing is written.

        Returns the changes since `head`, with the new rows at the end. Raises ConflictError, before anything is
        written, if `head` is hundreds of messages behind or its name leads to another branch: call `changes`, then
        retry. `owner`: only if this owner holds the lock on the branch (`Locks`), which this write refreshes; else
        ConversationBusy.
        """
        ...

    def changes(self, head: Head) -> Changes:
        """Return the changes to a conversation since `head`, of any age.

        Raises NoSuchConversation if the name does not exist any more.
        """
        ...

    def commit(self, head: Head, record: Record, record_id: str) -> Head:
        """Add one record to the journal. Raises ConflictError if the journal does not end with `head`.

        Messages that others appended since are no conflict: a plan names the messages that it covers.
        """
        ...

    def messages(self, head: Head, first: int, last: int) -> list[StoredMessage]:
        """Return positions first..last, both included, in order; positions that do not exist are left out."""
        ...

    def get_many(self, head: Head, positions: Sequence[int]) -> list[StoredMessage]:
        """Return the messages at these positions, each once, in order; positions that do not exist are left out."""
        ...

    def locate(self, head: Head, ids: Sequence[str]) -> dict[str, int]:
        """Return the positions of the messages with these ids; unknown ids are left out."""
        ...

    def records(self, head: Head, after: int = 0) -> list[tuple[str, Record]]:
        """Return the journal records whose first edit has a number above `after`, each with its id, in order."""
        ...

    def fork(self, head: Head, name: str, position: int, number: int) -> Head:
        """Create a conversation that shares positions 1..position and the edits up to `number`.

        `number` must be the last edit of a record. Raises BadSetting if it is not, or if the name is taken.
        """
        ...

    def names(self, tenant: str) -> list[str]:
        """Return the names of this tenant's conversations, sorted."""
        ...

    def verify(self, head: Head) -> list[Finding]:
        """Compute all hashes of a conversation again: messages, stamps, journal, head. Return the faults."""
        ...

    def close(self) -> None:
        """Finish the accepted writes and release files and connections. A second call does nothing."""
        ...


class SavesViews(Protocol):
    """Saves views, so that a conversation opens fast. A lost view costs time, never data."""

    def snapshot(self, head: Head) -> tuple[int, int, bytes] | None:
        """Return the newest saved (position, number, bytes) at or before `head`, on its branch or on an ancestor."""
        ...

    def save_snapshot(self, head: Head, position: int, number: int, body: bytes, view: Sequence[bytes] = ()) -> None:
        """Save a snapshot instead of the previous one of the branch.

        `view`: what its view shows, in pieces. Every erasure and every release in the tree of forks deletes it.
        """
        ...

    def saved_view(self, head: Head, position: int, number: int) -> Iterable[bytes]:
        """Yield the pieces of what the view of the snapshot with this position and number shows, if it was saved.

        Pieces that are damaged, and all after them, are left out.
        """
        ...


class Rewinds(Protocol):
    """Sets a conversation back to an earlier point, and lists the tree of its forks."""

    def repoint(self, head: Head, position: int, number: int, keep: str) -> Head:
        """Move a conversation to a new branch at `position`; the old branch gets the name `keep`."""
        ...

    def branches(self, head: Head) -> list[Branch]:
        """Return every conversation of the tree of forks, by branch: each after its parent."""
        ...


class Lists(Protocol):
    """Lists conversations page by page."""

    def recent(
        self, tenant: str, *, words: Sequence[str] = (), first: int = 0, limit: int = 50
    ) -> tuple[list[Listed], int]:
        """Return conversations whose names contain all these words, and the number of all such conversations.

        The one with the newest message is first; those without a known time are last. `first`: how many to leave out.
        Upper and lower case of the letters A to Z are the same. Reads a whole tenant, but no message.
        """
        ...


class Searches(Protocol):
    """Finds messages by their words."""

    def search(self, head: Head, query: str, limit: int = 20) -> list[SearchHit]:
        """Return the messages of this conversation that contain words of `query`, best first.

        Upper and lower case are the same, and so are the forms of a word, and the forms of a name (`getUserId`,
        `user_id`). Messages that contain all words in a row come first, then messages that contain every word, each
        newest first, then messages that contain some. Words in quotation marks must stand together as they are. A
        query without words finds nothing. Erased messages are never found.
        """
        ...


class KeepsRuns(Protocol):
    """Keeps the runs of agents and their steps."""

    def put_run(self, head: Head, run: AgentRun, *, owner: str = "") -> None:
        """Store a run; it replaces the run with the same id. Durable on return. `owner`: as for `Store.extend`."""
        ...

    def put_step(self, head: Head, step: AgentRunStep, *, owner: str = "") -> None:
        """Store a step of a run; it replaces the step with the same number. Durable on return."""
        ...

    def runs(self, head: Head) -> list[AgentRun]:
        """Return the runs of this tree of forks, oldest first."""
        ...

    def steps(self, head: Head, run: str, after: int = 0) -> list[AgentRunStep]:
        """Return the steps of a run with numbers above `after`, in order; none if there is no such run."""
        ...


class Locks(Protocol):
    """Locks a branch for one owner. Owners send heartbeats; the lock of a dead owner can be replaced."""

    def acquire_lock(self, head: Head, owner: str, replaces: LockHolder | None = None) -> LockHolder:
        """Lock this branch for `owner`, and return its holder now; another owner means that the lock is taken.

        `owner` gets the lock if it is free, if `owner` holds it already (a heartbeat), or if its holder still equals
        `replaces`, whose owner is dead. A heartbeat changes the holder, so an owner that lives is never replaced.
        """
        ...

    def heartbeat(self, head: Head, owner: str) -> bool:
        """Refresh the lock. Return whether `owner` holds it; if not, nothing changes."""
        ...

    def release_lock(self, head: Head, owner: str) -> None:
        """Release the lock on this branch if `owner` holds it."""
        ...


class Erases(Protocol):
    """Erases messages and all data derived from them, so that all chains still verify."""

    def stamps(self, head: Head, first: int, last: int) -> list[StampRow]:
        """Return positions first..last without their bodies. Cheap, and without any check of the chains."""
        ...

    def erase(
        self,
        head: Head,
        spans: Sequence[tuple[int, int]],
        *,
        runs: bool | Collection[str] = False,
        keep_shown: bool = False,
        seen: Sequence[Head] = (),
        is_still: bool = False,
        who: str = "",
        reason: str = "",
        time: int = 0,
    ) -> Erasure:
        """Erase the bodies of positions first..last of each span, and all data in their tree that derives from them.

        One transaction. Erased messages are skipped. A tombstone stays: position, id, seal, stamp and the hash of the
        body, so that all chains verify. `runs`: also erase the texts of all runs of this conversation, or of the runs
        with these ids. `keep_shown`: keep summaries that a view of the tree shows, marked as outliving their messages;
        summaries that were marked before and are not shown any more are erased. Writers that read before get a
        ConflictError.

        `seen`: the heads of the tree when the caller decided that the messages are not needed. Raises ConflictError if
        a branch that shares some of them is missing in `seen` or changed its view since, or if it got a message that
        repeats others or, with `is_still`, any message. Raises BadSetting if a position does not exist, and StoreError
        if a record from before redacted forms would have to change. Nothing is erased then.
        """
        ...

    def erasures(self, head: Head) -> list[Erasure]:
        """Return the erasures in this tree of forks, in order."""
        ...

    def find_residue(self, head: Head) -> tuple[int, list[Finding]]:
        """Return the number of erased messages, and everything that still contains data derived from them."""
        ...

    def vacuum(self) -> None:
        """Remove deleted data from the files for good, and shrink them. May take long."""
        ...


class Releases(Rewinds, Protocol):
    """Releases originals: stores an outline of a message in place of it, so that all chains still verify.

    A store without this keeps all originals.
    """

    def release(self, head: Head, record: Record, record_id: str, outlines: Mapping[int, bytes]) -> Head:
        """Add one record to the journal as `commit` does, and store these outlines in place of messages.

        One transaction. `outlines`: the canonical bytes by position; edits of the record name the hash of each. Hash
        and id of the message stay, and `verify` compares the outline with the newest edit that names one. If an edit
        releases a whole message, the output of the step that produced it becomes `[released]` too.
        Raises ConflictError, and writes nothing, if another branch shares one of the messages, and BadInput for
        outlines that the record does not name.
        """
        ...


class Audits(Protocol):
    """Lists all that a store contains."""

    def tenants(self) -> dict[str, int]:
        """Return the tenants, sorted, with the number of their conversations. Reads all names."""
        ...

    def census(self, tenant: str | None = None) -> Iterator[Head | Orphan]:
        """Yield every conversation of one tenant or of all, tree after tree, and everything that belongs to none.

        Reads a page at a time, so it needs little memory. Others may write meanwhile; conversations that they start may
        be left out. Nothing is hashed: pass a head to `verify` for that. Raises Damaged if the store cannot be listed.
        """
        ...

    def check_database(self) -> tuple[list[Finding], list[str]]:
        """Let the database check its own files, and find triggers and views that foveate did not create.

        Returns the faults, and notes about checks that could not run.
        """
        ...


class Imports(Protocol):
    """Writes what an import brings, and removes an import that was not finished."""

    def commit_all(self, head: Head, records: Sequence[tuple[str, Record]]) -> Head:
        """Add consecutive records to the journal, each with its id, all or none. Raises as `Store.commit` does."""
        ...

    def rename(self, tenant: str, names: Mapping[str, str]) -> None:
        """Rename conversations from old to new, all or none. Heads with an old name must be opened again.

        Raises BadSetting if a name is taken or given twice, and NoSuchConversation.
        """
        ...

    def add_erasure(self, head: Head, erasure: Erasure) -> None:
        """Store the record of an erasure that was made in another store. Nothing is erased.

        A record whose number is not the next one of this tree is ignored.
        """
        ...

    def discard(self, head: Head, prefix: str) -> None:
        """Delete this whole tree of forks.

        Raises BadSetting, and deletes nothing, unless the name of every conversation in it begins with `prefix`.
        """
        ...


class HasCatalog(Protocol):
    """Keeps the catalog of a tenant's agents: actions, bindings and prompts.

    Values are checked before they are stored: BadSetting for what `core.catalog` refuses. A value replaces the one with
    the same name.
    """

    def put_action(self, tenant: str, action: Action) -> None:
        """Store an action. Raises BadSetting if the prompt that it names does not exist."""
        ...

    def put_binding(self, tenant: str, binding: Binding) -> None:
        """Store a binding. Raises BadSetting if its action or its prompt does not exist."""
        ...

    def put_prompt(self, tenant: str, prompt: Prompt) -> None:
        """Store a prompt. Raises BadSetting if another prompt's name means the same (`core.catalog.prompt_key`)."""
        ...

    def actions(self, tenant: str) -> list[Action]:
        """Return all actions, by name."""
        ...

    def bindings(self, tenant: str, agent: str = "") -> list[Binding]:
        """Return the bindings of one agent, or of all, by agent and action."""
        ...

    def prompts(self, tenant: str) -> list[Prompt]:
        """Return all prompts, by name."""
        ...

    def drop_action(self, tenant: str, name: str) -> bool:
        """Delete an action. Return whether it existed. Raises BadSetting if an agent is bound to it."""
        ...

    def drop_binding(self, tenant: str, agent: str, action: str) -> bool:
        """Delete a binding. Return whether it existed."""
        ...

    def drop_prompt(self, tenant: str, name: str) -> bool:
        """Delete a prompt. Return whether it existed. Raises BadSetting if an action or a binding names it."""
        ...


class Database(
    Store, SavesViews, Lists, Releases, Searches, KeepsRuns, Locks, Erases, Audits, Imports, HasCatalog, Protocol
):
    """A store with all capabilities, such as each of foveate's own. A `with` block closes it."""

    def __enter__(self) -> Self:
        """Return the store itself."""
        ...

    def __exit__(self, *exception: object) -> None:
        """Close the store."""
        ...


def append(store: Store, head: Head, rows: Sequence[StoredMessage], *, owner: str = "") -> Head:
    """Append rows to a conversation that must still end with `head`; return the new head.

    Raises ConflictError if another writer appended since. `owner`: as for `Store.extend`. If something was erased
    since, the new head still has the old number of the erasure, so that the next commit fails.
    """

    def make(changes: Changes) -> Sequence[StoredMessage]:
        if (changes.head.tip, changes.head.seal) != (head.tip, head.seal):
            raise ConflictError(
                f"Another writer extended {head.name!r} first: it has {changes.head.position} messages, and this "
                f"writer read {head.position}. Nothing was written. Open it again, then retry."
            )
        return rows

    changes = store.extend(head, make, owner=owner)
    if not rows:
        make(changes)
    now = changes.head
    return now if now.erased == head.erased else replace(now, erased=head.erased)
