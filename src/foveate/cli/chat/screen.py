"""Input and output of a chat: a terminal, a pipe, or JSON lines for a program.

The screens make control characters visible, so no text of a model, a tool or a recording can control the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import Any, Protocol

import msgspec
from rich.text import Text

from ...agents.events import (
    ModelReplied,
    ReasoningDelta,
    RunEnded,
    SubAgentEvent,
    TextDelta,
    ToolAnswered,
    ToolCalled,
    ViewChanged,
)
from ...core.context import Context
from ...core.wire import encode_message
from ..output import console, encodable
from ..text import brief, printable, write_json
from ..wrapping import Wrapper, output_width
from .line_editor import CONTINUATION, LineEditor
from .rendering import ChatEvent, Notice, Piece, Question, ScreenState, Waiting, render, waiting_text

__all__ = ["PROMPT", "JsonScreen", "Pipe", "Screen", "Terminal"]

PROMPT = "> "
"""Marks a line of the user to the model."""
_ERASE_LINE = "\r\x1b[K"


class Screen(Protocol):
    """Where a chat reads and prints."""

    def show(self, event: ChatEvent) -> None:
        """Print one event."""
        ...

    def read(self, prompt: str, complete: Callable[[str], Sequence[str]] | None = None) -> str | None:
        """Return the next line of the user without its end, or a message of several lines; None at the end of input.

        `complete`: returns the lines that begin with a text, for the Tab key.
        """
        ...


class Pipe:
    """Lines in, plain text out: for scripts and tests. It prints each line it reads, so the output reads as a chat.

    COLUMNS, if set, is the width at which lines wrap.
    """

    def __init__(self) -> None:
        self._state = ScreenState()
        self._wrapper = Wrapper()
        _accept_any_bytes()

    def show(self, event: ChatEvent) -> None:
        self._state, pieces = render(self._state, event)
        for piece in pieces:
            self._put(piece)
        if not self._state.open:  # Nothing continues the last word.
            self._flush()
        sys.stdout.flush()

    def read(self, prompt: str, complete: Callable[[str], Sequence[str]] | None = None) -> str | None:
        line = sys.stdin.readline()
        if not line:
            return None
        line = line.rstrip("\r\n")
        self._put(Piece(f"{_spaced(prompt)}{line}\n"))
        self._flush()
        return line

    def _put(self, piece: Piece) -> None:
        """Print a piece, wrapped at words."""
        for text, style in self._wrapper.feed(_safe(piece.text), piece.style, output_width()):
            self._write(text, style)

    def _flush(self) -> None:
        for text, style in self._wrapper.flush(output_width()):
            self._write(text, style)

    def _write(self, text: str, style: str) -> None:
        sys.stdout.write(text)


class Terminal(Pipe):
    """A person at a terminal: messages with a history, and colours if the terminal has them."""

    def __init__(self) -> None:
        super().__init__()
        self._console = console()
        self._editor = None if self._console.is_dumb_terminal else LineEditor()
        """None for a terminal without control sequences."""
        self._is_waiting = False
        """Whether the cursor's line says what the chat waits for."""

    def show(self, event: ChatEvent) -> None:
        self._end_waiting()
        super().show(event)
        if (text := waiting_text(event)) and not self._state.open and not self._console.is_dumb_terminal:
            self._write(_safe(f"  {brief(text, max(20, self._console.width - 6))}"), "dim")
            sys.stdout.flush()
            self._is_waiting = True

    def read(self, prompt: str, complete: Callable[[str], Sequence[str]] | None = None) -> str | None:
        self._end_waiting()
        try:
            self._put(Piece(_spaced(prompt).removesuffix(prompt)))
            self._flush()
            sys.stdout.flush()
            if self._editor is None:
                return input(prompt)
            is_answer = prompt not in (PROMPT, CONTINUATION)
            return self._editor.read_answer(prompt) if is_answer else self._editor.read_message(prompt, complete)
        except EOFError:
            return None

    def _write(self, text: str, style: str) -> None:
        # A console that prints keeps its text until the print ends. After Ctrl-C in the middle, it prints it again.
        with self._console.capture() as styled:
            self._console.print(Text(text, style=style), end="")
        sys.stdout.write(styled.get())

    def _end_waiting(self) -> None:
        if self._is_waiting:
            sys.stdout.write(_ERASE_LINE)
            self._is_waiting = False


class JsonScreen:
    """One JSON object a line for each event: for programs."""

    def __init__(self) -> None:
        _accept_any_bytes()

    def show(self, event: ChatEvent) -> None:
        write_json(msgspec.json.encode(_plain(event)).decode())
        sys.stdout.flush()

    def read(self, prompt: str, complete: Callable[[str], Sequence[str]] | None = None) -> str | None:
        line = sys.stdin.readline()
        return line.rstrip("\r\n") if line else None


def _spaced(prompt: str) -> str:
    """Return the prompt, after an empty line if it asks for a line to the model."""
    return f"\n{prompt}" if prompt == PROMPT else prompt


def _accept_any_bytes() -> None:
    """Replace input bytes that are not UTF-8, instead of failing."""
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")


def _safe(text: str) -> str:
    return encodable(printable(text).encode("utf-8", "replace").decode())


def _plain(event: ChatEvent) -> dict[str, Any]:
    """Return an event as plain values; `event` holds its kind."""
    match event:
        case TextDelta(text) | ReasoningDelta(text):
            return {"event": "said" if isinstance(event, TextDelta) else "thought", "text": text}
        case ViewChanged(receipt):
            figures = {name: getattr(receipt, name) for name in ("first", "last", "turn", "author", "policies", "by")}
            sizes = {"edits": len(receipt.edits), "before": receipt.tokens_before, "after": receipt.tokens_after}
            return {"event": "changed", **figures, **sizes}
        case ModelReplied(message, id, usage, turn, seconds, stop):
            whole = msgspec.Raw(encode_message(message))
            facts: dict[str, Any] = {"usage": _usage(usage), "turn": turn, "seconds": round(seconds, 3)}
            if stop is not None and stop.kind not in ("end", "calls"):
                facts["stop"] = stop.kind
            return {"event": "replied", "id": id, "message": whole, **facts}
        case ToolCalled(call):
            return {"event": "called", "id": call.call_id, "name": call.name, "arguments": call.arguments}
        case ToolAnswered(call, result, seconds):
            facts = {"name": call.name, "state": result.state, "text": result.text, "seconds": round(seconds, 3)}
            return {"event": "answered", "id": call.call_id, **facts}
        case SubAgentEvent(agent, step, inner):
            return {"event": "inside", "agent": agent, "step": step, "of": _plain(inner)}
        case RunEnded(outcome):
            run = outcome.run
            return {"event": "ended", "state": run.state, "reason": run.reason, "text": outcome.text, "run": run.id}
        case Context():
            size: dict[str, Any] = {
                "tokens": event.tokens,
                "window": event.window,
                "free": event.free,
                "kinds": dict(event.kinds),
            }
            cost: dict[str, Any] = {
                "cost": round(event.cost),
                "saved": round(event.saved),
                "dollars": event.dollars,
                "dollars_saved": event.dollars_saved,
                "dollars_by_model": dict(event.dollars_by_model),
                "unpriced": event.unpriced,
            }
            more = {"whole": event.tokens_whole, "cached": event.cached}
            return {"event": "context", **size, **cost, **more}
        case Notice(text):
            return {"event": "notice", "text": text}
        case Waiting():
            return {"event": "waiting"}
        case Question(call):
            return {"event": "question", "id": call.call_id, "name": call.name, "arguments": call.arguments}


def _usage(usage: Any) -> dict[str, int | None]:
    return {name: getattr(usage, name) for name in usage.__struct_fields__}
