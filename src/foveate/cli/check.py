"""`foveate check`: findings about a recording's legality, its tokens by role and tool, and what its calls cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter
from msgspec import Struct

from ..core.messages import Message
from ..core.sizes import tokens_of
from ..errors import BadTranscript
from ..formats import get_format
from ..models.known import format_of_model
from ..replay.recordings.recording import Recording
from .options import Provider
from .text import write_json

if TYPE_CHECKING:
    from ..inspector.views.spending import Spending as Costs

__all__ = ["body_of", "check", "positions_of"]


def check(
    file: Path,
    /,
    *,
    provider: Provider | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    reader: Annotated[str | None, Parameter(name="--format")] = None,
    lenient: bool = False,
) -> int:
    """Check whether a provider would accept a recording, and show where its tokens are and what makes it expensive.

    The exit code is 1 if the provider would refuse it. `foveate repair` writes a copy that the provider accepts.

    Example: `foveate check session.jsonl --provider openai`

    Parameters
    ----------
    file
        A recording.
    provider
        The rules: anthropic, openai, openai_responses or gemini. Default: those of the provider in whose form the file
        is, else of the model in it, else anthropic.
    as_json
        Print one JSON object.
    reader
        The format of the file, if detection fails. An unknown name lists the formats.
    lenient
        Skip damaged lines and count them.
    """
    from ..replay.recordings import read_recording

    recording = read_recording(file, lenient=lenient, format=reader)
    rules = provider or recording.provider or format_of_model(recording.model) or "anthropic"
    findings = _findings(recording, rules)
    spending = _spending([row.message for row in recording.messages])
    costs = _costs(recording)
    if as_json:
        facts = {
            "transcript": recording.path,
            "format": recording.format,
            "model": recording.model,
            "provider": rules,
            "legal": not findings,
            "findings": findings,
            **msgspec.structs.asdict(spending),
            "cost": costs,
            "kept_apart": recording.notes,
        }
        write_json(msgspec.json.encode(facts).decode())
    else:
        _print(recording, rules, findings, spending)
        _print_costs(costs)
    return 1 if findings else 0


class Finding(Struct, frozen=True):
    """One reason why a provider would refuse the recording."""

    message: int
    """Position in the conversation, from 1; 0 for the whole request."""
    line: int
    """Line of the file, from 1; 0 for none."""
    rule: str
    problem: str
    repair: str
    """The change that `foveate repair` makes."""


class Share(Struct, frozen=True):
    """The messages and tokens of a role or a tool."""

    name: str
    messages: int
    tokens: int


class Large(Struct, frozen=True):
    """A large message."""

    message: int
    role: str
    tool: str
    tokens: int
    begins: str


class Spending(Struct, frozen=True):
    """The tokens of a recording by role and tool, and its largest messages."""

    messages: int
    tokens: int
    by_role: list[Share]
    by_tool: list[Share]
    """Results by tool. Calls count as tokens of the assistant."""
    largest: list[Large]


# ------------------------------------------------------------------------------------------------------------- legality

_REPAIRS = {
    "pairing": "adds the missing answer behind its call, and makes a late answer, or one without a call, a note",
    "order": "moves the answers right behind their calls",
    "first": "adds a user message at the beginning",
    "empty": "removes the empty piece",
    "content": "removes the invalid content",
    "role": "changes the role to one that the provider knows",
    "block": "makes it text if the provider does not accept such a block",
    "call-id": "gives the call and its answer another id",
    "name": "replaces characters in the name that the provider does not accept",
    "arguments": "writes the arguments as a JSON object",
    "media": "makes it text if the provider does not accept it",
    "thinking": "removes reasoning that the provider does not accept, and signs calls",
    "trailing": "removes the white space",
    "system": "moves the system prompt to the provider's place for it",
    "keys": "leaves out the key, which the provider does not know",
    "messages": "cannot help: the provider wants a message with content that is no system prompt",
    "size": "cannot help: a request this large needs a policy (foveate replay)",
}


def _findings(recording: Recording, provider: str) -> list[Finding]:
    """Return the reasons why the provider would refuse the recording, in the order of its messages."""
    from ..testing.bodies import check_body

    messages = [row.message for row in recording.messages]
    if not messages:
        raise BadTranscript(recording.path, 0, "it holds side chains, but no main conversation.")
    body = body_of(provider, messages)
    # A recording may end with the model's answer, which some providers refuse in a request.
    refusals = [refusal for refusal in check_body(provider, body) if refusal.rule != "prefill"]
    places = positions_of(provider, messages, body, [refusal.where for refusal in refusals])
    return [
        Finding(
            place,
            recording.messages[place - 1].line if place else 0,
            refusal.rule,
            f"{refusal.where.rpartition('.')[2]}: {refusal.problem}" if refusal.rule == "keys" else refusal.problem,
            _REPAIRS.get(refusal.rule, "writes it in the provider's form"),
        )
        for place, refusal in sorted(zip(places, refusals, strict=True), key=lambda pair: pair[0])
    ]


# --------------------------------------------------------------------------------------------------------------- tokens


def _spending(messages: Sequence[Message]) -> Spending:
    from .text import beginning

    tools: dict[str, str] = {}
    facts: list[tuple[Message, str, int]] = []
    for message in messages:
        tools.update((call.call_id, call.name) for call in message.calls)
        result = message.result
        tool = (result.name or tools.get(result.call_id, "") or "unknown") if result else ""
        facts.append((message, tool, tokens_of(message)))
    order = sorted(range(len(facts)), key=lambda index: (-facts[index][2], index))[:10]
    return Spending(
        messages=len(facts),
        tokens=sum(tokens for *_, tokens in facts),
        by_role=_shares((message.role, tokens) for message, _, tokens in facts),
        by_tool=_shares((tool, tokens) for _, tool, tokens in facts if tool),
        largest=[
            Large(index + 1, facts[index][0].role, facts[index][1], facts[index][2], beginning(facts[index][0]))
            for index in order
        ],
    )


def _costs(recording: Recording) -> Costs:
    """Return what the recorded calls cost if each sends everything before it."""
    from ..core.context import rates_of
    from ..inspector.views.spending import spending_of_messages
    from ..open import cost_of

    cost = cost_of(recording.model) if recording.model else None
    return spending_of_messages(
        [row.message for row in recording.messages],
        tools=recording.tools,
        rates=rates_of(cost) if cost else None,
        times=[row.time for row in recording.messages],
    )


def _shares(named: Iterable[tuple[str, int]]) -> list[Share]:
    """Sum by name, the largest first."""
    sums: dict[str, tuple[int, int]] = {}
    for name, tokens in named:
        messages, before = sums.get(name, (0, 0))
        sums[name] = (messages + 1, before + tokens)
    shares = [Share(name, messages, tokens) for name, (messages, tokens) in sums.items()]
    return sorted(shares, key=lambda share: (-share.tokens, share.name))


# ------------------------------------------------------------------------------------------------------------- printing


def _print(recording: Recording, provider: str, findings: Sequence[Finding], spending: Spending) -> None:
    from ..core.plurals import plural
    from ..replay.numbers import count, percent
    from ..replay.report import notes_sentence
    from .output import heading, print_table, say

    labels = [recording.format, *([recording.model] if recording.model else [])]
    sizes = f"{plural(spending.messages, 'message')}, {plural(spending.tokens, 'token')}"
    heading(Path(recording.path).name, f"{', '.join(labels)}: {sizes}")
    if apart := notes_sentence(recording.notes):
        say(apart)
    say()
    if findings:
        heading(f"Not legal for {provider} as recorded: {plural(len(findings), 'problem')}.")
        for finding in findings:
            line = f" (line {finding.line})" if finding.line else ""
            where = f"message {finding.message}{line}: " if finding.message else ""
            say(f"  {where}{finding.problem} [{finding.rule}]")
            say(f"      foveate repair {finding.repair}.", style="dim")
    else:
        say(f"Legal for {provider} as recorded.", style="bold green")
    say()

    def rows(shares: Sequence[Share]) -> list[tuple[str, ...]]:
        whole = spending.tokens or 1
        return [(s.name, count(s.messages), count(s.tokens), percent(s.tokens / whole)) for s in shares]

    print_table(("role", "messages", "tokens", "share"), rows(spending.by_role))
    if spending.by_tool:
        print_table(("results of", "messages", "tokens", "share"), rows(spending.by_tool))
    print_table(
        ("largest", "from", "begins", "tokens", "share"),
        [
            (
                f"m{large.message}",
                large.tool or large.role,
                large.begins,
                count(large.tokens),
                percent(large.tokens / spending.tokens),
            )
            for large in spending.largest
        ],
        left=3,
    )


_RESULTS = 5
"""How many of the most expensive results are printed."""


def _print_costs(costs: Costs) -> None:
    """Print one short block: what the calls cost by kind of content, the results that cost most, and repetitions."""
    from ..core.plurals import plural
    from ..inspector.views.spending import SPENDING_NAMES
    from ..replay.numbers import count, dollars, percent
    from .output import heading, print_table, say

    if not costs.cost:
        return
    money = "" if costs.dollars is None else f", {dollars(costs.dollars)}"
    price = f"{count(costs.cost)} tokens at the price of input{money}, if each call sends everything"
    heading(f"Input cost of {plural(costs.calls, 'call')}", price)
    say(", ".join(f"{SPENDING_NAMES[share.kind]} {percent(share.cost / costs.cost)}" for share in costs.shares) + ".")
    if costs.wasted:
        results = plural(costs.superseded_results, "result")
        share = percent(costs.wasted / costs.cost)
        say(f"Superseded by a later read or run: {results}, {share} of the cost.")
    if costs.pauses:
        share = percent(costs.pause_cost / costs.cost)
        say(f"Written again after {plural(costs.pauses, 'pause')} in which the cache was lost: {share} of the cost.")
    say()
    rows = [
        (
            f"m{result.position}",
            result.tool or "unknown",
            _argument(result.argument),
            count(result.size),
            count(result.calls),
            percent(result.cost / costs.cost),
            *([] if result.dollars is None else [dollars(result.dollars)]),
        )
        for result in costs.results[:_RESULTS]
    ]
    if rows:
        titles = ("costs most", "results of", "call", "tokens", "calls", "share")
        print_table((*titles, *([] if costs.dollars is None else ["money"])), rows, left=3)


def _argument(text: str, width: int = 48) -> str:
    """Return the beginning of a call's argument, or the end of a path."""
    from .text import brief, printable

    plain = printable(text)
    return f"…{plain[1 - width :]}" if "/" in plain and " " not in plain and len(plain) > width else brief(plain, width)


_PLACE = re.compile(r"(?:messages|contents|input)\[(\d+)\](?:\.(?:content|parts)\[(\d+)\])?")
_FIELDS = {"gemini": ("contents", "parts")}
"""The names of the list of messages and of the content of a message, where they are not the usual ones."""


def body_of(provider: str, messages: Sequence[Message]) -> dict[str, Any]:
    """Return the request body with these messages exactly as recorded, legal or not."""
    wires = get_format(provider).render(messages)
    if provider == "openai":
        return {"messages": wires}
    if provider == "openai_responses":
        return {"input": wires}
    listed, content = _FIELDS.get(provider, ("messages", "content"))
    leading = next((at for at, wire in enumerate(wires) if wire["role"] != "system"), len(wires))
    system = [block for wire in wires[:leading] for block in wire[content]]
    if provider == "gemini":
        return {**({"systemInstruction": {"parts": system}} if system else {}), listed: wires[leading:]}
    return {**({"system": system} if system else {}), listed: wires[leading:]}


def positions_of(provider: str, messages: Sequence[Message], body: dict[str, Any], where: Sequence[str]) -> list[int]:
    """Map places in the body, such as `messages[3].content[1]`, to positions in the recording, from 1; 0 for none."""
    starts = _starts(provider, messages, body)
    positions = []
    for place in where:
        match = _PLACE.match(place)
        at = int(match[1]) if match else -1
        owners = starts[at] if 0 <= at < len(starts) else []
        block = int(match[2]) if match and match[2] else 0
        positions.append(owners[min(block, len(owners) - 1)] if owners else 0)
    return positions


def _starts(provider: str, messages: Sequence[Message], body: dict[str, Any]) -> list[list[int]]:
    """Return, for each wire message, the position of the recorded message of each of its blocks."""
    form = get_format(provider)
    if provider == "openai_responses":  # A message is one item or several; none holds several messages.
        return [[position] for position, message in enumerate(messages, 1) for _ in form.render([message])]
    listed, content_field = _FIELDS.get(provider, ("messages", "content"))
    blocks = [
        (position, wire[content_field])
        for position, message in enumerate(messages, 1)
        for wire in form.render([message])
        if provider == "openai" or wire["role"] != "system" or position > _leading(messages)
    ]
    owners: list[list[int]] = []
    rest = iter(blocks)
    for wire in body[listed]:
        content = wire.get(content_field)
        places: list[int] = []
        while not places or (isinstance(content, list) and len(places) < len(content)):
            position, part = next(rest, (0, None))
            if not position:
                break
            places += [position] * max(1, len(part) if isinstance(part, list) else 1)
            if not isinstance(content, list) or provider == "openai":
                break
        owners.append(places)
    return owners


def _leading(messages: Sequence[Message]) -> int:
    return next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
