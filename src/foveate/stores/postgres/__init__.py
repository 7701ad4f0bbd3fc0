"""PostgreSQL: the driver, its pool of connections, and the index of words. Needs the extra `postgres`."""

from .store import PostgresDriver, PostgresStore

__all__ = ["PostgresDriver", "PostgresStore"]
