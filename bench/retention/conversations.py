"""Conversations with facts among small talk and results, built from shapes and a seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from random import Random
from typing import NamedTuple

import foveate
from foveate import Message
from retention.filler import endless, padding
from retention.scoring import sentences_of
from retention.shapes import Fact, Shape
from retention.vocabulary import Words

__all__ = ["FACTS", "Sample", "add_group", "distinct_characters", "length_of", "prose_of", "samples", "text_of"]

FACTS = 12
"""Shapes in one conversation."""
_SHARE = 0.08
"""Share of all characters that say facts, so that they fit even the smallest budget (0.1), but leave little of it."""
_PLACES = ("start", "middle", "end")


class Sample(NamedTuple):
    """A conversation and the facts that it says."""

    groups: tuple[tuple[Message, ...], ...]
    """Messages in order; those of one group, such as a call and its result, belong together."""
    facts: tuple[Fact, ...]

    @property
    def messages(self) -> list[Message]:
        return [message for group in self.groups for message in group]

    def segments(self, count: int) -> list[list[Message]]:
        """Return the messages in `count` parts of about the same number of characters."""
        sizes = [sum(map(length_of, group)) for group in self.groups]
        whole, done = sum(sizes), 0
        parts: list[list[Message]] = [[] for _ in range(count)]
        for group, size in zip(self.groups, sizes, strict=True):
            parts[min(count - 1, done * count // max(1, whole))].extend(group)
            done += size
        return [part for part in parts if part]


def length_of(message: Message) -> int:
    """Return the characters of a message, its results and the arguments of its calls."""
    results = [part.text for part in message.parts if isinstance(part, foveate.ToolResult)]
    return len(message.text or "".join(results)) + sum(len(call.arguments) for call in message.calls)


def text_of(message: Message) -> str:
    """Return the text of a message, or of its result."""
    return message.text or (message.result.text if message.result else "")


def distinct_characters(sample: Sample) -> int:
    """Return the characters of all different sentences of a conversation: nobody can say more without repetition."""
    texts = map(text_of, sample.messages)
    return sum(map(len, {sentence for text in texts for line in text.splitlines() for sentence in sentences_of(line)}))


def prose_of(messages: Sequence[Message]) -> str:
    """Return everything that users, assistants and operators wrote, a line of a message a line."""
    lines = [line for message in messages if message.role != "tool" for line in message.text.splitlines()]
    return "\n".join(" ".join(line.split()) for line in lines)


def samples(shapes: Sequence[Shape], seeds: Sequence[int], *, rounds: int = 1, characters: int = 0) -> Iterator[Sample]:
    """Yield conversations in which each shape occurs once for each seed.

    `characters`: length of a conversation. By default facts take a twelfth of the text of one round, however many
    rounds there are: so the same facts are spread over more text.
    """
    for seed in seeds:
        random = Random(f"sample {seed}")
        shuffled = list(shapes)
        random.shuffle(shuffled)
        # A chat, a chat with tools, an agent. A long chat without any result would take thousands of turns.
        kinds = cycle((0.0 if characters < 100_000 else 0.3, 0.5, 0.9))
        for start in range(0, len(shuffled), FACTS):
            group = shuffled[start : start + FACTS]
            yield _build(group, Random(f"{seed} {start}"), next(kinds), rounds, characters)


def _build(shapes: Sequence[Shape], random: Random, share_of_steps: float, rounds: int, characters: int) -> Sample:
    words = Words(random)
    facts, planned = [], list[tuple[float, list[Message]]]()
    number = 0
    for shape, place in zip(shapes, cycle(_PLACES), strict=False):
        chosen = tuple(random.choice(wordings) for wordings in shape.says)
        says, keep, old, other, hedge = words.fill(chosen, shape.keep, shape.old, shape.other, (shape.hedge,))
        facts.append(Fact(shape.name, shape.kind, place, says, keep, old, other, hedge[0]))
        third = _PLACES.index(place) / 3
        last = random.uniform(third, third + 0.33)
        times = [last] if len(says) == 1 else sorted([*(random.uniform(0, last * 0.9) for _ in says[1:]), last])
        for time, text in zip(times, says, strict=True):
            number += 1
            if text.startswith("next:"):
                time = planned[-1][0] + 1e-9
            planned.append((time, _messages(text.removeprefix("next:"), random, number, len(facts))))
    planned.sort(key=lambda pair: pair[0])
    said = sum(len(text) for fact in facts for text in fact.says)
    wanted = characters or rounds * int(said / _SHARE)
    rest = max(0, wanted - sum(length_of(message) for _, group in planned for message in group))
    source, groups, written = endless(random, share_of_steps), list[tuple[Message, ...]](), 0
    for time, group in [*planned, (1.0, [])]:
        while written < time * rest:
            filler = next(source)
            written += sum(map(length_of, filler))
            add_group(groups, filler)
        if group:
            add_group(groups, group)
    return Sample(tuple(groups), tuple(facts))


def add_group(groups: list[tuple[Message, ...]], group: list[Message]) -> None:
    """Add a group; a user speaks before an assistant that has nothing to answer."""
    last = groups[-1][-1] if groups else None
    if group[0].role == "assistant" and (last is None or last.role in ("assistant", "system")):
        groups.append((foveate.user("Go on."),))
    groups.append(tuple(group))


def _messages(text: str, random: Random, number: int, fact: int) -> list[Message]:
    """Return the messages that say one text of a fact. A tool says all texts of a fact with one command."""
    role, colon, rest = text.partition(":")
    if colon and role == "tool":
        call = foveate.ToolCall(f"fact_{number}", "bash", f'{{"command": "make status-{fact}"}}')
        return [foveate.assistant("", call), foveate.tool_result(f"fact_{number}", rest)]
    if colon and role == "assistant":
        return [foveate.assistant(rest)]
    if colon and role == "system":
        return [foveate.system(rest)]
    if "<long>" in text:
        gap = "\n" if "\n" in text else " "
        pieces = [piece or padding(random, random.randint(4, 8)) for piece in text.split("<long>")]
        return [foveate.user(gap.join(pieces))]
    if random.random() < 0.3:  # Many people wrap a request in small talk.
        text = f"{padding(random, 1)} {text}" if random.random() < 0.5 else f"{text} {padding(random, 1)}"
    return [foveate.user(text)]
