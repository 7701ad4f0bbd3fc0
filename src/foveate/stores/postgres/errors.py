"""What PostgreSQL's errors mean to whoever reads them: what happened to which database, whose fault it is, what to do.

Knows error codes, and the sentences of libpq where it hands on no code; no connection and no table. Codes and their
classes: PostgreSQL's documentation, appendix A.
"""

from __future__ import annotations

import psycopg

from ...errors import Damaged, StoreError

__all__ = [
    "Unanswered",
    "explain",
    "is_conflict",
    "is_lost",
    "is_worth_another",
    "unknown_outcome",
    "unreachable",
    "unreplicated",
]


class Unanswered(psycopg.OperationalError):
    """The server said nothing for as long as one waits for it; the connection was closed."""


_CONFLICTS = {
    "40001",  # could not serialize; on a standby, what was read was taken away
    "40P01",  # a deadlock, of which this was the victim
    "23505",  # two began the same thing at once: every other write states what it expects to find
    "23503",  # what this was to refer to was dropped a moment ago; the next look finds that out
}
_LOST = {
    "57P01",  # an administrator ended it, or stops the server
    "57P02",  # another process of the server crashed, and it begins anew
    "57P03",  # it does not take connections yet, or any more
    "57P04",  # the database was dropped
    "57P05",  # the connection was not used for longer than the server allows
    "25P03",  # this process was silent in a transaction for longer than the server allows
}
"""The server ended the connection."""
_ONCE = {"25P04"}
"""It ended the connection, and would do so again."""

_DAMAGED = {"XX001", "XX002"}
"""A page, or an index, that is not as it was written."""

_SAID = (
    ("password authentication failed", "The user or the password is wrong. Correct the URL."),
    ("no password supplied", "It asks for a password. Put one into the URL, or into ~/.pgpass."),
    ("no pg_hba.conf entry", "The server lets this user not in from here. Its pg_hba.conf has to say so."),
    ("too many clients", "It has no connection to spare. Lower pool=, or raise its max_connections."),
    ("too many connections", "This user or database may have no more. Lower pool=, or raise its CONNECTION LIMIT."),
    ("remaining connection slots", "It has no connection to spare. Lower pool=, or raise its max_connections."),
    ("could not translate host name", "There is no host of this name. Correct the URL."),
    ("failed to resolve host", "There is no host of this name. Correct the URL."),
    ("session is read-only", "Only a standby answers: promote it, or start the primary, and retry."),
    ("server is in hot standby mode", "Only a standby answers: promote it, or start the primary, and retry."),
    ("Connection refused", "Nothing listens there. Start the server, or correct host and port."),
    ("starting up", "It is just starting. Try again in a moment."),
    ("not yet accepting connections", "It is just starting. Try again in a moment."),
    ("in recovery mode", "It crashed and is recovering. Try again in a moment."),
    ("shutting down", "It is just stopping. Start it again."),
    ("does not support SSL", "It has no SSL. Set sslmode in the URL to what it has."),
    ("certificate", "Its certificate is not what sslmode asks for. Set sslrootcert in the URL, or mend the server's."),
    ("timeout expired", "It takes connections and does not answer. See whether it hangs, and what is in between."),
    ("FATAL: database", "Create the database, or correct the URL."),
    ("FATAL: role", "Create the user, or correct the URL."),
)
"""What libpq says where no connection comes about, and what to do. It hands on no code there."""

_TOLD: dict[tuple[str, ...], str] = {
    ("40001", "40P01", "23505", "23503"): (
        "{place} is too busy {why}: others kept writing to the same rows at the same moments. Nothing was written. "
        "Retry later."
    ),
    ("55P03",): (
        "{place}: another writer has held the same row for too long {why}. Nothing was written. Let it finish, then "
        "retry; wait= in the URL says for how long to wait."
    ),
    ("57014", "25P04"): (
        "{place} took too long and was stopped {why}. Nothing was written. Retry, or raise the server's "
        "statement_timeout or transaction_timeout for this user."
    ),
    ("25P03",): (
        "{place} ended a transaction in which this process was silent for too long, again and again {why}. Nothing was "
        "written. See what holds this process up, or raise idle_in_transaction_session_timeout."
    ),
    ("25006",): (
        "{place} takes no writes {why}: it is a standby, or set to read only for this user. Nothing was written. "
        "Connect to the primary (target_session_attrs=read-write), or ask its administrator."
    ),
    ("42501",): (
        "{place} does not let this user do it {why}. Nothing was written. Grant the user USAGE on the schema and "
        "SELECT, INSERT, UPDATE and DELETE on its tables; who opens a new one needs CREATE on the schema too."
    ),
    ("53100",): (
        "The disk of {place} is full {why}. Nothing was written. Make room on the server, then retry; reading goes on."
    ),
    ("53000", "53200", "53400"): (
        "{place} has run out of memory, or of what it sets aside for locks {why}. Nothing was written. Retry; if it "
        "happens again, raise the server's memory, or max_locks_per_transaction as its hint says."
    ),
    ("53300",): (
        "{place} has no connection to spare {why}. Nothing was written. Lower pool=, or raise its max_connections."
    ),
    ("58000", "58030", "58P01"): (
        "The server of {place} could not read or write a file of its own {why}. Nothing was written. See its log and "
        "its disk before you retry."
    ),
    ("42P01", "42703", "3F000"): (
        "{place} misses a table that was there {why}. Something else changed this schema. Restore it, or give foveate "
        "a schema of its own."
    ),
    ("26000", "42P05", "08P01"): (
        "{place} does not know what was prepared {why}: a pooler between here and the server mixes up connections. Let "
        "it pool by sessions, or connect to the server itself."
    ),
    ("57P04",): "{place} was dropped {why}. Restore a backup into a new database, or correct the URL.",
}
"""What the server says by its code, once it was asked, and what to do. `{why}` is its own first line."""
_BY_CODE = {code: sentence for codes, sentence in _TOLD.items() for code in codes}


def is_conflict(error: BaseException) -> bool:
    """Whether it came of others who wrote at the same moment, so that doing it again helps."""
    return _code(error) in _CONFLICTS


def is_lost(error: BaseException) -> bool:
    """Whether it tells that the connection is of no use any more, and that another one may be."""
    code = _code(error)
    # What was prepared before somebody changed a table is planned anew on a connection of its own.
    return code in _LOST or code.startswith("08") or (code == "0A000" and "cached plan" in str(error))


def is_worth_another(error: BaseException) -> bool:
    """Whether the work may be done again where a connection was lost by this error."""
    return not isinstance(error, Unanswered) and _code(error) not in _ONCE


def unreachable(place: str, wait: float, reason: Exception | None) -> StoreError:
    """For a connection that did not come about."""
    said, todo = _attempts(str(reason)) if reason else ("", "")
    if not said:
        return StoreError(
            f"{place} has no connection free within {wait:g} s: all that pool= allows are in use. Raise pool=, or do "
            f"less at a time. Nothing was written."
        )
    return StoreError(f"{place} cannot be reached ({said}). {todo or 'See that it runs, and retry.'}")


def _attempts(reason: str) -> tuple[str, str]:
    """What libpq says of the attempt to connect, or of each where several hosts were tried; and what to do."""
    last, _, others = reason.partition("Multiple connection attempts failed. All failures were:")
    last = " ".join(last.split())
    each = [" ".join(one.split()) for one in others.split("\n- ")[1:]] or [last]
    said = "; ".join(one.partition(" Is the server running")[0] for one in each)
    # The last attempt tells most: those before it are of hosts that were down already.
    return said, next((todo for words, todo in _SAID if words in last), "")


def unknown_outcome(place: str, error: Exception) -> StoreError:
    """For a connection that was lost between asking to commit and hearing that it was done."""
    return StoreError(
        f"The connection to {place} was lost while it was committing ({_first_line(error)}), so it is not known "
        f"whether this was written: all of it, or nothing. Open the conversation again and see where it ends; or "
        f"append the same again, after= the tip as it was before: what is there already is not added twice."
    )


def unreplicated(place: str) -> StoreError:
    """For a commit whose wait for a standby was cut short: the server took it, and promises nothing."""
    return StoreError(
        f"{place} has written this, but somebody cancelled its wait for the standby, so it is not known whether it "
        f"would survive a failover. Open the conversation again to go on; if it has to be sure, append the same again "
        f"later, after= the tip as it was before: what is there already is not added twice."
    )


def explain(error: Exception, place: str) -> StoreError:
    """The error as one that says what happened and what to do. Nothing of its transaction was written."""
    why = f"({_first_line(error)})"
    if isinstance(error, Unanswered):
        return StoreError(
            f"{place} {error}. It hangs, or the network to it swallows what is sent. Nothing was written. See that the "
            f"server runs, then retry; answer= in the URL says for how long to wait."
        )
    if isinstance(error, psycopg.DataError | UnicodeError):
        return StoreError(
            f"{place} cannot keep this {why}. Nothing was written. PostgreSQL's text holds neither NUL nor half of a "
            f"surrogate pair; take them out."
        )
    code = _code(error)
    if code in _DAMAGED:
        return Damaged(f"{place} is damaged {why}. Stop writing to it, then restore a backup.")
    if code in _BY_CODE:
        return StoreError(_BY_CODE[code].format(place=place, why=why))
    if code.startswith("54"):  # A limit of the program.
        return StoreError(
            f"{place} cannot hold something as large as this {why}. Nothing was written. Make the message smaller."
        )
    if is_lost(error) or (not code and isinstance(error, psycopg.OperationalError)):
        return StoreError(
            f"The connection to {place} was lost again and again {why}. Nothing was written. See that the server "
            f"runs and what its log says, then retry."
        )
    return StoreError(f"{place} failed {why}. Nothing was written. See the server's log for what it is about.")


def _code(error: BaseException) -> str:
    return (isinstance(error, psycopg.Error) and error.sqlstate) or ""


def _first_line(error: Exception) -> str:
    said = str(error).strip().splitlines()
    return said[0] if said else type(error).__name__
