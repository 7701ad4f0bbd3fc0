"""The memory store keeps the contract that every store keeps."""

from __future__ import annotations

from foveate.ports import Store
from foveate.stores.memory import MemoryStore
from foveate.testing.store_contract import StoreContract


class TestMemoryStore(StoreContract):
    def make_store(self) -> Store:
        return MemoryStore()
