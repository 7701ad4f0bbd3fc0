"""The PostgreSQL store: a driver, a pool of connections, and a word index. Needs the extra `postgres`."""

from .store import PostgresDriver, PostgresStore

__all__ = ["PostgresDriver", "PostgresStore"]
