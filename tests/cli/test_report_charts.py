"""The geometry of the charts."""

from __future__ import annotations

from replay_samples import sample

from foveate.replay.charts import Label, columns, layers, marks, rising_line, spread, x_labels, y_labels
from foveate.replay.result import CallFigures, EditFigures


def call(turn: int, **kinds: int) -> CallFigures:
    tokens = sum(kinds.values())
    return CallFigures(turn, 2 * turn, tokens, 0, float(tokens), cost_unmanaged=2.0 * tokens, **kinds)


def test_chart_stacks_layers():
    steps = columns([call(1, user=10, results_full=30), call(2, user=10, results_full=70), call(3, user=10)])
    assert layers(steps, 100) == {
        "results_full": "M0 1000V600H1V200H2V900H3V1000Z",
        "user": "M0 1000V900H3V1000Z",
    }


def test_chart_has_no_layer_for_an_absent_kind():
    assert layers(columns([call(1, user=10)]), 100).keys() == {"user"}


def test_chart_joins_many_calls_and_keeps_the_largest():
    steps = columns([call(turn, user=turn) for turn in range(1, 11)], most=4)
    assert [(step.left, step.right, step.call.turn, step.spent, step.whole) for step in steps] == [
        (0, 3, 3, 6.0, 12.0),
        (3, 6, 6, 21.0, 42.0),
        (6, 9, 9, 45.0, 90.0),
        (9, 10, 10, 55.0, 110.0),
    ]


def test_chart_of_sums_begins_at_the_origin():
    steps = columns([call(1, user=10), call(2, user=30)])
    assert rising_line(steps, [step.spent for step in steps], 80) == "M0 1000L1 875L2 500"


def test_mark_height_is_the_root_of_the_tokens_freed():
    plans = [
        EditFigures(3, 1, 1000, 600, 1, "prune"),
        EditFigures(5, 2, 1000, 900, 1, "prune"),
        EditFigures(6, 1, 9, 9, 1, "pin"),
    ]
    assert [(mark.x, mark.height, mark.edits) for mark in marks(plans)] == [
        (2.5, 1000, 1),
        (4.5, 500, 2),
        (5.5, 220, 1),
    ]


def test_label_positions_are_percentages():
    assert y_labels(200) == (
        Label(0.0, "0"),
        Label(25.0, "50"),
        Label(50.0, "100"),
        Label(75.0, "150"),
        Label(100.0, "200"),
    )
    assert x_labels(10) == tuple(Label(10.0 * at - 5, str(at)) for at in (2, 4, 6, 8, 10))
    assert (y_labels(0), x_labels(0)) == ((), ())


def test_labels_that_touch_are_moved_apart():
    assert spread([50, 52, 90], 9) == [50, 59, 90]
    assert spread([99, 98, 97], 9) == [100, 91, 82]
    assert spread([], 9) == []


def test_chart_of_a_long_transcript_stays_small():
    steps = columns(sample(calls=900, policies=("keep-last-5",))[0].calls)
    assert len(steps) <= 360
    assert all(len(path) < 8_000 for path in layers(steps, 10**6).values())
