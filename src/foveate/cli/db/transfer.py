"""`foveate db export`, `import`, `unfinished` and `backup`: conversations to files and back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ...archive import Count, Unfinished, drop_unfinished, export_archive, import_archive
from ...archive import backup as back_up
from ...archive import unfinished as found_in
from ...archive.checking import Conflicts
from ...errors import BadSetting, ConflictError, StoreError
from ...replay.numbers import count, plural
from ..output import status_line
from ..text import printable
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

    Example: `foveate db export chats.jsonl.gz --store sqlite:///chat.db`

    Parameters
    ----------
    file
        Where to; `.gz` and `.zst` are compressed, `-` is standard output.
    conversation
        Only this one and its forks.
    catalog
        The actions, bindings and prompts too.
    overwrite
        Whether a file of that name may be replaced.
    """
    from ..output import say

    if file.startswith("-") and file != "-":
        raise BadSetting(f"Unknown option: {file}. A file of that name is ./{file}.")
    check_names(() if conversation is None else (conversation,))
    with opened(where) as (store, tenant), status_line() as told:

        def tell(written: Count) -> None:
            told(f"{count(written.messages)} messages written")

        target = sys.stdout.buffer if file == "-" else Path(file)
        done = export_archive(
            store,
            target,
            tenant=tenant,
            conversation=conversation,
            catalog=catalog,
            overwrite=overwrite,
            on_progress=tell,
        )
    if file != "-":
        say(f"{file}: {plural(done.conversations, 'conversation')}, {plural(done.messages, 'message')}.")
    return 0


def import_(file: Path, /, *, on_conflict: Conflicts = "refuse", where: Where = NOWHERE) -> int:
    """Bring what an archive holds into a database. All of it is checked first; what is there already is passed over.

    What was whose stays whose, unless `--tenant` is said. An import that was broken off is made again.

    Example: `foveate db import chats.jsonl.gz --store postgresql://ann@db.example/chats`

    Parameters
    ----------
    file
        The archive that `foveate db export` wrote.
    on_conflict
        Where a conversation of the same name has another past: `refuse` all, or `rename` the archive's.
    """
    from ..output import say

    with opened(where, create=True) as (store, _), status_line() as told:

        def tell(doing: str, line: int) -> None:
            told(f"{count(line)} lines {'checked' if doing == 'check' else 'written'}")

        try:
            done = import_archive(store, file, tenant=where.tenant, on_conflict=on_conflict, on_progress=tell)
        except ConflictError as error:  # They tell of a name and a plan that are the import's own.
            raise StoreError(
                "Somebody else imports the same file at this moment, or wrote to what is being imported. What was "
                "written until then stays. Let them finish, then import it again: it goes on where it was."
            ) from error
    there = done.conversations - done.new
    say(
        f"{plural(done.new, 'new conversation')}, {plural(done.messages, 'message')} written."
        + (f" {plural(there, 'conversation')} had been there." if there else "")
    )
    for old, new in done.renamed.items():
        say(f"{old} is called {new} here.")
    return 0


def unfinished(
    *,
    drop: Annotated[bool, Parameter(negative=())] = False,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> int:
    """List what imports began and did not finish, or take it away.

    An import that broke off is finished by importing the same file again. Where nobody will, `--drop` takes away what
    it wrote; what was imported whole stays. Make sure that no import is going on.

    Example: `foveate db unfinished --drop --store sqlite:///chat.db`

    Parameters
    ----------
    drop
        Take it away.
    """
    from ..output import say

    with opened(where) as (store, tenant):
        whose = tenant if tenant or where.tenant is not None else None
        found = drop_unfinished(store, tenant=whose) if drop else list(found_in(store, tenant=whose))
    if as_json:
        print_json(found)
        return 0
    for one in found:
        say(f"{_label(one)}: {plural(len(one.names), 'conversation')}, {plural(one.messages, 'message')}")
    if not found:
        say("Nothing is unfinished.")
    elif drop:
        say("Taken away. Now vacuum: foveate db vacuum")
    return 0


def _label(one: Unfinished) -> str:
    return printable("/".join([*([one.tenant] if one.tenant else []), one.names[0]]))


def backup(file: Path, /, *, overwrite: bool = False, store: Url = None) -> int:
    """Copy a SQLite database to a file, as it is at one moment, while others go on using it.

    Example: `foveate db backup monday.db --store sqlite:///chat.db`

    Parameters
    ----------
    file
        Where to.
    overwrite
        Whether a file of that name may be replaced.
    """
    from ..output import say

    _, place, _ = located(Where(store))
    size = back_up(place.path, file, overwrite=overwrite)
    say(f"{file}: {count(size)} bytes.")
    return 0
