"""A turn of each mechanism looks at what is new in a view, however much the view shows. The tests count entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, overload

import pytest
from core.story import Story

from foveate.core.call_context import Budget, CallContext
from foveate.core.growing import Growing, Marks
from foveate.core.planner import Policy
from foveate.core.view import Entry, View
from foveate.policies import (
    compact_on_overflow,
    fold,
    prune_tool_outputs,
    retain_blocks,
    shrink_to_digest,
    supersede,
    when_it_pays,
)
from foveate.policies.message_terms import DefaultTerms
from foveate.testing import answer, call, text_of, user

BUDGET = Budget(1_000_000_000, 20_000, 10**9, 10**6)


class Counted(tuple[Entry, ...]):
    """Entries that count how often one is read in a pass over them, or added to a fact.

    Comparisons of pointers do not look at entries. A fact names entries by their indices, and a policy looks at those
    whose edits may be due.
    """

    looked = 0
    is_adding = False
    """Whether entries are added to a fact."""

    def __iter__(self) -> Iterator[Entry]:
        for entry in super().__iter__():
            Counted.looked += 1
            yield entry

    @overload
    def __getitem__(self, index: Any) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Counted: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Counted(super().__getitem__(index))
        Counted.looked += Counted.is_adding
        return super().__getitem__(index)


def history(steps: int) -> Story:
    """Steps of an agent that reads files, changes them, runs commands and looks at a page."""
    story = Story()
    story.say(user("Do it."))
    for number in range(steps):
        name, arguments = (
            ("Read", {"file_path": f"/src/f{number}.py"}),
            ("Edit", {"file_path": f"/src/f{number - 1}.py", "old_string": "a", "new_string": "b"}),
            ("Bash", {"command": f"make t{number}"}),
            ("browser_snapshot", {"tab": number}),
        )[number % 4]
        story.say(call(f"c{number}", name, **arguments), answer(f"c{number}", text_of(300, number)))
    return story


def few(policy: Policy) -> Policy:
    """Return a policy with the newest few edits: each edit that waits costs a look at what it changes."""
    return lambda view: list(policy(view))[-3:]


POLICIES: dict[str, Callable[[], Policy]] = {
    "supersede": supersede,
    "shrink": shrink_to_digest,
    "shrink by worth": lambda: shrink_to_digest(by_worth=True),
    "fold": fold,
    "fold by worth": lambda: fold(protect=0.02, by_worth=True),
    "defer": lambda: when_it_pays([few(supersede()), few(shrink_to_digest(by_worth=True))], partly=True),
    "prune": prune_tool_outputs,
    "compact": compact_on_overflow,
    "leases": lambda: DefaultTerms("leases"),
    "kept": lambda: DefaultTerms("kept"),
    "retain": retain_blocks,
}


def looked_at(policy: Policy, steps: int) -> int:
    """Return how many entries a policy looks at in a turn that appends a call and its result."""
    entries, marks = history(steps + 20).projection.entries(), Marks()
    counts = []
    for size in range(1 + 2 * steps, 1 + 2 * (steps + 20), 2):
        turn = entries[size - 1].stamp.turn + 1
        view = View(Counted(entries[:size]), turn, BUDGET, CallContext(idle=1.0), marks=marks)
        Counted.looked = 0
        list(policy(view))
        counts.append(Counted.looked)
    return sorted(counts[1:])[len(counts) // 2]


@pytest.fixture(autouse=True)
def counted_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the entries that are added to facts."""
    grow = Growing._grow

    def counted(*arguments: Any) -> None:
        Counted.is_adding = True
        grow(*arguments)
        Counted.is_adding = False

    monkeypatch.setattr(Growing, "_grow", counted)


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_a_turn_looks_at_what_is_new(name: str):
    short, long = (looked_at(POLICIES[name](), steps) for steps in (40, 160))
    assert long <= short + 4
