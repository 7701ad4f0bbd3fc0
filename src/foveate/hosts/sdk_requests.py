"""Requests of the SDKs of providers: the view in place of the messages, and what becomes of the answer.

A fault here never stops a request: it is sent as the program made it, and a warning says why.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from ..core.message_keys import message_key
from ..core.stamps import Usage
from ..errors import FoveateError
from ..formats import get_format
from ..requests import ApiError, WireRequest, api_for, api_of, length_error, state_in
from ..requests.aws_signature import check_credentials, is_signature, scope_of
from .host import Host, logged, model_name, wants_marks

if TYPE_CHECKING:
    from ..conversation import Conversation
    from ..core.messages import Message

__all__ = ["SdkRequest", "SdkRequests"]


class SdkRequests:
    """The conversations behind one client."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._host = Host(**options)

    def close(self) -> None:
        self._host.close()

    def begin(self, path: str, query: str, content: bytes, name: str, authorization: str = "") -> WireRequest | None:
        """Return a POST request with the view in place of the messages; None for one that stays as it is.

        `name`: the conversation; "" for the one with the same first message. `authorization`: the header. A signature
        of AWS in it must be one that this program can make again, for another body.
        """
        api = api_of(path, query)
        if api is None:
            return None
        try:
            if is_signature(authorization):
                check_credentials(scope_of(authorization))
            body = json.loads(content)
            chat = self._conversation(api.format, body[api.inside] if api.inside else body, name, "", "")
            return self._host.with_window(
                lambda window: WireRequest(chat, api, content, adds_marks=True, window=window)
            )
        except Exception as error:
            self._host.warn(error)
            return None

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
            if state := state_in(body, body.get("input")):
                raise FoveateError(f"{state} lets the provider keep the history. Send whole lists instead.")
            chat = self._conversation(format, body, name, session, user)
            return self._host.with_window(lambda assumed: SdkRequest(chat, format, body, window or assumed))
        except Exception as error:
            self._host.warn(error)
            return None

    def _conversation(self, format: str, body: dict[str, Any], name: str, session: str, user: str) -> Conversation:
        if name:
            return self._host.conversation((name,), format)
        first = _first_message(format, body)
        content = _content_name(first, body, user)
        if not session:
            return self._host.conversation((content,), format)
        chat = self._host.conversation((session,), format)
        return chat if _begins_with(chat, first) else self._host.conversation((session, content), format)


class SdkRequest:
    """One request of a program that calls the SDK: its view, and what becomes of the answer."""

    def __init__(self, chat: Conversation, format: str, body: dict[str, Any], window: int | None) -> None:
        self.format, self._chat, self._body, self._window = format, chat, body, window
        self._prompt()

    def _prompt(self) -> None:
        """Take over the list, and write the request with its view."""
        api, body, chat = api_for(self.format), self._body, self._chat
        model, tools = str(body.get("model") or ""), body.get("tools") or ()
        with chat._agent.lock:  # Another request may follow a list of its own in this conversation.
            prompt = chat.prompt(
                messages=_listed(body[api.messages]),
                system=body.get(api.system) if api.system else None,
                tools=tools,
                model=model_name(self.format, model) or None,
                window=self._window,
            )
            self._turn = chat.view.turn
            self.wants_marks = wants_marks(model, chat.view, tools)
            """Whether marks for Anthropic's cache pay in this request. Those in Anthropic's own form have them."""
            self.betas, self.body = self._written(prompt)

    @property
    def is_newest(self) -> bool:
        """Return whether the conversation had no model call after this one."""
        return self._chat._agent.is_newest(self._turn)

    def _written(self, prompt: dict[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
        needs = self._chat.needs
        body = needs.added_to({**self._body, **prompt})
        body.pop("betas", None)
        return needs.betas, body

    def refused(self, status: int, content: bytes) -> bool:
        """Return whether the request was too long for the provider, and is smaller now."""
        error = length_error(status, content)
        if error is None:
            return False
        with self._chat._agent.lock:
            try:
                if not self.is_newest:
                    self._prompt()
                self.betas, self.body = self._written(self._chat.retry_smaller(error))
            except (ApiError, FoveateError):
                return False
        return True

    def record(self, reply: object, usage: Usage | None = None) -> None:
        """Record an answer. `usage`: that of the call, if the answer does not hold it in the form of its format."""
        with logged("A reply was not recorded"), self._chat._agent.lock:  # If that fails, the next list brings it.
            if self.is_newest:
                self._chat.record(reply, usage=usage, call=self._turn)
            elif usage is not None:  # The history shows the list of another request now.
                self._chat.bill(self._turn, usage)

    def bill(self, usage: Usage) -> None:
        """Record the usage of an answer that the next list brings."""
        with logged("The usage of a reply was not recorded"):
            self._chat.bill(self._turn, usage)


_INSTRUCTIONS: Final = ("system", "developer")
"""Roles of messages that a program may change from request to request."""
_OPENING: Final = 4
"""Messages of a history among which its first one that is no instruction stands."""


def _first_message(format: str, body: dict[str, Any]) -> Message | None:
    """Return the first message that is no instruction, which a list keeps as it grows."""
    messages = _listed(body[api_for(format).messages])
    others = (item for item in messages if not (isinstance(item, dict) and item.get("role") in _INSTRUCTIONS))
    first = next(others, None)
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


def _listed(messages: Any) -> Any:
    """Return the messages of a request, which may be the user's words alone."""
    return [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
