"""The one SQL store: its statements, its migrations, and what it asks of a database's driver. Knows no database."""

from .store import SqlStore

__all__ = ["SqlStore"]
