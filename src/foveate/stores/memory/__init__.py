"""The store in memory: for tests and trials, and the reference for the other stores."""

from .store import MemoryStore

__all__ = ["MemoryStore"]
