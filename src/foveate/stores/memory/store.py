"""A store that keeps everything in lists. Its contents end with the process.

The other stores are tested against it. A fork copies lists here; other stores share rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Self

from msgspec.structs import replace

from ...core import ids, wire
from ...core.caches import clear_caches
from ...core.edits import Record
from ...core.ids import redacted_record, redacted_stamp
from ...core.originals import RELEASED
from ...core.runs import AgentRun, AgentRunStep, LockHolder
from ...errors import BadSetting, NoSuchConversation, StoreError
from ...ports import Branch, Changes, Erasure, Finding, Head, Listed, Orphan, SearchHit, StampRow, StoredMessage
from ...ports.completed_store import has_words
from .. import lineage
from ..audit import JournalLink, MessageLink, audit_head, audit_journal, audit_messages, released_outlines
from ..checks import (
    CLOSED,
    append_conflict,
    check_erasure,
    check_journal,
    check_keys,
    check_names,
    check_not_behind,
    check_owner,
    check_point,
    check_prefix,
    check_record,
    check_release,
    check_rows,
    check_run,
    check_spans,
    check_step,
    check_texts,
    commit_conflict,
    lock_lost,
    name_taken,
    rolled_back,
    step_released,
)
from ..derived_data import derived_data
from ..erasures import check_seen, counted, handles_of, residue, whole_runs
from .catalog import MemoryCatalog
from .tree import MemoryBranch, MemoryTree, MemoryWords

__all__ = ["MemoryStore"]


class MemoryStore(MemoryCatalog):
    """Conversations in the memory of this process. Threads may share it; it is a context manager that closes itself."""

    def __init__(self) -> None:
        super().__init__()
        self._open = True
        self._names: dict[tuple[str, str], tuple[int, int]] = {}
        """(tenant, name) to (root, branch)."""
        self._branches: dict[tuple[str, int, int], MemoryBranch] = {}
        """By (tenant, root, branch)."""
        self._runs: dict[tuple[str, int], dict[str, AgentRun]] = {}
        """By (tenant, root), then by id, oldest first."""
        self._steps: dict[tuple[str, int, str], dict[int, AgentRunStep]] = {}
        """By (tenant, root, id of the run), then by number."""
        self._locks: dict[tuple[str, int, int], LockHolder] = {}
        """By (tenant, root, branch)."""
        self._erasures: dict[tuple[str, int], list[Erasure]] = {}
        """By (tenant, root)."""

    def open(self, tenant: str, name: str, *, create: bool = True) -> Head:
        check_keys(tenant, name)
        with self._lock:
            self._check_open()
            if (tenant, name) not in self._names:
                if not create:
                    raise NoSuchConversation(name, "this memory", tenant)
                root = lineage.root_of(tenant, name)
                self._names[tenant, name] = root, self._new_branch(tenant, root, MemoryBranch(name, [], []))
            return self._head(tenant, *self._names[tenant, name])

    def extend(self, head: Head, make: Callable[[Changes], Sequence[StoredMessage]], *, owner: str = "") -> Changes:
        rows = make(Changes(head))
        check_rows(head, rows)
        if not rows:
            return self.changes(head)
        with self._lock:
            _, now = self._current(head)
            self._check_owner(head, owner)
            if now.name != head.name:
                raise append_conflict(head, now)
            before = self._changes_since(head, now)
            if (now.tip, now.seal) != (head.tip, head.seal):
                rows = make(before)
                check_rows(now, rows)
            self._branches[head.tenant, head.root, head.branch].rows.extend(rows)
            after = self._head(head.tenant, head.root, head.branch)
            return Changes(after) if now.erased != head.erased else before.with_rows(after, rows)

    def changes(self, head: Head) -> Changes:
        with self._lock:
            self._check_open()
            if (head.tenant, head.name) not in self._names:
                raise NoSuchConversation(head.name, "this memory", head.tenant)
            now = self._head(head.tenant, *self._names[head.tenant, head.name])
            if (now.root, now.branch) != (head.root, head.branch):
                return Changes(now)
            check_not_behind(head, now)
            return self._changes_since(head, now) if now.erased == head.erased else Changes(now)

    def commit(self, head: Head, record: Record, record_id: str) -> Head:
        check_record(head, record, record_id)
        with self._lock:
            branch, now = self._current(head)
            check_journal(head, now)
            self._changes_since(head, now)
            branch.journal.append((record_id, record))
            return self._head(head.tenant, head.root, head.branch)

    def release(self, head: Head, record: Record, record_id: str, outlines: Mapping[int, bytes]) -> Head:
        with self._lock:
            branch, now = self._current(head)
            check_release(head, record, outlines, self._tree(now).branches())
            after = self.commit(head, record, record_id)
            for position, outline in outlines.items():
                branch.rows[position - 1] = row = replace(branch.rows[position - 1], body=outline, is_released=True)
                run, number = step_released(record, row.id, row.stamp) or ("", 0)
                steps = self._steps.get((head.tenant, head.root, run), {})
                if number in steps:
                    steps[number] = replace(steps[number], output=RELEASED)
            branch.words = MemoryWords()
            for (tenant, root, _), other in self._branches.items():
                if (tenant, root) == (head.tenant, head.root):
                    other.view = None
            return after

    def commit_all(self, head: Head, records: Sequence[tuple[str, Record]]) -> Head:
        end = head
        for id, record in records:
            check_record(end, record, id)
            end = replace(end, number=record.last, record=id)
        with self._lock:
            branch, now = self._current(head)
            check_journal(head, now)
            branch.journal.extend(records)
            return self._head(head.tenant, head.root, head.branch) if records else head

    def messages(self, head: Head, first: int, last: int) -> list[StoredMessage]:
        with self._lock:
            return self._current(head)[0].rows[max(first, 1) - 1 : max(min(last, head.position), 0)]

    def stamps(self, head: Head, first: int, last: int) -> list[StampRow]:
        return [StampRow(row.position, row.id, row.stamp, len(row.body)) for row in self.messages(head, first, last)]

    def get_many(self, head: Head, positions: Sequence[int]) -> list[StoredMessage]:
        with self._lock:
            rows = self._current(head)[0].rows
            return [rows[position - 1] for position in sorted(set(positions)) if 1 <= position <= head.position]

    def locate(self, head: Head, ids: Sequence[str]) -> dict[str, int]:
        with self._lock:
            positions = {row.id: row.position for row in self._current(head)[0].rows[: head.position]}
            return {id: positions[id] for id in ids if id in positions}

    def search(self, head: Head, query: str, limit: int = 20) -> list[SearchHit]:
        with self._lock:
            branch = self._current(head)[0]
            branch.words.catch_up(branch.rows)
            return branch.words.search(query, limit, head.position)

    def records(self, head: Head, after: int = 0) -> list[tuple[str, Record]]:
        with self._lock:
            journal = self._current(head)[0].journal
            return [(id, record) for id, record in journal if after < record.first <= head.number]

    def fork(self, head: Head, name: str, position: int, number: int) -> Head:
        check_keys(head.tenant, name)
        check_point(head, position, number)
        with self._lock:
            self._current(head)
            if (head.tenant, name) in self._names:
                raise name_taken(head.tenant, name)
            branch = self._leave(head, name, position, number)
            self._names[head.tenant, name] = head.root, branch
            return self._head(head.tenant, head.root, branch)

    def repoint(self, head: Head, position: int, number: int, keep: str) -> Head:
        check_keys(head.tenant, keep)
        check_point(head, position, number)
        with self._lock:
            old, now = self._current(head)
            if (now.name, now.position, now.tip) != (head.name, head.position, head.tip):
                raise append_conflict(head, now)
            if (now.number, now.record) != (head.number, head.record):
                raise commit_conflict(head, now)
            if (head.tenant, keep) in self._names:
                raise name_taken(head.tenant, keep)
            branch = self._leave(head, head.name, position, number)
            old.name = keep
            self._names[head.tenant, keep] = head.root, head.branch
            self._names[head.tenant, head.name] = head.root, branch
            return self._head(head.tenant, head.root, branch)

    def branches(self, head: Head) -> list[Branch]:
        with self._lock:
            self._current(head)
            tree = sorted(number for owner, root, number in self._branches if (owner, root) == (head.tenant, head.root))
            return [
                lineage.branch_of(
                    self._head(head.tenant, head.root, number), self._branches[head.tenant, head.root, number].lineage
                )
                for number in tree
            ]

    def rename(self, tenant: str, names: Mapping[str, str]) -> None:
        check_names(tenant, names)
        with self._lock:
            self._check_open()
            for old, new in sorted(names.items()):
                if (tenant, old) not in self._names:
                    raise NoSuchConversation(old, "this memory", tenant)
                if (tenant, new) in self._names:
                    raise name_taken(tenant, new)
            for old, new in names.items():
                place = self._names[tenant, new] = self._names.pop((tenant, old))
                self._branches[(tenant, *place)].name = new

    def snapshot(self, head: Head) -> tuple[int, int, bytes] | None:
        with self._lock:
            branch, _ = self._current(head)
            seen = [(branch.snapshot, head.position, head.number)]
            for shared in reversed(branch.lineage):
                lender = self._branches[head.tenant, head.root, shared.branch]
                seen.append((lender.snapshot, min(shared.position, head.position), min(shared.number, head.number)))
            usable = [
                saved for saved, position, number in seen if saved and saved[0] <= position and saved[1] <= number
            ]
            # Of two at one point the first: it is from the nearer branch.
            return max(usable, key=lambda saved: saved[:2], default=None)

    def saved_view(self, head: Head, position: int, number: int) -> Sequence[bytes]:
        with self._lock:
            branch, _ = self._current(head)
            lenders = (self._branches[head.tenant, head.root, shared.branch] for shared in reversed(branch.lineage))
            views = (each.view for each in (branch, *lenders))
            return next((saved[2] for saved in views if saved and saved[:2] == (position, number)), ())

    def save_snapshot(self, head: Head, position: int, number: int, body: bytes, view: Sequence[bytes] = ()) -> None:
        check_point(head, position, number)
        with self._lock:
            branch, now = self._current(head)
            if now.erased == head.erased:  # Else it may contain text that was erased since.
                branch.snapshot = position, number, body
                branch.view = (position, number, tuple(view)) if view else None

    def names(self, tenant: str) -> list[str]:
        with self._lock:
            self._check_open()
            return sorted(name for owner, name in self._names if owner == tenant)

    def recent(
        self, tenant: str, *, words: Sequence[str] = (), first: int = 0, limit: int = 50
    ) -> tuple[list[Listed], int]:
        with self._lock:
            self._check_open()
            found = [
                (-(rows[-1].stamp.time if (rows := branch.rows) else 0), root, number, branch)
                for (owner, root, number), branch in self._branches.items()
                if owner == tenant and has_words(branch.name, words)
            ]
            page = sorted(found, key=lambda row: row[:3])[first : first + limit]
            heads = [(self._head(tenant, root, number), -time) for time, root, number, _ in page]
        return [Listed(head.name, head.position, head.number, time) for head, time in heads], len(found)

    def tenants(self) -> dict[str, int]:
        with self._lock:
            self._check_open()
            return dict(sorted(Counter(tenant for tenant, _ in self._names).items()))

    def census(self, tenant: str | None = None) -> Iterator[Head | Orphan]:
        """Return all heads and orphans at one moment: see `Audits.census`."""
        with self._lock:
            self._check_open()
            trees = {(owner, root) for owner, root, _ in self._branches}
            heads: list[Head | Orphan] = [self._head(*key) for key in sorted(self._branches)]
            orphans = [
                Orphan(owner, f"name {name!r}", f"it leads to branch {place[1]} of tree {place[0]}, which is gone")
                for (owner, name), place in self._names.items()
                if (owner, *place) not in self._branches
            ]
            used = {
                key[:2] for table in (self._runs, self._erasures, self._steps) for key, rows in table.items() if rows
            }
            orphans += [Orphan(key[0], f"tree {key[1]}", "there is no such tree") for key in sorted(used - trees)]
        return (entry for entry in (*heads, *orphans) if tenant in (None, entry.tenant))

    def put_run(self, head: Head, run: AgentRun, *, owner: str = "") -> None:
        check_run(run)
        with self._lock:
            self._current(head)
            self._check_owner(head, owner)
            self._runs.setdefault((head.tenant, head.root), {})[run.id] = run

    def put_step(self, head: Head, step: AgentRunStep, *, owner: str = "") -> None:
        check_step(step)
        with self._lock:
            self._current(head)
            self._check_owner(head, owner)
            self._steps.setdefault((head.tenant, head.root, step.run), {})[step.number] = step

    def acquire_lock(self, head: Head, owner: str, replaces: LockHolder | None = None) -> LockHolder:
        check_owner(owner)
        with self._lock:
            self._current(head)
            now = self._locks.get(place := (head.tenant, head.root, head.branch))
            if now is None or now.owner == owner or now == replaces:
                self._locks[place] = now = LockHolder(owner, now.heartbeats + 1 if now else 1)
            return now

    def heartbeat(self, head: Head, owner: str) -> bool:
        check_owner(owner)
        with self._lock:
            self._current(head)
            now = self._locks.get(place := (head.tenant, head.root, head.branch))
            if now is None or now.owner != owner:
                return False
            self._locks[place] = LockHolder(owner, now.heartbeats + 1)
            return True

    def release_lock(self, head: Head, owner: str) -> None:
        check_owner(owner)
        with self._lock:
            self._current(head)
            now = self._locks.get(place := (head.tenant, head.root, head.branch))
            if now is not None and now.owner == owner:
                del self._locks[place]

    def runs(self, head: Head) -> list[AgentRun]:
        with self._lock:
            self._current(head)
            return list(self._runs.get((head.tenant, head.root), {}).values())

    def steps(self, head: Head, run: str, after: int = 0) -> list[AgentRunStep]:
        with self._lock:
            self._current(head)
            there = self._steps.get((head.tenant, head.root, run), {})
            return [there[number] for number in sorted(there) if number > after]

    def verify(self, head: Head) -> list[Finding]:
        with self._lock:
            branch, now = self._current(replace(head, position=0, number=0))
            messages = [
                MessageLink(
                    *(row.position, row.id, row.seal, _stamps(row), row.body_hash, _body_problems(row)),
                    outline=ids.body_hash(row.body) if row.is_released else "",
                )
                for row in branch.rows
            ]
            journal = [
                JournalLink(record.first, record.last, id, wire.encode_record(record), redacted_record(record))
                for id, record in branch.journal
            ]
            end = branch.rows[head.position - 1] if 0 < head.position <= len(branch.rows) else None
            record = next((id for id, record in branch.journal if record.last == head.number), "")
            tree = self._tree(now)
            return [
                *audit_messages(messages, now, lambda: released_outlines(map(tree.records, tree.branches()))),
                *audit_journal(journal, now),
                *audit_head(head, end.id if end else "", end.seal if end else "", record),
            ]

    def check_database(self) -> tuple[list[Finding], list[str]]:
        """Find nothing: there is no file."""
        return [], []

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
        check_spans(head, spans)
        check_texts("erasure", who=who, reason=reason)
        with self._lock:
            branch, now = self._current(head)
            tree = self._tree(now)
            if keep_shown or seen:
                check_journal(head, now)
            if seen:
                check_seen(tree, head, spans, seen, tree.ends(now.erased), is_still=is_still)
            ids = {row.id for first, last in spans for row in branch.rows[first - 1 : last]}
            data = derived_data(tree, ids, runs=whole_runs(now, runs), keep_shown=keep_shown)
            if data.is_empty:
                return Erasure(0)
            tree.check(now, data)
            number = now.erased + 1
            erasure = counted(data, Erasure(number, time, who, reason, now.name, handles_of(spans)))
            tree.write(data, keep_snapshots=keep_shown)
            self._erasures.setdefault((head.tenant, head.root), []).append(erasure)
        clear_caches()
        return erasure

    def erasures(self, head: Head) -> list[Erasure]:
        with self._lock:
            self._current(head)
            return list(self._erasures.get((head.tenant, head.root), ()))

    def add_erasure(self, head: Head, erasure: Erasure) -> None:
        check_erasure(erasure)
        with self._lock:
            self._current(head)
            erasures = self._erasures.setdefault((head.tenant, head.root), [])
            if erasure.number == len(erasures) + 1:
                erasures.append(erasure)

    def discard(self, head: Head, prefix: str) -> None:
        with self._lock:
            self._current(head)
            tree = head.tenant, head.root
            names = {key: branch.name for key, branch in self._branches.items() if key[:2] == tree}
            check_prefix(prefix, names.values())
            for key, name in names.items():
                del self._branches[key], self._names[head.tenant, name]
            self._runs.pop(tree, None)
            self._erasures.pop(tree, None)
            self._steps = {key: steps for key, steps in self._steps.items() if key[:2] != tree}

    def find_residue(self, head: Head) -> tuple[int, list[Finding]]:
        with self._lock:
            branch, now = self._current(head)
            tree, erased = self._tree(now), [row.id for row in branch.rows if not row.body]
            problem = "it was erased, and the index of words still has words of it"
            words = [Finding(f"message {position}", problem) for position in tree.holding(now.branch)]
            return len(erased), [*(residue(derived_data(tree, erased, proves=True)) if erased else ()), *words]

    def vacuum(self) -> None:
        """Do nothing: erased data is gone already."""

    def close(self) -> None:
        self._open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # --------------------------------------------------------------------------------------------------- helpers

    def _check_open(self) -> None:
        if not self._open:
            raise StoreError(CLOSED)

    def _current(self, head: Head) -> tuple[MemoryBranch, Head]:
        """Return the branch of a head, and its head now."""
        self._check_open()
        if (head.tenant, head.root, head.branch) not in self._branches:
            raise NoSuchConversation(head.name, "this memory", head.tenant)
        now = self._head(head.tenant, head.root, head.branch)
        check_not_behind(head, now)
        return self._branches[head.tenant, head.root, head.branch], now

    def _changes_since(self, head: Head, now: Head) -> Changes:
        """Return the changes of a branch since a head."""
        branch = self._branches[head.tenant, head.root, head.branch]
        tip = branch.rows[head.position - 1].id if head.position else ""
        after = bisect_right(branch.journal, head.number, key=lambda stored: stored[1].last)
        known = branch.journal[after - 1] if after else None
        record = known[0] if known and known[1].last == head.number else ""
        if (tip, record) != (head.tip, head.record):
            raise rolled_back(head, now)
        rows, records = branch.rows[head.position :], branch.journal[after:]
        return Changes(now, lambda: rows, lambda: records)

    def _head(self, tenant: str, root: int, number: int) -> Head:
        branch = self._branches[tenant, root, number]
        tip = branch.rows[-1] if branch.rows else None
        record_id, record = branch.journal[-1] if branch.journal else ("", None)
        return Head(
            tenant=tenant,
            name=branch.name,
            root=root,
            branch=number,
            position=tip.position if tip else 0,
            tip=tip.id if tip else "",
            seal=tip.seal if tip else "",
            number=record.last if record else 0,
            record=record_id,
            erased=len(self._erasures.get((tenant, root), ())),
        )

    def _check_owner(self, head: Head, owner: str) -> None:
        """Send a heartbeat if there is an owner. Raises ConversationBusy if it does not hold the lock."""
        if owner and not self.heartbeat(head, owner):
            raise lock_lost(head, self._locks.get((head.tenant, head.root, head.branch)))

    def _tree(self, head: Head) -> MemoryTree:
        tree = head.tenant, head.root
        branches = {n: branch for (tenant, root, n), branch in self._branches.items() if (tenant, root) == tree}
        steps = {run: steps for (tenant, root, run), steps in self._steps.items() if (tenant, root) == tree}
        return MemoryTree(branches, self._runs.setdefault(tree, {}), steps)

    def _new_branch(self, tenant: str, root: int, branch: MemoryBranch) -> int:
        number = sum(1 for owner, of, _ in self._branches if (owner, of) == (tenant, root)) + 1
        self._branches[tenant, root, number] = branch
        return number

    def _leave(self, head: Head, name: str, position: int, number: int) -> int:
        """Add a branch that shares this much of the head's branch; return its number."""
        old = self._branches[head.tenant, head.root, head.branch]
        journal = [(id, record) for id, record in old.journal if record.last <= number]
        if number != (journal[-1][1].last if journal else 0):
            raise BadSetting(
                f"Edit {number} of {head.label} is in the middle of a record. Fork at the end of a record."
            )
        family = lineage.descend(old.lineage, head.branch, position, number)
        return self._new_branch(head.tenant, head.root, MemoryBranch(name, old.rows[:position], journal, family))


def _stamps(row: StoredMessage) -> tuple[bytes, ...]:
    return redacted_stamp(row.stamp), wire.encode_stamp(row.stamp)


def _body_problems(row: StoredMessage) -> tuple[str, ...]:
    is_original = row.body and not row.is_released
    return ("its body does not match its hash",) if is_original and ids.body_hash(row.body) != row.body_hash else ()
