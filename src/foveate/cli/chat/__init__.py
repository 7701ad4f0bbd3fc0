"""`foveate chat`: a conversation with a model, at a terminal or through a pipe."""

from __future__ import annotations

import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ...errors import BadSetting, FoveateError
from ...stores import without_password
from ..options import settings_of

if TYPE_CHECKING:
    from .screen import Screen
    from .session import ChatOptions, ChatSession

__all__ = ["chat"]

_PACE = 0.01
"""Seconds between two words of the demo at a terminal."""
_LAST_CHARACTERS = 400
"""Size of the last exchange that a reopened conversation shows."""


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
    """Talk with a model in the terminal. The conversation is stored, and always fits the model's window.

    Example: `foveate chat fix-login --model anthropic:claude-haiku-4-5`, or `foveate chat --model demo`, which needs no
    key. Type /help in the chat to list its commands. Piped input gives plain text output.

    Parameters
    ----------
    name
        The conversation to continue or to create (default: a new one, chat-1, chat-2, ...).
    model
        The model, as PROVIDER:MODEL (default: the last model of this conversation). demo needs no key.
    store
        Where conversations are stored: a file or a URL (default: a file in your data folder; --list shows it).
    folder
        The folder that the tools use (default: the current folder).
    tools
        Tools of the model: files, search, shell, separated by commas, or none (default: files,search).
    window
        The model's window in tokens (default: known for common models; 16000 for demo).
    policy
        How the conversation shrinks: a preset or a TOML file (default: from the settings, else balanced).
    system
        The system prompt, or @FILE to read it from a file.
    yes
        Run tools without asking, such as those that write files or run commands.
    limit_turns
        Largest number of model calls for one answer (default: 50).
    limit_tokens
        Largest number of tokens for one answer, input and output of all calls.
    limit_money
        Largest cost of one answer, in US dollars. Needs the extra prices.
    limit_seconds
        Longest time for one answer.
    list_
        List the conversations of the store, and exit.
    json_
        Write one JSON object a line for each event, for programs; with --list, for each conversation.
    """
    from ...agents.limits import Limits
    from ...open import open_store
    from .options import (
        DEMO,
        choose_model,
        choose_store,
        find_conversation,
        list_conversations,
        read_system_prompt,
        read_tools,
    )
    from .session import ChatOptions

    settings = settings_of(policy)
    url = choose_store(store, settings, create=not list_)
    if list_:
        list_conversations(url, as_json=json_)
        return 0
    limits = Limits(turns=limit_turns, tokens=limit_tokens, money=limit_money, seconds=limit_seconds)
    with closing(open_store(url)) as database:
        found = find_conversation(database, name)
        chosen = choose_model(model or found.last_model, limits)
        options = ChatOptions(
            name=found.name,
            model=chosen,
            store=database,
            is_new=not found.is_stored,
            is_named=name is not None,
            folder=folder,
            tools=read_tools(tools, folder),
            system=read_system_prompt(system),
            limits=limits,
            window=settings["window"] if window is None else window,
            policy=policy,
            approve_all=yes,
            pace=_PACE if sys.stdin.isatty() and chosen == DEMO else 0.0,
        )
        return _run(options, without_password(url), has_messages=found.has_messages, is_json=json_)


def _run(options: ChatOptions, url: str, *, has_messages: bool, is_json: bool) -> int:
    """Run the chat to its end, and return the exit code."""
    from .options import open_screen
    from .session import ChatSession

    screen = open_screen(is_json)
    is_interactive = sys.stdin.isatty() or is_json
    with closing(ChatSession(options, screen, is_interactive=is_interactive)) as session:
        if has_messages:
            _show_last_exchange(session)
        else:
            welcome = f"{session.name} with {session.model}, stored in {url}. Type /help for the commands."
            session.notify(welcome, "dim")
        while not _run_line(session, screen, is_interactive=is_interactive):
            pass
        return 1 if session.has_failed and not is_interactive else 0


def _run_line(session: ChatSession, screen: Screen, *, is_interactive: bool) -> bool:
    """Read and run one line. Returns whether the chat ends."""
    from .commands import run_command

    try:
        if (line := _read(session, screen)) is None:
            return True
        text = line.strip()
        is_command = text.startswith("/") and not text.startswith("//")
        if is_command:
            return run_command(session, text)
        if text:
            session.send(text.removeprefix("/") if text.startswith("//") else text)
    except KeyboardInterrupt:
        if not is_interactive:
            raise
        session.notify("\nTo end the chat, press Ctrl-D or type /quit.")
    except BadSetting as error:
        if is_command or is_interactive:
            session.notify(str(error), "red")
        else:
            raise
    except (FoveateError, OSError) as error:
        session.notify(str(error), "red")
    return False


def _read(session: ChatSession, screen: Screen) -> str | None:
    """Return the next input. A backslash at the end of a line continues it on the next line."""
    from .commands import complete_line
    from .line_editor import CONTINUATION
    from .screen import PROMPT

    complete = partial(complete_line, session)
    lines: list[str] = []
    while (line := screen.read(CONTINUATION if lines else PROMPT, complete)) is not None:
        if not line.endswith("\\"):
            return "\n".join([*lines, line])
        lines.append(line[:-1])
    return "\n".join(lines) if lines else None


def _show_last_exchange(session: ChatSession) -> None:
    """Show the size of a continued conversation, its last exchange, and whether the last answer is complete."""
    from ..text import message_text, shortened

    chat = session.chat
    view = f"{len(chat.view)} in the view with {chat.view.tokens:,} tokens"
    session.notify(f"{session.name} with {session.model}: {len(chat)} messages, {view}. The last exchange:", "dim")
    rows = chat.history(max(1, len(chat) - 200))
    for role, mark in (("user", "> "), ("assistant", "")):
        row = next((row for row in reversed(rows) if row.message.role == role and row.message.text.strip()), None)
        if row is not None:
            text = shortened(message_text(row.message)[: 10 * _LAST_CHARACTERS], 6, 160)
            session.notify(f"{mark}{text}".replace(", --full shows all", ""), "dim")
    runs = chat.journal.runs()
    if runs and runs[-1].state != "done":
        session.notify("The last answer is not complete. Type /resume to continue it.", "yellow")
