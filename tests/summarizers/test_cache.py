"""The cache of summaries: it repeats accepted summaries, and no failure."""

from __future__ import annotations

import asyncio
import shelve
from typing import Any

import pytest
from msgspec.structs import replace

from foveate import user
from foveate.edits import Task
from foveate.errors import BadSetting
from foveate.summarizers import Summary, SummaryRequest, cached, digest_history
from foveate.testing.stubs import ScriptedSummarizer

REQUEST = SummaryRequest("compact", (user("Mend the login, and say how it went. " * 9),), 100)
GOOD = "The login was mended."


def test_the_same_request_is_sent_once_for_all_attempts():
    asked = ScriptedSummarizer([GOOD, "Something else was said."])
    summarize: Any = cached(asked)
    assert summarize(REQUEST) == GOOD
    again = replace(REQUEST, task=Task("compact", "pending", 2, 9))
    assert summarize(again) == Summary(GOOD, "summarizer")
    assert len(asked.requests) == 1
    assert summarize(replace(REQUEST, focus="the API")) == "Something else was said."
    assert len(asked.requests) == 2


def test_failures_are_not_cached():
    """F25."""
    asked = ScriptedSummarizer([OSError("down"), "", "Error code: 429 - slow down", GOOD])
    summarize: Any = cached(asked)
    with pytest.raises(OSError, match="down"):
        summarize(REQUEST)
    assert [summarize(REQUEST) for _ in range(3)] == ["", "Error code: 429 - slow down", GOOD]
    assert summarize(REQUEST).text == GOOD
    assert len(asked.requests) == 4


def test_an_async_answer_is_cached_once_it_is_there():
    asked = ScriptedSummarizer([GOOD])
    summarize: Any = cached(asked.later)

    async def run() -> list[Any]:
        return [await summarize(REQUEST), summarize(REQUEST)]

    assert asyncio.run(run()) == [GOOD, Summary(GOOD, "later")]


def test_a_store_of_the_caller_outlives_the_process(tmp_path):
    written = Summary(GOOD, "a model", ("another: down",))
    asked: list[SummaryRequest] = []

    def model(request: SummaryRequest) -> Summary:
        asked.append(request)
        return written

    for _ in range(2):
        with shelve.open(str(tmp_path / "summaries")) as store:
            told: Any = cached(model, store)(REQUEST)
        assert (told, len(asked)) == (written, 1)


def test_the_own_cache_is_bounded_and_drops_the_oldest_first():
    asked = ScriptedSummarizer([GOOD])
    summarize: Any = cached(asked, size=2)
    for target in (100, 101, 102, 102, 101, 100):
        summarize(replace(REQUEST, target=target))
    assert [request.target for request in asked.requests] == [100, 101, 102, 100]


def test_a_summarizer_without_a_model_is_not_judged():
    summarize: Any = cached(digest_history())
    assert (summarize.needs_no_model, summarize.name) == (True, "digest")
    assert summarize(REQUEST) == summarize(REQUEST).text


@pytest.mark.parametrize("wrong", [lambda: cached(7), lambda: cached(digest_history(), size=0)])
def test_wrong_arguments_are_refused(wrong: Any):
    with pytest.raises(BadSetting):
        wrong()
