"""Check a whole archive before it is imported: its chains, and its conflicts with the store.

If a conversation of the same name exists, one of the two must be the beginning of the other. Anything else is a
conflict, which is refused or solved by another name. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ...core.catalog import Action, Binding, Prompt, validated
from ...errors import BadSetting, BadTranscript, FoveateError, NoSuchConversation
from ...ports import Database, Head
from .chains import Chains, Point
from .export import records_of
from .lines import (
    CRAFTED,
    ActionLine,
    BindingLine,
    BranchLine,
    Ending,
    ErasureLine,
    Fork,
    Line,
    MessageLine,
    Opening,
    PromptLine,
    RecordLine,
    RunLine,
    StepLine,
    TreeLine,
    each_line,
)

__all__ = ["check", "find_head"]

T = TypeVar("T", Action, Binding, Prompt)

_TRIES_MAX = 100
"""Names that are tried for one tree."""


def check(
    path: Path, store: Database, tenant: str, conflicts: Literal["refuse", "rename"], on_line: Callable[[int], object]
) -> dict[int, str]:
    """Return the suffix for the names of each tree that must be renamed, by its number from 1.

    Raises BadTranscript with the line if the archive is not sound, and BadSetting if it differs from the store.
    """
    check = _Check(store, tenant, conflicts)
    for number, line in each_line(path):
        try:
            check.take(line)
        except FoveateError:
            raise
        except (ValueError, *CRAFTED) as error:
            raise BadTranscript(str(path), number, f"{error}.", "Nothing was imported.") from error
        on_line(number)
    try:
        check.finish()
    except FoveateError:
        raise
    except ValueError as error:
        raise BadTranscript(str(path), 0, f"{error}.", "Nothing was imported.") from error
    return check.suffixes


def find_head(store: Database, tenant: str, name: str) -> Head | None:
    """Return the head of a conversation; None if there is none of this name."""
    try:
        return store.open(tenant, name, create=False)
    except NoSuchConversation:
        return None


class _Wanted(Struct, frozen=True):
    """The links that the archive must have, so that its tree may get these names."""

    suffix: str
    links: tuple[tuple[Point, tuple[str, str], str], ...]
    """The point, its id and seal, and the error if they differ."""
    records: tuple[tuple[Point, str, str], ...]
    short: str
    """The error if an existing conversation ends too early to be continued; else ""."""

    def problem(self, chains: Chains) -> str:
        """Return the first difference; "" if there is none."""
        if self.short:
            return self.short
        for point, link, error in self.links:
            if chains.links.get(point) != link:
                return error
        for point, record, error in self.records:
            if chains.records.get(point) != record:
                return error
        return ""


class _Check:
    def __init__(self, store: Database, tenant: str, conflicts: Literal["refuse", "rename"]) -> None:
        self.suffixes: dict[int, str] = {}
        self._store, self._tenant, self._conflicts = store, tenant, conflicts
        self._trees = 0
        self._chains: Chains | None = None
        self._wanted: list[_Wanted] = []
        self._run, self._erasures = "", 0
        self._over = False
        """Whether all messages of this tree were read."""

    def take(self, line: Line) -> None:
        match line:
            case Opening() | Ending():
                pass
            case PromptLine(prompt=prompt):
                self._new(prompt, self._store.prompts(self._tenant))
            case ActionLine(action=action):
                self._new(action, self._store.actions(self._tenant))
            case BindingLine(binding=binding):
                self._new(binding, self._store.bindings(self._tenant))
            case TreeLine():
                self.finish()
                self._trees += 1
                self._over, self._run, self._erasures = False, "", 0
                self._chains = Chains(line)
                self._wanted = self._candidates(line, self._chains)
            case BranchLine(branch=branch):
                self._tree().begin(branch)
            case MessageLine():
                self._tree().message(line)
            case RecordLine():
                self._tree().record(line)
            case RunLine(run=run):
                self.finish()
                self._run = run.id
            case StepLine(step=step):
                if not self._over or step.run != self._run:
                    raise ValueError(f"step {step.number} is not next to its run")
            case ErasureLine(erasure=erased):
                self.finish()
                self._run = ""
                self._erasures += 1
                if self._chains is None or erased.number != self._erasures:
                    raise ValueError(f"erasure {self._erasures} is missing: the next is erasure {erased.number}")

    def finish(self) -> None:
        """End the messages of the tree, if there is one."""
        if self._chains is None or self._over:
            return
        self._over = True
        self._chains.end()
        problems = []
        for wanted in self._wanted:
            problem = wanted.problem(self._chains)
            if not problem:
                if wanted.suffix:
                    self.suffixes[self._trees] = wanted.suffix
                return
            problems.append(problem)
        raise BadSetting(
            f"{problems[0]} Nothing was imported. Import it under another name (--on-conflict rename), or into another "
            f"store."
        )

    def _tree(self) -> Chains:
        if self._chains is None or self._over:
            raise ValueError("it belongs to no conversation")
        return self._chains

    def _candidates(self, tree: TreeLine, chains: Chains) -> list[_Wanted]:
        """Return names for the tree, best first, up to the first that is free."""
        candidates: list[_Wanted] = []
        for tried in range(_TRIES_MAX):
            suffix = "" if not tried else "~imported" if tried == 1 else f"~imported{tried}"
            existing = [(fork, find_head(self._store, self._tenant, fork.name + suffix)) for fork in tree.branches]
            candidates.append(
                self._links_for(suffix, [(fork, head) for fork, head in existing if head is not None], chains)
            )
            if self._conflicts == "refuse" or not any(head for _, head in existing):
                break
        return candidates

    def _links_for(self, suffix: str, existing: Iterable[tuple[Fork, Head]], chains: Chains) -> _Wanted:
        links, records, short = [], [], ""
        for fork, head in existing:
            error = f"There is a conversation {head.name!r} already, with another past: "
            if head.position < fork.after or head.number < fork.after_edit:
                short = f"{error}it ends before its fork point."
            position = min(fork.position, head.position)
            if position:
                link = self._link(head, position)
                links.append((chains.want(fork.branch, position), link, f"{error}message {position} differs."))
            number = min(fork.number, head.number)
            if number:
                record = self._record(head, number)
                records.append((chains.want_edit(fork.branch, number), record, f"{error}edit {number} differs."))
        return _Wanted(suffix, tuple(links), tuple(records), short)

    def _link(self, head: Head, position: int) -> tuple[str, str]:
        if position == head.position:
            return head.tip, head.seal
        (row,) = self._store.get_many(head, [position])
        return row.id, row.seal

    def _record(self, head: Head, number: int) -> str:
        if number == head.number:
            return head.record
        for id, record in records_of(self._store, replace(head, number=number), 0):
            if record.last == number:
                return id
        return ""

    def _new(self, value: T, known: Iterable[T]) -> None:
        validated(value)
        kind = type(value).__name__.lower()
        for other in known:
            if key_of(other) == key_of(value) and other != value:
                raise BadSetting(
                    f"There is a {kind} {'/'.join(key_of(value))!r} already, and it differs. Nothing was "
                    f"imported. Make them equal, or export without the catalog."
                )


def key_of(value: Action | Binding | Prompt) -> tuple[str, ...]:
    """Return the key of a value within its tenant."""
    return (value.agent, value.action) if isinstance(value, Binding) else (value.name,)
