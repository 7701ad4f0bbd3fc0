"""`foveate check`: would a provider take this recording as it is, and where do its tokens go?"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from msgspec import Struct

from ..core.messages import Message
from ..core.sizes import tokens_of
from ..errors import BadTranscript
from ..formats import get_format
from ..replay.recordings.recording import Recording
from .options import Provider

__all__ = ["body_of", "check", "positions"]


def check(
    file: Path,
    /,
    *,
    provider: Provider = "anthropic",
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    reader: Annotated[str | None, Parameter(name="--format")] = None,
    lenient: bool = False,
) -> int:
    """Is this recording legal for a provider, and where do its tokens go?

    The exit code is 1 if the provider would refuse it. `foveate repair` writes a copy that it takes.

    Example: `foveate check session.jsonl --provider openai`

    Parameters
    ----------
    file
        A recording.
    provider
        Whose rules: anthropic (the default) or openai.
    as_json
        Print one JSON object.
    reader
        The format of the file, if it is not to be found out: a name such as codex (an unknown one lists them).
    lenient
        Skip damaged lines and count them, instead of stopping.
    """
    from ..replay.recordings import read_recording

    recording = read_recording(file, lenient=lenient, format=reader)
    findings = _findings(recording, provider)
    spending = _spending([one.message for one in recording.messages])
    if as_json:
        facts = {
            "transcript": recording.path,
            "format": recording.format,
            "model": recording.model,
            "provider": provider,
            "legal": not findings,
            "findings": findings,
            **msgspec.structs.asdict(spending),
            "kept_apart": recording.notes,
        }
        sys.stdout.write(msgspec.json.encode(facts).decode() + "\n")
    else:
        _print(recording, provider, findings, spending)
    return 1 if findings else 0


class Finding(Struct, frozen=True):
    """One thing a provider would refuse."""

    message: int
    """Position in the conversation, from 1; 0 where it concerns the request as a whole."""
    line: int
    """Line of the file, from 1; 0 where there is none."""
    rule: str
    says: str
    mend: str
    """What `foveate repair` does about it."""


class Share(Struct, frozen=True):
    """What a role or a tool takes up."""

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
    """Where the tokens of a recording go."""

    messages: int
    tokens: int
    by_role: list[Share]
    by_tool: list[Share]
    """Results, by the tool that was called; what calling it took is the assistant's."""
    largest: list[Large]


# ------------------------------------------------------------------------------------------------------------- legality

_MENDS = {
    "pairing": "gives the call an answer right behind it, and tells an answer that is late or has no call as a note",
    "order": "puts the answers first, right behind their calls",
    "first": "lets a user speak first",
    "empty": "leaves the empty piece out",
    "content": "leaves out what cannot be content",
    "role": "gives it a role that the provider knows",
    "block": "tells it as text where the provider takes no such block",
    "call-id": "gives the call, and its answer, an id of its own",
    "name": "changes the name to characters that the provider takes",
    "arguments": "writes the arguments as a JSON object",
    "media": "tells it as text where the provider does not take it",
    "thinking": "leaves out reasoning that the provider would not take back",
    "trailing": "takes the white space away",
    "system": "puts the system prompt where the provider looks for it",
    "size": "nothing: a request this large needs a policy (foveate replay)",
}


def _findings(recording: Recording, provider: str) -> list[Finding]:
    """What the provider would refuse in the recording as it is, in the order of the messages."""
    from ..testing.bodies import check_body

    messages = [one.message for one in recording.messages]
    if not messages:
        raise BadTranscript(recording.path, 0, "it holds side chains, but no main conversation.")
    body = body_of(provider, messages)
    refusals = check_body(provider, body)
    places = positions(provider, messages, body, [refusal.where for refusal in refusals])
    return [
        Finding(
            place,
            recording.messages[place - 1].line if place else 0,
            refusal.rule,
            refusal.says,
            _MENDS.get(refusal.rule, "writes it as the provider wants it"),
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


def _shares(named: Iterable[tuple[str, int]]) -> list[Share]:
    """Sums by name, the largest first."""
    sums: dict[str, tuple[int, int]] = {}
    for name, tokens in named:
        messages, before = sums.get(name, (0, 0))
        sums[name] = (messages + 1, before + tokens)
    shares = [Share(name, messages, tokens) for name, (messages, tokens) in sums.items()]
    return sorted(shares, key=lambda share: (-share.tokens, share.name))


# ------------------------------------------------------------------------------------------------------------- printing


def _print(recording: Recording, provider: str, findings: Sequence[Finding], spending: Spending) -> None:
    from ..replay.numbers import count, percent, plural
    from ..replay.report import notes_told
    from .output import heading, print_table, say

    known = [recording.format, *([recording.model] if recording.model else [])]
    sizes = f"{plural(spending.messages, 'message')}, {plural(spending.tokens, 'token')}"
    heading(Path(recording.path).name, f"{', '.join(known)}: {sizes}")
    if apart := notes_told(recording.notes):
        say(apart)
    say()
    if findings:
        heading(f"Not legal for {provider} as recorded: {plural(len(findings), 'thing')} would be refused.")
        for finding in findings:
            line = f" (line {finding.line})" if finding.line else ""
            where = f"message {finding.message}{line}: " if finding.message else ""
            say(f"  {where}{finding.says} [{finding.rule}]")
            say(f"      foveate repair {finding.mend}.", style="dim")
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
                f"m{one.message}",
                one.tool or one.role,
                one.begins,
                count(one.tokens),
                percent(one.tokens / spending.tokens),
            )
            for one in spending.largest
        ],
        left=3,
    )


_PLACE = re.compile(r"messages\[(\d+)\](?:\.content\[(\d+)\])?")


def body_of(provider: str, messages: Sequence[Message]) -> dict[str, Any]:
    """The request that says these messages just as they were recorded, legal or not."""
    wires = get_format(provider).render(messages)
    if provider != "anthropic":
        return {"messages": wires}
    leading = next((at for at, wire in enumerate(wires) if wire["role"] != "system"), len(wires))
    system = [block for wire in wires[:leading] for block in wire["content"]]
    return {**({"system": system} if system else {}), "messages": wires[leading:]}


def positions(provider: str, messages: Sequence[Message], body: dict[str, Any], where: Sequence[str]) -> list[int]:
    """For places in the body such as `messages[3].content[1]`, the recording's message, from 1; 0 where it is none."""
    starts = _starts(provider, messages, body)
    found = []
    for place in where:
        match = _PLACE.match(place)
        at = int(match[1]) if match else -1
        owners = starts[at] if 0 <= at < len(starts) else []
        block = int(match[2]) if match and match[2] else 0
        found.append(owners[min(block, len(owners) - 1)] if owners else 0)
    return found


def _starts(provider: str, messages: Sequence[Message], body: dict[str, Any]) -> list[list[int]]:
    """For each wire message, the positions of the recorded messages that its blocks come from, a block each."""
    alone = get_format(provider)
    blocks = [
        (position, wire["content"])
        for position, message in enumerate(messages, 1)
        for wire in alone.render([message])
        if provider != "anthropic" or wire["role"] != "system" or position > _leading(messages)
    ]
    owners: list[list[int]] = []
    waiting = iter(blocks)
    for wire in body["messages"]:
        content = wire.get("content")
        mine: list[int] = []
        while not mine or (isinstance(content, list) and len(mine) < len(content)):
            position, part = next(waiting, (0, None))
            if not position:
                break
            mine += [position] * max(1, len(part) if isinstance(part, list) else 1)
            if not isinstance(content, list) or provider != "anthropic":
                break
        owners.append(mine)
    return owners


def _leading(messages: Sequence[Message]) -> int:
    return next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
