"""Fixtures for the tests of frameworks."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore sockets that an SDK leaves open: it closes its clients after the loop of `asyncio.run` has ended."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(autouse=True)
def collected_garbage() -> Iterator[None]:
    """Collect what a test leaves behind within this test, so that no other test reports it."""
    yield
    gc.collect()


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each model call of a host fail, as it does if the store cannot be written."""

    def fail(*arguments: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("foveate.hosts.host.ModelCall", fail)
