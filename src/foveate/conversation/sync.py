"""A conversation for synchronous code. Every method leaves it unchanged if it raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from ..core.call_context import Budget
from ..core.edits import Edit, Pin, Unpin
from ..core.messages import Message, ToolCall, ToolResult
from ..core.needs import Needs
from ..core.planner import Plan
from ..core.plurals import plural
from ..core.receipts import Receipt
from ..core.stamps import Lease, Origin, PartRetention, Usage
from ..core.totals import Totals, sum_totals
from ..core.view import View
from ..errors import BadSetting
from ..expand.excerpts import Excerpt
from ..expand.search import Hit
from ..ports import CostOf, Format
from . import validate
from .agent_access import AgentAccess
from .append import facts_of
from .caller_list import Followed
from .journal import Journal, Privacy
from .request_items import RequestItems
from .session import Fix, HistoryEntry, Session

if TYPE_CHECKING:
    from ..core.context import Context
    from .aio import AsyncConversation

__all__ = ["Conversation"]

Reopen = Callable[[str], "Conversation"]


class Conversation:
    """A conversation that never outgrows its window. Made by `open_conversation`; may be used from several threads."""

    def __init__(self, session: Session, *, owns_store: bool = True, reopen: Reopen | None = None) -> None:
        self._session = session
        self._owns_store = owns_store
        self._reopen = reopen
        self._agent = AgentAccess(session)
        self._aio: AsyncConversation | None = None
        self.journal: Journal = Journal(session)
        """Records, receipts, events, runs, and checks of what is stored."""
        self.privacy: Privacy = Privacy(session)
        """Erasing, on request or by age."""

    @property
    def aio(self) -> AsyncConversation:
        """The same conversation for asyncio. Both sides share one lock, and may be used at the same time."""
        if self._aio is None:
            from .aio import AsyncConversation

            self._aio = AsyncConversation(self)
        return self._aio

    # -------------------------------------------------------------------------------------------------------- values

    @property
    def name(self) -> str:
        """The name this conversation was opened under."""
        return self._session.head.name

    @property
    def tip(self) -> str:
        """Id of the newest message; "" while there is none."""
        return self._session.head.tip

    @property
    def view(self) -> View:
        """The view that the model would see now, without any new edit."""
        with self._session.lock:
            return self._session.state.view()

    @property
    def budget(self) -> Budget:
        """The size that a request may have, as far as it is known."""
        return self._session.state.limits.budget()

    @property
    def format(self) -> Format:
        """The wire format of messages and prompts."""
        return self._session.state.format

    def __len__(self) -> int:
        """Number of messages in the history."""
        return self._session.head.position

    def __repr__(self) -> str:
        head = self._session.head
        size = f"{plural(head.position, 'message')}, {plural(head.number, 'edit')}"
        return f"<{type(self).__name__} {head.name!r}: {size}>"

    # ------------------------------------------------------------------------------------------------- the exchange

    def append(
        self,
        message: object,
        *,
        after: str | None = None,
        time: int | None = None,
        origin: Origin | None = None,
        lease: Lease | None = None,
        kept: Sequence[PartRetention] = (),
        metadata: object = None,
    ) -> tuple[str, ...]:
        """Add messages at the tip, all or none, and return their ids.

        `message`: a wire message of the conversation's format (dict or SDK object), a list of them, tool-result
        blocks, a core `Message`, or a str (the user's words). `after`: id of the message it follows; a retry with it
        adds nothing twice. `time`: milliseconds since 1970, by default the clock's. `origin`: where it came from, if
        its role does not show that. `lease`: when it expires (`expire_results`). `kept`: how long each of its parts is
        shown (`retain_blocks`). Both count under every policy but `off`, which logs that they do not. `metadata`: facts
        of your own, a dict, dataclass, Struct or pydantic model that foveate stores and does not read.
        `HistoryEntry.metadata` and `Entry.metadata` return them.

        Raises BadMessage, BadSetting, and ConflictError if other messages follow `after`.
        """
        facts = facts_of(time, origin, lease, kept, metadata)
        with self._session.lock:
            return self._session.exchange.append(message, after, facts)

    def follow(
        self,
        messages: Sequence[Any],
        *,
        read: Callable[[Any], object] | None = None,
        ignore_removals: bool = False,
    ) -> Followed:
        """Take over your own whole list of messages: append what is new, without planning.

        `messages`: dicts of the conversation's format or their JSON in bytes, core `Message` values, a list of these
        for an item that holds several messages, or `ListItem` values with an id, metadata, an origin or a lease.
        `read`: returns one of these for an item of another class; it is called for new items only, so do not change
        older ones in place. `prompt` and `prepare` do the same with `messages=`.

        Messages are the same if they say the same, in any form. The view hides what the list no longer has, and
        shows what it has instead; `undo` and `explain` know these edits. With `ignore_removals` it keeps what the list
        no longer has: for a caller that only trims to a size. If the list has another order, or nothing of the history,
        the conversation forks, and its former course is kept under its name with `~1`, `~2`, and so on. It also forks
        at the next prompt if the list ends before the history: the model answers again.

        `view.by_item()` and `view.given(entry)` then say which items of the list a view shows unchanged. Raises
        BadMessage, BadSetting, and ConflictError if other writers kept changing the conversation.
        """
        with self._session.lock:
            return self._session.exchange.follow(messages, read, ignore_removals=ignore_removals)

    def prompt(
        self,
        *,
        system: object = None,
        tools: Sequence[Mapping[str, Any]] = (),
        messages: Sequence[Any] | None = None,
        model: str | None = None,
        window: int | None = None,
        shared: bool = False,
    ) -> dict[str, Any]:
        """Return the keyword arguments of the next SDK call; commits the plan that makes them fit.

        `messages`: your own whole list, if you keep one, as for `follow`. `system` and
        `tools` are counted and passed through. `model` and `window` (tokens) are those of this request, by default
        those of the opening; `needs` then returns what the model needs beyond the prompt.

        Everything returned is new, and yours to change. With `shared`, unchanged messages are the same objects in every
        prompt: copying none of them is faster, but do not change them. The SDKs of the providers do not.

        Raises BadSetting if neither window nor model is known or the model has another format, DoesNotFit if system
        prompt and pending request alone do not fit, and CompactionFailed if a strict policy requires it.
        """
        exchange = self._session.exchange
        with self._session.lock:
            return exchange.prompt_of(exchange.prepare(system, tools, messages, (model, window)), shared=shared)

    def body(
        self,
        *,
        system: object = None,
        tools: Sequence[Mapping[str, Any]] = (),
        model: str | None = None,
        window: int | None = None,
    ) -> bytes:
        """Return the JSON bytes of the next request, without cache marks.

        The arguments are those of `prompt`, and it plans as `prompt` does.
        """
        exchange = self._session.exchange
        with self._session.lock:
            return exchange.body_of(exchange.prepare(system, tools, None, (model, window)))

    def body_parts(
        self,
        *,
        system: object = None,
        tools: Sequence[Mapping[str, Any]] = (),
        model: str | None = None,
        window: int | None = None,
    ) -> list[bytes]:
        """Return the bytes of `body` in pieces, to be sent or hashed one after the other.

        The bytes of unchanged messages are the same objects as before, so a long body is not copied.
        """
        exchange = self._session.exchange
        with self._session.lock:
            return exchange.body_parts_of(exchange.prepare(system, tools, None, (model, window)))

    def prepare(
        self,
        *,
        system: object = None,
        tools: Sequence[Mapping[str, Any]] = (),
        messages: Sequence[Any] | None = None,
        model: str | None = None,
        window: int | None = None,
        may_expand: bool = True,
    ) -> View:
        """Return the view of the next request: `prompt` without writing it in a wire format.

        The arguments are those of `prompt`. `may_expand`: False if this request does not offer the tool `expand`,
        although the conversation was opened with it.
        """
        exchange = self._session.exchange
        with self._session.lock:
            return exchange.prepare(system, tools, messages, (model, window), may_expand=may_expand)

    def request_items(self, view: View) -> RequestItems:
        """Return the messages of a request with this view, for a program that sends JSON itself.

        `view`: from `prepare`. The result names the items of your own list that the view shows unchanged, so that you
        send your own bytes for them, and has JSON for the rest. System prompt, tools and cache marks are yours.
        """
        validate.instance("view", view, View, "a View, such as that of prepare()")
        with self._session.lock:
            return self._session.exchange.request_items(view)

    def answers(self, tool: str) -> bool:
        """Return whether `record` answers the calls of this tool in the reply to the newest request.

        This is True for the tool `expand` if the request offers it.
        """
        tool = validate.text("tool", tool)
        with self._session.lock:
            return self._session.offer.answers(tool)

    def plan(
        self,
        *,
        system: object = None,
        tools: Sequence[Mapping[str, Any]] = (),
        model: str | None = None,
        window: int | None = None,
    ) -> Plan:
        """Return the edits that the next prompt would commit, and the views before and after. Changes nothing.

        The arguments are those of `prompt`.
        """
        with self._session.lock:
            return self._session.exchange.plan(system, tools, (model, window))

    def apply_plan(
        self,
        *,
        system: object = None,
        tools: Sequence[Mapping[str, Any]] = (),
        model: str | None = None,
        window: int | None = None,
    ) -> tuple[Receipt, ...]:
        """Commit the plan that `plan` returns with the same arguments, without a model call; return the receipts.

        Summaries that the plan needs are written first. The newest messages count as of the last `refresh`. Raises
        ConflictError if another writer changed the view since then, and what `prompt` raises for a plan.
        """
        with self._session.lock:
            return self._session.apply_plan(system, tools, (model, window))

    @property
    def needs(self) -> Needs:
        """Beta features and options of the call that the newest prompt needs beyond its messages."""
        with self._session.lock:
            return self._session.exchange.needs()

    def record(
        self,
        reply: object,
        *,
        usage: Usage | None = None,
        call: int | None = None,
        interrupted: bool = False,
        refusal: str = "",
    ) -> str:
        """Add the model's reply and its usage; return its id.

        `reply`: the SDK's response, its dict form, or a core `Message`. The measured usage corrects later estimates.
        `call`: the number of the model call (`View.turn`). If your list brought the same reply already, it is not added
        again and only its usage counts. Raises ConflictError if the call has another reply.

        `interrupted`: you stopped the stream, and `reply` is what had arrived: `Gatherer.partial()`, the snapshot of an
        SDK's stream, or `assistant(text)`. Texts and complete reasoning are kept, calls are left out, and the stamp
        says `Stop("interrupted")`. Counts that neither the provider nor `usage` reports are estimated, until `bill`
        reports them. If nothing had arrived (None, or a Message without parts), nothing is added, and the id is "".
        A reply that has its end and no calls is recorded as usual.

        `refusal`: a sentence that answers the reply's calls of `expand`, in place of originals.
        """
        number = 0 if call is None else validate.integer("call=", call, 1)
        refusal, exchange = validate.text("refusal=", refusal), self._session.exchange
        with self._session.lock:
            return exchange.record(reply, usage, call=number, interrupted=interrupted, refusal=refusal)

    def bill(self, call: int | str, usage: Usage) -> bool:
        """Record the usage of a model call that is reported after its reply, or of a call without a stored reply.

        `call`: the number of the call (`View.turn`), or the id of its reply. The first report of a call counts: return
        False, and change nothing, if its usage is known already. It replaces the estimate for an interrupted reply.
        Raises BadInput if there was no such call.
        """
        with self._session.lock:
            return self._session.bill(call, usage)

    def discard(self, call: int | str) -> Receipt | None:
        """Withdraw a reply that you rejected, with the results of its calls: no later view shows them.

        `call`: the number of the call (`View.turn`), or the id that `record` returned. Its usage still counts,
        and your next list need not hold it. Returns None if nothing of it is shown. Raises BadInput if there
        was no such call.
        """
        with self._session.lock:
            return self._session.discard(call)

    def retry_smaller(self, error: BaseException) -> dict[str, Any]:
        """Learn the limit from a prompt that the provider refused as too long; return a smaller prompt.

        Raises `error` itself if it has another cause. Raises Refused if three smaller prompts were refused in a row, or
        if no policy makes the prompt smaller, as with `policy="off"`.
        """
        exchange = self._session.exchange
        with self._session.lock:
            return exchange.prompt_of(exchange.retry_smaller(error))

    def refresh(self) -> None:
        """Read what other processes appended or edited."""
        with self._session.lock:
            self._session.state.refresh()

    # ----------------------------------------------------------------------------------------------------- originals

    @overload
    def expand(
        self, handle: str | int, *, where: Literal["view", "tail", "auto"] = "view", reason: str = ""
    ) -> Message: ...
    @overload
    def expand(self, handle: str | int, *, lines: str | int | Sequence[int]) -> Excerpt: ...
    @overload
    def expand(self, handle: str | int, *, items: str | int | Sequence[int]) -> Excerpt: ...
    @overload
    def expand(self, handle: str | int, *, pattern: str) -> Excerpt: ...

    def expand(
        self,
        handle: str | int,
        *,
        lines: str | int | Sequence[int] | None = None,
        items: str | int | Sequence[int] | None = None,
        pattern: str | None = None,
        where: Literal["view", "tail", "auto"] = "view",
        reason: str = "",
    ) -> Message | Excerpt:
        """Show an original again, or return a part of it.

        `handle`: a handle such as `"m3"` or `"m3.1"`, a message's id, or its number. Alone: the next view shows all of
        it again, with a new lease; of a span the first message is returned. `where`: in its place (`view`), in a
        message of its own at the end, which leaves the cached prefix alone (`tail`), or the cheaper one (`auto`).
        `reason` is kept in the journal.

        With `lines`, `items` ("40-80", "40-", "-20", "7") or `pattern` (a regular expression; extra `expand`): return
        that part and change nothing. Items are elements of JSON, rows of a table, records between blank lines, or
        lines.

        Raises UnknownHandle, NotExpandable if it is shown whole or a policy withholds it from the model, and BadInput
        if there is no such part or the pattern is wrong or takes too long.
        """
        parts = {"lines": lines, "items": items, "pattern": pattern}
        with self._session.lock:
            return self._session.expand(handle, parts, where, reason)

    def search(self, words: str, *, limit: int = 10) -> list[Hit]:
        """Return at most `limit` messages that hold these words and are not shown whole, best first.

        Words in quotation marks stand together: `'"exit code 1"'`. Messages with all words come before those with
        some. Raises BadSetting.
        """
        words, limit = validate.text("words", words), validate.integer("limit=", limit, 1)
        with self._session.lock:
            return self._session.expander.search(words, limit)

    def open_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls of the newest reply that wait for an answer.

        Calls of `expand` that `record` answered are not among them.
        """
        with self._session.lock:
            return self._session.expander.open_calls()

    def answer(self, call: object) -> ToolResult:
        """Answer a call of the tool `expand`: append its result, and return it.

        `call`: one of `open_calls()`, the provider's block, or its id. A call that cannot be answered gets a result
        with the reason. Raises BadInput if the newest reply has no such open call.
        """
        with self._session.lock:
            return self._session.answer(call)

    def expansion(self, arguments: str | Mapping[str, Any]) -> ToolResult:
        """Return the result of a call of the tool `expand`, for a program that answers the call itself.

        `arguments`: those of the call, as JSON text or as a dict. Changes nothing, and raises nothing: arguments that
        cannot be used give a result of state `error` with a sentence for the model. The words are those of `answer`,
        but an original always stands in the result. A call that `expand=True` has answered keeps its answer. The
        `call_id` of the result is empty.
        """
        with self._session.lock:
            return self._session.expander.expansion(arguments)

    def original(self, handle: str | int) -> Message:
        """Return a message as it was appended. Changes nothing. Raises UnknownHandle."""
        return self.originals(handle)[0]

    def originals(self, handle: str | int) -> tuple[Message, ...]:
        """Return all messages of a span such as `m3-m17` as they were appended."""
        with self._session.lock:
            return self._session.originals(handle)

    def lease(self, handle: str | int) -> Lease:
        """Return the lease that counts for a message: its own, merged with those of its tool and of the policy.

        The mode is `none` if it never expires. Of a span, the first message counts. Raises UnknownHandle.
        """
        with self._session.lock:
            return self._session.lease(handle)

    # --------------------------------------------------------------------------------------------------------- edits

    def edit(self, *edits: Edit) -> Receipt:
        """Commit edits of your own. Raises BadEdit, and changes nothing, if one cannot apply."""
        with self._session.lock:
            return self._session.edit(edits)

    def undo(self, target: Receipt | int | None = None) -> Receipt:
        """Undo what a receipt, or the edit with a number, did; without either, the newest change."""
        with self._session.lock:
            return self._session.undo(target)

    def pin(self, handle: str | int) -> Receipt | None:
        """Keep a message as it is shown now: no policy may shrink or hide it. None if it is pinned already."""
        with self._session.lock:
            return self._session.pin(handle, Pin)

    def unpin(self, handle: str | int) -> Receipt | None:
        """Let policies shrink a message again. None if it is not pinned."""
        with self._session.lock:
            return self._session.pin(handle, Unpin)

    def compact(self, focus: str = "") -> Receipt:
        """Show the oldest part as a summary now, however full the window is.

        `focus`: what the summary concentrates on, such as `"API decisions"`. Recent, open and pinned messages stay as
        they are, as in a compaction on overflow. Raises BadSetting without a summarizer, BadInput if there is nothing
        to compact, and NoSummary if there is no usable summary.
        """
        with self._session.lock:
            return self._session.compact(focus)

    def fork(self, name: str, *, at: str | int | None = None) -> Conversation:
        """Create a conversation that shares the past up to a message (default: all of it), and open it.

        `at`: a handle such as `"m5"`, a message's id, or its number.
        """
        with self._session.lock:
            self._session.fork(name, at)
        if self._reopen is None:
            raise BadSetting("This conversation was not made by open_conversation. Open the fork by its name.")
        return self._reopen(name)

    # ------------------------------------------------------------------------------------------------------- reading

    def history(self, first: int = 1, last: int | None = None) -> list[HistoryEntry]:
        """Return the messages from number `first` to `last` as they were appended."""
        with self._session.lock:
            return self._session.history(first, last)

    def listed(self) -> list[HistoryEntry]:
        """Return the messages of your own list (`follow`), to create it again when a program restarts.

        These are the messages of the history without those that you removed, without what plugins and the tool
        `expand` added, and without erased ones. Messages that you edited are returned as they were appended.
        """
        with self._session.lock:
            return self._session.listed()

    def explain(self, handle: str | int) -> str:
        """Return why a message looks as it does in the view, in sentences."""
        with self._session.lock:
            return self._session.explain(handle)

    def as_of(self, turn: int) -> View:
        """Return what the model saw at call number `turn`. Raises BadInput if there was no such call."""
        turn = validate.integer("turn", turn, 1)
        with self._session.lock:
            return self._session.past.view_at(turn)

    def context(self, *, cost_of: CostOf | None = None) -> Context:
        """Return the meter: what the window holds by kind, what calls were billed, and what was saved.

        `cost_of`: a function from the name of a model to its cost, a function of a `Usage` that returns US dollars, or
        None; such as `foveate.models.cost_of`. Each call then has the price of its own model. Reads as much as
        `totals` does.
        """
        with self._session.lock:
            return self._session.context(cost_of)

    def totals(self, *, children: bool = False) -> Totals:
        """Return sums over all model calls: tokens saved, and what saving them cost.

        Reads the whole history the first time, then what came since. `children`: add the totals of `children()`, whose
        histories are read each time.
        """
        validate.instance("children=", children, bool, "True or False")
        with self._session.lock:
            own = self._session.past.totals()
            names = self._session.children() if children else []
        if not names:
            return own
        if self._reopen is None:
            raise BadSetting("This conversation was not made by open_conversation. Open its children by their names.")
        return sum_totals([own, *(self._reopen(name).totals() for name in names)])

    def parent(self) -> str | None:
        """Return the name of the conversation that this one is a child of (`child_name`); None if there is none."""
        with self._session.lock:
            return self._session.parent()

    def children(self) -> list[str]:
        """Return the names of this conversation's children and of their children, such as those of sub-agents.

        Reads the names of all conversations of the tenant.
        """
        with self._session.lock:
            return self._session.children()

    def fixes(self) -> list[Fix]:
        """Return the differences between view and history that the provider's rules require."""
        with self._session.lock:
            return self._session.fixes()

    def close(self) -> None:
        """Close the store, if this conversation opened it. Everything appended is stored already.

        If much is new, a snapshot is saved, so that the next opening is fast.

        A summary that is being written in the background is given up without waiting for it.
        """
        self._session.prefetch.close()
        self._session.save_at_close()
        if self._owns_store:
            self._session.exchange.is_closed = True
            self._session.state.store.close()

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
