"""The memory store keeps the contract of all stores."""

from __future__ import annotations

from foveate.ports import Database
from foveate.stores.memory import MemoryStore
from foveate.testing.store_contract import DatabaseContract


class TestMemoryStore(DatabaseContract):
    def make_store(self) -> Database:
        return MemoryStore()
