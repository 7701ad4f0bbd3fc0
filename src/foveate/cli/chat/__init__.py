"""`foveate chat`: a conversation with a model, in the terminal or through a pipe.

Reads the lines; what the options mean is `options.py`, what a line leads to `session.py` and
`commands.py`, how it looks `rendering.py`.
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ...errors import BadSetting, FoveateError
from ...stores import without_password
from ..options import settings_of

if TYPE_CHECKING:
    from .screen import Screen
    from .session import Opening, Talk

__all__ = ["chat"]

_PACE = 0.01
"""Seconds between two words of the demo, where a person reads along."""
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
    from ...agents.limits import Limits
    from ...open import open_store
    from .options import default_store, found, listed, screen_of, system_prompt, tools_named
    from .session import DEMO, Opening

    if name is not None and not name.strip():
        raise BadSetting("The conversation has an empty name. Give it one, or none, and it gets one.")
    settings = settings_of(policy)
    is_set = settings.values["store"].source != "default"
    place = store or (settings["store"] if is_set else default_store())
    limits = Limits(turns=limit_turns, tokens=limit_tokens, money=limit_money, seconds=limit_seconds)
    with closing(open_store(place)) as database:
        if list_:
            listed(database, place)
            return 0
        called, is_new, last_model = found(database, name)
        who = model or last_model
        if not who:
            raise BadSetting(
                "Which model is to answer? Say --model anthropic:claude-haiku-4-5, or --model demo: no key."
            )
        screen = screen_of(json_)
        is_person = sys.stdin.isatty()
        follows = is_person or json_
        opening = Opening(
            name=called,
            model=who,
            store=database,
            is_new=is_new and called not in database.names(""),
            is_named=name is not None,
            folder=folder,
            tools=tools_named(tools, folder),
            system=system_prompt(system),
            limits=limits,
            window=settings["window"] if window is None else window,
            policy=policy,
            approves=yes,
            pace=_PACE if is_person and who == DEMO else 0.0,
        )
        return _talked(opening, screen, without_password(place), is_new=is_new, follows=follows)


def _talked(opening: Opening, screen: Screen, place: str, *, is_new: bool, follows: bool) -> int:
    """Talk to the end, and return the exit code."""
    from .session import Talk

    with closing(Talk(opening, screen, follows=follows)) as talk:
        _greet(talk, place, is_new=is_new)
        while not _is_over(talk, screen, follows=follows):
            pass
        return 1 if talk.has_failed and not follows else 0


def _is_over(talk: Talk, screen: Screen, *, follows: bool) -> bool:
    """Read one line and do what it says. Whether it was the last."""
    from .commands import is_over

    try:
        if (line := _read(screen)) is None:
            return True
        text = line.strip()
        is_command = text.startswith("/") and not text.startswith("//")
        if is_command:
            return is_over(talk, text)
        if text:
            talk.say(text.removeprefix("/") if text.startswith("//") else text)
    except KeyboardInterrupt:
        if not follows:
            raise
        talk.note("\nCtrl-D, or /quit, ends the chat.")
    except BadSetting as error:
        if is_command or follows:
            talk.note(str(error), "red")
        else:
            raise
    except (FoveateError, OSError) as error:
        talk.note(str(error), "red")
    return False


def _read(screen: Screen) -> str | None:
    """What the user says next; a line that ends with a backslash goes on in the next one."""
    from .screen import PROMPT

    lines: list[str] = []
    while (line := screen.read("... " if lines else PROMPT)) is not None:
        if not line.endswith("\\"):
            return "\n".join([*lines, line])
        lines.append(line[:-1])
    return "\n".join(lines) if lines else None


def _greet(talk: Talk, place: str, *, is_new: bool) -> None:
    """Say which conversation this is, and where it had got to."""
    from ..text import said, shortened

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
