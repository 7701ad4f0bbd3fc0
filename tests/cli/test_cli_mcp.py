"""`foveate mcp` refuses what it cannot serve, and writes no file."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

import foveate

pytest.importorskip("mcp", reason="mcp is not installed (the extra `mcp`)")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    return tmp_path


@pytest.fixture(autouse=True)
def stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a server that starts although it should not, instead of waiting for a client."""
    import mcp.server

    def started(*arguments: Any, **options: Any) -> None:
        raise AssertionError("the server has started")

    monkeypatch.setattr(mcp.server.MCPServer, "run", started)


@pytest.mark.parametrize("chosen", [["--all"], ["fix-login"]])
def test_a_missing_database_is_not_created(run: Any, folder: Path, chosen: list[str]):
    code, out, err = run("mcp", *chosen, "--store", "chat.db")
    assert (code, out, err) == (2, "", "foveate: There is no database chat.db.\n")
    assert not (folder / "chat.db").exists()


def test_a_store_in_memory_has_nothing_to_serve(run: Any):
    code, _, err = run("mcp", "--all")
    assert code == 2
    assert "The store memory: is empty when a command starts. Name a database: --store chat.db" in err


@pytest.mark.parametrize("client", ["--claude-code", "--codex"])
def test_a_missing_project_is_refused(run: Any, folder: Path, client: str):
    code, _, err = run("mcp", client, "--project", folder / "nowhere")
    assert code == 2
    assert f"There is no folder {folder / 'nowhere'}, and {client[2:]} recorded no session in it." in err


@pytest.mark.parametrize("port", [-1, 0, 65_536, 99_999_999])
def test_a_number_that_is_no_port_is_refused(run: Any, port: int):
    foveate.open_conversation("fix-login", store="sqlite:///chats.db", window=8_000).close()
    code, _, err = run("mcp", "--all", "--store", "chats.db", "--http", port)
    assert (code, err) == (2, f"foveate: --http must be a port from 1 to 65535, not {port}.\n")


def test_a_port_in_use_is_refused(run: Any):
    foveate.open_conversation("fix-login", store="sqlite:///chats.db", window=8_000).close()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, _, err = run("mcp", "--all", "--store", "chats.db", "--http", port)
    assert code == 2
    assert f"The server cannot listen at 127.0.0.1:{port}: Address already in use. Choose another port." in err
