"""`foveate replay`: the cost and the losses of policies on recorded conversations."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from ..core.profiles import window_of
from ..errors import BadSetting
from .files import check_report, folder_of, remove_database, write_whole
from .options import EngineOption, Provider, policies_of, prices_of, store_file, store_url
from .recordings import choose_sessions, named_recordings, sessions_here
from .text import complain, write_json

if TYPE_CHECKING:
    from ..core.call_context import Prices
    from ..replay.corpus import Corpus, Failure
    from ..replay.result import ReplayResult, Row
    from ..testing.bodies import BodyChecker

__all__ = ["replay"]


def replay(
    *files: Path,
    last: bool = False,
    recent: int | None = None,
    policy: str | None = None,
    compare: str | None = None,
    window: int | None = None,
    provider: Provider | None = None,
    prices: str | None = None,
    model: str | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    wide: bool = False,
    html: Path | None = None,
    db: str | None = None,
    reader: Annotated[str | None, Parameter(name="--format")] = None,
    lenient: bool = False,
    jobs: int | None = None,
    engine: EngineOption = "local",
) -> int:
    """Replay recorded conversations under policies, and compare their cost and what the model would have missed.

    Without a file it lists the sessions of agent programs on this computer, and asks which to replay.

    No model is called. For each recorded answer, foveate plans, checks and bills the request that it would have sent.
    The exit code is 1 if a provider would have refused a request, or if a message was lost.

    Policies: balanced, coding, frugal, browser, prune, expire, prune-and-compact, retain, recap, checkpoint,
    keep-last-N, none (only what keeps a request within its window), off, or a .toml file. `foveate policy list`
    describes them.

    Example: `foveate replay session.jsonl --compare none,keep-last-5,prune --html report.html`

    Parameters
    ----------
    files
        Recordings of Claude Code, Codex, OpenCode, pi, Gemini CLI, Copilot CLI, SWE-agent, OpenHands, ATIF, ChatGPT or
        chat completions; folders with recordings; - for standard input. FILE#3 is the third conversation of a file.
    last
        Replay the newest session of an agent program on this computer.
    recent
        Replay this number of the newest sessions.
    policy
        The policy (default: from the settings, else balanced).
    compare
        Several policies, separated by commas.
    window
        The model's window in tokens (default: that of the recording's model, else 200000).
    provider
        The format and rules: anthropic, openai, openai_responses or gemini (default: as recorded, else anthropic).
    prices
        Prices of reading and writing a cached token, relative to plain input, such as 0.1,1.25 (default: those of the
        recording's model, else of Anthropic).
    model
        Use the window, the provider and the prices of this model (default: the recorded one).
    as_json
        Print JSON Lines: one object for each recording and policy, or for each session without a file.
    wide
        Show more figures.
    html
        Write a report with charts to this file.
    db
        Store the replayed conversations in this SQLite file or URL, for foveate show.
    reader
        The format of the files, if detection fails. An unknown name lists the formats.
    lenient
        Skip damaged lines and count them.
    jobs
        Number of processes (default: the number of processors).
    engine
        Where the replays run: local (default), or ray for a Ray cluster.
    """
    names, billed = policies_of(policy, compare), None if prices is None else prices_of(prices)
    if any(number is not None and number < 1 for number in (window, jobs, recent)):
        raise BadSetting("--window, --jobs and --recent must be whole numbers above 0.")
    if model is not None and window is None and window_of(model) is None:
        complain(f"foveate: The window of model {model!r} is not known and counts as 200,000 tokens. --window sets it.")
    url = None if db is None else store_url(db)
    new_file = _check_places(html, url)
    chosen = _chosen(files, last, recent, as_json)
    if not chosen:
        return 0
    with named_recordings(chosen) if files else nullcontext(chosen) as paths:
        corpus = _replay_with_progress(
            paths,
            policies=names,
            window=window,
            provider=provider,
            prices=billed,
            model=model,
            store=url or "memory:",
            format=reader,
            lenient=lenient,
            jobs=jobs,
            engine=engine,
            views=html is not None,
        )
    corpus = _without_copies(corpus)
    if new_file is not None and not corpus.replayed:
        remove_database(new_file)
    totals = _totals(corpus.rows, names)
    report = html if corpus.replayed else None
    if report:
        write_whole(report, _page(corpus, totals, billed or _common_prices(corpus)).encode())
    if as_json:
        _print_rows(corpus.rows)
    else:
        _show(corpus.replayed, totals, wide, report)
    _print_failures(corpus.failures)
    return _exit_code(corpus)


def _chosen(files: Sequence[Path], last: bool, recent: int | None, as_json: bool) -> list[Path]:
    """Return the recordings to replay, the newest of this computer after the named ones; none after a list.

    Raises BadSetting if there is none.
    """
    if last or recent is not None:
        return [*files, *(session.file.path for session in sessions_here()[: recent or 1])]
    return list(files) or choose_sessions(sessions_here(), as_json=as_json)


def _common_prices(corpus: Corpus) -> Prices | None:
    """Return the relative prices that all recordings have in common, or None."""
    from ..models.known import prices_of_model

    found = {prices_of_model(row.model) for row in corpus.rows if row.calls}
    return found.pop() if len(found) == 1 else None


def _replay_with_progress(paths: Sequence[Path], **settings: Any) -> Corpus:
    """Replay the recordings, and show the progress at a terminal. `settings`: keywords of `replay_files`."""
    from ..replay.corpus import replay_files
    from .output import progress

    with progress("Replaying", len(paths)) as update:
        return replay_files(paths, check=second_opinion, progress=update, **settings)


def _without_copies(corpus: Corpus) -> Corpus:
    """Leave out each recording with the messages of an earlier one, which would count twice. Names it."""
    from ..replay.report import group_by_transcript

    kept: list[ReplayResult] = []
    originals: dict[str, str] = {}  # the id of the newest message -> the first transcript with it
    for group in group_by_transcript(corpus.replayed):
        label = group[0].row.transcript
        original = originals.setdefault(group[0].tip, label)
        if original == label:
            kept += group
        else:
            complain(f"foveate: {label} has the same messages as {original}. It is left out.")
    return msgspec.structs.replace(corpus, replayed=tuple(kept))


def _check_places(html: Path | None, url: str | None) -> Path | None:
    """Check that the report and the store can be written. Returns the store's file if it does not exist yet."""
    from ..open import open_store

    if html is not None:
        check_report(html)
    if url is None:
        return None
    file = store_file(url)
    if file is None or file.exists():
        open_store(url).close()
        return None
    folder_of(file)
    return file


def second_opinion(provider: str, body: bytes) -> Sequence[object]:
    """Return the findings of the independent checker about a request body."""
    return _checker(provider).check(body)


@cache
def _checker(provider: str) -> BodyChecker:
    """Return the checker of this process, which remembers messages of earlier requests."""
    from ..testing.bodies import BodyChecker

    return BodyChecker(provider)


def _totals(rows: Sequence[Row], policies: Sequence[str]) -> list[Row]:
    """Return the sum over all transcripts, one row for each policy with results."""
    from ..replay.corpus import sum_rows

    by_policy = [[row for row in rows if row.policy == policy] for policy in policies]
    return [sum_rows(group) for group in by_policy if group]


def _print_rows(rows: Sequence[Row]) -> None:
    for row in rows:
        write_json(msgspec.json.encode(row).decode())


def _show(replayed: Sequence[ReplayResult], totals: Sequence[Row], wide: bool, report: Path | None) -> None:
    """Print the table, the chart, the sentences and the place of the report."""
    from ..core.plurals import plural
    from ..replay.numbers import count
    from ..replay.report import LEGEND, group_by_transcript, sentences_of, table, transcript_table
    from .chart import Line
    from .output import heading, print_chart, print_table, say

    if not totals:
        return
    first = totals[0]
    facts = [
        plural(first.messages, "message"),
        plural(first.calls, "model call"),
        f"window {count(first.window)}" if first.window else "windows of the models",
        f"provider {first.provider}" if first.provider else "several providers",
        *([first.model] if first.model else []),
    ]
    heading(first.transcript, ", ".join(facts))
    say()
    if len({run.row.transcript for run in replayed}) > 1:
        print_table(*transcript_table([run.row for run in replayed]))
    print_table(*table(totals, wide=wide))
    say(LEGEND, "dim")
    say()
    transcripts = list(group_by_transcript(replayed))
    largest = max(transcripts, key=lambda group: group[0].row.input_tokens)
    title = f" of {largest[0].row.transcript}, the largest" if len(transcripts) > 1 else ""
    lines = [Line(run.row.policy, [call.tokens for call in run.calls]) for run in largest]
    window = largest[0].row.window
    if any(max(line.values, default=0) > window for line in lines):
        lines.append(Line("window", [window] * len(largest[0].calls)))
    print_chart(f"Tokens per call{title}", lines)
    for sentence in filter(None, sentences_of(replayed, totals)):
        say(sentence)
    if report:
        say(f"The report is in {report}.")


def _page(corpus: Corpus, totals: Sequence[Row], prices: Prices | None) -> str:
    from ..inspector.saved.report import page

    today = date.today()
    return page(
        corpus.replayed,
        totals,
        created=f"{today.day} {today:%B %Y}",
        prices=(prices.read, prices.write) if prices else None,
        failures=[_failure_text(failure) for failure in corpus.failures],
    )


def _print_failures(failures: Sequence[Failure]) -> None:
    for failure in failures:
        complain(f"foveate: {_failure_text(failure)}")


def _failure_text(failure: Failure) -> str:
    """Return the error, beginning with the file."""
    text = str(failure)
    return text.replace(failure.path, "stdin", 1) if failure.path.endswith("/stdin") else text


def _exit_code(corpus: Corpus) -> int:
    """Return 1 for a fault of foveate, 2 for a fault of the input."""
    from ..replay.report import is_sound

    if not is_sound(corpus.rows) or any(failure.unexpected for failure in corpus.failures):
        return 1
    return 2 if corpus.failures else 0
