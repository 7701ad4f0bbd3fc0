"""`foveate db run`: what agents did in a conversation, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from ...core.runs import AgentRun, AgentRunStep, step_name
from ...errors import BadSetting, NoSuchConversation
from ...ports import Database, Head
from ...replay.numbers import plural
from ..text import shortened
from .target import NOWHERE, AsJson, Where, opened, print_json

__all__ = ["list_runs", "show_run"]

_LINES, _WIDTH = 6, 160
"""Of a step's input or output, unless `--full`."""


def list_runs(conversation: str, /, *, as_json: AsJson = False, where: Where = NOWHERE) -> int:
    """List the runs that agents made in a conversation and its forks, oldest first.

    Example: `foveate db run list support-456 --store sqlite:///chat.db`

    Parameters
    ----------
    conversation
        Its name.
    """
    from ..output import print_table, say

    with opened(where) as (store, tenant):
        runs = store.runs(store.open(tenant, conversation, create=False))
    if as_json:
        print_json(map(_named, runs))
    elif runs:
        rows = [
            (run.id, run.agent, run.state, _line(run.task, 40), _time(run.begun), *_measures(run), f"{run.turns:,}")
            for run in runs
        ]
        titles = ("run", "agent", "state", "task", "begun (UTC)", "took", "tokens", "cost", "calls")
        print_table(titles, rows, left=5)
    else:
        say(f"No agent ran in {conversation}.")
    return 0


def show_run(
    conversation: str, run: str, /, *, full: bool = False, as_json: AsJson = False, where: Where = NOWHERE
) -> int:
    """Show a run and its steps: what each was given, and what came of it, in short.

    Example: `foveate db run show support-456 7f3a --full`

    Parameters
    ----------
    conversation
        Its name.
    run
        The run's id, or as much of its beginning as tells it from the others.
    full
        Show all of what steps were given and what came of them.
    """
    with opened(where) as (store, tenant):
        head = store.open(tenant, conversation, create=False)
        found = _run_of(store, head, run)
        steps = store.steps(head, found.id)
        places = store.locate(head, [step.message for step in steps if step.message])
        inner = {step.number: name for step in steps if (name := _inner(store, tenant, found, step))}
    if as_json:
        print_json([_named(found), *steps])
    else:
        _print(found, steps, places, inner, full)
    return 0


def _run_of(store: Database, head: Head, id: str) -> AgentRun:
    runs = store.runs(head)
    found = [run for run in runs if run.id == id] or [run for run in runs if id and run.id.startswith(id)]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(run.id for run in found[:5])
        raise BadSetting(f"{len(found)} runs of {head.name!r} begin with {id!r}: {ids}{', ...' * (len(found) > 5)}.")
    raise BadSetting(f"There is no run {id!r} in {head.name!r}; see: foveate db run list {head.name}")


def _inner(store: Database, tenant: str, run: AgentRun, step: AgentRunStep) -> str:
    """The conversation that a sub-agent had of its own; "" where there is none."""
    name = f"{run.conversation}/{step_name(run.id, step.number)}"
    if step.kind == "sub-agent":
        with suppress(NoSuchConversation):
            return store.open(tenant, name, create=False).name
    return ""


def _print(
    run: AgentRun, steps: Sequence[AgentRunStep], places: dict[str, int], inner: dict[int, str], full: bool
) -> None:
    from ..output import heading, say

    heading(f"run {run.id}", f"{run.agent} in {run.conversation}")
    took, tokens, cost = _measures(run)
    why = f" ({run.reason})" if run.reason else ""
    told = [f"{run.state}{why}", f"begun {_time(run.begun)} UTC", f"took {took}", f"{plural(run.turns, 'model call')}"]
    told += [f"{tokens} tokens", f"cost {cost}"]
    say(", ".join(one for one in told if not one.endswith((" -", "- tokens"))))
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
            say(f"  its own steps: foveate db run list {inner[step.number]}")
    if not steps:
        say("It has no steps.")


def _print_text(what: str, text: str, full: bool) -> None:
    from ..output import say

    if text:
        told = text.rstrip("\n") if full else shortened(text, _LINES, _WIDTH)
        say("\n".join([f"  {what}: {told.split(chr(10))[0]}", *(f"    {line}" for line in told.split("\n")[1:])]))


def _named(run: AgentRun) -> dict[str, Any]:
    """A run for JSON, its tokens by their names."""
    return {**msgspec.structs.asdict(run), "usage": msgspec.structs.asdict(run.usage)}


def _measures(run: AgentRun) -> tuple[str, str, str]:
    """How long it took, its tokens in and out, what it cost."""
    said = run.usage.prompt_tokens, run.usage.output
    tokens = " + ".join("-" if number is None else f"{number:,}" for number in said if said != (None, None)) or "-"
    return _took(run.begun, run.ended), tokens, "-" if run.cost is None else f"${run.cost:.4f}"


def _took(begun: int, ended: int) -> str:
    return f"{max(0, ended - begun) / 1000:,.1f} s" if ended else "-"


def _time(milliseconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):  # A clock that did not tell milliseconds since 1970.
        return f"{milliseconds} ms"


def _line(text: str, width: int) -> str:
    words = " ".join(text.split())
    return words if len(words) <= width else f"{words[: width - 1]}…"
