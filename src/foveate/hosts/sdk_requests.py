"""Requests of the SDKs of OpenAI and Anthropic: the view in place of the messages, and what becomes of the answer.

A fault here never stops a request: it is sent as the program made it, and a warning says why.
"""

from __future__ import annotations

import hashlib
import json
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..errors import FoveateError
from ..formats import gather
from .pools import Pools, model_name

if TYPE_CHECKING:
    from ..conversation import Conversation
    from ..ports import Gatherer

__all__ = ["SdkRequest", "SdkRequests"]

_log = logging.getLogger("foveate")


class _Api(NamedTuple):
    """The keys of a request of one API."""

    format: str
    messages: str
    system: str


_APIS: Final = {
    "/messages": _Api("anthropic", "messages", "system"),
    "/chat/completions": _Api("openai", "messages", ""),
    "/responses": _Api("openai_responses", "input", "instructions"),
}
_SERVER_STATE: Final = ("previous_response_id", "conversation")
"""Fields of requests whose history the provider keeps. Such requests stay as they are."""


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
        api = next((api for end, api in _APIS.items() if path.endswith(end)), None)
        if api is None:
            return None
        try:
            body = json.loads(content)
            if state := [key for key in _SERVER_STATE if body.get(key)]:
                raise FoveateError(f"{state[0]}= lets the provider keep the history. Send whole lists instead.")
            chat = self._pools.get(api.format, name or _content_name(api, body))
            return SdkRequest(chat, api, body, is_stream=bool(body.get("stream")))
        except (FoveateError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            self.warn(error)
            return None

    def warn(self, error: BaseException) -> None:
        """Log why a request is sent unchanged, once for each reason."""
        reason = f"{type(error).__name__}: {error}"[:500]
        if reason not in self._warned and len(self._warned) < 100:
            self._warned.add(reason)
            _log.warning("A request is sent as the program made it. %s", reason)


class SdkRequest:
    """One request: its view, and what becomes of the answer."""

    def __init__(self, chat: Conversation, api: _Api, body: dict[str, Any], *, is_stream: bool) -> None:
        self.is_stream = is_stream
        self._chat, self._api, self._body = chat, api, body
        given = body[api.messages]
        messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
        system = body.get(api.system) if api.system else None
        model = model_name(api.format, str(body.get("model") or ""))
        prompt = chat.prompt(messages=messages, system=system, tools=body.get("tools") or (), model=model or None)
        self._turn = chat.view.turn
        self._gatherer: Gatherer | None = gather(api.format) if is_stream else None
        self.betas, self.content = self._written(prompt)

    def _written(self, prompt: dict[str, Any]) -> tuple[tuple[str, ...], bytes]:
        needs = self._chat.needs
        body = needs.added_to({**self._body, **prompt})
        body.pop("betas", None)
        return needs.betas, json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()

    def refused(self, status: int, content: bytes) -> bool:
        """Return whether the request was too long for the provider, and is smaller now."""
        if status not in (400, 413):
            return False
        error = RuntimeError(content.decode(errors="replace")[:10_000])
        error.status_code = status  # type: ignore[attr-defined]
        try:
            self.betas, self.content = self._written(self._chat.retry_smaller(error))
        except (RuntimeError, FoveateError):
            return False
        return True

    def received(self, content: bytes) -> None:
        """Record a whole answer."""
        try:
            self._chat.record(json.loads(content), call=self._turn)
        except (FoveateError, ValueError) as error:  # The next list brings the reply again; only its usage is missing.
            _log.warning("A reply was not recorded: %s", error)

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


def _content_name(api: _Api, body: dict[str, Any]) -> str:
    """Return a name that a list keeps as it grows: a hash of its first message that is no instruction."""
    given = body[api.messages]
    messages = [given] if isinstance(given, str) else given
    roles = ("system", "developer")
    first = next((item for item in messages if not (isinstance(item, dict) and item.get("role") in roles)), None)
    text = json.dumps([first, bool(body.get("tools"))], sort_keys=True)
    return f"list-{hashlib.sha256(text.encode()).hexdigest()[:24]}"
