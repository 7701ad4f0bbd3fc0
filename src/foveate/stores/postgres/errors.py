"""Explain PostgreSQL's errors: what happened to which database, and what to do.

Codes and their classes: PostgreSQL's documentation, appendix A. libpq passes sentences without a code.
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
    """The server was silent for too long; the connection was closed."""


_CONFLICTS = {
    "40001",  # could not serialize; on a standby, rows that were read were removed
    "40P01",  # a deadlock, of which this was the victim
    "23505",  # two created the same row at once: every other write states what it expects to find
    "23503",  # a row that this one refers to was deleted meanwhile; the next attempt detects it
}
_LOST = {
    "57P01",  # an administrator ended it, or stops the server
    "57P02",  # another process of the server crashed, and it restarts
    "57P03",  # it does not accept connections yet, or any more
    "57P04",  # the database was dropped
    "57P05",  # the connection was not used for longer than the server allows
    "25P03",  # this process was silent in a transaction for longer than the server allows
}
"""The server ended the connection."""
_ONCE = {"25P04"}
"""It ended the connection, and would end it again."""

_DAMAGED = {"XX001", "XX002"}
"""A damaged page or index."""

_CONNECT_ADVICE = (
    ("password authentication failed", "The user or the password is wrong. Correct the URL."),
    ("no password supplied", "It asks for a password. Put one into the URL, or into ~/.pgpass."),
    ("no pg_hba.conf entry", "The server does not admit this user from here. Add an entry to its pg_hba.conf."),
    ("too many clients", "It has no connection to spare. Lower pool=, or raise its max_connections."),
    ("too many connections", "This user or database may have no more. Lower pool=, or raise its CONNECTION LIMIT."),
    ("remaining connection slots", "It has no connection to spare. Lower pool=, or raise its max_connections."),
    ("could not translate host name", "There is no host with this name. Correct the URL."),
    ("failed to resolve host", "There is no host with this name. Correct the URL."),
    ("session is read-only", "Only a standby answers: promote it, or start the primary, and retry."),
    ("server is in hot standby mode", "Only a standby answers: promote it, or start the primary, and retry."),
    ("Connection refused", "Nothing listens there. Start the server, or correct host and port."),
    ("starting up", "It is just starting. Try again in a moment."),
    ("not yet accepting connections", "It is just starting. Try again in a moment."),
    ("in recovery mode", "It crashed and is recovering. Try again in a moment."),
    ("shutting down", "It is just stopping. Start it again."),
    (
        "unsupported startup parameter",
        "A pooler refuses the options of a connection. Connect to the server directly, or let the pooler ignore them: "
        "ignore_startup_parameters = extra_float_digits, options.",
    ),
    ("does not support SSL", "It has no SSL. Set sslmode in the URL to what it has."),
    (
        "certificate",
        "Its certificate is not valid for sslmode. Set sslrootcert in the URL, or correct the server's certificate.",
    ),
    ("timeout expired", "It accepts connections and does not answer. Check whether it hangs, and the network between."),
    ("FATAL: database", "Create the database, or correct the URL."),
    ("FATAL: role", "Create the user, or correct the URL."),
)
"""Sentences of libpq for a failed connection, without a code, and what to do."""

_ADVICE: dict[tuple[str, ...], str] = {
    ("40001", "40P01", "23505", "23503"): (
        "{place} is too busy {why}: others kept writing to the same rows at the same moments. Nothing was written. "
        "Retry later."
    ),
    ("55P03",): (
        "{place}: another writer has held the same row for too long {why}. Nothing was written. Let it finish, then "
        "retry; wait= in the URL sets the time to wait."
    ),
    ("57014", "25P04"): (
        "{place} took too long and was stopped {why}. Nothing was written. Retry, or raise the server's "
        "statement_timeout or transaction_timeout for this user."
    ),
    ("25P03",): (
        "{place} ended a transaction in which this process was silent for too long, again and again {why}. Nothing was "
        "written. Find out why this process is slow, or raise idle_in_transaction_session_timeout."
    ),
    ("25006",): (
        "{place} accepts no writes {why}: it is a standby, or read-only for this user. Nothing was written. "
        "Connect to the primary (target_session_attrs=read-write), or ask its administrator."
    ),
    ("42501",): (
        "{place} does not let this user do it {why}. Nothing was written. Grant the user USAGE on the schema and "
        "SELECT, INSERT, UPDATE and DELETE on its tables; the first user also needs CREATE on the schema."
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
        "The server of {place} could not read or write a file of its own {why}. Nothing was written. Check its log and "
        "its disk before you retry."
    ),
    ("42P01", "42703", "3F000"): (
        "{place} lacks a table or a column that existed {why}. If a newer foveate has upgraded it, restart this "
        "program with that version. Otherwise another program changed this schema: restore it, or give foveate a "
        "separate one."
    ),
    ("26000", "42P05", "08P01"): (
        "{place} lost a prepared statement {why}: a pooler between here and the server mixes connections. Let it pool "
        "by sessions, or connect to the server directly."
    ),
    ("57P04",): "{place} was dropped {why}. Restore a backup into a new database, or correct the URL.",
}
"""Sentences for the codes of the server. `{why}` is the first line of its own message."""
_BY_CODE = {code: sentence for codes, sentence in _ADVICE.items() for code in codes}


def is_conflict(error: BaseException) -> bool:
    """Return whether other writers caused it, so that a retry helps."""
    return _code(error) in _CONFLICTS


def is_lost(error: BaseException) -> bool:
    """Return whether the connection is lost, and another one may work."""
    code = _code(error)
    if not code:  # libpq's own: what the server answered is not known.
        return isinstance(error, psycopg.OperationalError)
    # A statement that was prepared before a table changed needs a new connection.
    return code in _LOST or code.startswith("08") or (code == "0A000" and "cached plan" in str(error))


def is_worth_another(error: BaseException) -> bool:
    """Return whether to retry on another connection after this error."""
    return not isinstance(error, Unanswered) and _code(error) not in _ONCE


def unreachable(place: str, wait: float, reason: Exception | None) -> StoreError:
    """Return the error for a failed connection."""
    text, advice = _attempts(str(reason)) if reason else ("", "")
    if not text:
        return StoreError(
            f"{place} has no connection free within {wait:g} s: all that pool= allows are in use. Raise pool=, or "
            f"use fewer threads. Nothing was written."
        )
    return StoreError(f"{place} cannot be reached ({text}). {advice or 'Check that it runs, then retry.'}")


def _attempts(reason: str) -> tuple[str, str]:
    """Return libpq's message about the attempt, or about each of several hosts, and what to do."""
    last, _, others = reason.partition("Multiple connection attempts failed. All failures were:")
    last = " ".join(last.split())
    attempts = [" ".join(attempt.split()) for attempt in others.split("\n- ")[1:]] or [last]
    text = "; ".join(attempt.partition(" Is the server running")[0] for attempt in attempts)
    # The last attempt is the most informative: the earlier hosts were down.
    return text, next((advice for words, advice in _CONNECT_ADVICE if words in last), "")


def unknown_outcome(place: str, error: Exception) -> StoreError:
    """Return the error for a connection that was lost during a commit."""
    return StoreError(
        f"The connection to {place} was lost while it was committing ({_first_line(error)}), so it is not known "
        f"whether this was written: all of it, or nothing. Open the conversation again and read its end; or append "
        f"the same again with after= the earlier tip: messages that are already stored are not added again."
    )


def unreplicated(place: str) -> StoreError:
    """Return the error for a commit whose wait for a standby was cancelled."""
    return StoreError(
        f"{place} has written this, but its wait for the standby was cancelled, so it is not known whether it would "
        f"survive a failover. Open the conversation again to go on. To be sure, append the same again later with "
        f"after= the earlier tip: messages that are already stored are not added again."
    )


def explain(error: Exception, place: str) -> StoreError:
    """Return a StoreError that says what happened and what to do. Nothing of its transaction was written."""
    why = f"({_first_line(error)})"
    if isinstance(error, Unanswered):
        return StoreError(
            f"{place} {error}. It hangs, or the network loses packets. Nothing was written. Check that the server "
            "runs, then retry; answer= in the URL sets the time to wait."
        )
    if isinstance(error, psycopg.DataError | UnicodeError):
        return StoreError(
            f"{place} cannot store this {why}. Nothing was written. Text in PostgreSQL cannot contain NUL or an "
            "unpaired surrogate; remove them."
        )
    code = _code(error)
    if code in _DAMAGED:
        return Damaged(f"{place} is damaged {why}. Stop writing to it, then restore a backup.")
    if code in _BY_CODE:
        return StoreError(_BY_CODE[code].format(place=place, why=why))
    if code.startswith("54"):  # Program limits.
        return StoreError(
            f"{place} cannot store something as large as this {why}. Nothing was written. Make the message smaller."
        )
    if is_lost(error):
        return StoreError(
            f"The connection to {place} was lost again and again {why}. Nothing was written. Check the server "
            f"and its log, then retry."
        )
    return StoreError(f"{place} failed {why}. Nothing was written. Read the server's log.")


def _code(error: BaseException) -> str:
    return (isinstance(error, psycopg.Error) and error.sqlstate) or ""


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
