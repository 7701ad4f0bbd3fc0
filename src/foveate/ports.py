"""The protocols that foveate's shell stands on, and the plain values they exchange.

Whoever writes a store, a token counter, a format or a clock implements one of these and passes the matching kit in
`foveate.testing`. Nothing here does anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from .core.catalog import Action, Binding, Prompt
from .core.journal import Record
from .core.messages import Message
from .core.profiles import Profile
from .core.runs import AgentRun, AgentRunStep, Claim
from .core.stamps import Stamp, Stamped, Stop, Usage
from .core.summaries import Summary, SummaryRequest
from .core.totals import Totals
from .core.view import Entry, View

__all__ = [
    "IMPORTING",
    "Appended",
    "Background",
    "Branch",
    "Catalog",
    "Clock",
    "Cost",
    "Database",
    "Delta",
    "Elsewhere",
    "Erased",
    "Fact",
    "Finding",
    "Format",
    "Found",
    "Handed",
    "Head",
    "Job",
    "Model",
    "Rendered",
    "Stamped",
    "Store",
    "Stray",
    "StreamingModel",
    "Summarizer",
    "Tail",
    "TokenCounter",
    "Watch",
    "Whole",
]

IMPORTING = "~importing "
"""What the name of a conversation begins with that an import has not finished."""

Clock = Callable[[], int]
"""Milliseconds since 1970."""

Fact = str | int | bool | tuple[str, ...]
"""What is told of something that was done, under a plain name such as `tokens_before`."""

Summarizer = Callable[[SummaryRequest], str | Summary | Awaitable[str | Summary]]
"""Writes the summary it is asked for: plain text, or a JSON object with a string `summary`; a `Summary` also tells who
wrote it.

Called outside of any transaction. Whatever it raises counts as a failed attempt, and changes nothing. One that is
awaited can only be used by an async conversation.
"""


class Job(Protocol):
    """A call that is made beside the conversation. None of its methods raises, but for `result`."""

    def done(self) -> bool:
        """Whether the call has ended, well or badly."""
        ...

    def result(self) -> object:
        """What the call returned. Raises what it raised. Only asked once it is done."""
        ...

    def wait(self) -> object:
        """Returns when the call has ended, or when whoever runs it has lost patience; or an awaitable that does."""
        ...

    def cancel(self) -> object:
        """Nobody wants the result any more. Waits for nothing; a future that it returns is done when the call has
        ended.
        """
        ...


Background = Callable[[Callable[[], object]], Job]
"""Begins a call, and returns at once. The call asks a summarizer, so it may return an awaitable, and touches nothing of
the conversation. Called by the conversation's own thread, one call at a time. With an attribute `eager` that is true,
whatever the view fits without is begun there; else only what a policy asks for ahead.
"""


class Handed(Struct, frozen=True):
    """What a conversation wants to have summed up by somebody else. Names things, and holds nothing that was said."""

    tenant: str
    name: str
    number: int = 0
    """Of the newest edit, when it was wanted: a summary behind it may have done it already."""
    policies: tuple[str, ...] = ()
    """Names of the policies that ask."""
    window: int | None = None
    """The model's window in tokens, as far as it is known."""
    reserve: int | None = None
    format: str = ""


class Elsewhere(Protocol):
    """A background in another process, where a call cannot be sent: it opens the conversation and sums it up there.

    What it did comes back through the journal. With an attribute `eager` that is true it is handed whatever the view
    fits without; else only what a policy asks for ahead.
    """

    def hand_on(self, wanted: Handed) -> object:
        """Take note of it. May wait for a database, not for the summary; whatever it raises is logged."""
        ...


class Model(Protocol):
    """Sends one rendered request to a provider, and waits for the answer."""

    name: str
    """What receipts call it, for example `anthropic:claude-haiku-4-5`."""
    format: str
    """Name of the format that its requests and responses are written in, such as `anthropic`."""

    def complete(self, body: Mapping[str, Any]) -> object | Awaitable[object]:
        """The response to a request, as `Format.parse_reply` reads it. `body`: as `Format.prompt` writes it, without
        the model's name. Raises whatever the provider's SDK raises.
        """
        ...


class Delta(Struct, frozen=True):
    """A piece of an answer, as it comes."""

    kind: Literal["text", "reasoning", "call"]
    text: str
    """Of the text, of the thoughts, or of a call's arguments as JSON."""
    name: str = ""
    """With the first piece of a call: the tool's name."""


class Whole(Struct, frozen=True):
    """The end of a streamed answer."""

    response: object
    """All of it, as `Format.parse_reply` reads it: what `complete` would have returned."""


class StreamingModel(Model, Protocol):
    """A model whose answers can be followed as they come."""

    def stream(self, body: Mapping[str, Any]) -> Iterator[Delta | Whole] | AsyncIterator[Delta | Whole]:
        """The answer's pieces, and last, once, the whole of it. Closing the iterator early ends the request."""
        ...


Cost = Callable[[Usage], float | None]
"""US dollars that so many tokens cost; None where that is not known."""


class TokenCounter(Protocol):
    """Counts, or estimates, tokens of text."""

    name: str

    def __call__(self, text: str) -> int:
        """Tokens of one piece of text."""
        ...


# -------------------------------------------------------------------------------------------------------------- formats


class Format(Protocol):
    """A provider's wire shape, both ways. Pure: no SDK is imported; SDK objects are read through `model_dump`."""

    name: str

    def parse(self, message: object) -> tuple[Message, ...]:
        """The messages in one wire message (a dict, or the SDK's object). Raises BadMessage."""
        ...

    def parse_reply(self, reply: object) -> tuple[Message, Usage]:
        """The assistant message and the billed usage in a whole response of the API. Raises BadMessage."""
        ...

    def stop_of(self, reply: object) -> Stop | None:
        """Why a response that `parse_reply` has read ended; None where it does not say."""
        ...

    def render(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Wire messages that carry these messages: `parse` of each, joined, gives them back."""
        ...

    def prompt(
        self, view: View, *, profile: Profile, system: object = None, tools: Sequence[Mapping[str, Any]] = ()
    ) -> dict[str, Any]:
        """The keyword arguments of the SDK call that shows this view: fresh containers, safe to change."""
        ...

    def rendered(self, view: View, *, profile: Profile) -> list[Rendered]:
        """The wire messages of a view as JSON bytes, without cache marks; unchanged entries keep their bytes."""
        ...

    def body(
        self, view: View, *, profile: Profile, system: object = None, tools: Sequence[Mapping[str, Any]] = ()
    ) -> bytes:
        """The request body as JSON bytes: what `prompt` says, without cache marks."""
        ...


class Rendered(Struct, frozen=True):
    """One wire message of a rendered view, and the entries it shows."""

    body: bytes
    entries: tuple[Entry, ...]


# ------------------------------------------------------------------------------------------------------------- watching


class Watch(Protocol):
    """Is told what a conversation does, for traces and metrics: how much and how long, never what was said.

    Called by the conversation while it works, so it must not wait. One that raises is logged and left out from then on.
    """

    def begin(self, doing: str) -> object:
        """Something begins: `plan`. What is returned is handed to `end`, in the same thread or task."""
        ...

    def end(self, begun: object, facts: Mapping[str, Fact], error: BaseException | None) -> None:
        """What `begin` was told of is done, or failed."""
        ...

    def did(self, doing: str, facts: Mapping[str, Fact]) -> None:
        """Something was done: `compact` or `expand`; or what a call was billed is known: `record`."""
        ...

    def count(self, totals: Totals) -> None:
        """The sums of all that was done since the conversation is watched."""
        ...


# --------------------------------------------------------------------------------------------------------------- stores


class Appended(Struct, frozen=True):
    """One message in its place in a conversation, as a store keeps it."""

    position: int
    """From 1, along this conversation's chain."""
    id: str
    seal: str
    """The link of the chain of stamps."""
    stamp: Stamp
    body: bytes
    """The message's canonical bytes, or b"" where it was erased."""
    body_hash: str


class Head(Struct, frozen=True):
    """Where a conversation stands: the ends of its three chains. The token of optimistic concurrency."""

    tenant: str
    name: str
    root: int
    """The conversation this tree of forks began with, as a 63-bit number; every key in the store begins with it."""
    branch: int
    """The branch of the root that this conversation writes to."""
    position: int = 0
    """Number of messages: the position of the tip."""
    tip: str = ""
    """Id of the newest message."""
    seal: str = ""
    """Newest link of the chain of stamps."""
    number: int = 0
    """Number of the newest edit."""
    record: str = ""
    """Id of the newest journal record."""
    erased: int = 0
    """Number of the newest erasure that was made in its tree: what was read before it may tell what is gone."""


class Branch(Struct, frozen=True):
    """One conversation of a tree of forks, and where it left the one that it came from."""

    head: Head
    parent: int = 0
    """The branch it came from; 0 where it began with nothing."""
    position: int = 0
    """The last message that the two have in common."""
    number: int = 0
    """The last edit that the two have in common."""


class Finding(Struct, frozen=True):
    """One thing `verify` found wrong."""

    where: str
    """For example `message 17` or `record 3`."""
    problem: str


class Stray(Struct, frozen=True):
    """Something in a store that belongs to no conversation, or a name that leads to none. A sound store has none."""

    tenant: str
    where: str
    """For example `name 'support-456'`, or `branch 2 of tree 6473103368560257525`."""
    problem: str


class Erased(Struct, frozen=True):
    """What one erasure did, without a word of what is gone."""

    number: int
    """From 1, along the tree of forks; 0 where there was nothing left to erase, and nothing was written."""
    time: int = 0
    """Milliseconds since 1970, as the caller said."""
    who: str = ""
    reason: str = ""
    name: str = ""
    """The conversation it was asked of."""
    handles: str = ""
    """What was named, such as `m3` or `m3-m17 m20`; "" for runs alone."""
    messages: int = 0
    """Rows of messages that say nothing any more, those on other branches and those that showed others again too."""
    edits: int = 0
    """Edits of the journal whose texts are gone."""
    runs: int = 0
    """Runs of agents of which a text is gone."""
    steps: int = 0


class Found(Struct, frozen=True):
    """One message that a search found."""

    position: int
    score: float
    """The larger the better; only to be compared within one search."""


class Tail(Protocol):
    """What a conversation has beyond a head that somebody has of it. Rows and records are made when they are asked for,
    and may raise Damaged.

    Where what was read before holds no longer, since the name stands for another branch now or something was erased,
    there is a new head, and nothing beyond it: read anew.
    """

    head: Head
    """Where the conversation stands."""

    def newest(self) -> Stamp | None:
        """The stamp of the newest message, if there is one beyond."""
        ...

    def rows(self) -> list[Appended]:
        """The messages beyond, in order."""
        ...

    def records(self) -> list[tuple[str, Record]]:
        """The journal's records beyond, each with its id, in order."""
        ...


class Store(Protocol):
    """Keeps conversations. Every write is one transaction, refused whole if the head it was made for is no longer
    current.

    Branches: a conversation's messages are positions 1..n. A fork shares the positions up to its fork point with
    the branch it came from and has its own after it; the same holds for journal records. Names are unique per
    tenant.
    """

    def open(self, tenant: str, name: str, *, create: bool = True) -> Head:
        """The head of a conversation; made empty if there is none and `create`, else NoSuchConversation."""
        ...

    def append(self, head: Head, rows: Sequence[Appended]) -> Head:
        """Add messages after the tip, all or none. Raises TipMoved if the tip is no longer `head`'s."""
        ...

    def extend(self, head: Head, make: Callable[[Tail], Sequence[Appended]]) -> Tail:
        """Add the messages that `make` returns after the tip, wherever it is by then, all or none; returns what there
        is beyond `head` once they are there, they themselves last.

        Writers that come at once wait for each other, as far as the database lets them in the order in which they came,
        so nobody loses a race: `make` is handed what is beyond `head`, and nobody else appends until its rows are
        there. It must be pure and quick, and not call the store: others wait; it is called more than once, by any
        thread, and all but what the last call returned is dropped. Whatever it raises is raised, and nothing is
        written. Raises TipMoved, before anything is written, where `head` is too far behind (hundreds of messages) or
        its name stands for another branch by now: follow `tail`, then retry.
        """
        ...

    def tail(self, head: Head) -> Tail:
        """What the conversation has beyond `head`, which is of any time. Raises NoSuchConversation if its name stands
        for nothing any more.
        """
        ...

    def commit(self, head: Head, record: Record, record_id: str) -> Head:
        """Add one record to the journal. Raises StalePlan if the journal is no longer `head`'s.

        Messages appended meanwhile by others do not make a plan stale: it names what it covers.
        """
        ...

    def commit_all(self, head: Head, records: Sequence[tuple[str, Record]]) -> Head:
        """Add records that follow each other to the journal, each with its id, all or none; as an import brings them.

        Raises StalePlan as `commit` does. None at all change nothing.
        """
        ...

    def messages(self, head: Head, first: int, last: int) -> list[Appended]:
        """Positions first..last (both included; clipped to what there is), in order."""
        ...

    def stamps(self, head: Head, first: int, last: int) -> list[Stamped]:
        """The same without what they say, which costs little however much that is. Proves nothing of the chains."""
        ...

    def pick(self, head: Head, positions: Sequence[int]) -> list[Appended]:
        """The messages at these positions, in order of position; runs of neighbours are read as one range."""
        ...

    def locate(self, head: Head, ids: Sequence[str]) -> dict[str, int]:
        """Positions of the messages with these ids; ids this conversation does not have are left out."""
        ...

    def search(self, head: Head, query: str, limit: int = 20) -> list[Found]:
        """Messages of this conversation, forks' common past included, that hold the words of `query`; best first.

        Words count without regard to case. First come those in which the words of the query stand in a row, then
        others that hold every word, each the newest first; then those that hold some. `"two words"` in quotation marks
        stand together. A query without any word finds nothing. Erased messages are never found.
        """
        ...

    def records(self, head: Head, after: int = 0) -> list[tuple[str, Record]]:
        """Journal records, each with its id, whose first edit's number is above `after`, in order."""
        ...

    def fork(self, head: Head, name: str, position: int, number: int) -> Head:
        """A new conversation that shares positions 1..position and the edits up to `number`.

        `number` must end a record. Raises BadSetting if the name is taken.
        """
        ...

    def repoint(self, head: Head, position: int, number: int, keep: str) -> Head:
        """Move this conversation to a new branch at `position`, keeping the old one under the name `keep`. One
        transaction.
        """
        ...

    def branches(self, head: Head) -> list[Branch]:
        """Every conversation of the tree of forks that this one belongs to, as they stand now, by branch: each after
        the one it left.
        """
        ...

    def rename(self, tenant: str, names: Mapping[str, str]) -> None:
        """Give conversations other names, from old to new, all or none. Raises BadSetting where one is taken or given
        twice, and NoSuchConversation. Whoever holds a head with an old name has to open it again.
        """
        ...

    def snapshot(self, head: Head) -> tuple[int, int, bytes] | None:
        """The newest saved (position, number, bytes) at or before this head, on this branch or one it came from."""
        ...

    def save_snapshot(self, head: Head, position: int, number: int, body: bytes) -> None:
        """Keep this snapshot instead of the branch's previous one. Losing one loses time, never data."""
        ...

    def names(self, tenant: str) -> list[str]:
        """The names of this tenant's conversations, sorted."""
        ...

    def tenants(self) -> dict[str, int]:
        """Whose conversations there are, sorted, and how many each has. Reads all names there are."""
        ...

    def census(self, tenant: str | None = None) -> Iterator[Head | Stray]:
        """Every conversation there is, of one tenant or of all, tree after tree, and whatever belongs to none of them.

        Some are read at a time, so it takes little memory whatever there is; others may write meanwhile, and what they
        begin may be left out. Nothing is hashed: that is what `verify` does with a head. Raises Damaged where what
        there is cannot even be listed.
        """
        ...

    def put_run(self, head: Head, run: AgentRun, *, owner: str = "") -> None:
        """Keep a run of an agent with this conversation, instead of what was kept under its id. Durable on return.

        With `owner`, only while that one has the claim on this branch, of which this is a sign of life; else AtWork.
        """
        ...

    def put_step(self, head: Head, step: AgentRunStep, *, owner: str = "") -> None:
        """Keep a step of a run, instead of what was kept under its number. Durable on return. `owner`: as for runs."""
        ...

    def claim(self, head: Head, owner: str, instead_of: Claim | None = None) -> Claim:
        """Claim this branch for one who is at work in it, and return the claim that there is now: whoever finds
        another owner in it does not have it.

        It is had by whom nobody else has it before, by who has it already (a sign of life), and where it still is
        exactly `instead_of`, whose owner is dead. The two cannot both succeed: a sign of life makes another claim.
        """
        ...

    def beat(self, head: Head, owner: str) -> bool:
        """A sign of life, and whether `owner` has the claim on this branch. Makes none where there is none."""
        ...

    def release(self, head: Head, owner: str) -> None:
        """Give up the claim on this branch, if `owner` has it."""
        ...

    def runs(self, head: Head) -> list[AgentRun]:
        """The runs that were kept with this conversation or one it shares its tree of forks with, oldest first."""
        ...

    def steps(self, head: Head, run: str, after: int = 0) -> list[AgentRunStep]:
        """The steps of one of these runs with numbers above `after`, in order; none where there is no such run."""
        ...

    def verify(self, head: Head) -> list[Finding]:
        """Re-hash everything of this conversation: messages, stamps, journal, head. Nothing wrong: an empty list."""
        ...

    def erase(
        self,
        head: Head,
        spans: Sequence[tuple[int, int]],
        *,
        runs: bool | Collection[str] = False,
        keep_shown: bool = False,
        seen: Sequence[Head] = (),
        is_still: bool = False,
        who: str = "",
        reason: str = "",
        time: int = 0,
    ) -> Erased:
        """Erase what the messages of some spans say (positions first..last, both included), and everything in their
        tree of forks that was made of it. One transaction; what is erased already is passed over.

        What stays is a tombstone: position, id, seal, stamp and the body's hash, so that all chains verify. `runs`: the
        texts of all runs that were kept under this conversation's name too, or of those with these ids. `keep_shown`:
        summaries that a view of the tree still shows stay, and are marked as outliving what they were made of; those
        that were marked before, and are shown no more, go. Writers who read before are told (StalePlan).

        `seen`: the branches of the tree as they were when the caller found that nobody needs these messages. Raises
        StalePlan where a branch that shares some of them is not among these, or changed its view since; where a message
        came to it that shows others again or, with `is_still`, any message. Nothing is erased then.

        Raises BadSetting where there are no such positions, StoreError where a record that is older than outlines would
        have to change; nothing is erased then.
        """
        ...

    def erasures(self, head: Head) -> list[Erased]:
        """What was erased in this tree of forks, in order."""
        ...

    def keep_erasure(self, head: Head, erased: Erased) -> None:
        """Keep the record of an erasure that was made elsewhere, in the store this conversation is imported from.

        Nothing is erased. One whose number is not the next of this tree of forks is passed over.
        """
        ...

    def discard(self, head: Head, prefix: str) -> None:
        """Take away this whole tree of forks, with all that lies in it, as if it had never been: what an import began
        and did not finish.

        Raises BadSetting, and takes nothing away, unless the name of every conversation in it begins with `prefix`.
        """
        ...

    def leftovers(self, head: Head) -> tuple[int, list[Finding]]:
        """How many messages of this conversation are erased, and whatever there still is that was made of them."""
        ...

    def vacuum(self) -> None:
        """Give back the room of what is gone, for good: after it the files hold no byte of it. May take long."""
        ...

    def close(self) -> None:
        """Finish what was accepted and let go of files and connections. Calling it again does nothing."""
        ...


class Catalog(Protocol):
    """What a tenant has set up for its agents. Both of foveate's stores are one too.

    Values are checked before they are kept: BadSetting for what is not allowed (`core.catalog`). Whatever is kept under
    the same name is replaced.
    """

    def put_action(self, tenant: str, action: Action) -> None:
        """Keep an action. Raises BadSetting where there is no prompt of the name that it names."""
        ...

    def put_binding(self, tenant: str, binding: Binding) -> None:
        """Keep what an agent has an action for. Raises BadSetting where there is no such action or prompt."""
        ...

    def put_prompt(self, tenant: str, prompt: Prompt) -> None:
        """Keep a prompt. Raises BadSetting where another one's name means the same (`core.catalog.same_prompt`)."""
        ...

    def actions(self, tenant: str) -> list[Action]:
        """All actions, by name."""
        ...

    def bindings(self, tenant: str, agent: str = "") -> list[Binding]:
        """The bindings of one agent, or of all, by agent and action."""
        ...

    def prompts(self, tenant: str) -> list[Prompt]:
        """All prompts, by name."""
        ...

    def drop_action(self, tenant: str, name: str) -> bool:
        """Forget an action. Whether there was one. Raises BadSetting where an agent still has it."""
        ...

    def drop_binding(self, tenant: str, agent: str, action: str) -> bool:
        """Forget a binding. Whether there was one."""
        ...

    def drop_prompt(self, tenant: str, name: str) -> bool:
        """Forget a prompt. Whether there was one. Raises BadSetting where something still names it."""
        ...


class Database(Store, Catalog, Protocol):
    """What `open_store` opens: conversations, and what was set up for the agents that lead them."""
