"""A conversation as its users hold it. Every method leaves it as it was if it raises."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .core.edits import Edit, Pin, Record, Unpin
from .core.events import Event
from .core.messages import Message, ToolCall, ToolResult
from .core.planner import Plan
from .core.receipts import Receipt
from .core.runs import AgentRun, AgentRunStep, LockHolder
from .core.stamps import Lease, Origin, PartRetention, Usage
from .core.totals import Totals
from .core.view import View
from .engine import Engine, Step
from .errors import BadSetting
from .expansion.answering import Expanding
from .expansion.excerpts import Excerpt
from .expansion.hits import Hit
from .expansion.placing import Where
from .plugins import Plugin
from .ports import Cost, Erasure, Finding
from .shell import NOT_EXPANDING, Fix, HistoryEntry, RepairReport, Shell

if TYPE_CHECKING:
    from .core.context import Context
    from .core.retention import Ages
    from .engine.aging import Aged

__all__ = ["Conversation"]

T = TypeVar("T")


class Conversation(Shell):
    """A conversation that never outgrows its window. Made by `open_conversation`; may be used from several threads."""

    def __init__(
        self,
        engine: Engine,
        *,
        on_event: Callable[[Event], object] | None = None,
        plugins: Sequence[Plugin] = (),
        expanding: Expanding = NOT_EXPANDING,
        owns_store: bool = True,
        reopen: Callable[[str], Conversation] | None = None,
    ) -> None:
        super().__init__(engine, on_event, plugins, expanding)
        self._lock = threading.RLock()
        self._owns_store = owns_store
        self._reopen = reopen

    def _do(self, step: Step[T]) -> T:
        with self._lock:
            try:
                effect = next(step)
                while True:
                    try:
                        answer = effect()
                    except BaseException as error:  # The step decides what a failure of the store means.
                        effect = step.throw(error)
                    else:
                        effect = step.send(answer)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            finally:
                step.close()  # At once, also after Ctrl-C: what it still holds must not be found held by the next step.

    @property
    def view(self) -> View:
        """What the model would see now without any new edit."""
        with self._lock:  # Looking arranges what is new, which must not happen while another thread adds to it.
            return super().view

    def append(
        self,
        message: object,
        *,
        after: str | None = None,
        time: int | None = None,
        origin: Origin | None = None,
        lease: Lease | None = None,
        kept: Sequence[PartRetention] = (),
        metadata: Mapping[str, Any] | None = None,
        step: str = "",
        owner: str = "",
    ) -> tuple[str, ...]:
        """Add what was said at the tip, all or nothing, and return the ids of the messages added.

        `message`: a wire message of the conversation's format (dict or SDK object), a list of them, tool-result
        blocks, a core `Message`, or a str (the user said it). `after`: id of the message it follows; a retry that
        names it adds nothing twice. `time`: milliseconds since 1970, by default the clock's. `origin`: where it
        came from, if its role does not say. `lease`: when it expires, for `expire_results`. `kept`: for how long each
        of its parts is shown, for `retain_blocks`; without these policies both are recorded and nothing else.
        `metadata`: facts of your own, a JSON object that is kept and never read. `step`: of an agent's run, that it
        came from (`core.runs.step_name`). `owner`: who has to have the claim on this conversation (`claim`); where that
        one has lost it, nothing is added and ConversationBusy is raised. Raises BadMessage, BadSetting, and
        ConflictError if something
        else follows `after`.
        """
        about = self._about(time, origin, lease, kept, metadata, step)
        return self._do(self._for(owner, self._append(message, after, about)))

    def plan(self, *, system: object = None, tools: Sequence[Mapping[str, Any]] = ()) -> Plan:
        """A dry run: the edits the next prompt would commit, and the views before and after. Changes nothing."""
        with self._lock:
            self._weigh(system, tools)
            return self._engine.plan()

    def prepare(
        self, *, system: object = None, tools: Sequence[Mapping[str, Any]] = (), messages: object = None
    ) -> View:
        """Plan, commit and check, and return the view: `prompt` without writing it down."""
        return self._do(self._prepare(system, tools, messages))

    def prompt(
        self,
        *,
        system: object = None,
        tools: Sequence[Mapping[str, Any]] = (),
        messages: object = None,
        owner: str = "",
    ) -> dict[str, Any]:
        """The keyword arguments of the SDK call for the next turn; commits the plan that makes them fit.

        `messages`: the whole list, for whoever keeps one: its new tail is appended, and where it departs from the
        history the conversation forks (the former course is kept under its name with `~1`, `~2`, ...). `system` and
        `tools` are counted and passed through. `owner`: who has to have the claim where something is appended for it
        (what plugins say, answers of `expand`), as for `append`. Raises BadSetting if neither window nor model is
        known, DoesNotFit if system prompt and pending request alone do not fit, CompactionFailed where a strict policy
        says so.
        """
        with self._lock:
            return self._prompted(self._do(self._for(owner, self._prepare(system, tools, messages))))

    def body(self, *, system: object = None, tools: Sequence[Mapping[str, Any]] = ()) -> bytes:
        """Like `prompt`, as the JSON bytes of the request body, without cache marks."""
        with self._lock:
            return self._bodied(self._do(self._prepare(system, tools, None)))

    def record(
        self, reply: object, *, usage: Usage | None = None, step: str = "", call: int = 0, owner: str = ""
    ) -> str:
        """Add the model's answer and what it was billed; returns its id.

        `reply`: the SDK's response, its dict form, or a core `Message`. What the provider measured calibrates later
        estimates. `step`: of an agent's run, that asked for it. `call`: the number of the model call that it answers
        (`view.turn`, as the prompt was made): where somebody else has answered that first, ConflictError is raised and
        nothing is added. `owner`: as for `append`.
        """
        return self._do(self._for(owner, self._record(reply, usage, step, call)))

    def refused(self, error: BaseException, *, owner: str = "") -> dict[str, Any]:
        """The provider said the prompt is too long: learn the limit, plan smaller, and return the new prompt.

        Raises `error` itself if it says something else, and Refused if a prompt is refused twice in a row.
        `owner`: as for `prompt`.
        """
        with self._lock:
            return self._prompted(self._do(self._for(owner, self._refused(error))))

    @overload
    def expand(self, handle: str | int, *, where: Where = "view", reason: str = "") -> Message: ...
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
        where: Where = "view",
        reason: str = "",
    ) -> Message | Excerpt:
        """The original behind a handle; also taken: a message's id, and its index, from 0, in the view settled last.

        Alone: all of it, which the next view shows again, its lease begun anew; of a span the first message is
        returned. `where`: in its place (`view`), in a message of its own at the tail, which leaves the cached prefix
        alone (`tail`), or where it costs less (`auto`). `reason` is kept in the journal.

        With `lines`, `items` ("40-80", "40-", "-20", "7") or `pattern` (a regular expression; extra `expand`): that
        part, which is returned and changes nothing. Items are elements of JSON, rows of a table, records between blank
        lines, or lines.

        Raises UnknownHandle, NotExpandable for what is shown whole and for what a policy keeps from the model, and
        BadInput for a part that is not there and a pattern that is wrong or takes too long.
        """
        return self._do(self._expanded(handle, {"lines": lines, "items": items, "pattern": pattern}, where, reason))

    def search(self, words: str, *, limit: int = 10) -> list[Hit]:
        """Where these words stand in messages that are not shown whole, best first; `"in quotation marks"` together.

        Those with all words come before those with some. Raises BadSetting.
        """
        return self._do(self._search(words, limit))

    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the newest reply that wait for an answer. With `expand=True` its own are answered already."""
        with self._lock:
            return self._expander.open_calls()

    def answer(self, call: object) -> ToolResult:
        """Answer a call of the tool `expand`: its result is appended, and returned.

        `call`: one of `open_calls()`, the provider's block, or its id. Whatever its arguments say, nothing is raised:
        what cannot be answered gets a result that tells why, and changes nothing else. Raises BadInput where the newest
        reply has no such call that waits for an answer.
        """
        return self._do(self._answer(call))

    def original(self, handle: str) -> Message:
        """What was appended, whatever the view shows of it. Changes nothing. Raises UnknownHandle."""
        return self._do(self._original(handle))[0]

    def originals(self, handle: str) -> tuple[Message, ...]:
        """The same for all messages of a span such as `m3-m17`."""
        return self._do(self._original(handle))

    def edit(self, *edits: Edit) -> Receipt:
        """Commit edits of your own. Raises BadEdit, and changes nothing, where one cannot apply."""
        return self._do(self._edit(edits, "edit"))

    def compact(self, focus: str = "") -> Receipt:
        """Show the oldest part as a summary, now, however full the window is, and return what that did.

        `focus`: what the summary is to say most about, such as `"API decisions"`. What is recent, open or pinned stays
        word for word, as for a compaction on overflow. Raises BadSetting where there is no summarizer, BadInput where
        there is nothing to compact, and NoSummary where none could be had.
        """
        return self._do(self._compact(focus))

    def undo(self, what: Receipt | int) -> Receipt:
        """Take back what a receipt, or the edit with a number, did. Returns the receipt of that."""
        return self._do(self._undo(what))

    def pin(self, handle: str) -> Receipt:
        """Keep a message as it is shown now: no policy may shrink or hide it."""
        return self._do(self._pin(handle, Pin))

    def unpin(self, handle: str) -> Receipt:
        """Take a pin back."""
        return self._do(self._pin(handle, Unpin))

    def fork(self, name: str, *, at: int | None = None) -> Conversation:
        """A new conversation that shares the past up to message number `at` (default: all of it)."""
        self._do(self._fork(name, at))
        if self._reopen is None:
            raise BadSetting("This conversation was put together by hand; open the fork by its name.")
        return self._reopen(name)

    def history(self, first: int = 1, last: int | None = None) -> list[HistoryEntry]:
        """Everything that was appended, from message number `first` to `last`, whatever the view shows."""
        return self._do(self._history(first, last))

    def records(self) -> list[Record]:
        """The journal: every commit that changed the view, in order."""
        return self._do(self._records())

    def receipts(self, after: int = 0) -> list[Receipt]:
        """What each applied plan and each edit by hand did, in order, from the first edit behind number `after` on."""
        return self._do(self._receipts(after))

    def events(self, since: int = 0) -> list[Event]:
        """Everything that happened, in order of time, from `since` (milliseconds since 1970) on."""
        return self._do(self._events(since))

    def keep_run(self, run: AgentRun, *, owner: str = "") -> None:
        """Keep a run of an agent with this conversation, for good, instead of what was kept under its id.

        With `owner`, only while that one has the claim on this conversation; else ConversationBusy is raised.
        """
        self._do(self._keep_run(run, owner))

    def keep_step(self, step: AgentRunStep, *, owner: str = "") -> None:
        """Keep a step of a run, for good, instead of what was kept under its number. `owner`: as for runs."""
        self._do(self._keep_step(step, owner))

    def claim(self, owner: str, instead_of: LockHolder | None = None) -> LockHolder:
        """Claim this conversation for one who is at work in it, and return whose claim there is now (`Store.claim`).

        Agents do so by themselves. It binds those who name an owner when they write, and nobody else.
        """
        return self._do(self._claim(owner, instead_of))

    def release(self, owner: str) -> None:
        """Give up the claim, if `owner` has it."""
        self._do(self._release(owner))

    def runs(self) -> list[AgentRun]:
        """The runs of agents that were kept with this conversation, oldest first."""
        return self._do(self._runs())

    def steps(self, run: str, after: int = 0) -> list[AgentRunStep]:
        """The steps of the run with this id, in order, those with numbers above `after`."""
        return self._do(self._steps(run, after))

    def totals(self) -> Totals:
        """Sums over all model calls: tokens saved, and what saving them cost.

        Reads the whole history the first time it is asked, then what came since.
        """
        return self._do(self._totals())

    def context(self, *, cost: Cost | None = None) -> Context:
        """The meter: what the window holds now, by kind, what calls were billed, and what was saved.

        `cost`: what tokens cost in US dollars, where that is known. Reads as much as `totals` does.
        """
        return self._do(self._context(cost))

    def as_of(self, turn: int) -> View:
        """What the model saw at call number `turn`."""
        return self._do(self._as_of(turn))

    def explain(self, handle: str) -> str:
        """Why the message behind a handle looks as it does in the view, in sentences."""
        return self._do(self._explain(handle))

    def mends(self) -> list[Fix]:
        """What differs in the view from what was appended only because the provider would refuse it."""
        with self._lock:
            return self._mends()

    def repair(self) -> RepairReport:
        """A legal copy of the view as a request body, and each change that it took. Nothing of the history is lost."""
        return self._do(self._repair())

    def verify(self) -> list[Finding]:
        """Re-hash everything that is stored of this conversation and report what is wrong, and where."""
        return self._do(self._verify())

    def erase(self, handle: str | int, *, reason: str = "", who: str = "") -> Erasure:
        """Erase what the messages behind a handle say, for good, with all that was made of it in every fork that shares
        it: placeholders, summaries, copies that were asked for, snapshots, words in the index, steps of agents' runs.

        The history keeps their places and hashes, so `verify` still proves the rest. The view shows `[erased]` where an
        answer must stand; where a summary told of them, its span's other originals come back if there is room for
        them. `reason` and `who` are kept, without a word of what is gone. Erasing again changes nothing.

        What it cannot reach: other messages that quote it, other conversations, backups, providers. Until `vacuum` the
        file may still hold bytes of it. Raises UnknownHandle, BadInput for a part of a message, and StoreError where a
        record is too old to be changed; nothing is erased then.
        """
        return self._do(self._erase(handle, reason, who))

    def age(self, ages: Ages, *, reason: str = "age", who: str = "", dry_run: bool = False) -> Aged:
        """Erase what was kept long enough, as `erase` does, and tell how much that was, by kind.

        `ages`: `{"tool results": "90 days and 200 turns", "media": "30 days"}`, or values of `Age`. What the view shows
        waits until it shows it no more, and so does what is pinned, a system prompt and the last input of the user,
        unless a rule says otherwise (`"90 days, even pinned"`); summaries stay. So not a byte of the view changes.
        `dry_run`: tell only. May be interrupted anywhere; called again it goes on. Raises BadSetting, and ConflictError
        where others keep changing the view.
        """
        return self._do(self._age(ages, reason, who, dry_run))

    def erasures(self) -> list[Erasure]:
        """What was erased in this conversation and its forks, in order."""
        return self._do(self._erasures())

    def leftovers(self) -> tuple[int, list[Finding]]:
        """How many messages are erased, and whatever there still is that was made of them. None: an empty list."""
        return self._do(self._leftovers())

    def refresh(self) -> None:
        """Take in what other processes appended or edited."""
        self._do(self._engine.refresh())

    def close(self) -> None:
        """Let go of the store, if this conversation opened it. What was appended is in it already.

        A summary that is being written in the background is given up; nothing waits for it.
        """
        self._engine.ahead.close()
        if self._owns_store:
            self._engine.store.close()

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
