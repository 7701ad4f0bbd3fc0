"""Replay of many recordings under several policies, in parallel processes or on a cluster.

A recording that cannot be read or replayed is reported; the others continue. Results have the order of the files and
policies, however the work was distributed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from ..core.call_context import Prices
from ..core.profiles import window_of
from ..errors import BadSetting, FoveateError, IllegalView
from ..models.known import format_of_model, prices_of_model
from ..policies import DEFAULT_PRESET, PolicyChoice
from .engines import Engine, LocalEngine, WorkerLost, open_engine
from .measure import DEFAULT_PRICES, share
from .recordings import read_recordings
from .recordings.recording import Recording
from .recordings.session_folders import CLIENTS, TITLES, client_sessions, session_folder
from .recordings.source import readable_path
from .result import ReplayResult, Row
from .run import policy_name, replay

__all__ = ["Corpus", "Failure", "newest_recording", "replay_files", "settings_of_recording", "sum_rows"]


class Failure(Struct, frozen=True):
    """A recording that could not be replayed."""

    path: str
    """The file."""
    policy: str
    """The policy under which it failed; empty if the recording could not be read."""
    error: str
    """The reason, in a sentence."""
    unexpected: bool = False
    """Whether the reason is not the recording, its window or the store, but a bug of foveate or a killed process."""

    def __str__(self) -> str:
        """Return the reason, beginning with the file."""
        under = f" ({self.policy})" if self.policy else ""
        return self.error if self.error.startswith(self.path) else f"{self.path}{under}: {self.error}"


class Corpus(Struct, frozen=True):
    """The result of replaying many recordings."""

    replayed: tuple[ReplayResult, ...]
    """A result for each recording and policy, in the order of the arguments."""
    failures: tuple[Failure, ...] = ()
    """The files that could not be replayed."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """A row for each file and policy."""
        return tuple(replayed.row for replayed in self.replayed)


def replay_files(
    paths: Iterable[str | os.PathLike[str]],
    *,
    policies: Sequence[PolicyChoice] = (DEFAULT_PRESET,),
    window: int | None = 200_000,
    provider: str | None = "openai",
    prices: Prices | None = DEFAULT_PRICES,
    model: str | None = None,
    check: Callable[[str, bytes], Sequence[object]] | None = None,
    store: str = "memory:",
    format: str | None = None,
    lenient: bool = False,
    jobs: int | None = None,
    engine: Engine | Literal["local", "ray"] = "local",
    views: bool = False,
    progress: Callable[[float, int, str], object] | None = None,
) -> Corpus:
    """Replay every conversation of every file under every policy.

    `window`, `provider` and `prices`: None for those of each recording's model (see `settings_of_recording`). `model`:
    use this one instead of the recorded ones. `jobs` is the number of processes: by default one for each processor, but
    only one for a single file or if all write to one store. `engine`: `ray` runs the work on a Ray cluster instead; it
    has no store but `memory:`. With several processes, `check` and policies that are callables must be importable
    functions. `format` and `lenient` go to the reader. `progress` is called with the number of recordings that are
    done, the number of all, and the newest of them; if all run in this process, also before each message, and the first
    number then includes a part of a recording. `views` keeps the view of each call in the results, for a single file
    only. Problems of a recording are returned in `Corpus.failures`. Raises BadSetting for a setting that applies to all
    recordings.
    """
    files = [os.fspath(path) for path in paths]
    settings: dict[str, Any] = {
        "window": window,
        "provider": provider,
        "prices": prices,
        "check": check,
        "store": store,
        "views": views and len(files) == 1,  # One file with several conversations has too many views.
    }
    tasks = [
        _Task(file, label, tuple(policies), format, lenient, model, settings)
        for file, label in zip(files, _labels(list(map(readable_path, files))), strict=True)
    ]
    if store != "memory:" and engine != "local":
        raise BadSetting(f"The store {store!r} is on this computer. Use the engine local, or the store memory:.")
    workers = jobs if store == "memory:" else 1
    order = list(range(len(tasks)))
    if workers != 1:  # The longest first, so that no process starts a long one at the end.
        order.sort(key=lambda index: -_size(files[index]))
    pool = open_engine(engine, workers)
    done: dict[int, _Outcome] = {}
    try:
        ordered = [tasks[index] for index in order]
        if progress and isinstance(pool, LocalEngine) and pool.works_here(len(tasks)):
            ended: Iterable[tuple[int, _Outcome | WorkerLost]] = _work_here(ordered, progress)
        else:
            ended = pool.map(_work, ordered)
        for place, outcome in ended:
            file = files[order[place]]
            done[order[place]] = _lost(file) if isinstance(outcome, WorkerLost) else outcome
            if progress:
                progress(len(done), len(tasks), file)
    finally:
        if pool is not engine:
            pool.close()
    outcomes = [done[index] for index in range(len(tasks))]
    return Corpus(
        tuple(replayed for outcome in outcomes for replayed in outcome.replayed),
        tuple(failure for outcome in outcomes for failure in outcome.failures),
    )


def sum_rows(rows: Sequence[Row]) -> Row:
    """Add up the rows of several transcripts under one policy.

    Counts and costs are summed, and ratios are ratios of the sums. Shares are weighted by their totals, and the peak is
    the maximum. The median time of a turn is the mean of the medians, weighted by calls; the 99th percentile is the
    largest. Money and times are known only if they are known for every transcript with a call.
    """
    if not rows:
        raise BadSetting("There are no rows to add up. Name at least one recording.")
    # A session without an answer names no model, and costs nothing.
    called = [row for row in rows if row.calls] or rows

    def sum_of(field: str) -> Any:
        return sum([getattr(row, field) for row in rows])

    def weighted(field: str, weight: str) -> float | None:
        return share(sum([(getattr(row, field) or 0) * getattr(row, weight) for row in rows]), sum_of(weight))

    def common(field: str) -> Any:
        values = {getattr(row, field) for row in called}
        return values.pop() if len(values) == 1 else type(getattr(rows[0], field))()

    def known(field: str) -> list[Any]:
        """Return the values of the transcripts with a call; an empty list if one of them is not known."""
        values = [getattr(row, field) for row in called]
        return [] if None in values else values

    def money(field: str) -> float | None:
        return sum(known(field)) if known(field) else None

    def recorded(field: str, otherwise: str) -> float | None:
        """Sum what the clients did: a client that did not compact sent everything."""
        if all(row.compactions == 0 for row in called):
            return None
        values = [getattr(row, field if row.compactions else otherwise) for row in called]
        return None if None in values else sum(values)

    kept_apart: dict[str, int] = {}
    for row in rows:
        for kind, number in row.kept_apart.items():
            kept_apart[kind] = kept_apart.get(kind, 0) + number
    unmanaged = sum_of("cost_unmanaged")
    figures: dict[str, Any] = {field: sum_of(field) for field in _SUMMED}
    figures |= {field: weighted(field, weight) for field, weight in _WEIGHTS.items()}
    figures |= {field: common(field) for field in ("policy", "window", "provider", "model")}
    return Row(
        transcript=rows[0].transcript if len(rows) == 1 else f"{len(rows)} recordings",
        peak_tokens=max(row.peak_tokens for row in rows),
        cost_ratio=share(sum_of("cost"), unmanaged) or 1.0,
        cost_all_in=weighted("cost_all_in", "cost_unmanaged") or 1.0,
        ms_per_turn_p50=weighted("ms_per_turn_p50", "calls") or 0.0,
        ms_per_turn_p99=max(row.ms_per_turn_p99 for row in rows),
        money=money("money"),
        money_unmanaged=money("money_unmanaged"),
        kept_apart=kept_apart,
        cost_recorded=recorded("cost_recorded", "cost_unmanaged"),
        money_recorded=recorded("money_recorded", "money_unmanaged"),
        began=min(known("began"), default=None),
        ended=max(known("ended"), default=None),
        **figures,
    )


_SUMMED = (
    *("messages", "calls", "input_tokens", "cost", "cost_unmanaged", "expansions", "edits", "prefix_rewrites"),
    *("references", "said_references", "quoted_lines", "illegal_views", "lost_messages", "model_calls", "over_budget"),
    "compactions",
)
_WEIGHTS = {
    "recall_visible": "references",
    "recall_reachable": "references",
    "said_visible": "said_references",
    "quoted_visible": "quoted_lines",
}
"""Shares, each with the total that it is a share of."""


def settings_of_recording(recording: Recording) -> tuple[int, str, Prices]:
    """Return the window, the provider's format and the relative prices for a recording.

    They are those of its model. Without a known model: 200,000 tokens, the format in which the messages are recorded,
    and the prices of Anthropic. Chat completions without a model count as Anthropic's, because every program writes
    them.
    """
    model = recording.model
    window = (window_of(model) if model else None) or 200_000
    recorded = "" if recording.provider == "openai" and not model else recording.provider
    provider = recorded or (format_of_model(model) if model else None) or "anthropic"
    return window, provider, prices_of_model(model)


def newest_recording(home: Path | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """Return the newest session of an agent program on this computer (see `session_folder` for the folders).

    If `home` is given, the environment is ignored unless `environ` is given too. Raises BadSetting if there is none.
    """
    variables = environ if environ is not None else {} if home else os.environ
    found = client_sessions(variables, home)
    if not found:
        folders = ", ".join(str(session_folder(client, variables, home)) for client in CLIENTS)
        raise BadSetting(f"There is no session of {', '.join(TITLES.values())} in {folders}. Name a file.")
    return found[0].file.path


class _Task(Struct, frozen=True):
    path: str
    label: str
    policies: tuple[PolicyChoice, ...]
    format: str | None
    lenient: bool
    model: str | None
    """The model to bill in place of the recorded one."""
    settings: dict[str, Any]


class _Outcome(Struct, frozen=True):
    replayed: tuple[ReplayResult, ...] = ()
    failures: tuple[Failure, ...] = ()


def _lost(path: str) -> _Outcome:
    problem = "The process that replayed it was killed from outside, or another one was (too little memory?)."
    return _Outcome((), (Failure(path, "", problem, True),))


def _work_here(tasks: Sequence[_Task], progress: Callable[[float, int, str], object]) -> Iterator[tuple[int, _Outcome]]:
    """Yield the index and the outcome of each task, and report the part of it that is done."""
    for index, task in enumerate(tasks):

        def report(part: float, index: int = index, file: str = task.path) -> None:
            progress(index + part, len(tasks), file)

        yield index, _work(task, report)


def _work(task: _Task, report: Callable[[float], None] | None = None) -> _Outcome:
    """Replay one file under its policies. A module-level function, so that another process can run it.

    `report` is called with the part that is done, from 0 to 1.
    """
    try:
        recordings = read_recordings(task.path, lenient=task.lenient, format=task.format)
    except BadSetting:
        raise
    except Exception as error:
        return _Outcome((), (_failure(task.path, "", error),))
    replayed: list[ReplayResult] = []
    failures: list[Failure] = []
    begun, replays = 0, len(recordings) * len(task.policies)

    def report_messages(taken: int, messages: int) -> None:
        if report:
            report((begun - 1 + taken / messages) / replays)

    for number, recorded in enumerate(recordings, 1):
        recording = recorded if task.model is None else replace(recorded, model=task.model, provider="")
        label = task.label if len(recordings) == 1 else f"{task.label}#{number}"
        settings = {**task.settings, **_settings(recording, task.settings)}
        settings["views"] = settings["views"] and len(recordings) == 1
        for policy in task.policies:
            name = f"{label} / {policy_name(policy)}"
            begun += 1
            try:
                replayed.append(
                    replay(recording, policy=policy, transcript=label, name=name, progress=report_messages, **settings)
                )
            except BadSetting:
                raise
            except Exception as error:
                failures.append(_failure(recording.path, policy_name(policy), error))
    return _Outcome(tuple(replayed), tuple(failures))


def _settings(recording: Recording, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that follow the recording because the caller left them out."""
    window, provider, prices = settings_of_recording(recording)
    found = {"window": window, "provider": provider, "prices": prices}
    return {name: value for name, value in found.items() if chosen[name] is None}


def _failure(path: str, policy: str, error: Exception) -> Failure:
    expected = isinstance(error, FoveateError | OSError)
    text = str(error) if expected else f"{type(error).__name__}: {error}"
    return Failure(path, policy, text, not expected or isinstance(error, IllegalView))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _labels(paths: Sequence[str]) -> list[str]:
    """Return short names for files: the file name, with as many of its folders as needed to make it unique.

    The names have no endings, unless two files differ only in them.
    """
    parts = [Path(path).with_suffix("").parts for path in paths]
    if len(set(parts)) < len(set(paths)):
        parts = [Path(path).parts for path in paths]
    longest = max(map(len, parts), default=1)
    for count in range(1, longest + 1):
        labels = ["/".join(part[-count:]) for part in parts]
        if len(set(labels)) == len(set(parts)):
            return labels
    return list(paths)
