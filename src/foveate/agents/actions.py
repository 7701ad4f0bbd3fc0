"""Actions of a loop agent: which lease each one's results have, and the message that tells the model of a result.

An action is a `Tool`. When its results expire is said, from the highest level down, by an override for the whole run,
by the binding of the agent in the catalog, or else by the action itself. What they come to is stamped on each message,
and `expire_results` acts on it. Knows nothing of runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from ..core.catalog import SYSTEM_PROMPT, Action, Binding, lease_of, prompt_key
from ..core.messages import Content, Message, State, Text
from ..core.stamps import Lease
from ..policies.leases import check_lease, effective_lease, most_aggressive
from ..ports import HasCatalog
from .tools import Tool

__all__ = ["Leases", "leases_of", "one_message", "result_message"]

_NAME = 80
"""Characters of a name in a headline: models make up long ones."""
_FIELDS = ("expiration_turns", "expiration_mode", "compact_mode", "compact_length", "preserve_original")


class Leases:
    """What is said of the results of one agent."""

    def __init__(
        self,
        override: Lease | None = None,
        bindings: Mapping[str, Binding] | None = None,
        actions: Mapping[str, Action] | None = None,
        prompts: Collection[str] | None = None,
    ) -> None:
        """`override`: of the run. `bindings` and `actions`: the agent's, by name of the action. `prompts`: names of the
        prompts for summaries that there are; None: all that are named. Raises BadSetting for what is not allowed.
        """
        self._override = None if override is None else check_lease("message_expiration_override", override)
        self._bindings, self._actions = dict(bindings or {}), dict(actions or {})
        self._prompts = None if prompts is None else {prompt_key(name) for name in (*prompts, SYSTEM_PROMPT)}

    def of_action(self, name: str, tool: Tool | None) -> Lease:
        """The lease of a result. `tool`: None where there is no such action."""
        binding, action = self._bindings.get(name), self._actions.get(name)
        own = tool.lease if tool else None
        levels = [self._override, lease_of(binding, action) if binding else own]
        if action and action.default_compact_prompt:
            levels.append(Lease(compact_prompt_id=action.default_compact_prompt))
        lease = self._composed(levels)
        if binding and lease.expiration_turns is None:  # A row without turns says: never.
            lease = replace(lease, expiration_mode="none")
        bound = binding.id if binding else ""
        return replace(lease, message_type="action-result", action_id=name, agent_action_id=bound)

    def of_sub_agent(self, name: str, own: Lease | None) -> Lease:
        """The lease of what a sub-agent came to."""
        return replace(self._composed([self._override, own]), message_type="sub-agent-result", action_id=name)

    def _composed(self, levels: Iterable[Lease | None]) -> Lease:
        """One lease that says what these say, the first of them first, and leaves the rest to the levels of the policy.

        A prompt that there is not is passed over.
        """
        said = [level for level in levels if level is not None]

        def first(field: str) -> object:
            return next((value for level in said if (value := getattr(level, field)) is not None), None)

        lease = replace(
            Lease(disable_expiration=any(level.disable_expiration for level in said)),
            **{field: first(field) for field in _FIELDS},
        )
        named = (level.compact_prompt_id for level in said if level.compact_prompt_id)
        known = (name for name in named if self._prompts is None or prompt_key(name) in self._prompts)
        return replace(lease, compact_prompt_id=next(known, None))


def leases_of(agent: str, catalog: HasCatalog | None, tenant: str, override: Lease | None) -> Leases:
    """What a catalog says of the results of an agent, and an override of all results of a run."""
    if catalog is None:
        return Leases(override)
    return Leases(
        override,
        {binding.action: binding for binding in catalog.bindings(tenant, agent)},
        {action.name: action for action in catalog.actions(tenant)},
        [prompt.name for prompt in catalog.prompts(tenant)],
    )


def result_message(
    name: str, content: Sequence[Content], state: State = "ok", place: int = 1, of: int = 1, what: str = "Result of"
) -> Message:
    """The message that tells the model what an action, or a sub-agent, came to.

    `place`, from 1: among the `of` actions of its step. Text follows the headline in one part, so that what is kept of
    a long result begins with where it comes from.
    """
    name = " ".join(name.split())[:_NAME]
    which = f" ({place} of {of})" if of > 1 else ""
    head = f"{what} {name}{which}:" if state == "ok" else f"{what} {name}{which}, which failed:"
    first, rest = (content[0], content[1:]) if content else (Text("nothing"), ())
    if isinstance(first, Text):
        return Message("user", (Text(f"{head}\n{first.text}"), *rest))
    return Message("user", (Text(head), first, *rest))


def one_message(messages: Sequence[Message], leases: Sequence[Lease], failed: int) -> tuple[Message, Lease]:
    """All results of one step in one message, for hosts that want it so, with the strictest of their leases.

    Then what never expires goes with what does: see `most_aggressive`.
    """
    head = f"{failed} of {len(messages)} failed:" if failed else "Action results:"
    parts = [part for message in messages for part in message.parts]
    text = "\n\n".join([head, *(part.text for part in parts if isinstance(part, Text))])
    said = [lease for lease in leases if lease.expiration_turns is not None or lease.expiration_mode is not None]
    # Where nothing is said of any of them, the levels of the policy still may.
    lease = most_aggressive([effective_lease(lease) for lease in leases]) if said else leases[0]
    return Message("user", (Text(text), *(part for part in parts if not isinstance(part, Text)))), lease
