"""The parts that all integrations share: the conversations of a framework, and its model calls.

An integration does three things for each model call. It calls `host.begin(...)` with the framework's own list, sends
`call.shown()` in place of the list, and calls `call.record(...)` with the reply. `begin` returns None if no view can be
made; the framework then sends its own list.
"""

from __future__ import annotations

import json
import logging
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial, reduce
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace

from ..core.conversation_names import child_name
from ..core.messages import Message
from ..core.profiles import ASSUMED_WINDOW, claude_version, profile_for
from ..core.stamps import Usage
from ..core.system_messages import sent_role
from ..errors import BadSetting, FoveateError, UnknownWindow
from ..expand.tool import expand_tool
from ..open import open_store
from ..open.pool import Conversations
from ..policies.presets.sources import suggest
from ..ports import Store
from ..requests.apis import model_name
from ..requests.cache_marks import marks_pay
from ..types import ListItem

if TYPE_CHECKING:
    from ..conversation import Conversation
    from ..core.messages import ToolResult
    from ..core.view import Entry, View

__all__ = [
    "EXPAND",
    "Host",
    "ModelCall",
    "Path",
    "Shown",
    "class_names",
    "find_mark",
    "json_text",
    "logged",
    "model_name",
    "source_format",
    "tool_definition",
    "usage_of_totals",
    "wants_marks",
    "wire_format",
]

Request = TypeVar("Request")
Path = tuple[str, ...]
"""The name of a conversation: that of a thread or session, then the keys of the sub-agents below it."""

_log = logging.getLogger("foveate")
_EXPAND_TOOL: Final[dict[str, Any]] = expand_tool("openai")
EXPAND: Final[dict[str, Any]] = _EXPAND_TOOL["function"]
"""The tool `expand`: its `name`, `description` and `parameters`."""
_MAX_REASONS: Final = 100
_OPTIONS: Final = [name for name in signature(Conversations).parameters if name not in ("store", "format", "expand")]


class Host:
    """The conversations of a framework in one store, which models of several wire formats may continue."""

    def __init__(self, store: str | Store = "memory:", *, expand: bool | None = True, **options: Any) -> None:
        """`options`: those of `Conversations`, without `format`. The store is opened at once. Raises BadSetting."""
        if unknown := options.keys() - _OPTIONS:
            name = min(unknown)
            raise BadSetting(f"There is no option {name}=.{suggest(name, _OPTIONS)} Options: {', '.join(_OPTIONS)}.")
        self.offers_expand = expand is True
        """Whether every model gets the tool `expand`."""
        store = store or "memory:"
        self._owned = open_store(store) if isinstance(store, str) else None
        self._options = {**options, "expand": expand, "store": self._owned or store}
        self._lock = threading.Lock()
        try:
            self._pools = {"openai": Conversations(format="openai", **self._options)}
        except BaseException:
            if self._owned is not None:
                self._owned.close()
            raise
        self._newest: WeakValueDictionary[str, Conversation] = WeakValueDictionary()
        """A name -> the conversation in the format of its newest model call."""
        self._reasons: set[str] = set()

    def close(self) -> None:
        """Close the store, if it was opened here."""
        with self._lock:
            for pool in self._pools.values():
                pool.close()
        if self._owned is not None:
            self._owned.close()

    def conversation(self, path: Path, format: str = "") -> Conversation:
        """Return a conversation. `format`: by default the one of its newest model call."""
        name = reduce(child_name, path)
        with self._lock:
            if not format and (newest := self._newest.get(name)) is not None:
                return newest
            format = format or "openai"
            if format not in self._pools:
                self._pools[format] = Conversations(format=format, **self._options)
            pool = self._pools[format]
        chat = pool.get(name)
        with self._lock:
            self._newest[name] = chat
        return chat

    def begin(
        self,
        path: Path,
        items: Sequence[Any],
        *,
        format: str,
        model: str,
        read: Callable[[Any, str], Any] | None = None,
        key: Callable[[Any], str | None] | None = None,
        system: object = None,
        tools: Sequence[Any] = (),
    ) -> ModelCall | None:
        """Take over the framework's list, and return a model call with its view; None, with a warning, if that fails.

        If no window is known, it warns, and assumes 128,000 tokens.

        `read`: returns the messages of an item for a model of this wire format. By default, items are messages in this
        format. `key`: returns the framework's id of an item. `tools`: their definitions, as `tool_definition` returns.
        """
        try:
            chat = self.conversation(path, format)
            return self.with_window(lambda window: ModelCall(chat, items, read, key, system, tools, model, window))
        except Exception as error:  # A fault of foveate does not stop the framework's run.
            self.warn(error)
            return None

    def expansion(self, path: Path, arguments: str | Mapping[str, Any]) -> ToolResult:
        """Return the result of a call of the tool `expand`."""
        return self.conversation(path).expansion(arguments)

    def with_window(self, make: Callable[[int | None], Request]) -> Request:
        """Return `make(None)`. If no window is known then, warn, and return `make(128_000)`."""
        try:
            return make(None)
        except UnknownWindow as error:
            self._report(f"{error} foveate assumes {ASSUMED_WINDOW:,} tokens.")
            return make(ASSUMED_WINDOW)

    def warn(self, reason: str | Exception) -> None:
        """Report why a request is sent unchanged, once for each reason."""
        text = reason if isinstance(reason, str) else _sentence(reason)
        self._report(f"The messages are sent as they are. {text}", _unexpected(reason))

    def _report(self, text: str, error: Exception | None = None) -> None:
        """Log a text, and show it as a warning of Python, once: few programs configure logging at first."""
        if text not in self._reasons and len(self._reasons) < _MAX_REASONS:
            self._reasons.add(text)
            _log.warning("%s", text, exc_info=error)
            with suppress(RuntimeWarning):  # A filter that makes warnings errors does not stop the run either.
                warnings.warn(text, RuntimeWarning, stacklevel=2)


class Shown(NamedTuple):
    """A piece of a view: an item of the framework to send as it is, or a message to make an item of."""

    item: Any
    """The item; None for a message that foveate made."""
    entry: Entry | None = None
    """The message to send in place of (a part of) the item; None if the item is sent as it is."""
    part: int = 0
    """Which of the messages in the item it is."""


class ModelCall:
    """One model call of a framework."""

    def __init__(
        self,
        chat: Conversation,
        items: Sequence[Any],
        read: Callable[[Any, str], Any] | None,
        key: Callable[[Any], str | None] | None,
        system: object,
        tools: Sequence[Any],
        model: str,
        window: int | None,
    ) -> None:
        self.chat = chat
        self._items, self._read, self._key = items, read, key
        name = model_name(chat.format.name, model) or None
        read_item = None if read is None else self._list_item
        self._prepare = partial(
            chat._agent.prepare, items, read_item, system=system, tools=tools, model=name, window=window
        )
        self.view = self._prepare()
        # A framework may send Gemini's messages to a model of OpenAI.
        profile = profile_for("openai", model) if chat.format.name == "gemini" else chat._agent.profile
        # Read here, in a thread: it waits for the conversation's lock, and an event loop must not.
        self.cache_key = chat._agent.cache_key if profile.cache_key else ""
        """The key by which the provider finds the cache of the conversation; "" if the model needs none."""
        self.wants_marks = wants_marks(model, self.view, tools)
        """Whether marks for Anthropic's cache pay in this call. The program's own marks win."""

    def shown(self) -> Iterator[Shown]:
        """Yield what to send, in order."""
        for places, entries in self.view.by_item():
            if places:
                yield from (Shown(self._items[place]) for place in places)
                continue
            for entry in map(_as_sent, entries):
                place = self.view.list_places.get(entry.position)
                yield Shown(self._items[place.items[0]], entry, place.part) if place else Shown(None, entry)

    def make_smaller(self, error: Exception) -> None:
        """Make the view smaller, if the provider refused the prompt as too long. Raises the error again otherwise."""
        try:
            with self.chat._agent.lock:
                if not self.chat._agent.is_newest(self.view.turn):
                    self.view = self._prepare()
                self.chat.retry_smaller(error)
                self.view = self.chat.view
        except FoveateError as reason:  # Programs and frameworks handle the provider's error.
            _log.warning("A refused prompt was not made smaller. %s", reason)
            raise error from None

    def record(self, reply: Any, usage: Usage | None = None) -> None:
        """Record a reply, an item of the framework. If that fails, the next list brings it without its usage.

        The next list also brings it if another run began a call in this conversation: the history shows its list now.
        """
        with logged("A reply was not recorded"), self.chat._agent.lock:
            if not self.chat._agent.is_newest(self.view.turn):
                return self.bill(usage)
            if self._read is not None:
                reply = self._read(reply, self.chat.format.name)
            self.chat.record(reply[0] if isinstance(reply, list) else reply, usage=usage, call=self.view.turn)

    def bill(self, usage: Usage | None) -> None:
        """Record the usage of a reply that only the next list brings."""
        if usage is not None:
            with logged("The usage of a reply was not recorded"):
                self.chat.bill(self.view.turn, usage)

    def _list_item(self, item: Any) -> ListItem:
        assert self._read is not None
        key = self._key(item) if self._key else None
        return ListItem(self._read(item, self.chat.format.name), key=key or "")


def _as_sent(entry: Entry) -> Entry:
    """Return the entry with the role in which the provider gets it."""
    role, message = sent_role(entry), entry.message
    return entry if role == message.role else replace(entry, message=Message(role, message.parts, message.name))


@contextmanager
def logged(failure: str) -> Iterator[None]:
    """Log an error with the words `failure`, so that it does not stop the framework's run."""
    try:
        yield
    except Exception as error:
        _log.warning("%s. %s", failure, _sentence(error), exc_info=_unexpected(error))


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, FoveateError) else f"{type(error).__name__}: {error!s:.500}"


def _unexpected(error: object) -> Exception | None:
    """Return an error whose traceback belongs in the log: one that does not explain itself."""
    return error if isinstance(error, Exception) and not isinstance(error, FoveateError) else None


def tool_definition(name: str, description: str | None, parameters: object) -> dict[str, Any]:
    """Return the definition of a tool, as `begin` takes it."""
    if name == EXPAND["name"]:
        return _EXPAND_TOOL  # A framework may have changed the schema.
    return {"type": "function", "function": {"name": name, "description": description or "", "parameters": parameters}}


def json_text(value: object) -> str:
    """Return a value as JSON with its own letters, which are fewer tokens than escapes and can be read."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:  # Half of a surrogate pair, which only an escape can express.
        return json.dumps(value, default=str)
    return text


def wants_marks(model: str, view: View, tools: Sequence[Any]) -> bool:
    """Return whether marks for Anthropic's cache pay in a request with this view. `tools`: those that it offers.

    Other models with an API like Anthropic's may refuse the marks of a framework.
    """
    return claude_version(model) is not None and marks_pay(view, bool(tools))


def find_mark(value: object) -> Any:
    """Return the first mark for Anthropic's cache in a part of a request; None if it has none."""
    inner: Iterable[object] = ()
    if isinstance(value, Mapping):
        mark = value.get("cache_control") or value.get("cachePoint")  # Bedrock has blocks of their own for marks.
        if isinstance(mark, dict):
            return mark
        inner = value.values()
    elif isinstance(value, list | tuple):
        inner = value
    for part in inner:
        if not isinstance(part, str) and (mark := find_mark(part)) is not None:
            return mark
    return None


def class_names(value: object) -> str:
    """Return the names of the class of a framework's object, and of those that it is based on, with spaces between."""
    return " ".join(kind.__name__ for kind in type(value).__mro__)


def wire_format(kind: str) -> str:
    """Return the wire format whose rules a model has. `kind`: the names of its class, or of its provider."""
    names = {"anthropic": "anthropic", "gemini": "gemini", "google": "gemini", "responses": "openai_responses"}
    return next((format for name, format in names.items() if name in kind.lower()), "openai")


def source_format(provider: str, format: str) -> str:
    """Return the wire format of the provider that a reply names; `format` for a provider that may use this one."""
    named = wire_format(provider)
    return format if named == "openai" else named


def usage_of_totals(
    prompt: int, cache_read: int | None, cache_write: int | None, output: int | None, reasoning: int | None = None
) -> Usage:
    """Return the usage of a reply. `prompt`: all tokens of the prompt, with those of the cache."""
    return Usage(max(0, prompt - (cache_read or 0) - (cache_write or 0)), cache_read, cache_write, output, reasoning)
