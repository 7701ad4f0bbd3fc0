"""The folders in which Claude Code and Codex record sessions on this computer, and the project of each session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

__all__ = ["CLIENTS", "Client", "SessionFile", "project_of", "session_files", "session_folder"]

Client = Literal["claude-code", "codex"]
CLIENTS: tuple[Client, ...] = ("claude-code", "codex")
_HEAD_BYTES = 1 << 18
"""Bytes of a session that are read to find its project. Claude Code names it behind some lines of settings."""


class SessionFile(NamedTuple):
    """One recorded session, without its content."""

    path: Path
    time: int
    """The last change in nanoseconds since 1970."""
    size: int
    """Bytes."""


class _Line(Struct):
    """A line of Claude Code."""

    cwd: str = ""


class _CodexPayload(Struct):
    cwd: str = ""


class _CodexLine(Struct):
    """The first line of a session of Codex."""

    payload: _CodexPayload


def session_folder(client: Client, environ: Mapping[str, str], home: Path | None = None) -> Path:
    """Return the folder of a client's sessions.

    `~/.claude/projects` (`$CLAUDE_CONFIG_DIR/projects`) or `~/.codex/sessions` (`$CODEX_HOME/sessions`). `home`: the
    home folder, by default that of the environment.
    """
    base = home or Path(environ.get("HOME") or Path.home())
    if client == "claude-code":
        return Path(environ.get("CLAUDE_CONFIG_DIR") or base / ".claude") / "projects"
    return Path(environ.get("CODEX_HOME") or base / ".codex") / "sessions"


def session_files(folder: Path) -> list[SessionFile]:
    """Return the sessions in a folder and all folders in it, newest first, without those of Claude Code's sub-agents.

    Empty files are left out.
    """
    return sorted(_walk(folder), key=lambda file: (-file.time, str(file.path)))


def _walk(folder: Path) -> Iterator[SessionFile]:
    for path in folder.rglob("*.jsonl"):
        if path.name.startswith("agent-"):
            continue
        try:
            status = path.stat()
        except OSError:  # Deleted meanwhile, or a link to nothing.
            continue
        if status.st_size and path.is_file():
            yield SessionFile(path, status.st_mtime_ns, status.st_size)


def project_of(path: Path, client: Client) -> str:
    """Return the folder in which a session began; "" if the file does not say it."""
    try:
        with path.open("rb") as file:
            lines = file.read(_HEAD_BYTES).splitlines() if client == "claude-code" else [file.readline(1 << 20)]
    except OSError:
        return ""
    for line in lines:
        try:
            if client == "codex":
                return msgspec.json.decode(line, type=_CodexLine).payload.cwd
            if cwd := msgspec.json.decode(line, type=_Line).cwd:
                return cwd
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
    return ""
