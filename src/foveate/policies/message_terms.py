"""Terms of single messages: their leases and the retention of their parts are followed under every preset.

`append(lease=)` and the leases of tools and bindings need `expire_results`; `append(kept=)` and plugins need
`retain_blocks`. If the chosen policies hold neither, the same mechanism is added with its defaults. It acts on messages
with such terms alone, and is imported when there is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from importlib import import_module
from typing import Literal

from ..core.edits import Edit
from ..core.growing import selecting
from ..core.planner import Policy
from ..core.stamps import Lease
from ..core.summaries import NeedsSummary
from ..core.view import View

__all__ = ["MECHANISMS", "DefaultTerms", "Terms", "follows", "questionable_terms", "with_terms"]

Terms = Literal["leases", "kept"]
"""The terms of a message. A policy that follows some names them in its attribute `follows`."""

MECHANISMS: dict[Terms, str] = {"kept": "retain", "leases": "expire"}
"""The mechanism that follows each, in the order in which they run."""
_FUNCTIONS: dict[Terms, tuple[str, str]] = {
    "kept": ("block_retention", "retain_blocks"),
    "leases": ("expiry", "expire_results"),
}
_SWITCHED_OFF = "the policy is off, or {0}.enabled is false. Choose another policy, or set {0}.enabled to true"


def with_terms(policies: Sequence[Policy], switched_off: Collection[str]) -> tuple[Policy, ...]:
    """Return the policies, and before them what follows the terms of messages, if none of them does.

    `switched_off`: mechanisms that the settings switch off. Policies with the attribute `runs_first` stay first.
    """
    added = [
        DefaultTerms(terms)
        for terms, mechanism in MECHANISMS.items()
        if mechanism not in switched_off and not any(follows(policy, terms) for policy in policies)
    ]
    first = 0
    while first < len(policies) and (getattr(policies[first], "runs_first", False) or follows(policies[first], "kept")):
        first += 1
    return (*policies[:first], *added, *policies[first:])


def follows(policy: Policy, terms: Terms) -> bool:
    """Return whether a policy follows these terms of messages."""
    return getattr(policy, "follows", "") == terms


def questionable_terms(policies: Iterable[Policy], lease: Lease | None, *, has_kept: bool) -> dict[Terms, str]:
    """Return a sentence for each of the terms of a message that have no effect, or a harmful one, under these policies.

    `has_kept`: whether the message has a retention of its parts.
    """
    policies, reasons = tuple(policies), dict[Terms, str]()
    if has_kept and not any(follows(policy, "kept") for policy in policies):
        reasons["kept"] = f"kept= has no effect, since {_SWITCHED_OFF.format('retain')}."
    has_turns = lease is not None and lease.expiration_turns is not None
    has_mode = lease is not None and lease.expiration_mode is not None
    if lease is None or lease.disable_expiration or lease.expiration_mode == "none" or not (has_turns or has_mode):
        return reasons
    own = [policy for policy in policies if follows(policy, "leases")]
    if not own:
        reasons["leases"] = f"A lease has no effect, since {_SWITCHED_OFF.format('expire')}."
    elif has_turns != has_mode and all(isinstance(policy, DefaultTerms) for policy in own):
        field = "expiration_mode" if has_turns else "expiration_turns"
        reasons["leases"] = f"A lease without {field} never ends. Set the field, or pass expire_results(default=...)."
    elif lease.expiration_turns == 0:
        reasons["leases"] = "A lease of 0 turns ends before any model call sees its message. Set expiration_turns to 1."
    return reasons


class DefaultTerms:
    """The mechanism for these terms, with its defaults."""

    for_terms_only = True
    """Read by the engine. There is nothing to decide if no message has terms."""

    def __init__(self, terms: Terms) -> None:
        self.follows = terms
        self.before_calls_only = terms == "leases"
        self.__name__ = MECHANISMS[terms]
        self._policy: Policy | None = None

    def __call__(self, view: View) -> Iterable[Edit | NeedsSummary]:
        if not self._has_terms(view):
            return ()
        if self._policy is None:
            module, function = _FUNCTIONS[self.follows]
            self._policy = getattr(import_module(f".{module}", __package__), function)()
        return self._policy(view)

    def _has_terms(self, view: View) -> bool:
        if self.follows == "leases":
            return bool(_LEASED.of(view).indices)
        return bool(_RETAINED.of(view).indices) or any(entry.stamp.retention for entry in view.withheld)


_LEASED = selecting(lambda entry: entry.stamp.lease is not None, "leased")
_RETAINED = selecting(lambda entry: bool(entry.stamp.retention), "retained")
