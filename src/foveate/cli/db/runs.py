"""`foveate db run`: the runs of agents in a conversation, and their steps."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from ...agents.limits import RunTotal, inner_total, sub_conversation
from ...core.plurals import plural
from ...core.runs import AgentRun, AgentRunStep
from ...core.stamps import Usage
from ...errors import BadSetting, NoSuchConversation
from ...ports import Database, Head
from ..options import command_line
from ..text import brief, one_line, shortened
from .target import NOWHERE, AsJson, Where, opened, print_json

__all__ = ["list_runs", "show_run"]

_LINES, _WIDTH = 6, 160
"""Size of a step's input or output without `--full`."""


def list_runs(conversation: str, /, *, as_json: AsJson = False, where: Where = NOWHERE) -> int:
    """List the runs of agents in a conversation and its forks, oldest first.

    Example: `foveate db run list support-456 --store sqlite:///chat.db`

    Parameters
    ----------
    conversation
        The conversation's name.
    """
    from ..output import print_table, say

    with opened(where, reads=True) as (store, tenant):
        runs = store.runs(store.open(tenant, conversation, create=False))
    if as_json:
        print_json(map(_plain, runs))
    elif runs:
        rows = [
            (run.id, run.agent, run.state, brief(run.task, 40), _time(run.begun), *_measures(run), f"{run.turns:,}")
            for run in runs
        ]
        titles = ("run", "agent", "state", "task", "started (UTC)", "took", "tokens", "cost", "calls")
        print_table(titles, rows, left=5)
    else:
        say(f"No agent has run in {one_line(conversation)}.")
    return 0


def show_run(
    conversation: str, run: str, /, *, full: bool = False, as_json: AsJson = False, where: Where = NOWHERE
) -> int:
    """Show a run and its steps, each with its input and output, shortened.

    Example: `foveate db run show support-456 7f3a --full`

    Parameters
    ----------
    conversation
        The conversation's name.
    run
        The run's id, or the beginning of it.
    full
        Show complete inputs and outputs.
    """
    with opened(where, reads=True) as (store, tenant):
        head = store.open(tenant, conversation, create=False)
        selected = _run_of(store, head, run, where)
        steps = store.steps(head, selected.id)
        places = store.locate(head, [step.message for step in steps if step.message])
        inner = {step.number: name for step in steps if (name := _inner(store, tenant, selected, step))}
        total = RunTotal.of(selected) + inner_total(store, tenant, selected) if inner else None
    if as_json:
        print_json([_plain(selected), *steps])
    else:
        _print(selected, total, steps, places, inner, full, where)
    return 0


def _run_of(store: Database, head: Head, id: str, where: Where) -> AgentRun:
    runs = store.runs(head)
    matches = [run for run in runs if run.id == id] or [run for run in runs if id and run.id.startswith(id)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        ids = ", ".join(run.id for run in matches[:5]) + ", ..." * (len(matches) > 5)
        raise BadSetting(f"{len(matches)} runs of {head.name!r} begin with {id!r}: {ids}.")
    raise BadSetting(f"There is no run {id!r} in {head.name!r}. List them: {_list_command(head.name, where)}")


def _list_command(conversation: str, where: Where) -> str:
    return command_line("db", "run", "list", conversation, store=where.store, tenant=where.tenant)


def _inner(store: Database, tenant: str, run: AgentRun, step: AgentRunStep) -> str:
    """Return the conversation of a sub-agent's step, or ""."""
    name = sub_conversation(run.conversation, run.id, step.number)
    if step.kind == "sub-agent":
        with suppress(NoSuchConversation):
            return store.open(tenant, name, create=False).name
    return ""


def _print(
    run: AgentRun,
    total: RunTotal | None,
    steps: Sequence[AgentRunStep],
    places: dict[str, int],
    inner: dict[int, str],
    full: bool,
    where: Where,
) -> None:
    """Print a run. `total`: with its sub-agents. `inner`: their conversations, by step."""
    from ..output import heading, say

    heading(f"run {run.id}", f"{run.agent} in {one_line(run.conversation)}")
    why = f" ({run.reason})" if run.reason else ""
    facts = [f"{run.state}{why}", f"started {_time(run.begun)} UTC", f"took {_took(run.begun, run.ended)}"]
    say(", ".join([*(fact for fact in facts if not fact.endswith(" -")), *_use(RunTotal.of(run))]))
    if total is not None:
        say(f"With sub-agents: {', '.join(_use(total))}.")
    if run.parent:
        say(f"Started by step {run.parent}.")
    _print_text("task", run.task, full)
    _print_text("result", run.result, full)
    for step in steps:
        say()
        place = f" -> m{places[step.message]}" if step.message in places else ""
        heading(
            f"{step.number}. {step.kind} {step.name}".rstrip(),
            f"{step.state}, turn {step.turn}, took {_took(step.begun, step.ended)}{place}",
        )
        _print_text("in", step.input, full)
        _print_text("out", step.output, full)
        _print_text("error", step.error, full)
        if step.number in inner:
            say(f"  steps of the sub-agent: {_list_command(inner[step.number], where)}")
    if not steps:
        say("This run has no steps.")


def _print_text(label: str, text: str, full: bool) -> None:
    from ..output import say

    if text:
        shown = text.rstrip("\n") if full else shortened(text, _LINES, _WIDTH)
        say("\n".join([f"  {label}: {shown.split(chr(10))[0]}", *(f"    {line}" for line in shown.split("\n")[1:])]))


def _plain(run: AgentRun) -> dict[str, Any]:
    """Return a run as plain values."""
    return {**msgspec.structs.asdict(run), "usage": msgspec.structs.asdict(run.usage)}


def _measures(run: AgentRun) -> tuple[str, str, str]:
    """Return the time, the tokens in and out, and the cost."""
    return _took(run.begun, run.ended), _tokens(run.usage), "-" if run.cost is None else f"${run.cost:.4f}"


def _use(total: RunTotal) -> list[str]:
    """Return the known figures, each with its unit."""
    tokens = [f"{_tokens(total.usage)} tokens"] if _tokens(total.usage) != "-" else []
    cost = [] if total.cost is None else [f"cost ${total.cost:.4f}"]
    return [plural(total.turns, "model call"), *tokens, *cost]


def _tokens(usage: Usage) -> str:
    """Return the tokens in and out; "-" if both are unknown."""
    counts = usage.prompt_tokens, usage.output
    is_known = counts != (None, None)
    return " + ".join("-" if number is None else f"{number:,}" for number in counts if is_known) or "-"


def _took(begun: int, ended: int) -> str:
    return f"{max(0, ended - begun) / 1000:,.1f} s" if ended else "-"


def _time(milliseconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):  # The clock of that process did not count from 1970.
        return f"{milliseconds} ms"
