"""Values of the options of `foveate chat`: store, conversation, model, tools, system prompt and screen."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ...agents import toolbox
from ...agents.tools import Tool
from ...core.plurals import plural
from ...errors import BadInput, BadSetting, MissingKey
from ...models.demo import WINDOW, demo_model
from ...models.prices import cost_of
from ...models.sdk import SdkModel
from ...open import check_price, open_conversation, open_model, open_store
from ...ports import Cost, Database, Model
from ...stores import readable, without_password
from ..options import store_file, store_url
from ..output import print_table, say
from ..text import beginning, write_json
from .screen import JsonScreen, Pipe, Screen, Terminal

if TYPE_CHECKING:
    from ...agents.limits import Limits
    from ...settings import Settings

__all__ = [
    "DEMO",
    "TOOLS",
    "Found",
    "check_key",
    "choose_model",
    "choose_store",
    "data_folder",
    "data_path",
    "default_store",
    "find_conversation",
    "list_conversations",
    "new_name",
    "open_chat_model",
    "open_screen",
    "price_of",
    "read_system_prompt",
    "read_tools",
]

DEMO = "demo"
"""The name of the model that needs no key."""
TOOLS = ("files", "search", "shell")
"""Names that --tools takes, besides none."""

_SYSTEM = (
    "You talk with a person at a terminal. Answer in plain text, briefly. Where tools are offered, use them to look "
    "before you answer; paths are relative to the folder you were started in."
)


def open_screen(is_json: bool) -> Screen:
    """Return the screen that fits the streams of this process."""
    if is_json:
        return JsonScreen()
    return Terminal() if sys.stdin.isatty() and sys.stdout.isatty() else Pipe()


def default_store(*, create: bool = True) -> str:
    """Return the URL of a file in the user's data folder. `create`: create the folder, as `data_folder` does."""
    return f"sqlite:///{(data_folder() if create else data_path()) / 'chats.db'}"


def data_path() -> Path:
    """Return the path of the folder of foveate's files of this user, whether it exists or not."""
    home = Path.home()
    if os.environ.get("XDG_DATA_HOME"):
        data = Path(os.environ["XDG_DATA_HOME"])
    else:
        data = home / "Library" / "Application Support" if sys.platform == "darwin" else home / ".local" / "share"
    return data / "foveate"


def data_folder() -> Path:
    """Return the folder of foveate's files of this user; create it if it does not exist."""
    folder = data_path()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadSetting(
            f"{folder} cannot be created ({error.strerror}). Name another file: --store chat.db."
        ) from error
    return folder


def choose_store(store: str | None, settings: Settings, *, create: bool = True) -> str:
    """Return the URL of the store: of the option, else of the settings, else the default with its folder."""
    if store:
        return store_url(store)
    return str(settings["store"]) if settings.values["store"].source != "default" else default_store(create=create)


def choose_model(name: str, limits: Limits) -> str:
    """Return the name of a model. Raises BadSetting without a name, or without the price that a limit needs."""
    if not name:
        raise BadSetting(
            "A new conversation needs a model: --model anthropic:claude-haiku-4-5, or --model demo without a key."
        )
    if limits.money is not None:
        check_price("--limit-money", name, price_of(name), "Leave it out; --limit-tokens works for any model.")
    return name


class Found(Struct, frozen=True):
    """The conversation that a chat continues or creates."""

    name: str
    is_stored: bool = False
    """Whether the store has it. It may be empty."""
    has_messages: bool = False
    last_model: str = ""
    """The model that answered last in it; "" if none did."""


def find_conversation(store: Database, name: str | None) -> Found:
    """Return the conversation of this name, or a new one. Raises BadSetting for a blank name."""
    if name is None:
        return Found(new_name(store))
    if not name.strip():
        raise BadSetting("The conversation has an empty name. Name it, or leave the name out to get a new one.")
    if name not in store.names(""):
        return Found(name)
    with closing(open_conversation(name, store=store, policy="off")) as chat:
        steps = (step for run in reversed(chat.journal.runs()) for step in reversed(chat.journal.steps(run.id)))
        model = next((step.name for step in steps if step.kind == "model"), "")
        return Found(name, True, len(chat) > 0, model)


def new_name(store: Database) -> str:
    """Return the first free name of chat-1, chat-2, ..."""
    names = store.names("")
    return next(name for number in range(1, len(names) + 2) if (name := f"chat-{number}") not in names)


def list_conversations(url: str, *, as_json: bool = False) -> None:
    """Print the conversations of a store with their lengths and newest messages. Creates no file."""
    file = store_file(url)
    found: list[tuple[str, int, str]] = []
    if file is None or file.exists():
        with closing(open_store(readable(url))) as store:
            found = [(name, *_length_and_end(store, name)) for name in store.names("")]
    if as_json:
        for name, messages, text in found:
            write_json(msgspec.json.encode({"name": name, "messages": messages, "newest": text}).decode())
        return
    say(f"{without_password(url)}: {plural(len(found), 'conversation')}")
    if rows := [(name, f"{messages:,}", text) for name, messages, text in found]:
        print_table(("name", "messages", "newest message"), rows, left=3)


def _length_and_end(store: Database, name: str) -> tuple[int, str]:
    with closing(open_conversation(name, store=store, policy="off")) as chat:
        newest = chat.history(max(1, len(chat)))
        return len(chat), beginning(newest[-1].message, 60) if newest else ""


def read_tools(names: str, folder: Path) -> tuple[Tool, ...]:
    """Return the tools with these names. Raises BadSetting for an unknown name or folder."""
    chosen = [name.strip() for name in names.split(",") if name.strip() and name.strip() != "none"]
    if unknown := [name for name in chosen if name not in TOOLS]:
        raise BadSetting(f"There are no tools {', '.join(unknown)}. Known: {', '.join(TOOLS)} and none.")
    factories = {
        "files": lambda: toolbox.files(folder, needs_approval=True),  # The user approves each write.
        "search": lambda: toolbox.search(folder),
        "shell": lambda: toolbox.shell(folder),
    }
    return tuple(tool for name in dict.fromkeys(chosen) for tool in factories[name]())


def read_system_prompt(system: str | None) -> str:
    """Return the system prompt: the option's text, the text of its file, or the default."""
    if system is None:
        return _SYSTEM
    if not system.startswith("@"):
        return system
    try:
        return Path(system[1:]).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The system prompt cannot be read from {system[1:]}: {error}.") from error


def open_chat_model(name: str, *, pace: float, window: int | None) -> Model:
    """Return the model of this name. `pace` (seconds between two words) and `window` (tokens) are for the demo."""
    return demo_model(pace=pace, window=window or WINDOW) if name == DEMO else open_model(name)


def price_of(model: str) -> Cost | None:
    """Return the cost of the model with this name; None if its price is unknown."""
    return None if model in ("", DEMO) else cost_of(model)


def check_key(model: Model) -> None:
    """Raise BadSetting if the model has no key."""
    try:
        if isinstance(model, SdkModel):
            model.check_key()
    except MissingKey as error:
        raise BadSetting(
            f"{error.model} needs a key, and {' or '.join(error.variables)} is not set. Set it with export "
            f"{error.variables[0]}=YOUR_KEY, or use the model demo, which needs no key."
        ) from None
