"""Readers: for each kind of text the function that returns its lines, with weights and ranks.

A reader knows the form of its kind. It does not know how much room there is.
"""

from __future__ import annotations

from collections.abc import Callable

from .code import read_code
from .diffs import read_diff
from .json_text import read_json
from .listings import read_listing, read_matches
from .logs import read_output
from .pages import read_page, read_prose
from .pairs import read_values
from .source import Source
from .tables import read_table
from .values import Reading

__all__ = ["read_lines"]

_READERS: dict[str, Callable[[Source], Reading]] = {
    "code": read_code,
    "edit": read_code,
    "json": read_json,
    "matches": read_matches,
    "listing": read_listing,
    "diff": read_diff,
    "table": read_table,
    "prose": read_prose,
    "page": read_page,
    "values": read_values,
}


def read_lines(kind: str, source: Source) -> Reading:
    """Return the lines of a text of this kind."""
    return _READERS.get(kind, read_output)(source)
