"""SQLite: the driver, one writer at a time, and the index of words in its full-text module."""

from .store import SqliteDriver, SqliteStore

__all__ = ["SqliteDriver", "SqliteStore"]
