"""The report of a search: points inside the plot, the limit as a line, and the preset as text."""

from __future__ import annotations

import re

import pytest
from replay_samples import sample

from foveate.inspector.saved.tuning import page
from foveate.tune.result import HeldOut, Trial, Tuned

ROW = sample(calls=20)[0].row


def trial(all_in: float, readable: float, **settings) -> Trial:
    changes = tuple((f"{table}.{name}", 1, new) for table, values in settings.items() for name, new in values.items())
    return Trial(settings, changes, all_in, readable, ROW)


def tuned(limit: float, best: int | None = 2) -> Tuned:
    trials = (
        trial(0.60, 0.950),
        trial(0.58, 0.940, prune={"protect": 20_000}),
        trial(0.56, 0.960, prune={"protect": 80_000}),
        trial(0.70, 0.930, prune={"minimum": 5}),
        trial(0.99, 0.900, prune={"minimum": 7}),
    )
    check = HeldOut(0.57, 0.6, 0.95, 0.95, 0.05, 0.01, 9, 3)
    chosen = trials[best or 0]
    return Tuned(
        policy="prune <b>",
        window=200_000,
        recordings=12,
        left_out=0,
        failures=(),
        preset=trials[0],
        best=chosen,
        trials=trials,
        frontier=(trials[2],),
        held_out=check,
        limit=limit,
        keep_readable=0.94,
        parameters=4,
        rounds=3,
        replays=200,
        ending="complete",
        seed=0,
    )


def points(html: str) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for kind, x, y in re.findall(r'<circle class="t-(\w+)" cx="([\d.-]+)%" cy="([\d.-]+)%"', html):
        found.setdefault(kind, []).append((float(x), float(y)))
    return found


@pytest.mark.parametrize("limit", [0.5, 0.1])
def test_every_point_lies_inside_the_plot_and_above_the_limit(limit):
    html = page(tuned(limit))
    (line,) = [float(y) for y in re.findall(r'<line class="limit" x2="100%" y1="([\d.]+)%"', html)]
    places = [place for kind in points(html).values() for place in kind]
    assert len(places) == 4  # The most expensive one is left out.
    assert all(0 <= x <= 100 and 0 <= y < line <= 100 for x, y in places)


def test_a_far_limit_breaks_the_axis_and_says_so():
    near, far = page(tuned(0.5)), page(tuned(0.1))
    assert "the axis is broken here" not in near
    assert "clairvoyant limit 10.0 %, far below: the axis is broken here" in far
    labels = re.findall(r'<text class="y"[^>]*>(\d+)', far)
    assert labels
    assert min(map(int, labels)) > 50


def test_cheaper_points_lie_lower_and_more_readable_ones_to_the_right():
    found = points(page(tuned(0.5)))
    (best,), (preset,) = found["best"], found["preset"]
    assert best[0] > preset[0]
    assert best[1] > preset[1]


def test_the_report_shows_the_preset_and_escapes_names():
    html = page(tuned(0.5), created="1 May 2026")
    assert "protect = 80000  # was 1" in html
    assert "The best settings cost 6.7 % less than prune &lt;b&gt;" in html
    assert "prune <b>" not in html
    assert "style=" not in html


def test_a_report_without_a_win_has_no_preset():
    html = page(tuned(0.5, best=None))
    assert "There is nothing to win here" in html
    assert "the cross-check does not confirm them" in html
    assert "As a preset" not in html
    assert "best" not in points(html)
