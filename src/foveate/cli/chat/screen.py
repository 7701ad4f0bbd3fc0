"""Where a chat is read and printed: a terminal, a pipe, or a program that wants JSON lines.

Nothing that a model, a tool or a recording wrote can steer the terminal: control characters are made visible here, once
for all that is printed.
"""

from __future__ import annotations

import sys
from contextlib import suppress
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
from ..text import printable
from .rendering import Notice, Piece, Question, Shown, Told, Waiting, brief, shown, waits_for

__all__ = ["PROMPT", "JsonScreen", "Pipe", "Screen", "Terminal"]

PROMPT = "> "
"""What stands before what the user says to the model."""
_ERASED = "\r\x1b[K"
"""To the beginning of the line, and nothing on it any more."""


class Screen(Protocol):
    """Where a chat is read and printed."""

    def tell(self, told: Told) -> None:
        """Print something that happened."""
        ...

    def read(self, prompt: str) -> str | None:
        """The next line of the user, without its end; None where there is none any more."""
        ...


class Pipe:
    """Lines in, plain text out: for scripts and tests. What is read is printed, so that the output reads as a chat."""

    def __init__(self) -> None:
        self._shown = Shown()
        _read_anything()

    def tell(self, told: Told) -> None:
        self._shown, pieces = shown(self._shown, told)
        for piece in pieces:
            self._put(piece)
        sys.stdout.flush()

    def read(self, prompt: str) -> str | None:
        line = sys.stdin.readline()
        if not line:
            return None
        line = line.rstrip("\r\n")
        self._put(Piece(f"{_apart(prompt)}{line}\n"))
        return line

    def _put(self, piece: Piece) -> None:
        sys.stdout.write(_safe(piece.text))


class Terminal(Pipe):
    """A person at a terminal: lines with a history, colours where the terminal has them."""

    def __init__(self) -> None:
        super().__init__()
        with suppress(ImportError):  # Not everywhere; without it lines can be typed all the same.
            import readline  # noqa: F401
        self._console = console()
        self._is_waiting = False
        """Whether the line that the cursor is on says what is waited for."""

    def tell(self, told: Told) -> None:
        self._end_waiting()
        super().tell(told)
        if (what := waits_for(told)) and not self._shown.open and not self._console.is_dumb_terminal:
            self._put(Piece(f"  {brief(what, max(20, self._console.width - 6))}", "dim"))
            sys.stdout.flush()
            self._is_waiting = True

    def read(self, prompt: str) -> str | None:
        self._end_waiting()
        try:
            self._put(Piece(_apart(prompt).removesuffix(prompt)))
            return input(_safe(prompt))
        except EOFError:
            print()
            return None

    def _put(self, piece: Piece) -> None:
        self._console.print(Text(_safe(piece.text), style=piece.style), end="")

    def _end_waiting(self) -> None:
        if self._is_waiting:
            sys.stdout.write(_ERASED)
            self._is_waiting = False


class JsonScreen:
    """One JSON object a line for everything that happens: for programs."""

    def __init__(self) -> None:
        _read_anything()

    def tell(self, told: Told) -> None:
        print(msgspec.json.encode(_plain(told)).decode(), flush=True)

    def read(self, prompt: str) -> str | None:
        line = sys.stdin.readline()
        return line.rstrip("\r\n") if line else None


def _apart(prompt: str) -> str:
    """A prompt with an empty line before it, where something new begins."""
    return f"\n{prompt}" if prompt == PROMPT else prompt


def _read_anything() -> None:
    """What is no UTF-8 in what is piped in is replaced: half a letter is no reason to end."""
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")


def _safe(text: str) -> str:
    return encodable(printable(text).encode("utf-8", "replace").decode())


def _plain(told: Told) -> dict[str, Any]:
    """One event as plain values, under `event` its kind."""
    match told:
        case TextDelta(text) | ReasoningDelta(text):
            return {"event": "said" if isinstance(told, TextDelta) else "thought", "text": text}
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
            said = {"name": call.name, "state": result.state, "text": result.text, "seconds": round(seconds, 3)}
            return {"event": "answered", "id": call.call_id, **said}
        case SubAgentEvent(agent, step, event):
            return {"event": "inside", "agent": agent, "step": step, "of": _plain(event)}
        case RunEnded(outcome):
            run = outcome.run
            return {"event": "ended", "state": run.state, "reason": run.reason, "text": outcome.text, "run": run.id}
        case Context():
            held: dict[str, Any] = {
                "tokens": told.tokens,
                "window": told.window,
                "free": told.free,
                "kinds": dict(told.kinds),
            }
            cost = {"cost": round(told.cost), "saved": round(told.saved), "dollars": told.dollars}
            more = {"whole": told.tokens_whole, "cached": told.cached, "dollars_saved": told.dollars_saved}
            return {"event": "context", **held, **more, **cost}
        case Notice(text):
            return {"event": "notice", "text": text}
        case Waiting():
            return {"event": "waiting"}
        case Question(call):
            return {"event": "question", "id": call.call_id, "name": call.name, "arguments": call.arguments}


def _usage(usage: Any) -> dict[str, int | None]:
    return {name: getattr(usage, name) for name in usage.__struct_fields__}
