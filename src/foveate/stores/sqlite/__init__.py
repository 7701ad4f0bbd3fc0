"""The SQLite store: a driver with one writer at a time, and a word index in FTS5."""

from .store import SqliteDriver, SqliteStore

__all__ = ["SqliteDriver", "SqliteStore"]
