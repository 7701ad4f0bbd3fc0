"""A running chat: an agent in a conversation, its options, and the screen.

The session sends text to the model, switches the conversation or the model, and reports the state of the window. It
reads no lines.
"""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...agents.agent import ChatAgent
from ...agents.events import ModelReplied, ViewChanged
from ...agents.limits import Limits
from ...agents.toolbox import stop_commands
from ...agents.tools import Tool
from ...conversation import Conversation
from ...core.context import Context
from ...core.messages import ToolCall
from ...core.profiles import window_of
from ...core.receipts import Receipt
from ...errors import BadSetting, ConversationBusy, DoesNotFit, Refused
from ...ports import Database, Model
from ...stores.memory import MemoryStore
from .options import check_key, new_name, open_chat_model, price_of
from .rendering import Notice, Question, Waiting
from .screen import Screen

__all__ = ["ChatOptions", "ChatSession"]

_LEAST_ROOM = 500
"""Tokens that a window must have for messages."""


class ChatOptions(Struct, frozen=True):
    """The options of one chat."""

    name: str
    model: str
    store: Database
    """The store of the conversation. The caller closes it."""
    folder: Path
    tools: tuple[Tool, ...]
    system: str
    limits: Limits
    window: int | None = None
    policy: str | None = None
    approve_all: bool = False
    """Whether tool calls run without a question."""
    pace: float = 0.0
    """Seconds between two words of the demo."""
    is_new: bool = False
    """Whether the store has no such conversation yet. The first message creates it."""
    is_named: bool = True
    """Whether the user chose the name; else the session may choose another one."""


class ChatSession:
    """A running chat. The constructor raises the errors of opening the conversation and the model."""

    def __init__(self, options: ChatOptions, screen: Screen, *, is_interactive: bool) -> None:
        """`is_interactive`: the user can continue after Ctrl-C or a missing key; else these end the chat."""
        self._options, self._screen, self._is_interactive = options, screen, is_interactive
        self._allowed: set[str] = set()
        """Tools that the user allowed for the rest of the chat."""
        self._model = _model_of(options)
        self._agent = self._open_agent(options, self._model)
        self._last_shown = self.chat._agent.head.number
        """Number of the newest edit on the screen."""
        self._is_past_window = _exceeds_window(self.context())
        """Whether the whole history is larger than the window, and the screen has shown it."""
        self.has_failed = False
        """Whether a call of the model failed."""

    @property
    def chat(self) -> Conversation:
        return self._agent.conversation

    @property
    def name(self) -> str:
        return self._options.name

    @property
    def model(self) -> str:
        """Name of the model."""
        return self._options.model

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Tools of the model, without `expand`."""
        return self._options.tools

    def asks_before(self, tool: Tool) -> bool:
        """Return whether the user approves each call of this tool."""
        return tool.needs_approval and not self._options.approve_all and tool.wire_name not in self._allowed

    def send(self, text: str | None) -> None:
        """Send text to the model, and show the reply and the state of the window. None continues the last answer.

        Ctrl-C ends the reply, not the chat.
        """
        self._screen.show(Waiting())
        if self._options.is_new and text is not None:
            self._create_conversation()
        try:
            with closing(self._agent.stream(text)) as events:
                for event in events:
                    self._screen.show(event)
                    if isinstance(event, ViewChanged):
                        self._last_shown = max(self._last_shown, event.receipt.last)
                    if isinstance(event, ViewChanged | ModelReplied):
                        self._compare_with_window()
        except KeyboardInterrupt:
            stop_commands()
            if not self._is_interactive:
                raise
            self.notify("Stopped. Type /resume to continue this answer, or type something else.")
            if unknown := self._unknown_calls():
                self.notify(f"It is not known whether {unknown} was carried out. The model learns that; look yourself.")
        except BrokenPipeError:  # The reader of standard output is gone.
            raise
        except BadSetting as error:  # A missing key, for example.
            if not self._is_interactive:
                raise
            self.notify(str(error), "red")
        except ConversationBusy:
            self.has_failed = True
            self.notify(f"Another agent is running in {self.name}. Try again when it has finished.", "red")
        except Refused as error:
            self.has_failed = True
            self.notify(f"{self.model} did not answer: {_sentence(error.__cause__ or error)}", "red")
            self.notify(f"The policy makes too little room. Start the chat {self.name} again with --policy balanced.")
        except Exception as error:  # Any error of an SDK: a key, the network, a refusal. The chat continues.
            self.has_failed = True
            self.notify(f"{self.model} did not answer: {_sentence(error)}\nType /resume to try again.", "red")
        for receipt in self.chat.journal.receipts(self._last_shown):  # Changes after the reply was recorded.
            self.show_receipt(receipt)
        self._screen.show(self.context())

    def context(self) -> Context:
        """Return the state of the window."""
        return self.chat.context(cost_of=price_of)

    def notify(self, text: str, style: str = "") -> None:
        """Show a message of the chat itself."""
        self._screen.show(Notice(text, style))

    def show_receipt(self, receipt: Receipt) -> None:
        """Show a change of the view."""
        self._last_shown = max(self._last_shown, receipt.last)
        self._screen.show(ViewChanged(receipt))

    def fork(self, name: str) -> None:
        """Continue in a fork of this conversation."""
        if self._options.is_new:  # An empty conversation is not in the store yet; only its name changes.
            if name in self._options.store.names(""):
                raise BadSetting(f"There already is a conversation {name!r}. Choose another name.")
        else:
            self.chat.fork(name).close()
        self._reopen(replace(self._options, name=name, is_named=True))

    def switch_model(self, model: str) -> None:
        """Use another model from now on, with its window unless the options set one."""
        self._reopen(replace(self._options, model=model))

    def close(self) -> None:
        """Close the conversation and the model."""
        self._agent.close()
        if (close := getattr(self._model, "close", None)) is not None:
            close()

    def _compare_with_window(self) -> None:
        """Say so once, when the history becomes larger than the window and the view still fits."""
        if self._is_past_window or not _exceeds_window(context := self.context()):
            return
        self._is_past_window = True
        whole = context.tokens_whole + context.overhead
        self.notify(
            f"  = The whole conversation has {whole:,} tokens now, and the window {context.window:,}. A provider would "
            f"refuse to read all of it. The next request has {context.tokens:,}.",
            "yellow",
        )

    def _unknown_calls(self) -> str:
        """Return the tools whose calls the newest run began and did not see end."""
        journal = self.chat.journal
        steps = [step for run in journal.runs()[-1:] for step in journal.steps(run.id)]
        return ", ".join(step.name for step in steps if step.kind == "action" and step.state == "running")

    def _create_conversation(self) -> None:
        """Move the conversation from memory to the store."""
        options = replace(self._options, is_new=False)
        if not options.is_named and options.name in options.store.names(""):  # Another process took the name meanwhile.
            options = replace(options, name=new_name(options.store))
            self.notify(f"This conversation is {options.name}: another process has created {self.name}.", "dim")
        agent = self._open_agent(options, self._model)
        self._agent.close()
        self._agent, self._options = agent, options

    def _reopen(self, options: ChatOptions) -> None:
        model = _model_of(options)
        agent = self._open_agent(options, model)  # Before closing: if opening fails, this conversation stays open.
        self.close()
        self._agent, self._model, self._options = agent, model, options
        self._last_shown = self.chat._agent.head.number
        self._is_past_window = _exceeds_window(self.context())

    def _open_agent(self, options: ChatOptions, model: Model) -> ChatAgent:
        window: dict[str, Any] = {} if options.window is None else {"window": options.window}
        if not window and not hasattr(model, "window") and window_of(options.model.partition(":")[2]) is None:
            raise BadSetting(f"The window of {options.model} is not known. Name it, in tokens: --window 128000.")
        check_key(model)
        agent = ChatAgent(
            model,
            conversation=options.name,
            store=MemoryStore() if options.is_new else options.store,
            system=options.system,
            tools=options.tools,
            limits=options.limits,
            approve=self._approve,
            cost=price_of(options.model),
            **window,
            policy=options.policy,
            expand=True,
        )
        if options.is_new:
            _check_room(agent.conversation, options)
        return agent

    def _approve(self, call: ToolCall) -> bool | str:
        """Ask whether a call may run. Any answer but yes and no is text for the model."""
        if self._options.approve_all or call.name in self._allowed:
            return True
        self._screen.show(Question(call))
        answer = (self._screen.read("    allow it? [y/N/always, or why not] ") or "").strip()
        match answer.lower():
            case "y" | "yes":
                return True
            case "always":
                self._allowed.add(call.name)
                return True
            case "" | "n" | "no":
                return False
        return answer


def _model_of(options: ChatOptions) -> Model:
    return open_chat_model(options.model, pace=options.pace, window=options.window)


def _exceeds_window(context: Context) -> bool:
    """Return whether the whole history is too large for the window, in which the view fits."""
    window = context.window
    return window is not None and context.tokens <= window < context.tokens_whole + context.overhead


def _check_room(chat: Conversation, options: ChatOptions) -> None:
    """Raise BadSetting if system prompt and tools leave no room for messages in the window of an empty conversation."""
    with suppress(DoesNotFit):  # The conversation has noted their size by then.
        chat.plan(system=options.system, tools=[tool.wire(chat.format.name) for tool in options.tools])
    context = chat.context()
    if context.free is not None and context.free < _LEAST_ROOM:
        chat.close()
        raise BadSetting(
            f"Window of {context.window:,} tokens is too small: the system prompt, the tools and the reserve for the "
            f"answer take {context.tokens + context.reserve:,}. Name a larger one, such as --window 8000, or fewer "
            "tools, such as --tools none."
        )


def _sentence(error: BaseException) -> str:
    """Return the provider's own message, without the text that its SDK adds."""
    if type(error).__module__.startswith("foveate"):
        return str(error)
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    message = inner.get("message") if isinstance(inner, dict) else None
    text = message if isinstance(message, str) and message.strip() else str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
