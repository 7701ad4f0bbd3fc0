"""The checker of views: it finds the broken rules, at the cost of the new entries of a view."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import msgspec

from .growing import STEP, mark_places, shared_length
from .profiles import Profile
from .rules import RULES, Alone, Rule
from .saved_views import SavedRules
from .view import Entry, View

__all__ = ["Checker", "Violation", "check"]


class Violation(msgspec.Struct, frozen=True):
    """One broken rule."""

    rule: str
    """Name of the rule."""
    position: int
    """Position of the message that breaks it."""
    problem: str
    """The problem, as the rest of a sentence about the message."""

    def __str__(self) -> str:
        return f"message {self.position}: {self.problem} ({self.rule})"


class _Mark(msgspec.Struct, frozen=True):
    """The state of the rules after the first `read` entries."""

    read: int
    rules: list[Rule]
    violations: list[Violation]


class Checker:
    """Check the views of one conversation, one after the other, at the cost of their new entries.

    The checker keeps the state of the rules at a few marks along the last view. So after an edit it reads the entries
    from a mark before the edited place on.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        """The profile that this checker was made for."""
        self._read: tuple[Entry, ...] = ()
        self._rules: list[Rule] = [rule() for rule in RULES]
        self._violations: list[Violation] = []
        self._marks: list[_Mark] = []

    def check(self, entries: Sequence[Entry], newest_input: int = 0) -> list[Violation]:
        """Return all violations in these entries, in order. `newest_input`: as for `Rule.end`."""
        view = tuple(entries)
        before, is_legal = self._read, not self._violations
        known = self._return_to(view)
        # After an edit, most entries after it were checked before. Alone they are as legal as they were.
        legal = set(map(id, before)) if is_legal and known < len(before) else set()
        placed = [rule for rule in self._rules if not isinstance(rule, Alone)]
        places = mark_places(len(view))
        self._marks = [mark for mark in self._marks if mark.read in places]
        marked = self._marks[-1].read if self._marks else 0
        for index in range(known, len(view)):
            if index > marked and index in places:
                self._marks.append(_Mark(index, _copies(self._rules), list(self._violations)))
            entry = view[index]
            for rule in placed if id(entry) in legal else self._rules:
                for problem in rule.read(entry, self.profile):
                    self._violations.append(Violation(type(rule).__name__, entry.position, problem))
        self._read = view
        last = view[-1].position if view else 0
        at_end = [
            Violation(type(rule).__name__, last, problem) for rule in self._rules for problem in rule.end(newest_input)
        ]
        return self._violations + at_end

    def saved(self, entries: tuple[Entry, ...]) -> SavedRules | None:
        """Return the state of the rules at a mark in these entries, to be saved; None if they broke a rule before it.

        The mark is some entries before the first one that was not checked, since edits mostly change newer entries.
        """
        known = shared_length(self._read, entries)
        marks = [mark for mark in self._marks if mark.read <= known - STEP and not mark.violations]
        if not marks:
            return None
        states = tuple(
            {name: sorted(value) if isinstance(value, set) else value for name, value in vars(rule).items()}
            for rule in marks[-1].rules
        )
        return SavedRules(marks[-1].read, states)

    def restore(self, saved: SavedRules, entries: tuple[Entry, ...]) -> None:
        """Continue with the state that was saved after the first of these entries."""
        rules = [rule() for rule in RULES]
        for rule, state in zip(rules, saved.states, strict=True):
            for name, value in state.items():
                setattr(rule, name, set(value) if isinstance(value, list) else value)
        self._read, self._rules = entries[: saved.read], rules
        self._violations, self._marks = [], []

    def _return_to(self, view: tuple[Entry, ...]) -> int:
        """Return to the newest mark before the first difference. Return the number of entries read there."""
        known = len(self._read)
        if view[:known] == self._read:  # Entries compare by identity: one pass over pointers.
            return known
        same = shared_length(self._read, view)
        while self._marks and self._marks[-1].read > same:
            self._marks.pop()
        if not self._marks:
            self._rules, self._violations = [rule() for rule in RULES], []
            return 0
        mark = self._marks[-1]
        self._rules, self._violations = _copies(mark.rules), list(mark.violations)
        return mark.read


def _copies(rules: Sequence[Rule]) -> list[Rule]:
    copies = [copy.copy(rule) for rule in rules]
    for rule in copies:
        for name, value in vars(rule).items():
            if isinstance(value, set | dict):
                setattr(rule, name, value.copy())
    return copies


def check(view: View | Sequence[Entry], profile: Profile) -> list[Violation]:
    """Return all violations of the provider's rules in this view. `profile`: the demands of the provider."""
    if isinstance(view, View):
        return Checker(profile).check(view.entries, view.newest_input)
    return Checker(profile).check(view)
