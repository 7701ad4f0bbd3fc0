"""The sessions that Claude Code and Codex record on this computer, as conversations that can be searched.

A client's own compaction takes messages away from its model, but not from its file. A file is read again when it has
grown. All of its messages count as hidden, because the file does not show what the client still sends.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import Literal

from msgspec import Struct

from ..conversation import Conversation
from ..core.edits import Hide, Span
from ..core.messages import Message
from ..errors import BadInput, BadSetting, BadTranscript, NoSuchConversation, UnknownFormat
from ..open import open_conversation
from ..replay.recordings import read_recording
from ..replay.recordings.session_folders import project_of, session_files, session_folder

__all__ = ["SessionFiles"]

_MAX_SESSIONS = 50
"""Sessions that are listed, newest first."""
_MAX_OPEN = 4
"""Sessions whose messages stay in memory."""


class _Session(Struct):
    """A session that was read."""

    version: tuple[int, int]
    """Time of the last change and size of the file."""
    messages: list[Message]
    chat: Conversation


class SessionFiles:
    """The sessions of one client in one project, newest first; each is named by the stem of its file."""

    has_views = False
    """Whether views exist: False, since a client's files have none."""

    def __init__(
        self,
        client: Literal["claude-code", "codex"],
        project: Path | None = None,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`project`: the folder that the client works in, or one session's file (default: the current folder).

        The sessions are those of `~/.claude/projects` (`$CLAUDE_CONFIG_DIR`) or `~/.codex/sessions` (`$CODEX_HOME`).
        Raises BadSetting if a named file does not exist.
        """
        variables = os.environ if environ is None else environ
        self._client, self._project = client, (project or Path()).absolute()
        self._folder = session_folder(client, variables)
        if self._project.suffix != ".jsonl":
            self._project = self._project.resolve()  # Clients record the folder without links.
        elif not self._project.is_file():
            raise BadSetting(f"There is no session file {self._project}.")
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}

    def names(self) -> Sequence[str]:
        """Return the names of the sessions, the newest first."""
        return [path.stem for path in self._files()]

    @contextmanager
    def open(self, name: str) -> Iterator[Conversation]:
        """Return the conversation of a session."""
        path = next((path for path in self._files() if path.stem == name), None)
        if path is None:
            raise NoSuchConversation(name, f"the sessions of {self._project}; list_conversations lists them")
        with self._lock:
            chat = self._read(path)
        yield chat

    def _files(self) -> list[Path]:
        if self._project.suffix == ".jsonl":
            return [self._project]
        if self._client == "claude-code":
            # Claude Code names the folder of a project by its path, with a dash for every other character.
            folder = self._folder / re.sub(r"[^A-Za-z0-9]", "-", str(self._project))
            return [file.path for file in session_files(folder)][:_MAX_SESSIONS]
        newest = (file.path for file in session_files(self._folder))
        return list(islice((path for path in newest if self._is_of_project(path)), _MAX_SESSIONS))

    def _is_of_project(self, path: Path) -> bool:
        """Return whether a session of Codex began in the project's folder or below it."""
        folder = project_of(path, "codex")
        return bool(folder) and Path(folder).is_relative_to(self._project)

    def _read(self, path: Path) -> Conversation:
        """Return the conversation with everything that the file holds now."""
        status = path.stat()
        version = (status.st_mtime_ns, status.st_size)
        known = self._sessions.pop(path.stem, None)
        if known is None or known.version != version:
            try:
                recording = read_recording(path, lenient=True)  # The client may be writing the last line.
            except (BadTranscript, UnknownFormat) as error:
                raise BadInput(f"Session {path.stem} cannot be read: {error}") from error
            messages = [recorded.message for recorded in recording.messages]
            known = _Session(version, messages, _hidden(path.stem, messages, known))
        self._sessions[path.stem] = known
        while len(self._sessions) > _MAX_OPEN:
            del self._sessions[next(iter(self._sessions))]  # Not closed: another call may be reading it.
        return known.chat


def _hidden(name: str, messages: list[Message], known: _Session | None) -> Conversation:
    """Return a conversation with these messages, all hidden. One that has the first of them is continued."""
    if known is not None and messages[: len(known.messages)] == known.messages:
        chat, new = known.chat, messages[len(known.messages) :]
    else:
        chat, new = open_conversation(name, store="memory:", policy="off", window=200_000, expand=True), messages
    # The last input of a user would stay in view, but here no input waits for a reply.
    added = [
        (kind, chat.append(list(group), origin="derived" if kind == "user" else None)) for kind, group in _by_kind(new)
    ]
    if ids := [id for kind, group in added if kind != "system" for id in group]:
        chat.edit(Hide(Span(ids[0], ids[-1]), reason="a message of a recorded session"))
    return chat


def _by_kind(messages: Sequence[Message]) -> Iterator[tuple[str, Iterator[Message]]]:
    """Yield the messages by kind, in order: inputs of the user, system prompts, and others."""
    return groupby(messages, lambda message: message.role if message.role in ("user", "system") else "other")
