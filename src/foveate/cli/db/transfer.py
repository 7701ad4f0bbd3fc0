"""`foveate db export`, `import`, `unfinished` and `backup`: conversations to files and back."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from ...core.plurals import plural
from ...errors import BadSetting, ConflictError, StoreError
from ...ops.archive import Count, UnfinishedImport, drop_unfinished, export_archive, import_archive
from ...ops.archive import backup as back_up
from ...ops.archive import find_unfinished as list_unfinished
from ...replay.numbers import count
from ..options import command_line
from ..output import status_line
from ..text import one_line
from .target import NOWHERE, AsJson, Url, Where, check_names, located, opened, print_json

__all__ = ["backup", "export", "import_", "unfinished"]


def export(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    conversation: str | None = None,
    /,
    *,
    catalog: bool = False,
    overwrite: bool = False,
    where: Where = NOWHERE,
) -> int:
    """Write a conversation with all its forks, or all conversations of a tenant, to an archive (JSON Lines).

    Example: `foveate db export chats.jsonl.gz --store chat.db`

    Parameters
    ----------
    file
        The archive to write; .gz and .zst are compressed, - is standard output.
    conversation
        Only this conversation and its forks.
    catalog
        Write the actions, bindings and prompts too.
    overwrite
        Replace the file if it exists.
    """
    from ..output import say

    if file.startswith("-") and file != "-":
        raise BadSetting(f"Unknown option: {file}. A file of that name is ./{file}.")
    check_names(() if conversation is None else (conversation,))
    with _ends_on_sigterm(), opened(where, reads=True) as (store, tenant), status_line() as show:

        def report(written: Count) -> None:
            show(f"{count(written.messages)} messages written")

        target = sys.stdout.buffer if file == "-" else Path(file)
        done = export_archive(
            store,
            target,
            tenant=tenant,
            conversation=conversation,
            catalog=catalog,
            overwrite=overwrite,
            on_progress=report,
        )
    if file != "-":
        say(f"{file}: {plural(done.conversations, 'conversation')}, {plural(done.messages, 'message')}.")
    return 0


def import_(file: Path, /, *, on_conflict: Literal["refuse", "rename"] = "refuse", where: Where = NOWHERE) -> int:
    """Import an archive into a database.

    The command checks the whole archive first, and skips what is already stored. Conversations keep their tenants
    unless --tenant names another one. Repeat an import that was interrupted: it continues.

    Example: `foveate db import chats.jsonl.gz --store postgresql://ann@db.example/chats`

    Parameters
    ----------
    file
        An archive that foveate db export wrote.
    on_conflict
        If a conversation of the same name has another history: refuse the archive, or rename its conversations.
    """
    from ..output import say

    with opened(where, create=True) as (store, _), status_line() as show:

        def report(phase: str, line: int) -> None:
            show(f"{count(line)} lines {'checked' if phase == 'check' else 'written'}")

        try:
            done = import_archive(store, file, tenant=where.tenant, on_conflict=on_conflict, on_progress=report)
        except ConflictError as error:  # Its message names a temporary conversation and a plan of the import.
            raise StoreError(
                "Another process imports the same file, or wrote to the conversations being imported. Wait until it "
                "has finished, then repeat the import: it continues, and keeps everything written so far."
            ) from error
    existing = done.conversations - done.new
    say(
        f"{plural(done.new, 'new conversation')}, {plural(done.messages, 'message')} written."
        + (f" {plural(existing, 'conversation')} existed already." if existing else "")
    )
    for old, new in done.renamed.items():
        say(f"{one_line(old)} is imported as {one_line(new)}.")
    return 0


def unfinished(
    *,
    drop: Annotated[bool, Parameter(negative=())] = False,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> int:
    """List imports that were not finished, or delete what they wrote.

    To finish an import, repeat it with the same file. --drop deletes what unfinished imports wrote; finished imports
    stay. Make sure that no import is running.

    Example: `foveate db unfinished --drop --store chat.db`

    Parameters
    ----------
    drop
        Delete what they wrote.
    """
    from ..output import say

    with opened(where, reads=not drop) as (store, tenant):
        only = tenant if tenant or where.tenant is not None else None
        imports = drop_unfinished(store, tenant=only) if drop else list(list_unfinished(store, tenant=only))
    if as_json:
        print_json(imports)
        return 0
    for entry in imports:
        say(f"{_label(entry)}: {plural(len(entry.names), 'conversation')}, {plural(entry.messages, 'message')}")
    if not imports:
        say("There are no unfinished imports.")
    elif drop:
        say(f"Deleted. Now run: {command_line('db', 'vacuum', store=where.store)}")
    return 0


def _label(entry: UnfinishedImport) -> str:
    return one_line("/".join([*([entry.tenant] if entry.tenant else []), entry.names[0]]))


def backup(file: Path, /, *, overwrite: bool = False, store: Url = None) -> int:
    """Copy a SQLite database to a file, as it is at one moment, while other processes use it.

    Example: `foveate db backup monday.db --store chat.db`

    Parameters
    ----------
    file
        The copy to write.
    overwrite
        Replace the file if it exists.
    """
    from ..output import say

    _, place, _ = located(Where(store))
    with _ends_on_sigterm():
        size = back_up(place.path, file, overwrite=overwrite)
    say(f"{file}: {count(size)} bytes.")
    return 0


@contextmanager
def _ends_on_sigterm() -> Iterator[None]:
    """End the process in an orderly way on SIGTERM, so that no temporary file is left."""

    def end(number: int, frame: Any) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
