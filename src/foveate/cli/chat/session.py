"""One chat: an agent in a conversation, what it was asked for with, and where it is shown.

Knows how to say something, to go over to another conversation or model, and to tell how the window stands. It reads no
lines; that is `chat.py`.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...agents.chat import ChatAgent
from ...agents.events import ViewChanged
from ...agents.limits import Limits
from ...agents.toolbox import stop_commands
from ...agents.tools import Tool
from ...conversation import Conversation
from ...core.context import Context
from ...core.messages import ToolCall
from ...core.profiles import window_of
from ...core.receipts import Receipt
from ...errors import BadSetting, ConversationBusy
from ...models.demo import demo_model
from ...models.prices import cost_of
from ...open import open_model
from ...ports import Cost, Model, Store
from ...stores.memory import MemoryStore
from .options import new_name
from .rendering import Notice, Question, Waiting
from .screen import Screen

__all__ = ["DEMO", "Opening", "Talk"]

DEMO = "demo"


class Opening(Struct, frozen=True):
    """What a chat was asked for with."""

    name: str
    model: str
    store: Store
    """Where the conversation is kept; whoever opened it closes it."""
    folder: Path
    tools: tuple[Tool, ...]
    system: str
    limits: Limits
    window: int | None = None
    policy: str | None = None
    approves: bool = False
    """Whether calls that ask first are taken as allowed."""
    pace: float = 0.0
    """Seconds between two words of the demo."""
    is_new: bool = False
    """Whether there is no such conversation yet. It takes up its name when something is said."""
    is_named: bool = True
    """Whether somebody asked for this name; else another will do."""


class Talk:
    """A chat that goes on. Raises what opening the conversation and the model raises."""

    def __init__(self, opening: Opening, screen: Screen, *, follows: bool = True) -> None:
        """`follows`: whether somebody is there who goes on after what is stopped, or cannot be done for want of a key;
        else that ends the chat.
        """
        self._opening, self._screen, self._goes_on = opening, screen, follows
        self._allowed: set[str] = set()
        """Tools that nobody is asked for any more."""
        self._model = self._opened_model(opening)
        self._agent = self._opened(opening, self._model)
        self._told = self.chat.head.number
        """The newest edit that was told of."""
        self.has_failed = False
        """Whether a model could not be asked."""

    @property
    def chat(self) -> Conversation:
        return self._agent.conversation

    @property
    def name(self) -> str:
        return self._opening.name

    @property
    def model(self) -> str:
        """The name of the model that answers."""
        return self._opening.model

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model may use, beside `expand`."""
        return self._opening.tools

    def asks(self, tool: Tool) -> bool:
        """Whether a call of this tool is asked for."""
        return tool.needs_approval and not self._opening.approves and tool.name not in self._allowed

    def say(self, text: str | None) -> None:
        """Say something, show what comes of it, and how the window stands then. None: go on with what broke off.

        Ctrl-C ends the reply, not the chat.
        """
        self._screen.tell(Waiting())
        if self._opening.is_new and text is not None:
            self._take_name()
        try:
            with closing(self._agent.stream(text)) as events:
                for event in events:
                    self._screen.tell(event)
                    if isinstance(event, ViewChanged):
                        self._told = max(self._told, event.receipt.last)
        except KeyboardInterrupt:
            stop_commands()
            if not self._goes_on:
                raise
            self.note("Stopped. /resume goes on with it; or say something else.")
        except BrokenPipeError:  # Nobody reads any more.
            raise
        except BadSetting as error:  # A key that is not there, for example.
            if not self._goes_on:
                raise
            self.note(str(error), "red")
        except ConversationBusy:
            self.has_failed = True
            self.note(f"Somebody else is at work in {self.name}. Say it again when that has ended.", "red")
        except Exception as error:  # Whatever an SDK raises: a key, the network, a refusal. The chat goes on.
            self.has_failed = True
            self.note(f"{self.model} did not answer: {_sentence(error)}\n/resume asks again.", "red")
        for receipt in self.chat.receipts(self._told):  # What was changed once the reply was recorded.
            self.tell_receipt(receipt)
        self._screen.tell(self.context())

    def context(self) -> Context:
        """How the window stands."""
        return self.chat.context(cost=_cost(self.model))

    def note(self, text: str, style: str = "") -> None:
        """Show something that the chat itself says."""
        self._screen.tell(Notice(text, style))

    def tell_receipt(self, receipt: Receipt) -> None:
        """Show what a change of the view did."""
        self._told = max(self._told, receipt.last)
        self._screen.tell(ViewChanged(receipt))

    def fork(self, name: str) -> None:
        """Go over to a new conversation with the same past."""
        if self._opening.is_new:  # A fork of nothing is nothing yet, under another name.
            if name in self._opening.store.names(""):
                raise BadSetting(f"There already is a conversation {name!r}. Choose another name.")
        else:
            self.chat.fork(name).close()
        self._reopen(replace(self._opening, name=name, is_named=True))

    def use(self, model: str) -> None:
        """Let another model answer from now on. Its window counts, unless one was asked for."""
        self._reopen(replace(self._opening, model=model))

    def close(self) -> None:
        """Let go of the conversation and the model. All that was said is in the store."""
        self._agent.close()
        if (close := getattr(self._model, "close", None)) is not None:
            close()

    def _take_name(self) -> None:
        """From now on keep the conversation in the store."""
        opening = replace(self._opening, is_new=False)
        if not opening.is_named and opening.name in opening.store.names(""):  # Somebody has begun it meanwhile.
            opening = replace(opening, name=new_name(opening.store))
            self.note(f"This is {opening.name}: {self.name} was begun elsewhere.", "dim")
        agent = self._opened(opening, self._model)
        self._agent.close()
        self._agent, self._opening = agent, opening

    def _reopen(self, opening: Opening) -> None:
        model = self._opened_model(opening)
        agent = self._opened(opening, model)  # First: where it cannot be opened, this one stays.
        self.close()
        self._agent, self._model, self._opening = agent, model, opening
        self._told = self.chat.head.number

    def _opened_model(self, opening: Opening) -> Model:
        if opening.model == DEMO:
            return demo_model(pace=opening.pace)
        return open_model(opening.model)

    def _opened(self, opening: Opening, model: Model) -> ChatAgent:
        said: dict[str, Any] = {} if opening.window is None else {"window": opening.window}
        if not said and not hasattr(model, "window") and window_of(opening.model.partition(":")[2]) is None:
            raise BadSetting(f"How large is the window of {opening.model}? Say --window 128000 (tokens).")
        return ChatAgent(
            model,
            conversation=opening.name,
            store=MemoryStore() if opening.is_new else opening.store,
            system=opening.system,
            tools=opening.tools,
            limits=opening.limits,
            approve=self._approve,
            cost=_cost(opening.model),
            **said,
            policy=opening.policy,
            expand=True,
        )

    def _approve(self, call: ToolCall) -> bool | str:
        """Ask whether a call may be made. An answer that is neither yes nor no is told to the model."""
        if self._opening.approves or call.name in self._allowed:
            return True
        self._screen.tell(Question(call))
        said = (self._screen.read("    allow it? [y/N/always, or why not] ") or "").strip()
        match said.lower():
            case "y" | "yes":
                return True
            case "always":
                self._allowed.add(call.name)
                return True
            case "" | "n" | "no":
                return False
        return said


def _cost(model: str) -> Cost | None:
    return None if model == DEMO else cost_of(model)


def _sentence(error: Exception) -> str:
    """What went wrong, in the words of whoever says it: a provider's own, without the wrapping of its SDK."""
    if type(error).__module__.startswith("foveate"):
        return str(error)
    body = getattr(error, "body", None)
    told = body.get("error", body) if isinstance(body, dict) else None
    message = told.get("message") if isinstance(told, dict) else None
    said = message if isinstance(message, str) and message.strip() else str(error).strip()
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
