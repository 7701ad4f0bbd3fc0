"""Options that several commands share."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..core.call_context import Prices
from ..errors import BadInput, BadSetting

if TYPE_CHECKING:
    from ..settings import Settings

__all__ = [
    "EngineOption",
    "Provider",
    "command_line",
    "description",
    "handle_of",
    "policies_of",
    "prices_of",
    "settings_of",
    "store_file",
    "store_of",
    "store_url",
    "unwrapped",
]

Provider = Literal["anthropic", "openai", "openai_responses", "gemini"]
EngineOption = Literal["local", "ray"]

_URL = re.compile(r"memory:|sqlite:|postgres(ql)?[:+]|[a-z][a-z0-9+.-]*://", re.IGNORECASE)


_HANDLE = re.compile(r"m?(\d+)((?:\.\d+)*)(?:-m?(\d+))?")


def handle_of(text: str) -> str:
    """Return the handle that a user writes as `12`, `m12`, `m12.1` or `3-17`; "" for any other text."""
    match = _HANDLE.fullmatch(text)
    return f"m{match[1]}{match[2]}{f'-m{match[3]}' if match[3] else ''}" if match else ""


def store_url(store: str) -> str:
    """Return the URL of a store that is named by a URL or by the path of a SQLite file."""
    return store if _URL.match(store) else f"sqlite:///{store}"


def command_line(*words: str, store: str | None = None, tenant: str | None = None) -> str:
    """Return a command of foveate for the user to copy, quoted for the shell. A password of the store is hidden.

    `store`, `tenant`: the options of the present command, for one on the same conversations.
    """
    from ..stores import without_password

    options = {"--store": store, "--tenant": tenant}
    arguments = [text for name, value in options.items() if value is not None for text in (name, value)]
    return shlex.join(("foveate", *words, *map(without_password, arguments)))


def store_file(url: str) -> Path | None:
    """Return the SQLite file of a store's URL, or None if the store is no file. Raises BadSetting."""
    from ..stores import place_of

    place = place_of(url)
    return Path(place.path).expanduser() if place.kind == "sqlite" else None


def store_of(name: str) -> str | None:
    """Return the URL of the store with this name, or None for a recording.

    Raises BadInput for a SQLite file without conversations, which stays unchanged.
    """
    url = store_url(name)
    file = store_file(url)
    if file is None:
        return url
    if not _is_sqlite(file):
        if url != name:
            return None
        if not file.exists():
            raise BadInput(f"There is no database {file}.")
        return url  # Opening it reports the error.
    tables = _tables_of(file)
    if not {"conversation", "migration"} <= tables:
        raise BadInput(f"{file} is a SQLite database, but holds no conversations of foveate.")
    return url


def _is_sqlite(file: Path) -> bool:
    try:
        with open(file, "rb") as opened:
            return opened.read(16) == b"SQLite format 3\0"
    except (FileNotFoundError, IsADirectoryError):
        return False  # The reader of recordings reports the error.


def _tables_of(file: Path) -> set[str]:
    """Return the names of the tables in a SQLite file. Nothing is written, also not next to the file."""
    import sqlite3
    from contextlib import closing

    problem: Exception | None = None
    for option in ("", "&immutable=1"):  # The second for a folder that cannot be written.
        try:
            with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro{option}", uri=True)) as connection:
                return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        except sqlite3.Error as error:
            problem = problem or error
    raise BadInput(f"{file}: SQLite cannot read it ({problem}).") from problem


def policies_of(policy: str | None, compare: str | None) -> list[str]:
    """Return the chosen policies without repetitions, or the one of the settings if none is chosen.

    Raises BadSetting for an unknown policy and for invalid settings.
    """
    chosen = [] if policy is None else [policy]
    chosen += [] if compare is None else [name.strip() for name in compare.split(",")]
    names = list(dict.fromkeys(chosen)) or [settings_of()["policy"]]
    for name in names:
        settings_of(name)
    return names


def settings_of(policy: str | None = None) -> Settings:
    """Return the settings of the current folder and the environment under this policy. Raises BadSetting."""
    from ..settings import load

    return load(policy=policy, environ=os.environ, folder=Path())


def prices_of(text: str) -> Prices:
    """Read prices such as `0.1,1.25`. Raises BadSetting unless they are numbers, and writing costs something."""
    try:
        read, write = (float(number) for number in text.split(","))
    except ValueError:
        read = write = -1.0
    if not (0 <= read < float("inf") and 0 < write < float("inf")):
        raise BadSetting(
            "--prices takes two numbers, 0 or more for reading and above 0 for writing, such as 0.1,1.25; "
            f"not {text!r}."
        )
    return Prices(read=read, write=write)


def description(command: Callable[..., int]) -> str:
    """Return a command's text for `--help`: its docstring without the parameters, one line a paragraph."""
    paragraphs = (getdoc(command) or "").split("\n\nParameters\n")[0].split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()).replace("`", "") for paragraph in paragraphs)


def unwrapped(command: Callable[..., int]) -> Callable[..., int]:
    """Return a command whose docstring has each parameter on one line, since `--help` keeps the line breaks."""
    lines: list[str] = []
    for line in (getdoc(command) or "").splitlines():
        if line.startswith("    ") and lines[-1].startswith("    "):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    command.__doc__ = "\n".join(lines)
    return command
