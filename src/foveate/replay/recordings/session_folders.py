"""The folders in which agent programs record sessions on this computer, and the project of each session.

Sources: the documentation of each program, and for the variables `PI_CODING_AGENT_DIR`, `GEMINI_CLI_HOME` and
`COPILOT_HOME` programs that read them, 2026.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import stat_result
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from ...errors import BadTranscript
from .opencode_store import is_database, is_stored, sessions_in
from .source import decode_or_nothing

__all__ = [
    "CLIENTS",
    "TITLES",
    "Client",
    "ClientSession",
    "SessionFile",
    "client_sessions",
    "project_of",
    "session_files",
    "session_folder",
]

Client = Literal["claude-code", "codex", "opencode", "pi", "gemini", "copilot"]
TITLES: dict[Client, str] = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "opencode": "OpenCode",
    "pi": "pi",
    "gemini": "Gemini CLI",
    "copilot": "Copilot CLI",
}
"""The clients with their names for people."""
CLIENTS: tuple[Client, ...] = tuple(TITLES)
_HEAD_BYTES = 1 << 18
"""Bytes of a session that are read to find its project. Claude Code names it behind some lines of settings."""
_PATTERNS: dict[Client, tuple[str, ...]] = {
    "claude-code": ("**/*.jsonl",),
    "codex": ("**/*.jsonl",),
    "opencode": ("storage/session/*/ses_*.json",),
    "pi": ("**/*.jsonl",),
    "gemini": ("*/chats/session-*.json", "*/chats/session-*.jsonl"),
    "copilot": ("*.jsonl", "*/events.jsonl"),
}
"""Files with sessions below the folder of a client."""


class SessionFile(NamedTuple):
    """One recorded session, without its content."""

    path: Path
    """Its file; `FILE#NAME` for a session in a database."""
    time: int
    """The last change in nanoseconds since 1970."""
    size: int
    """Bytes."""


class ClientSession(NamedTuple):
    """One session of a client on this computer."""

    client: Client
    file: SessionFile


class _Context(Struct):
    cwd: str = ""


class _Data(Struct):
    cwd: str = ""
    context: _Context | None = None


class _Line(Struct):
    """A line of a session that may name the folder of the project."""

    cwd: str = ""
    """Claude Code and pi."""
    directory: str = ""
    """OpenCode."""
    payload: _Data | None = None
    """Codex."""
    data: _Data | None = None
    """Copilot CLI."""

    def project(self) -> str:
        """Return the folder; "" for none."""
        inner = self.payload or self.data or _Data()
        return self.cwd or self.directory or inner.cwd or (inner.context.cwd if inner.context else "")


def session_folder(client: Client, environ: Mapping[str, str], home: Path | None = None) -> Path:
    """Return the folder of a client's sessions.

    `~/.claude/projects` (`$CLAUDE_CONFIG_DIR/projects`), `~/.codex/sessions` (`$CODEX_HOME/sessions`),
    `~/.local/share/opencode` (`$XDG_DATA_HOME/opencode`), `~/.pi/agent/sessions` (`$PI_CODING_AGENT_DIR/sessions`),
    `~/.gemini/tmp` (`$GEMINI_CLI_HOME/.gemini/tmp`) or `~/.copilot/session-state` (`$COPILOT_HOME/session-state`).
    `home`: the home folder, by default that of the environment.
    """
    base = home or Path(environ.get("HOME") or Path.home())

    def root(variable: str, default: Path) -> Path:
        return Path(environ.get(variable) or default)

    match client:
        case "claude-code":
            return root("CLAUDE_CONFIG_DIR", base / ".claude") / "projects"
        case "codex":
            return root("CODEX_HOME", base / ".codex") / "sessions"
        case "opencode":
            return root("XDG_DATA_HOME", base / ".local/share") / "opencode"
        case "pi":
            return root("PI_CODING_AGENT_DIR", base / ".pi/agent") / "sessions"
        case "gemini":
            return root("GEMINI_CLI_HOME", base) / ".gemini/tmp"
        case "copilot":
            return root("COPILOT_HOME", base / ".copilot") / "session-state"


def session_files(folder: Path, client: Client = "claude-code") -> list[SessionFile]:
    """Return the sessions in a client's folder, newest first, without those of sub-agents and without empty files."""
    found = list(_walk(folder, client))
    if client == "opencode":
        found = _stored_by_opencode(folder, found)
    return sorted(found, key=lambda file: (-file.time, str(file.path)))


def client_sessions(environ: Mapping[str, str], home: Path | None = None) -> list[ClientSession]:
    """Return the sessions of all clients on this computer, newest first."""
    found = [
        ClientSession(client, file)
        for client in CLIENTS
        for file in session_files(session_folder(client, environ, home), client)
    ]
    return sorted(found, key=lambda session: (-session.file.time, str(session.file.path)))


def _walk(folder: Path, client: Client) -> Iterator[SessionFile]:
    for pattern in _PATTERNS[client]:
        for path in folder.glob(pattern):
            status = None if path.name.startswith("agent-") else _status(path)
            if status is not None and status.st_size and path.is_file():
                yield SessionFile(path, status.st_mtime_ns, status.st_size)


def _status(path: Path) -> stat_result | None:
    try:
        return path.stat()
    except OSError:  # Deleted meanwhile, or a link to nothing.
        return None


def _stored_by_opencode(folder: Path, heads: list[SessionFile]) -> list[SessionFile]:
    """Return the sessions of OpenCode's database, and those in files that the database does not hold."""
    database = folder / "opencode.db"
    stored: dict[str, SessionFile] = {}
    if is_database(str(database)):
        try:
            stored = {
                session.name: SessionFile(Path(f"{database}#{session.name}"), session.time * 1_000_000, session.size)
                for session in sessions_in(str(database))
            }
        except BadTranscript:  # Another program replaced it.
            stored = {}
    for head in heads:
        try:
            document = decode_or_nothing(head.path.read_bytes())
        except OSError:
            continue
        if head.path.stem not in stored and is_stored(document) and not document.get("parentID"):
            stored[head.path.stem] = head
    return list(stored.values())


def project_of(path: Path, client: Client) -> str:
    """Return the folder in which a session began; "" if the file does not say it."""
    if client == "gemini":  # Its files name only a hash. Newer versions name the folder after the project.
        name = path.parent.parent.name
        return "" if len(name) == 64 else name
    file, mark, name = str(path).rpartition("#")
    if mark and client == "opencode":
        found = {session.name: session.folder for session in sessions_in(file)}
        return found.get(name, "")
    try:
        with path.open("rb") as opened:
            head = opened.read(_HEAD_BYTES)
            if b"\n" not in head:
                head += opened.readline(1 << 20)
    except OSError:
        return ""
    for line in head.splitlines() if path.suffix == ".jsonl" else [head]:
        try:
            if project := msgspec.json.decode(line, type=_Line).project():
                return project
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        if client == "codex":  # Only the first line says it.
            return ""
    return ""
