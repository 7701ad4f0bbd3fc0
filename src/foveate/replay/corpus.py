"""Many recordings under several policies: side by side in processes, summed up, and the newest one found.

A recording that cannot be read or replayed is reported and stops no other. Results come in the order of the files and
policies asked for, however the work was shared out.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..core.view import Prices
from ..errors import BadSetting, FoveateError, IllegalView
from ..policies import DEFAULT_PRESET
from .measure import DEFAULT_PRICES, share
from .recordings import read_recording
from .result import Replayed, Row
from .run import Check, PolicyLike, policy_name, replay

__all__ = ["Corpus", "Failure", "newest_recording", "replay_files", "total"]

Progress = Callable[[int, int, str], None]
"""Told after each recording: how many are done, of how many, and which one was finished."""


class Failure(Struct, frozen=True):
    """A recording that could not be replayed."""

    path: str
    policy: str
    """The policy under which it failed; empty where it could not be read at all."""
    error: str
    """What happened, in a sentence."""
    unexpected: bool = False
    """Whether it is more than the recording, its window or the store: a bug of foveate, or a process that was ended."""


class Corpus(Struct, frozen=True):
    """What a replay of many recordings yields."""

    replayed: tuple[Replayed, ...]
    """One for each recording and policy, in the order asked for."""
    failures: tuple[Failure, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(replayed.row for replayed in self.replayed)


def replay_files(
    paths: Iterable[str | os.PathLike[str]],
    *,
    policies: Sequence[PolicyLike] = (DEFAULT_PRESET,),
    window: int = 200_000,
    provider: str = "openai",
    prices: Prices = DEFAULT_PRICES,
    check: Check | None = None,
    store: str = "memory:",
    format: str | None = None,
    lenient: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Corpus:
    """Replay every file under every policy.

    `jobs` processes share the work: as many as there are processors unless told, one where there is one file or where
    all write to one store. With more than one, `check` and callable policies must be importable functions. `format`
    and `lenient` are handed to the reader. What is wrong with a recording is told in `Corpus.failures`, never raised;
    BadSetting is, since no recording can be replayed with it.
    """
    files = [os.fspath(path) for path in paths]
    settings: dict[str, Any] = {
        "window": window,
        "provider": provider,
        "prices": prices,
        "check": check,
        "store": store,
    }
    tasks = [
        _Task(file, label, tuple(policies), format, lenient, settings)
        for file, label in zip(files, _labels(files), strict=True)
    ]
    workers = 1 if store != "memory:" else min(len(tasks), jobs or os.cpu_count() or 1)
    done: dict[int, _Outcome] = {}
    for index, outcome in _in_processes(tasks, workers) if workers > 1 else _one_by_one(tasks):
        done[index] = outcome
        if progress:
            progress(len(done), len(tasks), files[index])
    outcomes = [done[index] for index in range(len(tasks))]
    return Corpus(
        tuple(replayed for outcome in outcomes for replayed in outcome.replayed),
        tuple(failure for outcome in outcomes for failure in outcome.failures),
    )


def total(rows: Sequence[Row]) -> Row:
    """The rows of several transcripts under one policy as one row.

    Counts and costs are summed and divided as sums, shares are weighted by what they are shares of, the peak is the
    highest. The median time per turn is the calls' weighted mean of the medians, the 99th percentile the worst of them.
    Money is known only if it is known for every row.
    """
    if not rows:
        raise BadSetting("There are no rows to sum up: name at least one recording.")

    def sum_of(field: str) -> Any:
        return sum([getattr(row, field) for row in rows])

    def weighted(field: str, weight: str) -> float | None:
        return share(sum([(getattr(row, field) or 0) * getattr(row, weight) for row in rows]), sum_of(weight))

    def common(field: str) -> Any:
        values = {getattr(row, field) for row in rows}
        return values.pop() if len(values) == 1 else type(getattr(rows[0], field))()

    def money(field: str) -> float | None:
        return None if any(getattr(row, field) is None for row in rows) else sum_of(field)

    kept_apart: dict[str, int] = {}
    for row in rows:
        for kind, number in row.kept_apart.items():
            kept_apart[kind] = kept_apart.get(kind, 0) + number
    unmanaged = sum_of("cost_unmanaged")
    return Row(
        transcript=rows[0].transcript if len(rows) == 1 else f"{len(rows)} transcripts",
        policy=common("policy"),
        messages=sum_of("messages"),
        calls=sum_of("calls"),
        input_tokens=sum_of("input_tokens"),
        peak_tokens=max(row.peak_tokens for row in rows),
        cost=sum_of("cost"),
        cost_unmanaged=unmanaged,
        cost_ratio=share(sum_of("cost"), unmanaged) or 1.0,
        cost_all_in=weighted("cost_all_in", "cost_unmanaged") or 1.0,
        expansions=sum_of("expansions"),
        edits=sum_of("edits"),
        prefix_rewrites=sum_of("prefix_rewrites"),
        references=sum_of("references"),
        recall_visible=weighted("recall_visible", "references"),
        said_references=sum_of("said_references"),
        said_visible=weighted("said_visible", "said_references"),
        quoted_lines=sum_of("quoted_lines"),
        quoted_visible=weighted("quoted_visible", "quoted_lines"),
        recall_reachable=weighted("recall_reachable", "references"),
        illegal_views=sum_of("illegal_views"),
        lost_messages=sum_of("lost_messages"),
        ms_per_turn_p50=weighted("ms_per_turn_p50", "calls") or 0.0,
        ms_per_turn_p99=max(row.ms_per_turn_p99 for row in rows),
        model_calls=sum_of("model_calls"),
        over_budget=sum_of("over_budget"),
        window=common("window"),
        provider=common("provider"),
        model=common("model"),
        money=money("money"),
        money_unmanaged=money("money_unmanaged"),
        kept_apart=kept_apart,
    )


def newest_recording(home: Path | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The recording of Claude Code or Codex that was written to last on this computer.

    Looks in `~/.claude/projects` (`$CLAUDE_CONFIG_DIR/projects`) and `~/.codex/sessions` (`$CODEX_HOME/sessions`);
    what a sub-agent of Claude Code recorded on its own is passed over. With `home` given, only `environ` given too is
    heeded. Raises BadSetting if there is none.
    """
    variables = environ if environ is not None else {} if home else os.environ
    base = home or Path.home()
    folders = (
        Path(variables.get("CLAUDE_CONFIG_DIR") or base / ".claude") / "projects",
        Path(variables.get("CODEX_HOME") or base / ".codex") / "sessions",
    )
    found = [
        (path.stat().st_mtime_ns, path)
        for folder in folders
        for path in folder.glob("**/*.jsonl")
        if path.is_file() and path.stat().st_size and not path.name.startswith("agent-")
    ]
    if not found:
        raise BadSetting(
            f"There is no recording of Claude Code or Codex in {folders[0]} or {folders[1]}. Name a file instead."
        )
    return max(found)[1]


# ------------------------------------------------------------------------------------------------------------- the work


class _Task(Struct, frozen=True):
    path: str
    label: str
    policies: tuple[PolicyLike, ...]
    format: str | None
    lenient: bool
    settings: dict[str, Any]


class _Outcome(Struct, frozen=True):
    replayed: tuple[Replayed, ...] = ()
    failures: tuple[Failure, ...] = ()


def _one_by_one(tasks: Sequence[_Task]) -> Iterator[tuple[int, _Outcome]]:
    for index, task in enumerate(tasks):
        yield index, _work(task)


def _in_processes(tasks: Sequence[_Task], workers: int) -> Iterator[tuple[int, _Outcome]]:
    _check_that_they_travel(tasks[0])
    # The longest first, so that no process is left with one at the end.
    longest_first = sorted(range(len(tasks)), key=lambda index: -_size(tasks[index].path))
    # Spawned, not forked: whoever shows a progress bar has threads.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        running: dict[Future[_Outcome], int] = {pool.submit(_work, tasks[index]): index for index in longest_first}
        for future in as_completed(running):
            index = running[future]
            try:
                yield index, future.result()
            except BrokenProcessPool:
                problem = "The process that replayed it, or one beside it, was ended from outside (too little memory?)."
                yield index, _Outcome((), (Failure(tasks[index].path, "", problem, True),))
    finally:
        pool.shutdown(cancel_futures=True)


def _check_that_they_travel(task: _Task) -> None:
    try:
        pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise BadSetting(
            f"Policies and check functions of your own reach other processes only by name ({error}). "
            "Define them at the top of a module, or pass jobs=1."
        ) from error


def _work(task: _Task) -> _Outcome:
    """Replay one file under its policies. Module-level, so that another process can be told to do it."""
    try:
        recording = read_recording(task.path, lenient=task.lenient, format=task.format)
    except BadSetting:
        raise
    except Exception as error:
        return _Outcome((), (_failure(task.path, "", error),))
    replayed: list[Replayed] = []
    failures: list[Failure] = []
    for policy in task.policies:
        name = f"{task.label} / {policy_name(policy)}"
        try:
            replayed.append(replay(recording, policy=policy, transcript=task.label, name=name, **task.settings))
        except BadSetting:
            raise
        except Exception as error:
            failures.append(_failure(task.path, policy_name(policy), error))
    return _Outcome(tuple(replayed), tuple(failures))


def _failure(path: str, policy: str, error: Exception) -> Failure:
    expected = isinstance(error, FoveateError | OSError)
    said = str(error) if expected else f"{type(error).__name__}: {error}"
    return Failure(path, policy, said, not expected or isinstance(error, IllegalView))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _labels(paths: Sequence[str]) -> list[str]:
    """Short names for files: their own, with as many of their folders as it takes to tell them apart."""
    parts = [Path(path).with_suffix("").parts for path in paths]
    longest = max(map(len, parts), default=1)
    for count in range(1, longest + 1):
        labels = ["/".join(part[-count:]) for part in parts]
        if len(set(labels)) == len(set(parts)):
            return labels
    return list(paths)
