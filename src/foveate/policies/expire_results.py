"""Results expire: so many model calls after it came, a result is removed, or shrunk to its beginning or a summary.

How long each stays, and what becomes of it then, is its lease: said of the message when it is appended, of its tool, of
its action, or of all (`leases.py`). A lease begins with the call that the result belongs to, and anew when the result
is expanded; once in each lease it is compacted (`expired.py`). Knows nothing of stores and models: a summary is asked
for, and what is done without one is decided by the policy itself.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from ..core.edits import Edit
from ..core.planner import Policy
from ..core.stamps import Lease
from ..core.summaries import NeedsSummary
from ..core.view import Entry, View
from ..errors import BadSetting
from .expired import Due, Form, Step, step
from .leases import SYSTEM_PROMPT, check_lease, expires, merged

__all__ = ["ANNOTATION", "BARE_ANNOTATION", "BARE_PREAMBLE", "BARE_STUB", "PREAMBLE", "STUB", "expire_results"]

ANNOTATION = '...\n\n[Compacted: the first {kept} of {length} characters; expand("{handle}") shows all]'
"""Follows the beginning of a compacted text."""
PREAMBLE = '[Summary of {length} characters; expand("{handle}") shows all]\n\n'
"""Stands before a summary."""
BARE_ANNOTATION = "...\n\n[Compacted: the first {kept} of {length} characters]"
BARE_PREAMBLE = "[Summary of {length} characters]\n\n"
"""The same two where the model may not have the original back."""
STUB = '[result expired after {turns} turns: {about}expand("{handle}")]'
"""Stands in the place of a tool result that is to be removed: its call needs an answer."""
BARE_STUB = "[result expired after {turns} turns]"
"""The same where the model may not have the original back: nothing is told of it."""

_NO_LEASES: Mapping[str, Lease] = {}
_log = logging.getLogger("foveate")


def expire_results(
    *,
    tools: Mapping[str, Lease] = _NO_LEASES,
    actions: Mapping[str, Lease] = _NO_LEASES,
    default: Lease | None = None,
    override: Lease | None = None,
    prompts: Collection[str] | None = None,
    system_prompt: str = SYSTEM_PROMPT,
    annotation: str = ANNOTATION,
    preamble: str = PREAMBLE,
    bare_annotation: str = BARE_ANNOTATION,
    bare_preamble: str = BARE_PREAMBLE,
    stub: str = STUB,
    bare_stub: str = BARE_STUB,
    stable_prefix: bool = False,
    min_gain: int = 0,
) -> Policy:
    """A policy that removes or compacts results whose lease has ended.

    The levels, the highest first: `override` (for all results of a run, such as a test), the lease with which a message
    was appended, `tools` (by `agent_action_id`, or by the name of the tool), `actions` (by `action_id`, or by the name
    of the tool), `default`. `effective_lease` tells what they come to; without any of them nothing expires. Other
    messages than results expire only by a lease of their own. System prompts, the last user input, pinned messages,
    messages of the assistant that hold calls, and what other policies have shrunk never do.

    `prompts`: names of the prompts for summaries that there are (default: every one that is named); `system_prompt`:
    the one for leases that name none. Where a summary cannot be had, the beginning of the text is kept instead.

    `annotation` follows the beginning of a text, `preamble` stands before a summary: `{kept}` and `{length}` are
    characters, `{handle}` is what `expand` takes. `bare_annotation` and `bare_preamble` take their places where
    `preserve_original` is off. `stub` stands for a removed tool result: `{turns}` is its limit, and what
    placeholders may name works too; `bare_stub` where `preserve_original` is off.
    What would not get shorter is left as it is.

    `stable_prefix`: spare what stands before the first result, for the sake of the provider's cache. `min_gain`: wait
    until all that is due frees at least so many tokens (a quarter of the characters). Raises BadSetting for values that
    are not allowed; warns where `expiration_turns` is 0, since no model call ever sees such a result.
    """
    levels = _Levels(tools, actions, default, override, prompts, system_prompt)
    form = Form(annotation, preamble, bare_annotation, bare_preamble, stub, bare_stub)
    if type(min_gain) is not int or min_gain < 0:
        raise BadSetting(f"min_gain is {min_gain!r:.80}; allowed: tokens, a whole number of 0 or more.")
    if unseen := levels.unseen:
        told = f"{', '.join(unseen)}: expiration_turns is 0, so these results expire before any model call sees them"
        warnings.warn(told, stacklevel=2)

    def policy(view: View) -> Sequence[Edit | NeedsSummary]:
        tally = _Tally(view)
        entries = view.entries[_stable(view) if stable_prefix else 0 :]
        ended = [one for entry in entries if not _is_shrunk(entry) and (one := levels.due(entry, view.turn))]
        due = [one for one in ended if _may_expire(one.entry, view)]
        steps = [made for one in due if (made := step(one, form, tally.answered))]
        if sum(made.saved for made in steps) < min_gain:
            return ()
        tally.planned(steps)
        return [made.made for made in steps]

    return policy


class _Levels:
    """What is said of leases, on all levels. Raises BadSetting for what is not allowed."""

    def __init__(
        self,
        tools: Mapping[str, Lease],
        actions: Mapping[str, Lease],
        default: Lease | None,
        override: Lease | None,
        prompts: Collection[str] | None,
        system_prompt: str,
    ) -> None:
        self._tools, self._actions = _checked("tools", tools), _checked("actions", actions)
        self._default = None if default is None else check_lease("default", default)
        self._override = None if override is None else check_lease("override", override)
        if prompts is not None and (isinstance(prompts, str) or not all(isinstance(name, str) for name in prompts)):
            raise BadSetting(f"prompts is {prompts!r:.80}; allowed: names of prompts, or None.")
        if not isinstance(system_prompt, str):
            raise BadSetting(f"system_prompt is {system_prompt!r:.80}; allowed: the name of a prompt.")
        self._prompts = None if prompts is None else frozenset(prompts)
        self._system_prompt = system_prompt
        self._lease_of = lru_cache(4096)(self._merged)  # The same few leases are asked for at every call.

    @property
    def unseen(self) -> list[str]:
        """The levels by which results expire before a model call has seen them."""
        named = {"override": self._override, "default": self._default}
        for level, leases in (("tools", self._tools), ("actions", self._actions)):
            named |= {f"{level}[{name!r}]": lease for name, lease in leases.items()}
        said = {name: lease for name, lease in named.items() if lease and lease.expiration_turns == 0}
        return [
            name for name, lease in said.items() if lease.expiration_mode != "none" and not lease.disable_expiration
        ]

    def due(self, entry: Entry, turn: int) -> Due | None:
        """The entry with its lease, if that has ended before this model call."""
        age = turn - max(entry.stamp.turn, entry.renewed)
        is_result = _is_result(entry)
        if age < 1 or not (is_result or entry.stamp.lease):
            return None
        lease = self._lease_of(entry.stamp.lease, entry.tool, is_result)
        if not expires(lease) or lease.message_type == "system" or age <= (lease.expiration_turns or 0):
            return None
        return Due(entry, lease, age)

    def _merged(self, own: Lease | None, tool: str, is_result: bool) -> Lease:
        said: list[Lease | None] = [self._override, own]
        if is_result:
            binding, action = (own.agent_action_id, own.action_id) if own else ("", "")
            said += [self._tools.get(binding), self._tools.get(tool)]
            said += [self._actions.get(action), self._actions.get(tool), self._default]
        elif self._override and not self._override.disable_expiration:
            said = [own]  # What is said of the results of a run is not said of anything else.
        return merged([level for level in said if level], self._prompts, self._system_prompt)


def _checked(level: str, leases: Mapping[str, Lease]) -> dict[str, Lease]:
    if not isinstance(leases, Mapping):
        raise BadSetting(f"{level} is {leases!r:.80}; allowed: names, each with a Lease.")
    return {name: check_lease(f"{level}[{name!r}]", lease) for name, lease in leases.items()}


def _is_result(entry: Entry) -> bool:
    """Whether a tool, an action or another agent said this, in whatever role."""
    return entry.is_result or entry.stamp.origin == "tool"


def _may_expire(entry: Entry, view: View) -> bool:
    """Whether this policy may touch an entry."""
    source = entry.source
    if source is None or source.role == "system" or source.calls or entry.is_pinned():
        return False
    return not entry.is_input or entry.position != view.last_input


def _is_shrunk(entry: Entry) -> bool:
    """Whether the content as a whole was replaced already; an image in it may have been."""
    if not entry.shrunk or entry.source is None:
        return False
    return () in entry.shrunk or (len(entry.source.parts) == 1 and (0,) in entry.shrunk)


def _stable(view: View) -> int:
    """How many entries stand before the first result, or before the first place where something was hidden."""
    following = 1
    for index, entry in enumerate(view.entries):
        if entry.kind != "stand-in":
            if _is_result(entry) or entry.position != following:
                return index
            following = entry.last + 1
    return len(view.entries)


class _Tally:
    """What one plan does, told to the log in one line once all of it is known."""

    def __init__(self, view: View) -> None:
        self._turn, self._is_trial = view.turn, view.is_trial
        self._compacted = self._removed = self._saved = self._asked = 0

    def planned(self, steps: Sequence[Step]) -> None:
        """These are the steps; what a model is asked for will be known later."""
        for made in steps:
            if isinstance(made.made, NeedsSummary):
                self._asked += 1
            else:
                self._count(made)
        self._tell()

    def answered(self, made: Step | None) -> None:
        """A model was asked, and this is what came of it, if anything."""
        self._asked -= 1
        if made:
            self._count(made)
        self._tell()

    def _count(self, made: Step) -> None:
        self._removed += made.removes
        self._compacted += not made.removes
        self._saved += 0 if made.removes else made.saved

    def _tell(self) -> None:
        if not self._is_trial and not self._asked and (self._compacted or self._removed):
            done = f"{self._compacted} compacted (saved ~{self._saved} tokens), {self._removed} removed"
            _log.info("[Turn %d] Message pruning: %s", self._turn, done)
