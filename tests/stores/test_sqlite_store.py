"""The SQLite store keeps the contract of all stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from foveate.ports import Database
from foveate.stores.sqlite import SqliteStore
from foveate.testing.store_contract import DatabaseContract


class TestSqliteStore(DatabaseContract):
    @pytest.fixture(autouse=True)
    def file(self, tmp_path: Path) -> None:
        self.path = tmp_path / "chat.db"

    def make_store(self) -> Database:
        return SqliteStore(self.path)

    def reopen(self, store: Database) -> Database:
        store.close()
        return SqliteStore(self.path)
