"""What the recorded client did itself: the requests with its own compactions, and the sentences about them."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs
from recorded_samples import write_document

from foveate.core.call_context import Prices
from foveate.core.messages import Message, Text
from foveate.core.sizes import tokens_of
from foveate.formats import get_format
from foveate.ports import Rendered
from foveate.replay.corpus import replay_files, settings_of_recording, sum_rows
from foveate.replay.measure import Meter, RecordedRequests
from foveate.replay.recordings import read_recording
from foveate.replay.recordings.recording import RecordedMessage, Recording
from foveate.replay.report import (
    client_sentence,
    loss_sentence,
    month_sentence,
    outcome_sentence,
    transcript_table,
)
from foveate.replay.result import Row
from foveate.replay.run import replay
from foveate.testing import agent_run


def says(role: str, text: str) -> Message:
    return Message(role, (Text(text),))  # type: ignore[arg-type]


PROMPT, LONG, SUMMARY = says("system", "p" * 400), says("user", "x" * 4_000), says("user", "s" * 40)
PRICES = Prices(read=0.1, write=1.0, output=5.0)


def test_requests_after_a_compaction_have_prompt_and_summary_only() -> None:
    requests = RecordedRequests()
    for message in (PROMPT, LONG):
        requests.add(message, is_summary=False)
    requests.request()
    requests.add(SUMMARY, is_summary=True)
    requests.request()
    prompt, long, summary = map(tokens_of, (PROMPT, LONG, SUMMARY))
    assert requests.requests == [(prompt + long, 0), (prompt + long, prompt + long), (prompt + summary, prompt)]
    assert (requests.compactions, requests.peak) == (1, prompt + long)
    expected = (prompt + long) * 1.1 + 0.1 * prompt + summary + 5.0 * summary
    assert abs(requests.cost(PRICES) - expected) < 1e-9


def test_a_replay_reports_what_the_client_did_and_when() -> None:
    summary = RecordedMessage(SUMMARY, 0, 90_000_000, origin="summary")
    before = [RecordedMessage(message, 0, 1_000) for message in (LONG, says("assistant", "ok"))]
    after = [RecordedMessage(message, 0, 172_800_000) for message in (says("user", "go"), says("assistant", "done"))]
    row = replay(Recording("a.jsonl", "chat", (*before, summary, *after)), policy="none", window=100_000).row
    assert (row.compactions, row.began, row.ended) == (1, 1_000, 172_800_000)
    assert row.cost_recorded is not None
    assert client_sentence(row).startswith("The recorded client compacted once itself, which cost about ")
    alone = structs.replace(row, compactions=0, cost_recorded=None)
    total = sum_rows([row, alone])
    assert (total.compactions, total.cost_recorded) == (1, row.cost_recorded + row.cost_unmanaged)
    assert client_sentence(alone) == ""


def row_with(**changes: object) -> Row:
    found = replay(agent_run(6, seed=1), policy="none", window=100_000).row
    return structs.replace(found, **changes)


def test_thirty_days_are_priced_at_the_rate_of_the_recordings() -> None:
    row = row_with(policy="prune", money=2.0, money_unmanaged=5.0, began=0, ended=10 * 86_400_000)
    assert month_sentence(row) == (
        "Thirty days at the rate of these 10.0 days, without the model's answers: $6.00 with `prune`, $15.00 if "
        "everything is sent."
    )
    short = structs.replace(row, ended=60_000, money_recorded=3.0)
    assert month_sentence(short) == (
        "Thirty days at the rate of a day like this one, without the model's answers: $60.00 with `prune`, $150.00 if "
        "everything is sent, $90.00 as the client did it."
    )
    for nothing in ({"money": None}, {"began": None}, {"money": 5.0}):
        assert month_sentence(structs.replace(row, **nothing)) == ""


def test_a_session_without_an_answer_hides_no_figure_of_the_others() -> None:
    """It names no model, so that its price is not known."""
    known = row_with(model="gpt-5", money=2.0, money_unmanaged=5.0, began=0, ended=9)
    empty = replay([LONG], policy="none", window=200_000, provider="anthropic").row
    total = sum_rows([known, empty])
    assert (total.model, total.window, total.provider) == (known.model, known.window, known.provider)
    assert (total.money, total.money_unmanaged, total.began, total.ended) == (2.0, 5.0, 0, 9)
    unknown = structs.replace(known, money=None, began=None, ended=None)
    total = sum_rows([known, unknown])
    assert (total.money, total.money_unmanaged, total.began, total.ended) == (None, 10.0, None, None)


def test_a_policy_that_saved_nothing_says_why() -> None:
    row = row_with(policy="prune", edits=2, cost_ratio=1.03, peak_tokens=900)
    assert loss_sentence(row) == (
        "`prune` saved nothing: its 2 edits rewrote part of the cache, and the session ended before smaller requests "
        "paid that back. The largest request had 900 tokens."
    )
    assert loss_sentence(structs.replace(row, cost_ratio=0.97)) == loss_sentence(structs.replace(row, edits=0)) == ""


def test_several_recordings_have_a_line_each_and_an_outcome() -> None:
    first = row_with(transcript="a", cost=50.0, cost_unmanaged=100.0, cost_ratio=0.5, cost_all_in=0.6)
    rows = [
        first,
        structs.replace(first, transcript="b", cost=100.0, cost_ratio=1.0, cost_all_in=1.0),
        structs.replace(first, transcript="b", cost=102.0, cost_ratio=1.02, cost_all_in=1.02),
    ]
    assert outcome_sentence(rows) == (
        "`none`: of 3 recordings 1 cost less than sending everything, 1 the same, 1 more."
    )
    assert outcome_sentence(rows[:1]) == ""
    empty = structs.replace(first, calls=0, cost=0.0, cost_unmanaged=0.0)
    assert outcome_sentence([first, empty]).endswith(
        "1 cost less than sending everything, 0 the same, 0 more; 1 had no model call."
    )
    titles, lines = transcript_table(rows)
    assert titles[-1] == "none (all-in)"
    assert [(line[0], line[-1]) for line in lines] == [
        ("a", "50 % (60 %)"),
        ("b", "100 % (100 %)"),
        ("b", "102 % (102 %)"),
    ]


def test_an_entry_that_becomes_several_items_is_billed_once() -> None:
    """In OpenAI's Responses API the text, the reasoning and each call of a reply are items of their own."""
    chat = agent_run(30, seed=2)
    for provider in ("openai_responses", "openai", "anthropic", "gemini"):
        row = replay(chat, policy="off", provider=provider, window=10**6).row
        assert (provider, row.cost) == (provider, row.cost_unmanaged)


def test_the_first_item_of_an_entry_carries_its_tokens() -> None:
    from foveate.open import open_conversation

    chat = open_conversation("c", store="memory:", format="openai", window=100_000)
    chat.append(LONG)
    (entry,) = chat.view.entries
    meter = Meter(PRICES)
    item = Rendered(b"a", (entry,)), Rendered(b"b", (entry,))
    assert meter.bill(item, 1).tokens == entry.tokens
    assert meter.bill((item[0], Rendered(b"c", (entry,))), 1).tokens == entry.tokens


def test_settings_follow_the_model_of_the_recording(tmp_path: Path) -> None:
    assert get_format("openai_responses")
    chat = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Ho."}]
    plain = read_recording(write_document(tmp_path / "plain.json", chat))
    named = read_recording(write_document(tmp_path / "named.json", {"model": "gpt-5.2", "messages": chat}))
    assert settings_of_recording(plain) == (200_000, "anthropic", Prices())
    window, provider, prices = settings_of_recording(named)
    assert (window, provider, prices.write) == (272_000, "openai", 1.0)
    files = [tmp_path / "plain.json", tmp_path / "named.json"]
    rows = replay_files(files, policies=["none"], window=None, provider=None, prices=None, jobs=1).rows
    assert [(row.window, row.provider) for row in rows] == [(200_000, "anthropic"), (272_000, "openai")]
    chosen = replay_files(files, policies=["none"], window=50_000, provider="gemini", prices=None, jobs=1).rows
    assert [(row.window, row.provider) for row in chosen] == [(50_000, "gemini")] * 2


def test_every_conversation_of_a_file_is_replayed(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Ho."}]
    path = write_document(tmp_path / "many.json", [{"messages": chat}, {"messages": chat}])
    corpus = replay_files([path], policies=["none", "prune"], jobs=1)
    assert [(row.transcript, row.policy) for row in corpus.rows] == [
        ("many#1", "none"),
        ("many#1", "prune"),
        ("many#2", "none"),
        ("many#2", "prune"),
    ]
