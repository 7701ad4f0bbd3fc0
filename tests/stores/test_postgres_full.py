"""A server with a really full disk: writes are refused with an error, none is stored in part, all work again later."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

from postgres_schemas import execute

from foveate import open_conversation
from foveate.errors import StoreError

pytestmark = pytest.mark.slow


@pytest.fixture
def small_disk(postgres: Any) -> Iterator[tuple[str, Callable[[str], None]]]:
    """Yield the name of a tablespace of 4 MB, and a function that changes the size of its disk."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root on Linux can make a small disk; a trigger stands in for it in test_postgres_errors.py")
    name = f"small_{uuid.uuid4().hex[:8]}"
    folder = Path(tempfile.gettempdir()) / name
    folder.mkdir()
    owner = (Path(postgres.folder) / "data").stat()
    mount = ["mount", "-t", "tmpfs", "-o", f"size=4m,mode=700,uid={owner.st_uid},gid={owner.st_gid}", "tmpfs", folder]
    try:
        if subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("nothing can be mounted here")
        try:
            execute(postgres.url(), f"CREATE TABLESPACE {name} LOCATION '{folder}'")
            yield name, lambda size: resized(folder, size)
            execute(postgres.url(), f"DROP SCHEMA {name} CASCADE")
            execute(postgres.url(), f"DROP TABLESPACE {name}")
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
    finally:
        folder.rmdir()


def resized(folder: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", folder], check=True)


def test_full_disk_is_reported_and_acknowledged_data_stays(
    postgres: Any, small_disk: tuple[str, Callable[[str], None]]
) -> None:
    name, resize = small_disk
    execute(postgres.url(), f"CREATE SCHEMA {name}")
    random = Random(1)
    url = f"{postgres.url()}?schema={name}&options=-c%20default_tablespace%3D{name}"
    with open_conversation("one", store=url, policy="off", window=9_000_000) as chat:
        stored = [chat.append("first")[0]]
        errors: list[StoreError] = []
        while len(errors) < 5:
            text = random.randbytes(60_000).hex()
            try:
                stored += chat.append(text, after=stored[-1])
            except StoreError as error:
                errors.append(error)
                assert [row.id for row in chat.history()] == stored  # Reading goes on.
        assert ["disk of" in str(error) and "Nothing was written" in str(error) for error in errors] == [True] * 5
        resize("32m")
        stored += chat.append(text, after=stored[-1])
        assert ([row.id for row in chat.history()], chat.journal.verify()) == (stored, [])
        assert len(stored) > 10
