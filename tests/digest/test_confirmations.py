"""Confirmations: a reply that says what a user just decided counts like the user's words."""

from __future__ import annotations

import pytest

from foveate import Message, assistant, user
from foveate.digest.history import digest_messages
from foveate.digest.history.confirmations import is_agreement


def lines_of(*messages: Message, room: int = 900) -> dict[str, list[str]]:
    """Return the lines of the digest of these messages, by the title of their section."""
    sections: dict[str, list[str]] = {}
    for section in digest_messages(messages, room).split("## ")[1:]:
        title, *lines = section.strip().split("\n")
        sections[title] = lines
    return sections


def test_a_reply_takes_the_place_of_a_fragment_with_the_same_values():
    lines = lines_of(
        user("We release the app tomorrow."),
        user("10:30 pls. and 0.5%"),
        assistant("The production release starts at 10:30, with a rollback above 0.5% errors."),
    )
    assert lines["Values"] == ["- The production release starts at 10:30, with a rollback above 0.5% errors."]


def test_a_newer_confirmation_replaces_an_older_one():
    lines = lines_of(
        user("Who fixes the importer?"),
        user("owner Kenji, friday 7 march"),
        assistant("Kenji owns the fix of the importer, due Friday 7 March."),
        user("kenji is ill. aylin then, monday 10 march"),
        assistant("Aylin owns the fix of the importer, due Monday 10 March."),
    )
    shown = "\n".join(line for section in lines.values() for line in section)
    assert "Aylin owns the fix of the importer, due Monday 10 March" in shown
    assert "Kenji owns" not in shown.rpartition("(later: ")[2]


def test_a_short_echo_does_not_replace_what_says_more():
    lines = lines_of(
        user("Tune it."), user("Timeout for the payment call: 15 seconds."), assistant("I'll set 15 seconds.")
    )
    assert "- Timeout for the payment call: 15 seconds." in lines["Values"]


def test_a_reply_about_the_same_thing_leaves_a_request_in_place():
    """It has the only value of the request, and does not say what the user wants."""
    lines = lines_of(
        user("Hello, I need help."),
        user("I want to change the flight connected to the reservation M05KNL."),
        assistant("Your reservation M05KNL is a one-way trip from Atlanta to Philadelphia with a stop in Chicago."),
    )
    shown = "\n".join(line for section in lines.values() for line in section)
    assert "I want to change the flight" in shown


def test_a_reply_that_says_a_request_again_takes_its_place():
    lines = lines_of(
        user("Hello, I need help."),
        user("The copies of the invoices are deleted after 90 days."),
        assistant("All copies of the invoices are deleted after 90 days, every night at two."),
    )
    shown = "\n".join(line for section in lines.values() for line in section)
    assert shown.count("after 90 days") == 1


def test_a_rule_stays_in_the_words_of_the_user():
    rule = "never push to main directly, always via a PR. and pls don't touch the namespace billing, they get angry"
    lines = lines_of(
        user("Deploy it."), user(rule), assistant("Both noted: PRs only, and namespace billing is off-limits.")
    )
    assert f"- {rule}" in lines["Rules"]


def test_a_proposal_counts_if_the_user_agrees():
    said = [user("The pods are killed."), assistant("One pod needs 900 MB. I propose a memory limit of 1200 MB.")]
    agreed = lines_of(*said, user("do it, nodes have plenty"), assistant("Done."))
    refused = lines_of(*said, user("no idea yet, ask the platform people"), assistant("Done."))
    assert [title for title, lines in agreed.items() if "- I propose a memory limit of 1200 MB." in lines] == [
        "Decisions"
    ]
    assert "- I propose a memory limit of 1200 MB." not in refused.get("Decisions", [])


@pytest.mark.parametrize(
    ("text", "agrees"),
    [
        ("do it, nodes have plenty", True), ("ok 3. fine", True), ("Vale, perfecto", True), ("好的", True),
        ("ok?", False), ("oklahoma is far", False), ("and the host name?", False),
        ("ok, but first tell me in which order the three services start after a power cut", False),
    ],
)  # fmt: skip
def test_an_agreement_is_short_and_asks_nothing(text: str, agrees: bool):
    assert is_agreement(text) is agrees


@pytest.mark.parametrize(
    ("text", "is_rule"),
    [
        ("also i have to leave at 4 for the dentist", False),
        ("i always mix the two keys up", False),
        ("i have to leave at 4, never deploy after that", True),
        ("i don't want Brandt near the electrics", True),
        ("we have to stay below 500 euros", True),
        ("Before each push run make check.", True),
    ],
)
def test_duties_of_the_user_are_no_rules(text: str, is_rule: bool):
    lines = lines_of(user("Help me with the house."), user(text), assistant("Sure."))
    assert any(text in line for line in lines.get("Rules", [])) is is_rule
