"""`foveate db vacuum`: gives back the room of what is gone."""

from __future__ import annotations

from ._where import Url, Where, opened

__all__ = ["vacuum"]


def vacuum(*, store: Url = None) -> int:
    """Give back the room of what is gone, so that no byte of what was erased is left in the database's files.

    Others wait while it is done. A SQLite file needs as much free room on its disk as it has bytes; of a PostgreSQL
    database each of foveate's tables is written anew, and its log, its replicas and its backups are not touched.

    Example: `foveate db vacuum --store sqlite:///chat.db`
    """
    from .._print import say

    with opened(Where(store)) as (database, _):
        database.vacuum()
    say("Vacuumed.")
    return 0
