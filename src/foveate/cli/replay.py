"""`foveate replay`: what policies cost and keep on recorded conversations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from ..errors import BadSetting
from .files import folder_of, remove_database, write_whole
from .options import Provider, policies_of, prices_of
from .text import complain

if TYPE_CHECKING:
    from ..core.view import Prices
    from ..replay.corpus import Corpus, Failure
    from ..replay.result import Replayed, Row
    from ..testing.bodies import BodyChecker

__all__ = ["replay"]


def replay(
    *files: Path,
    last: bool = False,
    policy: str | None = None,
    compare: str | None = None,
    window: int = 200_000,
    provider: Provider = "anthropic",
    prices: str = "0.1,1.25",
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    wide: bool = False,
    html: Path | None = None,
    db: Path | None = None,
    reader: Annotated[str | None, Parameter(name="--format")] = None,
    lenient: bool = False,
    jobs: int | None = None,
) -> int:
    """Replay recorded conversations: what would a policy have cost, and would the model still have seen what it used?

    No model is called. Before each recorded answer the request that would have been sent is planned, committed,
    checked and billed. The exit code is 1 if a provider would have refused one, or if a message was lost.

    Example: `foveate replay session.jsonl --compare none,keep-last-5,prune --html report.html`

    Parameters
    ----------
    files
        Recordings: Claude Code, Codex, OpenCode, pi, SWE-agent, OpenHands, ATIF, or chat completions as JSON or
        JSON Lines.
    last
        Take the newest recording of Claude Code or Codex on this computer.
    policy
        The policy: a preset (balanced, coding, frugal, browser, prune, expire, prune-and-compact, retain, recap,
        checkpoint), keep-last-N, none (only what keeps a request within its window), off, or a .toml file. The default
        is what settings choose, else balanced. Told in full by foveate policy list.
    compare
        Several policies, parted by commas.
    window
        The model's window in tokens (200000).
    provider
        Whose format and rules: anthropic (the default) or openai.
    prices
        What reading and writing a cached token costs, relative to plain input (0.1,1.25).
    as_json
        Print JSON Lines: an object for each transcript and policy.
    wide
        Show more figures.
    html
        Write a report with charts to this file.
    db
        Keep the replayed conversations in this SQLite file, to look at with `foveate show`.
    reader
        The format of the files, if it is not to be found out: a name such as codex (an unknown one lists them).
    lenient
        Skip damaged lines and count them, instead of stopping.
    jobs
        How many processes share the work (as many as there are processors).
    """
    from ..replay.corpus import newest_recording, replay_files
    from .output import progress

    paths = [*files, newest_recording()] if last else list(files)
    if not paths:
        raise BadSetting("Name a recording, or take the newest one on this computer: foveate replay --last")
    names = policies_of(policy, compare)
    billed = prices_of(prices)
    if window < 1 or (jobs is not None and jobs < 1):
        raise BadSetting("--window and --jobs are whole numbers above 0.")
    is_new = _check_places(html, db)
    with progress("Replaying", len(paths)) as tell:
        corpus = replay_files(
            paths,
            policies=names,
            window=window,
            provider=provider,
            prices=billed,
            check=second_opinion,
            store=f"sqlite:///{db}" if db else "memory:",
            format=reader,
            lenient=lenient,
            jobs=jobs,
            progress=tell,
        )
    if db is not None and is_new and not corpus.replayed:
        remove_database(db)
    totals = _totals(corpus.rows, names)
    report = html if corpus.replayed else None
    if report:
        write_whole(report, _page(corpus, totals, billed).encode())
    if as_json:
        for row in corpus.rows:
            print(msgspec.json.encode(row).decode())
    else:
        _show(corpus.replayed, totals, wide)
        if report:
            print(f"The report is in {report}.")
    _complain(corpus.failures)
    return _exit_code(corpus)


def _check_places(html: Path | None, db: Path | None) -> bool:
    """Whether the database is still to be made. What is wrong with it, or with a folder, is said before any work."""
    from ..open import open_store

    if html is not None:
        folder_of(html)
    if db is None:
        return False
    if db.exists():
        open_store(f"sqlite:///{db}").close()
        return False
    folder_of(db)
    return True


def second_opinion(provider: str, body: bytes) -> Sequence[object]:
    """What the checker that was written apart from foveate's own rules says of a request."""
    return _checker(provider).check(body)


@cache
def _checker(provider: str) -> BodyChecker:
    """One checker a process: a message that was in the last request too is not read again."""
    from ..testing.bodies import BodyChecker

    return BodyChecker(provider)


def _totals(rows: Sequence[Row], policies: Sequence[str]) -> list[Row]:
    """A row for each policy that got through, over all transcripts."""
    from ..replay.corpus import total

    by_policy = [[row for row in rows if row.policy == policy] for policy in policies]
    return [total(group) for group in by_policy if group]


def _show(replayed: Sequence[Replayed], totals: Sequence[Row], wide: bool) -> None:
    """The table, the chart and the sentences."""
    from ..replay.numbers import count, plural
    from ..replay.report import closing, groups, kept_apart, table
    from .chart import Line
    from .output import heading, print_chart, print_table, say

    if not totals:
        return
    first = totals[0]
    facts = [plural(first.messages, "message"), plural(first.calls, "model call"), f"window {count(first.window)}"]
    heading(
        first.transcript, ", ".join([*facts, f"provider {first.provider}", *([first.model] if first.model else [])])
    )
    say()
    print_table(*table(totals, wide=wide))
    transcripts = list(groups(replayed))
    largest = max(transcripts, key=lambda group: group[0].row.input_tokens)
    which = f" of {largest[0].row.transcript}, the largest" if len(transcripts) > 1 else ""
    lines = [Line(one.row.policy, [call.tokens for call in one.calls]) for one in largest]
    print_chart(f"Tokens per call{which}", lines)
    if apart := kept_apart(group[0].row for group in transcripts):
        say(apart)
    for text in [f"{one.row.transcript}, {one.row.policy}, {text}" for one in replayed for text in one.refusals][:10]:
        say(f"Refused: {text}")
    for row in totals:
        say(closing(row))


def _page(corpus: Corpus, totals: Sequence[Row], prices: Prices) -> str:
    from ..replay.html import page

    today = date.today()
    return page(
        corpus.replayed,
        totals,
        made=f"{today.day} {today:%B %Y}",
        prices=(prices.read, prices.write),
        failures=[_told(failure) for failure in corpus.failures],
    )


def _complain(failures: Sequence[Failure]) -> None:
    for failure in failures:
        complain(f"foveate: {_told(failure)}")


def _told(failure: Failure) -> str:
    """What went wrong, beginning with the file."""
    under = f" ({failure.policy})" if failure.policy else ""
    return failure.error if failure.error.startswith(failure.path) else f"{failure.path}{under}: {failure.error}"


def _exit_code(corpus: Corpus) -> int:
    """1 where foveate is to blame, 2 where what was given is."""
    from ..replay.report import sound

    if not sound(corpus.rows) or any(failure.unexpected for failure in corpus.failures):
        return 1
    return 2 if corpus.failures else 0
