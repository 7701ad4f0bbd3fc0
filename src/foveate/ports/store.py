"""What a store must do: keep conversations, whole and in order, whoever else writes.

Knows no database. `testing.store_contract` has as tests what is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol

from ..core.edits import Record
from ..core.runs import AgentRun, AgentRunStep, Claim
from ..core.stamps import StampRow
from .kept import Appended, Branch, Erased, Finding, Found, Head, Stray, Tail

__all__ = ["Store"]


class Store(Protocol):
    """Keeps conversations. Every write is one transaction, refused whole if the head it was made for is no longer
    current.

    Branches: a conversation's messages are positions 1..n. A fork shares the positions up to its fork point with
    the branch it came from and has its own after it; the same holds for journal records. Names are unique per
    tenant.
    """

    def open(self, tenant: str, name: str, *, create: bool = True) -> Head:
        """The head of a conversation; made empty if there is none and `create`, else NoSuchConversation."""
        ...

    def append(self, head: Head, rows: Sequence[Appended], *, owner: str = "") -> Head:
        """Add messages after the tip, all or none. Raises ConflictError if the tip is no longer `head`'s.

        With `owner`, only while that one has the claim on this branch, of which this is a sign of life; else
        ConversationBusy.
        """
        ...

    def extend(self, head: Head, make: Callable[[Tail], Sequence[Appended]], *, owner: str = "") -> Tail:
        """Add the messages that `make` returns after the tip, wherever it is by then, all or none; returns what there
        is beyond `head` once they are there, they themselves last.

        Writers that come at once wait for each other, as far as the database lets them in the order in which they came,
        so nobody loses a race: `make` is handed what is beyond `head`, and nobody else appends until its rows are
        there. It must be pure and quick, and not call the store: others wait; it is called more than once, by any
        thread, and all but what the last call returned is dropped. Whatever it raises is raised, and nothing is
        written. Raises ConflictError, before anything is written, where `head` is too far behind (hundreds of
        messages) or
        its name stands for another branch by now: follow `tail`, then retry. `owner`: as for `append`.
        """
        ...

    def tail(self, head: Head) -> Tail:
        """What the conversation has beyond `head`, which is of any time. Raises NoSuchConversation if its name stands
        for nothing any more.
        """
        ...

    def commit(self, head: Head, record: Record, record_id: str) -> Head:
        """Add one record to the journal. Raises ConflictError if the journal is no longer `head`'s.

        Messages appended meanwhile by others do not make a plan stale: it names what it covers.
        """
        ...

    def commit_all(self, head: Head, records: Sequence[tuple[str, Record]]) -> Head:
        """Add records that follow each other to the journal, each with its id, all or none; as an import brings them.

        Raises ConflictError as `commit` does. None at all change nothing.
        """
        ...

    def messages(self, head: Head, first: int, last: int) -> list[Appended]:
        """Positions first..last (both included; clipped to what there is), in order."""
        ...

    def stamps(self, head: Head, first: int, last: int) -> list[StampRow]:
        """The same without what they say, which costs little however much that is. Proves nothing of the chains."""
        ...

    def pick(self, head: Head, positions: Sequence[int]) -> list[Appended]:
        """The messages at these positions, in order of position; runs of neighbours are read as one range."""
        ...

    def locate(self, head: Head, ids: Sequence[str]) -> dict[str, int]:
        """Positions of the messages with these ids; ids this conversation does not have are left out."""
        ...

    def search(self, head: Head, query: str, limit: int = 20) -> list[Found]:
        """Messages of this conversation, forks' common past included, that hold the words of `query`; best first.

        Words count without regard to case. First come those in which the words of the query stand in a row, then
        others that hold every word, each the newest first; then those that hold some. `"two words"` in quotation marks
        stand together. A query without any word finds nothing. Erased messages are never found.
        """
        ...

    def records(self, head: Head, after: int = 0) -> list[tuple[str, Record]]:
        """Journal records, each with its id, whose first edit's number is above `after`, in order."""
        ...

    def fork(self, head: Head, name: str, position: int, number: int) -> Head:
        """A new conversation that shares positions 1..position and the edits up to `number`.

        `number` must end a record. Raises BadSetting if the name is taken.
        """
        ...

    def repoint(self, head: Head, position: int, number: int, keep: str) -> Head:
        """Move this conversation to a new branch at `position`, keeping the old one under the name `keep`. One
        transaction.
        """
        ...

    def branches(self, head: Head) -> list[Branch]:
        """Every conversation of the tree of forks that this one belongs to, as they stand now, by branch: each after
        the one it left.
        """
        ...

    def rename(self, tenant: str, names: Mapping[str, str]) -> None:
        """Give conversations other names, from old to new, all or none. Raises BadSetting where one is taken or given
        twice, and NoSuchConversation. Whoever holds a head with an old name has to open it again.
        """
        ...

    def snapshot(self, head: Head) -> tuple[int, int, bytes] | None:
        """The newest saved (position, number, bytes) at or before this head, on this branch or one it came from."""
        ...

    def save_snapshot(self, head: Head, position: int, number: int, body: bytes) -> None:
        """Keep this snapshot instead of the branch's previous one. Losing one loses time, never data."""
        ...

    def names(self, tenant: str) -> list[str]:
        """The names of this tenant's conversations, sorted."""
        ...

    def tenants(self) -> dict[str, int]:
        """Whose conversations there are, sorted, and how many each has. Reads all names there are."""
        ...

    def census(self, tenant: str | None = None) -> Iterator[Head | Stray]:
        """Every conversation there is, of one tenant or of all, tree after tree, and whatever belongs to none of them.

        Some are read at a time, so it takes little memory whatever there is; others may write meanwhile, and what they
        begin may be left out. Nothing is hashed: that is what `verify` does with a head. Raises Damaged where what
        there is cannot even be listed.
        """
        ...

    def put_run(self, head: Head, run: AgentRun, *, owner: str = "") -> None:
        """Keep a run of an agent with this conversation, instead of what was kept under its id. Durable on return.

        `owner`: as for `append`.
        """
        ...

    def put_step(self, head: Head, step: AgentRunStep, *, owner: str = "") -> None:
        """Keep a step of a run, instead of what was kept under its number. Durable on return. `owner`: as for runs."""
        ...

    def claim(self, head: Head, owner: str, instead_of: Claim | None = None) -> Claim:
        """Claim this branch for one who is at work in it, and return the claim that there is now: whoever finds
        another owner in it does not have it.

        It is had by whom nobody else has it before, by who has it already (a sign of life), and where it still is
        exactly `instead_of`, whose owner is dead. The two cannot both succeed: a sign of life makes another claim.
        """
        ...

    def beat(self, head: Head, owner: str) -> bool:
        """A sign of life, and whether `owner` has the claim on this branch. Makes none where there is none."""
        ...

    def release(self, head: Head, owner: str) -> None:
        """Give up the claim on this branch, if `owner` has it."""
        ...

    def runs(self, head: Head) -> list[AgentRun]:
        """The runs that were kept with this conversation or one it shares its tree of forks with, oldest first."""
        ...

    def steps(self, head: Head, run: str, after: int = 0) -> list[AgentRunStep]:
        """The steps of one of these runs with numbers above `after`, in order; none where there is no such run."""
        ...

    def verify(self, head: Head) -> list[Finding]:
        """Re-hash everything of this conversation: messages, stamps, journal, head. Nothing wrong: an empty list."""
        ...

    def check_database(self) -> tuple[list[Finding], list[str]]:
        """Let the database check its own files, and look for triggers and views in it that foveate did not make.

        Returns the faults, and notes about checks that could not run.
        """
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
    ) -> Erased:
        """Erase what the messages of some spans say (positions first..last, both included), and everything in their
        tree of forks that was made of it. One transaction; what is erased already is passed over.

        What stays is a tombstone: position, id, seal, stamp and the body's hash, so that all chains verify. `runs`: the
        texts of all runs that were kept under this conversation's name too, or of those with these ids. `keep_shown`:
        summaries that a view of the tree still shows stay, and are marked as outliving what they were made of; those
        that were marked before, and are shown no more, go. Writers who read before are told (ConflictError).

        `seen`: the branches of the tree as they were when the caller found that nobody needs these messages. Raises
        ConflictError where a branch that shares some of them is not among these, or changed its view since; where a
        message
        came to it that shows others again or, with `is_still`, any message. Nothing is erased then.

        Raises BadSetting where there are no such positions, StoreError where a record that is older than outlines would
        have to change; nothing is erased then.
        """
        ...

    def erasures(self, head: Head) -> list[Erased]:
        """What was erased in this tree of forks, in order."""
        ...

    def keep_erasure(self, head: Head, erased: Erased) -> None:
        """Keep the record of an erasure that was made elsewhere, in the store this conversation is imported from.

        Nothing is erased. One whose number is not the next of this tree of forks is passed over.
        """
        ...

    def discard(self, head: Head, prefix: str) -> None:
        """Take away this whole tree of forks, with all that lies in it, as if it had never been: what an import began
        and did not finish.

        Raises BadSetting, and takes nothing away, unless the name of every conversation in it begins with `prefix`.
        """
        ...

    def leftovers(self, head: Head) -> tuple[int, list[Finding]]:
        """How many messages of this conversation are erased, and whatever there still is that was made of them."""
        ...

    def vacuum(self) -> None:
        """Give back the room of what is gone, for good: after it the files hold no byte of it. May take long."""
        ...

    def close(self) -> None:
        """Finish what was accepted and let go of files and connections. Calling it again does nothing."""
        ...
