"""Results of a loop agent's actions: their leases, and the messages that show them to the model.

The lease of a result comes from, highest level first, an override for the whole run, the agent's binding in the
catalog, and the action (a `Tool`) itself. It is stamped on the message, and `expire_results` applies it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from ..core.catalog import SYSTEM_PROMPT, Action, Binding, lease_of, prompt_key
from ..core.messages import Content, Message, State, Text
from ..core.stamps import Lease
from ..core.tool_names import find_named
from ..policies.leases import check_lease, effective_lease, most_aggressive
from ..ports import HasCatalog
from .tools import Tool

__all__ = ["ResultLeases", "catalog_leases", "merged_message", "result_message"]

_NAME_MAX = 80
"""Characters of a name in a headline: models invent long ones."""
_FIELDS = ("expiration_turns", "expiration_mode", "compact_mode", "compact_length", "preserve_original")


class ResultLeases:
    """The leases of one agent's results."""

    def __init__(
        self,
        override: Lease | None = None,
        bindings: Mapping[str, Binding] | None = None,
        actions: Mapping[str, Action] | None = None,
        prompts: Collection[str] | None = None,
    ) -> None:
        """`override`: for all results of a run. `bindings` and `actions`: the agent's, by name of the action
        (`query_database` finds `Query Database`). `prompts`: names of existing prompts for summaries; None: any name is
        accepted. Raises BadSetting.
        """
        self._override = None if override is None else check_lease("message_expiration_override", override)
        self._bindings, self._actions = dict(bindings or {}), dict(actions or {})
        self._prompts = None if prompts is None else {prompt_key(name) for name in (*prompts, SYSTEM_PROMPT)}

    def of_action(self, name: str, tool: Tool | None) -> Lease:
        """Return the lease of an action's result. `tool`: None if there is no such action."""
        binding, action = find_named(self._bindings, name), find_named(self._actions, name)
        own = tool.lease if tool else None
        levels = [self._override, lease_of(binding, action) if binding else own]
        if action and action.default_compact_prompt:
            levels.append(Lease(compact_prompt_id=action.default_compact_prompt))
        lease = self._merged(levels)
        if binding and lease.expiration_turns is None:  # A binding without turns means: never.
            lease = replace(lease, expiration_mode="none")
        binding_id = binding.id if binding else ""
        return replace(lease, message_type="action-result", action_id=name, agent_action_id=binding_id)

    def of_sub_agent(self, name: str, own: Lease | None) -> Lease:
        """Return the lease of a sub-agent's result."""
        return replace(self._merged([self._override, own]), message_type="sub-agent-result", action_id=name)

    def _merged(self, levels: Iterable[Lease | None]) -> Lease:
        """Return one lease: of each field the first value. Missing values are left to the policy.

        Prompts that do not exist are skipped.
        """
        leases = [level for level in levels if level is not None]

        def first(field: str) -> object:
            return next((value for lease in leases if (value := getattr(lease, field)) is not None), None)

        lease = replace(
            Lease(disable_expiration=any(lease.disable_expiration for lease in leases)),
            **{field: first(field) for field in _FIELDS},
        )
        names = (level.compact_prompt_id for level in leases if level.compact_prompt_id)
        known = (name for name in names if self._prompts is None or prompt_key(name) in self._prompts)
        return replace(lease, compact_prompt_id=next(known, None))


def catalog_leases(agent: str, catalog: HasCatalog | None, tenant: str, override: Lease | None) -> ResultLeases:
    """Return the leases of an agent, from a catalog and an override for all results of a run."""
    if catalog is None:
        return ResultLeases(override)
    return ResultLeases(
        override,
        {binding.action: binding for binding in catalog.bindings(tenant, agent)},
        {action.name: action for action in catalog.actions(tenant)},
        [prompt.name for prompt in catalog.prompts(tenant)],
    )


def result_message(
    name: str, content: Sequence[Content], state: State = "ok", place: int = 1, of: int = 1, what: str = "Result of"
) -> Message:
    """Return the message that shows the result of an action or a sub-agent to the model.

    `place`, from 1: among the `of` actions of its step. Headline and text form one part, so that the kept beginning of
    a shortened result names its origin.
    """
    name = " ".join(name.split())[:_NAME_MAX]
    number = f" ({place} of {of})" if of > 1 else ""
    head = f"{what} {name}{number}:" if state == "ok" else f"{what} {name}{number}, which failed:"
    first, rest = (content[0], content[1:]) if content else (Text("nothing"), ())
    if isinstance(first, Text):
        return Message("user", (Text(f"{head}\n{first.text}"), *rest))
    return Message("user", (Text(head), first, *rest))


def merged_message(messages: Sequence[Message], leases: Sequence[Lease], failed: int) -> tuple[Message, Lease]:
    """Return all results of one step as one message, with the strictest of their leases (`most_aggressive`)."""
    head = f"{failed} of {len(messages)} failed:" if failed else "Action results:"
    parts = [part for message in messages for part in message.parts]
    text = "\n\n".join([head, *(part.text for part in parts if isinstance(part, Text))])
    has_lease = any(lease.expiration_turns is not None or lease.expiration_mode is not None for lease in leases)
    # Without any lease, the levels of the policy apply.
    lease = most_aggressive([effective_lease(lease) for lease in leases]) if has_lease else leases[0]
    return Message("user", (Text(text), *(part for part in parts if not isinstance(part, Text)))), lease
