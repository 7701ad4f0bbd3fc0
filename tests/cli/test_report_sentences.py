"""Sentences of a report: the table, the closing sentence, and the notes of recordings."""

from __future__ import annotations

from msgspec.structs import replace
from replay_samples import sample

from foveate.replay.report import (
    closing_sentence,
    comparison_sentence,
    group_by_transcript,
    idle_sentence,
    is_sound,
    notes_of_rows,
    table,
    window_sentence,
)
from foveate.replay.result import EditFigures


def row(**changes):
    """Return the row of a sample with some figures changed."""
    return replace(sample(calls=10, policies=("prune",))[0].row, **changes)


def test_closing_sentence_names_the_policy():
    assert closing_sentence(row(cost_ratio=0.768, cost_all_in=0.88)) == (
        "`prune`: 77 % of the cost of sending everything, 88 % counting what must be fetched back; 0 illegal views."
    )


def test_closing_sentence_names_failures():
    said = closing_sentence(row(cost_ratio=0.5, cost_all_in=0.6, illegal_views=1, lost_messages=2, over_budget=3))
    assert said.endswith("; 1 illegal view, 2 lost messages, 3 calls over the budget.")


def test_comparison_names_the_cheapest_policy_and_its_money():
    dear, cheap = row(cost_all_in=0.9), row(policy="balanced", cost_ratio=0.5, cost_all_in=0.6)
    assert comparison_sentence([dear, cheap]) == (
        "`balanced` costs least, counting what must be fetched back: 60 % of the cost of sending everything, 50 % "
        "without it."
    )
    priced = replace(cheap, money=0.471, money_unmanaged=1.43)
    assert comparison_sentence([dear, priced]).endswith("50 % without it ($0.471 of $1.43).")
    assert comparison_sentence([dear]) == ""


def test_comparison_says_that_no_policy_saves_anything():
    nothing = row(policy="none", cost_ratio=1.0, cost_all_in=1.0)
    assert comparison_sentence([nothing, row(cost_ratio=0.8, cost_all_in=1.2)]) == (
        "No policy costs less than sending everything, counting what must be fetched back."
    )


def outgrown(name="a", window=500, whole=(400, 501, 900), edits=()):
    """Return the replays of a recording whose whole history has these tokens at each call."""
    return [
        replace(
            replay,
            row=replace(replay.row, calls=len(whole), window=window, cost_all_in=0.9 - place / 10),
            calls=tuple(
                replace(call, tokens=tokens if not place else 300, tokens_unmanaged=tokens)
                for call, tokens in zip(replay.calls, whole, strict=True)
            ),
            edits=tuple(edits),
        )
        for place, replay in enumerate(sample(name, calls=len(whole), policies=("off", "prune")))
    ]


def test_window_sentence_names_the_call_and_the_edit_before_it():
    edit = EditFigures(2, 3, 501, 300, 1, "prune")
    assert window_sentence(outgrown(edits=[edit, replace(edit, turn=3)])) == (
        "Sending everything outgrows the window of 500 tokens at call 2 of 3: the provider refuses that request, and "
        "an agent without management ends there. `prune` sends 300 tokens at that call: before call 2, prune reduced "
        "the view from 501 to 300 tokens."
    )
    assert window_sentence(outgrown()).endswith("`prune` sends 300 tokens at that call.")
    assert window_sentence(outgrown()[:1]).endswith("an agent without management ends there.")


def test_window_sentence_counts_several_recordings():
    assert window_sentence(outgrown(window=900)) == ""
    assert window_sentence([*outgrown("a"), *outgrown("b", window=900)]) == (
        "1 of 2 recordings outgrow the window if everything is sent."
    )


def test_policy_that_never_acted_says_when_it_acts():
    assert idle_sentence(row(edits=0, peak_tokens=900, window=800)) == (
        "`prune` made no edit: the largest request had 900 tokens, and the window 800. About `prune`: Clears tool "
        "results behind the newest 40,000 tokens, if that frees more than 20,000."
    )
    assert "About" not in idle_sentence(row(edits=0, policy="mine"))
    assert idle_sentence(row(edits=0, policy="none")) == idle_sentence(row(edits=1)) == ""


def test_recording_without_a_call_has_no_comparison():
    bare = row(calls=0, cost=0, cost_unmanaged=0, cost_ratio=1.0, cost_all_in=1.0, recall_visible=None)
    assert closing_sentence(bare) == "`prune`: no model call to compare; 0 illegal views."
    assert table([bare])[1][0][1:3] == ("–", "–")


def test_table_has_a_row_for_each_policy():
    figures = {
        "cost_ratio": 0.5,
        "cost_all_in": 0.75,
        "peak_tokens": 12_345,
        "recall_visible": None,
        "quoted_visible": 1.0,
    }
    assert table([row(**figures, edits=7)]) == (
        ("policy", "cost", "all-in", "peak tokens", "recall", "quoted", "edits"),
        [("prune", "50 %", "75 %", "12,345", "–", "100 %", "7")],
    )


def test_table_has_money_if_the_price_is_known():
    assert "money" not in table([row()])[0]
    titles, (known, unknown) = table([row(money=1.5, money_unmanaged=2.0), row()])
    money = titles.index("money")
    assert (known[money : money + 2], unknown[money : money + 2]) == (("$1.50", "$2.00"), ("–", "–"))


def test_wide_table_names_every_figure():
    assert table([row()], wide=True)[0] == (
        "policy", "cost", "all-in", "peak tokens", "recall", "quoted", "edits", "model calls", "summaries",
        "input tokens", "prefix rewrites", "said", "reachable", "expansions", "ms p50 / p99", "illegal views",
    )  # fmt: skip


def test_notes_of_recordings_become_one_sentence():
    one = row(kept_apart={"other lines": 3, "side-chain lines": 1})
    two = row(kept_apart={"side-chain lines": 1, "images": 1, "surprises": 2})
    assert notes_of_rows([one, two]) == (
        "The recordings also hold 2 side-chain lines, 1 image, 3 other lines and 2 surprises."
    )
    assert notes_of_rows([row(kept_apart={"images": 0})]) == ""


def test_files_of_the_same_name_are_two_transcripts():
    replays = [*sample("a", calls=3), *sample("a", calls=3), *sample("b", calls=3, policies=("prune",))]
    assert [[one.row.policy for one in group] for group in group_by_transcript(replays)] == [
        ["none", "keep-last-5", "prune"],
        ["none", "keep-last-5", "prune"],
        ["prune"],
    ]


def test_replay_is_sound_if_views_are_legal_and_complete():
    assert is_sound([row(), row()])
    assert not is_sound([row(), row(illegal_views=1)])
    assert not is_sound([row(lost_messages=1), row()])
