"""`foveate tune`: the best parameters of a preset for recorded conversations."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from ..errors import BadSetting
from .files import check_report, folder_of, write_whole
from .options import EngineOption, Provider, command_line, policies_of, prices_of
from .recordings import named_recordings
from .text import complain, printable, write_json

if TYPE_CHECKING:
    from ..tune import Trial, Tuned

__all__ = ["tune"]


def tune(
    *files: Path,
    policy: str | None = None,
    window: int = 200_000,
    provider: Provider = "anthropic",
    prices: str = "0.1,1.25",
    keep_readable: float | None = None,
    minutes: float = 5.0,
    seed: int = 0,
    write: Path | None = None,
    html: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    reader: Annotated[str | None, Parameter(name="--format")] = None,
    lenient: bool = False,
    jobs: int | None = None,
    engine: EngineOption = "local",
) -> int:
    """Search the parameters of a preset that cost least on your own recordings, and write them as a preset.

    No model is called. The search replays the recordings with many values of each parameter. It searches each half of
    the recordings alone and measures the result on the other half. If that does not cost clearly less than the preset,
    the command says so and writes nothing. Ctrl-C ends the search with the best result so far.

    Example: `foveate tune sessions/*.jsonl --write mine.toml --html report.html`

    Parameters
    ----------
    files
        Recordings, at least four, or folders with recordings; the formats are those of foveate replay.
    policy
        The preset, or a .toml file (default: from the settings, else balanced).
    window
        The model's window in tokens (default: 200000).
    provider
        The format and rules: anthropic (default), openai, openai_responses or gemini.
    prices
        Prices of reading and writing a cached token, relative to plain input (default: 0.1,1.25).
    keep_readable
        Share of what the calls use that must stay readable, such as 0.95 (default: 0.01 less than under the preset).
    minutes
        Most minutes of the search (default: 5).
    seed
        A number that selects the halves and the candidates (default: 0).
    write
        Write the best settings to this file, as a preset.
    html
        Write a report with the frontier of cost and readable content to this file.
    as_json
        Print one JSON object with all measured settings.
    reader
        The format of the files, if detection fails. An unknown name lists the formats.
    lenient
        Skip damaged lines of recordings.
    jobs
        Number of processes (default: the number of processors).
    engine
        Where the replays run: local (default), or ray for a Ray cluster.
    """
    names, billed = policies_of(policy, None), prices_of(prices)
    if window < 1 or (jobs is not None and jobs < 1):
        raise BadSetting("--window and --jobs must be whole numbers above 0.")
    if write is not None:
        _check_write(write, names[0])
        folder_of(write)
    if html is not None:
        check_report(html)
    from ..tune import preset_text
    from ..tune import tune as search
    from .output import time_bar

    with named_recordings(files) as paths, time_bar("Tuning") as update:
        tuned = search(
            paths,
            policy=names[0],
            window=window,
            provider=provider,
            prices=billed,
            keep_readable=keep_readable,
            minutes=minutes,
            seed=seed,
            jobs=jobs,
            engine=engine,
            format=reader,
            lenient=lenient,
            progress=update,
        )
    if write is not None and tuned.is_better:
        write_whole(write, preset_text(tuned, place=write).encode())
    if html is not None:
        write_whole(html, _page(tuned).encode())
    if as_json:
        facts = {**tuned.as_json(), "preset_text": preset_text(tuned) if tuned.is_better else None}
        write_json(msgspec.json.encode(facts).decode())
    else:
        _show(tuned, write, html)
    for failure in tuned.failures:
        complain(f"foveate: {failure}")
    return 0


def _check_write(write: Path, policy: str) -> None:
    """Raise BadSetting for a file that must not be replaced by a preset: settings, or a preset of the user."""
    from ..policies.presets import load_preset
    from ..tune.report import FIRST_WORDS

    if write.suffix != ".toml":
        raise BadSetting(f"--write is {write}. Name a file that ends with .toml.")
    if write.exists() and any(map(write.samefile, load_preset(policy).files)):
        raise BadSetting(f"--write is {write}, the preset that is searched, or one that it extends. Name another.")
    if write.is_file() and (text := write.read_bytes()) and not text.startswith(FIRST_WORDS.encode()):
        raise BadSetting(f"{write} exists, and foveate tune did not write it. Name another file.")


def _show(tuned: Tuned, write: Path | None, html: Path | None) -> None:
    """Print the figures, the changed parameters, the frontier and the sentences."""
    from ..core.plurals import plural
    from ..replay.numbers import count
    from ..tune import preset_text
    from ..tune.report import sentences, value_text
    from .output import encodable, heading, print_table, say

    facts = [plural(tuned.recordings, "recording"), f"window {count(tuned.window)}"]
    facts += [plural(tuned.parameters, "parameter"), plural(tuned.replays, "replay")]
    heading(f"policy {tuned.policy}", ", ".join(facts))
    say()
    titles = ("settings", "all-in", "readable", "cost", "recall", "said", "quoted")
    rows = [_figures(f"{tuned.policy}, unchanged", tuned.preset)]
    rows += [_figures("tuned", tuned.best)] if tuned.is_better else []
    print_table(titles, rows)
    if tuned.is_better:
        changes = [(name, value_text(old), value_text(new)) for name, old, new in tuned.best.changes]
        print_table(("parameter", "preset", "tuned"), changes)
    if len(tuned.frontier) > 1:
        heading("Frontier", "settings that no other tried ones beat in both cost and readable content")
        print_table(titles, [_figures(_short(tuned, trial), trial) for trial in tuned.frontier])
    for sentence in sentences(tuned):
        say(sentence)
    if tuned.is_better and write is None:
        say()
        sys.stdout.write(encodable(printable(preset_text(tuned))))  # Not wrapped, so that it stays TOML.
    elif tuned.is_better:
        name = str(write)
        use = command_line("replay", "FILE", "--policy", name)
        say(f"The preset is in {write}. Use it with {use}, with policy={name!r} in Python, or in foveate.toml.")
    elif write is not None:
        say(f"{write} was not written.")
    if html is not None:
        say(f"The report is in {html}.")


def _short(tuned: Tuned, trial: Trial) -> str:
    """Return a few words for a trial in a table."""
    if not trial.settings:
        return f"{tuned.policy}, unchanged"
    from ..tune.report import value_text

    words = [f"{name}={value_text(new)}" for name, _, new in trial.changes]
    more = f" and {len(words) - 2} more" if len(words) > 2 else ""
    return ("tuned: " if trial == tuned.best else "") + ", ".join(words[:2]) + more


def _figures(name: str, trial: Trial) -> tuple[str, ...]:
    from ..replay.numbers import percent
    from ..tune.report import share_text

    row = trial.row
    shares = (row.cost_ratio, row.recall_visible, row.said_visible, row.quoted_visible)
    return (name, share_text(trial.all_in), share_text(trial.readable), *map(percent, shares))


def _page(tuned: Tuned) -> str:
    from ..inspector.saved.tuning import page

    today = date.today()
    return page(tuned, created=f"{today.day} {today:%B %Y}")
