"""The server process of a proxy: uvicorn with limits on the head of a request, and its workers."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from typing import Any, Final

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.supervisors import Multiprocess

from ..errors import BadSetting
from ..open import open_store
from .app import build_app
from .collector import spare_collector
from .records import write_log
from .settings import ProxySettings
from .web_socket import RESTART

__all__ = ["SHUTDOWN_SECONDS", "check_start", "config_of", "serve"]

_HEAD_SECONDS: Final = 30
"""Time for the line and the headers of a request."""
_HEAD_BYTES: Final = 64_000
"""Size of the headers of a request."""
_KEEP_ALIVE_SECONDS: Final = 75
SHUTDOWN_SECONDS: Final = 300
"""Time for answers to end when the server stops."""


def check_start(settings: ProxySettings) -> None:
    """Raise BadSetting if another program has the address, and StoreError if the store cannot be opened."""
    host, port = settings.host, settings.port
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (")[0]
        raise BadSetting(
            f"The proxy cannot listen at {host}:{port}: {reason}. Choose another port with --port."
        ) from error
    open_store(settings.store, synchronous="normal").close()


def serve(settings: ProxySettings, *, workers: int = 1) -> None:
    """Serve until the process gets SIGINT or SIGTERM; then let the answers end."""
    if workers == 1:
        write_log(is_json=settings.is_log_json)
        config = config_of(settings)
        spare_collector()
        uvicorn.Server(config).run()
        return
    with tempfile.TemporaryDirectory(prefix="foveate-proxy-") as counters:
        msgspec.structs.replace(settings, counters=counters).to_environment()
        write_log(is_json=settings.is_log_json)
        config = uvicorn.Config("foveate.proxy.app:worker_app", factory=True, workers=workers, **_options(settings))
        Workers(config, [config.bind_socket()]).run()


def config_of(settings: ProxySettings) -> uvicorn.Config:
    """Return the configuration of a server with one process."""
    return uvicorn.Config(build_app(settings), **_options(settings))


def _options(settings: ProxySettings) -> dict[str, Any]:
    return {
        "host": settings.host,
        "port": settings.port,
        "http": LimitedProtocol,
        "ws": DrainedProtocol,
        "ws_max_size": settings.max_body,
        "lifespan": "on",
        "log_config": None,
        "access_log": False,
        "proxy_headers": False,
        "server_header": False,
        "date_header": False,
        "timeout_keep_alive": _KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": SHUTDOWN_SECONDS,
    }


class Workers(Multiprocess):
    """Refuses connections while the workers stop, as a server with one process does."""

    def terminate_all(self) -> None:
        super().terminate_all()
        for listener in self.sockets:  # Until all are closed, connections are accepted that no worker serves.
            listener.close()


class LimitedProtocol(HttpToolsProtocol):
    """Closes connections whose headers take too long or are too large."""

    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # As uvicorn has it.
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(_HEAD_SECONDS, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0
        if self._head_timer is None:  # A later request of the connection.
            self._head_timer = self.loop.call_later(_HEAD_SECONDS, self.transport.close)

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_timer()
        super().on_headers_complete()

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > _HEAD_BYTES:
            raise ValueError("The headers are too large.")  # The parser reports it as an error of the request: 400.

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class DrainedProtocol(WebSocketsSansIOProtocol):
    """Lets the answers of a WebSocket connection end when the server stops. The application then closes it."""

    def shutdown(self) -> None:
        if self.handshake_complete and not self.close_sent:
            self.queue.put_nowait({"type": "websocket.disconnect", "code": RESTART, "reason": None})
        else:
            super().shutdown()
