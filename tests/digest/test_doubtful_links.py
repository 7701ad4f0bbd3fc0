"""Statements that share a name, a number or an act: none stands behind another one, and none replaces it.

The first texts of each case must stay as they are; the last text is what was taken for a newer version.
"""

from __future__ import annotations

import pytest

from foveate import Message, assistant, system, user
from foveate.digest.history import digest_messages

CASES = [
    pytest.param(
        [user("Wir reparieren die Pipeline."), user("die Controllerin, Frau Wiegand, hats gemerkt")],
        user("Ob die Bank einen korrigierten Bericht braucht, ist offen; das muss Frau Wiegand entscheiden."),
        id="two words of one name",
    ),
    pytest.param(
        [user("We repair the search."), user("Kenji has exams and is out from thursday")],
        user("wait, Aylin is off on wednesday. thu 14:00"),
        id="a day",
    ),
    pytest.param(
        [user("Prepare the release."), user("We need 4 replicas on the host orders.acme.com.")],
        user("About the replicas: I saw the quota. Is 4 possible with the canary?"),
        id="a question about the value",
    ),
    pytest.param(
        [user("Help me keep the overview of our kitchen. The house is from 1962.")],
        user("The fronts come late. So the new goal is 16 May, that can NOT move."),
        id="another date",
    ),
    pytest.param(
        [user("Update the module to v6.0.0-alpha.3.")],
        system("Do not use this skill when the task is better handled by editing an existing file."),
        id="a condition",
    ),
]


def lines_with(words: str, messages: list[Message]) -> list[str]:
    return [line for line in digest_messages(messages, 2_000).splitlines() if words in line]


@pytest.mark.parametrize(("older", "newer"), CASES)
def test_a_statement_about_something_else_follows_nothing(older: list[Message], newer: Message):
    said = [each for one in older for each in (one, assistant("Noted."))]
    for one in older:
        for sentence in one.text.rstrip(".").split(". "):
            assert [
                line for line in lines_with(sentence, [*said, newer]) if "(later: " not in line.partition(sentence)[2]
            ]


def test_a_conclusion_of_the_model_corrects_no_number():
    """`That is ...` begins like a correction without a topic."""
    messages = [
        user("We renovate the kitchen."),
        user("my grandma gives us 3000 (!!). so budget is 21.000"),
        assistant("Then you have 21,000 € in total. That is 17,850 €, so roughly 3,000 € reserve."),
    ]
    assert "replaced by" not in digest_messages(messages, 2_000)


@pytest.mark.parametrize("text", ['that was the "solution" of the last guy', "pick up task 2"])
def test_words_that_begin_like_a_correction_correct_nothing(text: str):
    messages = [user("We want version 5.2."), user("CI is red because of 12 flaky e2e tests."), assistant("Noted.")]
    assert "replaced by" not in digest_messages([*messages, user(text)], 2_000)


def test_a_step_that_the_model_announces_is_no_newer_version():
    messages = [
        user("Reduce the width."),
        assistant("The prompt is truncated to 80 characters on narrow terminals."),
        assistant("Now let me see why the prompt is truncated to 60 characters on narrow terminals."),
    ]
    assert "(later: " not in digest_messages(messages, 2_000)


def test_a_confirmation_keeps_what_was_confirmed_before():
    """Both replies are about the same flight."""
    messages = [
        user("Which flights are there?"),
        assistant("The reservation for your trip to Chicago (ORD) is under the reservation ID **FQ8APE**."),
        user("yes, that one. find one-stop flights from Newark to Chicago on May 25 in economy"),
        assistant("Here are some available one-stop flights from Newark (EWR) to Chicago (ORD) on May 25, 2024:"),
    ]
    assert "**FQ8APE**.\n" in digest_messages(messages, 2_000) + "\n"
