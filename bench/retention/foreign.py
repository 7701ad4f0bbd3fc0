"""Whole conversations in registers unlike those of the shapes. Their losses were first read for design/0071.

A script has one line for each message: `u`, `a`, `s` or `t` for user, assistant, system or tool, then the text. A line
with `=` names a fact that the messages before it say: its kind and tokens, then `old`, `other` and `hedge`, if any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

import foveate
from foveate import Message
from retention.conversations import Sample, add_group, length_of
from retention.shapes import KINDS, NOT, Fact, Kind
from retention.vocabulary import Words

__all__ = ["Register", "Script", "foreign_samples", "parse_script"]

_SHARE = 0.08
"""Share of all characters that say facts, as in the other conversations."""
_PLACES = ("start", "middle", "end")
_ROLES = {"u": "user", "a": "assistant", "s": "system", "t": "tool"}


class Register(NamedTuple):
    """How people of one kind talk when they say nothing that matters."""

    asks: tuple[str, ...]
    answers: tuple[str, ...]
    result: Callable[[Random], str] | None = None
    """Makes the result of a tool; None: no tool is called."""
    share_of_results: float = 0.5

    def groups(self, random: Random) -> Iterator[list[Message]]:
        """Yield groups of messages without end."""
        number = 0
        while True:
            number += 1
            if self.result and random.random() < self.share_of_results:
                call = foveate.ToolCall(f"filler_{number}", "lookup", f'{{"page": {number}}}')
                yield [foveate.assistant("", call), foveate.tool_result(call.call_id, self.result(random))]
            else:
                ask = random.choice(self.asks)
                answer = " ".join(random.sample(self.answers, min(len(self.answers), random.randint(1, 3))))
                yield [foveate.user(ask), foveate.assistant(answer)]


class Script(NamedTuple):
    """A conversation as written: its messages, and the facts with the line that says them last."""

    name: str
    lines: tuple[tuple[str, str], ...]
    """Role and text of each message."""
    facts: tuple[tuple[int, tuple[tuple[str, str], ...]], ...]
    """The number of lines before each fact, and its fields by name."""


def parse_script(text: str) -> Script:
    """Return a script. Its first line is the name. Raises ValueError for a line that is neither message nor fact."""
    name, *rest = text.strip().splitlines()
    lines, facts = list[tuple[str, str]](), list[tuple[int, tuple[tuple[str, str], ...]]]()
    for line in rest:
        mark, _, content = line.strip().partition(" ")
        if mark == "=":
            kind, *fields = (field.strip().partition(" ")[::2] for field in content.split(" / "))
            if kind[0] not in KINDS:
                raise ValueError(f"The kind of {line!r} is unknown. Use one of {', '.join(KINDS)}.")
            facts.append((len(lines), (("kind", kind[0]), ("keep", kind[1]), *fields)))
        elif mark in _ROLES:
            lines.append((_ROLES[mark], content.replace("\\n", "\n")))
        else:
            raise ValueError(f"The line {line!r} begins with no known mark. Use u, a, s, t or =.")
    return Script(name, tuple(lines), tuple(facts))


def foreign_samples(
    scripts: Sequence[tuple[Register, Script]], seeds: Sequence[int], *, rounds: int = 1, characters: int = 0
) -> Iterator[Sample]:
    """Yield each conversation once for each seed, with small talk of its register between its lines."""
    for seed in seeds:
        for register, script in scripts:
            yield _build(register, script, Random(f"{script.name} {seed}"), rounds, characters)


def _build(register: Register, script: Script, random: Random, rounds: int, characters: int) -> Sample:
    words = Words(random)
    texts = tuple(text for _, text in script.lines)
    fields = tuple(value for _, pairs in script.facts for _, value in pairs)
    texts, fields = words.fill(texts, fields)
    values = iter(fields)
    facts = []
    for before, pairs in script.facts:
        named = {name: next(values) for name, _ in pairs}
        place = _PLACES[min(2, 3 * (before - 1) // len(texts))]
        tokens = {
            name: tuple(named.get(name, "").replace("NOT", NOT).split(" & ")) for name in ("keep", "old", "other")
        }
        keep, old, other = (tuple(token for token in tokens[name] if token) for name in ("keep", "old", "other"))
        facts.append(
            Fact(
                script.name, _kind(named["kind"]), place, (texts[before - 1],), keep, old, other, named.get("hedge", "")
            )
        )
    said = sum(len(texts[number - 1]) for number in {before for before, _ in script.facts})
    rest = (characters or rounds * int(said / _SHARE)) - sum(map(len, texts))
    source, groups, written = register.groups(random), list[tuple[Message, ...]](), 0
    for number, ((role, _), text) in enumerate(zip(script.lines, texts, strict=True)):
        while written < rest * (number + random.random()) / len(texts):
            filler = next(source)
            written += sum(map(length_of, filler))
            add_group(groups, filler)
        add_group(groups, _message(role, text, number))
    while written < rest:
        filler = next(source)
        written += sum(map(length_of, filler))
        add_group(groups, filler)
    return Sample(tuple(groups), tuple(facts))


def _kind(name: str) -> Kind:
    return next(kind for kind in KINDS if kind == name)


def _message(role: str, text: str, number: int) -> list[Message]:
    if role == "tool":
        call = foveate.ToolCall(f"line_{number}", "lookup", '{"page": 0}')
        return [foveate.assistant("", call), foveate.tool_result(call.call_id, text)]
    return [{"user": foveate.user, "assistant": foveate.assistant, "system": foveate.system}[role](text)]
