"""Engines: the same results in this process, in several processes and on Ray; lost workers and errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from foveate.errors import BadSetting
from foveate.formats import get_format
from foveate.replay import engines
from foveate.replay.corpus import replay_files
from foveate.replay.engines import LocalEngine, RayEngine, WorkerLost, open_engine
from foveate.testing import agent_run

# Ray's own libraries leave files and sockets to the garbage collector.
of_ray = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def ray_engine():
    """An engine on a Ray of this computer with two processors, for all tests of this module."""
    ray = pytest.importorskip("ray", reason="ray is not installed (the extra `ray`)")
    folder = Path(__file__).parent  # Workers import the functions of this module.
    paths = [str(folder.parent.parent / "src"), str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    with pytest.MonkeyPatch.context() as patch:
        # Workers inherit it. The argument `runtime_env` would need more packages.
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    engine = RayEngine()
    yield engine
    engine.close()
    assert ray.is_initialized()  # A connection that the program opened stays open.
    ray.shutdown()


def double(number: int) -> int:
    return 2 * number


def ends_at_ctrl_c(number: int) -> bool:
    return signal.getsignal(signal.SIGINT) is signal.SIG_DFL and not is_ctrl_c_held()


def is_ctrl_c_held() -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def refuse(number: int) -> int:
    raise BadSetting(f"{number} is refused.")


def die_at_three(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_processes_hold_ctrl_c_back_while_they_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """They printed tracebacks of their imports. Afterwards Ctrl-C ends them."""
    held = "signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())"
    note = f"open({str(tmp_path / 'notes')!r}, 'a').write(f'{{{held}}} ')"
    code = f"import signal, sys\nif '--multiprocessing-fork' in sys.orig_argv:\n    {note}\n"
    (tmp_path / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])))
    before = signal.getsignal(signal.SIGINT)
    engine = LocalEngine(2)
    assert sorted(engine.map(ends_at_ctrl_c, [1, 2])) == [(0, True), (1, True)]
    engine.close()
    assert (tmp_path / "notes").read_text().split() == ["True", "True"]
    assert signal.getsignal(signal.SIGINT) is before
    assert not is_ctrl_c_held()


@pytest.mark.parametrize("workers", [1, 2])
def test_results_carry_the_index_of_their_task(workers):
    engine = LocalEngine(workers)
    assert sorted(engine.map(double, [5, 6, 7])) == [(0, 10), (1, 12), (2, 14)]
    assert sorted(engine.map(double, [1, 2])) == [(0, 2), (1, 4)]
    engine.close()


@pytest.mark.slow
def test_an_engine_goes_on_with_new_processes_after_a_lost_worker():
    engine = LocalEngine(2)
    lost = dict(engine.map(die_at_three, [3, 3]))
    assert all(isinstance(result, WorkerLost) for result in lost.values())
    assert dict(engine.map(die_at_three, [1, 2])) == {0: 1, 1: 2}
    engine.close()


def test_an_unknown_engine_is_refused_with_the_known_ones():
    with pytest.raises(BadSetting, match=r"There is no engine 'spark'\. Use local or ray"):
        open_engine("spark")  # type: ignore[arg-type]


def test_a_missing_ray_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BadSetting, match=r'pip install "foveate\[ray\]"'):
        RayEngine()


def test_an_engine_other_than_local_takes_no_store(tmp_path):
    with pytest.raises(BadSetting, match="Use the engine local, or the store memory:"):
        replay_files([tmp_path / "a.jsonl"], engine="ray", store=f"sqlite:///{tmp_path}/a.db")


@of_ray
@pytest.mark.slow
def test_ray_runs_tasks_and_raises_their_errors(ray_engine):
    assert sorted(ray_engine.map(double, list(range(5)))) == [(i, 2 * i) for i in range(5)]
    assert list(ray_engine.map(double, [])) == []
    with pytest.raises(BadSetting, match="7 is refused"):
        list(ray_engine.map(refuse, [7]))
    lost = dict(ray_engine.map(die_at_three, [1, 3]))
    assert lost[0] == 1
    assert isinstance(lost[1], WorkerLost)


@of_ray
@pytest.mark.slow
def test_a_corpus_on_ray_has_the_figures_of_local_processes(ray_engine, tmp_path):
    files = [write(tmp_path / f"{seed}.jsonl", seed) for seed in range(4)]
    (tmp_path / "bad.jsonl").write_text("{")
    files.append(tmp_path / "bad.jsonl")
    local = replay_files(files, policies=["none", "keep-last-2"], window=8_000, jobs=1)
    far = replay_files(files, policies=["none", "keep-last-2"], window=8_000, engine=ray_engine)
    assert len(local.rows) == 8
    assert timeless(far.rows) == timeless(local.rows)
    assert far.failures == local.failures


@pytest.mark.slow
def test_the_command_replays_a_corpus_on_ray_as_in_this_process(tmp_path):
    pytest.importorskip("ray", reason="ray is not installed (the extra `ray`)")
    pytest.importorskip("cyclopts", reason="cyclopts is not installed (the extra `cli`)")
    files = [write(tmp_path / f"{seed}.jsonl", seed) for seed in range(3)]
    (tmp_path / "bad.jsonl").write_text("{")
    arguments = [*files, tmp_path / "bad.jsonl", "--compare", "none,keep-last-2", "--window", "8000", "--json"]
    local = run_replay(*arguments, "--jobs", "1")
    far = run_replay(*arguments, "--engine", "ray", "--jobs", "2")
    assert len(local[1]) == 6
    assert far == local


def run_replay(*arguments: object) -> tuple[int, list[dict[str, object]], bool]:
    """Run `foveate replay`; return its exit code, its rows without times, and whether it named the bad file."""
    command = [sys.executable, "-m", "foveate", "replay", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    timeless = [{name: value for name, value in row.items() if not name.startswith("ms_")} for row in rows]
    return done.returncode, timeless, "bad.jsonl" in done.stderr


def write(path: Path, seed: int) -> Path:
    """Write a generated run as a recording."""
    messages = get_format("openai").render(agent_run(6, seed=seed))
    path.write_text("\n".join(map(json.dumps, messages)))
    return path


def timeless(rows):
    return [replace(row, ms_per_turn_p50=0.0, ms_per_turn_p99=0.0) for row in rows]


class InterruptedPool:
    """A pool of processes that gets Ctrl-C while it starts them. It does the work itself."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def submit(self, function: Any, task: Any) -> Future[Any]:
        signal.raise_signal(signal.SIGINT)
        done: Future[Any] = Future()
        done.set_result(function(task))
        return done

    def shutdown(self, **_: object) -> None:
        """No process runs."""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not hold signals back")
def test_ctrl_c_while_processes_start_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was ignored meanwhile."""
    monkeypatch.setattr(engines, "ProcessPoolExecutor", InterruptedPool)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # A job of a shell ignores Ctrl-C.
    try:
        with pytest.raises(KeyboardInterrupt):
            list(LocalEngine(2).map(str, [1, 2]))
    finally:
        signal.signal(signal.SIGINT, handler)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
