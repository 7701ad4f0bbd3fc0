"""The tools and resources of the MCP server.

The server reads the conversations of its source and no others. An answer has at most 20,000 tokens, because clients
cut or refuse longer ones.
"""

# No `from __future__ import annotations`: the SDK reads the annotations of tools, which name values of this module's
# functions.
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Annotated, Any, Final

from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.types import CallToolResult, ContentBlock, ImageContent, TextContent, ToolAnnotations
from pydantic import AnyHttpUrl, BaseModel, Field

from ..conversation import Conversation
from ..core.labels import TITLE, without_labels
from ..core.messages import Content, Media, Text
from ..counters import counter_for
from ..errors import BadInput, FoveateError, NoSuchConversation, UnknownHandle
from ..expand.originals import text_of
from ..version import __version__
from .sources import Source

__all__ = ["MAX_TOKENS", "build_server", "protected"]

MAX_TOKENS: Final = 20_000
"""Tokens of an answer. Claude Code cuts results of MCP tools at 25,000."""
_MAX_LISTED: Final = 50
"""Conversations and shortened messages that a list shows."""
_INSTRUCTIONS: Final = (
    "Older messages of this conversation may be shortened or missing in what you see. Nothing is lost: "
    "`search_history` finds words in them, and `expand` returns one of them by its handle, such as m12."
)
_READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_CHANGES: Final = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)
_ERASES: Final = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True)
_ALWAYS: Final = {"anthropic/alwaysLoad": True}
"""Keeps a tool in every request of Claude Code, which otherwise loads tools of servers on demand."""

Handle = Annotated[str, Field(description='The handle of a message, such as "m12", or of a span: "m3-m17".')]
Name = Annotated[str, Field(description="The conversation; by default the first of list_conversations.")]


class Found(BaseModel):
    """A message that holds the words."""

    handle: str
    turn: int
    author: str
    line: int
    snippet: str


class Shortened(BaseModel):
    """A message that is not shown whole."""

    handle: str
    tokens: int
    original_tokens: int
    text: str


class Status(BaseModel):
    """How full the window is, and what is shortened."""

    conversation: str
    messages: int
    shown_tokens: int
    usable_tokens: int
    hidden_messages: int
    shortened_messages: int
    shortened: list[Shortened]


class Listed(BaseModel):
    """A conversation that may be read."""

    name: str
    messages: int


class Confirmation(BaseModel):
    """The user's answer."""

    erase: bool = Field(description="Erase the message for good?")


def build_server(source: Source, *, name: str = "foveate", **options: Any) -> MCPServer:
    """Return the server of these conversations. `options`: those of the SDK's `MCPServer`, such as `auth=`."""
    server = MCPServer(name, instructions=_INSTRUCTIONS, **{"version": __version__, **options})
    _add_reading(server, source)
    _add_resources(server, source)
    if source.has_views:
        _add_management(server, source)
    return server


def _add_reading(server: MCPServer, source: Source) -> None:
    count = counter_for("")

    @server.tool(annotations=_READS, meta=_ALWAYS)
    def expand(
        handle: Handle,
        lines: Annotated[str, Field(description='Only these lines: "40-80", "40-", "-20".')] = "",
        items: Annotated[str, Field(description="Only these elements, rows or records, in the same form.")] = "",
        pattern: Annotated[str, Field(description="Only the lines that match this regular expression.")] = "",
        conversation: Name = "",
    ) -> CallToolResult:
        """Return a message that is shortened or no longer shown: whole, or only a part of it."""
        arguments = {"handle": handle, "lines": lines, "items": items, "pattern": pattern}
        with _opened(source, conversation) as chat:
            result = chat.expansion(arguments)
            blocks = [_block(part) for part in result.content]
            text = "".join(block.text for block in blocks if isinstance(block, TextContent))
            if (tokens := count(text)) > MAX_TOKENS:
                raise ToolError(
                    f"That part of {handle[:80]} has {tokens:,} tokens, and an answer has at most {MAX_TOKENS:,}. "
                    f"Ask for some of its {text.count(chr(10)) + 1:,} lines, or for a pattern."
                )
        return CallToolResult(content=blocks, is_error=result.state == "error")

    @server.tool(annotations=_READS, meta=_ALWAYS)
    def search_history(
        words: Annotated[str, Field(description='Words to find; words "in quotation marks" stand together.')],
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
        conversation: Name = "",
    ) -> list[Found]:
        """Find words in the messages that are shortened or no longer shown, best first."""
        with _opened(source, conversation) as chat:
            return [
                Found(handle=hit.handle, turn=hit.turn, author=hit.who, line=hit.line, snippet=hit.snippet)
                for hit in chat.search(words, limit=limit)
            ]

    @server.tool(annotations=_READS)
    def list_conversations() -> list[Listed]:
        """List the conversations that this server may read; the first one counts where a call names none."""
        listed: list[Listed] = []
        with _errors_for_the_model():
            for name in source.names()[:_MAX_LISTED]:
                with suppress(BadInput), source.open(name) as chat:  # The file of a session may have no message.
                    listed.append(Listed(name=name, messages=len(chat)))
        return listed


def _add_management(server: MCPServer, source: Source) -> None:
    @server.tool(annotations=_READS)
    def context_status(conversation: Name = "") -> Status:
        """Return how full the window is, and which messages are shortened or hidden."""
        with _opened(source, conversation) as chat:
            view = chat.view
            shrunk = [entry for entry in view if entry.shrunk]
            shown = sum(entry.source is not None for entry in view)
            return Status(
                conversation=chat.name,
                messages=len(chat),
                shown_tokens=view.tokens,
                usable_tokens=view.budget.usable,
                hidden_messages=len(chat) - shown,
                shortened_messages=len(shrunk),
                shortened=[
                    Shortened(
                        handle=entry.handle,
                        tokens=entry.tokens,
                        original_tokens=entry.stamp.tokens,
                        text=text_of(entry.message)[:200],
                    )
                    for entry in sorted(shrunk, key=lambda entry: -entry.stamp.tokens)[:_MAX_LISTED]
                ],
            )

    @server.tool(annotations=_CHANGES)
    def pin(handle: Handle, conversation: Name = "") -> str:
        """Keep a message as it is shown now, so that no policy shortens it."""
        with _opened(source, conversation) as chat:
            return f"{handle} is pinned." if chat.pin(handle) else f"{handle} was pinned already."

    @server.tool(annotations=_CHANGES)
    def unpin(handle: Handle, conversation: Name = "") -> str:
        """Let policies shorten a message again."""
        with _opened(source, conversation) as chat:
            return f"{handle} is no longer pinned." if chat.unpin(handle) else f"{handle} was not pinned."

    def confirm(handle: str, context: Context, conversation: str = "") -> Elicit[Confirmation]:
        if not _can_ask(context):
            raise ToolError(f"{handle} is not erased. Erasing needs the user's consent, and this client cannot ask.")
        with _opened(source, conversation) as chat:
            beginning = " ".join(text_of(chat.original(handle)).split())[:200]
            return Elicit(f"Erase {handle} of {chat.name} for good? It begins: {beginning!r}", Confirmation)

    @server.tool(annotations=_ERASES)
    def erase(
        handle: Handle,
        confirmed: Annotated[ElicitationResult[Confirmation], Resolve(confirm)],
        conversation: Name = "",
    ) -> str:
        """Erase a message for good, with everything that was made of it. The user is asked first."""
        if not (isinstance(confirmed, AcceptedElicitation) and confirmed.data.erase):
            return f"{handle} is not erased: the user did not agree."
        with _opened(source, conversation) as chat:
            chat.privacy.erase(handle, reason="asked for through MCP")
        return f"{handle} is erased."


def _can_ask(context: Context) -> bool:
    """Return whether the client can show a form to the user. A client that names no kind of elicitation can."""
    capabilities = context.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _add_resources(server: MCPServer, source: Source) -> None:
    @server.resource("foveate://{conversation}/{handle}", mime_type="text/plain")
    def original(conversation: str, handle: str) -> str:
        """The original of one message or of a span, by its handle."""
        with _read(source, conversation) as chat:
            return "\n\n".join(text_of(message) for message in chat.originals(handle))

    @server.resource("foveate://{conversation}", mime_type="text/markdown")
    def conversation(conversation: str) -> str:
        """A whole conversation, with every message as it was appended."""
        with _read(source, conversation) as chat:
            rows = chat.history()
            texts = [(row, without_labels(text_of(row.message), TITLE)) for row in rows]
            return "\n\n".join(f"## m{row.position} ({row.message.role})\n\n{text}" for row, text in texts)


@contextmanager
def _opened(source: Source, name: str) -> Iterator[Conversation]:
    """Open a conversation, or the first one."""
    with _errors_for_the_model(), source.open(name) if name else _first(source) as chat:
        yield chat


@contextmanager
def _errors_for_the_model() -> Iterator[None]:
    """Raise errors of foveate as ToolError: the SDK hides the texts of all others."""
    try:
        yield
    except FoveateError as error:
        raise ToolError(str(error)[:800]) from error


@contextmanager
def _read(source: Source, name: str) -> Iterator[Conversation]:
    try:
        with source.open(name) as chat:
            yield chat
    except (NoSuchConversation, UnknownHandle) as error:
        raise ResourceNotFoundError(str(error)[:800]) from error
    except FoveateError as error:
        raise ResourceError(str(error)[:800]) from error


@contextmanager
def _first(source: Source) -> Iterator[Conversation]:
    """Open the first conversation that can be read."""
    problem = BadInput("This server has no conversation yet.")
    with ExitStack() as stack:
        for name in source.names():
            try:
                chat = stack.enter_context(source.open(name))
            except BadInput as error:
                problem = error
            else:
                yield chat
                return
    raise problem


def _block(part: Content) -> ContentBlock:
    match part:
        case Text(text):
            return TextContent(type="text", text=text)
        case Media(mime=mime, source="base64", data=data) if part.is_image:
            return ImageContent(type="image", data=data, mime_type=mime or "image/png")
        case Media(source="base64"):
            return TextContent(type="text", text=f"[{part.name or part.mime}]")
        case Media():
            return TextContent(type="text", text=f"[{part.name or part.mime} at {part.data[:500]}]")
        case _:
            return TextContent(type="text", text=f"[{part.kind}]")


class _TokenCheck:
    """Accepts one token. It is a `TokenVerifier` of the SDK."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        if not secrets.compare_digest(token.encode("utf-8", "backslashreplace"), self._token):
            return None
        return AccessToken(token=token, client_id="foveate", scopes=[])


def protected(token: str, url: str) -> dict[str, Any]:
    """Return the options of a server at this URL that answers only requests with the token."""
    address = AnyHttpUrl(url)
    settings = AuthSettings(issuer_url=address, resource_server_url=address, validate_token_resource=False)
    return {"auth": settings, "token_verifier": _TokenCheck(token)}
