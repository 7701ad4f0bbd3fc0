"""Each failed summary is a warning in the log, once for each cause."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import Any

import pytest

from foveate import Conversation, Options, open_conversation
from foveate.core.stamps import Lease
from foveate.errors import NoSummary
from foveate.policies import checkpoint, compact_on_overflow, expire_results
from foveate.summarizers import SummaryRequest, digest_history, fallback
from foveate.testing import answer, call, say, text_of, user
from foveate.testing.background import HandCranked

Write = Callable[[SummaryRequest], str]
EXPIRE = expire_results(
    default=Lease(
        expiration_turns=1, expiration_mode="compact", compact_mode="summary", compact_length=200, compact_prompt_id="p"
    )
)
COMPACT = compact_on_overflow(threshold=0.3, keep_recent=200, max_attempts=50)
CHECKPOINT = checkpoint(trigger_at=8, keep_recent=5)
NUMBERS = itertools.count(10_000)


def fails(request: SummaryRequest) -> str:
    raise OSError(f"no quota, request {next(NUMBERS)}")


def declines(request: SummaryRequest) -> str:
    return "I am sorry, I cannot help with that."


def invents(request: SummaryRequest) -> str:
    return 'The user said: "Delete all of it at once." ' + "The results were compared, one after the other. " * 3


def goes_on(request: SummaryRequest) -> str:
    return "The results were compared, one after the other. " * 400


def gone(request: SummaryRequest) -> str:
    raise NoSummary(("m: HTTP 503", "n: HTTP 504"))


def talked(policy: Any, summarizer: Any, turns: int = 12, **options: Any) -> Conversation:
    chat = open_conversation("tale", window=4_000, policy=policy, summarizer=summarizer, **options)
    for number in range(turns):
        chat.append(f"Question {number}?")
        chat.prepare()
        chat.record(call(f"c{number}", "look", at=number))
        chat.append(answer(f"c{number}", text_of(300, number)))
        chat.prepare()
        chat.record(say("I see."))
    return chat


@pytest.mark.parametrize(
    ("policy", "write", "warning"),
    [
        (EXPIRE, fails, "tale: expire has no summary: the summarizer raised OSError: no quota, request 1"),
        (COMPACT, fails, "tale: compact has no summary: the summarizer raised OSError: no quota, request 1"),
        (CHECKPOINT, fails, "tale: checkpoint has no summary: the summarizer raised OSError: no quota, request 1"),
        (EXPIRE, declines, "tale: expire has no summary: declines: it declines. "),
        (COMPACT, declines, "tale: compact has no summary: declines: it declines. "),
        (COMPACT, gone, "tale: compact has no summary: m: HTTP 503; n: HTTP 504. "),
        (EXPIRE, lambda request: "", "tale: expire has no summary: the summarizer returned nothing. "),
        (EXPIRE, lambda request: 7, "tale: expire has no summary: the summarizer returned int, not text: return "),
        (EXPIRE, goes_on, "tale: expire did not use a summary: summarizer: the summary is no shorter"),
        (COMPACT, goes_on, "tale: compact did not use a summary: summarizer: no progress: the summary is not shorter"),
        (CHECKPOINT, goes_on, "tale: checkpoint did not use a summary: the summary is not shorter"),
        (
            COMPACT,
            fallback(fails, digest_history()),
            "tale: digest wrote the summary for compact, since fails: OSError: no quota, request 1",
        ),
    ],
)
def test_failed_summary_is_a_warning_once_for_its_cause(policy: Any, write: Any, warning: str, caplog):
    caplog.set_level(logging.WARNING, "foveate")
    chat = talked(policy, write)
    assert [message[: len(warning)] for message in caplog.messages] == [warning]
    assert caplog.messages[0].endswith(" This cause is logged once.")
    assert "\n" not in caplog.messages[0]
    chat.close()


def test_lease_that_asks_for_a_summary_without_a_summarizer_is_reported(caplog):
    lease = Lease(expiration_turns=1, expiration_mode="compact", compact_mode="summary", compact_length=200)
    with open_conversation("tale", window=4_000, policy="none") as chat:
        for number in range(6):
            chat.append([user("And?"), call(f"c{number}", "look")])
            chat.append(answer(f"c{number}", text_of(300, number)), lease=lease)
            chat.prepare()
            chat.record(say("I see."))
    assert caplog.messages == ["tale: expire has no summary: there is no summarizer. This cause is logged once."]


def test_another_cause_is_another_warning(caplog):
    causes = [OSError("down"), OSError("down"), ValueError("bad key"), OSError("down")]

    def write(request: SummaryRequest) -> str:
        raise causes.pop(0) if causes else OSError("down")

    with talked(EXPIRE, write):
        pass
    assert [message.partition(" raised ")[2] for message in caplog.messages] == [
        "OSError: down. This cause is logged once.",
        "ValueError: bad key. This cause is logged once.",
    ]


def test_dropped_sentence_of_a_used_summary_is_no_warning(caplog):
    with talked(COMPACT, invents) as chat:
        assert any("dropped a quotation" in why for receipt in chat.journal.receipts() for why in receipt.refused)
    assert not caplog.messages


def test_failure_in_the_background_is_a_warning(caplog):
    background = HandCranked()
    policy = compact_on_overflow(threshold=0.9, ahead=0.3, keep_recent=200)
    chat = open_conversation(
        "tale", window=4_000, policy=policy, summarizer=fails, options=Options(background=background)
    )
    for number in range(8):
        chat.append([user(f"Question {number}?"), say(text_of(200, number))])
        chat.append("And?")
        chat.prepare()
        background.crank()
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("tale: compact has no summary: the summarizer raised OSError: no quota")
    chat.close()


def test_failure_by_hand_is_a_warning(caplog):
    with talked("none", fails) as chat:
        assert chat.compact().by == ("digest",)
    assert [message[:36] for message in caplog.messages] == ["tale: compact has no summary: the su"]
