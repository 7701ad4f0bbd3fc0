"""What the options of `foveate chat` mean: which store, conversation, tools, system prompt and screen.

Opens what is asked for, and raises BadSetting for what there is not; talks with nobody.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path

from ...agents import toolbox
from ...agents.tools import Tool
from ...errors import BadInput, BadSetting
from ...open import open_conversation
from ...ports import Store
from ...replay.numbers import plural
from ...stores import without_password
from ..output import print_table, say
from ..text import beginning
from .screen import JsonScreen, Pipe, Screen, Terminal

__all__ = ["TOOLS", "default_store", "found", "listed", "new_name", "screen_of", "system_prompt", "tools_named"]

TOOLS = ("files", "search", "shell")
"""Names that --tools takes, beside none."""

_SYSTEM = (
    "You talk with somebody at a terminal. Answer in plain text, briefly. Where tools are offered, use them to look "
    "before you answer; paths are relative to the folder you were started in."
)


def screen_of(is_json: bool) -> Screen:
    """Where this chat is read and printed."""
    if is_json:
        return JsonScreen()
    return Terminal() if sys.stdin.isatty() and sys.stdout.isatty() else Pipe()


def default_store() -> str:
    """A file in the user's data folder, which is made if it is not there."""
    home = Path.home()
    if os.environ.get("XDG_DATA_HOME"):
        data = Path(os.environ["XDG_DATA_HOME"])
    else:
        data = home / "Library" / "Application Support" if sys.platform == "darwin" else home / ".local" / "share"
    place = data / "foveate" / "chats.db"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadSetting(f"{place.parent} cannot be made ({error.strerror}). Say --store sqlite:///chat.db.") from error
    return f"sqlite:///{place}"


def found(store: Store, name: str | None) -> tuple[str, bool, str]:
    """The name of the conversation, whether it is new, and the model that answered in it last."""
    if name is None:
        return new_name(store), True, ""
    if name not in store.names(""):
        return name, True, ""
    with closing(open_conversation(name, store=store, policy="off")) as chat:
        steps = (step for run in reversed(chat.runs()) for step in reversed(chat.steps(run.id)))
        return name, not len(chat), next((step.name for step in steps if step.kind == "model"), "")


def new_name(store: Store) -> str:
    """A name that no conversation has: chat-1, chat-2, ..."""
    there = store.names("")
    return next(name for number in range(1, len(there) + 2) if (name := f"chat-{number}") not in there)


def listed(store: Store, place: str) -> None:
    """Name the conversations of a store: how long each is, and what was said last."""
    names = store.names("")
    say(f"{without_password(place)}: {plural(len(names), 'conversation')}")
    rows: list[tuple[str, str, str]] = []
    for name in names:
        with closing(open_conversation(name, store=store, policy="off")) as chat:
            newest = chat.history(max(1, len(chat)))
            rows.append((name, f"{len(chat):,}", beginning(newest[-1].message, 60) if newest else ""))
    if rows:
        print_table(("name", "messages", "the last one"), rows, left=3)


def tools_named(names: str, folder: Path) -> tuple[Tool, ...]:
    """The tools of these names. Raises BadSetting for a name that there is not, and where there is no such folder."""
    asked = [name.strip() for name in names.split(",") if name.strip() and name.strip() != "none"]
    if unknown := [name for name in asked if name not in TOOLS]:
        raise BadSetting(f"There are no tools {', '.join(unknown)}. Known: {', '.join(TOOLS)} and none.")
    made = {
        "files": lambda: toolbox.files(folder, needs_approval=True),  # Whoever writes is asked for.
        "search": lambda: toolbox.search(folder),
        "shell": lambda: toolbox.shell(folder),
    }
    return tuple(tool for name in dict.fromkeys(asked) for tool in made[name]())


def system_prompt(system: str | None) -> str:
    """The system prompt: as given, from a file, or our own."""
    if system is None:
        return _SYSTEM
    if not system.startswith("@"):
        return system
    try:
        return Path(system[1:]).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The system prompt cannot be read from {system[1:]}: {error}.") from error
