"""`foveate inspect`: pages in the browser that show what a model saw, turn by turn."""

from __future__ import annotations

import os
import secrets
import sys
from typing import Annotated

from cyclopts import Parameter

from ..errors import BadSetting, MissingExtra
from .options import settings_of, store_url

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
) -> int:
    """Show in the browser what a model saw of a conversation, turn by turn, and change it there.

    Example: `foveate inspect`, or `foveate inspect chats.db session.jsonl`

    Parameters
    ----------
    sources
        Stores (a SQLite file or a URL) and recordings. Default: your own store, and the sessions of Claude Code and
        Codex on this computer.
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
    """
    import threading
    import webbrowser

    try:
        from ..inspector.access import Access
        from ..inspector.app import build_app
        from ..inspector.server import serve
        from ..inspector.sources import StoreSource
        from ..proxy.settings import is_loopback, token_key
    except ModuleNotFoundError as error:
        raise MissingExtra("The inspector", "inspect") from error
    if not 0 <= (port or 0) < 65_536:
        raise BadSetting(f"--port must be a port, not {port}.")
    owner = settings_of()["tenant"] if tenant is None else tenant
    token = "" if is_loopback(host) else os.environ.get(TOKEN) or secrets.token_urlsafe(32)
    found = [StoreSource(store_url(source), tenant=owner, is_read_only=read_only) for source in sources]
    access = Access(tokens={token_key(token): owner} if token else {}, tenant=owner, is_read_only=read_only)

    def begun(used: int) -> None:
        name = f"[{host}]" if ":" in host else host
        address = f"http://{name}:{used}/{f'?token={token}' if token else ''}"
        print(f"Serving {address}. Stop with Ctrl-C.", file=sys.stderr)
        if not no_browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    serve(build_app(sources=found, access=access), host, port, default_port=PORT, begun=begun)
    return 0
