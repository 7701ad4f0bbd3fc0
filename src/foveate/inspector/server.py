"""The server process of `foveate inspect`."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from ..errors import BadSetting

__all__ = ["serve"]


def serve(app: Any, host: str, port: int | None, *, default_port: int, begun: Callable[[int], None]) -> None:
    """Serve until the process gets SIGINT or SIGTERM. `begun` is called with the port once connections are accepted.

    `port`: None for `default_port`, or a free one if that is taken. Raises BadSetting if no connection can be accepted.
    """
    listening = _listen(host, port, default_port)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,  # Streams of events do not end by themselves.
    )
    with listening:
        begun(listening.getsockname()[1])
        uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int | None, default_port: int) -> socket.socket:
    for wanted in (port,) if port is not None else (default_port, 0):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, wanted))
            listening.listen(128)
        except OSError as error:
            listening.close()
            problem = error
        else:
            return listening
    raise BadSetting(f"{host}:{wanted} cannot be listened at: {problem.strerror or problem}. Choose another --port.")
