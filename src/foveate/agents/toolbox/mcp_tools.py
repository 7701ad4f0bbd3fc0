"""Tools of MCP servers, over the official `mcp` package (extra `mcp`).

A server that was lost is started or reached again before the next call. A call that was sent is never sent again: if
its answer is lost, the model learns that it is not known whether the call was carried out.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
import weakref
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from pathlib import PurePath
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ...conversation import validate
from ...core.tool_names import tool_name
from ...errors import BadInput, BadSetting, MissingExtra
from ..tools import OutcomeUnknown, Tool, ToolFailed

__all__ = ["McpServer", "mcp"]

T = TypeVar("T")

_log = logging.getLogger("foveate")
_CLOSED = -32000
"""JSON-RPC code of the SDK's error for a connection that was closed (`mcp.types.CONNECTION_CLOSED`)."""
_IDLE = 10.0
"""Seconds after which a connection is probed before the next call."""
_PROBE_TIMEOUT = 5.0
"""Seconds that a probe may take, and the end of a connection."""
_PAGES = 1_000
"""Pages of the list of tools that are read at most."""
_LONGEST = 1_000
"""Characters of an error that the model receives."""


def mcp(
    server: object,
    *,
    prefix: str = "",
    only: Collection[str] | None = None,
    needs_approval: bool | Collection[str] = False,
    timeout: float = 60.0,
) -> McpServer:
    """Return the tools of an MCP server, as a context manager: `with mcp([...]) as tools:`.

    `server`: a command as a list of texts, a URL (streamable HTTP), a dict as in the files of MCP clients
    (`{"command": ..., "args": ..., "env": ...}` or `{"url": ...}`), anything else that `mcp.Client` takes, or an open
    `ClientSession` or `Client`. An open session belongs to its event loop: use `async with` then. `prefix`: precedes
    the names of the tools. `only`: names of the tools to use, as the server lists them (default: all).
    `needs_approval`: whether calls need approval, or the names of the tools whose calls do. `timeout`: seconds that
    connecting may take, and each call.

    `with` opens the connection in a thread; its tools serve agents of every kind. `async with` opens it in the running
    event loop; its tools serve async agents. Raises BadSetting for other values, and MissingExtra without the package.
    """
    return McpServer(server, prefix, only, needs_approval, timeout)


class McpServer:
    """An MCP server and its tools. Create it with `mcp`."""

    def __init__(
        self,
        server: object,
        prefix: str,
        only: Collection[str] | None,
        needs_approval: bool | Collection[str],
        timeout: float,
    ) -> None:
        """See `mcp`."""
        for name, names in (("only=", only), ("needs_approval=", needs_approval)):
            if isinstance(names, str) or not isinstance(names, bool | Collection | None):
                raise BadSetting(f"{name} must be a list of names of tools, not {names!r:.60}.")
        validate.text("prefix=", prefix)
        self._prefix, self._only, self._needs_approval = prefix, only, needs_approval
        if not (type(timeout) in (int, float) and timeout > 0):
            raise BadSetting(f"timeout= must be seconds above 0, not {timeout!r:.60}.")
        self._timeout = timeout
        self._is_session = _is_session(server)
        self._open_client, self.name = _opener(server)
        """Its name for people: the server's own as soon as it is known."""
        self._connection: _Connection | None = None
        self._thread: _LoopThread | None = None
        self._tools: tuple[Tool, ...] = ()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<McpServer {self.name}: {len(self._tools)} tools>"

    # ------------------------------------------------------------------------------------------------- in a thread

    def open(self) -> tuple[Tool, ...]:
        """Connect, if that is not done yet, and return the tools. Raises BadInput if the server cannot be reached."""
        if self._is_session:
            raise BadSetting("An open session belongs to its event loop. Use `async with mcp(session) as tools:`.")
        with self._lock:
            if self._connection is None:
                thread = _LoopThread()
                connection = _Connection(self._open_client, self.name, self._timeout)

                def calling(name: str, shown: str) -> Callable[..., object]:
                    def call(**arguments: Any) -> object:
                        return thread.run(connection.call(name, arguments, shown))

                    return call

                try:
                    listed = thread.run(connection.list_tools())
                    self.name = connection.name
                    self._tools = self._tools_of(listed, calling)
                except BaseException:
                    thread.close(connection)
                    raise
                self._connection, self._thread = connection, thread
                weakref.finalize(self, thread.close, connection)
        return self._tools

    def close(self) -> None:
        """Close the connection. A server that was started as a command ends. Tools that are called later fail."""
        with self._lock:
            if self._connection is not None and self._thread is not None:
                self._thread.close(self._connection)
                self._connection = self._thread = None

    def __enter__(self) -> tuple[Tool, ...]:
        return self.open()

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --------------------------------------------------------------------------------------------- in the running loop

    async def __aenter__(self) -> tuple[Tool, ...]:
        if self._connection is not None:
            raise BadInput(f"The MCP server {self.name} is open already. Create a second one with mcp().")
        connection = _Connection(self._open_client, self.name, self._timeout)

        def calling(name: str, shown: str) -> Callable[..., object]:
            async def call(**arguments: Any) -> object:
                return await connection.call(name, arguments, shown)

            return call

        try:
            listed = await connection.list_tools()
            self.name = connection.name
            self._tools = self._tools_of(listed, calling)
        except BaseException:
            await connection.close()
            raise
        self._connection = connection
        return self._tools

    async def __aexit__(self, *exc: object) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    # ----------------------------------------------------------------------------------------------------------- tools

    def _tools_of(
        self, listed: Sequence[Mapping[str, Any]], calling: Callable[[str, str], Callable[..., object]]
    ) -> tuple[Tool, ...]:
        """Return a Tool for each listed tool. A tool that no provider accepts is left out, with a warning."""
        tools: list[Tool] = []
        for definition in listed:
            name = definition["name"]
            if self._only is not None and name not in self._only:
                continue
            hints = definition.get("annotations") or {}
            needs = self._needs_approval
            try:
                local = Tool(
                    name=f"{self._prefix}{name}",
                    description=definition.get("description") or definition.get("title") or hints.get("title") or "",
                    parameters={"type": "object", "properties": {}, **(definition.get("inputSchema") or {})},
                    call=calling(name, tool_name(f"{self._prefix}{name}")),
                    needs_approval=needs if isinstance(needs, bool) else name in needs,
                    is_repeatable=bool(hints.get("readOnlyHint") or hints.get("idempotentHint")),
                )
            except BadSetting as error:
                _log.warning("%s: the tool %s is left out: %s", self.name, name, error)
                continue
            tools.append(local)
        known = {definition["name"] for definition in listed}
        asked = {*(self._only or ()), *(() if isinstance(self._needs_approval, bool) else self._needs_approval)}
        if missing := sorted(asked - known):
            raise BadSetting(
                f"The MCP server {self.name} has no tool {', '.join(missing)}. It has {', '.join(sorted(known))}."
            )
        return tuple(tools)


# ------------------------------------------------------------------------------------------------------ the connection


class _Connection:
    """A connection to a server, made again when it is lost. All methods run in one event loop."""

    def __init__(self, open_client: Callable[[], AbstractAsyncContextManager[Any]], name: str, timeout: float) -> None:
        self._open_client, self.name, self._timeout = open_client, name, timeout
        self._client: Any = None
        self._serving: asyncio.Task[None] | None = None
        """Holds the client open: the SDK requires that one task opens and closes it."""
        self._stop = asyncio.Event()
        self._lock = asyncio.Lock()
        self._calls = 0
        """Calls in progress."""
        self._is_lost = False
        """Whether a call failed because the connection was closed."""
        self._is_suspect = False
        """Whether a call failed in a way that the connection may not have survived."""
        self._last_answer = 0.0
        self._is_closed = False

    async def list_tools(self) -> list[Mapping[str, Any]]:
        """Return the definitions of all tools, with the protocol's names of fields. Raises BadInput."""
        try:
            client = await self._connected()
            return await asyncio.wait_for(_list_tools(client), self._timeout)
        except BadInput:
            raise
        except Exception as error:
            raise BadInput(f"The MCP server {self.name} did not list its tools: {_text(error)}.") from error

    async def call(self, name: str, arguments: dict[str, Any], shown: str) -> object:
        """Return the result of a call. Raises ToolFailed, in words for the model, which knows the tool as `shown`."""
        try:
            client = await self._connected()
        except Exception as error:
            raise ToolFailed(f"{shown} was not called. {_text(error)}. Try it later, or do without it.") from error
        serving = self._serving
        assert serving is not None, "`_connected` starts it."
        self._calls += 1
        call = asyncio.ensure_future(client.call_tool(name, arguments))
        try:
            await asyncio.wait({call, serving}, timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                self._is_suspect = True
                if serving.done():
                    raise OutcomeUnknown(self._lost(shown))
                raise ToolFailed(
                    f"{shown} did not answer within {self._timeout:g} seconds and was given up; a part of its work may "
                    "be done. Look what became of it, or ask it for less."
                )
            if (failure := call.exception()) is not None:
                is_lost = getattr(failure, "code", None) == _CLOSED or isinstance(failure, OSError)
                self._is_lost = self._is_lost or (is_lost and client is self._client)
                self._is_suspect = self._is_suspect or not _is_answer(failure)
                if is_lost:
                    raise OutcomeUnknown(self._lost(shown)) from failure
                raise ToolFailed(f"{shown} failed: {_text(failure)}") from failure
            self._last_answer = time.monotonic()
            return call.result()
        finally:
            self._calls -= 1
            if not call.done():
                call.cancel()

    def _lost(self, name: str) -> str:
        return (
            f"It is not known whether {name} was carried out: the MCP server {self.name} ended while it was going on. "
            "Look what became of it before you call it again."
        )

    async def _connected(self) -> Any:
        """Return a client whose connection works, as far as that is known. Raises BadInput."""
        async with self._lock:
            if self._is_closed:
                raise BadInput(f"The connection to the MCP server {self.name} is closed")
            is_lost = self._is_lost or self._serving is None or self._serving.done()
            is_doubtful = self._is_suspect or time.monotonic() - self._last_answer > _IDLE
            if not is_lost and is_doubtful and not self._calls:  # A busy server may be slow to answer.
                is_lost = not await self._is_alive()
            if is_lost:
                await self._disconnect()
                await self._connect()
            return self._client

    async def _is_alive(self) -> bool:
        """Return whether the server still answers. Listing tools has no effect."""
        with suppress(Exception):
            await asyncio.wait_for(getattr(self._client, "session", self._client).list_tools(), _PROBE_TIMEOUT)
            self._is_suspect, self._last_answer = False, time.monotonic()
            return True
        return False

    async def _connect(self) -> None:
        opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._stop = stop = asyncio.Event()

        async def serve() -> None:
            try:
                async with self._open_client() as client:
                    info = getattr(client, "server_info", None)
                    self.name = getattr(info, "name", "") or self.name
                    opened.set_result(client)
                    await stop.wait()
            except Exception as error:
                if opened.done():
                    _log.warning("The connection to the MCP server %s broke off: %s", self.name, _text(error))
                else:
                    opened.set_exception(error)

        self._serving = asyncio.ensure_future(serve())
        try:
            self._client = await asyncio.wait_for(opened, self._timeout)
        except Exception as error:
            await self._disconnect()
            why = f" within {self._timeout:g} seconds" if isinstance(error, TimeoutError) else f": {_text(error)}"
            raise BadInput(f"The MCP server {self.name} cannot be reached{why}") from error
        self._is_lost, self._is_suspect, self._last_answer = False, False, time.monotonic()

    async def _disconnect(self) -> None:
        serving, self._serving, self._client = self._serving, None, None
        if serving is not None:
            self._stop.set()
            await asyncio.wait({serving}, timeout=_PROBE_TIMEOUT)
            if not serving.done():
                serving.cancel()
                await asyncio.wait({serving}, timeout=_PROBE_TIMEOUT)

    async def close(self) -> None:
        """Close the connection for good."""
        self._is_closed = True
        await self._disconnect()


class _LoopThread:
    """An event loop in its own thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="foveate-mcp", daemon=True)
        self._thread.start()

    def run(self, routine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, and wait for its result."""
        if not self._thread.is_alive():
            routine.close()
            raise ToolFailed("The connection to the MCP server is closed.")
        return asyncio.run_coroutine_threadsafe(routine, self._loop).result()

    def close(self, connection: _Connection) -> None:
        """Close the connection, end the loop and the thread."""
        if not self._thread.is_alive():
            return
        with suppress(Exception):
            asyncio.run_coroutine_threadsafe(connection.close(), self._loop).result(4 * _PROBE_TIMEOUT)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PROBE_TIMEOUT)
        if not self._thread.is_alive():
            self._loop.close()


async def _list_tools(client: Any) -> list[Mapping[str, Any]]:
    """Return the definitions of all tools, page by page."""
    takes_cursor = "cursor" in inspect.signature(client.list_tools).parameters
    definitions: list[Mapping[str, Any]] = []
    page = await client.list_tools()
    for _ in range(_PAGES):
        fields = page.model_dump(by_alias=True, mode="json", exclude_none=True)
        definitions += fields["tools"]
        cursor = fields.get("nextCursor")
        if not cursor:
            break
        if takes_cursor:
            page = await client.list_tools(cursor=cursor)
        else:
            from mcp.types import PaginatedRequestParams

            page = await client.list_tools(params=PaginatedRequestParams(cursor=cursor))
    return definitions


# ------------------------------------------------------------------------------------------------------ what it is


def _is_session(server: object) -> bool:
    """Return whether this is an open session: a `ClientSession`, or a `Client` that was entered."""
    has_calls = callable(getattr(server, "call_tool", None)) and callable(getattr(server, "list_tools", None))
    if not has_calls or not _is_of_mcp_client(server):
        return False
    return getattr(server, "_session", server) is not None


def _is_of_mcp_client(server: object) -> bool:
    """Return whether a client's class made this, not a server's, which has the same methods."""
    return any("client" in kind.__module__ for kind in type(server).__mro__) or not any(
        kind.__module__.startswith("mcp.") for kind in type(server).__mro__
    )


def _opener(server: object) -> tuple[Callable[[], AbstractAsyncContextManager[Any]], str]:
    """Return a function that opens a client, and the server's name for people. Raises BadSetting."""
    if _is_session(server):
        return partial(nullcontext, server), "session"
    try:
        from mcp import Client, StdioServerParameters
    except ImportError:
        raise MissingExtra("A tool of an MCP server", "mcp") from None
    if isinstance(server, Client):
        raise BadSetting("This Client is not open. Pass what it would connect to, or open it with `async with` first.")
    match server:
        case str() if not server.startswith(("http://", "https://")):
            raise BadSetting(f"server= must be a URL or a list such as ['npx', 'SERVER'], not the text {server!r:.60}.")
        case str():
            return partial(Client, server), urlsplit(server).hostname or "server"
        case {"url": str(url), **more}:
            _refuse(more.keys() - {"type"})
            return _opener(url)
        case {"command": str(command), **more}:
            _refuse(more.keys() - {"args", "env", "cwd", "type"})
            fields: Any = {key: value for key, value in more.items() if key != "type"}
            return partial(Client, StdioServerParameters(command=command, **fields)), PurePath(command).name
        case [str(command), *rest] if all(isinstance(item, str) for item in rest):
            return partial(Client, StdioServerParameters(command=command, args=rest)), PurePath(command).name
        case None | bool() | int() | float() | bytes() | Mapping() | list() | tuple():
            raise BadSetting(f"server= must be a command, a URL, or a session of the package mcp, not {server!r:.60}.")
        case _:
            return partial(Client, server), str(getattr(server, "name", None) or "server")


def _refuse(keys: Collection[Any]) -> None:
    if keys:
        raise BadSetting(f"The dict of an MCP server has the unknown key {', '.join(map(str, keys))}. Leave it out.")


def _is_answer(error: BaseException) -> bool:
    """Return whether the server itself answered with this error, so that the connection works."""
    code = getattr(error, "code", None)
    return isinstance(code, int) and code != _CLOSED


def _text(error: BaseException) -> str:
    """Return an error as one line without a period. Of a group of errors: the first one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:_LONGEST].rstrip(".")
