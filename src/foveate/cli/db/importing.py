"""`foveate db import`: what an archive holds, to a database."""

from __future__ import annotations

from pathlib import Path

from ...archive import import_archive
from ...archive.checking import Conflicts
from ...errors import ConflictError, StoreError
from ...replay.numbers import count, plural
from ._progress import progress
from ._where import NOWHERE, Where, opened

__all__ = ["import_"]


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
    from .._print import say

    with opened(where, create=True) as (store, _), progress() as told:

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
