"""What PostgreSQL's errors mean to whoever reads them: what happened to which database, whose fault it is, what to do.

Knows error codes, and the sentences of libpq where it hands on no code; no connection and no table.
"""

from __future__ import annotations

import psycopg

from ...errors import Damaged, StoreError

__all__ = ["explain", "is_conflict", "is_lost", "unknown_outcome", "unreachable"]

_CONFLICTS = {
    "40001",  # could not serialize
    "40P01",  # a deadlock, of which this was the victim
    "23505",  # two began the same thing at once: every other write states what it expects to find
    "23503",  # what this was to refer to was dropped a moment ago; the next look finds that out
}
_LOST = {"57P01", "57P02", "57P03", "57P05", "25P03", "25P04"}
"""The server ended the connection: shut down, restarted, or tired of waiting."""

_SAID = (
    ("password authentication failed", "The user or the password is wrong. Correct the URL."),
    ("no password supplied", "It asks for a password. Put one into the URL, or into ~/.pgpass."),
    ("no pg_hba.conf entry", "The server lets this user not in from here. Its pg_hba.conf has to say so."),
    ("too many clients", "It has no connection to spare. Lower pool=, or raise its max_connections."),
    ("remaining connection slots", "It has no connection to spare. Lower pool=, or raise its max_connections."),
    ("could not translate host name", "There is no host of this name. Correct the URL."),
    ("failed to resolve host", "There is no host of this name. Correct the URL."),
    ("Connection refused", "Nothing listens there. Start the server, or correct host and port."),
    ("starting up", "It is just starting. Try again in a moment."),
    ("shutting down", "It is just stopping. Start it again."),
    ("does not support SSL", "It has no SSL. Set sslmode in the URL to what it has."),
    ("FATAL: database", "Create the database, or correct the URL."),
    ("FATAL: role", "Create the user, or correct the URL."),
)
"""What libpq says where no connection comes about, and what to do. It hands on no code there."""


def is_conflict(error: BaseException) -> bool:
    """Whether it came of others who wrote at the same moment, so that doing it again helps."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _CONFLICTS


def is_lost(error: BaseException) -> bool:
    """Whether it tells that the server ended the connection."""
    code = (isinstance(error, psycopg.Error) and error.sqlstate) or ""
    return code in _LOST or code.startswith("08")


def unreachable(place: str, wait: float, reason: Exception | None) -> StoreError:
    """For a connection that did not come about."""
    said = " ".join(str(reason).split()).partition(" Is the server running")[0] if reason else ""
    todo = next((todo for words, todo in _SAID if words in said), "")
    if not said:
        return StoreError(
            f"{place} has no connection free within {wait:g} s: all that pool= allows are in use. Raise pool=, or do "
            f"less at a time. Nothing was written."
        )
    return StoreError(f"{place} cannot be reached ({said}). {todo or 'See that it runs, and retry.'}")


def unknown_outcome(place: str, error: Exception) -> StoreError:
    """For a connection that was lost between asking to commit and hearing that it was done."""
    return StoreError(
        f"The connection to {place} was lost while it was committing ({_first_line(error)}), so it is not known "
        f"whether this was written: all of it, or nothing. Open the conversation again and see where it ends; or "
        f"append the same again, after= the tip as it was before: what is there already is not added twice."
    )


def explain(error: Exception, place: str) -> StoreError:
    """The error as one that says what happened and what to do. Nothing of its transaction was written."""
    why = f"({_first_line(error)})"
    code = (isinstance(error, psycopg.Error) and error.sqlstate) or ""
    match code:
        case "40001" | "40P01" | "23505" | "23503":
            return StoreError(
                f"{place} is too busy {why}: others kept writing to the same rows at the same moments. Nothing was "
                f"written. Retry later."
            )
        case "55P03":
            return StoreError(
                f"{place}: another writer has held the same row for too long {why}. Nothing was written. Let it "
                f"finish, then retry; wait= in the URL says for how long to wait."
            )
        case "57014":
            return StoreError(
                f"{place} took too long and was stopped {why}. Nothing was written. Retry, or raise the server's "
                f"statement_timeout for this user."
            )
        case "25006":
            return StoreError(
                f"{place} takes no writes {why}: it is a standby, or set to read only for this user. Nothing was "
                f"written. Connect to the primary (target_session_attrs=read-write), or ask its administrator."
            )
        case "42501":
            return StoreError(
                f"{place} does not let this user do it {why}. Nothing was written. Grant the user USAGE on the schema "
                f"and SELECT, INSERT, UPDATE and DELETE on its tables; who opens a new one needs CREATE on the schema "
                f"too."
            )
        case "53100" | "53200" | "54000" | "58030":
            return StoreError(
                f"{place} has run out of room, or its disk failed {why}. Nothing was written. Make room on the server, "
                f"then retry."
            )
        case "42P01" | "42703" | "3F000":
            return StoreError(
                f"{place} misses a table that was there {why}. Something else changed this schema. Restore it, or "
                f"give foveate a schema of its own."
            )
        case "26000" | "42P05" | "08P01":
            return StoreError(
                f"{place} does not know what was prepared {why}: a pooler between here and the server mixes up "
                f"connections. Let it pool by sessions, or connect to the server itself."
            )
        case "XX001" | "XX002":
            return Damaged(f"{place} is damaged {why}. Stop writing to it, then restore a backup.")
    if isinstance(error, psycopg.DataError | UnicodeError):
        return StoreError(
            f"{place} cannot keep this {why}. Nothing was written. PostgreSQL's text holds neither NUL nor half of a "
            f"surrogate pair; take them out."
        )
    return StoreError(f"{place} failed {why}. Open the conversation again to see whether the last write took place.")


def _first_line(error: Exception) -> str:
    said = str(error).strip().splitlines()
    return said[0] if said else type(error).__name__
