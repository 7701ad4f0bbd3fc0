"""Results of a loop agent's actions: the messages that show them to the model."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..core.messages import Content, Message, State, Text
from ..core.results import headline, merged_headline
from ..core.stamps import Lease
from ..policies.leases import most_aggressive

__all__ = ["merged_message", "result_message"]


def result_message(
    name: str, content: Sequence[Content], state: State = "ok", place: int = 1, of: int = 1, what: str = "Result of"
) -> Message:
    """Return the message that shows the result of an action or a sub-agent to the model.

    `place`, from 1: among the `of` actions of its step. Headline and text form one part, so that the kept beginning of
    a shortened result names its origin.
    """
    head = headline(name, state, place=place, of=of, what=what)
    first, rest = (content[0], content[1:]) if content else (Text("nothing"), ())
    if isinstance(first, Text):
        return Message("user", (Text(f"{head}\n{first.text}"), *rest))
    return Message("user", (Text(head), first, *rest))


def merged_message(
    messages: Sequence[Message], leases: Sequence[Lease], counting: Sequence[Lease], failed: int
) -> tuple[Message, Lease]:
    """Return all results of one step as one message, with the strictest of their leases (`most_aggressive`).

    `leases`: those that the agent sets. `counting`: the same with what the policy adds to each.
    """
    parts = [part for message in messages for part in message.parts]
    text = "\n\n".join(
        [merged_headline(failed, len(messages)), *(part.text for part in parts if isinstance(part, Text))]
    )
    # If all results have the same lease, the levels of the policy still apply to the message.
    is_same = len({replace(lease, action_id="", agent_action_id="") for lease in counting}) == 1
    lease = leases[0] if is_same else most_aggressive(counting)
    return Message("user", (Text(text), *(part for part in parts if not isinstance(part, Text)))), lease
