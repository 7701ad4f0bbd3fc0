"""Carries out the actions of one step, and has the model told of what came of them.

How actions go on beside each other, what goes wrong with them, and that none is carried out twice, is the affair of
`calling.py`, as for all agents. What is a loop agent's own: results are messages of role user, each with its lease.
"""

from __future__ import annotations

from functools import partial

from ..core.messages import Message, ToolCall, ToolResult
from ..core.runs import AgentRunStep, step_name
from ..core.stamps import Lease
from .actions import Leases, one_message, result_message
from .acts import Act, Do
from .calling import Calling, answer_calls
from .opening import Looping
from .past import Past
from .running import Running, word
from .steps import Actions

__all__ = ["carry_out"]


def carry_out(running: Running, looping: Looping, leases: Leases, step: Actions, at: int, past: Past) -> Act[None]:
    """Carry out the actions of the step that the reply of step number `at` chose: one message each, in their order, or
    one for all of them.
    """
    run = running.run.id
    calls = [ToolCall(f"{at}.{n}", one.name, one.arguments) for n, one in enumerate(step.actions, 1)]
    found = [past.steps.get(call.call_id) for call in calls]
    told: list[tuple[Message, Lease]] = []
    failed: list[str] = []

    def tell(result: ToolResult) -> tuple[Message, Lease] | None:
        place = int(result.call_id.rpartition(".")[2])
        asked = step.actions[place - 1].name
        message = result_message(word(asked), result.content, result.state, place, len(calls))
        told.append((message, leases.of_action(word(asked), looping.actions.get(asked))))
        failed.extend([asked] if result.state != "ok" else [])
        return None if looping.one_message else told[-1]

    def is_told(place: int) -> bool:
        record = found[0 if looping.one_message else place]
        return record is not None and past.has_told(run, record.number)

    places = [place for place in range(len(calls)) if not is_told(place)]
    calling = Calling(looping.actions, looping.approve, at_most=looping.at_most, told=tell, noun="action")
    earlier = {n: found[place] for n, place in enumerate(places) if found[place] is not None}
    yield from answer_calls(running, calling, [calls[place] for place in places], earlier)
    if looping.one_message and told:
        steps: list[AgentRunStep] = yield Do(partial(running.conversation.steps, run, at))
        message, lease = one_message([one for one, _ in told], [lease for _, lease in told], len(failed))
        name = step_name(run, steps[0].number)  # One message names one step: the first.
        (id,) = yield from running.say(message, lease=lease, step=name)
        for record in steps:
            yield from running.link_step(record, id)
