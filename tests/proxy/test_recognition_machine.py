"""Clients without ids that append, retry, rewind, edit, trim and compact at random: each sees its own list only.

The model is plain: a request shows nothing but messages of the client's list, and its newest message.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from list_clients import CHAT, Proxy, Served, assistant, chat_body, result, user

from foveate.errors import ConflictError
from foveate.open import open_store
from foveate.testing.bodies import check_body

_MARK = re.compile(r"<[a-z]\d+>")
"""A text of one client has a mark that no other text has."""


class Owner(NamedTuple):
    """The owner of a list: clients with the same one can hardly be told apart."""

    tenant: str
    credential: str


OWNERS = {
    "a": Owner("", "Bearer sk-1"),
    "b": Owner("", "Bearer sk-1"),
    "c": Owner("", "Bearer sk-2"),
    "d": Owner("t", "Bearer sk-1"),
}


class Client:
    """A client and its list."""

    def __init__(self, name: str) -> None:
        self.name, self.owner = name, OWNERS[name]
        self.messages = [user("Fix the tests.")]
        self.waiting: Served | None = None
        self.grown_in = ""
        """The conversation in which the list only grew since, by a reply that no other list has."""
        self.is_alone = True
        """Whether no other client has a request in the same conversation."""
        self._count = 0

    def mark(self) -> str:
        self._count += 1
        return f"<{self.name}{self._count}>"

    def id(self) -> str:
        self._count += 1
        return f"call_{self.name}_{self._count}"

    @property
    def users(self) -> list[int]:
        """Places of the user's messages."""
        return [n for n, message in enumerate(self.messages) if message["role"] == "user"]


clients = st.sampled_from(sorted(OWNERS))


class RecognitionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = open_store("memory:")
        self.clients = {name: Client(name) for name in OWNERS}
        self.workers = [Proxy(self.store), Proxy(self.store)]
        self.owners: dict[tuple[str, str], str] = {}
        """Owner of each conversation, by tenant and name."""

    @rule(name=clients, worker=st.integers(0, 1))
    def send(self, name: str, worker: int) -> None:
        """A request of the list as it is, also while another one of this client waits."""
        client = self.clients[name]
        client.waiting = None  # The client gave up on it.
        headers = {"authorization": client.owner.credential}
        served = self.workers[worker].send(CHAT, chat_body(client.messages), headers, client.owner.tenant)
        assert served is not None
        client.waiting = served
        self._check(client, served)
        others = [other for other in self.clients.values() if other is not client and other.waiting]
        for other in others:  # Two workers began a list at the same moment: one of them moves to another name later.
            if other.waiting is not None and other.waiting.name == served.name:
                other.is_alone = client.is_alone = False

    def _check(self, client: Client, served: Served) -> None:
        body = served.body["messages"]
        assert check_body("openai", served.body) == []
        own, shown = set(_MARK.findall(json.dumps(client.messages))), set(_MARK.findall(json.dumps(body)))
        assert shown <= own, f"{client.name} sees {sorted(shown - own)}"
        assert body[-1] == client.messages[-1]
        owner = self.owners.setdefault((client.owner.tenant, served.name), client.owner.credential)
        assert owner == client.owner.credential
        if client.grown_in:
            assert served.name == client.grown_in

    @precondition(lambda self: any(client.waiting for client in self.clients.values()))
    @rule(data=st.data(), kind=st.sampled_from(["text", "same", "call", "calls"]), is_lost=st.booleans())
    def answer(self, data: st.DataObject, kind: str, is_lost: bool) -> None:
        """An answer that the client gets, or loses after it was recorded."""
        waiting = sorted(name for name, client in self.clients.items() if client.waiting)
        client = self.clients[data.draw(st.sampled_from(waiting))]
        calls = {"call": 1, "calls": 2}.get(kind, 0)
        ids = [client.id() for _ in range(calls)]
        reply = assistant("Done." if kind == "same" else f"I work on it. {client.mark()}", *ids)
        served, client.waiting = client.waiting, None
        assert served is not None
        with suppress(ConflictError):  # Another request came in between. The next list has the reply.
            served.reply(reply)
        client.grown_in = "" if is_lost or kind == "same" or not client.is_alone else served.name
        client.is_alone = True
        if not is_lost:
            client.messages.append(reply)
            client.messages += [result(id, f"well {client.mark()}") for id in ids]
            if not ids:
                client.messages.append(user(f"Go on. {client.mark()}"))

    @rule(name=clients, place=st.integers(0, 20), is_new=st.booleans())
    def rewind(self, name: str, place: int, is_new: bool) -> None:
        """The client goes back to a message of the user, and may write another one."""
        client = self.clients[name]
        client.waiting, client.grown_in = None, ""
        end = client.users[place % len(client.users)]
        client.messages = client.messages[: end + 1]
        if is_new and end:
            client.messages[-1] = user(f"No, do this. {client.mark()}")

    @rule(name=clients, place=st.integers(0, 20))
    def edit(self, name: str, place: int) -> None:
        """The client changes an earlier message of the user, and keeps what follows."""
        client = self.clients[name]
        client.waiting, client.grown_in = None, ""
        client.messages = list(client.messages)
        client.messages[client.users[place % len(client.users)]] = user(f"Edited. {client.mark()}")

    @rule(name=clients)
    def trim(self, name: str) -> None:
        """The client drops its oldest messages, up to the second one of the user."""
        client = self.clients[name]
        client.waiting, client.grown_in = None, ""
        if len(client.users) > 1:
            client.messages = client.messages[client.users[1] :]

    @rule(name=clients)
    def compact(self, name: str) -> None:
        """The client shows a summary of its own in place of the list."""
        client = self.clients[name]
        client.waiting, client.grown_in = None, ""
        client.messages = [user(f"Summary: the tests fail. {client.mark()}")]

    @rule(name=clients)
    def begin_again(self, name: str) -> None:
        """The client begins a new list with the same words."""
        client = self.clients[name]
        client.waiting, client.grown_in = None, ""
        client.messages = [user("Fix the tests.")]

    @rule(worker=st.integers(0, 1))
    def restart(self, worker: int) -> None:
        for client in self.clients.values():
            client.waiting = None
        self.workers[worker] = Proxy(self.store)


RecognitionMachine.TestCase.settings = settings(stateful_step_count=30)
test_clients_at_random_see_their_own_lists_only = RecognitionMachine.TestCase
