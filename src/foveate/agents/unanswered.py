"""Calls that nobody has answered: which they are, and what is known of them where a run broke off.

What a call came to, or whether it was begun at all, is read from the steps of the run that its reply came from, and of
those after it. Then it is answered like any other (`calling.py`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..core.messages import ToolCall
from ..core.runs import AgentRun, AgentRunStep, step_of
from ..expansion.tool import NAMES
from .acts import Act, Do
from .calling import Calling, answer_calls
from .running import Running, word
from .stopping import unfit

if TYPE_CHECKING:
    from ..async_conversation import AsyncConversation
    from ..conversation import Conversation

__all__ = ["answer_open", "open_calls"]


def open_calls(chat: Conversation | AsyncConversation, calling: Calling) -> Act[tuple[ToolCall, ...]]:
    """The calls of the newest reply that wait for an answer of the agent, not of the conversation itself."""
    own = NAMES.difference(calling.tools) if chat.expands else frozenset()
    there: tuple[ToolCall, ...] = yield Do(chat.open_calls)
    return tuple(call for call in there if call.name not in own)


def answer_open(running: Running, calling: Calling) -> Act[None]:
    """Answer whatever waits for an answer, as an agent finds it that takes a conversation up.

    What a call came to is taken from its step where that was kept. A call that nobody began is carried out. One that
    was begun, and nobody knows how it ended, is carried out again only if its tool may be; else its result says so.
    """
    calls = yield from open_calls(running.conversation, calling)
    if not calls:
        return
    entries = reversed(running.conversation.view.entries)
    reply, stamp = next((one.source, one.stamp) for one in entries if one.source and one.source.role == "assistant")
    ill = unfit(reply, stamp.stop, calls)
    if not stamp.step:  # Somebody else called the model, and may have begun to answer.
        yield from answer_calls(running, calling, calls, dict.fromkeys(range(len(calls))), ill)
        return
    there: list[AgentRunStep] = yield from _steps_since(running, stamp.step, stamp.turn)
    earlier: dict[int, AgentRunStep | None] = {}
    for place, call in enumerate(calls):
        said = word(call.call_id), word(call.name), call.arguments
        steps = [step for step in there if (step.call, step.name, step.input) == said]
        if steps:
            earlier[place] = steps[-1]
    yield from answer_calls(running, calling, calls, earlier, ill)


def _steps_since(running: Running, reply: str, turn: int) -> Act[list[AgentRunStep]]:
    """The steps that answer the calls of a reply: of the run that the reply came from, and of later ones."""
    chat, (first, number) = running.conversation, step_of(reply)
    runs: list[AgentRun] = yield Do(chat.runs)
    ids = [run.id for run in runs]
    found: list[AgentRunStep] = yield Do(partial(chat.steps, first, number))
    # Of a fork the first run is kept under the name of the conversation it came from.
    for id in ids[ids.index(first) + 1 :] if first in ids else ids:
        found += yield Do(partial(chat.steps, id))
    return [step for step in found if step.kind == "action" and step.turn == turn]
