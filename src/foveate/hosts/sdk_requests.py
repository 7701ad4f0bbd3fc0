"""Requests of the SDKs of OpenAI and Anthropic: the view in place of the messages, and what becomes of the answer.

A fault here never stops a request: it is sent as the program made it, and a warning says why.
"""

from __future__ import annotations

import hashlib
import json
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..core.conversation_names import child_name
from ..core.message_keys import message_key
from ..core.stamps import Usage
from ..errors import FoveateError
from ..formats import gather, get_format
from .pools import Pools, model_name

if TYPE_CHECKING:
    from ..conversation import Conversation
    from ..core.messages import Message
    from ..ports import Gatherer

__all__ = ["SdkRequest", "SdkRequests"]

_log = logging.getLogger("foveate")


class _Api(NamedTuple):
    """The keys of a request of one API."""

    messages: str
    system: str


_APIS: Final = {
    "anthropic": _Api("messages", "system"),
    "openai": _Api("messages", ""),
    "openai_responses": _Api("input", "instructions"),
}
"""The wire format of an API, and its keys."""
_PATHS: Final = {"/messages": "anthropic", "/chat/completions": "openai", "/responses": "openai_responses"}
_SERVER_STATE: Final = ("previous_response_id", "conversation")
"""Fields of requests whose history the provider keeps. Such requests stay as they are."""
_INSTRUCTIONS: Final = ("system", "developer")
"""Roles of messages that a program may change from request to request."""
_OPENING: Final = 4
"""Messages of a history among which its first one that is no instruction stands."""


class SdkRequests:
    """The conversations behind one client."""

    def __init__(self, options: dict[str, Any]) -> None:
        # The program has no code that answers calls of `expand`, so by default no request offers the tool.
        self._pools = Pools(**{"expand": False, **options})
        self._warned: set[str] = set()

    def close(self) -> None:
        self._pools.close()

    def begin(self, path: str, content: bytes, name: str) -> SdkRequest | None:
        """Return a POST request with the view in place of the messages; None for one that stays as it is.

        `name`: the conversation; "" for the one with the same first message.
        """
        format = next((format for end, format in _PATHS.items() if path.endswith(end)), None)
        if format is None:
            return None
        try:
            body = json.loads(content)
        except (ValueError, RecursionError) as error:
            self.warn(error)
            return None
        return self.request(format, body, name)

    def request(
        self,
        format: str,
        body: dict[str, Any],
        name: str,
        *,
        session: str = "",
        user: str = "",
        window: int | None = None,
    ) -> SdkRequest | None:
        """Return a request in this format with the view in place of the messages; None for one that stays as it is.

        `name`: as for `begin`. `session`: the name of several lists, such as those of an agent and its sub-agents; the
        first is the conversation of this name, and the others are its children. `user`: keeps the conversations of
        users apart that have no name. `window`: that of the model in tokens, if foveate does not know the model.
        """
        try:
            if state := [key for key in _SERVER_STATE if body.get(key)]:
                raise FoveateError(f"{state[0]}= lets the provider keep the history. Send whole lists instead.")
            return SdkRequest(self._conversation(format, body, name, session, user), format, body, window)
        except (FoveateError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            self.warn(error)
            return None

    def _conversation(self, format: str, body: dict[str, Any], name: str, session: str, user: str) -> Conversation:
        if name:
            return self._pools.get(format, name)
        first = _first_message(format, body)
        content = _content_name(first, body, user)
        if not session:
            return self._pools.get(format, content)
        chat = self._pools.get(format, session)
        return chat if _begins_with(chat, first) else self._pools.get(format, child_name(session, content))

    def warn(self, error: BaseException) -> None:
        """Log why a request is sent unchanged, once for each reason."""
        reason = f"{type(error).__name__}: {error}"[:500]
        if reason not in self._warned and len(self._warned) < 100:
            self._warned.add(reason)
            _log.warning("A request is sent as the program made it. %s", reason)


class SdkRequest:
    """One request: its view, and what becomes of the answer."""

    def __init__(self, chat: Conversation, format: str, body: dict[str, Any], window: int | None = None) -> None:
        api = _APIS[format]
        self.format, self.is_stream = format, bool(body.get("stream"))
        self._chat, self._body = chat, body
        messages = _listed(body[api.messages])
        system = body.get(api.system) if api.system else None
        model = model_name(format, str(body.get("model") or "")) or None
        prompt = chat.prompt(
            messages=messages, system=system, tools=body.get("tools") or (), model=model, window=window
        )
        self._turn = chat.view.turn
        self._gatherer: Gatherer | None = gather(format) if self.is_stream else None
        self.betas, self.body = self._written(prompt)

    @property
    def content(self) -> bytes:
        """The body with the view, as JSON."""
        return json.dumps(self.body, ensure_ascii=False, separators=(",", ":")).encode()

    @property
    def is_newest(self) -> bool:
        """Whether the conversation had no model call after this one."""
        return self._chat.view.turn == self._turn

    def _written(self, prompt: dict[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
        needs = self._chat.needs
        body = needs.added_to({**self._body, **prompt})
        body.pop("betas", None)
        return needs.betas, body

    def refused(self, status: int, content: bytes) -> bool:
        """Return whether the request was too long for the provider, and is smaller now."""
        if status not in (400, 413):
            return False
        error = RuntimeError(content.decode(errors="replace")[:10_000])
        error.status_code = status  # type: ignore[attr-defined]
        try:
            self.betas, self.body = self._written(self._chat.retry_smaller(error))
        except (RuntimeError, FoveateError):
            return False
        return True

    def received(self, content: bytes) -> None:
        """Record a whole answer."""
        try:
            self.record(json.loads(content))
        except ValueError as error:
            _log.warning("A reply was not recorded: %s", error)

    def record(self, reply: object, usage: Usage | None = None) -> None:
        """Record an answer. `usage`: that of the call, if the answer does not hold it in the form of its format."""
        try:
            self._chat.record(reply, usage=usage, call=self._turn)
        except FoveateError as error:  # The next list brings the reply again; only its usage is missing.
            _log.warning("A reply was not recorded: %s", error)

    def bill(self, usage: Usage) -> None:
        """Record the usage of an answer that the next list brings."""
        try:
            self._chat.bill(self._turn, usage)
        except FoveateError as error:
            _log.warning("The usage of a reply was not recorded: %s", error)

    def feed(self, piece: bytes) -> None:
        """Gather a piece of a streamed answer. A stream that cannot be read passes through all the same."""
        if self._gatherer is not None:
            try:
                self._gatherer.feed(piece)
            except FoveateError as error:
                self._gatherer = None
                _log.warning("A streamed reply was not recorded: %s", error)

    def ended(self) -> None:
        """Record a stream that was read to its end. One that was cut is not recorded."""
        if self._gatherer is not None:
            try:
                if (whole := self._gatherer.whole()) is not None:
                    self._chat.record(whole, call=self._turn)
            except FoveateError as error:
                _log.warning("A streamed reply was not recorded: %s", error)


def _first_message(format: str, body: dict[str, Any]) -> Message | None:
    """Return the first message that is no instruction, which a list keeps as it grows."""
    given = _listed(body[_APIS[format].messages])
    first = next((item for item in given if not (isinstance(item, dict) and item.get("role") in _INSTRUCTIONS)), None)
    return None if first is None else next(iter(get_format(format).parse(first)), None)


def _content_name(first: Message | None, body: dict[str, Any], user: str) -> str:
    """Return the name of a conversation by its first message. Cache marks, which move, do not count."""
    key = "" if first is None else message_key(first).hex()
    text = json.dumps([key, bool(body.get("tools")), user])
    return f"list-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def _begins_with(chat: Conversation, first: Message | None) -> bool:
    """Return whether a conversation is empty, or has this first message."""
    rows = (row.message for row in chat.history(1, _OPENING) if row.message.role not in _INSTRUCTIONS)
    stored = next(rows, None)
    return stored is None or first is None or message_key(stored) == message_key(first)


def _listed(given: Any) -> Any:
    """Return the messages of a request, which may be the user's words alone."""
    return [{"role": "user", "content": given}] if isinstance(given, str) else given
