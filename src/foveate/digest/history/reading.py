"""Reading: the statements of messages and of earlier summaries, without those that later statements replace."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from ...core.caches import cached
from ...core.messages import Message
from .client_summaries import is_client_summary, parts_of_client_summary
from .confirmations import confirm, is_agreement
from .fold_lines import read_fold
from .joining import append, join, without_copies
from .notes import without_notes
from .pasted import is_document, is_in_tags, is_notice, split_pasted
from .sections import BETWEEN, BULLET, COPIED, DONE, KIND_OF, LAST, NAMES, OF_MODEL, REFERRED, read_sections
from .selection import Line
from .signs import Sign, possible_signs, signs_of
from .speakers import is_from_user, is_summary
from .statements import ANSWERED, split_sentences, split_statements
from .steps import Steps
from .supersession import find_superseded
from .terms import shape_of_value, terms_of
from .weights import (
    LATER,
    NOT_BY_USER,
    Kind,
    Speaker,
    Statement,
    is_worth,
    may_any_be_worth,
    most_worth,
    weigh,
    weigh_written,
)

__all__ = ["Reader"]

_SHOWN = 6
"""Statements count up to this many times the room, the heaviest first."""
_COMPARED, _COMPARED_LEAST = 2, 64_000
"""Of these, so many times the room, or so many characters if that is more, are compared with each other."""
_HELD, _HELD_LEAST = 8, 8_000
"""Statements of a long history are held up to so many times the room, or so many characters if that is smaller."""
_FORMULA = 4
"""Words of a beginning. Statements without other worth that share it are formulas."""
_USUAL = 2.0
"""How often statements may begin alike without a loss of weight; those with worth twice as often."""
_GOAL = 300
"""Characters of the first request that are the goal. The rest of it is what the user asked."""
_GREETING = re.compile(
    r"\W*(?:(?:hi|hey|hello|hallo|moin|guten|good|morning|evening|afternoon|day|morgen|tag|abend|bonjour|salut|hola|buenos"
    r"|días|buenas|ciao|buongiorno|olá|bom|dia|there|all|everyone|team|how|are|you|is|it|going|doing|today|привет"
    r"|здравствуйте|thanks|thank)\b\W*|你好|您好|こんにちは|안녕하세요)+",
    re.IGNORECASE,
)
"""A text of nothing but words that greet or thank."""
_COMMAND = re.compile(r"/\S*|\[[^\[\]]*\]")
"""A command to a client, or its remark: `/mode`, `[Request interrupted by user]`."""
_SPOKEN = 12
"""Statements of a message that a person types. A document with more of them is a report, a review or a plan."""
_FRAME = 2
"""Statements at the beginning and at the end of a message with a document that are the user's own."""
_COMMAND_TAGS = ("<command-message>", "<command-name>")
"""Tags in which Claude Code puts a command."""
_ANSWER = 40
"""Characters of an answer that is shown with its question."""
_ANSWER_WORDS = 3
_SHORT = 50
"""Words of an answer or an agreement, at most: more of them exceed the characters of both."""
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
_ROLE = re.compile(r"\s*You are an? [\w-]+")
"""The beginning of a prompt that a command of a client sends, such as `/review`. It binds for one task."""
_PLAIN_MARKS = {LATER: " (later, ", BETWEEN: " - ", NOT_BY_USER: " (not by the user)"}
"""The marks of a digest, and what takes their place in a message: else its words would be read as those of others."""


class Reader:
    """Reads an earlier summary and messages, oldest first, into statements and lines."""

    def __init__(self, messages: Sequence[Message], room: int, previous: str, steps: Steps | None) -> None:
        """`steps`: takes the calls and results; None if only statements count."""
        self._room, self._steps = room, steps
        self._held = _HELD * max(room, _HELD_LEAST)
        self._least = 0.0
        """Worth up to which a statement of a long history cannot count any more: of equal ones the oldest count."""
        self._has_goal = False
        self._position = self._turn = self._length = 0
        self._asked = ""
        """The newest reply, if it may end with a question."""
        self._own: list[Statement] = []
        """The statements of the user's newest message, which the next reply may confirm."""
        self._reply: list[Statement] = []
        """Those of the newest reply, to which the user may agree."""
        self._agreed: list[Statement] = []
        """Those to which the user agreed."""
        self._listed: dict[str, Statement] = {}
        self._links: list[tuple[Statement, Statement]] = []
        """Pairs of an older and a later statement that may replace it."""
        self.statements: list[Statement] = []
        """The statements, oldest first, without those that later ones replace."""
        self.long: list[Statement] = []
        """Statements that exceed the room."""
        self.gone: set[str] = set()
        """The words of statements, and the values with their keys, that later ones replace."""
        self.copied: list[Line] = []
        """Lines of the earlier summary that are carried on as they are."""
        self.names: list[str] = []
        """Names that the earlier summary lists."""
        self.last_before: list[str] = []
        """The last answer in the earlier summary, if the messages have none."""
        texts = (without_notes(message.text) for message in reversed(messages) if message.role == "assistant")
        self.answer = next((text for text in texts if text.strip()), "")
        """The last answer of the model."""
        self._carry_on(previous)
        for i, message in enumerate(messages):
            self._read(i, message, messages[i - 1] if i else None, (i + 1) / len(messages))
            if self._length > 2 * self._held:
                self._hold_heaviest()
        self.statements = self._without_copies()
        for statement, share in zip(self.statements, _shares_of_formulas(self.statements), strict=True):
            statement.weight *= share
        self.stale = self._settle()
        """The values that no longer hold."""

    # --------------------------------------------------------------------------------------------------- reading

    def _carry_on(self, text: str) -> None:
        """Read an earlier summary: its statements keep their kinds."""
        self._turn = 0
        for title, lines in read_sections(without_notes(text)).items():
            folded = title.casefold()
            kind = KIND_OF.get(folded)
            speaker: Speaker = "assistant" if folded in OF_MODEL else "summary"
            for line in lines:
                if line.startswith(REFERRED):
                    continue
                if title == NAMES:
                    self.names += line.split(", ")
                elif title == LAST and not self.answer:
                    self.last_before.append(line)
                elif folded in COPIED:
                    self._copy(COPIED[folded], line, 0.6)
                elif LATER in line and line.endswith(")"):
                    self._state_pair(line.strip().removeprefix(BULLET), speaker, kind)
                elif kind is None:
                    for statement in split_statements(line):
                        self._state(statement, speaker, 0.5)
                else:
                    plain = line.strip().removeprefix(BULLET)
                    pieces = [plain] if len(plain) <= 400 else split_statements(plain)
                    for piece in pieces:
                        self._state(piece, "summary", 0.5, kind)
                self._has_goal |= kind == "goal"

    def _state_pair(self, line: str, speaker: Speaker, kind: Kind | None) -> None:
        """Add the statements of a line that shows a later one behind older ones."""
        earlier, _, later = line.removesuffix(")").partition(LATER)
        older = [
            self._state(text, speaker, 0.5, "open" if kind and text.endswith("?") else kind)
            for text in earlier.split(BETWEEN)
        ]
        self._links += pairwise((*older, self._state(later, speaker, 0.5, kind)))

    def _copy(self, title: str, line: str, weight: float) -> None:
        self.copied.append(Line(title, line, weight, len(self.copied)))

    def _state(self, text: str, speaker: Speaker, age: float, kind: Kind | None = None) -> Statement:
        """Add a statement. `kind`: its kind, if the section of a summary says so."""
        if self._turn:
            for mark, plain in _PLAIN_MARKS.items():
                text = text.replace(mark, plain)
        self._position += 1
        self._length += len(text)
        statement = weigh(text, speaker, self._position, age, kind)
        statement.turn = self._turn
        self.statements.append(statement)
        return statement

    def _read(self, place: int, message: Message, before: Message | None, age: float) -> None:
        self._turn = place + 1
        text = without_notes(message.text)
        match message.role:
            case "user" if is_summary(message):
                self._read_summary(text, age)
            case "user" if is_from_user(message, before):
                self._read_input(place, text, age, is_prompt=before is not None and _is_command(before))
            case "user" if self._steps:
                self._steps.add_text(place, text, age)
            case "system" | "developer" if place == 0 and len(text) > _PROMPT:
                pass  # The engine shows the first instructions next to every summary.
            case "system" | "developer":
                self._read_texts(text, "system", age)
            case "assistant":
                if self._steps:
                    for call in message.calls:
                        self._steps.add_call(call, age)
                self._read_reply(text, age)
                self._asked = text if text.rstrip().endswith(("?", "？", "؟")) else ""
            case "tool" if self._steps and (result := message.result) is not None:
                about, pairs = self._steps.add_result(place, result, age)
                self._list(about, pairs, age)
                if not self._least and (not pairs or "\n" not in result.text.strip()):
                    for line in self._steps.short_lines(place, result):
                        self._state(line, "tool", age, "said")
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
        fold = read_fold(text)
        self.names += fold.names
        for line, share in fold.lines:
            self._copy(DONE, line, age * share)

    def _read_texts(self, text: str, speaker: Speaker, age: float) -> None:
        if not self._least or may_any_be_worth(speaker, self._least):
            for statement in split_statements(text):
                self._state(statement, speaker, age)
        elif text := self._without_light_paragraphs(text, speaker):
            for statement in split_statements(text):
                if is_worth(statement, speaker, self._least):
                    self._state(statement, speaker, age)

    def _read_reply(self, text: str, age: float) -> None:
        """Read what the model says, and what it confirms."""
        begun = len(self.statements)
        self._read_texts(text, "assistant", age)
        if len(self.statements) > begun:
            self._reply = self.statements[begun:]
            if (self._own or self._agreed) and confirm(self._own, self._reply, self._agreed, age):
                self._own, self._agreed = [], []

    def _read_input(self, place: int, text: str, age: float, *, is_prompt: bool) -> None:
        """Read a text of the user, or of a client in the user's name. `is_prompt`: whether a command is before it."""
        if is_client_summary(text):
            self._read_client_summary(text, age)
            return
        is_long = self._has_goal and len(text) > _PROMPT
        if is_prompt and is_long:
            if self._steps:
                self._steps.add_text(place, text, age)
            return
        own, pasted = split_pasted(text)
        if pasted and self._steps:
            self._steps.add_pasted(place, pasted, age)
        if is_long and _ROLE.match(text):
            self._read_texts(own, "assistant", age)
        elif own.strip() and not is_notice(text) and not _COMMAND.fullmatch(own.strip()):
            is_request = not self._has_goal
            self._read_own_words(own, age, may_be_goal=not is_in_tags(text))
            if not is_request and len(self._own) > _SPOKEN and is_document(own):
                share = _SPOKEN / len(split_statements(own))  # Of a long history, the lightest ones are not read.
                for statement in self._own[_FRAME:-_FRAME]:
                    weigh_written(statement, age, share)

    def _read_client_summary(self, text: str, age: float) -> None:
        """Read the summary of a client. Its words for the request may be the goal."""
        for role, part in parts_of_client_summary(text):
            if role == "request":
                self._read_own_words(part, age, may_be_goal=True)
            elif role == "open":
                for statement in split_statements(part):
                    self._state(statement, "assistant", age, "open")
            else:
                self._read_texts(part, role, age)

    def _read_own_words(self, text: str, age: float, *, may_be_goal: bool) -> None:
        begun = len(self.statements)
        plain = " ".join(text.split(maxsplit=_SHORT))
        question = _last_question(self._asked) if self._asked and len(plain) <= _ANSWER else ""
        self._asked = ""
        if question and _is_answer(plain):
            self._state(f"{question}{ANSWERED}{plain}", "user", age)
        else:
            self._read_texts(text, "user", age)
        self._agreed = self._reply if is_agreement(plain) else []
        self._own = self.statements[begun:]
        if self._has_goal or not may_be_goal:
            return
        left = min(_GOAL, int(self._room * 0.15))
        for statement in self.statements[begun:]:
            fits = _belongs_to_goal if self._has_goal else _may_be_goal
            if not fits(statement):
                continue
            if self._has_goal and len(statement.text) > left:
                break
            weight = 30.0 if not self._has_goal else 8.0
            statement.kind, statement.weight, self._has_goal = "goal", weight, True
            left -= len(statement.text)

    # ------------------------------------------------------------------------------------------- long histories

    def _hold_heaviest(self) -> None:
        """Forget the lightest statements of a history that has many times more than a digest can show."""
        self._own, self._reply, self._agreed = [], [], []  # They may be forgotten.
        statements = self._without_copies()
        shares = _shares_of_formulas(statements)
        # Of those that alone exceed the room, one may be shown in part.
        weights = [
            statement.weight * share if len(statement.text) <= self._room else 0.0
            for statement, share in zip(statements, shares, strict=True)
        ]
        kept = _heaviest(statements, weights, self._held)
        long = [place for place, statement in enumerate(statements) if len(statement.text) > self._room]
        kept = [place for place in kept if weights[place] > 0.0]
        self._least = weights[kept[-1]] if kept else 0.0
        kept += sorted(long, key=lambda place: -statements[place].weight)[:1]
        self.statements = [statements[place] for place in sorted(kept)]
        self._length = sum(len(statement.text) for statement in self.statements if len(statement.text) <= self._room)

    def _without_light_paragraphs(self, text: str, speaker: Speaker) -> str:
        """Return the paragraphs of a text that may have a statement that counts, with what introduces them."""
        if most_worth(~Sign.NONE, speaker) <= self._least:
            return ""
        if "```" in text or "~~~" in text:
            return text  # A part of it might be code.
        kept: list[str] = []
        before = ""
        for paragraph in text.split("\n\n"):
            if any(most_worth(possible_signs(piece), speaker) > self._least for piece in _pieces(paragraph)):
                kept += (before, paragraph) if before else (paragraph,)
                before = ""
            else:
                before = paragraph if paragraph.endswith(":") else ""
        return "\n\n".join(kept)

    # -------------------------------------------------------------------------------------------------- settling

    def _without_copies(self) -> list[Statement]:
        """Return the statements without repetitions, and without lists of values that were reported again."""
        newer = tuple(self._listed)
        return without_copies(
            [
                statement
                for statement in self.statements
                if statement.text and not (statement.speaker == "summary" and statement.text.startswith(newer))
            ]
        )

    def _settle(self) -> frozenset[str]:
        """Remove statements that later ones replace. Returns the values that no longer hold."""
        self.long = [statement for statement in self.statements if len(statement.text) > self._room]
        statements = [statement for statement in self.statements if len(statement.text) <= self._room]
        weights = [statement.weight for statement in statements]
        kept = _heaviest(statements, weights, _SHOWN * max(self._room, 2_000))
        compared = _heaviest(statements, weights, max(_COMPARED_LEAST, _COMPARED * self._room))[: len(kept)]
        self.statements = [statements[place] for place in sorted(kept)]
        statements = [statements[place] for place in sorted(compared)]
        found = find_superseded(statements)
        for place in found.goals:
            statements[place].kind, statements[place].weight = "goal", 30.0
        for place, text in found.texts.items():
            self.gone.add(statements[place].text)
            statements[place].text = text
        self.gone |= found.items
        for place, before in found.heirs.items():
            new, old = statements[place], statements[before]
            new.weight = max(new.weight, old.weight, _SETTLED)
            if old.speaker != "tool" and old.is_authoritative and old.kind not in ("asked", "said"):
                new.kind = old.kind
            elif new.kind in ("asked", "said"):
                new.kind = "value"
        removed = {id(statements[old]): statements[new] for old, new in found.removed.items()}
        for place, before in found.together.items():
            if statements[place].text and statements[before].text:
                append(statements[before], statements[place])
                removed[id(statements[place])] = statements[before]
        followed = [(statements[old], statements[new]) for old, new in found.followed.items()]
        self.gone |= join(self.statements, [*self._links, *followed], removed)
        self.statements = [
            statement
            for statement in self.statements
            if statement.text and (statement.speaker != "tool" or statement.kind != "said")
        ]
        shown = " ".join(statement.shown for statement in self.statements).casefold()
        return frozenset(value for value in found.values if value not in shown)


def _is_command(message: Message) -> bool:
    """Return whether a message is the command of a user to a client, behind which the client may send a prompt."""
    return message.role == "user" and message.text.startswith(_COMMAND_TAGS)


def _may_be_goal(statement: Statement) -> bool:
    """Return whether a statement may be the goal: no greeting, no words of a client, and no mere rule."""
    text, signs = statement.text, statement.signs
    if _GREETING.fullmatch(text) or _COMMAND.fullmatch(text):
        return False
    if statement.kind == "rule":
        first, *others = split_sentences(text)
        is_wish = bool(signs & Sign.GOAL) and not signs & Sign.NEGATION  # "I need to downgrade my flights."
        return is_wish or (bool(others) and not signs_of(first) & Sign.BINDING)
    return statement.kind != "said" and bool(terms_of(statement.text).all)


def _belongs_to_goal(statement: Statement) -> bool:
    """Return whether a statement behind the first one of the goal is a part of the goal."""
    return statement.kind not in ("rule", "said") and statement.weight >= 0.5 and not statement.text.endswith(":")


def _last_question(text: str) -> str:
    """Return the question with which a text ends; "" if it is long or asks for no value."""
    statements = split_statements(text)
    last = split_sentences(statements[-1])[-1] if statements else ""
    return last if len(last) <= _QUESTION and _ASKS_FOR_VALUE.search(last) else ""


def _identity_of(pairs: str) -> str:
    """Return the first of the values with their keys, if it is an identifier: it says what the others are about."""
    first = pairs.partition(", ")[0]
    value = re.split(r"\s?[=:]\s?", first, maxsplit=1)[-1]
    return first if value and shape_of_value(value) in ("identifier", "path", "address", "mailbox") else ""


def _is_answer(text: str) -> bool:
    """Return whether a text is a short answer: at most three words that are no small talk."""
    if len(text) > _ANSWER or signs_of(text) & (Sign.SMALL_TALK | Sign.QUESTION | Sign.CHANGE):
        return False
    return len(text.split()) <= _ANSWER_WORDS and bool(terms_of(text).all)


def _pieces(paragraph: str) -> list[str]:
    """Return about the sentences of a paragraph."""
    for end in (". ", "! ", "? ", "。", "؟", "۔", "।"):
        paragraph = paragraph.replace(end, f"{end.rstrip()}\n")
    return paragraph.splitlines()


def _shares_of_formulas(statements: Sequence[Statement]) -> list[float]:
    """Return the share of its weight that each statement keeps. Those that begin like many others say little."""
    begins = ["" if statement.kind in ("goal", "rule") else _beginning_of(statement.text) for statement in statements]
    times = Counter(begins)
    times[""] = 1
    usual = [_USUAL if statement.kind in ("asked", "said") else 2 * _USUAL for statement in statements]
    return [min(1.0, most / times[begin]) for most, begin in zip(usual, begins, strict=True)]


@cached(16_384)  # Statements of a long history are held until heavier ones come.
def _beginning_of(text: str) -> str:
    """Return the first words of a text, by which formulas are found."""
    return " ".join(text.casefold().split(maxsplit=_FORMULA)[:_FORMULA])


def _heaviest(statements: Sequence[Statement], weights: Sequence[float], room: int) -> list[int]:
    """Return the indices of the heaviest statements that a room of `room` characters holds, the heaviest first."""
    kept: list[int] = []
    for place in sorted(range(len(statements)), key=lambda place: -weights[place]):
        room -= len(statements[place].text)
        if room < 0:
            break
        kept.append(place)
    return kept
