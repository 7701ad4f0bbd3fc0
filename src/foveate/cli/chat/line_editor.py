"""Lines that a person types at a terminal: history, completion with Tab, and several lines in one message.

A pasted text is one message, however many lines it has. Uses the package `prompt_toolkit`: Python's own `readline`
switches bracketed paste off, and the library that it uses on macOS has none.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, cast

from ...errors import MissingExtra

__all__ = ["CONTINUATION", "LineEditor"]

CONTINUATION = "... "
"""Marks the further lines of a message."""

Complete = Callable[[str], Sequence[str]]
"""Returns the whole lines that begin with the text before the cursor."""


class LineEditor:
    """Reads messages of one or several lines, and answers to questions. Raises MissingExtra without the package."""

    def __init__(self) -> None:
        try:
            from prompt_toolkit import PromptSession
            from prompt_toolkit.history import DummyHistory, InMemoryHistory
            from prompt_toolkit.key_binding import KeyBindings
            from prompt_toolkit.output import create_output
            from prompt_toolkit.shortcuts import CompleteStyle
        except ImportError:
            raise MissingExtra("foveate chat at a terminal", "cli") from None
        bindings = KeyBindings()
        bindings.add("enter")(_end_or_continue)
        bindings.add("escape", "enter")(_insert_line_end)
        output: Any = create_output(sys.stdout)
        output.enable_cpr = False  # Not every terminal reports the place of its cursor, and only menus need it.
        self._completer = _Completer()
        self._messages: Any = PromptSession(
            history=InMemoryHistory(),
            multiline=True,
            key_bindings=bindings,
            completer=cast(Any, self._completer),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            prompt_continuation=CONTINUATION,
            enable_open_in_editor=True,
            tempfile_suffix=".md",
            output=output,
        )
        self._answers: Any = PromptSession(history=DummyHistory(), output=output)

    def read_message(self, prompt: str, complete: Complete | None) -> str:
        """Return a message. Tab completes its first line. Raises EOFError and KeyboardInterrupt."""
        self._completer.complete = complete
        return str(self._messages.prompt(prompt))

    def read_answer(self, prompt: str) -> str:
        """Return one line, which the history of messages leaves out. Raises EOFError and KeyboardInterrupt."""
        return str(self._answers.prompt(prompt))


class _Completer:
    """A completer of `prompt_toolkit`, by its methods."""

    def __init__(self) -> None:
        self.complete: Complete | None = None

    def get_completions(self, document: Any, event: Any) -> Iterator[Any]:
        """Yield the rest of each line that begins with the text before the cursor."""
        from prompt_toolkit.completion import Completion

        text = str(document.text_before_cursor)
        for line in self.complete(text) if self.complete and document.is_cursor_at_the_end else ():
            word = text.rpartition(" ")[2]
            shown = line[len(text) - len(word) :]
            yield Completion(shown, start_position=-len(word))

    async def get_completions_async(self, document: Any, event: Any) -> AsyncIterator[Any]:
        """Yield the same."""
        for completion in self.get_completions(document, event):
            yield completion


def _end_or_continue(event: Any) -> None:
    """Send the message, or begin a new line if it ends with a backslash."""
    buffer = event.current_buffer
    if buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
        buffer.delete_before_cursor()
        buffer.insert_text("\n")
    else:
        buffer.validate_and_handle()


def _insert_line_end(event: Any) -> None:
    event.current_buffer.insert_text("\n")
