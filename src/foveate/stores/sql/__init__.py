"""The SQL store: its parts, statements and migrations, and the protocol of a database driver."""

from .store import SqlStore

__all__ = ["SqlStore"]
