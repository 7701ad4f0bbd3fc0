"""`foveate db vacuum`: gives back the room of what is gone."""

from __future__ import annotations

from ._where import NOWHERE, Where, opened

__all__ = ["vacuum"]


def vacuum(*, where: Where = NOWHERE) -> int:
    """Give back the room of what is gone, so that no byte of what was erased is left in the database's files.

    Others wait while it is done. A SQLite file needs as much free room on its disk as it has bytes; of a PostgreSQL
    database each of foveate's tables is written anew, and its log, its replicas and its backups are not touched.

    Example: `foveate db vacuum --store sqlite:///chat.db`
    """
    from .._print import say

    with opened(where) as (store, _):
        store.vacuum()
    say("Vacuumed.")
    return 0
