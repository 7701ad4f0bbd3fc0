"""The server process of `foveate inspect`."""

from __future__ import annotations

import socket
from collections.abc import Callable
from types import FrameType
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
        timeout_graceful_shutdown=2,
    )
    with listening:
        begun(listening.getsockname()[1])
        _Server(config, app.state.page.watchers.stop).run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that ends the streams of live pages when it stops, since these do not end by themselves."""

    def __init__(self, config: uvicorn.Config, end_streams: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_streams = end_streams

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._end_streams()


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
