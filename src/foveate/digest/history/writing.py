"""Writing: the sections of the digest of a history, and the reading of earlier summaries.

Code copies or counts everything in a digest, so nothing is invented, and the same messages give the same text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from ...core.messages import Message
from .holding import Holding, holding_among
from .selection import Line, Selection, take_fitting
from .signs import Sign, signs_of
from .speakers import is_from_user, is_summary
from .statements import ANSWERED, cut_at_clause, split_sentences, split_statements
from .steps import Steps
from .supersession import find_superseded
from .terms import shape_of_value, terms_of
from .weights import LATER, Kind, Speaker, Statement, weigh

__all__ = ["find_holding", "read_sections", "write_digest"]

GOAL, RULES, DECISIONS, VALUES, OPEN = "Goal", "Rules", "Decisions", "Values", "Open"
ASKED, DONE, ERRORS, FOUND = "Asked by the user", "Done", "Errors", "Files and identifiers"
SAID, LAST, NAMES = "Said", "Last said", "Names"
_ORDER = (GOAL, RULES, DECISIONS, VALUES, OPEN, ASKED, DONE, ERRORS, FOUND, SAID, LAST)
_TITLE_OF: dict[Kind, str] = {
    "goal": GOAL,
    "rule": RULES,
    "decision": DECISIONS,
    "value": VALUES,
    "open": OPEN,
    "asked": ASKED,
    "said": SAID,
}
_OF_MODEL = frozenset(("said", "last said", "before"))
"""Titles of what the model said."""
_KIND_OF: dict[str, Kind] = {
    **{title.casefold(): kind for kind, title in _TITLE_OF.items() if kind != "said"},
    "constraints": "rule",
    "instructions": "rule",
    "preferences": "rule",
    "pending request": "open",
    "next steps": "open",
}
"""Titles of digests and of summaries by models, and the kinds of their statements."""
_COPIED = {
    "done": DONE,
    "errors": ERRORS,
    "errors and fixes": ERRORS,
    "files and identifiers": FOUND,
    "data sources": FOUND,
    "identifiers": FOUND,
    "files": FOUND,
}
"""Titles whose lines are carried on as they are."""
_REFERRED = "Still referred to: "
_NAMES = 0.45
"""Share of the room for names alone. In a recorded history of 150 messages, a list of names holds twice as many of the
names that later calls used as whole lines of the same size.
"""
_VITAL, _ASSISTANT = 0.8, 0.2
"""Shares of the room for what a user or a system message said that binds, and for what the model said."""
_SHARES = {VALUES: 0.07, ERRORS: 0.07, DONE: 0.22, FOUND: 0.15}
_COMPARED = 6
"""Statements are compared with each other up to this many times the room, the heaviest first."""
_LAST = 0.08
_FILLED = 20_000
"""Characters of a result whose lines may fill the room."""
_FORMULA = 4
"""Words of a beginning. Statements without other worth that share it are formulas."""
_USUAL = 2.0
"""How often statements may begin alike without a loss of weight; those with worth twice as often."""
_GOAL = 300
"""Characters of the first request that are the goal. The rest of it is what the user asked."""
_FOCUS = 40.0
"""Worth that a word of the focus adds to a line."""
_MARKUP = re.compile(r"<(\w+)[^>]*>.*</\1>", re.DOTALL)
"""A text in markup comes from a program in the user's name: it is not the goal."""
_BULLET = "- "
_BETWEEN = " · "
"""Stands between older statements that one later statement may replace."""
_JOINED = 500
"""Characters of a line with older statements and a later one."""
_HOLDING = 8_000
"""The room that bounds the statements among which those that hold are searched."""
_ANSWER = 40
"""Characters of an answer that is shown with its question."""
_ANSWER_WORDS = 3
_QUESTION = 160
_ASKS_FOR_VALUE = re.compile(
    r"\b(?:which|what|who|whom|whose|when|where|how (?:many|much|long|often|big|far)|or|welche\w*|was|wer|wann|wo|wohin"
    r"|wie ?viele?|wie (?:lange|oft)|oder|quel\w*|combien|qui|quand|où|cuál\w*|qué|quién|cuándo|dónde|cuánt\w*|qual"
    r"|quais|quem|quando|onde|quant\w*|quale|quali|chi|dove|как\w*|кто|когда|где|сколько)\b"
    r"|哪|什么|多少|几|谁|どの|どれ|何|いつ|誰|いくつ",
    re.IGNORECASE,
)
"""Words of a question that a value answers."""
_SETTLED = 6.0
"""Least worth of a correction that takes the place of a statement or of a reported value."""
_PROMPT = 1_000
"""Characters of a first system message above which it is the prompt of the agent, and no instruction in between."""
_ROW = 40
"""Characters that are worth filling."""


def write_digest(messages: Sequence[Message], room: int, previous: str, required: Sequence[str], focus: str) -> str:
    """Return the digest of a history, as `digest_messages` describes it."""
    required = take_fitting(required, room // 4 - len(_REFERRED))
    free = room - (len(_REFERRED) + 2 + sum(len(name) + 2 for name in required) if required else 0)
    reader = _Reader(messages, room, previous, focus)
    selection = reader.select(free)
    text = selection.text(_ORDER)
    stale = " ".join(reader.stale)
    names = (name for name in reader.names() if name not in text and name.casefold() not in stale)
    head = f"\n\n## {NAMES}\n"
    if kept := take_fitting(names, selection.left - len(head) + 2):
        text += head + ", ".join(kept)
        selection.left = free - len(text)
    if selection.left > _ROW:
        selection.add(reader.rest(), selection.left)
        for message in reversed(messages if selection.left > room // 50 else ()):
            selection.add(reader.lines_of(message), selection.left)
            if selection.left <= room // 50:
                break
        selection.add(reader.cut_lines(selection.left), selection.left)
        text = selection.text(_ORDER) + (head + ", ".join(kept) if kept else "")
    if missing := [name for name in required if name not in text]:
        text += f"\n\n{_REFERRED}{', '.join(missing)}"
    return text.strip()[:room] or _least(messages, previous, room)


def find_holding(messages: Sequence[Message], previous: str) -> Holding:
    """Return the rules and values that hold, as `holding_statements` describes them."""
    spoken = [one for one in messages if one.role in ("system", "developer") or is_from_user(one) or is_summary(one)]
    return holding_among(_Reader(spoken, _HOLDING, previous, "").statements)


def read_sections(text: str) -> Mapping[str, list[str]]:
    """Return the lines of a text by the titles above them; "" for those above the first title."""
    sections: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines():
        if line.startswith("#"):
            title = line.lstrip("#").strip().rstrip(":")
        elif line.strip():
            sections.setdefault(title, []).append(line.rstrip())
    return sections


def _least(messages: Sequence[Message], previous: str, room: int) -> str:
    """Return the beginning of the first text, if no whole line fits."""
    texts = (" ".join(text.split()) for text in (previous, *(message.text for message in messages)))
    return cut_at_clause(next(filter(None, texts), f"{len(messages)} messages"), room)


class _Reader:
    """Reads an earlier summary and messages, oldest first, into statements and lines."""

    def __init__(self, messages: Sequence[Message], room: int, previous: str, focus: str) -> None:
        self._room = room
        self._focus = [word for word in re.findall(r"\w+", focus.casefold()) if len(word) > 3]
        self._steps = Steps(messages, self._focus)
        self._lines: list[Line] = []
        self._has_goal = False
        self._position = 0
        self._turn = 0
        self._question = ""
        self._listed: dict[str, Statement] = {}
        self._dead: set[str] = set()
        self._links: list[tuple[Statement, Statement]] = []
        """Pairs of an older and a later statement that may replace it."""
        self._names: list[str] = []
        self.statements: list[Statement] = []
        """The statements, oldest first, without those that later ones replace."""
        self._answer = self._last_answer(messages)
        self._last_before: list[str] = []
        self._carry_on(previous)
        for i, message in enumerate(messages):
            self._read(i, message, (i + 1) / len(messages))
        newer = tuple(self._listed)
        self.statements = [
            one
            for one in _without_copies(self.statements)
            if one.text and not (one.speaker == "summary" and one.text.startswith(newer))
        ]
        self._discount_formulas()
        self.stale = self._settle()

    # --------------------------------------------------------------------------------------------------- reading

    def _carry_on(self, text: str) -> None:
        """Read an earlier summary: its statements keep their kinds."""
        self._turn = 0
        for title, lines in read_sections(text).items():
            folded = title.casefold()
            kind = _KIND_OF.get(folded)
            speaker: Speaker = "assistant" if folded in _OF_MODEL else "summary"
            for line in lines:
                if line.startswith(_REFERRED):
                    continue
                if title == NAMES:
                    self._names += line.split(", ")
                elif title == LAST and not self._answer:
                    self._last_before.append(line)
                elif folded in _COPIED:
                    self._copy(_COPIED[folded], line, 0.6)
                elif kind is None:
                    for statement in split_statements(line):
                        self._state(statement, speaker, 0.5)
                else:
                    plain = line.strip().removeprefix(_BULLET)
                    if LATER in plain and plain.endswith(")"):
                        self._state_pair(plain, kind)
                        continue
                    pieces = [plain] if len(plain) <= 400 else split_statements(plain)
                    for piece in pieces:
                        self._state(piece, "summary", 0.5, kind)
                self._has_goal |= kind == "goal"

    def _state_pair(self, line: str, kind: Kind) -> None:
        """Add the statements of a line that shows a later one behind older ones."""
        earlier, _, later = line.removesuffix(")").partition(LATER)
        older = [self._state(one, "summary", 0.5, kind) for one in earlier.split(_BETWEEN)]
        newest = self._state(later, "summary", 0.5, kind)
        self._links += [(one, newest) for one in older]

    def _copy(self, title: str, line: str, weight: float) -> None:
        self._lines.append(Line(title, line, weight, len(self._lines)))

    def _state(self, text: str, speaker: Speaker, age: float, kind: Kind | None = None) -> Statement:
        """Add a statement. `kind`: its kind, if the section of a summary says so."""
        self._position += 1
        statement = weigh(text, speaker, self._position, age, kind)
        statement.turn = self._turn
        self.statements.append(statement)
        return statement

    def _read(self, place: int, message: Message, age: float) -> None:
        self._turn = place + 1
        match message.role:
            case "user" if is_summary(message):
                self._read_summary(message.text, age)
            case "user" if is_from_user(message):
                self._read_input(message.text, age)
            case "user":
                self._steps.add_text(place, message.text, age)
            case "system" | "developer" if place == 0 and len(message.text) > _PROMPT:
                pass  # The engine shows the first instructions next to every summary.
            case "system" | "developer":
                self._read_texts(message.text, "system", age)
            case "assistant":
                for call in message.calls:
                    self._steps.add_call(call, age)
                self._read_texts(message.text, "assistant", age)
                self._question = _last_question(message.text)
            case "tool" if (result := message.result) is not None:
                self._list(*self._steps.add_result(place, result, age), age)
            case _:
                pass

    def _list(self, about: str, pairs: str, age: float) -> None:
        """Add the values with their keys that a call reported, in place of those that it reported before."""
        if pairs:
            key = f"{about}: {_identity_of(pairs)}"
            if key in self._listed:
                self._listed[key].text = ""
            statement = self._listed[key] = self._state(f"{about}: {pairs}", "tool", age, "value")
            statement.weight = 1.0 + age

    def _read_summary(self, text: str, age: float) -> None:
        if "\n## " in text or text.startswith("## "):
            self._carry_on(text[text.index("## ") :])
            return
        for line in text.splitlines()[1:]:  # The first line describes the kind of message.
            if plain := line.strip():
                self._copy(DONE, cut_at_clause(plain, 200), age)

    def _read_texts(self, text: str, speaker: Speaker, age: float) -> None:
        for statement in split_statements(text):
            self._state(statement, speaker, age)

    def _read_input(self, text: str, age: float) -> None:
        begun = len(self.statements)
        plain, question = " ".join(text.split()), self._question
        self._question = ""
        if question and _is_answer(plain):
            self._state(f"{question}{ANSWERED}{plain}", "user", age)
        else:
            self._read_texts(text, "user", age)
        if self._has_goal or _MARKUP.fullmatch(text.strip()):
            return
        left = min(_GOAL, int(self._room * 0.15))
        for statement in self.statements[begun:]:
            if statement.kind in ("rule", "said") or statement.weight < 0.5:
                continue
            if self._has_goal and len(statement.text) > left:
                break
            weight = 30.0 if not self._has_goal else 8.0
            statement.kind, statement.weight, self._has_goal = "goal", weight, True
            left -= len(statement.text)

    @staticmethod
    def _last_answer(messages: Sequence[Message]) -> str:
        return next(
            (message.text for message in reversed(messages) if message.role == "assistant" and message.text.strip()), ""
        )

    def _discount_formulas(self) -> None:
        """Lower the weight of statements that begin like many others: formulas say little."""
        plain = [one for one in self.statements if one.kind not in ("goal", "rule")]
        begins = [" ".join(one.text.casefold().split(maxsplit=_FORMULA)[:_FORMULA]) for one in plain]
        times = Counter(begins)
        for one, begin in zip(plain, begins, strict=True):
            usual = _USUAL if one.kind in ("asked", "said") else 2 * _USUAL
            one.weight *= min(1.0, usual / times[begin])

    def _settle(self) -> frozenset[str]:
        """Remove statements that later ones replace. Returns the values that no longer hold."""
        room, kept = _COMPARED * max(self._room, 2_000), set[int]()
        self._long = [one for one in self.statements if len(one.text) > self._room]
        self.statements = [one for one in self.statements if len(one.text) <= self._room]
        order = sorted(range(len(self.statements)), key=lambda one: -self.statements[one].weight)
        for one in order:
            room -= len(self.statements[one].text)
            if room < 0:
                break
            kept.add(one)
        self.statements = [self.statements[one] for one in sorted(kept)]
        found = find_superseded(self.statements)
        for one in found.goals:
            self.statements[one].kind, self.statements[one].weight = "goal", 30.0
        for one, text in found.texts.items():
            self._dead.add(self.statements[one].text)
            self.statements[one].text = text
        self._dead |= found.items
        for one, before in found.heirs.items():
            new, old = self.statements[one], self.statements[before]
            new.weight = max(new.weight, old.weight, _SETTLED)
            if old.speaker != "tool" and old.is_authoritative and old.kind not in ("asked", "said"):
                new.kind = old.kind
            elif new.kind in ("asked", "said"):
                new.kind = "value"
        self._join([(self.statements[old], self.statements[new]) for old, new in found.followed.items()])
        self.statements = [one for one in self.statements if one.text]
        shown = " ".join(statement.shown for statement in self.statements).casefold()
        return frozenset(value for value in found.values if value not in shown)

    def _join(self, followed: Sequence[tuple[Statement, Statement]]) -> None:
        """Put older statements in front of the later ones that may replace them."""
        places = {id(one): place for place, one in enumerate(self.statements) if one.text}
        later = {
            id(old): new
            for old, new in (*self._links, *followed)
            if places.get(id(old), len(places)) < places.get(id(new), -1)
        }
        for old in [one for one in self.statements if id(one) in later]:
            newest = later[id(old)]
            while id(newest) in later:
                newest = later[id(newest)]
            text = old.text.rstrip(". ")
            if len(newest.shown) + len(text) > _JOINED:
                continue
            if old.kind == "rule" and newest.kind != "rule":
                continue  # A doubtful correction of a rule is a rule, too.
            newest.earlier += f"{_BETWEEN if newest.earlier else ''}{text}"
            newest.weight += old.weight
            newest.speaker = old.speaker if old.is_authoritative else newest.speaker
            if newest.kind in ("asked", "said") or old.kind == "rule":
                newest.kind = old.kind
            self._dead.add(old.text)
            old.text = ""

    # ------------------------------------------------------------------------------------------------- selecting

    def names(self) -> list[str]:
        """Return the names that are worth listing, the best first."""
        return self._steps.rank_names(self._names)

    def select(self, room: int) -> Selection:
        """Return the lines for a room of `room` characters, in which names have their share."""
        selection = Selection(room)
        statements = [one for one in self.statements if one.speaker != "tool" and not _is_exclamation(one)]
        lines = [self._line(statement) for statement in statements]
        vital = [line for line, one in zip(lines, statements, strict=True) if self._is_vital(one)]
        selection.add(vital, int(room * _VITAL))
        for_lines = int(room * (1 - _NAMES))
        steps = self._step_lines()
        for title, share in _SHARES.items():
            chosen = [line for line in steps if line.title == title]
            most = for_lines - (room - selection.left) if title in (DONE, FOUND) else room
            selection.add(chosen, min(int(room * share), most))
            if title == ERRORS:
                selection.add(self._last_lines(), min(int(room * _LAST), for_lines - (room - selection.left)))
                others = [line for line, one in zip(lines, statements, strict=True) if not self._is_vital(one)]
                selection.add(others, min(int(room * _ASSISTANT), for_lines - (room - selection.left)))
        selection.add([*lines, *steps], for_lines - (room - selection.left))
        self._rest = [*lines, *steps]
        return selection

    def rest(self) -> list[Line]:
        """Return all lines, for the room that names leave."""
        return self._rest

    def cut_lines(self, room: int) -> list[Line]:
        """Return the beginning of the heaviest line that alone exceeds the room of the digest, if there is one."""
        lines = [self._line(one) for one in self._long]
        lines += [line for line in self._rest if len(line.text) > self._room]
        if room < 2 * _ROW or not lines:
            return []
        heaviest = max(lines, key=_by_weight)
        return [replace(heaviest, text=cut_at_clause(heaviest.text, room - len(heaviest.title) - 7))]

    def lines_of(self, message: Message) -> list[Line]:
        """Return the whole lines of a result, for the room that nothing else fills."""
        if message.role != "tool":
            return []
        lines = (" ".join(line.split()) for line in message.text[:_FILLED].splitlines())
        return [Line(FOUND, line, 1.0, _FILLED + i, False) for i, line in enumerate(lines) if 20 <= len(line) <= 160]

    @staticmethod
    def _is_vital(statement: Statement) -> bool:
        return statement.is_authoritative and statement.weight >= 5.0

    def _line(self, statement: Statement) -> Line:
        title = _TITLE_OF[statement.kind]
        text = statement.shown if statement.kind == "goal" else f"{_BULLET}{statement.shown}"
        weight = statement.weight + _FOCUS * self._hits(statement.shown)
        return Line(title, text, weight, statement.position, statement.is_authoritative)

    def _step_lines(self) -> list[Line]:
        lines = [*self._lines, *(self._line(one) for one in self.statements if one.speaker == "tool")]
        found = [
            (ERRORS, self._steps.errors.items()),
            (DONE, self._steps.done()),
            (FOUND, self._steps.findings.items()),
        ]
        for title, pairs in found:
            mark = "" if title == FOUND else _BULLET
            for text, weight in pairs:
                if text in self._dead:
                    continue
                weight += _FOCUS * self._hits(text)
                lines.append(Line(title, f"{mark}{text}", weight, len(lines), title != FOUND))
        return lines

    def _last_lines(self) -> list[Line]:
        """Return the last statements of the last answer in one line, as many as have room."""
        statements = [one for one in split_statements(self._answer) if one not in self._dead]
        text, room = "", int(self._room * _LAST) - len(LAST) - 6
        while statements and len(statements[-1]) + len(text) < room:
            text = f"{statements.pop()} {text}".rstrip()
        return [Line(LAST, text, 1.0, 0, False)] if text else [Line(LAST, one, 1.0, 0) for one in self._last_before]

    def _hits(self, line: str) -> int:
        """Count the words of the focus in a line."""
        return sum(word in line.casefold() for word in self._focus) if self._focus else 0


def _last_question(text: str) -> str:
    """Return the question with which a text ends; "" if it ends otherwise or the question is long."""
    statements = split_statements(text) if text.rstrip().endswith(("?", "？")) else []
    last = split_sentences(statements[-1])[-1] if statements else ""
    return last if len(last) <= _QUESTION and _ASKS_FOR_VALUE.search(last) else ""


def _identity_of(pairs: str) -> str:
    """Return the first of the values with their keys, if it is an identifier: it says what the others are about."""
    first = pairs.partition(", ")[0]
    value = re.split(r"\s?[=:]\s?", first, maxsplit=1)[-1]
    return first if shape_of_value(value) in ("identifier", "path", "address", "mailbox") else ""


def _is_exclamation(statement: Statement) -> bool:
    """Return whether a statement is a word alone, such as `Done.`, without any name or number."""
    is_plain = not statement.signs & (Sign.SPECIFIC | Sign.BINDING | Sign.CHANGE | Sign.NEGATION)
    return is_plain and statement.text.isascii() and " " not in statement.text


def _is_answer(text: str) -> bool:
    """Return whether a text is a short answer: at most three words that are no small talk."""
    if len(text) > _ANSWER or signs_of(text) & (Sign.SMALL_TALK | Sign.QUESTION | Sign.CHANGE):
        return False
    return len(text.split()) <= _ANSWER_WORDS and bool(terms_of(text).all)


def _by_weight(line: Line) -> float:
    return line.weight


def _without_copies(statements: Iterable[Statement]) -> list[Statement]:
    """Return the statements without repetitions: the newest of equal ones, with the largest weight."""
    newest: dict[str, Statement] = {}
    for statement in statements:
        key = statement.text.casefold().strip(" .!")
        if (before := newest.pop(key, None)) is not None:
            if before.kind == "goal" or before.weight > statement.weight:
                statement.kind, statement.weight = before.kind, max(before.weight, statement.weight)
            if before.is_authoritative:
                statement.speaker = before.speaker
        newest[key] = statement
    return list(newest.values())
