"""`foveate inspect`: pages in the browser that show what a model saw, turn by turn."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from cyclopts import Parameter

from ..errors import BadSetting, MissingExtra
from .files import write_whole
from .options import policies_of, settings_of, store_of
from .text import complain

if TYPE_CHECKING:
    from ..inspector.sources import Source
    from ..settings import Settings

__all__ = ["PORT", "TOKEN", "inspect"]

PORT = 8788
"""The port of the pages, unless another one is named. A taken port is replaced by a free one."""
TOKEN = "FOVEATE_INSPECT_TOKEN"
"""The environment variable with the token that browsers of other computers send once."""


def inspect(
    *sources: str,
    port: int | None = None,
    host: str = "127.0.0.1",
    no_browser: Annotated[bool, Parameter(name="--no-browser")] = False,
    read_only: bool = False,
    tenant: str | None = None,
    policy: str | None = None,
    window: int | None = None,
    reader: Annotated[str | None, Parameter(name="--format")] = None,
    export: Path | None = None,
    name: str | None = None,
) -> int:
    """Show in the browser what a model saw of a conversation, turn by turn, and change it there.

    Example: `foveate inspect`, or `foveate inspect chats.db session.jsonl`

    Parameters
    ----------
    sources
        Stores (a SQLite file or a URL) and recordings. Default: your own store, and the sessions of agent
        programs on this computer.
    port
        The port to listen at (default: 8788, or a free one if it is taken).
    host
        The address to listen at (default: 127.0.0.1). Any other than this computer's needs a token, in the variable
        FOVEATE_INSPECT_TOKEN; if that is not set, a new token is printed.
    no_browser
        Print the address and open no browser.
    read_only
        Refuse everything that changes a conversation.
    tenant
        For stores: the tenant (default: from the settings, else the empty one).
    policy
        For recordings: the policy of the replay (default: from the settings, else balanced).
    window
        For recordings: the model's window in tokens (default: that of the recording's model, else 200000).
    reader
        For recordings: the format, if detection fails. An unknown name lists the formats.
    export
        Write one self-contained HTML file for each conversation into this folder, and serve nothing.
    name
        Export only this conversation.
    """
    try:
        from ..inspector.access import Access
        from ..inspector.app import app_with
        from ..inspector.recorded import ClientSource, RecordingSource
        from ..inspector.server import serve
        from ..inspector.sources import StoreSource
        from ..replay.recordings.session_folders import CLIENTS
        from ..requests.access import is_loopback, token_key
    except ModuleNotFoundError as error:
        raise MissingExtra("The inspector", "inspect") from error
    if not 0 <= (port or 0) < 65_536:
        raise BadSetting(f"--port must be a port, not {port}.")
    if window is not None and window < 1:
        raise BadSetting(f"--window must be a whole number above 0, not {window}.")
    if export is not None and not sources:
        raise BadSetting("--export needs a store or a recording: foveate inspect chats.db --export out")
    (chosen,) = policies_of(policy, None)
    settings = settings_of()
    owner = settings["tenant"] if tenant is None else tenant
    token = "" if is_loopback(host) else os.environ.get(TOKEN, "").strip() or secrets.token_urlsafe(32)
    found: list[Source] = []
    recordings: list[Path] = []
    for place in sources or default_stores(settings):
        url = store_of(place)
        if url is None:
            recordings.append(_checked_recording(place, reader))
        else:
            found.append(StoreSource(url, tenant=owner, is_read_only=read_only))
    if recordings:
        found.append(RecordingSource(recordings, policy=chosen, window=window, reader=reader))
    if not sources:
        clients = (ClientSource.found(client, dict(os.environ), policy=chosen) for client in CLIENTS)
        found += [client for client in clients if client is not None]
    if not found:
        raise BadSetting("There is nothing to show yet. Name a store or a recording: foveate inspect session.jsonl")
    for source in found:
        source.list("", 0, 1)  # Raises what is wrong with it before the browser opens.
    if export is not None:
        return _export(found, export, name)
    if name is not None:
        raise BadSetting("--name names the conversation to export. Add --export FOLDER.")
    access = Access(tokens={token_key(token): owner} if token else {}, tenant=owner, is_read_only=read_only)

    def begun(used: int) -> None:
        import threading
        import webbrowser

        name = f"[{host}]" if ":" in host else host
        query = f"?token={quote(token, safe='')}" if token else ""
        address = f"http://{name}:{used}/{query}"
        print(f"Serving {address}. Stop with Ctrl-C.", file=sys.stderr)
        if not no_browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    serve(app_with(sources=found, access=access), host, port, default_port=PORT, begun=begun)
    return 0


def default_stores(settings: Settings) -> list[str]:
    """Return the store of the settings, else that of `foveate chat` and `foveate proxy` if it exists."""
    from .chat.options import data_path

    if settings.values["store"].source != "default":
        return [str(settings["store"])]
    file = data_path() / "chats.db"
    return [f"sqlite:///{file}"] if file.exists() else []


def _checked_recording(name: str, reader: str | None) -> Path:
    """Return the path of a recording. Raises BadTranscript and UnknownFormat if it is none."""
    from ..replay.recordings import read_recording

    read_recording(name, lenient=True, format=reader)
    return Path(name)


def _export(sources: Sequence[Source], folder: Path, name: str | None) -> int:
    """Write the files of conversations. The exit code is 1 if there is none."""
    from ..core.plurals import plural
    from ..inspector.saved.export import html_files
    from .output import encodable

    if folder.exists() and not folder.is_dir():
        raise BadSetting(f"--export needs a folder, and {folder} is a file.")
    written = 0
    try:
        for file, html in html_files(sources, name=name):
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / file, html.encode("utf-8", errors="replace"))
            written += 1
            print(encodable(str(folder / file)))
    finally:
        for source in sources:
            source.close()
    if not written:
        what = "is no conversation to export" if name is None else f"is no conversation {name!r} in these sources"
        complain(f"foveate: There {what}.")
        return 1
    print(f"{plural(written, 'file')} in {folder}.", file=sys.stderr)
    return 0
