"""The page on spending, and the figures of a stored conversation."""

from __future__ import annotations

import pytest
from clients import client_of
from prepared import demo_messages, play
from test_compare_pages import finished

from foveate import open_conversation
from foveate.core.stamps import Usage
from foveate.inspector import build_app
from foveate.inspector.views.spending import spending_of_conversation
from foveate.inspector.views.timeline import timeline_of
from foveate.open import open_store
from foveate.replay.run import replay
from foveate.testing import answer, call, say, user


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    path = f"sqlite:///{tmp_path_factory.mktemp('spending') / 'chats.db'}"
    play(path, "demo", demo_messages()[:160], window=20_000, policy="prune")
    play(path, "folded", demo_messages()[:160], window=20_000)
    return path


def test_spending_agrees_with_timeline_and_replay(tmp_path):
    """One bill for all: the page on spending, the chart, and the replay of the same messages."""
    url, messages = f"sqlite:///{tmp_path / 'a.db'}", demo_messages()[:160]
    row = replay(messages, policy="keep-last-3", window=20_000, provider="anthropic", store=url, name="demo").row
    with open_conversation("demo", store=url, window=20_000, policy="off", format="anthropic", expand=True) as chat:
        seen = []
        spending = spending_of_conversation(chat, progress=lambda *step: seen.append(step))
        figures = timeline_of(chat).follow(60)
    assert spending.calls == figures.count == row.calls
    assert spending.cost == pytest.approx(figures.total("cost")) == pytest.approx(row.cost)
    assert (
        spending.cost_unmanaged == pytest.approx(figures.total("cost_unmanaged")) == pytest.approx(row.cost_unmanaged)
    )
    assert spending.cost_ratio == pytest.approx(row.cost_ratio)
    assert seen[-1][1] == 160
    assert any(result.whole < result.calls for result in spending.results)


def test_prompt_outside_the_messages_follows_from_the_estimates(tmp_path):
    tools = [{"name": "look", "description": "d" * 4_000, "input_schema": {"type": "object"}}]
    url = f"sqlite:///{tmp_path / 'a.db'}"
    with open_conversation("a", store=url, model="claude-haiku-4-5", window=50_000) as chat:
        for number in range(3):
            chat.append(f"Question {number}")
            chat.prompt(system="You help.", tools=tools)
            chat.record({"role": "assistant", "content": "Yes."}, usage=Usage(1_200, 0, 0, 5))
        spending = spending_of_conversation(chat)
        overhead = chat.budget.overhead
    outside = next(share for share in spending.shares if share.kind == "outside")
    assert overhead > 500
    assert outside.tokens == 3 * overhead
    assert spending.share_of("outside") > 0.9


@pytest.mark.parametrize("name", ["demo", "folded"])
def test_another_counter_makes_no_prompt_outside_the_messages(url, monkeypatch, name):
    """The inspector may not know the model, and then counts shrunk messages with another counter."""
    monkeypatch.setattr("foveate.open.parts.counter_for", lambda model, format="": lambda text: len(text) // 9)
    with open_conversation(name, store=url, window=20_000, policy="off", format="anthropic") as chat:
        assert spending_of_conversation(chat).share_of("outside") == 0


def test_page_shows_where_the_money_went(url):
    with open_store(url) as store, client_of(build_app(store)) as client:
        text = finished(client, "/c/store/demo/spending?policies=balanced&window=20000").text
    for words in ("Results that cost most", "By kind of content", "read_file", "as it was", "balanced", "all-in"):
        assert words in text
    assert 'href="/c/store/demo/content?m=' in text
    assert "policies=stored%2Cbalanced" in text


def test_page_of_a_conversation_without_a_call_says_so(tmp_path):
    with open_store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        with open_conversation("a", store=store, window=50_000) as chat:
            chat.append("Hello")
        with client_of(build_app(store)) as client:
            assert "No model call has an answer yet." in finished(client, "/c/store/a/spending").text


def test_page_forgets_the_arguments_of_an_erased_call(tmp_path):
    with open_store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        with open_conversation("a", store=store, window=50_000, policy="none") as chat:
            chat.append(
                [user("Read it."), call("c1", "read", path="secret.py"), answer("c1", "text " * 50), say("Done.")]
            )
        with client_of(build_app(store)) as client:
            assert "secret.py" in finished(client, "/c/store/a/spending").text
            with open_conversation("a", store=store, window=50_000, policy="none") as chat:
                chat.privacy.erase("m2")
            assert "secret.py" not in finished(client, "/c/store/a/spending").text


def test_unknown_policy_is_refused(url):
    with open_store(url) as store, client_of(build_app(store)) as client:
        assert client.get("/c/store/demo/spending?policies=../../etc/passwd").status_code == 400
        assert client.get("/c/store/missing/spending").status_code == 404
