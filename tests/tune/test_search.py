"""The search of one half: independent of the other half, and cheap on bad candidates."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from tuning_samples import sessions

from foveate.core.call_context import Prices
from foveate.replay.engines import LocalEngine
from foveate.settings import load
from foveate.tune.search import Search
from foveate.tune.space import space_of
from foveate.tune.trials import Job, TimeIsUp, Trials


def new_trials(policy="keep-last-5", *, is_over=lambda: False, engine=None):
    space = space_of(load(policy=policy, environ={}).layer)
    options = {"window": 32_000, "provider": "openai", "prices": Prices(read=1.0, write=1.0)}
    return Trials(space, Job(policy, None, False, options), engine or LocalEngine(1), is_over=is_over), space


class CountingEngine(LocalEngine):
    """Counts the tasks of each path."""

    def __init__(self) -> None:
        super().__init__(1)
        self.paths: Counter[str] = Counter()

    def map(self, function, tasks):
        self.paths.update(task.path for task in tasks)
        return super().map(function, tasks)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    paths = sessions(tmp_path_factory.mktemp("search"), back=6, number=6)
    return [str(path) for path in reversed(paths)]


def found_on(paths, trials, space):
    search = Search(space, trials, paths, 1.0, Random(3))
    while search.run_round():
        pass
    return search.best


@pytest.mark.slow
def test_a_search_does_not_depend_on_what_another_one_tried(files):
    trials, space = new_trials()
    alone = found_on(files[::2], trials, space)
    trials, space = new_trials()
    found_on(files[1::2], trials, space)
    assert found_on(files[::2], trials, space) == alone


@pytest.mark.slow
def test_a_search_reads_its_own_recordings_alone(files):
    engine = CountingEngine()
    trials, space = new_trials(engine=engine)
    found_on(files[::2], trials, space)
    assert set(engine.paths) == set(files[::2])


def test_bad_candidates_are_dropped_before_most_recordings(files):
    engine = CountingEngine()
    trials, space = new_trials("prune", engine=engine)
    search = Search(space, trials, files, 1.0, Random(3))
    search.run_round()
    assert engine.paths[search.paths[0]] >= 2 * engine.paths[search.paths[-1]] > 0


def test_nothing_is_replayed_twice(files):
    engine = CountingEngine()
    trials, space = new_trials(engine=engine)
    trials.run([space.start, space.start], files[:3])
    trials.run([space.start], files[:4])
    assert engine.paths == Counter(files[:4])
    assert len(trials) == 4


def test_trials_that_are_done_are_kept_when_the_time_is_up(files):
    budget = iter([False, False, True, True])
    trials, space = new_trials(is_over=lambda: next(budget))
    with pytest.raises(TimeIsUp):
        trials.run([space.start], files[:4])
    assert trials.rows(space.start, files[:2]) is not None
    assert trials.rows(space.start, files[:3]) is None
