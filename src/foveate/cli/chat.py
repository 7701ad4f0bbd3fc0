"""`foveate chat`: a conversation with a model, in the terminal or through a pipe.

Reads the options and the lines; what a line leads to is `_chat_talk.py` and `_chat_commands.py`, how it looks
`_chat_shown.py`.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ..errors import BadInput, BadSetting, FoveateError
from ._options import settings_of

if TYPE_CHECKING:
    from ..agents.tools import Tool
    from ..ports import Store
    from ._chat_screen import Screen
    from ._chat_talk import Talk

__all__ = ["chat"]

TOOLS = ("files", "search", "shell")
"""Names that --tools takes, beside none."""

_SYSTEM = (
    "You talk with somebody at a terminal. Answer in plain text, briefly. Where tools are offered, use them to look "
    "before you answer; paths are relative to the folder you were started in."
)
_PACE = 0.01
_LAST = 400
"""Characters of the last exchange that are told when a conversation is taken up."""


def chat(
    name: str | None = None,
    /,
    *,
    model: str | None = None,
    store: str | None = None,
    folder: Path = Path(),
    tools: str = "files,search",
    window: int | None = None,
    policy: str | None = None,
    system: str | None = None,
    yes: bool = False,
    limit_turns: int = 50,
    limit_tokens: int | None = None,
    limit_money: float | None = None,
    limit_seconds: float | None = None,
    list_: Annotated[bool, Parameter(name="--list")] = False,
    json_: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Talk with a model in the terminal; the conversation is kept, and never outgrows the window.

    Example: `foveate chat fix-login --model anthropic:claude-haiku-4-5`, or `foveate chat --model demo`, which needs no
    key. Type /help in the chat for what can be done there. Lines can be piped in; the answers are then plain text.

    Parameters
    ----------
    name
        The conversation: taken up where there is one of this name, else begun (a new one, chat-1, chat-2, ...).
    model
        Who answers, as PROVIDER:MODEL (the one that answered last in this conversation). demo: no model, no key.
    store
        Where conversations are kept, such as sqlite:///chat.db (a file in your own data folder; --list says which).
    folder
        What the tools work on (the current folder).
    tools
        Which tools the model has: files, search, shell, with commas between, or none (files,search).
    window
        The model's window in tokens (known for common models; 16000 for the demo).
    policy
        How the conversation is kept small: a preset or a TOML file (what settings choose, else balanced).
    system
        The system prompt, or @FILE to read it from a file.
    yes
        Allow whatever tools ask for, without asking: to write files, to run commands.
    limit_turns
        Calls of the model for one answer, at most (50).
    limit_tokens
        Tokens for one answer, input and output of all calls.
    limit_money
        US dollars for one answer.
    limit_seconds
        Time for one answer.
    list_
        List the conversations of the store, and end.
    json_
        Write one JSON object a line for everything that happens, for programs.
    """
    from ..agents.limits import Limits
    from ..wiring import open_store
    from ._chat_talk import DEMO, Opening, Talk

    if name is not None and not name.strip():
        raise BadSetting("The conversation has an empty name. Give it one, or none, and it gets one.")
    settings = settings_of(policy)
    is_set = settings.values["store"].source != "default"
    place = store or (settings["store"] if is_set else _default_store())
    limits = Limits(turns=limit_turns, tokens=limit_tokens, money=limit_money, seconds=limit_seconds)
    with closing(open_store(place)) as database:
        if list_:
            return _list(database, place)
        called, is_new, last_model = _found(database, name)
        who = model or last_model
        if not who:
            raise BadSetting(
                "Which model is to answer? Say --model anthropic:claude-haiku-4-5, or --model demo: no key."
            )
        screen = _screen(json_)
        is_person = sys.stdin.isatty()
        goes_on = is_person or json_
        opening = Opening(
            name=called,
            model=who,
            store=database,
            folder=folder,
            tools=_tools(tools, folder),
            system=_said(system),
            limits=limits,
            window=settings["window"] if window is None else window,
            policy=policy,
            approves=yes,
            pace=_PACE if is_person and who == DEMO else 0.0,
        )
        with closing(Talk(opening, screen, goes_on=goes_on)) as talk:
            _greet(talk, place, is_new=is_new)
            while not _is_over(talk, screen, goes_on=goes_on):
                pass
            return 1 if talk.has_failed and not goes_on else 0


def _is_over(talk: Talk, screen: Screen, *, goes_on: bool) -> bool:
    """Read one line and do what it says. Whether it was the last."""
    from ._chat_commands import is_over

    try:
        if (line := _read(screen)) is None:
            return True
        text = line.strip()
        if text.startswith("/") and not text.startswith("//"):
            return is_over(talk, text)
        if text:
            talk.say(text.removeprefix("/") if text.startswith("//") else text)
    except KeyboardInterrupt:
        if not goes_on:
            raise
        talk.note("\nCtrl-D, or /quit, ends the chat.")
    except BadSetting as error:
        if text.startswith("/") or goes_on:
            talk.note(str(error), "red")
        else:
            raise
    except (FoveateError, OSError) as error:
        talk.note(str(error), "red")
    return False


def _read(screen: Screen) -> str | None:
    """What the user says next; a line that ends with a backslash goes on in the next one."""
    from ._chat_screen import PROMPT

    lines: list[str] = []
    while (line := screen.read("... " if lines else PROMPT)) is not None:
        if not line.endswith("\\"):
            return "\n".join([*lines, line])
        lines.append(line[:-1])
    return "\n".join(lines) if lines else None


def _greet(talk: Talk, place: str, *, is_new: bool) -> None:
    """Say which conversation this is, and where it had got to."""
    from ._said import said, shortened

    chat = talk.chat
    if is_new:
        talk.note(f"{talk.name}, with {talk.model}, kept in {place}. /help tells what can be done here.", "dim")
        return
    shown = f"{len(chat.view)} shown in {chat.view.tokens:,} tokens"
    talk.note(f"{talk.name}, with {talk.model}: {len(chat)} messages, {shown}. It goes on from here:", "dim")
    rows = chat.history(max(1, len(chat) - 200))
    for role, mark in (("user", "> "), ("assistant", "")):
        row = next((row for row in reversed(rows) if row.message.role == role and row.message.text.strip()), None)
        if row is not None:
            text = shortened(said(row.message)[: 10 * _LAST], 6, 160).replace(", --full shows all", "")
            talk.note(f"{mark}{text}", "dim")
    runs = chat.runs()
    if runs and runs[-1].state != "done":
        talk.note("The last answer did not come to its end. /resume goes on with it.", "yellow")


# ------------------------------------------------------------------------------------------------- what was asked for


def _screen(is_json: bool) -> Screen:
    from ._chat_screen import JsonScreen, Pipe, Terminal

    if is_json:
        return JsonScreen()
    return Terminal() if sys.stdin.isatty() and sys.stdout.isatty() else Pipe()


def _default_store() -> str:
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


def _found(store: Store, name: str | None) -> tuple[str, bool, str]:
    """The name of the conversation, whether it is new, and the model that answered in it last."""
    from ..wiring import open_conversation

    there = store.names("")
    if name is None:
        number = next(number for number in range(1, len(there) + 2) if f"chat-{number}" not in there)
        return f"chat-{number}", True, ""
    if name not in there:
        return name, True, ""
    with closing(open_conversation(name, store=store, policy="off")) as chat:
        steps = (step for run in reversed(chat.runs()) for step in reversed(chat.steps(run.id)))
        return name, not len(chat), next((step.name for step in steps if step.kind == "model"), "")


def _list(store: Store, place: str) -> int:
    """Name the conversations of a store: how long each is, and what was said last."""
    from ..replay.numbers import plural
    from ..wiring import open_conversation
    from ._print import print_table, say
    from ._said import beginning

    names = store.names("")
    say(f"{place}: {plural(len(names), 'conversation')}")
    rows: list[tuple[str, str, str]] = []
    for name in names:
        with closing(open_conversation(name, store=store, policy="off")) as chat:
            newest = chat.history(max(1, len(chat)))
            rows.append((name, f"{len(chat):,}", beginning(newest[-1].message, 60) if newest else ""))
    if rows:
        print_table(("name", "messages", "the last one"), rows, left=3)
    return 0


def _tools(names: str, folder: Path) -> tuple[Tool, ...]:
    """The tools of these names. Raises BadSetting for a name that there is not, and where there is no such folder."""
    from ..agents import toolbox

    asked = [name.strip() for name in names.split(",") if name.strip() and name.strip() != "none"]
    if unknown := [name for name in asked if name not in TOOLS]:
        raise BadSetting(f"There are no tools {', '.join(unknown)}. Known: {', '.join(TOOLS)} and none.")
    made = {
        "files": lambda: toolbox.files(folder, needs_approval=True),  # Whoever writes is asked for.
        "search": lambda: toolbox.search(folder),
        "shell": lambda: toolbox.shell(folder),
    }
    return tuple(tool for name in dict.fromkeys(asked) for tool in made[name]())


def _said(system: str | None) -> str:
    """The system prompt: as given, from a file, or our own."""
    if system is None:
        return _SYSTEM
    if not system.startswith("@"):
        return system
    try:
        return Path(system[1:]).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The system prompt cannot be read from {system[1:]}: {error}.") from error
