"""The store in memory: the oracle that the others are held against, and what tests and trials use."""

from .store import MemoryStore

__all__ = ["MemoryStore"]
