"""Recordings as sources: files that are named, and the sessions of agent programs on this computer.

A recording is replayed into memory under a policy when it is first opened. Actions change this copy, never the file,
and the copy is lost when the program ends. A file that has grown since is replayed again.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from ..conversation import Conversation
from ..errors import NoSuchConversation
from ..models.known import format_of_model
from ..open import Options, open_conversation, open_store
from ..policies import DEFAULT_PRESET
from ..ports import Database
from ..ports.completed_store import has_words
from ..replay.corpus import settings_of_recording
from ..replay.recordings import read_recording
from ..replay.recordings.session_folders import TITLES, Client, SessionFile, project_of, session_files, session_folder
from ..replay.run import replay
from .jobs import Jobs, Progress
from .sources import Item, Listing, Preparing, open_stored

__all__ = ["ClientSource", "RecordingSource", "replayed"]

_MAX_OPEN: Final = 6
"""Replayed recordings that stay in memory."""
_PATIENCE: Final = 2.0
"""Seconds that a page waits for a replay before it shows its progress."""


class Replayed(Struct, frozen=True):
    """A recording in memory."""

    version: tuple[int, int]
    """Time of the last change and size of the file."""
    store: Database
    """The store in memory, with the forks that a person made."""
    chat: Conversation
    """The conversation of the file."""


class RecordingSource:
    """Some recorded files. Each is named by its path, as it was given or below a folder."""

    is_read_only = False

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        key: str = "recordings",
        title: str = "Recordings",
        policy: str = DEFAULT_PRESET,
        window: int | None = None,
        reader: str | None = None,
    ) -> None:
        """`window`: tokens (default: that of the recording's model). `reader`: the format, if detection fails."""
        self.key, self.title, self._paths = key, title, list(paths)
        self.note = f"Replayed in memory under {policy}. Changes stay in memory; the files are not changed."
        self._policy, self._window, self._reader = policy, window, reader
        self._jobs = Jobs()
        self._lock = threading.Lock()
        self._replayed: OrderedDict[str, Replayed] = OrderedDict()

    def files(self) -> dict[str, SessionFile]:
        """Return the files by their names, newest first."""
        found = {}
        for path in self._paths:
            try:
                status = path.stat()
            except OSError:  # Moved or deleted since the inspector started.
                continue
            found[str(path)] = SessionFile(path, status.st_mtime_ns, status.st_size)
        return dict(sorted(found.items(), key=lambda item: -item[1].time))

    def item(self, name: str, file: SessionFile) -> Item:
        """Return the line of a list for a file."""
        return Item(name, file.path.name, str(file.path.parent), file.time // 1_000_000, size=file.size)

    def list(self, query: str, first: int, limit: int) -> Listing:
        words = query.split()[:8]
        found = [(name, file) for name, file in self.files().items() if has_words(self.searched(name, file), words)]
        return Listing(tuple(self.item(name, file) for name, file in found[first : first + limit]), len(found))

    def searched(self, name: str, file: SessionFile) -> str:
        """Return the text in which words of a query are found."""
        return name

    def is_known(self, name: str) -> bool:
        with self._lock:
            return name in self._replayed

    @contextmanager
    def open(self, name: str) -> Iterator[Conversation]:
        file = self.files().get(name)
        if file is None:
            yield self._fork(name)
            return
        version = file.time, file.size
        with self._lock:
            known = self._replayed.get(name)
            if known is not None and known.version == version:
                self._replayed.move_to_end(name)
        if known is None or known.version != version:
            known = self._replay(name, file, version)
        yield known.chat

    def close(self) -> None:
        self._jobs.close()

    def _fork(self, name: str) -> Conversation:
        """Return a conversation that a person made of a replayed one."""
        with self._lock:
            stores = [known.store for known in self._replayed.values()]
        for store in stores:
            if name in store.names(""):
                return open_stored(store, store.open("", name, create=False))
        raise NoSuchConversation(name, self.title)

    def _replay(self, name: str, file: SessionFile, version: tuple[int, int]) -> Replayed:
        """Return the replayed file. Raises Preparing if that takes longer, and what `read_recording` raises."""

        def run(progress: Progress) -> Replayed:
            chat = replayed(file.path, self._policy, self._window, self._reader, progress)
            return Replayed(version, chat._session.state.store, chat)

        job = self._jobs.start("", (name, version), run)
        if not job.wait(_PATIENCE):
            raise Preparing(file.path.name, job.done / job.total if job.total else 0.0)
        if job.status != "done":
            raise job.failure.with_traceback(None) if job.failure else NoSuchConversation(name, self.title)
        known: Replayed = job.result
        with self._lock:
            self._replayed[name] = known
            self._replayed.move_to_end(name)
            while len(self._replayed) > _MAX_OPEN:
                self._replayed.popitem(last=False)
        return known


class ClientSource(RecordingSource):
    """The sessions that a client recorded on this computer, by project and date."""

    def __init__(self, client: Client, folder: Path, *, policy: str = DEFAULT_PRESET) -> None:
        super().__init__((), key=client, title=f"{TITLES[client]} on this computer", policy=policy)
        self._client, self._folder = client, folder

    @classmethod
    def found(cls, client: Client, environ: dict[str, str], *, policy: str = DEFAULT_PRESET) -> ClientSource | None:
        """Return the sessions of a client; None if there are none."""
        folder = session_folder(client, environ)
        return cls(client, folder, policy=policy) if session_files(folder, client) else None

    def files(self) -> dict[str, SessionFile]:
        files = session_files(self._folder, self._client)
        return {re.sub(r"\.jsonl?$", "", file.path.relative_to(self._folder).as_posix()): file for file in files}

    def item(self, name: str, file: SessionFile) -> Item:
        return Item(name, file.path.stem, _project(file.path, self._client), file.time // 1_000_000, size=file.size)

    def searched(self, name: str, file: SessionFile) -> str:
        date = datetime.fromtimestamp(file.time / 1e9, UTC).date().isoformat()
        return f"{name} {_project(file.path, self._client)} {date}"


@lru_cache(100_000)
def _project(path: Path, client: Client) -> str:
    return project_of(path, client)


def replayed(
    path: Path,
    policy: str = DEFAULT_PRESET,
    window: int | None = None,
    reader: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Conversation:
    """Return a recording as a conversation in memory, with the views that a policy would have made.

    Model, window, prices and format are those of the recording, where it names its model.
    """
    recording = read_recording(path, lenient=True, format=reader)
    model = recording.model
    own_window, provider, prices = settings_of_recording(recording)
    window = window or own_window
    store, name = open_store("memory:"), path.stem[:200].encode("utf-8", "replace").decode()
    replay(
        recording,
        policy=policy,
        window=window,
        provider=provider,
        prices=prices,
        store=store,
        name=name,
        progress=progress,
        names_model=bool(model) and format_of_model(model) in (None, provider),
    )
    return open_conversation(
        name,
        store=store,
        format=provider,
        policy="off",
        window=window,
        expand=True,
        options=Options(tenant="", prices=prices, counter="characters"),
    )
