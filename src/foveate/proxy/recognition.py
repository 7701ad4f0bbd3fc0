"""The conversation that a request belongs to, from what the client sends anyway.

A session that the client names is one conversation, and each of its agents has another one. Without a session, the
beginning of the list gives the name. In both cases the list decides in the end: a list that has no reply of the
conversation gets a conversation of its own.

The store is the only memory that counts, so a restarted proxy and several workers recognize the same. The dicts here
only save reads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from msgspec import Raw, Struct

from ..conversation.list_items import quotes
from ..core.conversation_names import child_name
from ..core.messages import Message
from ..errors import NoSuchConversation
from ..ports import Head, Store
from ..requests import Api, RequestBody, wants_json
from .client_ids import ClientIds, read_ids
from .sent_lists import (
    START,
    Key,
    KeyMemory,
    Match,
    SentList,
    StoredKey,
    caller_edits,
    digest_of,
    key_of,
    match,
    pair_key,
    stored_keys,
)

__all__ = ["Recognized", "Recognizer"]

_QUESTIONS: Final = "questions"
"""The key of the child with a client's own questions about a conversation."""
_TOOL_ITEM: Final = b'"additional_tools"'
"""The item with the tools of newer requests of Codex, which have no field `tools`."""
_LOOKS: Final = ((6, 4), (32, 32), (100_000, 32))
"""Items of the list and messages of a conversation that are compared: the ends first, more if they have nothing in
common."""
_EDITS: Final = 200
"""The newest edits of a conversation that the last look reads: those of the messages that it compares."""
_FIRST: Final = 8
"""Messages at the beginning of a conversation that the last look compares too."""
_SIBLINGS_MAX: Final = 64
"""Conversations with one beginning that are compared, the newest first."""
_FORMER_MAX: Final = 8
"""Former courses of each that are compared, the newest first."""
_KNOWN_MAX: Final = 10_000
"""Ends of lists, and newest replies, that are remembered with their conversations: about 10 MB."""


class Recognized(Struct, frozen=True, weakref=True):
    """The conversation of a request. Keep it until the answer has ended: it marks the request as being served."""

    name: str
    """Name of the conversation, which may not exist yet."""
    parent: str
    """Name of the conversation whose child it is; "" if it has none."""
    reason: str
    """How it was recognized, in one sentence."""
    end: bytes = START
    """The key of the last message of the list."""


class _Tip(NamedTuple):
    """The newest message of a conversation: a reply that was recorded here, and no request came since."""

    id: str
    pair: bytes
    """The key of the message before it and its own."""


class _Found(NamedTuple):
    name: str
    match: Match


class _Request(NamedTuple):
    """A request that is being recognized."""

    tenant: str
    ids: ClientIds
    sent: SentList
    last: list[Key]
    """The last messages of the list."""
    has_reply: bool
    base: str
    """The name of the first conversation of this session and agent, or with this beginning."""
    scope: str
    """The conversations that the list may continue: those of a session and agent, or of an owner."""
    is_question: bool
    """Whether the client asks about a conversation, and does not go on with it (`_is_question`)."""


class Recognizer:
    """Recognizes the conversations of one store. Several threads may call it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._keys = KeyMemory()
        self._known: OrderedDict[tuple[str, str, bytes], str] = OrderedDict()
        """Names of conversations by tenant, scope or base, and the last two messages of a list."""
        self._tips: OrderedDict[tuple[str, str], _Tip] = OrderedDict()
        """The replies recorded last, by tenant and name of the conversation."""
        self._served: WeakValueDictionary[tuple[str, str], Recognized] = WeakValueDictionary()
        """The requests that are being served and began a conversation, by tenant and name."""

    def recognize(self, tenant: str, headers: Mapping[str, str], api: Api, body: RequestBody) -> Recognized | None:
        """Return the conversation of a request; None if there is nothing to keep, so that it is passed on.

        Nothing is kept of a list without tools and without replies, such as the request for a title, and of requests
        whose history the provider keeps. `tenant`: that of the store. `headers`: names in lower case. Raises
        BadMessage and MsgspecError (a ValueError) if the body cannot be read, and StoreError.
        """
        fields = body.fields
        if api.messages not in fields or body.state:
            return None
        ids = read_ids(headers, fields)
        sent = SentList(api, body)
        last = sent.end(_LOOKS[0][0])
        has_reply = any(key.is_reply for key in last) or (
            len(sent) > _LOOKS[0][0] and any(key.is_reply for key in sent.end(_LOOKS[-1][0]))
        )
        has_tools = _is_set(fields.get("tools")) or _TOOL_ITEM in body.content
        if not has_reply and not has_tools and not ids.is_named:
            return None
        base = ids.name or _name_of_beginning(ids, sent.beginning())
        scope = base if ids.session else ids.fingerprint("")
        is_question = not (has_tools or ids.is_named) and _is_question(api, body, sent)
        base = child_name(base, _QUESTIONS) if is_question else base
        request = _Request(tenant, ids, sent, last, has_reply, base, scope, is_question)
        recognized = self._find(request)
        # A second list behind the same reply is compared again: the conversation may have departed from it.
        self._tips.pop((tenant, recognized.name), None)
        self._remember(request, recognized.name)
        return recognized

    def note_reply(self, tenant: str, name: str, end: bytes, id: str, reply: Message) -> None:
        """Note that the reply to a request was recorded under this id. The next list goes on behind it.

        `end`: as in what `recognize` returned.
        """
        with self._lock:
            self._tips[tenant, name] = _Tip(id, pair_key(end, key_of(reply).key))
            self._tips.move_to_end((tenant, name))
            if len(self._tips) > _KNOWN_MAX:
                self._tips.popitem(last=False)

    def note_answer(self, tenant: str, name: str) -> None:
        """Note that the answer to a request is about to end: its client may then send the same request again."""
        with self._lock:
            self._served.pop((tenant, name), None)

    # ------------------------------------------------------------------------------------------------------- the choice

    def _find(self, request: _Request) -> Recognized:
        if not request.is_question and (found := self._best(request)):
            course = "goes on from" if found.match.is_certain else "shares its past with"
            return _recognized(request, found.name, f"The list {course} the conversation.")
        with self._lock:  # Two requests that begin the same at the same time get two names.
            recognized = _recognized(request, *self._begin(request))
            self._served[request.tenant, recognized.name] = recognized
        return recognized

    def _best(self, request: _Request) -> _Found | None:
        """Return the conversation that has the newest message of the list; None if none has a part of it."""
        is_whole = len(request.sent) <= _LOOKS[0][0]
        likely = self._likely(request, request.last, is_whole=is_whole)
        tip = self._tips.get((request.tenant, likely))
        if tip is not None and (found := _at_tip(tip, request.last, is_whole=is_whole)):
            return _Found(likely, found)  # The usual case needs no reading.
        for items, rows in _LOOKS:
            sent = request.last if items == _LOOKS[0][0] else request.sent.end(items)
            is_whole = items >= len(request.sent)
            best: _Found | None = None
            for head in self._candidates(request, sent, is_whole=is_whole):
                tip = self._tips.get((request.tenant, head.name))
                found = _at_tip(tip, sent, is_whole=is_whole) if tip is not None and tip.id == head.tip else None
                found = found or self._compare(head, sent, rows, is_whole=is_whole, is_last=items == _LOOKS[-1][0])
                if found is not None and (best is None or found.after < best.match.after):
                    best = _Found(head.name, found)
                    if found.is_certain:
                        return best
            if best is not None:
                return best
        return None

    def _compare(self, head: Head, sent: list[Key], rows: int, *, is_whole: bool, is_last: bool) -> Match | None:
        first = max(1, head.position - rows + 1)
        stored = self._stored(head, first, head.position)
        found = match(sent, stored, is_whole=is_whole, is_start=first == 1)
        if found is not None or not is_last:
            return found
        # Some clients change each reply in their list, such as smolagents: it has the replies as they were edited.
        newest = self._store.records(head, max(0, head.number - _EDITS))
        edits = caller_edits(record for _, record in newest)
        messages = self._store.messages(head, first, head.position) if edits else []
        found = match(sent, stored_keys(messages, self._keys, edits), is_whole=is_whole, is_start=first == 1)
        if found is None and first > 1:
            stored = self._stored(head, 1, _FIRST)
            found = match(sent, stored, is_whole=is_whole, is_start=True)
        return found

    def _stored(self, head: Head, first: int, last: int) -> list[StoredKey]:
        return stored_keys(self._store.messages(head, first, last), self._keys)

    def _begin(self, request: _Request) -> tuple[str, str]:
        """Return the name for a list that continues no conversation, and why."""
        newest = self._newest(request)
        if request.is_question:
            return self._free(request, newest + 1), "The client asks about a conversation."
        if not newest:
            return self._free(request, 1), "The conversation is new."
        beginning = [key.key for key in request.sent.beginning()]
        for number in range(newest, max(0, newest - _SIBLINGS_MAX), -1):
            name = _sibling(request, number)
            head = self._open(request.tenant, name)
            if head is None or self._is_taken(request, name):
                continue
            stored = self._stored(head, 1, _FIRST)
            has_reply = any(row.key.is_reply for row in stored)
            is_same = [row.key.key for row in stored[:1]] in ([], beginning[:1])
            if is_same and (request.ids.session or not has_reply):
                return name, "The list begins as the conversation does."
            # The first reply may have been recorded after the list was compared.
            is_whole = len(request.sent) <= _LOOKS[0][0]
            if request.has_reply and match(request.last, stored, is_whole=is_whole, is_start=True):
                return name, "The list goes on from the conversation."
            if request.ids.session and self._is_compacted(request, head):
                return name, "The list begins with a summary of the conversation."
            if request.ids.is_named or (number == 1 and request.ids.compactions):
                return name, "The client names the conversation."
        return self._free(request, newest + 1), "The list has nothing of the other conversations with this beginning."

    def _is_compacted(self, request: _Request, head: Head) -> bool:
        """Return whether the list begins with the newest reply of a conversation."""
        stored = self._stored(head, max(1, head.position - _LOOKS[0][1] + 1), head.position)
        reply = next((row.text for row in reversed(stored) if row.is_recorded and row.text), "")
        return bool(reply) and quotes(request.sent.first_text(), reply)

    # -------------------------------------------------------------------------------------------------------- the names

    def _candidates(self, request: _Request, sent: list[Key], *, is_whole: bool) -> Iterator[Head]:
        """Yield the conversations that the list may continue, the most probable one first."""
        likely = self._likely(request, sent, is_whole=is_whole)
        if likely and (head := self._open(request.tenant, likely)):
            yield head
        newest = self._newest(request)
        for number in range(newest, max(0, newest - _SIBLINGS_MAX), -1):
            name = _sibling(request, number)
            if name != likely and (head := self._open(request.tenant, name)):
                yield head
            former = self._last_number(request.tenant, f"{name}~")
            for before in range(former, max(0, former - _FORMER_MAX), -1):
                if f"{name}~{before}" != likely and (head := self._open(request.tenant, f"{name}~{before}")):
                    yield head
        other = self._recall(request, request.scope, sent, is_whole=is_whole)
        if other not in ("", likely) and (head := self._open(request.tenant, other)):
            yield head

    def _newest(self, request: _Request) -> int:
        """Return the number of the newest conversation with this base; 0 if there is none."""
        if self._open(request.tenant, request.base) is None:
            return 0
        return max(1, self._last_number(request.tenant, _siblings(request), first=2))

    def _last_number(self, tenant: str, start: str, first: int = 1) -> int:
        """Return the last number after `start` with which a name exists; `first` - 1 if there is none. Reads little."""
        low, step = first - 1, 1
        while self._open(tenant, f"{start}{low + step}") is not None:
            low, step = low + step, step * 2
        while step > 1:
            step //= 2
            if self._open(tenant, f"{start}{low + step}") is not None:
                low += step
        return low

    def _free(self, request: _Request, number: int) -> str:
        """Return the first name from `number` on that is not taken."""
        while self._is_taken(request, name := _sibling(request, number)):
            number += 1
        return name

    def _is_taken(self, request: _Request, name: str) -> bool:
        """Return whether another client's first request has just got a name. A list with a reply is a later one."""
        return not request.has_reply and (request.tenant, name) in self._served

    def _open(self, tenant: str, name: str) -> Head | None:
        try:
            return self._store.open(tenant, name, create=False)
        except NoSuchConversation:
            return None

    # ------------------------------------------------------------------------------------------------------- the memory

    def _remember(self, request: _Request, name: str) -> None:
        """Remember the end of a list, which the next list of the conversation has too."""
        keys = [START, *(key.key for key in request.last)] if len(request.sent) <= _LOOKS[0][0] else []
        keys = keys or [key.key for key in request.last]
        if len(keys) < 2:
            return
        with self._lock:
            for scope in {request.scope, request.base}:
                end = request.tenant, scope, pair_key(*keys[-2:])
                self._known[end] = name
                self._known.move_to_end(end)
            while len(self._known) > _KNOWN_MAX:
                self._known.popitem(last=False)

    def _likely(self, request: _Request, sent: list[Key], *, is_whole: bool) -> str:
        """Return the conversation that the list probably continues; "" if none is remembered.

        Lists with another beginning may have the same messages later on. So one with the same beginning comes first.
        """
        likely = self._recall(request, request.base, sent, is_whole=is_whole)
        if likely or request.scope == request.base:
            return likely
        other = self._recall(request, request.scope, sent, is_whole=is_whole)
        return other if other and self._open(request.tenant, request.base) is None else ""

    def _recall(self, request: _Request, scope: str, sent: list[Key], *, is_whole: bool) -> str:
        """Return the conversation with the newest end of a list that this list has; "" if none is remembered."""
        keys = [START, *(key.key for key in sent)] if is_whole else [key.key for key in sent]
        with self._lock:
            for number in range(len(keys) - 1, 0, -1):
                end = request.tenant, scope, pair_key(keys[number - 1], keys[number])
                if name := self._known.get(end):
                    return name
        return ""


def _at_tip(tip: _Tip, sent: list[Key], *, is_whole: bool) -> Match | None:
    """Return the match of the newest reply in a list with the newest message of a conversation; None if it is another
    one."""
    at = next((at for at in range(len(sent) - 1, -1, -1) if sent[at].is_reply), -1)
    if at < 0 or (at == 0 and not is_whole):
        return None
    pair = pair_key(sent[at - 1].key if at else START, sent[at].key)
    return Match(len(sent) - 1 - at, True) if pair == tip.pair else None


def _recognized(request: _Request, name: str, reason: str) -> Recognized:
    end = request.last[-1].key if request.last else START
    return Recognized(name, name.rpartition("/")[0], reason, end)


def _is_question(api: Api, body: RequestBody, sent: SentList) -> bool:
    """Return whether a request without tools asks about a conversation: the list has results, the answer is JSON.

    So Gemini CLI asks another model whether a conversation runs in circles, or who speaks next. Taken for the
    conversation itself, such a list would lead it to another course, and its next request would not be recognized.
    """
    return wants_json(api.format, body.value) and any(key.is_result for key in sent.end(_LOOKS[1][0]))


def _name_of_beginning(ids: ClientIds, beginning: list[Key]) -> str:
    return f"list-{digest_of([ids.fingerprint('').encode(), *(key.key for key in beginning)])}"


def _sibling(request: _Request, number: int) -> str:
    """Return the name of a conversation with this base, numbered from 1."""
    return request.base if number == 1 else f"{_siblings(request)}{number}"


def _siblings(request: _Request) -> str:
    """Return how the names of the second and later conversations with this base begin: children, in a session."""
    return child_name(request.base, "list-") if request.ids.session else f"{request.base}."


def _is_set(raw: Raw | None) -> bool:
    return raw is not None and bytes(raw).strip() not in (b"null", b"[]", b'""', b"{}", b"false")
