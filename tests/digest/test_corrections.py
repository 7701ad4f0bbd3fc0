"""Corrections in many registers: what a later statement replaces, and what is merely alike and stays."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import assistant, tool_result, user
from foveate.core.messages import Message, ToolCall
from foveate.digest.history import digest_messages
from foveate.digest.history.lexicon import words


class Case(NamedTuple):
    """A short history with what its digest shows."""

    says: tuple[tuple[str, str], ...]
    """The speaker and the text of each message."""
    gone: tuple[str, ...]
    """Texts that no line shows as current."""
    kept: tuple[tuple[str, ...], ...]
    """Texts that stand together in a line."""

    @property
    def messages(self) -> list[Message]:
        found: list[Message] = []
        for number, (speaker, text) in enumerate(self.says):
            if speaker == "t":
                command, _, lines = text.partition(" | ")
                call = ToolCall(f"c{number}", "shell", f'{{"command": "{command}"}}')
                found += [assistant("", call), tool_result(call.call_id, lines.replace("/", "\n"))]
            else:
                found.append(user(text) if speaker == "u" else assistant(text))
        return found


def read_cases() -> list[Case]:
    """Return the cases of corrections.txt, whose first lines say what the marks mean."""
    text = Path(__file__).with_name("corrections.txt").read_text(encoding="utf-8")
    cases: list[Case] = []
    for block in re.split(r"\n{2,}", text.strip())[1:]:
        lines = [(line[0], line[2:]) for line in block.splitlines()]
        cases.append(
            Case(
                tuple(line for line in lines if line[0] in "uat"),
                tuple(line for mark, line in lines if mark == "-"),
                tuple(tuple(line.split(" ~ ")) for mark, line in lines if mark == "+"),
            )
        )
    return cases


OPENING = [user("Good morning! I have a couple of notes for you."), assistant("Good morning. Go ahead.")]


def digest_of(*cases: Case, room: int = 2_000) -> str:
    return digest_messages([*OPENING, *(message for case in cases for message in case.messages)], room)


def faults_of(case: Case, text: str = "") -> list[str]:
    """Return the texts that a digest shows although they are replaced, and those that it lost."""
    lines = [line for line in (text or digest_of(case)).splitlines() if not line.startswith("#")]
    newest = case.says[-1][1]
    faults = []
    for old in case.gone:
        for line in lines:
            earlier, _, later = line.partition(" (later: ")
            is_marked = "replaced by" in line or "no longer" in line or (newest in line and old in newest)
            is_marked = is_marked or (old in earlier and bool(later) and old not in later)
            if old in line and not is_marked:
                faults.append(f"still: {line}")
    for parts in case.kept:
        if not any(all(part in line for part in parts) for line in lines):
            faults.append(f"lost: {' ~ '.join(parts)}")
    return faults


CASES = read_cases()
ALIKE = [case for case in CASES if not case.gone and len(case.kept) > 1]
CHANGES = [case for case in CASES if case.gone]


def name_of(case: Case) -> str:
    return case.says[-1][1][:40]


def test_most_corrections_replace_what_they_correct():
    """A correction that needs knowledge of the world ("no hazelnuts, take almonds") may leave both statements."""
    missed = {name_of(case): faults for case in CHANGES if (faults := faults_of(case))}
    assert len(missed) <= 0.05 * len(CHANGES), missed


@pytest.mark.parametrize("case", ALIKE, ids=name_of)
def test_statements_about_different_things_stay(case: Case):
    assert faults_of(case) == []


@pytest.mark.parametrize("first", range(0, len(ALIKE), 6))
def test_statements_of_several_topics_stay_in_one_history(first: int):
    cases = ALIKE[first : first + 6]
    text = digest_of(*cases, room=4_000)
    assert [fault for case in cases for fault in faults_of(case, text)] == []


def test_a_second_round_keeps_what_the_first_resolved():
    for case in CASES:
        text = digest_of(case)
        if not faults_of(case, text):
            assert faults_of(case, digest_messages([user("Thanks a lot!")], 2_000, previous=text)) == []


SAID = st.lists(st.sampled_from([message for case in CASES for message in case.messages if message.role != "tool"]),
                min_size=1, max_size=24)  # fmt: skip
OURS = words("""
    goal rules decisions values open asked by the user done errors files and identifiers said last names replaced no
    longer still referred to messages later
""")
"""Words of headings and marks."""


@settings(deadline=None, max_examples=60)
@given(said=SAID, room=st.integers(60, 3_000))
def test_a_digest_fits_invents_nothing_and_is_always_the_same(said: list[Message], room: int):
    text = digest_messages(said, room)
    assert len(text) <= room
    assert digest_messages(said, room) == text
    known = {word for message in said for word in re.findall(r"\w+", (message.text + str(message.calls)).casefold())}
    counted = re.sub(r" ×\d+|\A\d+ messages", " ", text.casefold().replace("…", " "))
    assert set(re.findall(r"\w+", counted)) <= known | OURS


@settings(deadline=None, max_examples=60)
@given(said=SAID, room=st.integers(400, 3_000))
def test_a_digest_that_is_carried_on_alone_stays_as_it_is(said: list[Message], room: int):
    once = digest_messages([], room, previous=digest_messages(said, room))
    assert digest_messages([], room, previous=once) == once


def test_an_old_sentence_is_found_behind_many_that_share_a_usual_word():
    """The newest sentences with a word in common must not crowd out the one that is about the same thing."""
    usual = [
        one for n in range(30) for one in (user(f"Table {n} of the report is about port traffic."), assistant("OK."))
    ]
    said = [user("The gateway opal-feed listens on port 4410."), assistant("OK."), *usual]
    text = digest_messages(
        [*OPENING, *said, user("The gateway opal-feed listens on port 4420, says the report.")], 4_000
    )
    assert "on port 4410 (later: The gateway opal-feed listens on port 4420" in text


def test_a_value_that_is_not_said_again_stays_in_other_statements():
    """A report of the reservation left out the hours, which an older request had too."""
    said = [
        user("I need to cancel flights that are more than 3 hours long."),
        user("Could you please check which flights are over 3 hours and proceed with canceling those reservations?"),
        assistant("The flights that are over 3 hours long are in the reservation with ID **S61CZX**."),
        user("Yes, please cancel the reservation S61CZX."),
        assistant("The reservation with ID **S61CZX** has been successfully canceled."),
    ]
    assert "I need to cancel flights that are more than 3 hours long" in digest_messages(said, 2_000)


def test_a_reply_that_confirms_a_change_is_no_new_goal():
    said = [
        assistant("I found your reservations NM1VX1, KC18K6 and S61CZX."),
        user("I want to make changes to all my reservations. I need to cancel flights of more than 3 hours."),
        user("Great, thank you! For the remaining flights, can you upgrade me to business class wherever possible?"),
        assistant(
            "To proceed with upgrading your remaining reservations to business class, I'll need to check each one."
        ),
    ]
    assert digest_messages(said, 2_000).startswith("## Goal\nI want to make changes to all my reservations.")


def test_a_wish_that_reads_like_a_rule_is_the_goal():
    """`need to` binds. The polite question behind it took its place."""
    wish = "Hi, I have a bit of a situation with my flights and need to downgrade them to economy class."
    assert digest_messages([user(f"{wish} Can you assist me with that?")], 2_000).startswith(f"## Goal\n{wish}")


def test_a_correction_long_after_the_goal_is_about_something_else():
    talk = [
        one
        for n in range(30)
        for one in (user(f"Now file part_{n}.ts."), assistant(f"I read part_{n}.ts, and I changed {n + 2} lines."))
    ]
    said = [user("Read docs/theme.md in full, then theme.ts, and port the selectors."), *talk]
    later = user("You can undo that, it was actually the errors in theme.ts that did it.")
    assert digest_messages([*said, later], 4_000).startswith("## Goal\nRead docs/theme.md in full, then theme.ts")


def test_a_later_sentence_follows_no_formula():
    weather = [
        user(f"The weather is grey, I would rather sort a {word} than go out.") for word in ("shelf", "shed", "box")
    ]
    text = digest_messages([*OPENING, *(one for line in weather for one in (line, assistant("Ha.")))], 2_000)
    assert "(later: " not in text


def test_two_links_about_different_sentences_form_no_chain():
    said = [
        user("The invoice of Falcon is 4,410 euros."),
        user("The invoice of Falcon is 5,120 euros, they added freight. The garden gate has 3 hinges."),
        user("The garden gate has 4 hinges, I looked."),
    ]
    text = digest_messages([*OPENING, *(one for line in said for one in (line, assistant("OK.")))], 2_000)
    assert "euros · " not in text
