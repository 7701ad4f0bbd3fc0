"""The account of a history, made by code: its sections, what goes into them, and what weighs how much.

A line weighs more the later it was said, the more often what it names was used, and if the focus names it. `digest.py`
makes a summarizer of this, `sections.py` chooses what fits.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from ..core.messages import Message, ToolCall
from ..core.summaries import SummaryRequest
from .anchors import anchors, error_lines
from .sections import Section, fitted, read_sections
from .speakers import is_in_short, is_users

__all__ = ["account"]

GOAL, ASKED, DONE, ERRORS, FOUND, BEFORE, LAST, NAMES = (
    "Goal",
    "Asked by the user",
    "Done",
    "Errors",
    "Files and identifiers",
    "Before",
    "Last said",
    "Names",
)
_SHARES = {GOAL: 0.15, ASKED: 0.2, DONE: 0.25, ERRORS: 0.07, FOUND: 0.2, BEFORE: 0.15, LAST: 0.08}
_NAMES = 0.45
"""Share of the room for names alone."""
_SAME = {
    "constraints": ASKED,
    "open": ASKED,
    "pending request": ASKED,
    "errors and fixes": ERRORS,
    "identifiers": FOUND,
    "files": FOUND,
}
"""Titles of other accounts, by what they come to here."""
_REFERRED = "Still referred to: "
_STEP = 200
"""Characters of a line that tells of a step in short."""
_LINE = 120
"""Characters of a line that is quoted from a result."""
_CONSTRAINT = re.compile(
    r"\b(?:must|never|always|do not|don['’]t|only|without|required?|should|shall|avoid|make sure|important|nicht|immer|"
    r"niemals|toujours|jamais|siempre|nunca|sempre|mai)\b|必须|不要|禁止|нельзя|всегда|никогда",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"<(\w+)[^>]*>.*</\1>", re.DOTALL)
"""What a program wraps so and says in the user's name is not the goal."""
_TARGETS = (
    "path",
    "file_path",
    "filepath",
    "file",
    "filename",
    "command",
    "cmd",
    "url",
    "query",
    "pattern",
    "name",
    "id",
)
"""Arguments that say what a call is done to, the likeliest first."""


def account(request: SummaryRequest) -> str:
    """What happened, in at most `request.target` characters."""
    room = request.target
    referred = _referred(request, room)
    sections = {title: Section(title, share) for title, share in _SHARES.items()}
    _carry_on(request.previous, sections)
    _read(request, sections)
    _weigh_focus(request.focus, sections)
    free = room - len(referred) - 2 * bool(referred)
    text = fitted(list(sections.values()), free - int(room * _NAMES))
    text += _names(request, text, free - len(text))
    missing = [value for value in request.required if value not in text]
    if missing and referred:
        text += f"\n\n{_REFERRED}{', '.join(value for value in missing if value in referred)}"
    return text.strip()[:room] or _least(request)


def _names(request: SummaryRequest, text: str, room: int) -> str:
    """The names that are spoken of most and are not in the text yet: without their lines, so that many fit."""
    weights: defaultdict[str, float] = defaultdict(float)
    count = len(request.messages)
    for i, message in enumerate(request.messages):
        age = 0.5 + (i + 1) / count
        for name in set(anchors(message.text)):
            weights[name] += age if message.role == "tool" else 2 * age
        for call in message.calls:
            for name in set(anchors(_texts(call))):
                weights[name] += 2 * age
    for line in read_sections(request.previous).get(NAMES, ()):
        for name in line.split(", "):
            weights[name] += 1.0
    line = f"\n\n## {NAMES}\n"
    kept: list[str] = []
    left = room - len(line)
    for name, weight in sorted(weights.items(), key=lambda pair: (-pair[1], pair[0])):
        if weight < 1.0:
            break
        if len(name) + 2 <= left and name not in text:
            kept.append(name)
            left -= len(name) + 2
    return line + ", ".join(kept) if kept else ""


def _referred(request: SummaryRequest, room: int) -> str:
    """Room is set apart for what must be in it, at most a quarter."""
    line = _REFERRED
    for value in request.required:
        if len(line) + len(value) + 2 > room // 4:
            break
        line += f"{value}, "
    return line if line != _REFERRED else ""


def _least(request: SummaryRequest) -> str:
    """Where no line fits as it is: the beginning of the first text there is."""
    texts = (" ".join(text.split()) for text in (request.previous, *(one.text for one in request.messages)))
    return next((text[: request.target] for text in texts if text), f"{len(request.messages)} messages")[
        : request.target
    ]


# ---------------------------------------------------------------------------------------------- what goes into sections


def _carry_on(previous: str, sections: dict[str, Section]) -> None:
    """The lines of the summary before: they are older than all else, and goals come from there."""
    for title, lines in read_sections(previous).items():
        ours = title if title in sections else _SAME.get(title.lower(), BEFORE)
        if ours == LAST:
            ours = BEFORE
        if title == NAMES:
            continue
        for i, line in enumerate(lines):
            if not line.startswith(_REFERRED):
                sections[ours].add(line, 1.0 if ours == GOAL else 0.3 + 0.1 * (i + 1) / len(lines))


def _read(request: SummaryRequest, sections: dict[str, Section]) -> None:
    messages = request.messages
    used = _used(messages)
    words = _words(request.focus)
    calls = {call.call_id: call for message in messages for call in message.calls if call.call_id}
    has_goal = bool(sections[GOAL].lines)
    done: dict[str, dict[str, float]] = {}
    seen: set[str] = set()
    for i, message in enumerate(messages):
        age = (i + 1) / len(messages)
        match message.role:
            case "user" if is_in_short(message):
                for line in message.text.splitlines()[1:]:  # The first says what it is.
                    sections[DONE].add(line.strip()[:_STEP], age)
            case "user" if not is_users(message):
                for line in _naming(message.text, seen):
                    sections[FOUND].add(line, age + _value(line, used))
            case "user":
                is_goal = not has_goal and not _MARKUP.fullmatch(message.text.strip())
                said = _said(message.text, int(request.target * (0.15 if is_goal else 0.1)))
                if said and is_goal:
                    sections[GOAL].add(said, 2.0)
                    has_goal = True
                elif said:
                    sections[ASKED].add(f"- {said}", 0.5 + age)
            case "assistant":
                for call in message.calls:
                    target = _target(call)
                    targets = done.setdefault(call.name, {})
                    targets[target] = targets.get(target, 0.0) + age
                for line in _naming(message.text, seen):
                    sections[FOUND].add(line, age + _value(line, used))
            case "tool" if message.result is not None:
                _read_result(message, calls.get(message.result.call_id), age, used, words, seen, sections)
            case _:
                pass
    for name, targets in done.items():
        for line, weight in _grouped(name, targets):
            sections[DONE].add(line, weight)
    shown = [line for title in (GOAL, ASKED, ERRORS) for line in sections[title].lines]
    last = next((one.text for one in reversed(messages) if one.role == "assistant" and one.text.strip()), "")
    sections[LAST].add(_tail(last, int(request.target * 0.08)), 1.0)
    told = " ".join("\n".join([*shown, last]).split())
    sections[FOUND].lines = {line: weight for line, weight in sections[FOUND].lines.items() if line not in told}


def _read_result(
    message: Message,
    call: ToolCall | None,
    age: float,
    used: Counter[str],
    words: list[str],
    seen: set[str],
    sections: dict[str, Section],
) -> None:
    result = message.result
    assert result is not None, "only results are read here"
    what = f"{call.name} {_target(call)}"[:80] if call else result.name
    if result.state == "error":
        told = error_lines(result.text, 1) or [" ".join(result.text.split())]
        sections[ERRORS].add(f"- {what}: {told[0][:_LINE]}", 1.0 + age)
    else:  # Many tools do not say that they failed, but print it.
        for line in error_lines(result.text, 1):
            sections[ERRORS].add(f"- {what}: {line[:_LINE]}", age)
    for line in _naming(result.text, seen):
        value = _value(line, used)
        if value or _hits(line, words):
            sections[FOUND].add(line, age + value)


def _used(messages: tuple[Message, ...]) -> Counter[str]:
    """How often calls and people named what."""
    used: Counter[str] = Counter()
    for message in messages:
        for call in message.calls:
            used.update(set(anchors(_texts(call))))
        if message.role != "tool":
            used.update(set(anchors(message.text)))
    return used


def _naming(text: str, seen: set[str]) -> Iterator[str]:
    """The lines that name what was not named before, cut to what holds the names."""
    for line in text.splitlines():
        new = [name for name in anchors(line) if name not in seen]
        if new:
            seen.update(new)
            yield _around(" ".join(line.split()), new)


def _around(line: str, names: list[str]) -> str:
    if len(line) <= _LINE:
        return line
    start = max(0, line.find(names[0]) - 20)
    return line[start : start + _LINE]


def _value(line: str, used: Counter[str]) -> float:
    """What a line is worth for its length, by what was used of it."""
    return sum(min(3, used[name]) for name in set(anchors(line))) / 3


def _given(call: ToolCall) -> dict[str, Any] | None:
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _texts(call: ToolCall) -> str:
    """What a call says, as it was meant: without the marks that JSON puts in."""
    given = _given(call)
    return call.arguments if given is None else "\n".join(map(str, given.values()))


def _target(call: ToolCall) -> str:
    """What a call was done to, in one line."""
    given = _given(call)
    if given is None:
        return " ".join(call.arguments.split())[:80]
    texts = {key: value for key, value in given.items() if isinstance(value, str) and value.strip()}
    key = next((key for key in _TARGETS if key in texts), next(iter(texts), ""))
    said = texts.get(key) or json.dumps(given, ensure_ascii=False)
    return " ".join(said.split())[:120]


def _grouped(name: str, targets: dict[str, float]) -> Iterator[tuple[str, float]]:
    """Lines such as `- read: a.py ×2, b.py`, a few targets each."""
    line, weight, top = "", 0.0, 0.0
    for target, value in sorted(targets.items(), key=lambda pair: -pair[1]):
        if line and len(line) + len(target) > 200:
            yield f"- {name}: {line}", top
            line, top = "", 0.0
        line += f"{', ' if line else ''}{target}"
        weight = value
        top = max(top, weight)
    if line:
        yield f"- {name}: {line}", top


def _said(text: str, room: int) -> str:
    """What somebody said, whole if it fits; else its beginning, its lines that bind, and its end."""
    plain = " ".join(text.split())
    if len(plain) <= room:
        return plain
    binding = " ".join(" ".join(line.split()) for line in text.splitlines() if _CONSTRAINT.search(line))
    parts = [plain[: room // 2], binding[: room // 3] if binding and binding not in plain[: room // 2] else ""]
    tail = max(0, room - sum(map(len, parts)) - 8)
    return " … ".join([*(part for part in parts if part), plain[-tail:] if tail > 20 else ""]).strip(" …")


def _tail(text: str, room: int) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= room else f"… {plain[-max(1, room - 2) :]}"


def _weigh_focus(focus: str, sections: dict[str, Section]) -> None:
    words = _words(focus)
    for section in sections.values() if words else ():
        for line, weight in section.lines.items():
            section.lines[line] = weight + 2 * _hits(line, words)


def _words(focus: str) -> list[str]:
    return [word for word in re.findall(r"\w+", focus.casefold()) if len(word) > 3]


def _hits(line: str, words: list[str]) -> int:
    """How many words of the focus a line holds."""
    return sum(word in line.casefold() for word in words)
