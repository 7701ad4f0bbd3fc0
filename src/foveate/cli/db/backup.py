"""`foveate db backup`: a copy of a SQLite database that is in use."""

from __future__ import annotations

from pathlib import Path

from ...archive import backup as back_up
from ...replay.numbers import count
from ._where import Url, Where, located

__all__ = ["backup"]


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
    from .._print import say

    _, place, _ = located(Where(store))
    size = back_up(place.path, file, overwrite=overwrite)
    say(f"{file}: {count(size)} bytes.")
    return 0
