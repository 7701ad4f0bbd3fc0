"""Tuning: finds known optima, checks itself, and ends early with what it has."""

from __future__ import annotations

import math
from itertools import count, islice

import pytest
from msgspec.structs import replace
from tuning_samples import sessions, write_session

from foveate.core.call_context import Prices
from foveate.errors import BadSetting
from foveate.replay.corpus import replay_files, sum_rows
from foveate.settings import load
from foveate.tune import preset_text, tune

NO_CACHE = Prices(read=1.0, write=1.0)
"""Prices under which nothing but the size of each request counts."""


def without_names(path):
    """Write a session of plain talk, in which no mechanism has anything to do."""
    lines = [f'{{"role": "user", "content": "hello {path.stem}"}}', '{"role": "assistant", "content": "hello too"}'] * 4
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Sessions whose steps use the result of six steps before: five whole results are too few, seven are enough."""
    return sessions(tmp_path_factory.mktemp("corpus"), back=6)


@pytest.fixture(scope="module")
def tuned(corpus):
    return tune(corpus, policy="keep-last-5", window=32_000, prices=NO_CACHE, keep_readable=1.0, jobs=1)


@pytest.mark.slow
def test_tuning_finds_the_known_best_value(tuned):
    assert tuned.preset.readable < 0.9
    assert tuned.is_better
    assert tuned.best.settings["filter"]["keep"] == 7
    assert tuned.best.readable == 1.0
    assert tuned.best.all_in < tuned.preset.all_in
    assert tuned.ending == "complete"


def test_the_cross_check_confirms_a_real_gain(tuned):
    check = tuned.held_out
    assert check.gain > 0.1
    assert check.gain > check.error > 0
    assert (check.better, check.worse) == (6, 0)
    assert math.isclose(check.gain, 1 - check.all_in / check.all_in_preset)


@pytest.mark.slow
def test_the_cheapest_settings_win_if_nothing_is_used_again(tmp_path):
    files = sessions(tmp_path, back=0)
    result = tune(files, policy="keep-last-5", window=32_000, prices=NO_CACHE, jobs=1)
    assert result.best.settings["filter"]["keep"] == 1
    assert result.best.all_in == min(trial.all_in for trial in result.trials)


@pytest.mark.slow
def test_no_settings_cost_less_than_the_limit(tmp_path):
    """The steps of these sessions read several files at once, so `keep = 1` shortens results before they are seen."""
    files = [write_session(tmp_path / f"{n}.jsonl", n, back=0, steps=4, at_once=4) for n in range(4)]
    result = tune(files, policy="keep-last-5", window=32_000, prices=NO_CACHE, jobs=1)
    assert result.limit == min(trial.all_in for trial in result.trials)


@pytest.mark.slow
def test_settings_that_fit_one_half_alone_are_not_recommended(tmp_path):
    """The split puts the largest and the smallest session into one half. Each half wants what the other half must not
    have: all results gone at once, or ten of them whole.
    """
    shapes = [(0, 24), (9, 20), (9, 18), (0, 14)]
    files = [
        write_session(tmp_path / f"{n}.jsonl", n, back=back, steps=steps) for n, (back, steps) in enumerate(shapes)
    ]
    result = tune(files, policy="keep-last-5", window=32_000, prices=NO_CACHE, jobs=1)
    assert result.held_out.gain < result.held_out.error
    assert (result.held_out.better, result.held_out.worse) == (2, 2)
    assert not result.is_better
    assert result.best == result.preset


def test_talk_without_tools_has_nothing_to_win(tmp_path):
    result = tune([without_names(tmp_path / f"{n}.jsonl") for n in range(4)], policy="prune", jobs=1)
    assert not result.is_better
    assert result.best == result.preset
    assert (result.preset.all_in, result.preset.readable) == (1.0, 1.0)
    assert result.ending == "complete"


def test_the_written_preset_replays_to_the_same_figures(tuned, corpus, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(preset_text(tuned, place=file))
    rows = replay_files(corpus, policies=[str(file)], window=32_000, prices=NO_CACHE, jobs=1).rows
    assert sum_rows(rows).cost_all_in == pytest.approx(tuned.best.all_in, rel=1e-12)
    assert sum_rows(rows).recall_visible == tuned.best.row.recall_visible


@pytest.mark.slow
def test_a_preset_in_a_file_is_extended_by_its_path(corpus, tmp_path):
    base = tmp_path / "base" / "five.toml"
    base.parent.mkdir()
    base.write_text("[filter]\nkeep = 5\n")
    result = tune(corpus[:4], policy=str(base), window=32_000, prices=NO_CACHE, keep_readable=1.0, jobs=1)
    place = tmp_path / "mine.toml"
    text = preset_text(result, place=place)
    assert 'extends = "base/five.toml"' in text
    assert "keep = 7  # was 5" in text
    place.write_text(text)
    (row,) = replay_files(corpus[:1], policies=[str(place)], window=32_000, prices=NO_CACHE, jobs=1).rows
    assert row.recall_visible == 1.0


def test_a_written_preset_holds_the_values_inside_tables(tuned, tmp_path):
    settings = {
        "expire": {"default": {"compact_length": 250}, "tools": {"web search": {"expiration_turns": 4}}, "min_gain": 8}
    }
    changes = [
        ("expire.default.compact_length", 500, 250),
        ("expire.tools.web search.expiration_turns", 2, 4),
        ("expire.min_gain", 0, 8),
    ]
    trial = replace(tuned.best, settings=settings, changes=tuple(changes))
    file = tmp_path / "mine.toml"
    file.write_text(preset_text(replace(tuned, policy="expire"), trial, place=file))
    layer = load(policy=str(file), environ={}).layer
    assert [layer[tuple(name.split("."))].value for name, _, _ in changes] == [250, 4, 8]
    assert layer["expire", "default", "expiration_turns"].value == 2


@pytest.mark.slow
def test_two_processes_find_the_same_as_one(tuned, corpus):
    again = tune(corpus, policy="keep-last-5", window=32_000, prices=NO_CACHE, keep_readable=1.0, jobs=2)
    assert again.as_json() == tuned.as_json()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
def test_ray_finds_the_same_as_one_process(tuned, corpus):
    ray = pytest.importorskip("ray", reason="ray is not installed (the extra `ray`)")
    again = tune(corpus, policy="keep-last-5", window=32_000, prices=NO_CACHE, keep_readable=1.0, jobs=2, engine="ray")
    assert again.as_json() == tuned.as_json()
    assert not ray.is_initialized()  # The search had connected by itself.


@pytest.mark.slow
def test_another_seed_may_try_other_settings_but_agrees(tuned, corpus):
    again = tune(corpus, policy="keep-last-5", window=32_000, prices=NO_CACHE, keep_readable=1.0, jobs=1, seed=7)
    assert again.best.settings["filter"]["keep"] == tuned.best.settings["filter"]["keep"]


@pytest.mark.slow
def test_ctrl_c_returns_the_best_so_far(corpus):
    calls = count(1)

    def progress(done: int, elapsed: float, stage: str) -> None:
        if stage == "round 2" and next(calls) == 3:
            raise KeyboardInterrupt

    result = tune(
        corpus, policy="keep-last-5", window=32_000, prices=NO_CACHE, keep_readable=1.0, jobs=1, progress=progress
    )
    assert (result.ending, result.rounds) == ("interrupted", 1)
    assert result.is_better
    assert result.best.settings["filter"]["keep"] >= 7


def test_ctrl_c_before_the_preset_is_measured_stops_everything(corpus):
    def progress(done: int, elapsed: float, stage: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(corpus, policy="keep-last-5", window=32_000, prices=NO_CACHE, jobs=1, progress=progress)


def test_a_short_time_leaves_recordings_out_and_recommends_nothing(corpus):
    ticks = islice(count(0, 1.0), 10_000)
    result = tune(
        corpus, policy="keep-last-5", window=32_000, prices=NO_CACHE, minutes=0.3, jobs=1, clock=lambda: next(ticks)
    )
    assert result.ending == "time"
    assert result.recordings + result.left_out == len(corpus)
    assert result.recordings >= 4
    assert result.held_out is None
    assert not result.is_better


def test_settings_of_the_environment_are_not_searched(corpus):
    result = tune(
        corpus, policy="keep-last-5", window=32_000, prices=NO_CACHE, jobs=1, environ={"FOVEATE_FILTER_KEEP": "5"}
    )
    assert {name for trial in result.trials for name, _, _ in trial.changes} <= {"filter.batch"}
    assert result.parameters == 1


def test_recordings_that_cannot_be_read_are_reported(tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{")
    good = [write_session(tmp_path / f"{n}.jsonl", n, back=0, steps=3) for n in range(4)]
    result = tune([*good, bad], policy="keep-last-5", window=32_000, prices=NO_CACHE, jobs=1)
    assert [failure.path for failure in result.failures] == [str(bad)]
    assert (result.recordings, result.left_out) == (4, 0)


@pytest.mark.slow
def test_a_recording_without_a_model_call_is_reported(tmp_path):
    question = tmp_path / "question.jsonl"
    question.write_text('{"role": "user", "content": "Are you there?"}')
    files = sessions(tmp_path, back=0, number=4)
    result = tune([question, *files], policy="keep-last-5", window=32_000, prices=NO_CACHE, jobs=1)
    assert [(failure.path, failure.error) for failure in result.failures] == [(str(question), "It has no model call.")]
    assert (result.recordings, result.left_out) == (4, 0)


@pytest.mark.slow
def test_a_copy_of_a_recording_is_left_out_and_reported(tmp_path):
    """Else one half of the recordings may hold what the other half is checked with."""
    files = sessions(tmp_path, back=0, number=4)
    copy = tmp_path / "9.jsonl"
    copy.write_bytes(files[2].read_bytes())
    result = tune([copy, *files], policy="keep-last-5", window=32_000, prices=NO_CACHE, jobs=1)
    assert [(failure.path, failure.error) for failure in result.failures] == [
        (str(copy), f"It has the same messages as {files[2]}.")
    ]
    assert (result.recordings, result.left_out) == (4, 0)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"number": 1}, "needs at least 4 recordings, not 1"),
        ({"keep_readable": 1.5}, "keep_readable is 1.5. Set it to a share"),
        ({"minutes": 0}, "minutes is 0. Set it to a number above 0"),
        ({"policy": "none"}, "'none' has no parameters"),
        ({"policy": "nonesuch"}, "There is no policy 'nonesuch'"),
        ({"engine": "spark"}, "There is no engine 'spark'"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(corpus, change, text):
    arguments = {"policy": "prune", "jobs": 1, **change}
    files = corpus[: arguments.pop("number", 6)]
    with pytest.raises(BadSetting) as refusal:
        tune(files, **arguments)
    assert text in str(refusal.value)


def test_too_few_readable_recordings_are_refused_with_the_reason(corpus, tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{")
    with pytest.raises(BadSetting, match=r"Only 3 of 4 recordings can be used.*bad\.jsonl") as refusal:
        tune([*corpus[:3], bad], policy="prune", jobs=1)
    assert str(refusal.value).count("bad.jsonl") == 1


def test_a_short_time_still_finds_four_readable_recordings(corpus, tmp_path):
    """Whichever four the seed begins with, the unreadable ones among them do not count."""
    bad = [tmp_path / f"bad{number}.jsonl" for number in range(3)]
    for path in bad:
        path.write_text("{")
    result = tune([*corpus[:4], *bad], policy="prune", minutes=1, clock=iter(range(0, 10**9, 60)).__next__, jobs=1)
    assert (result.recordings, result.replays >= 4) == (4, True)
